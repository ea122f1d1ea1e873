"""What Spark's stages and tasks did, as a listener hears it and pages show it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class TaskRun:
    """One attempt at a task; times are in seconds, `start` since 1970, or since a run began.

    Rows count tables and shuffles. What a Python worker reads or writes by itself Spark cannot see.
    """

    executor: str
    start: float
    seconds: float
    """From the launch to the end, with what it takes to get there."""
    rows: int = 0
    """Those that it read."""
    failure: str | None = None
    number: int = 0
    index: int = 0
    run_seconds: float = 0.0
    """Without what it takes to get there."""


@dataclass(frozen=True)
class StageRun:
    """One attempt at a stage, and the tasks of it that have ended."""

    title: str
    """What the job was said to be doing; empty if nobody said."""
    start: float
    end: float | None = None
    """None while it runs."""
    tasks: tuple[TaskRun, ...] = ()
    failure: str | None = None
    number: int = 0
    attempt: int = 0
    name: str = ""
    planned: int = 0

    @property
    def seconds(self) -> float:
        """Measure from the start to the end, or to that of the last task so far."""
        ends = [self.end] if self.end is not None else [task.start + task.seconds for task in self.tasks]
        return max(0.0, max(ends, default=self.start) - self.start)

    @property
    def done(self) -> tuple[TaskRun, ...]:
        """List the tasks that did not fail."""
        return tuple(task for task in self.tasks if task.failure is None)

    @property
    def median_seconds(self) -> float:
        """Return the time of a task in the middle; 0 without tasks."""
        return median(task.seconds for task in self.done) if self.done else 0.0

    @property
    def slowest(self) -> TaskRun | None:
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
        """Count the tasks of a stage that came to its end and was not received as a whole."""
        if self.end is None or self.failure is not None:
            return 0
        return max(0, self.planned - len({task.index for task in self.done}))
