"""Build an IR-tree, or a subtree of one anew: plan the skeleton, then pack the blocks.

Planning parts the intervals at the median of their ends, so that at most half of them are wholly on either
side, and arranges them:

    places    [ own | left subtree ............ | right subtree ........ ]
                      [ own | left | right ]      [ own | left | right ]

Each part keeps the order of scores, so packing is a copy. All blocks are full but the last of each level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.ranking.intervals.ir_arrays import (
    BEST,
    BUCKET,
    HEIGHT,
    LEFT,
    LEVELS,
    NODES,
    PARENT,
    PATH,
    RIGHT,
    ROOT,
    WEIGHT,
    cover,
    empty_node,
    give_block,
    give_node,
    take_block,
    take_node,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.ranking.intervals.ir_arrays import IrArrays, Ledger

    Floats = NDArray[np.floating[Any]]
    Ints = NDArray[np.int32]

START, OWN, STOP, ABOVE, SIDE, NODE = range(6)
"""Fields of a step of the plan: its intervals are at places START to STOP, those of its own before OWN; the
step whose subtree it is, and which one; the node that it became."""


class Plan(NamedTuple):
    """Steps, those above before those below; places[i] is the i-th interval in the arrangement."""

    step: Ints
    centre: Floats
    places: Ints
    spare: Ints
    ends: Floats


def plan_room(count: int, width: int, kind: type[np.floating[Any]]) -> Plan:
    """Make room to plan for some intervals in blocks of `width`.

    A step that is parted has more than `width` intervals, its parts at most half of its own: at most
    2 * count / width steps are parted.
    """
    steps = 4 * count // width + 1
    return Plan(
        np.empty((steps, 6), np.int32),
        np.empty(steps, kind),
        np.arange(count, dtype=np.int32),
        np.empty(count, np.int32),
        np.empty(2 * count, kind),
    )


@bare_inner
def _select(a: Floats, stop: int, k: int) -> float:
    """Find the k-th smallest of the first numbers, moving them about."""
    low, high, state = 0, stop - 1, 12345
    while low < high:
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        pivot = a[low + state % (high - low + 1)]
        i, j = low, high
        while i <= j:
            while a[i] < pivot:
                i += 1
            while pivot < a[j]:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return float(a[k])


@bare
def make_plan(p: Plan, low: Floats, high: Floats, width: int) -> int:
    """Plan the skeleton of intervals that are in falling order; returns the number of steps."""
    p.step[0, START], p.step[0, STOP] = 0, len(low)
    p.step[0, ABOVE], p.step[0, SIDE] = -1, LEFT
    steps, at = 1, 0
    while at < steps:
        start, stop = p.step[at, START], p.step[at, STOP]
        count = stop - start
        if count <= width:
            p.step[at, OWN] = stop
            at += 1
            continue
        for i in range(count):
            p.ends[i] = low[p.places[start + i]]
            p.ends[count + i] = high[p.places[start + i]]
        centre = _select(p.ends, 2 * count, count)
        p.centre[at] = centre
        # Those above the centre go to the end of the spare room, turned around.
        own, left, right = start, 0, count
        for i in range(start, stop):
            place = p.places[i]
            if high[place] < centre:
                p.spare[left] = place
                left += 1
            elif low[place] > centre:
                right -= 1
                p.spare[right] = place
            else:
                p.places[own] = place
                own += 1
        for i in range(left):
            p.places[own + i] = p.spare[i]
        for i in range(count - right):
            p.places[own + left + i] = p.spare[count - 1 - i]
        p.step[at, OWN] = own
        if left > 0:
            steps = _add_step(p, steps, at, LEFT, own, own + left)
        if right < count:
            steps = _add_step(p, steps, at, RIGHT, own + left, stop)
        at += 1
    return steps


@bare_inner
def _add_step(p: Plan, steps: int, above: int, side: int, start: int, stop: int) -> int:
    p.step[steps, START] = start
    p.step[steps, STOP] = stop
    p.step[steps, ABOVE] = above
    p.step[steps, SIDE] = side
    return steps + 1


def blocks_of(plan: Plan, steps: int, width: int) -> int:
    """Count the blocks that a plan takes."""
    level = (plan.step[:steps, OWN] - plan.step[:steps, START]).astype(np.int64)
    total = 0
    while len(level):
        level = -(-level // width)
        total += int(level.sum())
        level = level[level > 1]
    return total


@bare
def pack(
    t: IrArrays, c: Ledger, p: Plan, steps: int, items: Ints, low: Floats, high: Floats, top: int
) -> None:
    """Make nodes and blocks of a plan; node `top` becomes its first step. The intervals are items[place]."""
    for at in range(steps):
        start, own, stop = p.step[at, START], p.step[at, OWN], p.step[at, STOP]
        node = top
        if at == 0:
            empty_node(t, top, t.node[top, PARENT])
        else:
            above = p.step[p.step[at, ABOVE], NODE]
            node = take_node(t, c, above)
            t.node[above, p.step[at, SIDE]] = node
        p.step[at, NODE] = node
        t.node[node, WEIGHT] = stop - start
        if stop - start > t.ref.shape[1]:
            t.node[node, BUCKET] = 0
            t.centre[node] = p.centre[at]
        if own > start:
            t.node[node, BEST] = items[p.places[start]]
            _pack_leaves(t, c, p, start, own, items, low, high, node)
            _pack_inner(t, c, p, -(-(own - start) // t.ref.shape[1]), node)


@bare_inner
def _pack_leaves(
    t: IrArrays, c: Ledger, p: Plan, start: int, own: int, items: Ints, low: Floats, high: Floats, node: int
) -> None:
    width, block, blocks = t.ref.shape[1], -1, 0
    for i in range(start, own):
        j = (i - start) % width
        place = p.places[i]
        item = items[place]
        if j == 0:
            block = take_block(t, c)
            p.spare[blocks] = block
            blocks += 1
            if len(c.first):
                c.first[block] = item
        t.ref[block, j] = item
        t.ends[block, 0, j] = low[place]
        t.ends[block, 1, j] = high[place]
        t.size[block] = j + 1
        if len(c.home):
            c.home[item] = node


@bare_inner
def _pack_inner(t: IrArrays, c: Ledger, p: Plan, blocks: int, node: int) -> None:
    """Put levels above the leaves, which are noted in the spare room, until one block is above all."""
    width, height = t.ref.shape[1], 0
    while blocks > 1:
        above, block = 0, -1
        for i in range(blocks):
            j = i % width
            if j == 0:
                block = take_block(t, c)
                if len(c.first):
                    c.first[block] = c.first[p.spare[i]]
            cover(t, block, j, 0 + p.spare[i])
            t.size[block] = j + 1
            if j == 0:
                p.spare[above] = block
                above += 1
        blocks = above
        height += 1
    t.node[node, ROOT] = p.spare[0]
    t.node[node, HEIGHT] = height


def clear_room(width: int) -> Ints:
    """Make a stack for the nodes and blocks of a subtree that may wait at one time, with their levels."""
    return np.empty((PATH + LEVELS * width, 2), np.int32)


@bare
def clear(t: IrArrays, c: Ledger, top: int, items: Ints, low: Floats, high: Floats, stack: Ints) -> None:
    """Take all intervals out of a subtree, in no order, and free what it used, except for node `top`."""
    count, waiting = 0, 1
    stack[0, 0], stack[0, 1] = top, -1
    while waiting > 0:
        waiting -= 1
        which, level = stack[waiting, 0], stack[waiting, 1]
        if level < 0:
            for side in (LEFT, RIGHT):
                if t.node[which, side] >= 0:
                    stack[waiting, 0], stack[waiting, 1] = t.node[which, side], -1
                    waiting += 1
            if t.node[which, ROOT] >= 0:
                stack[waiting, 0], stack[waiting, 1] = t.node[which, ROOT], t.node[which, HEIGHT]
                waiting += 1
            if which != top:
                give_node(t, c, which)
            continue
        for j in range(t.size[which]):
            if level > 0:
                stack[waiting, 0], stack[waiting, 1] = t.ref[which, j], level - 1
                waiting += 1
            else:
                items[count] = t.ref[which, j]
                low[count], high[count] = t.ends[which, 0, j], t.ends[which, 1, j]
                count += 1
        give_block(t, c, which)


@bare
def note_items(t: IrArrays, c: Ledger, stack: Ints) -> None:
    """Note the node of each item, and the best item under each block."""
    for node in range(c.heads[NODES]):
        if t.node[node, WEIGHT] < 0 or t.node[node, ROOT] < 0:
            continue
        stack[0, 0], stack[0, 1] = t.node[node, ROOT], t.node[node, HEIGHT]
        waiting = 1
        while waiting > 0:
            waiting -= 1
            block, level = stack[waiting, 0], stack[waiting, 1]
            leaf = block
            for _ in range(level):
                leaf = t.ref[leaf, 0]
            c.first[block] = t.ref[leaf, 0]
            for j in range(t.size[block]):
                if level > 0:
                    stack[waiting, 0], stack[waiting, 1] = t.ref[block, j], level - 1
                    waiting += 1
                else:
                    c.home[t.ref[block, j]] = node
