"""The command that checks tables of filters before they are compiled."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from headgate.cli.documents import format_option
from headgate.cli.options import option_of, options_of
from headgate.cli.shell import cli
from headgate.cli.standard import named
from headgate.tables.settings import Compile, Filters, read_text

if TYPE_CHECKING:
    from headgate.backtest.checking import FilterCheck
    from headgate.local.validate import Validation

REFUSED_EXIT = 1
_SHOWN = 50
_WIDEST = 60


@cli.command()
@click.argument("subscriptions", metavar="TABLE", required=False)
@option_of(Compile, "nodes")
@option_of(Compile, "edges")
@click.option(
    "--events",
    metavar="TABLE",
    help="Events like those to come; the first 10,000 tell what share of them comes to each filter.",
)
@option_of(Compile, "schema")
@option_of(Compile, "dialect")
@format_option
@options_of(Filters)
@click.option("--all", "every", is_flag=True, help="List all filters, not the first 50.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each filter, a line each.")
def validate(
    said: Filters,
    subscriptions: str | None,
    nodes: str | None,
    edges: str | None,
    events: str | None,
    schema: str | None,
    dialect: str | None,
    form: str | None,
    *,
    every: bool,
    as_json: bool,
) -> None:
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

    found = {"nodes": nodes, "edges": edges, "subscriptions": subscriptions}
    places = {name: path for name, path in found.items() if path is not None}
    if not places:
        raise click.UsageError("name a table of subscriptions, or --nodes and --edges")
    if (nodes is None) is not (edges is None):
        raise click.UsageError("a graph has nodes and edges: give both --nodes and --edges")
    for path in places.values():
        check_input(path)
    check_taxonomy(said.taxonomy)
    types = None if schema is None else read_text(schema)
    wanted = said.filter_settings(dialect, read_taxonomy(said.taxonomy), schema=types)
    from headgate.local.validate import validate as check

    done = check(places, wanted, events=events, content_type=form)
    if as_json:
        for each in done.filters:
            click.echo(json.dumps(_object(each, graph=nodes is not None), ensure_ascii=False))
    else:
        for line in _lines(done, every=every):
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
    head = ["id", "indexed by", *(["verified"] if checked else []), *(["computed"] if costly else [])]
    head += ["reached", "matched"] if done.events else []
    rows = [
        [
            _name(each, graph=graph),
            _cut(each.indexed_by or ""),
            *([_verified(each)] if checked else []),
            *([_computed(each)] if costly else []),
            *_shares(each),
        ]
        for each in shown
    ]
    lines = table_lines([head, *rows]) if rows else []
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


def _shares(each: FilterCheck) -> list[str]:
    return [f"{share:.1%}" for share in (each.reached, each.matched) if share is not None]


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
