"""What changes of boxes cost, through their tail; as users call them, one at a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.ranking_data import K, make, plainly, same, say
from benchmarks.results import Result
from headgate.ranking.answers import RankedRows
from headgate.ranking.boxes.index import BoxIndex
from headgate.ranking.model import Box, Interval

if TYPE_CHECKING:
    from collections.abc import Callable

_SECTION = "Changes"
_DIMENSIONS = 4


def _each(work: Callable[[int], object], times: int) -> float:
    """Return the microseconds of one of some calls, after the first, which may make room."""
    work(0)
    begun = time.perf_counter()
    for i in range(1, times):
        work(i)
    return (time.perf_counter() - begun) / max(1, times - 1) * 1e6


def measure_changes(count: int, changes: int, queries: int) -> list[Result]:
    """Time inserts, deletes and new scores, and queries after them."""
    data = make(count + changes, queries, _DIMENSIONS)
    names = data.names
    first = data.boxes.start[count]
    held = data._replace(
        boxes=data.boxes._replace(
            start=data.boxes.start[: count + 1],
            score=data.boxes.score[:count],
            **{name: getattr(data.boxes, name)[:first] for name in ("dim", "low", "high", "weight")},
        )
    )
    index = BoxIndex(held.base(), compact_after=None)
    events = [dict(zip(names, point.tolist(), strict=True)) for point in data.points]
    boxes = data.boxes

    def box(row: int) -> Box:
        entries = range(int(boxes.start[row]), int(boxes.start[row + 1]))
        ends = {names[boxes.dim[e]]: Interval(float(boxes.low[e]), float(boxes.high[e])) for e in entries}
        weights = {names[boxes.dim[e]]: float(boxes.weight[e]) for e in entries}
        return Box(row, ends, float(boxes.score[row]), weights)

    made = [box(count + i) for i in range(changes)]
    before = _ask(index, events)
    figures = {
        "insert": _each(lambda i: index.insert(made[i]), changes),
        "new score": _each(lambda i: index.set_score(i, 0.5), changes),
        "new weights": _each(lambda i: index.set_weights(i, 0.5), changes),
    }
    after = _ask(index, events)
    figures["delete"] = _each(lambda i: index.delete(count + i), changes)
    begun = time.perf_counter()
    index.compact()
    seconds = time.perf_counter() - begun
    weight = held.boxes.weight.copy()
    weight[: held.boxes.start[changes]] = 0.5
    wanted = plainly(held.boxes._replace(weight=weight), data.points[0], K, "relaxed")
    found = index.top(events[0], K, "relaxed")
    values, rows_found = [best.value for best in found], [int(best.subscription) for best in found]
    same(RankedRows(np.array(rows_found), np.array(values)), wanted, "boxes after changes")
    title = f"boxes, d = {_DIMENSIONS}, {count:,} of them, through a tail"
    rows = [Result(f"{title}: {name}", value, "µs", section=_SECTION) for name, value in figures.items()]
    rows += [
        Result(
            f"{title}: top({K}, relaxed) from a dict after {3 * changes:,} changes",
            after,
            "µs",
            before,
            "before",
            section=_SECTION,
        ),
        Result(f"{title}: compaction", seconds, "s", section=_SECTION),
    ]
    say("changes of boxes")
    return rows


def _ask(index: BoxIndex, events: list[dict[str, float]]) -> float:
    index.top(events[0], K, "relaxed")
    begun = time.perf_counter()
    for event in events:
        index.top(event, K, "relaxed")
    return (time.perf_counter() - begun) / len(events) * 1e6
