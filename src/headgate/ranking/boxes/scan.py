"""Scans: boxes in falling order of what they can be worth at most, until no other can be among the best.

    bound    9.5  9.5  9.1  …        a score (exact), or the sum of all weights (relaxed)
    row      17   40   3    …        equal bounds in rising order of rows
    low[d]   …                       one column a dimension, in blocks of 64 rows

A block of rows is looked at together, dimension by dimension, without branches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.ranking.boxes.ends import narrowed, narrowest
from headgate.ranking.boxes.rows import Lift, beaten, bounds, lift
from headgate.ranking.boxes.threshold_kernels import (
    BLOCK,
    EXACT,
    MAX,
    SUM,
    Alive,
    Heap,
    Rows,
    emptied,
    heap_of,
    lives,
    offer,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.ranking.boxes.boxes import Boxes, BoxQuery

    Floats = NDArray[np.floating[Any]]

_LENGTH = np.uint64(BLOCK)


class Slab(NamedTuple):
    """Boxes as columns, ends narrow where they fit; rows that fill the last block never hold."""

    low: Floats
    high: Floats
    weight: NDArray[np.float64]
    bound: NDArray[np.float64]
    row: NDArray[np.int32]


class SlabScan:
    """Columns in falling order of bounds."""

    def __init__(self, boxes: Boxes, dimensions: int, how: int) -> None:
        bound = bounds(boxes, how)
        order = np.argsort(-bound, kind="stable")
        place = np.empty(boxes.size, np.int64)
        place[order] = np.arange(boxes.size)
        shape = (dimensions, -(-boxes.size // BLOCK) * BLOCK)
        # Where a box has no interval, anything holds if all must hold, and nothing if any may.
        ends = (-np.inf, np.inf) if how == EXACT else (np.inf, -np.inf)
        kind = narrowest(boxes.low, boxes.high)
        low, high = np.full(shape, ends[0], kind), np.full(shape, ends[1], kind)
        low[:, boxes.size :], high[:, boxes.size :] = np.inf, -np.inf
        at = boxes.dim, place[boxes.row]
        low[at], high[at] = boxes.low, boxes.high
        weight = np.zeros((dimensions, 0) if how == EXACT else shape)
        if how != EXACT:
            weight[at] = boxes.weight
        self._slab = Slab(low, high, weight, bound[order], order.astype(np.int32))

    @property
    def nbytes(self) -> int:
        """Count the bytes of the columns."""
        return sum(column.nbytes for column in self._slab)

    def top(self, asked: BoxQuery, k: int, how: int, alive: Alive) -> Rows:
        """Find the best k."""
        x, y = narrowed(asked.x, asked.y, self._slab.low.dtype.type)
        heap = heap_of(min(k, len(self._slab.row)))
        if not len(heap.value):
            return emptied(heap)
        if how == EXACT:
            slab_exact(self._slab, x, y, np.empty(BLOCK, np.uint8), heap, alive)
            size = int(heap.size[0])
            return Rows(heap.value[:size], heap.row[:size])
        slab_relaxed(self._slab, x, y, asked.factor, how, lift(asked, how), np.empty(BLOCK), heap, alive)
        return emptied(heap)


@bare
def slab_exact(slab: Slab, x: Floats, y: Floats, mask: NDArray[np.uint8], heap: Heap, alive: Alive) -> None:
    """Find the first rows of which every interval holds; the order of the slab is that of the answer."""
    count, room = 0, len(heap.value)
    for block in range(slab.low.shape[1] // BLOCK):
        first = np.uint64(block * BLOCK)
        if all_hold(slab.low, slab.high, first, x, y, mask):
            for j in range(BLOCK):
                if mask[j]:
                    at = block * BLOCK + j
                    row = slab.row[at]
                    if lives(alive, row):
                        heap.value[count] = slab.bound[at]
                        heap.row[count] = row
                        count += 1
                        if count == room:
                            heap.size[0] = count
                            return
    heap.size[0] = count


@bare_inner
def all_hold(
    low: Floats, high: Floats, first: np.uint64, x: Floats, y: Floats, mask: NDArray[np.uint8]
) -> bool:
    """Mark the rows of a block of which every interval holds; tells whether there is one."""
    for j in range(_LENGTH):
        mask[j] = (low[0, first + j] <= x[0]) & (high[0, first + j] >= y[0])
    for dim in range(np.uint64(1), np.uint64(len(low))):
        for j in range(_LENGTH):
            mask[j] &= (low[dim, first + j] <= x[dim]) & (high[dim, first + j] >= y[dim])
    any_one = np.uint8(0)
    for j in range(_LENGTH):
        any_one |= mask[j]
    return bool(any_one != 0)


@bare
def slab_relaxed(
    slab: Slab,
    x: Floats,
    y: Floats,
    factor: NDArray[np.float64],
    how: int,
    rise: Lift,
    value: NDArray[np.float64],
    heap: Heap,
    alive: Alive,
) -> None:
    """Find the best rows of which any interval holds."""
    for block in range(slab.low.shape[1] // BLOCK):
        begin = block * BLOCK
        if beaten(heap, slab.bound[begin], slab.row[begin], rise):
            return
        for j in range(_LENGTH):
            value[j] = 0.0
        for dim in range(np.uint64(len(factor))):
            if factor[dim] > 0:
                add_dimension(slab, dim, np.uint64(begin), x[dim], y[dim], factor[dim], how, value)
        least = heap.value[0] if heap.size[0] == len(heap.value) else 0.0
        reached = False
        for j in range(_LENGTH):
            reached |= value[j] >= least
        if not reached:
            continue
        for j in range(min(BLOCK, len(slab.row) - begin)):
            # Only where nothing counts it is not clear yet whether anything holds.
            if value[j] >= least and (value[j] > 0 or any_holds(slab, begin + j, x, y, factor)):
                row = slab.row[begin + j]
                if lives(alive, row):
                    offer(heap, value[j], row)


@bare_inner
def any_holds(slab: Slab, at: int, x: Floats, y: Floats, factor: NDArray[np.float64]) -> bool:
    """Tell whether any interval of a row holds in a dimension that is not dropped."""
    for dim in range(len(factor)):
        if factor[dim] > 0 and slab.low[dim, at] <= x[dim] and slab.high[dim, at] >= y[dim]:
            return True
    return False


@bare_inner
def add_dimension(
    slab: Slab,
    dim: int | np.uint64,
    first: np.uint64,
    x: float,
    y: float,
    factor: float,
    how: int,
    value: NDArray[np.float64],
) -> None:
    """Add what holds in one dimension to the values of a block."""
    if how == SUM:
        for j in range(_LENGTH):
            holds = (slab.low[dim, first + j] <= x) & (slab.high[dim, first + j] >= y)
            value[j] += slab.weight[dim, first + j] * factor if holds else 0.0
    elif how == MAX:
        for j in range(_LENGTH):
            holds = (slab.low[dim, first + j] <= x) & (slab.high[dim, first + j] >= y)
            value[j] = max(value[j], slab.weight[dim, first + j] * factor if holds else 0.0)
