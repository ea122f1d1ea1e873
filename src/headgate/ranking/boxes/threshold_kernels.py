"""Hot loops over boxes: what a box is worth to an event, the best k so far, and the Threshold Algorithm."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.heaps import put
from headgate.core.jit import bare, bare_inner
from headgate.ranking.answers import RankedRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.ranking.boxes.boxes import Boxes, BoxQuery

    Flags = NDArray[np.uint8]
    """Which rows are gone; empty if none is."""

EXACT, SUM, MAX = range(3)
"""What a box is worth: its score if all intervals hold; the sum or the highest of the weights that hold."""
BLOCK = 64
DONE = -1


class Heap(NamedTuple):
    """The best rows so far, as many as there is room for; the worst of them on top."""

    value: NDArray[np.float64]
    row: NDArray[np.int64]
    size: NDArray[np.int64]


def heap_of(k: int) -> Heap:
    """Make room for the best k."""
    return Heap(np.empty(k, np.float64), np.empty(k, np.int64), np.zeros(1, np.int64))


def emptied(heap: Heap) -> RankedRows:
    """Return what is in a heap, in order."""
    size = int(heap.size[0])
    return RankedRows(heap.row[:size], heap.value[:size]).ordered()


class Lists(NamedTuple):
    """The lists that the Threshold Algorithm reads, in the order of dimensions, a part of each at a time.

    dim[i]           the dimension of list i; list[dim] is the way back, -1 for a dimension without a list
    rows[i, at[i]]   the next row of list i, if at[i] < have[i]
    last[i]          1 if what the list has is its end
    weight[i]        the weight of the row read last, row[i]; infinite before the first
    reach[i]         what list i may add to a row not seen yet: 0 after its end
    turn[0]          the list to go on with
    """

    dim: NDArray[np.int32]
    list: NDArray[np.int32]
    rows: NDArray[np.int32]
    at: NDArray[np.int64]
    have: NDArray[np.int64]
    last: NDArray[np.uint8]
    weight: NDArray[np.float64]
    row: NDArray[np.int64]
    reach: NDArray[np.float64]
    turn: NDArray[np.int64]


def lists_of(dims: NDArray[np.int32], dimensions: int, room: int) -> Lists:
    """Make lists of which nothing is read yet."""
    count = len(dims)
    back = np.full(dimensions, -1, np.int32)
    back[dims] = np.arange(count)
    return Lists(
        dims,
        back,
        np.empty((count, room), np.int32),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.uint8),
        np.full(count, np.inf),
        np.full(count, -1, np.int64),
        np.full(count, np.inf),
        np.zeros(1, np.int64),
    )


@bare_inner
def lives(gone: Flags, row: int) -> bool:
    """Tell whether a row is there."""
    return len(gone) == 0 or gone[row] == 0


@bare_inner
def worth(boxes: Boxes, row: int, asked: BoxQuery, how: int) -> float:
    """Return what a box is worth, NaN if it does not match. Weights add up in the order of dimensions."""
    value, held = 0.0, False
    for entry in range(boxes.start[row], boxes.start[row + 1]):
        dim = boxes.dim[entry]
        if boxes.low[entry] <= asked.x[dim] and boxes.high[entry] >= asked.y[dim]:
            if how != EXACT and asked.factor[dim] > 0:
                held = True
                part = boxes.weight[entry] * asked.factor[dim]
                value = max(value, part) if how == MAX else value + part
        elif how == EXACT:
            return np.nan
    if how == EXACT:
        return float(boxes.score[row])
    return value if held else np.nan


@bare_inner
def offer(heap: Heap, value: float, row: int) -> None:
    """Put a row among the best if it is one of them. The heap has room for one at least."""
    heap.size[0] = put(heap.value, heap.row, heap.size[0], value, row)


@bare_inner
def ceiling(reach: NDArray[np.float64], how: int) -> float:
    """Return the threshold: no row that is not seen yet is worth more."""
    value = 0.0
    for part in reach:
        value = max(value, part) if how == MAX else value + part
    return value


@bare_inner
def first_sight(boxes: Boxes, row: int, asked: BoxQuery, lists: Lists, turn: int, how: int) -> float:
    """Return what a row is worth that was read from a list, NaN if another list had it before.

    Lists are in falling order of weights, then in rising order of rows. So the row read last tells which of
    the rows that hold were read, and no marks are needed.
    """
    value = 0.0
    for entry in range(boxes.start[row], boxes.start[row + 1]):
        dim = boxes.dim[entry]
        other = lists.list[dim]
        if other >= 0 and boxes.low[entry] <= asked.x[dim] and boxes.high[entry] >= asked.y[dim]:
            weight = boxes.weight[entry]
            if other == turn:
                lists.weight[turn] = weight
                lists.row[turn] = row
                lists.reach[turn] = weight * asked.factor[dim]
            elif weight > lists.weight[other] or (weight == lists.weight[other] and row <= lists.row[other]):
                value = np.nan
            part = weight * asked.factor[dim]
            if how == SUM:
                value += part
            elif part > value:
                value = part
    return value


@bare_inner
def finished(asked: BoxQuery, how: int, lists: Lists, heap: Heap) -> bool:
    """Tell whether no row that is not seen yet can be among the best.

    Sums are rounded, and rounding keeps order: the threshold, added up as the values are, is never below one
    that is still to come. A row that would only tie may have the smaller id, so a tie is not the end. It is
    one if values are single weights: then a row that ties is in a list of such weights, behind the last row.
    """
    if heap.size[0] < len(heap.value):
        return False
    most = ceiling(lists.reach, how)
    if most != heap.value[0] or how != MAX:
        return bool(most < heap.value[0])
    for i in range(len(lists.dim)):
        if lists.reach[i] == most and (asked.factor[lists.dim[i]] != 1.0 or lists.row[i] < heap.row[0]):
            return False
    return True


@bare
def merge(boxes: Boxes, asked: BoxQuery, how: int, lists: Lists, heap: Heap, gone: Flags) -> int:
    """Read the lists in turn until one has nothing left to read, and return it; DONE at the end."""
    count, ended = len(lists.dim), 0
    turn = lists.turn[0]
    while ended < count:
        if lists.at[turn] == lists.have[turn]:
            if not lists.last[turn]:
                lists.turn[0] = turn
                return int(turn)
            lists.reach[turn] = 0.0
            ended += 1
        else:
            ended = 0
            row = lists.rows[turn, lists.at[turn]]
            lists.at[turn] += 1
            value = first_sight(boxes, row, asked, lists, turn, how)
            if value >= 0 and lives(gone, row):
                offer(heap, value, row)
        if finished(asked, how, lists, heap):
            return DONE
        turn = turn + 1 if turn + 1 < count else 0
    return DONE
