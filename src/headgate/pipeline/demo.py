"""The demo: an advertising workload from nothing to a report, as a pipeline that can be changed and run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.core.settings import Request, setting
from headgate.errors import TableError
from headgate.report.words import shorten
from headgate.runtime.progress import ProgressTask, Tasks, showing

if TYPE_CHECKING:
    from headgate.pipeline.run.run import Outcome
    from headgate.tables.settings import Where

FILE = "pipeline.toml"
"""The pipeline file in a demo's directory."""
KERNELS = (
    "core.interning:",
    "records.index.kernels:match_events",
    *(
        f"records.index.{name}:"
        for name in ("access", "checking", "clusters", "grams", "lines", "sides", "terms")
    ),
)
"""What of our kernels it takes: all others are compiled when they are first called."""
_MARK = ".headgate-demo"
_COUNTED = re.compile(r"^(subscriptions|events|seed) = [\d_]+$", re.MULTILINE)


@dataclass(frozen=True)
class Demo(Request):
    """What is generated, and where it goes."""

    output: str = setting("where everything goes", "headgate-demo", metavar="DIRECTORY")
    subscriptions: int = setting("how many subscriptions", 100_000, least=1)
    events: int = setting("how many events", 20_000, least=1)
    seed: int = setting("the same seed gives the same workload", 1)

    @property
    def directory(self) -> Path:
        """Return where everything goes."""
        return Path(self.output)


def run_demo(demo: Demo, where: Where, *, quiet: bool = False, command: str = "") -> Outcome:
    """Write the demo's pipeline file and run it, from nothing."""
    check_place(demo.directory)
    from headgate.core.jit.warming import warm
    from headgate.pipeline.file.read import read_pipeline
    from headgate.pipeline.run.run import RunOptions, run_pipeline
    from headgate.pipeline.run.state import write_whole

    here = demo.directory
    file = here / FILE
    here.mkdir(parents=True, exist_ok=True)
    (here / _MARK).touch()
    write_whole(file, pipeline_text(demo))
    done = Tasks(0, 0)

    def tell(*counts: int) -> None:
        nonlocal done
        done = Tasks(*counts)

    with showing(ProgressTask("compiling kernels, once", lambda: done), quiet):
        warm(KERNELS, tell=tell)
    # It shows the jobs on Spark, however small it is made.
    options = RunOptions(True, None, "spark", where.master, where.conf, quiet, command)
    return run_pipeline(read_pipeline(file), options)


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


def summary_lines(outcome: Outcome) -> list[str]:
    """Write the outcome as a table for people."""
    report = outcome.report
    counts, rate = report.counts, report.counts.events_per_second
    table = {
        "subscriptions": f"{counts.subscriptions or 0:,}",
        "events": f"{counts.events or 0:,}",
        "matches": f"{counts.matches or 0:,}",
        **{f"matches an event, {share:.0%} have at most": f"{most:,.0f}" for share, most in report.quantiles},
        "events matched a second": f"{rate:,.0f}" if rate else "none",
        **{f"seconds to {step.name}": f"{step.seconds:.1f}" for step in report.steps},
        "seconds in all": f"{outcome.seconds:.1f}",
    }
    name_width, value_width = max(map(len, table)), max(map(len, table.values()))
    rows = [f"{name:<{name_width}}   {value:>{value_width}}" for name, value in table.items()]
    rows.append("")
    rows.append("busiest subscriptions:")
    rows.extend(f"  {busy.matches:>7,}  {busy.id}  {shorten(busy.filter, 80)}" for busy in report.busiest[:5])
    refused = sum(each.rows for each in report.rejected)
    rows.append(f"refused rows: {refused:,}")
    rows.append(f"pipeline: {outcome.pipeline.file}")
    rows.append(f"report: {outcome.page}")
    return rows
