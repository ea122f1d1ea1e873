"""What Spark's events say of stages and tasks, as plain values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

_NS = 1e9
_MS = 1000
_LONGEST = 400
_RAISED = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit): ")


class StageKey(NamedTuple):
    """A stage and which attempt at it."""

    number: int
    attempt: int


@dataclass(frozen=True)
class Task:
    """One attempt at a task; times are in seconds, `start` since 1970.

    Rows and bytes count tables and shuffles. What a Python worker reads or writes by itself Spark cannot see.
    """

    number: int
    index: int
    attempt: int
    executor: str
    host: str
    start: float
    seconds: float
    """From the launch to the end, with what it takes to get there."""
    run_seconds: float
    cpu_seconds: float
    """CPU of the executor's Java thread; a Python worker's is not in it."""
    gc_seconds: float
    rows_in: int
    rows_out: int
    bytes_in: int
    bytes_out: int
    spilled: int
    failure: str | None


@dataclass(frozen=True)
class Stage:
    """One attempt at a stage, and the tasks of it that have ended."""

    number: int
    attempt: int
    name: str
    title: str
    """What the job was said to be doing; empty if nobody said."""
    planned: int
    submitted: float
    completed: float | None
    """None while it runs."""
    failure: str | None
    tasks: tuple[Task, ...] = ()

    @property
    def seconds(self) -> float:
        """Measure from the submission to the end, or to that of the last task so far."""
        ends = [self.completed] if self.completed else [task.start + task.seconds for task in self.tasks]
        return max(0.0, max(ends, default=self.submitted) - self.submitted)

    @property
    def done(self) -> tuple[Task, ...]:
        """List the tasks that did not fail."""
        return tuple(task for task in self.tasks if task.failure is None)

    @property
    def median_seconds(self) -> float:
        """Return the time of a task in the middle; 0 without tasks."""
        return median(task.seconds for task in self.done) if self.done else 0.0

    @property
    def slowest(self) -> Task | None:
        """Return the task that took longest."""
        return max(self.done, key=lambda task: task.seconds, default=None)

    @property
    def skew(self) -> float | None:
        """Divide the time of the slowest task by that of the one in the middle; None below two tasks."""
        slowest = self.slowest
        if slowest is None or len(self.done) < 2 or self.median_seconds <= 0:
            return None
        return slowest.seconds / self.median_seconds

    @property
    def missing(self) -> int:
        """Count the tasks of a stage that came to its end and was not heard of whole."""
        if self.completed is None or self.failure is not None:
            return 0
        return max(0, self.planned - len({task.index for task in self.done}))


def task_of(event: dict[str, Any]) -> Task:
    """Read the event of a task's end, in the form of Spark's event log."""
    info = event["Task Info"]
    # A task that was lost with its executor has no metrics.
    metrics = event.get("Task Metrics") or {}
    inside, outside = metrics.get("Input Metrics") or {}, metrics.get("Output Metrics") or {}
    read, written = metrics.get("Shuffle Read Metrics") or {}, metrics.get("Shuffle Write Metrics") or {}
    return Task(
        number=info["Task ID"],
        index=info["Index"],
        attempt=info["Attempt"],
        executor=info["Executor ID"],
        host=info["Host"],
        start=info["Launch Time"] / _MS,
        seconds=max(0, info["Finish Time"] - info["Launch Time"]) / _MS,
        run_seconds=metrics.get("Executor Run Time", 0) / _MS,
        cpu_seconds=metrics.get("Executor CPU Time", 0) / _NS,
        gc_seconds=metrics.get("JVM GC Time", 0) / _MS,
        rows_in=inside.get("Records Read", 0) + read.get("Total Records Read", 0),
        rows_out=outside.get("Records Written", 0) + written.get("Shuffle Records Written", 0),
        bytes_in=inside.get("Bytes Read", 0)
        + read.get("Remote Bytes Read", 0)
        + read.get("Local Bytes Read", 0),
        bytes_out=outside.get("Bytes Written", 0) + written.get("Shuffle Bytes Written", 0),
        spilled=metrics.get("Disk Bytes Spilled", 0),
        failure=_reason(event["Task End Reason"]),
    )


def failure_of(text: str | None) -> str | None:
    r"""Keep the line of a failure that says something: of a worker's traceback, the error itself.

    >>> failure_of("Job aborted due to stage failure: x\nDriver stacktrace:")
    'Job aborted due to stage failure: x'
    >>> failure_of("[P] Traceback (most recent call last):\n  File\nValueError: no\n\tat org.apache.X: y")
    'ValueError: no'
    """
    if text is None:
        return None
    lines = [line.strip() for line in text.split("\n\tat ", 1)[0].splitlines() if line.strip()]
    own = [line for line in lines if _RAISED.match(line)]
    traced = any("Traceback (most recent call last)" in line for line in lines)
    return (own[-1] if own and traced else lines[0] if lines else "no reason given")[:_LONGEST]


def _reason(reason: dict[str, Any]) -> str | None:
    """Say why a task ended, if it was not that it was done."""
    if reason["Reason"] == "Success":
        return None
    said = [reason.get(name) for name in ("Full Stack Trace", "Description", "Kill Reason", "Loss Reason")]
    words = next((failure_of(text) for text in said if text), None)
    return words or str(reason["Reason"])
