"""The command that plans who feeds whom."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.cli.options import options_of
from headgate.cli.shell import (
    cli,
    fields_of,
    prepare,
    run_on,
    shown_command,
    tell,
    where_options,
)
from headgate.plan.settings import Plan

if TYPE_CHECKING:
    from headgate.jobs.runner import Runner
    from headgate.plan.running.planner import MadePlan
    from headgate.tables.planning import PlanResult
    from headgate.tables.settings import Where


@cli.command()
@options_of(Plan)
@where_options()
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
    said = {**asked.arguments, "rejected": refused}
    check_plan(**said)
    if asked.page is not None:
        check_output(Path(asked.page))
    large = why_large([asked.sample, *(each for each in (asked.sites, asked.links) if each)])
    prepare(where, large)
    from headgate.plan.running.planner import Settings

    settings = Settings.of(asked.rewritings, asked.bounds)

    # Who insists on Spark has its workers find the graphs, too.
    by_workers = True if where.engine == "spark" else None

    def run(runner: Runner) -> tuple[PlanResult, MadePlan]:
        from headgate.jobs.plan import plan_subscriptions

        return plan_subscriptions(runner, settings=settings, by_workers=by_workers, **said)

    done, made = run_on(where, large, run, quiet=quiet)
    if asked.page is not None:
        from headgate.report.plan_page import write_report

        title = f"The network {Path(asked.output).resolve().name}"
        write_report(made.saved, Path(asked.page), title=title, command=shown_command(sys.argv[1:]))
    result = {**fields_of(done), "output": asked.output, "rejected_table": refused}
    tell(
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
