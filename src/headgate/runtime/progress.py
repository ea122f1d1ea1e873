"""Show on stderr that long work is going on: a moving line on a terminal, plain lines elsewhere.

    matching: 3 of 8 tasks, 12,400 events a second, 6 s, about 10 s left

How long the rest will take is said once enough is done to estimate it.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
class ProgressTask:
    """What is watched: its title, how to count, and how many rows of what there are, if that is known."""

    title: str
    count: Callable[[], Tasks | None]
    rows: int | None = None
    noun: str = "rows"


@contextmanager
def step(title: str, *, quiet: bool = False) -> Iterator[Timing]:
    """Show that the body, which is not Spark's work, is still running."""
    with showing(ProgressTask(title, _nothing), quiet) as timing:
        yield timing


@contextmanager
def showing(shown: ProgressTask, quiet: bool) -> Iterator[Timing]:
    """Show how far something is while the body runs."""
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


def _in_lines(shown: ProgressTask, over: threading.Event) -> None:
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


def _on_terminal(shown: ProgressTask, over: threading.Event) -> None:
    # Work that is over at once would only flicker.
    if over.wait(_TERMINAL_PATIENCE):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

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
