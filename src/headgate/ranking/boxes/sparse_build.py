"""Build the lists of sparse relaxed matching: by tier and attribute, in blocks of intervals close together.

    attribute 7                     cut into 256 cells at quantiles of its own ends
    list of tier 2, attribute 7     | block 40 | block 41 | … | block 62 |
    extent of block 41              cells 79 to 107: a question outside them need not look into it
    entry                           cells of both ends, a byte each; place in the tier and parts, two each

An interval that holds for a question holds for the cells of the two; so cells may find too much, never too
little, and who has enough parts is looked at with its real ends. That takes 6 bytes an interval, where ends
would take 12: the lists are too long for caches, and reading them is what takes the time.

Blocks hold intervals of about the same length, sorted by their middles: long ones among short ones would make
every extent long. An end at infinity is in the outermost cell, so there is no scale to be guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner, kernel
from headgate.ranking.filters.sums_kernels import PLACE_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Floats, Floats64, Ints, Ints32

    Parts = NDArray[np.uint16]
    Offsets = NDArray[np.uint32]

BLOCK = 32
"""Entries in a block."""

CELLS = 256
"""Cells of an attribute, at most."""

SHORTEST = 5
"""How often half of the attribute is halved, at most, to say about how long an interval is."""


class Boxes(NamedTuple):
    """Row r has the intervals start[r] to start[r + 1]: [low[i], high[i]] in attribute[i], with a weight."""

    start: Ints
    attribute: Ints32
    low: Floats
    high: Floats
    weight: Floats64


class Lists(NamedTuple):
    """The list of tier t and attribute a is l = t * attributes + a: entries entry[l] to entry[l + 1].

    Its first block is number block[l]. Behind the last entry, and the last block, is room for a block more,
    so that whole ones can be read from anywhere.

    low, high     cells of the ends
    share         place of the row in its tier, and the weight in the tier's parts above PLACE_BITS
    least, most   by block: the lowest cell of a low end and the highest of a high end
    floor, roof   by attribute: the lowest low end and the highest high end
    cut           from cut_start[a] on: the numbers between the cells of attribute a, fewer if it has few ends
    """

    entry: Offsets
    block: Offsets
    low: Bytes
    high: Bytes
    share: Offsets
    least: Bytes
    most: Bytes
    floor: Floats
    roof: Floats
    cut_start: Ints
    cut: Floats


def make_lists(boxes: Boxes, attributes: int, tiers: int, tier: Ints32, place: Ints32, part: Parts) -> Lists:
    """Lay out the intervals of all rows; rows have a tier and a place in it, intervals a weight in parts."""
    kind, count = boxes.low.dtype, len(boxes.attribute)
    lists = np.empty(count, np.int64)
    lengths = np.zeros(attributes * tiers, np.int64)
    shares = np.empty(count, np.uint32)
    number_lists(boxes, tier, place, part, attributes, lists, lengths, shares)
    entry, block = np.zeros(len(lengths) + 1, np.int64), np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=entry[1:])
    np.cumsum((lengths + BLOCK - 1) // BLOCK, out=block[1:])

    by_attribute = np.argsort(
        boxes.attribute.astype(np.uint16 if attributes <= 65536 else np.int32), kind="stable"
    )
    each = np.bincount(boxes.attribute, minlength=attributes)
    first, cut_start = np.zeros(attributes + 1, np.int64), np.zeros(attributes + 1, np.int64)
    np.cumsum(each, out=first[1:])
    np.cumsum(np.minimum(each, CELLS - 1), out=cut_start[1:])
    made = Lists(
        entry=entry.astype(np.uint32),
        block=block.astype(np.uint32),
        low=np.zeros(count + BLOCK, np.uint8),
        high=np.zeros(count + BLOCK, np.uint8),
        share=np.zeros(count + BLOCK, np.uint32),
        least=np.full(int(block[-1]) + BLOCK, CELLS - 1, np.uint8),
        most=np.zeros(int(block[-1]) + BLOCK, np.uint8),
        floor=np.full(attributes, np.inf, kind),
        roof=np.full(attributes, -np.inf, kind),
        cut_start=cut_start,
        cut=np.empty(int(cut_start[-1]), kind),
    )
    low, high, keys = np.empty(count, np.uint8), np.empty(count, np.uint8), np.empty(count, np.uint16)
    find_cells(boxes, by_attribute, first, made, low, high, keys)
    lay_out(np.argsort(keys, kind="stable"), lists, low, high, shares, entry[:-1].copy(), made)
    return made


@bare
def number_lists(
    boxes: Boxes,
    tier: Ints32,
    place: Ints32,
    part: Parts,
    attributes: int,
    lists: Ints,
    lengths: Ints,
    shares: Offsets,
) -> None:
    """Write the list and the share of each interval, and count the intervals of each list."""
    for row in range(len(tier)):
        for i in range(boxes.start[row], boxes.start[row + 1]):
            lists[i] = tier[row] * attributes + boxes.attribute[i]
            lengths[lists[i]] += 1
            shares[i] = place[row] + (np.int64(part[i]) << PLACE_BITS)


@kernel
def find_cells(
    boxes: Boxes, by_attribute: Ints, first: Ints, made: Lists, low: Bytes, high: Bytes, keys: Parts
) -> None:
    """Cut attributes into cells; writes those of all ends, and where in its list an interval belongs."""
    sample = np.empty(2 * CELLS, made.cut.dtype)
    for attribute in range(len(first) - 1):
        start, end = first[attribute], first[attribute + 1]
        begin, cuts = made.cut_start[attribute], made.cut_start[attribute + 1] - made.cut_start[attribute]
        size = min(CELLS, end - start)
        for j in range(size):
            i = by_attribute[start + j * (end - start) // size]
            sample[2 * j], sample[2 * j + 1] = boxes.low[i], boxes.high[i]
        ends = np.sort(sample[: 2 * size])
        for j in range(cuts):
            made.cut[begin + j] = ends[(j + 1) * 2 * size // (cuts + 1)]
        for j in range(start, end):
            i = by_attribute[j]
            made.floor[attribute] = min(made.floor[attribute], boxes.low[i])
            made.roof[attribute] = max(made.roof[attribute], boxes.high[i])
            left = cell_of(made, attribute, boxes.low[i])
            right = cell_of(made, attribute, boxes.high[i])
            halved = 0
            while halved < SHORTEST and right - left < (cuts >> 1) >> halved:
                halved += 1
            low[i], high[i], keys[i] = left, right, halved * 2 * CELLS + left + right


@bare_inner
def cell_of(lists: Lists, attribute: int, value: float) -> int:
    """Find the cell of a number: count the cuts below it."""
    begin = lists.cut_start[attribute]
    low, high = begin, lists.cut_start[attribute + 1]
    while low < high:
        middle = (low + high) >> 1
        if lists.cut[middle] < value:
            low = middle + 1
        else:
            high = middle
    return int(low - begin)


@bare
def lay_out(
    order: Ints, lists: Ints, low: Bytes, high: Bytes, shares: Offsets, at: Ints, made: Lists
) -> None:
    """Put intervals into their lists in the order given, and note the extents of blocks."""
    for o in range(len(order)):
        i = order[o]
        where = at[lists[i]]
        at[lists[i]] += 1
        made.low[where], made.high[where], made.share[where] = low[i], high[i], shares[i]
        block = np.int64(made.block[lists[i]]) + (where - np.int64(made.entry[lists[i]])) // BLOCK
        made.least[block] = min(made.least[block], low[i])
        made.most[block] = max(made.most[block], high[i])
