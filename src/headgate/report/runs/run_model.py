"""What the page of a run says, as plain values: everything is measured before the page is drawn.

RunPage
├── Counts         subscriptions, events, matches: the tiles
├── Step           a part of the run: when it began, how long it took       (report/runs/model.py)
├── Stage          one of Spark's stages
│   └── Task       when a task ran, how long, on which executor
├── Partition      what one worker did with one batch of events             (report/runs/model.py)
├── Refused        rows that could not be used, by reason, with examples
├── StreamBatch    a micro-batch: its time, what was left out, latency, version of the subscriptions
├── Histogram, Busy   who matches how much                                  (report/runs/model.py)
└── Machine        where it ran                                             (report/runs/model.py)

All but title and time may be left out: the page has a section for what is there.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from importlib.metadata import version
from statistics import median
from typing import TYPE_CHECKING, Protocol

from headgate.core.machine import cores, memory
from headgate.report.runs.model import Machine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from headgate.report.runs.model import Busy, Histogram, Partition, Step


@dataclass(frozen=True)
class Counts:
    """The numbers of the tiles; None is not shown."""

    subscriptions: int | None = None
    events: int | None = None
    matches: int | None = None
    seconds: float | None = None
    """The time that events a second are reckoned with: that of matching, not of the whole run."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Refused rows by the name of the tile; what is not here is looked up among `RunPage.rejected`."""

    @property
    def events_per_second(self) -> float | None:
        """Divide events by time; None if either is unknown, or there was no time."""
        return self.events / self.seconds if self.events is not None and self.seconds else None


@dataclass(frozen=True)
class Task:
    """One attempt at a task; `start` is in seconds since the run began."""

    executor: str
    start: float
    seconds: float
    rows: int = 0
    failure: str | None = None


@dataclass(frozen=True)
class Stage:
    """One of Spark's stages and its tasks; `start` is in seconds since the run began."""

    title: str
    start: float
    seconds: float
    tasks: tuple[Task, ...] = ()

    @property
    def median_seconds(self) -> float:
        """Return the time of a task in the middle; 0 without tasks."""
        done = [task.seconds for task in self.tasks if task.failure is None]
        return median(done) if done else 0.0

    @property
    def slowest(self) -> Task | None:
        """Return the task that took longest, of those that did not fail."""
        done = [task for task in self.tasks if task.failure is None]
        return max(done, key=lambda task: task.seconds, default=None)

    @property
    def skew(self) -> float | None:
        """Divide the time of the slowest task by that of the one in the middle; None below two tasks."""
        done = sum(task.failure is None for task in self.tasks)
        slowest, middle = self.slowest, self.median_seconds
        return slowest.seconds / middle if slowest is not None and done > 1 and middle > 0 else None


@dataclass(frozen=True)
class Reason:
    """Why rows were refused, how many of them, and some of them as they came."""

    reason: str
    rows: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused:
    """The refused rows of one table, such as "events"; `path` is where all of them are."""

    what: str
    rows: int
    path: str | None = None
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class StreamBatch:
    """A micro-batch; `start` is in seconds since the stream began."""

    number: int
    start: float
    seconds: float
    events: int
    matches: int = 0
    duplicates: int = 0
    late: int = 0
    malformed: int = 0
    version: int = 0
    """Which version of the subscriptions its events were matched against."""
    latency: tuple[tuple[float, float], ...] = ()
    """Quantiles from arrival to commit, such as (0.5, 0.31), in rising order."""


@dataclass(frozen=True)
class RunPage:
    """Hold all that the page shows."""

    title: str
    created: datetime
    counts: Counts = field(default_factory=Counts)
    steps: tuple[Step, ...] = ()
    stages: tuple[Stage, ...] = ()
    throughput: tuple[Partition, ...] = ()
    rejected: tuple[Refused, ...] = ()
    batches: tuple[StreamBatch, ...] = ()
    matches_per_event: Histogram | None = None
    quantiles: tuple[tuple[float, float], ...] = ()
    """Matches of an event, such as (0.5, 21.0), in rising order."""
    busiest: tuple[Busy, ...] = ()
    machine: Machine | None = None
    command: str = ""
    troubles: tuple[str, ...] = ()
    """What went wrong while the run was watched, in words."""


def this_machine(java: str) -> Machine:
    """Describe the machine that this runs on."""
    return Machine(
        python=platform.python_version(),
        spark=version("pyspark"),
        java=java,
        cores=cores(),
        memory_gib=memory() / 2**30,
        load=os.getloadavg()[0],
    )


class _HeardTask(Protocol):
    """A task as a listener has heard of it: `headgate.spark.session.heard.Task`."""

    @property
    def executor(self) -> str: ...
    @property
    def start(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def rows_in(self) -> int: ...
    @property
    def failure(self) -> str | None: ...


class _HeardStage(Protocol):
    """The same of a stage."""

    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def submitted(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def tasks(self) -> Sequence[_HeardTask]: ...


def stages_of(heard: Iterable[_HeardStage], began: float) -> tuple[Stage, ...]:
    """Take over the stages that a listener has heard of; `began` is when the run did, since 1970."""
    return tuple(
        Stage(
            f"{stage.title or stage.name} ({stage.number})",
            stage.submitted - began,
            stage.seconds,
            tuple(
                Task(task.executor, task.start - began, task.seconds, task.rows_in, task.failure)
                for task in stage.tasks
            ),
        )
        for stage in heard
    )
