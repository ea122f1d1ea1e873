"""The demo: an advertising workload from nothing to a report, as a pipeline that can be changed and run."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from headgate.errors import TableError
from headgate.report.words import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from headgate.report.runs.model import RunPage

FILE = "pipeline.toml"
"""The pipeline file in a demo's directory."""
_MARK = ".headgate-demo"
_COUNTED = re.compile(r"^(subscriptions|events|seed) = [\d_]+$", re.MULTILINE)


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

    report: RunPage
    page: Path
    file: Path
    """The pipeline, to be changed and run."""
    seconds: float


def run_demo(demo: Demo) -> Outcome:
    """Write the demo's pipeline file and run it, from nothing."""
    check_place(demo.directory)
    from headgate.pipeline.file.read import read_pipeline
    from headgate.pipeline.run.run import RunOptions, run_pipeline
    from headgate.pipeline.run.state import write_whole

    here = demo.directory
    file = here / FILE
    here.mkdir(parents=True, exist_ok=True)
    (here / _MARK).touch()
    write_whole(file, pipeline_text(demo))
    asked = RunOptions(
        fresh=True,
        # It shows the jobs on Spark, however small it is made.
        engine="spark",
        master=demo.master,
        settings=demo.settings or {},
        quiet=demo.quiet,
        command=_command(demo),
    )
    done = run_pipeline(read_pipeline(file), asked)
    assert done.page is not None
    return Outcome(done.report, done.page, file, done.seconds)


def check_place(here: Path) -> None:
    """Refuse a directory that holds something else than a demo."""
    if here.exists() and any(here.iterdir()) and not (here / _MARK).exists():
        raise TableError(f"{here} is not empty and not a demo's directory: choose another with --output")
    file = here / FILE
    if file.exists() and not _is_ours(file.read_text("utf-8", "replace")):
        raise TableError(
            f"{file} was changed: run it with headgate run, or choose another directory with --output"
        )


def pipeline_text(demo: Demo) -> str:
    """Return the demo's pipeline file, with its counts and its seed."""
    values = {"subscriptions": demo.subscriptions, "events": demo.events, "seed": demo.seed}
    return _COUNTED.sub(lambda found: f"{found[1]} = {values[found[1]]}", _template())


def _template() -> str:
    return (files("headgate.pipeline") / "demo.toml").read_text("utf-8")


def _is_ours(text: str) -> bool:
    """Tell a file that a demo wrote from one that somebody has changed."""
    return _COUNTED.sub(r"\1", text) == _COUNTED.sub(r"\1", _template())


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
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    report = outcome.report
    counts, rate = report.counts, report.counts.events_per_second
    table = Table(box=SIMPLE, show_header=False, pad_edge=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    table.add_row("subscriptions", f"{counts.subscriptions or 0:,}")
    table.add_row("events", f"{counts.events or 0:,}")
    table.add_row("matches", f"{counts.matches or 0:,}")
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
    refused = sum(each.rows for each in report.rejected)
    rows.append(f"refused rows: {refused:,}")
    rows.append(f"pipeline: {outcome.file}")
    rows.append(f"report: {outcome.page}")
    return rows
