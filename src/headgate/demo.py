"""The demo: an advertising workload from nothing to a report, on an embedded Spark."""

from __future__ import annotations

import datetime as dt
import os
import platform
import shlex
import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from headgate.core.machine import cores, memory
from headgate.errors import TableError
from headgate.records.index import RecordIndex
from headgate.report import page
from headgate.report.model import Busy, Histogram, Machine, Partition, RunReport, Step, quantile
from headgate.report.words import shorten
from headgate.spark.compile import compile_subscriptions
from headgate.spark.generate import generate
from headgate.spark.java import find_java
from headgate.spark.match import match_events
from headgate.spark.progress import step
from headgate.spark.session import close_session, open_session
from headgate.spark.summary import summarise
from headgate.workloads import advertising

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from headgate.spark.compile import Compiled
    from headgate.spark.match import Matched
    from headgate.spark.summary import Summary


@dataclass(frozen=True)
class Demo:
    """What to run and where."""

    directory: Path
    subscriptions: int = 100_000
    events: int = 20_000
    seed: int = 1
    master: str | None = None
    settings: Mapping[str, str] | None = None
    quiet: bool = False


@dataclass(frozen=True)
class Outcome:
    """What the demo did and where its report lies."""

    report: RunReport
    page: Path
    seconds: float


def run_demo(demo: Demo) -> Outcome:
    """Generate, compile, match, sum up and report."""
    begun = time.monotonic()
    here = demo.directory
    if here.exists() and any(here.iterdir()) and not (here / _MARK).exists():
        raise TableError(f"{here} is not empty and not a demo's directory: choose another with --output")
    here.mkdir(parents=True, exist_ok=True)
    (here / _MARK).touch()
    steps: list[Step] = []
    with step("starting Spark", quiet=demo.quiet) as starting:
        session = open_session(demo.master, app="headgate demo", settings=demo.settings)
    steps.append(Step("start Spark", starting.seconds))
    try:
        mark = time.monotonic()
        tables = (
            (
                advertising.subscriptions,
                advertising.subscription_schema(),
                demo.subscriptions,
                "subscriptions",
            ),
            (advertising.events, advertising.schema(), demo.events, "events"),
        )
        for make, schema, count, name in tables:
            output = str(here / f"{name}.parquet")
            generate(session, make, schema, count, output, seed=demo.seed, quiet=demo.quiet)
        steps.append(Step("generate the workload", time.monotonic() - mark))
        compiled = compile_subscriptions(
            session,
            str(here / "subscriptions.parquet"),
            str(here / "snapshot"),
            rejected=str(here / "rejected-subscriptions.jsonl"),
            quiet=demo.quiet,
        )
        steps.append(Step("parse the filters", compiled.parse_seconds))
        steps.append(Step("build the index", compiled.build_seconds))
        matched = match_events(
            session,
            str(here / "snapshot"),
            str(here / "events.parquet"),
            str(here / "matches.parquet"),
            rejected=str(here / "rejected-events.jsonl"),
            quiet=demo.quiet,
        )
        steps.append(Step("survey the events", matched.survey_seconds))
        steps.append(Step("match", matched.match_seconds))
        mark = time.monotonic()
        summary = summarise(session, str(here / "matches.parquet"), matched.events, quiet=demo.quiet)
        steps.append(Step("sum up", time.monotonic() - mark))
    finally:
        close_session(session)
    with step("drawing the report", quiet=demo.quiet):
        report = _report(demo, compiled, matched, summary, steps)
        place = here / "report.html"
        page.write(report, place)
    return Outcome(report, place, time.monotonic() - begun)


_MARK = ".headgate-demo"


def _report(
    demo: Demo, compiled: Compiled, matched: Matched, summary: Summary, steps: list[Step]
) -> RunReport:
    index = RecordIndex.open(demo.directory / "snapshot")
    spread = summary.events_by_matches
    begun = min((batch.start for batch in matched.batches), default=0.0)
    refused = {"subscriptions": compiled.rejected, "events": matched.rejected}
    paths = {
        name: str(demo.directory / f"rejected-{name}.jsonl") if count else None
        for name, count in refused.items()
    }
    return RunReport(
        title="Headgate demo: advertising",
        created=dt.datetime.now(dt.UTC),
        subscriptions=compiled.subscriptions,
        rejected_subscriptions=compiled.rejected,
        events=matched.events,
        rejected_events=matched.rejected,
        matches=matched.matches,
        matches_per_event=Histogram.of(spread),
        quantiles=tuple((share, quantile(spread, share)) for share in (0.5, 0.9, 0.99)) if spread else (),
        busiest=tuple(
            Busy(str(identity), index.filter(identity), count) for identity, count in summary.busiest
        ),
        throughput=tuple(
            Partition(batch.task, batch.start - begun, batch.seconds, batch.events)
            for batch in matched.batches
        ),
        steps=tuple(steps),
        machine=Machine(
            python=platform.python_version(),
            spark=version("pyspark"),
            java=str(find_java().version),
            cores=cores(),
            memory_gib=memory() / 2**30,
            load=os.getloadavg()[0],
        ),
        command=_command(demo),
        rejected_subscriptions_path=paths["subscriptions"],
        rejected_events_path=paths["events"],
    )


def _command(demo: Demo) -> str:
    words = ["headgate", "demo", "--output", str(demo.directory)]
    words += [
        "--subscriptions",
        str(demo.subscriptions),
        "--events",
        str(demo.events),
        "--seed",
        str(demo.seed),
    ]
    return shlex.join(words)


def summary_lines(outcome: Outcome) -> list[str]:
    """Write the outcome as a table for people."""
    report = outcome.report
    rate = report.events_per_second
    table = Table(box=SIMPLE, show_header=False, pad_edge=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    table.add_row("subscriptions", f"{report.subscriptions:,}")
    table.add_row("events", f"{report.events:,}")
    table.add_row("matches", f"{report.matches:,}")
    for share, matches in report.quantiles:
        table.add_row(f"matches an event, {share:.0%} have at most", f"{matches:,.0f}")
    table.add_row("events matched a second", f"{rate:,.0f}" if rate else "none")
    for found in report.steps:
        table.add_row(f"seconds to {found.name}", f"{found.seconds:.1f}")
    table.add_row("seconds in all", f"{outcome.seconds:.1f}")
    console = Console(width=80, no_color=True)
    with console.capture() as captured:
        console.print(table)
    rows = [line.rstrip() for line in captured.get().splitlines() if line.strip()]
    rows.append("")
    rows.append("busiest subscriptions:")
    rows.extend(f"  {busy.matches:>7,}  {busy.id}  {shorten(busy.filter, 80)}" for busy in report.busiest[:5])
    refused = report.rejected_subscriptions + report.rejected_events
    rows.append(f"refused rows: {refused:,}")
    rows.append(f"report: {outcome.page}")
    return rows
