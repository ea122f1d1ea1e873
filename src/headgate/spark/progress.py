"""Show on stderr that long work is going on: a moving line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

# By name because py4j has no types.
_PY4J: Any = importlib.import_module("py4j.protocol")

PATIENCE = 2.0
"""Seconds of silence that nobody minds."""

_EVERY = 10.0
_TERMINAL_PATIENCE = 0.4
_TERMINAL_EVERY = 0.2


@dataclass
class Timing:
    """What `watch` and `step` yield; `seconds` is filled in at the end."""

    seconds: float = 0.0


class Tasks(NamedTuple):
    """How many tasks of the Spark stages seen so far are done."""

    done: int
    total: int


@contextmanager
def watch(session: SparkSession, title: str, *, quiet: bool = False) -> Iterator[Timing]:
    """Show the tasks of the running Spark stages while the body runs."""
    with _shown(title, _StageCounter(session), quiet) as timing:
        yield timing


@contextmanager
def step(title: str, *, quiet: bool = False) -> Iterator[Timing]:
    """Show that the body, which is not Spark's work, is still running."""
    with _shown(title, None, quiet) as timing:
        yield timing


class _StageCounter:
    """Count the tasks of the stages that are active now or were when asked before."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._seen: dict[int, Tasks] = {}

    def __call__(self) -> Tasks | None:
        try:
            tracker = self._session.sparkContext.statusTracker()
            active = set(tracker.getActiveStageIds())
            for stage in active:
                info = tracker.getStageInfo(stage)
                if info is not None:
                    self._seen[stage] = Tasks(info.numCompletedTasks, info.numTasks)
        except (_PY4J.Py4JError, OSError, AttributeError):
            # The session ended or broke. The body will say so; the display only goes on without counts.
            return None
        done = sum(tasks.done if stage in active else tasks.total for stage, tasks in self._seen.items())
        total = sum(tasks.total for tasks in self._seen.values())
        return Tasks(done, total) if total else None


@contextmanager
def _shown(title: str, count: Callable[[], Tasks | None] | None, quiet: bool) -> Iterator[Timing]:
    timing = Timing()
    over = threading.Event()
    show = _on_terminal if sys.stderr.isatty() else _in_lines
    began = time.monotonic()
    display = threading.Thread(target=show, args=(title, count or _nothing, over), daemon=True)
    if not quiet:
        display.start()
    try:
        yield timing
    finally:
        timing.seconds = time.monotonic() - began
        over.set()
        if not quiet:
            display.join()


def _nothing() -> None:
    return None


def _in_lines(title: str, count: Callable[[], Tasks | None], over: threading.Event) -> None:
    began = time.monotonic()
    wait = PATIENCE
    while not over.wait(wait):
        wait = _EVERY
        tasks = count()
        counted = f"{tasks.done} of {tasks.total} tasks, " if tasks else ""
        print(f"{title}: {counted}{time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def _on_terminal(title: str, count: Callable[[], Tasks | None], over: threading.Event) -> None:
    # Work that is over at once would only flicker.
    if over.wait(_TERMINAL_PATIENCE):
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[counted]}"),
    )
    # Transient: the line vanishes at the end, and what the command prints stands alone.
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as progress:
        line = progress.add_task(title, total=None, counted="")
        while not over.wait(_TERMINAL_EVERY):
            tasks = count()
            if tasks:
                counted = f"{tasks.done} of {tasks.total} tasks"
                progress.update(line, completed=tasks.done, total=tasks.total, counted=counted)
