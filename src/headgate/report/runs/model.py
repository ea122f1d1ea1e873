"""What the pages of runs and what-ifs say, as plain values.

Histogram     events by how many subscriptions they match
Busy          a subscription that many events match
Partition     what one Spark task did with one batch: when, how long, how many events
Step          a part of the run and its time
Machine       where it ran
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from collections.abc import Mapping
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
class Busy:
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
class Changed:
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
    subscriptions: tuple[Changed, ...]
    noise: float
    """The share of events above which a subscription is noisy."""
    deliveries_a_day: float | None = None
    costs: Costs | None = None
    top: int | None = None
    """How many the best are, if only those were asked for."""
    rejected_path: str | None = None
    command: str = ""
