"""What a set of changes costs: bytes of the snapshot and time of an event, before and after, measured."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from headgate.core.versions.stores import located
from headgate.engine.engine import Engine
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from headgate.backtest.trial import TrialResult
    from headgate.core.event import Event
    from headgate.engine.question import Top

_DAY = 86_400.0
SAMPLE = 1000
"""Events that are timed: the first of the table."""
_ROUNDS = 5
"""How often; the quickest counts, because nothing makes it quicker than it is."""


class Cost(NamedTuple):
    """Bytes and microseconds an event, before and after; times are None without an event to try."""

    bytes_before: int
    bytes_after: int
    micros_before: float | None
    micros_after: float | None
    sample: int
    """Events that were timed, one at a time."""
    build_seconds: float
    """To make the changed snapshot."""


class Times(NamedTuple):
    """The microseconds that an event takes, before and after, and how many events were asked."""

    micros: tuple[float, float]
    events: int


def measure(tried: TrialResult, events: Sequence[Event], folder: Path, top: Top | None) -> Cost | None:
    """Measure both snapshots whole; None for one in shards, which is in no engine."""
    if len(tried.whole.shards) > 1:
        return None
    path = located(tried.whole.shards[0].place)
    saved, seconds = tried.save(folder)
    times = timed(Engine.open(path, verify=False), Engine.open(saved, verify=False), events, top)
    before, after = times.micros if times else (None, None)
    return Cost(size_of(path), size_of(saved), before, after, times.events if times else 0, seconds)


def timed(before: Engine, after: Engine, events: Sequence[Event], top: Top | None) -> Times | None:
    """Measure the microseconds that an event takes in both engines; None if none of them can be asked."""
    asks = [_ask(engine, top) for engine in (before, after)]
    # Events from no node of a graph are refused; and what is compiled first is not measured.
    able = [event for event in events if all(_able(ask, event) for ask in asks)]
    if not able:
        return None
    best = [float("inf"), float("inf")]
    for _ in range(_ROUNDS):
        for index, ask in enumerate(asks):
            begun = time.perf_counter()
            for event in able:
                ask(event)
            best[index] = min(best[index], time.perf_counter() - begun)
    return Times((best[0] / len(able) * 1e6, best[1] / len(able) * 1e6), len(able))


def span(first: float | None, last: float | None) -> float | None:
    """Return the days between two times in seconds; None if they do not differ."""
    return (last - first) / _DAY if first is not None and last is not None and last > first else None


def size_of(folder: Path) -> int:
    """Count the bytes of a snapshot's files."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _ask(engine: Engine, top: Top | None) -> Callable[[Event], object]:
    if top is None:
        return engine.match
    return lambda event: engine.top(event, top.k, top.mode, factors=top.weighing)


def _able(ask: Callable[[Event], object], event: Event) -> bool:
    try:
        ask(event)
    except HeadgateError:
        return False
    return True
