"""Commands that run a job on Spark over tables."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.documents import dialect_option, feed_lines, format_option, rdf_options, read_options
from headgate.cli.shell import (
    STRICT_EXIT,
    beside,
    cli,
    engine_option,
    factor_option,
    fields_of,
    mode_option,
    prepare,
    read_text,
    run_job,
    spark_options,
    tell,
    wanted_top,
)
from headgate.core.subscription import SQL

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.contents.kind import Wanted
    from headgate.runtime.sharding import Sharding
    from headgate.spark.session.session import Session
    from headgate.tables.results import CompileResult, GraphCompileResult, MatchResult


@cli.command(name="compile")
@click.option(
    "--subscriptions",
    metavar="TABLE",
    help="Columns: id, filter, and perhaps dialect, score, weights; in a graph also node.",
)
@click.option("--nodes", metavar="TABLE", help="A graph's nodes: id, and perhaps filter, subscription…")
@click.option("--edges", metavar="TABLE", help="Its edges: source, target, and perhaps filter, cost…")
@click.option("--output", required=True, metavar="DIRECTORY", help="Where the snapshot goes.")
@click.option("--rejected", metavar="TABLE", help="Where refused rows go.  [default: OUTPUT-rejected.jsonl]")
@click.option(
    "--schema", metavar="FILE", help="JSON with the attributes' types; filters are checked against it."
)
@click.option(
    "--sample",
    metavar="TABLE",
    help="Events like those to come; filters are filed under values that few of them have.",
)
@click.option(
    "--shards",
    type=click.IntRange(1, 1000),
    metavar="K",
    help="Cut subscriptions, or a graph, into K parts, each with its own subscribers; 1 by default.",
)
@click.option(
    "--shard-by",
    type=click.Choice(["hash", "tenant", "access"]),
    help="Which part a subscription is in: by id, by tenant, or by what its filter demands; hash by default.",
)
@click.option(
    "--shard-column",
    metavar="NAME",
    help="The table's column for tenant (tenant by default), or the events' attribute for access.",
)
@click.option(
    "--ranked/--no-ranked",
    default=None,
    help="Rank subscriptions, or don't; by default if the table has a column score or weights.",
)
@dialect_option("What filters are written in whose rows name no dialect; sql by default.")
@rdf_options
@click.option("--strict", is_flag=True, help="Exit with 3 if any row was refused.")
@engine_option
@spark_options
def compile_(
    subscriptions: str | None,
    nodes: str | None,
    edges: str | None,
    output: str,
    rejected: str | None,
    schema: str | None,
    sample: str | None,
    shards: int | None,
    shard_by: str | None,
    shard_column: str | None,
    dialect: str | None,
    taxonomies: tuple[str, ...],
    engine: str | None,
    master: str | None,
    conf: tuple[str, ...],
    *,
    ranked: bool | None,
    coerce: bool,
    injective: bool,
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Compile a table of subscriptions, or a graph of nodes and edges, to a snapshot.

    Tables are .jsonl, .csv or .parquet. Rows that are refused land in the rejected table with the reason.
    Filters of dialect sql and labels look at records, those of sparql and tuples at RDF, those of xpath and
    tree at XML; a table has filters of one kind.

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
    from headgate.contents.kind import Wanted
    from headgate.contents.registry import check_together
    from headgate.local.small import why_large
    from headgate.tables.requests import check_compile, check_taxonomy, read_taxonomy

    refused = rejected or beside(output, "rejected")
    types = read_text(schema) if schema else None
    check_taxonomy(taxonomies)
    options = read_options(coerce=coerce, injective=injective)
    wanted = Wanted(dialect or SQL, types, sample, options=options)
    sharding = _sharding(shards, shard_by, shard_column)
    tables = _tables(subscriptions, nodes, edges)
    check_compile(tables, output, rejected=refused, wanted=wanted, sharding=sharding)
    large = why_large([*tables, *([sample] if sample else [])])
    if sharding.count > 1:
        large = "shards are built by the workers of Spark"
    prepare(engine, master, conf, large)
    wanted = replace(wanted, taxonomy=read_taxonomy(taxonomies))
    check_together(wanted)
    more = {"sharding": sharding, "rejected": refused, "ranked": ranked}
    compile_one = _compiling(subscriptions, nodes, edges, output, wanted, more, quiet=quiet)
    done = run_job(engine, master, conf, large, compile_one, compile_one, quiet=quiet)
    told = _compiled(done)
    lines = [f"compiled {told} {_over(done)} to {output}"]
    lines.append(
        f"refused {done.rejected:,} rows, with the reasons in {refused}" if done.rejected else "refused none"
    )
    tell({**fields_of(done), "snapshot": output, "rejected_table": refused}, lines, as_json=as_json)
    if strict and done.rejected:
        sys.exit(STRICT_EXIT)


def _sharding(count: int | None, by: str | None, column: str | None) -> Sharding:
    """Read how subscriptions are to be cut."""
    from headgate.runtime.sharding import Sharding

    if count is None and (by is not None or column is not None):
        raise click.UsageError("--shard-by and --shard-column go with --shards")
    return Sharding.of(count or 1, by or "hash", column)


def _over(done: CompileResult | GraphCompileResult) -> str:
    """Say what filters look at."""
    return f"over {len(done.attributes)} attributes" if done.holds is None else done.holds.sentence


def _tables(subscriptions: str | None, nodes: str | None, edges: str | None) -> list[str]:
    """List the tables; refuses half a graph, and none."""
    if nodes is not None and edges is not None:
        return [table for table in (nodes, edges, subscriptions) if table is not None]
    if nodes is not None or edges is not None:
        raise click.UsageError("a graph has nodes and edges: give both --nodes and --edges")
    if subscriptions is None:
        raise click.UsageError("Missing option '--subscriptions', or '--nodes' and '--edges'.")
    return [subscriptions]


def _compiling(
    subscriptions: str | None,
    nodes: str | None,
    edges: str | None,
    output: str,
    wanted: Wanted,
    more: dict[str, Any],
    *,
    quiet: bool,
) -> Callable[..., CompileResult | GraphCompileResult]:
    """Return how tables are compiled: a call with a session of Spark, or without."""
    said = {**more, **vars(wanted)}
    if nodes is not None and edges is not None:
        from headgate.tables.results import Tables

        tables = Tables(nodes, edges, subscriptions)

        def with_graph(spark: Session | None = None) -> GraphCompileResult:
            if spark is None:
                from headgate.local import compile as here

                return here.compile_graph(tables, output, quiet=quiet, **said)
            from headgate.spark.compile import graph

            return graph.compile_graph(spark, tables, output, quiet=quiet, **said)

        return with_graph
    table = str(subscriptions)

    def without(spark: Session | None = None) -> CompileResult:
        if spark is None:
            from headgate.local import compile as here

            return here.compile_subscriptions(table, output, quiet=quiet, **said)
        from headgate.spark.compile import compile as plain

        return plain.compile_subscriptions(spark, table, output, quiet=quiet, **said)

    return without


def _compiled(done: CompileResult | GraphCompileResult) -> str:
    """Say what was compiled."""
    from headgate.tables.results import GraphCompileResult

    parts = f" in {done.shards} shards" if done.shards > 1 else ""
    if isinstance(done, GraphCompileResult):
        counts = f"{done.nodes:,} nodes, {done.edges:,} edges and {done.subscriptions:,} subscriptions"
        return counts + parts
    return f"{done.subscriptions:,} {'ranked ' if done.ranked else ''}subscriptions{parts}"


@cli.command()
@click.option("--snapshot", required=True, metavar="DIRECTORY", help="What compile wrote.")
@click.option(
    "--events",
    required=True,
    metavar="TABLE",
    help="Columns: id, the attributes; with a graph, source. Documents: id, data, datacontenttype; or files.",
)
@click.option(
    "--output",
    required=True,
    metavar="TABLE",
    help="Where (event_id, subscription_id) goes; with --top also score and rank.",
)
@click.option(
    "--rejected", metavar="TABLE", help="Where refused events go.  [default: OUTPUT-rejected.jsonl]"
)
@click.option(
    "--graph/--no-graph",
    default=None,
    help="Insist that the snapshot has a graph, or has none. One that has is always matched with it.",
)
@click.option(
    "--top", type=click.IntRange(0), metavar="K", help="Only the best K of each event, with their scores."
)
@mode_option
@factor_option
@format_option
@click.option("--tuples", metavar="TABLE", help="XML: where what the patterns return goes.")
@click.option("--strict", is_flag=True, help="Exit with 3 if any event was refused.")
@engine_option
@spark_options
def match(
    snapshot: str,
    events: str,
    output: str,
    rejected: str | None,
    top: int | None,
    mode: str | None,
    factors: tuple[str, ...],
    form: str | None,
    tuples: str | None,
    engine: str | None,
    master: str | None,
    conf: tuple[str, ...],
    *,
    graph: bool | None,
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
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
    """
    from headgate.local.small import why_large
    from headgate.runtime.questions import check_target
    from headgate.tables.requests import check_match

    refused = rejected or beside(output, "rejected")
    wanted = wanted_top("--top", top, mode, factors)
    check_match(snapshot, events, output, rejected=refused, content_type=form, tuples=tuples)
    check_target(snapshot, graph=graph, top=wanted)
    large = why_large([events])
    prepare(engine, master, conf, large)
    from headgate.runtime.targets import open_target

    open_target(snapshot, graph=graph, top=wanted)
    more: dict[str, Any] = {"rejected": refused, "graph": graph, "top": wanted}
    more |= {"content_type": form, "tuples": tuples}

    def here() -> MatchResult:
        from headgate.local.match import match_events

        return match_events(snapshot, events, output, quiet=quiet, **more)

    def on_spark(spark: Session) -> MatchResult:
        from headgate.spark.match.match import match_events

        return match_events(spark, snapshot, events, output, quiet=quiet, **more)

    done = run_job(engine, master, conf, large, here, on_spark, quiet=quiet)
    found = "matches" if wanted is None else f"matches, the best {wanted.k:,} of each,"
    lines = [f"matched {done.events:,} events: {done.matches:,} {found} in {output}"]
    lines.append(
        f"refused {done.rejected:,} events, with the reasons in {refused}"
        if done.rejected
        else "refused none"
    )
    if done.left_out:
        lines.append(f"left out {done.left_out:,} filters that were too much for an event, as {refused} says")
    if done.shards > 1:
        most = done.events * done.shards
        lines.append(f"events met shards {done.met:,} times, of {most:,} that there could be")
    if done.unknown_attributes:
        lines.append(f"note: no event has {', '.join(done.unknown_attributes)}, so filters see NULL there")
    lines += feed_lines(done.feeds)
    if tuples is not None:
        lines.append(f"what the patterns return is in {tuples}")
    result = {key: value for key, value in fields_of(done).items() if key != "batches"}
    tell({**result, "output": output, "rejected_table": refused}, lines, as_json=as_json)
    if strict and (done.rejected or done.left_out):
        sys.exit(STRICT_EXIT)
