"""Commands that run a job on Spark over tables."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.documents import feed_lines
from headgate.cli.options import options_of
from headgate.cli.shell import (
    STRICT_EXIT,
    cli,
    fields_of,
    prepare,
    run_on,
    tell,
    where_options,
)
from headgate.tables.settings import Compile, Match, Where

if TYPE_CHECKING:
    from headgate.jobs.runner import Runner
    from headgate.tables.results import CompileResult, GraphCompileResult, MatchResult


@cli.command(name="compile")
@options_of(Compile)
@click.option("--strict", is_flag=True, help="Exit with 3 if any row was refused.")
@where_options()
def compile_(asked: Compile, where: Where, *, strict: bool, quiet: bool, as_json: bool) -> None:
    r"""Compile a table of subscriptions, or a graph of nodes and edges, to a snapshot.

    Tables are .jsonl, .csv or .parquet. Rows that are refused land in the rejected table with the reason.
    Filters of dialect sql and labels look at records, those of sparql and tuples at RDF, those of xpath and
    tree at XML; a table may have filters of several kinds.

    \b
    Examples:
      headgate compile --subscriptions subs.jsonl --output snapshot/
      headgate compile --subscriptions subs.jsonl --output ranked/ --ranked --shards 4
      headgate compile --subscriptions s.jsonl --output s/ --shards 8 --shard-by access --shard-column topic
      headgate compile --nodes nodes.jsonl --edges edges.jsonl --output snapshot/
      headgate compile --nodes n.parquet --edges e.parquet --subscriptions s.parquet --output g/ --shards 4
      headgate compile --subscriptions patterns.csv --dialect sparql --taxonomy topics.ttl --output rdf/
      headgate compile --subscriptions trees.jsonl --dialect xpath --output xml/
    """
    from headgate.core.versions.stores import is_stored
    from headgate.local.small import why_large
    from headgate.tables.contained import check_log
    from headgate.tables.places import beside, check_here_or_stored
    from headgate.tables.requests import check_compile, check_taxonomy, read_taxonomy

    check_here_or_stored(asked.snapshot)
    # That of a snapshot in a store is put into this folder.
    folder = Path() if is_stored(asked.snapshot) else None
    refused = asked.rejected or beside(asked.snapshot, "rejected", folder)
    wanted = asked.wanted()
    check_taxonomy(asked.taxonomy)
    sharding = asked.sharding
    _check_graph(asked)
    check_compile(asked.tables, asked.snapshot, rejected=refused, wanted=wanted, sharding=sharding)
    check_log(asked.changes)
    large = why_large([*asked.tables, *([asked.sample] if asked.sample else [])])
    prepare(where, large)
    wanted = replace(wanted, taxonomy=read_taxonomy(asked.taxonomy))
    said = {**asked.arguments(wanted), "rejected": refused}
    done = run_on(where, large, lambda runner: _compile(runner, asked, said), quiet=quiet)
    told = _compiled(done)
    lines = [f"compiled {told} {_over(done)} to {asked.snapshot}"]
    lines.append(
        f"refused {done.rejected:,} rows, with the reasons in {refused}" if done.rejected else "refused none"
    )
    tell({**fields_of(done), "snapshot": asked.snapshot, "rejected_table": refused}, lines, as_json=as_json)
    if strict and done.rejected:
        sys.exit(STRICT_EXIT)


def _over(done: CompileResult | GraphCompileResult) -> str:
    """Say what filters look at."""
    return f"over {len(done.attributes)} attributes" if done.holds is None else done.holds.sentence


def _check_graph(asked: Compile) -> None:
    """Refuse half a graph, and no tables."""
    if (asked.nodes is None) != (asked.edges is None):
        raise click.UsageError("a graph has nodes and edges: give both --nodes and --edges")
    if not asked.tables:
        raise click.UsageError("Missing option '--subscriptions', or '--nodes' and '--edges'.")


def _compile(runner: Runner, asked: Compile, said: dict[str, Any]) -> CompileResult | GraphCompileResult:
    """Compile the tables."""
    if asked.nodes is None or asked.edges is None:
        from headgate.jobs.compile import compile_subscriptions

        return compile_subscriptions(runner, str(asked.subscriptions), asked.snapshot, **said)
    from headgate.jobs.graph import compile_graph
    from headgate.tables.results import Tables

    tables = Tables(asked.nodes, asked.edges, asked.subscriptions)
    return compile_graph(runner, tables, asked.snapshot, **said)


def _compiled(done: CompileResult | GraphCompileResult) -> str:
    """Say what was compiled."""
    from headgate.tables.results import GraphCompileResult

    parts = f" in {done.shards} shards" if done.shards > 1 else ""
    if isinstance(done, GraphCompileResult):
        counts = f"{done.nodes:,} nodes, {done.edges:,} edges and {done.subscriptions:,} subscriptions"
        return counts + parts
    return f"{done.subscriptions:,} {'ranked ' if done.ranked else ''}subscriptions{parts}"


@cli.command()
@options_of(Match)
@click.option("--strict", is_flag=True, help="Exit with 3 if any event was refused, or any filter left out.")
@where_options()
def match(asked: Match, where: Where, *, strict: bool, quiet: bool, as_json: bool) -> None:
    r"""Match a table of events against a snapshot.

    Tables are .jsonl, .csv or .parquet; JSON lines and CSV are written as one file, Parquet as a directory.
    With a graph, an event gets from its source to subscriptions along edges and nodes that it passes.
    With --top, each event gets its best K: exact ranks those of which all clauses hold by their score (less
    what the way costs in a graph), relaxed those of which any clause holds by the sum of their weights.
    RDF events are rows with the text in the column data, or files (.ttl, .nt, .rdf, .xml, .jsonld, .rss), one
    event each; the items of an RSS feed are one event each. XML events are such rows, or files (.xml).

    \b
    Examples:
      headgate match --snapshot snapshot/ --events events.jsonl --output matches.jsonl
      headgate match --snapshot ranked/ --events events.jsonl --output best.jsonl --top 10
      headgate match --snapshot ranked/ --events e.csv --output b.csv --top 5 --mode relaxed --factor age=0
      headgate match --snapshot rdf/ --events documents.jsonl --format turtle --output matches.parquet
      headgate match --snapshot rdf/ --events feeds/ --output matches.jsonl
      headgate match --snapshot xml/ --events documents/ --output matches.jsonl --tuples tuples.jsonl
      headgate match --snapshot snapshot/ --events e.jsonl --output m.jsonl --stats statistics.parquet
    """
    from headgate.local.small import why_large
    from headgate.runtime.questions import check_target
    from headgate.tables.places import beside
    from headgate.tables.requests import check_match

    refused = asked.rejected or beside(asked.output, "rejected")
    said = {**asked.arguments, "rejected": refused}
    wanted: dict[str, Any] = {"graph": asked.graph, "top": asked.best}
    check_match(**{name: value for name, value in said.items() if name not in wanted})
    check_target(asked.snapshot, **wanted)
    large = why_large([asked.events])
    prepare(where, large)
    from headgate.runtime.targets import open_target

    target = open_target(asked.snapshot, **wanted)

    def match(runner: Runner) -> MatchResult:
        from headgate.jobs.match import match_events

        return match_events(runner, **said, target=target)

    done = run_on(where, large, match, quiet=quiet)
    found = "matches" if asked.top is None else f"matches, the best {asked.top:,} of each,"
    lines = [f"matched {done.events:,} events: {done.matches:,} {found} in {asked.output}"]
    lines.append(
        f"refused {done.rejected:,} events, with the reasons in {refused}"
        if done.rejected
        else "refused none"
    )
    if done.left_out:
        count = f"left out {done.left_out:,} filters that were too expensive for an event"
        lines.append(f"{count}, with the reasons in {refused}")
    if done.shards > 1:
        most = done.events * done.shards
        lines.append(f"events met shards {done.met:,} times, of {most:,} that there could be")
    if done.unknown_attributes:
        named = (
            f"{name} (is {done.meant[name]!r} meant?)" if name in done.meant else name
            for name in done.unknown_attributes
        )
        lines.append(f"note: no event has {', '.join(named)}, so filters see NULL there")
    lines += feed_lines(done.feeds)
    if asked.tuples is not None:
        lines.append(f"what the patterns return is in {asked.tuples}")
    if asked.stats is not None:
        lines.append(f"statistics are in {asked.stats}: headgate subscriptions stats shows them")
    result = {key: value for key, value in fields_of(done).items() if key != "batches"}
    tell({**result, "output": asked.output, "rejected_table": refused}, lines, as_json=as_json)
    if strict and (done.rejected or done.left_out):
        sys.exit(STRICT_EXIT)
