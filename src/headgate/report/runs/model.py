"""What the pages of runs and what-ifs say, as plain values: everything is measured before a page is drawn.

RunPage
├── Counts         subscriptions, events, matches: the tiles
├── Step           a part of the run: when it began, how long it took
├── Stage          one of Spark's stages
│   └── Task       when a task ran, how long, on which executor
├── Partition      what one worker did with one batch of events: when, how long, how many
├── Refused        rows that could not be used, by reason, with examples
├── StreamBatch    a micro-batch: its time, what was left out, latency, version of the subscriptions
├── Histogram      events by how many subscriptions they match
├── Busy           a subscription that many events match
└── Machine        where it ran

All but title and time may be left out: the page has a section for what is there.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Protocol

from headgate.core.machine import cores, memory
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime


_BARS = 30
_TAIL = 0.99


@dataclass(frozen=True)
class Histogram:
    """Count events by their matches; bar i holds the events with edges[i] <= matches < edges[i + 1]."""

    edges: tuple[int, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.counts) + 1 or any(a >= b for a, b in pairwise(self.edges)):
            raise HeadgateError("a histogram needs rising edges, one more than its counts")

    @classmethod
    def of(cls, events_by_matches: Mapping[int, int]) -> Histogram:
        """Choose the bars: one for 0, equal ones up to the 99th percentile, one for the long tail.

        >>> Histogram.of({0: 5, 1: 7, 2: 3})
        Histogram(edges=(0, 1, 2, 3), counts=(5, 7, 3))
        >>> Histogram.of({0: 1, 7: 2, 90: 97, 5000: 1}).edges
        (0, 1, 6, 11, 16, 21, 26, 31, 36, 41, 46, 51, 56, 61, 66, 71, 76, 81, 86, 91, 5001)
        """
        present = {matches: events for matches, events in events_by_matches.items() if events}
        if not present:
            return cls((0, 1), (0,))
        highest = max(present)
        usual = round(quantile(present, _TAIL))
        width = _nice_width(usual)
        edges = [0, *range(1, usual + width + 1, width)]
        if edges[-1] <= highest:
            edges.append(highest + 1)
        counts = [sum(n for m, n in present.items() if low <= m < high) for low, high in pairwise(edges)]
        return cls(tuple(edges), tuple(counts))


@dataclass(frozen=True)
class BusySubscription:
    """Name a subscription and how many events match it."""

    id: str
    filter: str
    matches: int


@dataclass(frozen=True)
class Partition:
    """Tell what a Spark task did with one batch, in seconds since the match job began."""

    index: int
    start: float
    seconds: float
    events: int


@dataclass(frozen=True)
class Step:
    """Name a part of the run and its time; `start` is in seconds since the run began.

    Steps without a start come one after another.
    """

    name: str
    seconds: float
    start: float | None = None
    note: str = ""
    """What is told beside the time, such as that there was nothing to do."""


@dataclass(frozen=True)
class Machine:
    """Describe where the run took place; `load` is the machine's load average before it."""

    python: str
    spark: str
    java: str
    cores: int
    memory_gib: float
    load: float


def quantile(events_by_matches: Mapping[int, int], share: float) -> float:
    """Find the least number of matches that `share` of the events do not exceed; 0 without events.

    >>> quantile({0: 50, 3: 49, 1000: 1}, 0.5), quantile({0: 50, 3: 49, 1000: 1}, 0.99)
    (0.0, 3.0)
    """
    total = sum(events_by_matches.values())
    seen = 0
    for matches in sorted(events_by_matches):
        seen += events_by_matches[matches]
        if seen and seen >= share * total:
            return float(matches)
    return 0.0


def _nice_width(usual: int) -> int:
    """Choose 1, 2 or 5 times a power of ten, so that at most `_BARS` bars reach `usual`."""
    width = 1
    while usual / width > _BARS:
        width = width * 5 // 2 if str(width)[0] == "2" else width * 2
    return width


@dataclass(frozen=True)
class ChangedSubscription:
    """A subscription before and after; `op` is empty for one that is only pushed out of the best."""

    id: str
    op: str
    before: int
    after: int
    gained: int
    lost: int
    share: float
    flag: str
    filter: str


@dataclass(frozen=True)
class Costs:
    """Bytes of the snapshot and microseconds an event, before and after."""

    bytes_before: int
    bytes_after: int
    micros_before: float | None
    micros_after: float | None
    sample: int
    build_seconds: float


@dataclass(frozen=True)
class WhatIfPage:
    """Hold all that the page shows; `subscriptions` are noisiest first."""

    title: str
    created: datetime
    events: int
    rejected_events: int
    changes: tuple[tuple[str, int], ...]
    """Changed subscriptions by what was done to them, such as ("replace", 3)."""
    rejected: int
    gained: int
    lost: int
    subscriptions: tuple[ChangedSubscription, ...]
    noise: float
    """The share of events above which a subscription is noisy."""
    deliveries_a_day: float | None = None
    costs: Costs | None = None
    top: int | None = None
    """How many the best are, if only those were asked for."""
    rejected_path: str | None = None
    command: str = ""


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
class RefusedRows:
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
    rejected: tuple[RefusedRows, ...] = ()
    batches: tuple[StreamBatch, ...] = ()
    matches_per_event: Histogram | None = None
    quantiles: tuple[tuple[float, float], ...] = ()
    """Matches of an event, such as (0.5, 21.0), in rising order."""
    busiest: tuple[BusySubscription, ...] = ()
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


class _ObservedTask(Protocol):
    """A task as a listener reports it: `headgate.spark.session.listeners.Task`."""

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


class _ObservedStage(Protocol):
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
    def tasks(self) -> Sequence[_ObservedTask]: ...


def stages_of(activity: Iterable[_ObservedStage], began: float) -> tuple[Stage, ...]:
    """Take over the stages that a listener reported; `began` is when the run did, since 1970."""
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
        for stage in activity
    )
