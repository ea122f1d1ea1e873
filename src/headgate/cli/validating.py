"""The commands that check filters before they are compiled, and convert those of other systems."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from headgate.cli.options import options_of
from headgate.cli.shell import STRICT_EXIT, cli, json_option, refused_line, tell
from headgate.cli.standard import named
from headgate.contents.settings import NAMES, PLAIN, Documents, PlainSettings
from headgate.core.settings import setting
from headgate.core.subscription import FOREIGN
from headgate.tables.settings import Compile

if TYPE_CHECKING:
    from headgate.backtest.checking import FilterCheck
    from headgate.local.validate import Validation
    from headgate.records.names import NameSettings


REFUSED_EXIT = 1
_SHOWN = 50
_WIDEST = 60


@dataclass(frozen=True, kw_only=True)
class Validate(Compile, Documents):
    """Which filters are checked, and over which events."""

    snapshot: str = ""
    events: str | None = setting(
        "events like those to come; the first 10,000 tell what share of them comes to each filter",
        metavar="TABLE",
    )
    every: bool = setting("list all filters, not the first 50", False, option="--all")


_ABOUT_SNAPSHOTS = ("changes", "rejected", "sample", "ranked", "shards", "shard_by", "shard_column")


@cli.command()
@click.argument("subscriptions", metavar="TABLE", required=False)
@options_of(Validate, without=("subscriptions", *_ABOUT_SNAPSHOTS))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each filter, a line each.")
def validate(asked: Validate, subscriptions: str | None, *, as_json: bool) -> None:
    r"""Check a table of subscriptions, or the tables of a graph, without compiling it and without Spark.

    Says of each filter by what the index comes to it, what is verified then and how many attributes are
    computed for it, and with --events for what share of the events it is looked at and what share of them
    matches. Notes filters that can never match, filters that match everything, and attributes that no event
    has, with the likeliest that was meant. Exits with 1 if a row is refused.

    \b
    Examples:
      headgate validate subs.jsonl
      headgate validate subs.jsonl --events events.jsonl --json
      headgate validate --nodes nodes.jsonl --edges edges.jsonl
      headgate validate patterns.csv --dialect sparql --events feeds/
    """
    from headgate.tables.places import check_input
    from headgate.tables.requests import check_taxonomy, read_taxonomy

    tables = {"nodes": asked.nodes, "edges": asked.edges, "subscriptions": subscriptions}
    places = {name: path for name, path in tables.items() if path is not None}
    if not places:
        raise click.UsageError("name a table of subscriptions, or --nodes and --edges")
    if (asked.nodes is None) is not (asked.edges is None):
        raise click.UsageError("a graph has nodes and edges: give both --nodes and --edges")
    for path in places.values():
        check_input(path)
    check_taxonomy(asked.taxonomy)
    wanted = asked.wanted(read_taxonomy(asked.taxonomy))
    from headgate.local.validate import validate as check

    done = check(places, wanted, events=asked.events, content_type=asked.format)
    if as_json:
        for each in done.filters:
            click.echo(json.dumps(_object(each, graph=asked.nodes is not None), ensure_ascii=False))
    else:
        for line in _lines(done, every=asked.every):
            click.echo(named(line))
    if done.refused:
        sys.exit(REFUSED_EXIT)


def _object(each: FilterCheck, *, graph: bool) -> dict[str, object]:
    """Return a filter for JSON, without what is not known of it."""
    left = () if graph else ("table",)
    return {name: value for name, value in asdict(each).items() if value is not None and name not in left}


def _lines(done: Validation, *, every: bool) -> list[str]:
    from headgate.contents.kind import table_lines

    sound = [each for each in done.filters if each.refused is None]
    graph = any(each.table != "subscriptions" for each in done.filters)
    shown = sound if every else sound[:_SHOWN]
    checked = any(each.costs is not None and each.costs.verified for each in shown)
    costly = any(each.costs is not None and each.costs.computed for each in shown)
    columns = [
        ["id", *(_name(each, graph=graph) for each in shown)],
        ["indexed by", *(_cut(each.indexed_by or "") for each in shown)],
    ]
    if checked:
        columns.append(["verified", *map(_verified, shown)])
    if costly:
        columns.append(["computed", *map(_computed, shown)])
    if done.events:
        columns.append(["reached", *(_share(each.reached) for each in shown)])
        columns.append(["matched", *(_share(each.matched) for each in shown)])
    lines = table_lines(list(zip(*columns, strict=True))) if shown else []
    if len(shown) < len(sound):
        lines.append(f"  … and {len(sound) - len(shown):,} more; --all lists them")
    refused = [(each, each.refused) for each in done.filters if each.refused is not None]
    notes = [(each, note) for each in done.filters for note in each.notes]
    for word, told in (("refused", refused), ("note", notes)):
        some = told if every else told[:_SHOWN]
        lines += [f"{word} {_name(each, graph=graph)}: {reason}" for each, reason in some]
        if len(some) < len(told):
            lines.append(f"{word}: {len(told) - len(some):,} more; --all lists them")
    summary = (
        f"{len(sound):,} filters are sound, {done.refused:,} rows are refused, {done.noted:,} have notes"
    )
    if done.events is not None:
        summary += f"; {done.events:,} events were looked at"
    if done.refused_events:
        summary += f", and {done.refused_events:,} rows that are not events"
    return [*lines, summary]


def _name(each: FilterCheck, *, graph: bool) -> str:
    name = "a row without id" if each.id is None else str(each.id)
    return f"{each.table.removesuffix('s')} {name}" if graph else name


def _verified(each: FilterCheck) -> str:
    """Name what is checked for the events that come to a filter."""
    return _cut(", ".join(each.costs.verified) or "-") if each.costs is not None else "-"


def _computed(each: FilterCheck) -> str:
    """Say how many attributes are computed for a filter, and how many of them for others as well."""
    if each.costs is None or not each.costs.computed:
        return "-"
    shared = f", {each.costs.shared} shared" if each.costs.shared else ""
    return f"{len(each.costs.computed)}{shared}"


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


@dataclass(frozen=True, kw_only=True)
class Convert(PlainSettings):
    """What filters are converted from, and where they go."""

    dialect: str = setting("what the filters are written in", option="--from", listed=FOREIGN)
    output: str = setting("where the subscriptions go, as JSON lines", metavar="TABLE")
    rejected: str | None = setting(
        "where rows that are refused go; beside the output by default", metavar="TABLE"
    )


@cli.command()
@click.argument("subscriptions", metavar="TABLE")
@options_of(Convert, without=[name for name in PLAIN if name not in NAMES])
@click.option("--strict", is_flag=True, help="Exit with 3 if any row was refused.")
@json_option
def convert(asked: Convert, subscriptions: str, *, strict: bool, as_json: bool) -> None:
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

    dialect, output = asked.dialect, asked.output
    check_there(subscriptions)
    refused = asked.rejected or beside(output, "rejected")
    check_apart(subscriptions, output, refused)
    from headgate.local.convert import convert as run
    from headgate.records.importers.registry import EXACTLY
    from headgate.records.names import NameSettings

    settings = NameSettings.of(asked.plain)
    done = run(subscriptions, dialect, output, refused, settings)
    lines = [f"converted {done.filters:,} filters to {output}"]
    lines.append(refused_line(done.rejected, "rows", refused))
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
