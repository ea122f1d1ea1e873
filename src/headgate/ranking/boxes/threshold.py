"""Fagin's Threshold Algorithm over the walks of one scored index a dimension (section 1 of the paper).

Each walk lists the boxes that hold in its dimension, in falling order of their weights there. They are read
in turn. What a box is worth is worked out from its row when it is met first. What the boxes met last weigh,
each in its walk, is together the threshold: no box that was not met is worth more.
"""

from __future__ import annotations

from heapq import heappush, heapreplace
from typing import TYPE_CHECKING

import numpy as np

from headgate.core.ranks import double
from headgate.errors import EventError
from headgate.ranking.answers import RankedRows
from headgate.ranking.boxes.threshold_kernels import (
    DONE,
    emptied,
    heap_of,
    lists_of,
    lives,
    merge,
)
from headgate.ranking.intervals.scored import rank

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.core.arrays import Ints32
    from headgate.ranking.boxes.boxes import Boxes, BoxQuery, Combine
    from headgate.ranking.boxes.threshold_kernels import Flags
    from headgate.ranking.intervals.scored import Scored, ScoredIndex

    Structure = Callable[[Scored], ScoredIndex]

LEAST, MOST = 16, 4096
"""How many rows are taken from a walk at a time: few at first, twice as many each time."""


class Threshold:
    """One scored index a dimension, by weights."""

    def __init__(self, boxes: Boxes, dimensions: int, structure: Structure) -> None:
        self._boxes = boxes
        self._dimensions = dimensions
        self._indexes: list[ScoredIndex] = []
        self._rows: list[Ints32] = []
        order = np.argsort(boxes.dim, kind="stable")
        edges = np.searchsorted(boxes.dim[order], np.arange(dimensions + 1))
        row = boxes.row
        for dim in range(dimensions):
            entries = order[edges[dim] : edges[dim + 1]]
            scored = rank(boxes.low[entries], boxes.high[entries], boxes.weight[entries])
            self._indexes.append(structure(scored))
            self._rows.append(row[entries[scored.row]].astype(np.int32))

    def top(self, asked: BoxQuery, k: int, how: int, gone: Flags) -> RankedRows:
        """Find the best k. A factor of 0 drops a dimension: its walk is not begun."""
        dims = np.flatnonzero(asked.factor > 0).astype(np.int32)
        heap = heap_of(min(k, self._boxes.size))
        if not len(heap.value) or not len(dims):
            return emptied(heap)
        lists = lists_of(dims, self._dimensions, MOST)
        walks = [self._indexes[dim].walk(float(asked.x[dim]), float(asked.y[dim])) for dim in dims.tolist()]
        rows = [self._rows[dim] for dim in dims.tolist()]
        size = np.full(len(dims), LEAST)
        ranks = np.empty(MOST, np.int32)
        while (turn := merge(self._boxes, asked, how, lists, heap, gone)) != DONE:
            wanted = int(size[turn])
            size[turn] = min(2 * wanted, MOST)
            count = walks[turn].fill(ranks[:wanted])
            lists.rows[turn, :count] = rows[turn][ranks[:count]]
            lists.at[turn], lists.have[turn], lists.last[turn] = 0, count, count < wanted
        return emptied(heap)

    def top_any(self, asked: BoxQuery, k: int, combine: Combine, gone: Flags) -> RankedRows:
        """Find the best k by any combination that does not fall when a weight rises; in plain Python.

        `combine` is given one number a dimension, 0 where the interval does not hold. This is the algorithm
        as it is written down, and the slow twin of `top`.
        """
        reach = [np.inf if factor > 0 else 0.0 for factor in asked.factor.tolist()]
        walks = {
            dim: self._indexes[dim].walk(float(asked.x[dim]), float(asked.y[dim]))
            for dim in np.flatnonzero(asked.factor > 0).tolist()
        }
        met: set[int] = set()
        best: list[tuple[float, int]] = []
        while walks and k:
            for dim in list(walks):
                rank_ = walks[dim].next()
                if rank_ < 0:
                    del walks[dim]
                    reach[dim] = 0.0
                    continue
                row = int(self._rows[dim][rank_])
                values = held_values(self._boxes, row, asked)
                reach[dim] = values[dim]
                if row not in met and lives(gone, row):
                    item = combined(combine, values), -row
                    if len(best) < k:
                        heappush(best, item)
                    elif item > best[0]:
                        heapreplace(best, item)
                met.add(row)
            if len(best) == k and np.isfinite(reach).all() and combined(combine, reach) < best[0][0]:
                break
        rows = np.array([-below for _, below in best], np.int64)
        return RankedRows(rows, np.array([value for value, _ in best], np.float64)).ordered()


def held_values(boxes: Boxes, row: int, asked: BoxQuery) -> list[float]:
    """Return what holds of a box: one number a dimension, 0 where nothing does."""
    values = [0.0] * len(asked.x)
    for entry in range(int(boxes.start[row]), int(boxes.start[row + 1])):
        dim = int(boxes.dim[entry])
        if boxes.low[entry] <= asked.x[dim] and boxes.high[entry] >= asked.y[dim]:
            values[dim] = float(boxes.weight[entry]) * float(asked.factor[dim])
    return values


def combined(combine: Combine, values: list[float]) -> float:
    """Combine values; refuses what nothing can be ordered by."""
    value: object = combine(values)
    number = double(value)
    if number is None or np.isnan(number):
        raise EventError(f"the combination of {values} is {value!r}: return a number")
    return number
