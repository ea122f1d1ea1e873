"""The command that plans who feeds whom."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.documents import format_option
from headgate.cli.shell import (
    beside,
    cli,
    engine_option,
    fields_of,
    prepare,
    run_job,
    shown_command,
    spark_options,
    tell,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.plan.running.planner import PlannedNetwork
    from headgate.spark.session.session import Session
    from headgate.tables.planning import PlanResult

_AMOUNT = click.FloatRange(0)


def _bounds(command: Callable[..., None]) -> Callable[..., None]:
    """Add what sites and the source can bear."""
    for option in (
        click.option("--source-cpu", type=_AMOUNT, metavar="WORK", help="What the publisher can work."),
        click.option(
            "--source-bandwidth", type=_AMOUNT, metavar="BYTES", help="What the publisher can send."
        ),
        click.option(
            "--source-fan-out",
            type=_AMOUNT,
            metavar="N",
            help="Views that the publisher feeds at most; by default those that it must, and a fifth more.",
        ),
        click.option("--cpu", type=_AMOUNT, metavar="WORK", help="What a site can work for an event."),
        click.option("--bandwidth", type=_AMOUNT, metavar="BYTES", help="What a site can send for an event."),
        click.option("--fan-out", type=_AMOUNT, metavar="N", help="Views that a site feeds at most."),
        click.option(
            "--sites",
            metavar="TABLE",
            help="Columns: id of a subscription; site, fan_out, bandwidth, cpu where they are its own.",
        ),
    ):
        command = option(command)
    return command


@cli.command()
@click.option("--snapshot", required=True, metavar="DIRECTORY", help="The subscriptions, compiled.")
@click.option(
    "--sample", required=True, metavar="TABLE", help="Events like those to come, to estimate sizes."
)
@click.option("--output", required=True, metavar="DIRECTORY", help="Where the network goes.")
@click.option("--rejected", metavar="TABLE", help="Where rows of the sample go that are no events.")
@format_option
@_bounds
@click.option(
    "--rewritings", type=click.IntRange(1), default=30, show_default=True, metavar="K", help="For each view."
)
@click.option(
    "--alpha", type=_AMOUNT, default=0.0, show_default=True, help="What utilization weighs in the mixed cost."
)
@click.option(
    "--beta", type=_AMOUNT, default=1.0, show_default=True, help="What latency weighs in the mixed cost."
)
@click.option(
    "--relax",
    type=click.FloatRange(1),
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="By how much capacities may be passed to lower latency.",
)
@click.option("--swaps/--no-swaps", default=True, help="Move views aside to make room for others.")
@click.option(
    "--time-limit", type=_AMOUNT, default=300.0, show_default=True, metavar="S", help="For the program."
)
@click.option(
    "--gap", type=_AMOUNT, default=0.01, show_default=True, help="How far from the optimum is good enough."
)
@click.option(
    "--carries",
    type=click.Choice(["row", "key"]),
    help="Records: what subscribers hold of an event that they get: all of it, or that they got it.",
)
@click.option("--report", metavar="FILE", help="Draw it: a page (.html), or the picture alone (.svg, .png).")
@engine_option
@spark_options
def plan(
    snapshot: str,
    sample: str,
    output: str,
    rejected: str | None,
    form: str | None,
    sites: str | None,
    rewritings: int,
    carries: str | None,
    report: str | None,
    engine: str | None,
    master: str | None,
    conf: tuple[str, ...],
    *,
    quiet: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    r"""Plan how events travel: subscribers that feed each other, so that the publisher need not feed all.

    A subscription can be computed from others whose results hold all of its own. The plan chooses how each is
    fed: first so that all together take the least, within what sites can bear, then so that events arrive
    sooner. The output is a directory with a manifest, the tables views.parquet and feeds.parquet, and arrays.

    \b
    Examples:
      headgate plan --snapshot xml/ --sample documents/ --output network/ --fan-out 30
      headgate plan --snapshot xml/ --sample docs.jsonl --output network/ --sites sites.csv --report plan.html
      headgate plan --snapshot records/ --sample events.jsonl --output network/ --carries key --fan-out 10
    """
    from headgate.local.small import why_large
    from headgate.report.pages import check_output
    from headgate.tables.requests import check_plan

    refused = rejected or beside(output, "rejected")
    check_plan(snapshot, sample, output, rejected=refused, sites=sites, content_type=form, carries=carries)
    if report is not None:
        check_output(Path(report))
    large = why_large([sample, *([sites] if sites else [])])
    prepare(engine, master, conf, large)
    from headgate.plan.running.planner import Settings

    settings = Settings.of(rewritings, asked)
    more: dict[str, Any] = {"rejected": refused, "sites": sites, "content_type": form, "carries": carries}

    def here() -> tuple[PlanResult, PlannedNetwork]:
        from headgate.local.plan import plan_subscriptions

        return plan_subscriptions(snapshot, sample, output, settings, quiet=quiet, **more)

    def on_spark(spark: Session) -> tuple[PlanResult, PlannedNetwork]:
        from headgate.spark.plan.planning import plan_subscriptions

        # Who insists on Spark has its workers find the graphs, too.
        by_workers = True if engine == "spark" else None
        return plan_subscriptions(
            spark, snapshot, sample, output, settings, on_spark=by_workers, quiet=quiet, **more
        )

    done, made = run_job(engine, master, conf, large, here, on_spark, quiet=quiet)
    if report is not None:
        from headgate.report.plan_page import write_report

        title = f"The network {Path(output).resolve().name}"
        write_report(made.network, Path(report), title=title, command=shown_command(sys.argv[1:]))
    result = {**fields_of(done), "output": output, "rejected_table": refused}
    tell(
        result if report is None else {**result, "report": report},
        _lines(done, output, refused, report),
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
