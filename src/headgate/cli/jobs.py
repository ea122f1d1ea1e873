"""Commands that run a job on Spark over tables."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli import shell
from headgate.cli.documents import feed_lines
from headgate.cli.options import options_of
from headgate.plan.settings import Plan
from headgate.tables.settings import Compile, Match, Where

if TYPE_CHECKING:
    from headgate.jobs.plan import PlanResult
    from headgate.jobs.runner import Runner
    from headgate.plan.running.planner import MadePlan
    from headgate.tables.results import CompileResult, MatchResult


@shell.cli.command(name="compile")
@options_of(Compile)
@click.option("--strict", is_flag=True, help="Exit with 3 if any row was refused.")
@shell.where_options()
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
    from headgate.tables.places import beside, check_here_or_stored
    from headgate.tables.requests import check_compile, check_log, check_taxonomy, read_taxonomy

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
    shell.prepare(where, large)
    wanted = replace(wanted, taxonomy=read_taxonomy(asked.taxonomy))

    def run(runner: Runner) -> CompileResult:
        from headgate.jobs.graph import compile_asked

        return compile_asked(runner, asked, wanted, rejected=refused)

    done = shell.run_on(where, large, run, quiet=quiet)
    told = _compiled(done)
    lines = [f"compiled {told} {_over(done)} to {asked.snapshot}"]
    lines.append(shell.refused_line(done.rejected, "rows", refused))
    shell.tell(
        {**shell.fields_of(done), "snapshot": asked.snapshot, "rejected_table": refused},
        lines,
        as_json=as_json,
    )
    if strict and done.rejected:
        sys.exit(shell.STRICT_EXIT)


def _over(done: CompileResult) -> str:
    """Say what filters look at."""
    return f"over {len(done.attributes)} attributes" if done.holds is None else done.holds.sentence


def _check_graph(asked: Compile) -> None:
    """Refuse half a graph, and no tables."""
    if (asked.nodes is None) != (asked.edges is None):
        raise click.UsageError("a graph has nodes and edges: give both --nodes and --edges")
    if not asked.tables:
        raise click.UsageError("Missing option '--subscriptions', or '--nodes' and '--edges'.")


def _compiled(done: CompileResult) -> str:
    """Say what was compiled."""
    from headgate.tables.results import GraphCompileResult

    parts = f" in {done.shards} shards" if done.shards > 1 else ""
    if isinstance(done, GraphCompileResult):
        counts = f"{done.nodes:,} nodes, {done.edges:,} edges and {done.subscriptions:,} subscriptions"
        return counts + parts
    return f"{done.subscriptions:,} {'ranked ' if done.ranked else ''}subscriptions{parts}"


@shell.cli.command()
@options_of(Match)
@click.option("--strict", is_flag=True, help="Exit with 3 if any event was refused, or any filter left out.")
@shell.where_options()
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
    arguments = {**asked.arguments, "rejected": refused}
    check_match(**{name: value for name, value in arguments.items() if name != "graph"})
    wanted: dict[str, Any] = {"graph": asked.graph, "top": asked.best}
    check_target(asked.snapshot, **wanted)
    large = why_large([asked.events])
    shell.prepare(where, large)
    from headgate.runtime.targets import open_target

    target = open_target(asked.snapshot, **wanted)

    def match(runner: Runner) -> MatchResult:
        from headgate.jobs.match import match_events

        return match_events(runner, **arguments, target=target)

    done = shell.run_on(where, large, match, quiet=quiet)
    what = "matches" if asked.top is None else f"matches, the best {asked.top:,} of each,"
    lines = [f"matched {done.events:,} events: {done.matches:,} {what} in {asked.output}"]
    lines.append(shell.refused_line(done.rejected, "events", refused))
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
    result = {key: value for key, value in shell.fields_of(done).items() if key != "batches"}
    shell.tell({**result, "output": asked.output, "rejected_table": refused}, lines, as_json=as_json)
    if strict and (done.rejected or done.left_out):
        sys.exit(shell.STRICT_EXIT)


@shell.cli.command()
@options_of(Plan)
@shell.where_options()
def plan(asked: Plan, where: Where, *, quiet: bool, as_json: bool) -> None:
    r"""Plan how events travel: subscribers that feed each other, so that the publisher need not feed all.

    A subscription can be computed from others whose results hold all of its own. The plan chooses how each is
    fed: first so that all together take the least, within the capacities of sites, then so that events arrive
    sooner. The output is a directory with a manifest, the tables views.parquet and feeds.parquet, and arrays.

    \b
    Examples:
      headgate plan --snapshot xml/ --sample documents/ --output network/ --fan-out 30
      headgate plan --snapshot xml/ --sample docs.jsonl --output network/ --sites sites.csv --report plan.html
      headgate plan --snapshot records/ --sample events.jsonl --output network/ --carries key --fan-out 10
    """
    from headgate.local.small import why_large
    from headgate.report.pages import check_output
    from headgate.tables.places import beside
    from headgate.tables.requests import check_plan

    refused = asked.rejected or beside(asked.output, "rejected")
    arguments = {**asked.arguments, "rejected": refused}
    check_plan(**arguments)
    if asked.page is not None:
        check_output(Path(asked.page))
    large = why_large([asked.sample, *(each for each in (asked.sites, asked.links) if each)])
    shell.prepare(where, large)
    from headgate.plan.running.planner import Settings

    settings = Settings.of(asked.rewritings, asked.bounds)

    # Who insists on Spark has its workers find the graphs, too.
    by_workers = True if where.engine == "spark" else None

    def run(runner: Runner) -> tuple[PlanResult, MadePlan]:
        from headgate.jobs.plan import plan_subscriptions

        return plan_subscriptions(runner, settings=settings, by_workers=by_workers, **arguments)

    done, made = shell.run_on(where, large, run, quiet=quiet)
    if asked.page is not None:
        from headgate.report.plan_page import write_report

        title = f"The network {Path(asked.output).resolve().name}"
        write_report(made.saved, Path(asked.page), title=title, command=shell.shown_command(sys.argv[1:]))
    result = {**shell.fields_of(done), "output": asked.output, "rejected_table": refused}
    shell.tell(
        result if asked.page is None else {**result, "report": asked.page},
        _lines(done, asked.output, refused, asked.page),
        as_json=as_json,
    )


def _lines(done: PlanResult, output: str, refused: str, report: str | None) -> list[str]:
    fed = done.views - done.source_fed
    share = f"{fed / done.views:.1%}" if done.views else "none"
    less = 1 - done.latency / done.latency_before if done.latency_before else 0.0
    of = f"planned {done.views:,} views from {done.events:,} events"
    gap = f"{done.utilization_before:,.6g}, {done.ended}, {done.gap:.2%} above the bound"
    lines = [
        f"{of}: {fed:,} ({share}) are fed by others, {done.source_fed:,} by the publisher",
        f"they are on {done.levels} levels",
        f"{done.rewritable:,} views have {done.rewritings:,} rewritings, from {done.embeddings:,} embeddings",
        f"utilization {done.utilization:,.6g}; before latency was lowered {gap}",
        f"latency {done.latency:,.6g}, {less:.0%} less than before it was lowered",
    ]
    if done.unseen:
        lines.append(f"note: nothing in the sample matched {done.unseen:,} views; their sizes are guessed")
    if done.cut_short:
        lines.append(f"note: {done.cut_short:,} views may have rewritings that were not looked for")
    if done.rejected:
        lines.append(f"refused {done.rejected:,} rows of the sample, with the reasons in {refused}")
    lines.append(f"the network is in {output}")
    return lines if report is None else [*lines, f"drawn in {report}"]
