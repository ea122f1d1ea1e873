"""Hot loops that walk an IR-tree: a cursor for each node that may hold answers, and a heap of the cursors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.ranking.intervals.ir_arrays import (
    BEST,
    HEIGHT,
    LEFT,
    LEVELS,
    PATH,
    RIGHT,
    ROOT,
    IrArrays,
    before,
    key_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    Ints = NDArray[np.int32]

_ITEM, _KNOWN, _LEVEL, _TOP, _BLOCK = range(5)
_PLACE = _BLOCK + LEVELS
_WIDTH = _PLACE + LEVELS
"""Fields of a cursor: its item, and whether that is its next answer (else the next one is no better); the
level where it stands, and the highest one; block and place on each level."""


class Cursors(NamedTuple):
    """One cursor for each node that may hold answers, and a heap of them.

    heap[0] says how many are in it, -1 before the walk begins.
    """

    heap: Ints
    cursor: Ints
    key: NDArray[np.float64]
    stack: Ints


def room_for(t: IrArrays, one_way: bool) -> Cursors:
    """Make room for a walk down one path, or through all nodes."""
    count = PATH if one_way else len(t.centre)
    heap = np.empty(count + 1, np.int32)
    heap[0] = -1
    return Cursors(
        heap, np.empty((count, _WIDTH), np.int32), np.empty(count, np.float64), np.empty(PATH, np.int32)
    )


@bare_inner
def _first(t: IrArrays, w: Cursors, a: int, b: int) -> bool:
    if w.key[a] != w.key[b]:
        return bool(w.key[a] > w.key[b])
    return before(t, w.cursor[a, _ITEM], w.cursor[b, _ITEM])


@bare_inner
def _rise(t: IrArrays, w: Cursors, c: int) -> None:
    at = w.heap[0]
    while at > 1 and _first(t, w, c, w.heap[at >> 1]):
        w.heap[at] = w.heap[at >> 1]
        at >>= 1
    w.heap[at] = c


@bare_inner
def _sink(t: IrArrays, w: Cursors, c: int) -> None:
    """Put a cursor on top of the heap, or further down."""
    at, size = 1, w.heap[0]
    while 2 * at <= size:
        below = 2 * at
        if below < size and _first(t, w, w.heap[below + 1], w.heap[below]):
            below += 1
        if not _first(t, w, w.heap[below], c):
            break
        w.heap[at] = w.heap[below]
        at = below
    w.heap[at] = c


@bare_inner
def _open(t: IrArrays, w: Cursors, node: int) -> None:
    """Begin with the R-tree of a node. Until that is searched, its best item bounds what it can give."""
    if t.node[node, ROOT] < 0:
        return
    c = w.heap[0]
    w.heap[0] = c + 1
    height = t.node[node, HEIGHT]
    item = t.node[node, BEST]
    w.cursor[c, _ITEM] = item
    w.cursor[c, _KNOWN] = 0
    w.cursor[c, _LEVEL] = height
    w.cursor[c, _TOP] = height
    w.cursor[c, _BLOCK + height] = t.node[node, ROOT]
    w.cursor[c, _PLACE + height] = 0
    w.key[c] = key_of(t, item)
    _rise(t, w, c)


@bare_inner
def _begin(t: IrArrays, w: Cursors, x: float, y: float) -> None:
    """Find the nodes that may hold intervals with low <= x and high >= y.

    All in the left subtree end below the centre, all in the right one begin above it. A point, or an event
    that must lie within, goes one way or stops; one that must overlap may go both.
    """
    w.heap[0] = 0
    w.stack[0] = 0
    top = 1
    while top > 0:
        top -= 1
        node = w.stack[top]
        while node >= 0:
            _open(t, w, node)
            centre, left, right = t.centre[node], -1, -1
            if y < centre:
                left = t.node[node, LEFT]
            if x > centre:
                right = t.node[node, RIGHT]
            if left >= 0 and right >= 0:
                w.stack[top] = right
                top += 1
                node = left
            else:
                node = max(left, right)


@bare_inner
def _advance(t: IrArrays, w: Cursors, c: int, x: float, y: float) -> int:
    """Find the next item of a cursor, or -1: from left to right, into blocks whose extent allows it."""
    level = w.cursor[c, _LEVEL]
    block = w.cursor[c, _BLOCK + level]
    j = w.cursor[c, _PLACE + level]
    height = w.cursor[c, _TOP]
    while True:
        size = t.size[block]
        while j < size and not (t.ends[block, 0, j] <= x and t.ends[block, 1, j] >= y):
            j += 1
        if j < size:
            ref = t.ref[block, j]
            w.cursor[c, _PLACE + level] = j + 1
            if level == 0:
                w.cursor[c, _LEVEL] = 0
                return int(ref)
            level -= 1
            block, j = ref, 0
            w.cursor[c, _BLOCK + level] = block
        elif level == height:
            return -1
        else:
            level += 1
            block, j = w.cursor[c, _BLOCK + level], w.cursor[c, _PLACE + level]


@bare_inner
def walk_on(t: IrArrays, w: Cursors, x: float, y: float, out: Ints) -> int:
    """Write the next items until `out` is full; returns how many. Fewer means: the last.

    A cursor is searched when it is on top only, and after its answer was taken no sooner than for the next.
    """
    if w.heap[0] < 0:
        _begin(t, w, x, y)
    count = 0
    while count < len(out) and w.heap[0] > 0:
        c = w.heap[1]
        if w.cursor[c, _KNOWN]:
            out[count] = w.cursor[c, _ITEM]
            count += 1
            w.cursor[c, _KNOWN] = 0
            continue
        item = _advance(t, w, c, x, y)
        if item < 0:
            c = w.heap[w.heap[0]]
            w.heap[0] -= 1
            if w.heap[0] == 0:
                break
        else:
            w.cursor[c, _ITEM] = item
            w.cursor[c, _KNOWN] = 1
            w.key[c] = key_of(t, item)
        _sink(t, w, c)
    return count


@bare
def walk_some(t: IrArrays, w: Cursors, x: float, y: float, out: Ints) -> int:
    """Go on with one walk."""
    return walk_on(t, w, x, y, out)


@bare
def walk_many(t: IrArrays, w: Cursors, x: Floats, y: Floats, items: Ints, counts: NDArray[np.int64]) -> None:
    """Find the best of each of many questions, as many as there is room for."""
    for i in range(len(x)):
        w.heap[0] = -1
        counts[i] = walk_on(t, w, x[i], y[i], items[i])
