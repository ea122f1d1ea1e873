"""Show on stderr that long work is going on: a moving line on a terminal, plain lines elsewhere.

    matching: 3 of 8 tasks, 12,400 events a second, 6 s, about 10 s left

Spark is asked now and then how many tasks are done and how many rows they have read. How long the rest will
take is said once enough is done to reckon with.
"""

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

_JAVA_CONTEXT = "_jsc"
_DESCRIPTION = "spark.job.description"

PATIENCE = 2.0
"""Seconds of silence that nobody minds."""

_EVERY = 10.0
_TERMINAL_PATIENCE = 0.4
_TERMINAL_EVERY = 0.2
_ENOUGH_SECONDS = 1.0
_ENOUGH_TASKS = 2
"""What must have gone by before the rest is reckoned."""


@dataclass
class Timing:
    """What `watch` and `step` yield; `seconds` is filled in at the end."""

    seconds: float = 0.0


class Tasks(NamedTuple):
    """How many tasks of the Spark stages seen so far are done, and how many rows these have read."""

    done: int
    total: int
    rows: int = 0


@dataclass(frozen=True)
class _Shown:
    """What is watched: its title, how to count, and how many rows of what there are, if that is known."""

    title: str
    count: Callable[[], Tasks | None]
    rows: int | None = None
    noun: str = "rows"


@contextmanager
def watch(
    session: SparkSession, title: str, *, rows: int | None = None, noun: str = "rows", quiet: bool = False
) -> Iterator[Timing]:
    """Show the tasks of the running Spark stages while the body runs; its jobs bear the title in Spark's UI.

    `rows` is how many there are to go through, if that is known, and `noun` what they are.
    """
    with (
        _described(session, title),
        _shown(_Shown(title, _StageCounter(session), rows, noun), quiet) as timing,
    ):
        yield timing


@contextmanager
def step(title: str, *, quiet: bool = False) -> Iterator[Timing]:
    """Show that the body, which is not Spark's work, is still running."""
    with _shown(_Shown(title, _nothing), quiet) as timing:
        yield timing


@contextmanager
def _described(session: SparkSession, title: str) -> Iterator[None]:
    """Give the jobs of this thread a title, for the listener and Spark's own UI."""
    before = _describe(session, title)
    try:
        yield
    finally:
        _describe(session, before)


def _py4j() -> Any:
    # By name because py4j has no types, and here because work without Spark is shown as well.
    return importlib.import_module("py4j.protocol")


def _describe(session: SparkSession, title: str | None) -> str | None:
    """Set the title of jobs; return the one before."""
    try:
        context = session.sparkContext
        before = context.getLocalProperty(_DESCRIPTION)
        context.setLocalProperty(_DESCRIPTION, title)  # type: ignore[arg-type]  # None takes it away
    except (_py4j().Py4JError, OSError, AttributeError):
        # The session ended or broke. The body will say so.
        return None
    return before


class _StageCounter:
    """Count the tasks of the stages that are active now or were when asked before."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._seen: dict[int, Tasks] = {}

    def __call__(self) -> Tasks | None:
        try:
            tracker = self._session.sparkContext.statusTracker()
            active = set(tracker.getActiveStageIds())
            for stage in active | self._open():
                info = tracker.getStageInfo(stage)
                if info is not None:
                    self._seen[stage] = Tasks(info.numCompletedTasks, info.numTasks, self._rows(stage))
        except (_py4j().Py4JError, OSError, AttributeError):
            # The session ended or broke. The body will say so; the display only goes on without counts.
            return None
        done = sum(tasks.done if stage in active else tasks.total for stage, tasks in self._seen.items())
        total = sum(tasks.total for tasks in self._seen.values())
        return Tasks(done, total, sum(tasks.rows for tasks in self._seen.values())) if total else None

    def _open(self) -> set[int]:
        """List the stages that were not done when last asked: the last tasks are told after the end."""
        return {stage for stage, tasks in self._seen.items() if tasks.done < tasks.total}

    def _rows(self, stage: int) -> int:
        """Ask how many rows of tables a stage has read; 0 if Spark has forgotten it."""
        store: Any = getattr(self._session.sparkContext, _JAVA_CONTEXT).sc().statusStore()
        try:
            return int(store.lastStageAttempt(stage).inputRecords())
        except _py4j().Py4JJavaError:
            return 0


@contextmanager
def _shown(shown: _Shown, quiet: bool) -> Iterator[Timing]:
    timing = Timing()
    over = threading.Event()
    show = _on_terminal if sys.stderr.isatty() else _in_lines
    began = time.monotonic()
    display = threading.Thread(target=show, args=(shown, over), daemon=True)
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


def counted(tasks: Tasks, seconds: float, noun: str = "rows") -> str:
    """Say how far it is, and how fast.

    >>> counted(Tasks(3, 8, 62_000), 5.0, "events")
    '3 of 8 tasks, 12,400 events a second'
    >>> counted(Tasks(3, 8), 5.0)
    '3 of 8 tasks'
    """
    words = f"{tasks.done:,} of {tasks.total:,} tasks"
    rate = tasks.rows / seconds if seconds > 0 else 0.0
    return f"{words}, {rate:,.0f} {noun} a second" if rate >= 1 else words


def left(tasks: Tasks, seconds: float, rows: int | None = None) -> float | None:
    """Reckon how many seconds are left, by rows if it is known how many there are, else by tasks.

    None as long as there is too little to reckon with, and when all is done.

    >>> left(Tasks(5, 20), 10.0), left(Tasks(5, 20, 600), 10.0, rows=1000)
    (30.0, 6.666666666666667)
    >>> left(Tasks(1, 20), 10.0), left(Tasks(5, 20), 0.5), left(Tasks(20, 20), 10.0)
    (None, None, None)
    """
    if seconds < _ENOUGH_SECONDS or tasks.done < _ENOUGH_TASKS or tasks.done >= tasks.total:
        return None
    done, total = (tasks.rows, rows) if rows and 0 < tasks.rows < rows else (tasks.done, tasks.total)
    return seconds * (total - done) / done


def in_words(seconds: float) -> str:
    """Write a time that is only reckoned.

    >>> in_words(0.4), in_words(42.3), in_words(250), in_words(7300)
    ('about 1 s left', 'about 42 s left', 'about 4 min left', 'about 2 h 2 min left')
    """
    if seconds < 100:
        return f"about {max(1, round(seconds))} s left"
    minutes = round(seconds / 60)
    return f"about {minutes} min left" if minutes < 60 else f"about {minutes // 60} h {minutes % 60} min left"


def _in_lines(shown: _Shown, over: threading.Event) -> None:
    began = time.monotonic()
    wait = PATIENCE
    while not over.wait(wait):
        wait = _EVERY
        tasks = shown.count()
        seconds = time.monotonic() - began
        words = [f"{seconds:.0f} s"]
        if tasks:
            words.insert(0, counted(tasks, seconds, shown.noun))
            rest = left(tasks, seconds, shown.rows)
            words += [in_words(rest)] if rest is not None else []
        print(f"{shown.title}: {', '.join(words)}", file=sys.stderr, flush=True)


def _on_terminal(shown: _Shown, over: threading.Event) -> None:
    # Work that is over at once would only flicker.
    if over.wait(_TERMINAL_PATIENCE):
        return
    began = time.monotonic() - _TERMINAL_PATIENCE
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[counted]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    # Transient: the line vanishes at the end, and what the command prints stands alone.
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        line = progress.add_task(shown.title, total=None, counted="", left="")
        while not over.wait(_TERMINAL_EVERY):
            tasks = shown.count()
            if not tasks:
                continue
            seconds = time.monotonic() - began
            rest = left(tasks, seconds, shown.rows)
            progress.update(
                line,
                completed=tasks.done,
                total=tasks.total,
                counted=counted(tasks, seconds, shown.noun),
                left="" if rest is None else in_words(rest),
            )
