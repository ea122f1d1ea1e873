"""What `backtest --changes` does: a set of changed subscriptions over events of the past."""

from __future__ import annotations

import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.documents import refuse_options
from headgate.cli.shell import beside, ready, session, shown_command, tell
from headgate.core.subscription import SQL
from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.runtime.questions import Top
    from headgate.spark.backtest.question import Question
    from headgate.spark.backtest.what_if import Effect, WhatIf
    from headgate.spark.session.session import Session

SHOWN = 10
"""Subscriptions that are told one by one."""


@dataclass(frozen=True)
class ChangeOptions:
    """What was given on the command line."""

    changes: str
    events: str
    snapshot: str | None
    subscriptions: str | None
    dialect: str | None
    taxonomies: tuple[str, ...]
    options: Options | None
    output: str | None
    effects: str | None
    rejected: str | None
    report: str | None
    noise: float | None
    top: Top | None
    form: str | None
    cost: bool

    @property
    def noise_share(self) -> float:
        """Return the share of events above which a subscription is noisy."""
        return 0.1 if self.noise is None else self.noise / 100

    def beside(self, given: str | None, word: str) -> str | None:
        """Name a table after the output, unless it has a name."""
        return given or (beside(self.output, word) if self.output else None)


def try_changes(
    asked: ChangeOptions, master: str | None, conf: tuple[str, ...], *, quiet: bool, as_json: bool
) -> None:
    """Try changes and tell what they would do."""
    from headgate.spark.backtest.question import Question
    from headgate.spark.tables.taxonomy_files import check_taxonomy, read_taxonomy

    check_taxonomy(asked.taxonomies)
    if (asked.snapshot is None) == (asked.subscriptions is None):
        raise click.UsageError("--changes wants one of --snapshot and --subscriptions")
    if asked.report is not None and not asked.report.endswith(".html"):
        raise TableError(f"{asked.report} names no page: let it end in .html")
    rejected = asked.beside(asked.rejected, "rejected")
    effects = asked.beside(asked.effects, "effects")
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
        refused = rejected or str(Path(folder) / "rejected.jsonl")

        def question(snapshot: str) -> Question:
            return Question(
                asked.changes, snapshot, asked.events, asked.top, asked.form, asked.noise_share, asked.cost
            )

        if asked.snapshot is not None:
            _check_snapshot(asked)
            question(asked.snapshot).check(asked.output, effects, refused)
        else:
            _check_tables(asked, effects, refused)
        ready(master, conf)
        from headgate.pipeline.run.reporting import write_what_if
        from headgate.spark.backtest.what_if import what_if

        taxonomy = read_taxonomy(asked.taxonomies)
        with (
            session(master, conf, quiet=quiet) as spark,
            _snapshot(spark, asked, taxonomy, folder, quiet=quiet) as made,
        ):
            done = what_if(
                spark, question(made), output=asked.output, effects=effects, rejected=refused, quiet=quiet
            )
        lost = refused if rejected else None
        if asked.report is not None:
            write_what_if(
                done,
                question(made),
                Path(asked.report),
                title=Path(asked.changes).name,
                command=shown_command(sys.argv[1:]),
                rejected=lost,
            )
    lines = _lines(asked, done, effects, lost)
    tell(_fields(done, asked, effects, lost), lines, as_json=as_json)


def _check_snapshot(asked: ChangeOptions) -> None:
    """Refuse options that a snapshot has answered already, or that its content knows nothing of."""
    from headgate.contents.registry import content_at

    for option, given in (
        ("--dialect", asked.dialect),
        ("--taxonomy", asked.taxonomies or None),
        ("--coerce and --injective", asked.options),
    ):
        if given is not None:
            raise click.UsageError(f"{option} goes with --subscriptions: a snapshot has its own")
    refuse_options(content_at(Path(asked.snapshot or "")))


def _check_tables(asked: ChangeOptions, effects: str | None, rejected: str) -> None:
    """Refuse tables that are not there, and places that are taken, as far as is known before compiling."""
    from headgate.spark.tables.places import check_apart, check_input, check_output

    outputs = [place for place in (asked.output, effects, rejected) if place is not None]
    for table in (asked.changes, asked.subscriptions or ""):
        check_input(table)
    for place in outputs:
        check_output(place)
    check_apart(asked.changes, asked.subscriptions, asked.events, *outputs)


@contextmanager
def _snapshot(
    spark: Session, asked: ChangeOptions, taxonomy: Taxonomy | None, folder: str, *, quiet: bool
) -> Iterator[str]:
    """Yield the snapshot that was named, or one that is compiled from the table that was."""
    from headgate.spark.compile.compile import compile_subscriptions

    if asked.subscriptions is None:
        yield asked.snapshot or ""
        return
    place = str(Path(folder) / "snapshot")
    done = compile_subscriptions(
        spark,
        asked.subscriptions,
        place,
        rejected=str(Path(folder) / "refused.jsonl"),
        dialect=asked.dialect or SQL,
        taxonomy=taxonomy,
        options=asked.options,
        quiet=quiet,
    )
    if done.rejected:
        click.echo(f"note: {done.rejected:,} rows of {asked.subscriptions} were refused", err=True)
    yield place


def _lines(asked: ChangeOptions, done: WhatIf, effects: str | None, rejected: str | None) -> list[str]:
    what = "matches" if asked.top is None else f"places among the best {asked.top.k:,}"
    told = ", ".join(f"{count:,} {op}" for op, count in done.changes.items()) or "none"
    lines = [f"changes: {told}"]
    lines.append(f"in {done.events:,} events {done.gained:,} {what} would be gained and {done.lost:,} lost")
    if done.deliveries_a_day is not None:
        lines.append(f"that is {done.deliveries_a_day:+,.1f} deliveries a day")
    lines += _effect_lines(done.effects)
    if done.cost is not None:
        lines.append(f"snapshot: {done.cost.bytes_before:,} bytes before, {done.cost.bytes_after:,} after")
        before, after = done.cost.micros_before, done.cost.micros_after
        if before is not None and after is not None:
            lines.append(f"an event takes {before:,.1f} µs before, {after:,.1f} after")
    if done.rejected or done.rejected_events:
        where = (
            f", with the reasons in {rejected}" if rejected else ": name --output or --rejected to see why"
        )
        lines.append(f"refused {done.rejected:,} changes and {done.rejected_events:,} events{where}")
    for name, place in (("what comes and goes", asked.output), ("each subscription", effects)):
        if place is not None:
            lines.append(f"{name} is in {place}")
    if asked.report is not None:
        lines.append(f"report: {asked.report}")
    return lines


def _effect_lines(effects: tuple[Effect, ...]) -> list[str]:
    """List the noisiest subscriptions."""
    if not effects:
        return []
    width = max(len("subscription"), *(len(str(each.id)) for each in effects[:SHOWN]))
    width = min(width, 40)
    lines = [f"{'subscription':<{width}}  {'before':>9}  {'after':>9}  {'gained':>9}  {'lost':>9}  of events"]
    for each in effects[:SHOWN]:
        flag = f"  {each.flag}" if each.flag else ""
        lines.append(
            f"{str(each.id)[:width]:<{width}}  {each.before:>9,}  {each.after:>9,}  {each.gained:>9,}  "
            f"{each.lost:>9,}  {each.share:>8.2%}{flag}"
        )
    if len(effects) > SHOWN:
        lines.append(f"and {len(effects) - SHOWN:,} more")
    return lines


def _fields(done: WhatIf, asked: ChangeOptions, effects: str | None, rejected: str | None) -> dict[str, Any]:
    """Return the result for JSON; the effects that are told, the others are in their table."""
    found: dict[str, Any] = {
        "events": done.events,
        "rejected_events": done.rejected_events,
        "changes": done.changes,
        "rejected": done.rejected,
        "gained": done.gained,
        "lost": done.lost,
        "subscriptions": len(done.effects),
        "silent": sum(each.flag == "matches nothing" for each in done.effects),
        "noisy": sum(each.flag == "noisy" for each in done.effects),
        "noisiest": [vars(each) for each in done.effects[:SHOWN]],
        "days": done.days,
        "deliveries_a_day": done.deliveries_a_day,
        "cost": done.cost._asdict() if done.cost else None,
        "seconds": done.seconds,
        "output": asked.output,
        "effects_table": effects,
        "rejected_table": rejected,
        "report": asked.report,
    }
    return {name: value for name, value in found.items() if value is not None}
