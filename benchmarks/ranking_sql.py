"""Filters of four intervals in SQL through `Engine`: built from their texts, and the best k by what holds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.ranking_data import SEED, K, say
from benchmarks.results import Result
from headgate import Engine, Event, Subscription
from headgate.ranking.boxes.dense import DenseRelaxed
from headgate.records.index.index import RecordIndex
from headgate.workloads.ranking import Ranking
from tests.ranking.filters_reference import relaxed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headgate.workloads.ranking import Columns

_SECTION = "Filters of 4 intervals through Engine"
_DIMENSIONS = 4
_ROUNDS = 5
_OTHERS = 40
"""Subscriptions beside the best that the reference is asked about."""
_SCANNED = 20
"""Events that the scan answers: it takes milliseconds for each."""
ONE, BATCH, BUILT = 250, 110, 60
"""Goals: microseconds for one event a call, and in a batch; seconds for a million filters from text."""


def measure_sql(count: int, events: int) -> list[Result]:
    """Time building, and relaxed top k, one event a call and a batch a call."""
    workload = Ranking(_DIMENSIONS)
    subscriptions = _subscriptions(workload, count)
    say(f"{count:,} texts made")
    begun, clock = time.process_time(), time.perf_counter()
    engine = Engine.build(subscriptions)
    seconds, wall = time.process_time() - begun, time.perf_counter() - clock
    say(f"{count:,} filters built")
    batch = workload.events(np.arange(events), SEED)
    asked = [Event.from_row(row) for row in batch.to_pylist()]
    for event in asked[:2]:
        _check(engine, subscriptions, event)
    columns = workload.columns(np.arange(count), SEED)
    points = np.ascontiguousarray(workload.points(np.arange(events), SEED))
    floats = DenseRelaxed(*(np.ascontiguousarray(side.T) for side in columns[:3]))
    works: dict[str, Callable[[], object]] = {
        "one": lambda: [engine.top(event, K, "relaxed") for event in asked],
        "batch": lambda: engine.top_batch(batch, K, "relaxed"),
        "floats": lambda: floats.top_many(points, points, K),
        "scan": lambda: [_scan(columns, point) for point in points[:_SCANNED]],
    }
    micros = {name: value / events * 1e6 for name, value in _quickest(works).items()}
    scan = micros["scan"] * events / min(_SCANNED, events)
    title = f"{count:,} filters of {_DIMENSIONS} intervals"
    return [
        Result(
            f"{title}: relaxed top {K}, one event", micros["one"], "µs", scan, "scan", ONE, section=_SECTION
        ),
        Result(f"{title}: in a batch", micros["batch"], "µs", scan, "scan", BATCH, section=_SECTION),
        Result(
            f"{title}: in a batch, against the same boxes in floats",
            micros["batch"],
            "µs",
            micros["floats"],
            "arrays in, arrays out",
            section=_SECTION,
        ),
        Result(f"{title}: built from text, CPU", seconds, "s", goal=BUILT, section=_SECTION),
        Result(f"{title}: built from text, by the clock", wall, "s", section=_SECTION),
    ]


def _quickest(works: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the seconds of processor time of the quickest run of each, in turns."""
    found = dict.fromkeys(works, np.inf)
    for _ in range(_ROUNDS):
        for name, work in works.items():
            begun = time.process_time()
            work()
            found[name] = min(found[name], time.process_time() - begun)
    return found


def _subscriptions(workload: Ranking, count: int) -> list[Subscription]:
    rows = workload.subscriptions(np.arange(count), SEED).to_pylist()
    return [
        Subscription(row["id"], row["filter"], score=row["score"], weights=dict(row["weights"]))
        for row in rows
    ]


def _check(engine: Engine, subscriptions: list[Subscription], event: Event) -> None:
    """Compare the best with what the reference says of them and of some others, each asked alone."""
    best = engine.top(event, K, "relaxed")
    chosen, step = {each.subscription for each in best}, max(1, len(subscriptions) // _OTHERS)
    asked = [each for n, each in enumerate(subscriptions) if each.id in chosen or n % step == 0]
    assert best == relaxed(asked, event, K, room=RecordIndex), "relaxed through the engine"


def _scan(columns: Columns, point: NDArray[np.float64]) -> NDArray[np.int64]:
    """Value all boxes and pick the best: what there is to beat."""
    values = np.zeros(len(columns.low))
    for i in range(len(point)):
        held = (columns.low[:, i] <= point[i]) & (columns.high[:, i] >= point[i])
        values += np.where(held, columns.weight[:, i], 0.0)
    best = np.argpartition(-values, min(K, len(values) - 1))[:K]
    return np.asarray(best[np.argsort(-values[best], kind="stable")])
