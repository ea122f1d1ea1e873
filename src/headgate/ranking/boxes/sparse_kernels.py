"""Hot loops of sparse relaxed matching: stab a tier's lists, add up, look at rows that have enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.bits import lowest, place_of
from headgate.core.heaps import put, sort_best
from headgate.core.jit import bare, bare_inner
from headgate.ranking.boxes.sparse_build import BLOCK, Boxes, Lists, cell_of
from headgate.ranking.filters.sums_kernels import (
    BEFORE,
    LARGEST,
    MANY,
    NO_PLACES,
    PLACE,
    PLACE_BITS,
    clear,
    need_of_tier,
    next_row,
    scaled,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Floats, Floats64, Ints, Ints32, Words
    from headgate.ranking.answers import Answers
    from headgate.ranking.filters.sums import Tiers

    Parts = NDArray[np.uint16]

BATCH = 256
"""Blocks that are read before what holds in them is added."""

_LENGTH, _HALF = np.uint64(BLOCK), np.uint64(BLOCK // 2)


class SparseQuery(NamedTuple):
    """One question for each attribute, factors, those in parts of WHOLE, and which rows are out, if any."""

    x: Floats
    y: Floats
    factor: Floats64
    scale: Ints
    reach: float
    removed: Bytes


class ListBuffers(NamedTuple):
    """Room for one question: sums of a tier, attributes to be asked with the cells of x and y, and a batch.

    A batch is some blocks in which intervals may hold: the first entry, how many entries from there on are of
    the same list, which attribute, and which entries hold. `touched` keeps reads from being optimised away.
    """

    sums: Parts
    attribute: Ints32
    x: Bytes
    y: Bytes
    at: Ints
    length: Ints
    asks: Ints32
    held: Words
    touched: Words


def make_desk(attributes: int) -> ListBuffers:
    """Make room for questions about so many attributes."""
    return ListBuffers(
        sums=np.empty(LARGEST, np.uint16),
        attribute=np.empty(attributes, np.int32),
        x=np.empty(attributes, np.uint8),
        y=np.empty(attributes, np.uint8),
        at=np.empty(BATCH, np.int64),
        length=np.empty(BATCH, np.int64),
        asks=np.empty(BATCH, np.int32),
        held=np.empty(BATCH, np.uint64),
        touched=np.zeros(1, np.uint64),
    )


@bare_inner
def holding(low: Bytes, high: Bytes, first: int, count: int, x: int, y: int) -> np.uint64:
    """Mark which of up to a block of intervals hold; behind those to be marked there is room to read."""
    at, word = np.uint64(first), np.uint64(0)
    for j in range(_LENGTH):
        word |= np.uint64((low[at + j] <= x) & (high[at + j] >= y)) << j
    if count < BLOCK:
        word &= (np.uint64(1) << np.uint64(count)) - np.uint64(1)
    return word


@bare_inner
def add_batch(lists: Lists, query: SparseQuery, scratch: ListBuffers, count: int) -> None:
    """Add the parts of the intervals of a batch that hold.

    First all blocks are read, then all hits are added: without a branch that depends on what was read, the
    processor waits for many blocks at once, and the shares are on their way before they are needed.
    """
    touched = np.uint64(0)
    for b in range(np.uint64(count)):
        z, at = scratch.asks[b], np.uint64(scratch.at[b])
        scratch.held[b] = holding(
            lists.low, lists.high, scratch.at[b], scratch.length[b], scratch.x[z], scratch.y[z]
        )
        touched += np.uint64(lists.share[at]) + np.uint64(lists.share[at + _HALF])
    scratch.touched[0] = touched
    for b in range(np.uint64(count)):
        held, scale = scratch.held[b], query.scale[scratch.attribute[scratch.asks[b]]]
        while held:
            one = lowest(held)
            held ^= one
            share = int(lists.share[np.uint64(scratch.at[b] + place_of(one))])
            scratch.sums[share & PLACE] += scaled(share >> PLACE_BITS, scale)


@bare_inner
def add_tier(lists: Lists, t: int, query: SparseQuery, live: int, scratch: ListBuffers) -> None:
    """Add the parts of all intervals of a tier that hold, batch by batch."""
    count = 0
    for z in range(live):
        number = t * len(lists.floor) + scratch.attribute[z]
        first, last = int(lists.entry[number]), int(lists.entry[number + 1])
        block, end = int(lists.block[number]), int(lists.block[number + 1])
        for group in range(block, end, BLOCK):
            word = holding(lists.least, lists.most, group, end - group, scratch.x[z], scratch.y[z])
            while word:
                bit = lowest(word)
                word ^= bit
                at = first + (group - block + place_of(bit)) * BLOCK
                scratch.at[count], scratch.length[count], scratch.asks[count] = at, last - at, z
                count += 1
                if count == BATCH:
                    add_batch(lists, query, scratch, count)
                    count = 0
    add_batch(lists, query, scratch, count)


@bare_inner
def value_of(boxes: Boxes, row: int, query: SparseQuery) -> float:
    """Add up the weights of a row's intervals that hold, in the order given; -1 if none does."""
    value, holds = 0.0, False
    for i in range(boxes.start[row], boxes.start[row + 1]):
        attribute = boxes.attribute[i]
        if boxes.low[i] <= query.x[attribute] and boxes.high[i] >= query.y[attribute]:
            value += boxes.weight[i] * query.factor[attribute]
            holds |= query.factor[attribute] > 0
    return value if holds else -1.0


@bare_inner
def ask_lists(lists: Lists, query: SparseQuery, scratch: ListBuffers) -> int:
    """Note the attributes whose lists a question reaches, and its cells there; returns how many."""
    live = 0
    for attribute in range(len(lists.floor)):
        x, y = query.x[attribute], query.y[attribute]
        if lists.floor[attribute] <= x and lists.roof[attribute] >= y and query.scale[attribute]:
            cell = cell_of(lists, attribute, x)
            scratch.attribute[live], scratch.x[live] = attribute, cell
            scratch.y[live] = cell if x == y else cell_of(lists, attribute, y)
            live += 1
    return live


@bare
def sparse_many(
    tiers: Tiers,
    lists: Lists,
    boxes: Boxes,
    query: SparseQuery,
    xs: Floats,
    ys: Floats,
    scratch: ListBuffers,
    answers: Answers,
) -> None:
    """Find the best rows of each of many questions; those of `query` are replaced by them."""
    for i in range(len(xs)):
        for attribute in range(len(query.x)):
            query.x[attribute], query.y[attribute] = xs[i, attribute], ys[i, attribute]
        values, numbers, size = answers.values[i], answers.numbers[i], 0
        live = ask_lists(lists, query, scratch)
        for t in range(len(tiers.most)):
            need = need_of_tier(tiers, t, size, values, numbers, query.reach)
            if need > MANY:
                break
            clear(scratch.sums, tiers.start[t + 1] - tiers.start[t])
            add_tier(lists, t, query, live, scratch)
            at, word = BEFORE, NO_PLACES
            while True:
                at, word, row = next_row(
                    tiers,
                    t,
                    scratch.sums,
                    at,
                    word,
                    need,
                    0,
                    query.reach,
                    query.removed,
                    size,
                    values,
                    numbers,
                )
                if row < 0:
                    break
                value = value_of(boxes, row, query)
                if value >= 0:
                    size = put(values, numbers, size, value, row)
        sort_best(values, numbers, size)
        answers.counts[i] = size
