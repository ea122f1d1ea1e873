"""Boxes looked at one by one: what each is worth at most, and those that are worth enough.

Slower than columns where dimensions are few, but no room is taken for those that a box has no interval in,
and boxes that came later are looked at as they lie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.ranking.answers import RankedRows
from headgate.ranking.boxes.boxes import Boxes, take
from headgate.ranking.boxes.threshold_kernels import (
    BLOCK,
    EXACT,
    Heap,
    emptied,
    heap_of,
    lives,
    offer,
    worth,
)

if TYPE_CHECKING:
    from headgate.core.arrays import Floats64, Ints, Ints32
    from headgate.ranking.boxes.boxes import BoxQuery
    from headgate.ranking.boxes.threshold_kernels import Flags


class Lift(NamedTuple):
    """What turns a sum of weights into a bound of what factors make of it: sum * times * more + plus."""

    times: float
    more: float
    plus: float


def lift(asked: BoxQuery, how: int) -> Lift:
    """Find how far factors can lift a box above the sum of its weights.

    Without factors not at all. Products and their sums are rounded, so with factors a little is added: far
    more than the rounding of some thousand dimensions, and than the least number above 0.
    """
    if how == EXACT or bool((asked.factor == 1.0).all()):
        return Lift(1.0, 1.0, 0.0)
    return Lift(float(asked.factor.max()), 1 + 1e-9, 1e-300)


def bounds(boxes: Boxes, how: int) -> Floats64:
    """Return what each box is worth at most."""
    if how == EXACT:
        return boxes.score
    out = np.zeros(boxes.size)
    add_weights(boxes, out)
    return out


class RowScan:
    """Boxes in falling order of bounds."""

    def __init__(self, boxes: Boxes, how: int) -> None:
        bound = bounds(boxes, how)
        order = np.argsort(-bound, kind="stable")
        self._boxes, self._bound, self._row = take(boxes, order), bound[order], order.astype(np.int32)

    def top(self, asked: BoxQuery, k: int, how: int, gone: Flags) -> RankedRows:
        """Find the best k."""
        heap = heap_of(min(k, len(self._row)))
        if len(heap.value):
            best_rows(self._boxes, self._bound, self._row, asked, how, lift(asked, how), heap, gone)
        return emptied(heap)


def at_least(
    boxes: Boxes, bound: Floats64, asked: BoxQuery, how: int, floor: float, gone: Flags
) -> RankedRows:
    """List all rows that are worth `floor` or more."""
    row, value = np.empty(boxes.size, np.int64), np.empty(boxes.size)
    count = sift(boxes, bound, asked, how, lift(asked, how), floor, gone, row, value)
    return RankedRows(row[:count], value[:count]).ordered()


@bare
def add_weights(boxes: Boxes, out: Floats64) -> None:
    """Add up the weights of each box in the order of dimensions, as values are: no value is above it."""
    for row in range(len(out)):
        for entry in range(boxes.start[row], boxes.start[row + 1]):
            if boxes.low[entry] <= boxes.high[entry]:
                out[row] += boxes.weight[entry]


@bare_inner
def lifted(bound: float, rise: Lift) -> float:
    """Return what a box is worth at most, with factors."""
    return bound * rise.times * rise.more + rise.plus


@bare_inner
def beaten(heap: Heap, bound: float, row: int, rise: Lift) -> bool:
    """Tell whether neither a row nor one behind it can come among the best, which are all there."""
    if heap.size[0] < len(heap.value):
        return False
    most = lifted(bound, rise)
    return bool(most < heap.value[0] or (most == heap.value[0] and rise.plus == 0 and row > heap.row[0]))


@bare
def best_rows(
    boxes: Boxes,
    bound: Floats64,
    rows: Ints32,
    asked: BoxQuery,
    how: int,
    rise: Lift,
    heap: Heap,
    gone: Flags,
) -> None:
    """Find the best rows of boxes in falling order of bounds."""
    for at in range(len(rows)):
        if beaten(heap, bound[at], rows[at], rise):
            return
        value = worth(boxes, at, asked, how)
        if not np.isnan(value) and lives(gone, rows[at]):
            offer(heap, value, rows[at])


@bare
def sift(
    boxes: Boxes,
    bound: Floats64,
    asked: BoxQuery,
    how: int,
    rise: Lift,
    floor: float,
    gone: Flags,
    row: Ints,
    value: Floats64,
) -> int:
    """Write down the rows that are worth `floor` or more, in any order of bounds; returns how many.

    Bounds are compared first, and without branches: most rows of a tail cannot be among the best.
    """
    able = np.uint64(0)
    for begin in range(0, len(bound), BLOCK):
        first, end = np.uint64(begin), np.uint64(min(begin + BLOCK, len(bound)))
        some = False
        for at in range(first, end):
            some |= lifted(bound[at], rise) >= floor
        if some:
            for at in range(first, end):
                row[able] = at
                able += np.uint64(lifted(bound[at], rise) >= floor)
    kept = 0
    for i in range(np.int64(able)):
        one = row[i]
        if lives(gone, one):
            most = worth(boxes, one, asked, how)
            if most >= floor:
                row[kept], value[kept] = one, most
                kept += 1
    return kept
