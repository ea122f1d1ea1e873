"""The best k of filters in SQL: `RankedIndex` asked for them, against matching all and sorting."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.graph_series import interleaved
from benchmarks.ranking_data import SEED, K, say
from benchmarks.results import Result
from headgate import Event, Subscription
from headgate.ranking.filters.index import RankedIndex
from headgate.records.index.index import RecordIndex
from headgate.workloads.columns import Key, uniform
from headgate.workloads.ranking import Ranking
from headgate.workloads.records.mixed import Mixed
from tests.ranking.filters_reference import relaxed

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from headgate.core.event import Id

_SECTION = "Filters in SQL"
_ROUNDS = 3
EXACT = 60
"""The goal of exact ranking, in microseconds, however many match."""
_COMPARED = 5
_OTHERS = 40
"""Subscriptions beside the best that the reference is asked about: it takes milliseconds for each."""


def measure_engine(count: int, events: int) -> list[Result]:
    """Time the best k of intervals in SQL, and of filters of all kinds with random scores."""
    return [
        *_measure(
            f"{count:,} conjunctions of 4 intervals", _intervals(count), _events(Ranking(4).events, events)
        ),
        *_measure(f"{count:,} filters of W-mix", _mixed(count), _events(Mixed().events, events)),
    ]


def _intervals(count: int) -> list[Subscription]:
    rows = Ranking(4).subscriptions(np.arange(count), SEED).to_pylist()
    return [
        Subscription(row["id"], row["filter"], score=row["score"], weights=dict(row["weights"]))
        for row in rows
    ]


def _mixed(count: int) -> list[Subscription]:
    rows = Mixed().subscriptions(np.arange(count), SEED).to_pylist()
    scores = uniform(Key(SEED, "mixed filters", "score", np.arange(count))).tolist()
    return [
        Subscription(row["id"], row["filter"], score=score) for row, score in zip(rows, scores, strict=True)
    ]


def _events(
    make: Callable[[np.ndarray[tuple[int], np.dtype[np.int64]], int], pa.RecordBatch], count: int
) -> list[Event]:
    rows = make(np.arange(count), SEED).to_pylist()
    return [Event.from_row({name: value for name, value in row.items() if value is not None}) for row in rows]


def _check_relaxed(title: str, index: RankedIndex, subscriptions: list[Subscription], event: Event) -> None:
    """Compare the best with what the reference says of them and of some others, each asked alone."""
    best = index.top(event, K, "relaxed")
    chosen, step = {each.subscription for each in best}, max(1, len(subscriptions) // _OTHERS)
    asked = [each for n, each in enumerate(subscriptions) if each.id in chosen or n % step == 0]
    assert best == relaxed(asked, event, K, room=RecordIndex), f"{title}: relaxed"


def _measure(title: str, subscriptions: list[Subscription], events: list[Event]) -> list[Result]:
    plain = RecordIndex.build(subscriptions)
    begun = time.perf_counter()
    index = RankedIndex.build(subscriptions, room=RecordIndex)
    seconds = time.perf_counter() - begun
    say(f"{title}: indexed")
    score = {each.id: float(each.score) for each in subscriptions}

    def sort_all(event: Event) -> list[Id]:
        return sorted(plain.match(event), key=lambda each: (-score[each], each))[:K]

    for event in events[:_COMPARED]:
        assert [best.subscription for best in index.top(event, K)] == sort_all(event), f"{title}: exact"
    everything = len(subscriptions)
    for event in events[:2]:
        _check_relaxed(title, index, subscriptions, event)
    works: dict[str, Callable[[], object]] = {
        "exact": lambda: [index.top(event, K) for event in events],
        "relaxed": lambda: [index.top(event, K, "relaxed") for event in events],
        "sorted": lambda: [sort_all(event) for event in events],
        "all": lambda: [
            index.top(event, everything, "relaxed") for event in events[: max(1, len(events) // 10)]
        ],
    }
    micros = {name: value / len(events) * 1e6 for name, value in interleaved(works, _ROUNDS).items()}
    few = max(1, len(events) // 10)
    every = micros["all"] * len(events) / few
    matches = float(np.mean([len(plain.match(event)) for event in events]))
    say(title)
    return [
        Result(
            f"{title}: top({K}) exact",
            micros["exact"],
            "µs",
            micros["sorted"],
            "match all and sort",
            EXACT,
            section=_SECTION,
        ),
        Result(
            f"{title}: top({K}) relaxed",
            micros["relaxed"],
            "µs",
            every,
            "all that hold in part",
            section=_SECTION,
        ),
        Result(f"{title}: matches an event", matches, "", section=_SECTION),
        Result(f"{title}: built, with clauses", seconds, "s", section=_SECTION),
    ]
