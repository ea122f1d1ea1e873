"""Commands that run a job on Spark over tables."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.ranking import factor_option, mode_option, wanted_top
from headgate.cli.shell import STRICT_EXIT, beside, cli, read_text, session, spark_options, tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.spark.compile import Compiled
    from headgate.spark.compile_graph import CompiledGraph
    from headgate.spark.session import Session


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
    help="Cut a graph, or ranked subscriptions, into K parts, each with its own subscribers; 1 by default.",
)
@click.option(
    "--ranked/--no-ranked",
    default=None,
    help="Rank subscriptions, or don't; by default if the table has a column score or weights.",
)
@click.option("--strict", is_flag=True, help="Exit with 3 if any row was refused.")
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
    master: str | None,
    conf: tuple[str, ...],
    *,
    ranked: bool | None,
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Compile a table of subscriptions, or a graph of nodes and edges, to a snapshot.

    Tables are .jsonl, .csv or .parquet. Rows that are refused land in the rejected table with the reason.

    \b
    Examples:
      headgate compile --subscriptions subs.jsonl --output snapshot/
      headgate compile --subscriptions subs.jsonl --output ranked/ --ranked --shards 4
      headgate compile --nodes nodes.jsonl --edges edges.jsonl --output snapshot/
      headgate compile --nodes n.parquet --edges e.parquet --subscriptions s.parquet --output g/ --shards 4
    """
    refused = rejected or beside(output, "rejected")
    types = read_text(schema) if schema else None
    options = {"rejected": refused, "schema": types, "sample": sample}
    compile_one = _compiling(subscriptions, nodes, edges, output, shards, options, ranked=ranked)
    with session(master, conf, quiet=quiet) as spark:
        done, told = compile_one(spark, quiet=quiet)
    lines = [f"compiled {told} over {len(done.attributes)} attributes to {output}"]
    lines.append(
        f"refused {done.rejected:,} rows, with the reasons in {refused}" if done.rejected else "refused none"
    )
    tell({**asdict(done), "snapshot": output, "rejected_table": refused}, lines, as_json=as_json)
    if strict and done.rejected:
        sys.exit(STRICT_EXIT)


def _compiling(
    subscriptions: str | None,
    nodes: str | None,
    edges: str | None,
    output: str,
    shards: int | None,
    options: dict[str, Any],
    *,
    ranked: bool | None,
) -> Callable[..., tuple[Compiled | CompiledGraph, str]]:
    """Check what is to be compiled, and return how: a call that gives the result and names it."""
    from headgate.spark import compile as plain
    from headgate.spark import compile_graph as graph

    more: dict[str, Any] = {"shards": shards or 1, "ranked": ranked}
    if nodes is not None and edges is not None:
        tables = graph.Tables(nodes, edges, subscriptions)
        graph.check_request(tables, output, shards=shards or 1, **options)

        def with_graph(spark: Session, *, quiet: bool) -> tuple[CompiledGraph, str]:
            done = graph.compile_graph(spark, tables, output, quiet=quiet, **more, **options)
            parts = f" in {done.shards} shards" if done.shards > 1 else ""
            counts = f"{done.nodes:,} nodes, {done.edges:,} edges and {done.subscriptions:,} subscriptions"
            return done, counts + parts

        return with_graph
    if nodes is not None or edges is not None:
        raise click.UsageError("a graph has nodes and edges: give both --nodes and --edges")
    if shards is not None and ranked is False:
        raise click.UsageError("--shards goes with --nodes and --edges, or with ranked subscriptions")
    if subscriptions is None:
        raise click.UsageError("Missing option '--subscriptions', or '--nodes' and '--edges'.")
    plain.check_request(subscriptions, output, **more, **options)

    def without(spark: Session, *, quiet: bool) -> tuple[Compiled, str]:
        done = plain.compile_subscriptions(spark, subscriptions, output, quiet=quiet, **more, **options)
        parts = f" in {done.shards} shards" if done.shards > 1 else ""
        return done, f"{done.subscriptions:,} {'ranked ' if done.ranked else ''}subscriptions{parts}"

    return without


@cli.command()
@click.option("--snapshot", required=True, metavar="DIRECTORY", help="What compile wrote.")
@click.option(
    "--events", required=True, metavar="TABLE", help="Columns: id and the attributes; with a graph, source."
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
@click.option("--strict", is_flag=True, help="Exit with 3 if any event was refused.")
@spark_options
def match(
    snapshot: str,
    events: str,
    output: str,
    rejected: str | None,
    top: int | None,
    mode: str | None,
    factors: tuple[str, ...],
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

    \b
    Examples:
      headgate match --snapshot snapshot/ --events events.jsonl --output matches.jsonl
      headgate match --snapshot ranked/ --events events.jsonl --output best.jsonl --top 10
      headgate match --snapshot ranked/ --events e.csv --output b.csv --top 5 --mode relaxed --factor age=0
    """
    from headgate.spark.match import check_request, match_events
    from headgate.spark.targets import open_target

    refused = rejected or beside(output, "rejected")
    wanted = wanted_top("--top", top, mode, factors)
    check_request(snapshot, events, output, rejected=refused)
    open_target(snapshot, graph=graph, top=wanted)
    with session(master, conf, quiet=quiet) as spark:
        done = match_events(
            spark, snapshot, events, output, rejected=refused, graph=graph, top=wanted, quiet=quiet
        )
    found = "matches" if wanted is None else f"matches, the best {wanted.k:,} of each,"
    lines = [f"matched {done.events:,} events: {done.matches:,} {found} in {output}"]
    lines.append(
        f"refused {done.rejected:,} events, with the reasons in {refused}"
        if done.rejected
        else "refused none"
    )
    if done.unknown_attributes:
        lines.append(f"note: no event has {', '.join(done.unknown_attributes)}, so filters see NULL there")
    result = {key: value for key, value in asdict(done).items() if key != "batches"}
    tell({**result, "output": output, "rejected_table": refused}, lines, as_json=as_json)
    if strict and done.rejected:
        sys.exit(STRICT_EXIT)


@cli.command()
@click.option("--filter", "filter_text", required=True, metavar="SQL", help="The filter to try.")
@click.option("--events", required=True, metavar="TABLE", help="Historic events.")
@click.option("--output", metavar="TABLE", help="Where the matching events go.")
@spark_options
def backtest(
    filter_text: str,
    events: str,
    output: str | None,
    master: str | None,
    conf: tuple[str, ...],
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Try one filter over historic events, evaluated by Spark SQL itself.

    \b
    Example:
      headgate backtest --filter "age > 30 AND topic = 'news'" --events events.jsonl
    """
    from headgate.records.parse import parse_filter
    from headgate.spark.backtest import backtest as run
    from headgate.spark.backtest import check_request

    parse_filter(filter_text)
    check_request(events, output)
    with session(master, conf, quiet=quiet) as spark:
        done = run(spark, filter_text, events, output=output, quiet=quiet)
    share = f"{done.matches / done.events:.2%}" if done.events else "none"
    lines = [f"{done.matches:,} of {done.events:,} events match ({share})"]
    if done.sample:
        lines.append(f"for example {', '.join(done.sample)}")
    if done.rejected:
        lines.append(f"{done.rejected:,} lines could not be read")
    if output:
        lines.append(f"the matching events are in {output}")
    tell(asdict(done), lines, as_json=as_json)
