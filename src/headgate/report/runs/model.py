"""What the pages of runs and what-ifs say, as plain values: everything is measured before a page is drawn.

RunPage
├── Counts         subscriptions, events, matches: the tiles
├── Step           a part of the run: when it began, how long it took
├── StageRun       one of Spark's stages; times are in seconds since the run began
│   └── TaskRun    when a task ran, how long, on which executor
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
from typing import TYPE_CHECKING

from headgate.core.machine import cores, memory
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from headgate.backtest.effects import WhatIf
    from headgate.jobs.summary import Refusal
    from headgate.runtime.stages import StageRun


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
class WhatIfPage:
    """All that the page of a what-if shows."""

    title: str
    created: datetime
    done: WhatIf
    noise: float
    """The share of events from which on a subscription is noisy."""
    top: int | None = None
    """If only the best so many of an event count."""
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
class RefusedRows:
    """The refused rows of one table, such as "events"; `path` is where all of them are."""

    what: str
    rows: int
    path: str | None = None
    reasons: tuple[Refusal, ...] = ()


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
    stages: tuple[StageRun, ...] = ()
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
