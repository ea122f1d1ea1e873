"""Hundreds of attributes, few of them in a subscription: ranking without looking at everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.graph_series import interleaved
from benchmarks.measure import memory_of
from benchmarks.ranking_data import (
    EVERYONE,
    SEED,
    WARM_UP,
    Data,
    K,
    as_boxes,
    ask,
    plainly,
    prepared,
    same,
    say,
)
from benchmarks.ranking_kernels import add_all, look_at_all, postings
from benchmarks.results import Result
from headgate.ranking.boxes.methods import AUTO, methods
from headgate.ranking.boxes.threshold_kernels import SUM, emptied, heap_of
from headgate.workloads.ranking import Sparse

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headgate.ranking.answers import RankedRows
    from headgate.ranking.boxes.methods import Ranker

    Find = Callable[[NDArray[np.float64]], RankedRows]

EVERYTHING, ADDING = "every box looked at", "weights of all that hold added up"
COLUMNS = {"scan", "dense"}
"""Methods that have a column for each attribute: 500 of them for a million boxes are 8 GB."""
PRESENCES = (1.0, 0.2, 0.02)
_COMPARED = 3


def measure_sparse(attributes: int, count: int, events: int, rounds: int) -> list[Result]:
    """Time relaxed ranking for events with all attributes, and with some."""
    title = f"{attributes} attributes, {count:,} subscriptions with 3 to 8 intervals, k = {K}"
    section = f"Sparse: µs an event, {title}"
    boxes = as_boxes(Sparse(attributes).lists(np.arange(count), SEED))
    data = Data(boxes, *_points(attributes, 1.0, events))
    base = data.base()
    names = [name for name in methods("relaxed") if ":" not in name and name not in COLUMNS]
    if f"threshold:{AUTO}" in methods("relaxed"):
        names.append(f"threshold:{AUTO}")
    rankers = {name: prepared(base, "relaxed", name) for name in names}
    say(f"sparse, {count:,} subscriptions indexed")
    finds = {name: _by(each) for name, each in rankers.items()} | _baselines(data)
    rows, goals = [], []
    for presence in PRESENCES:
        warm, points = _points(attributes, presence, events)
        for name, find in finds.items():
            for point in points[:_COMPARED]:
                same(find(point), plainly(boxes, point, K, "relaxed"), f"sparse {name}")
        few = points[: max(2, events // 20)]
        works: dict[str, Callable[[], object]] = {
            name: _loop(find, few if name in {EVERYTHING, ADDING} or ":" in name else points)
            for name, find in finds.items()
        }
        _loop(finds[AUTO], warm[:2])()
        seconds = interleaved(works, rounds)
        micros = {
            name: value / len(few if name in {EVERYTHING, ADDING} or ":" in name else points) * 1e6
            for name, value in seconds.items()
        }
        column = f"{presence:.0%} of the attributes"
        rows += [Result(name, value, "µs", section=section, column=column) for name, value in micros.items()]
        baseline = min((EVERYTHING, ADDING), key=lambda name: micros[name])
        goals.append(
            Result(
                f"sparse, auto, {column}", micros[AUTO], "µs", micros[baseline], baseline, section="Sparse"
            )
        )
        say(f"sparse, {column}")
    held = {name: memory_of(each) / count for name, each in rankers.items()}
    rows += [
        Result(name, value, "", section=section, column="bytes a subscription")
        for name, value in held.items()
    ]
    return [*rows, *goals]


def _points(attributes: int, presence: float, events: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    points = Sparse(attributes, presence=presence).points(np.arange(WARM_UP + events), SEED)
    return points[:WARM_UP], points[WARM_UP:]


def _by(ranker: Ranker) -> Find:
    return lambda point: ranker.top(ask(point), K, SUM, EVERYONE)


def _baselines(data: Data) -> dict[str, Find]:
    boxes, heap = data.boxes, heap_of(K)
    lists, total = postings(boxes, data.dimensions), np.zeros(boxes.size)

    def everything(point: NDArray[np.float64]) -> RankedRows:
        look_at_all(boxes, ask(point), heap)
        return emptied(heap)

    def adding(point: NDArray[np.float64]) -> RankedRows:
        add_all(lists, ask(point), total, heap)
        return emptied(heap)

    return {EVERYTHING: everything, ADDING: adding}


def _loop(find: Find, points: NDArray[np.float64]) -> Callable[[], object]:
    return lambda: [find(point) for point in points]
