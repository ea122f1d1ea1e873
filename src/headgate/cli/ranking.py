"""The options of commands that ask for the best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from headgate.runtime.questions import Top

mode_option = click.option(
    "--mode",
    type=click.Choice(["exact", "relaxed"]),
    help="What makes one better: its score if all clauses hold (exact, the default), or their weights.",
)
factor_option = click.option(
    "--factor",
    "factors",
    multiple=True,
    metavar="NAME=NUMBER",
    help="Relaxed: multiply the weights of an attribute's clauses; 0 drops them. May be repeated.",
)


def wanted_top(option: str, k: int | None, mode: str | None, factors: tuple[str, ...]) -> Top | None:
    """Read what is asked for; `option` is what says how many."""
    from headgate.runtime.questions import RELAXED, Top

    if k is None:
        for name, given in (("--mode", mode), ("--factor", factors)):
            if given:
                raise click.UsageError(f"{name} goes with {option}")
        return None
    if factors and mode != RELAXED:
        raise click.UsageError("--factor goes with --mode relaxed")
    return Top.of(k, mode or "exact", read_factors(factors))


def read_factors(entries: tuple[str, ...]) -> dict[str, float]:
    """Read NAME=NUMBER pairs."""
    found: dict[str, float] = {}
    for entry in entries:
        name, _, text = entry.rpartition("=")
        try:
            number = float(text)
        except ValueError:
            raise click.UsageError(f"--factor {entry}: write NAME=NUMBER") from None
        if not name.strip() or name.strip() in found:
            reason = "is given twice" if name.strip() else "write NAME=NUMBER"
            raise click.UsageError(f"--factor {entry}: {reason}")
        found[name.strip()] = number
    return found
