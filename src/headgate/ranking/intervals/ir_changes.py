"""Hot loops that change an IR-tree in place: put an item into a node, take it out, keep the balance.

The R-tree of a node is a B+-tree over (score, order, number): first[block] is the best item under a block, by
which the way down is found. Extents are made anew on the way up, so they are exact after every change. A full
block is split; neighbours that fill at most three quarters of a block together are joined.

The skeleton is balanced by weight: no child has more than 7 tenths of the intervals of its parent, and a
subtree of half a block or less is a bucket. What breaks that is built anew, and has then at most half of
its intervals on either side: it takes a number of changes in proportion to its size until it breaks again.

What is read from arrays of 4 bytes is added to 0 here and there: callees are compiled for 8 bytes only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.jit import bare, bare_inner
from headgate.ranking.intervals.ir_arrays import (
    BEST,
    BUCKET,
    GONE,
    HEIGHT,
    LEFT,
    PARENT,
    RIGHT,
    ROOT,
    WEIGHT,
    before,
    cover,
    give_block,
    give_node,
    take_block,
    take_node,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from headgate.ranking.intervals.ir_arrays import IrArrays, Ledger

    Way = NDArray[np.int64]


@bare
def insert(t: IrArrays, c: Ledger, item: int, low: float, high: float, path: Way) -> int:
    """Put an interval into the first node whose centre it holds, or into a bucket.

    Returns the node to build anew, or -1. Nothing is freed here, so the pools must have room for a new node
    and a split on every level. `path` is the way down: block and place on each level.
    """
    node = 0
    while not t.node[node, BUCKET]:
        side = LEFT
        if low > t.centre[node]:
            side = RIGHT
        elif not high < t.centre[node]:
            break
        below = t.node[node, side]
        if below < 0:
            below = take_node(t, c, node)
            t.node[node, side] = below
        node = below
    _put(t, c, node, item, low, high, path)
    return _weigh(t, node, 1)


@bare
def delete(t: IrArrays, c: Ledger, item: int, path: Way) -> int:
    """Take an item out; returns the node to build anew, or -1."""
    node = 0 + c.home[item]
    _find(t, c, node, item, path)
    _take(t, c, node, path)
    c.home[item] = GONE
    anew = _weigh(t, node, -1)
    above = t.node[node, PARENT]
    if t.node[node, WEIGHT] == 0 and above >= 0:
        t.node[above, LEFT if t.node[above, LEFT] == node else RIGHT] = -1
        give_node(t, c, node)
    return anew


@bare
def move(t: IrArrays, c: Ledger, item: int, score: float, path: Way) -> None:
    """Give an item another score: it stays in its node."""
    node = 0 + c.home[item]
    _find(t, c, node, item, path)
    leaf, j = path[0, 0], path[0, 1]
    low, high = 0.0 + t.ends[leaf, 0, j], 0.0 + t.ends[leaf, 1, j]
    _take(t, c, node, path)
    t.score[item] = score
    _put(t, c, node, item, low, high, path)


@bare_inner
def _weigh(t: IrArrays, node: int, by: int) -> int:
    """Note that a node has one interval more or less; returns the highest node out of balance, or -1."""
    worst = -1
    while node >= 0:
        t.node[node, WEIGHT] += by
        if _unbalanced(t, node):
            worst = node
        node = t.node[node, PARENT]
    return worst


@bare_inner
def _unbalanced(t: IrArrays, node: int) -> bool:
    """Tell whether a bucket has too many intervals, another node too few, or one side of it too many."""
    weight, width = int(t.node[node, WEIGHT]), t.ref.shape[1]
    if t.node[node, BUCKET]:
        return bool(weight > width)
    heavier = 0
    for side in (LEFT, RIGHT):
        if t.node[node, side] >= 0:
            heavier = max(heavier, int(t.node[t.node[node, side], WEIGHT]))
    return bool(2 * weight <= width or 10 * heavier > 7 * weight)


@bare
def _find(t: IrArrays, c: Ledger, node: int, item: int, path: Way) -> None:
    """Find the way to the place of an item in the R-tree of a node, where it is or would be."""
    block = t.node[node, ROOT]
    for level in range(t.node[node, HEIGHT], 0, -1):
        j, last = 0, t.size[block] - 1
        while j < last:
            middle = (j + last + 1) >> 1
            if before(t, item, c.first[t.ref[block, middle]]):
                last = middle - 1
            else:
                j = middle
        path[level, 0], path[level, 1] = block, j
        block = t.ref[block, j]
    j, stop = 0, t.size[block]
    while j < stop:
        middle = (j + stop) >> 1
        if before(t, t.ref[block, middle], item):
            j = middle + 1
        else:
            stop = middle
    path[0, 0], path[0, 1] = block, j


@bare
def _put(t: IrArrays, c: Ledger, node: int, item: int, low: float, high: float, path: Way) -> None:
    """Put an item into the R-tree of a node, splitting what is full."""
    c.home[item] = node
    if t.node[node, ROOT] < 0:
        t.node[node, ROOT] = take_block(t, c)
    _find(t, c, node, item, path)
    block = path[0, 0]
    more, at, place = _make_room(t, c, block, path[0, 1])
    t.ref[at, place] = item
    t.ends[at, 0, place], t.ends[at, 1, place] = low, high
    _note_first(t, c, block, more, 0)
    height = t.node[node, HEIGHT]
    for level in range(1, height + 1):
        above, j = path[level, 0], path[level, 1]
        cover(t, above, j, block)
        split = more
        if split >= 0:
            more, at, place = _make_room(t, c, above, j + 1)
            cover(t, at, place, split)
        _note_first(t, c, above, more, level)
        block = above
    if more >= 0:
        root = take_block(t, c)
        for j in range(2):
            cover(t, root, j, more if j else block)
        t.size[root] = 2
        c.first[root] = c.first[block]
        t.node[node, ROOT] = root
        t.node[node, HEIGHT] = height + 1
    t.node[node, BEST] = c.first[block]


@bare
def _make_room(t: IrArrays, c: Ledger, block: int, place: int) -> tuple[int, int, int]:
    """Make room for one entry, in a new block too if need be; returns that or -1, and where the room is.

    What goes to the end of a full block gets a new one alone: entries that come in order leave full blocks.
    """
    width, more, at = t.ref.shape[1], -1, block
    if t.size[block] == width:
        more = take_block(t, c)
        cut = width if place == width else width // 2
        for i in range(cut, width):
            _copy(t, block, i, more, i - cut)
        t.size[block], t.size[more] = cut, width - cut
        if place >= cut:
            at, place = more, place - cut
    for i in range(t.size[at], place, -1):
        _copy(t, at, i - 1, at, i)
    t.size[at] += 1
    return more, at, place


@bare
def _take(t: IrArrays, c: Ledger, node: int, path: Way) -> None:
    """Take the entry at the end of a way out of the R-tree of a node; empty blocks go."""
    block, height = path[0, 0], t.node[node, HEIGHT]
    _drop(t, block, path[0, 1])
    for level in range(1, height + 1):
        above, j = path[level, 0], path[level, 1]
        if t.size[block] == 0:
            give_block(t, c, block)
            _drop(t, above, j)
        else:
            _note_first(t, c, block, -1, level - 1)
            cover(t, above, j, block)
            _join(t, c, above, j)
        block = above
    if t.size[block] == 0:
        give_block(t, c, block)
        t.node[node, ROOT] = t.node[node, BEST] = -1
        t.node[node, HEIGHT] = 0
        return
    while height > 0 and t.size[block] == 1:
        below = t.ref[block, 0]
        give_block(t, c, block)
        block = below
        height -= 1
    _note_first(t, c, block, -1, height)
    t.node[node, ROOT], t.node[node, HEIGHT], t.node[node, BEST] = block, height, c.first[block]


@bare_inner
def _join(t: IrArrays, c: Ledger, above: int, j: int) -> None:
    """Join entry j of a block with one beside it, if both are small."""
    for i in range(max(j - 1, 0), min(j + 1, t.size[above] - 1)):
        block, beside = 0 + t.ref[above, i], 0 + t.ref[above, i + 1]
        size, more = t.size[block], t.size[beside]
        if 4 * (size + more) <= 3 * t.ref.shape[1]:
            for k in range(more):
                _copy(t, beside, k, block, size + k)
            t.size[block] = size + more
            give_block(t, c, beside)
            _drop(t, above, i + 1)
            cover(t, above, i, block)
            return


@bare
def _drop(t: IrArrays, block: int, j: int) -> None:
    t.size[block] -= 1
    for i in range(j, t.size[block]):
        _copy(t, block, i + 1, block, i)


@bare_inner
def _copy(t: IrArrays, block: int, i: int, other: int, j: int) -> None:
    t.ref[other, j] = t.ref[block, i]
    t.ends[other, 0, j] = t.ends[block, 0, i]
    t.ends[other, 1, j] = t.ends[block, 1, i]


@bare_inner
def _note_first(t: IrArrays, c: Ledger, block: int, more: int, level: int) -> None:
    c.first[block] = t.ref[block, 0] if level == 0 else c.first[t.ref[block, 0]]
    if more >= 0:
        c.first[more] = t.ref[more, 0] if level == 0 else c.first[t.ref[more, 0]]
