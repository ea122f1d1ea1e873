"""The command that converts filters of other systems."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from headgate.cli.options import options_of
from headgate.cli.shell import STRICT_EXIT, cli, json_option, tell
from headgate.contents.settings import NAMES, PLAIN, PlainSettings
from headgate.core.subscription import FOREIGN

if TYPE_CHECKING:
    from headgate.records.names import NameSettings


@cli.command()
@click.argument("subscriptions", metavar="TABLE")
@click.option(
    "--from", "dialect", type=click.Choice(FOREIGN), required=True, help="What the filters are written in."
)
@click.option("--output", metavar="TABLE", required=True, help="Where the subscriptions go, as JSON lines.")
@click.option(
    "--rejected", metavar="TABLE", help="Where rows that are refused go; beside the output by default."
)
@options_of(PlainSettings, [PLAIN[name] for name in NAMES])
@click.option("--strict", is_flag=True, help="Exit with 3 if any row was refused.")
@json_option
def convert(
    said: PlainSettings,
    subscriptions: str,
    dialect: str,
    output: str,
    rejected: str | None,
    *,
    strict: bool,
    as_json: bool,
) -> None:
    r"""Convert filters of another system to filters of records.

    Rows have id and filter, or are what the system exports: rules of EventBridge, hits of a search for
    percolator queries, subscriptions of CloudEvents, documents of Vespa. What cannot be said exactly is
    refused, with the reason and the place in the filter. What names mean in the system is said at the end:
    give that here and to compile where it makes a difference.

    \b
    Examples:
      headgate convert rules.json --from eventbridge --output subs.jsonl
      headgate convert queries.jsonl --from elasticsearch --output subs.jsonl --rejected refused.jsonl
      headgate convert filters.csv --from cesql --output subs.jsonl --strict
      headgate convert rules.json --from eventbridge --nulls told --names exact --output subs.jsonl
      headgate compile --subscriptions subs.jsonl --nulls told --names exact --output snapshot/
    """
    from headgate.tables.places import beside, check_apart, check_there

    check_there(subscriptions)
    refused = rejected or beside(output, "rejected")
    check_apart(subscriptions, output, refused)
    from headgate.local.convert import convert as run
    from headgate.records.importers.registry import EXACTLY
    from headgate.records.names import NameSettings

    settings = NameSettings.of(said.plain)
    done = run(subscriptions, dialect, output, refused, settings)
    lines = [f"converted {done.filters:,} filters to {output}"]
    lines.append(
        f"refused {done.rejected:,} rows, with the reasons in {refused}" if done.rejected else "refused none"
    )
    if not settings.usual:
        lines.append(f"compile them with {_options(settings)}")
    lacking = {
        name: value for name, value in EXACTLY[dialect].plain.items() if getattr(settings, name) != value
    }
    if lacking:
        lines.append(
            f"names mean in {dialect} what {_options(NameSettings.of(lacking))} say: give these here and to "
            "compile where it matters"
        )
    told = {
        "filters": done.filters,
        "rejected": done.rejected,
        "output": output,
        "rejected_table": refused,
        "settings": settings.plain,
        "lacking": lacking,
    }
    tell(told, lines, as_json=as_json)
    if strict and done.rejected:
        sys.exit(STRICT_EXIT)


def _options(settings: NameSettings) -> str:
    """Write settings as options of commands."""
    return " ".join(f"--{name} {value}" for name, value in settings.plain.items())
