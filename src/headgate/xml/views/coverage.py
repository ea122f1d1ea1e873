"""Hot loops: whether views embed in views, and which items they cover there.

A view is up to 16 rows of four words, a row for each node, so sets of nodes are 16 bits:

    0   label; the first numbers are those of labels that cover others
    1   tests, as the number of their set
    2   bits 0-4 parent, plus 1; 5 CHILD leads here; 6 returns val; 7 returns cont; 8 attribute;
        16-31 its children by CHILD
    3   bits 0-15 the nodes above; 16-31 all nodes below

For each node of the source, from the last to the first, those of the target that it can go to with all that
is below it; then, from the first to the last, those that are left because of what is above. On trees this
keeps exactly what some embedding uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.bits import place_of
from headgate.core.jit import bare, bare_inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORDS = 4
CHILD_BIT = 1 << 5
VAL_BIT = 1 << 6
CONT_BIT = 1 << 7
ATTRIBUTE_BIT = 1 << 8
PARENT_BITS = 31
SET_BITS = 0xFFFF

HASH = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
EDGE, ABOVE, TOP, TESTED, TESTED_AT = 1, 2, 3, 4, 5
EDGE_BITS = 96
"""Bits of a signature that are for edges; the others are for roots and tests."""


class Rows(NamedTuple):
    """All views: the rows of view v are `starts[v]` to `starts[v + 1]`; none if it takes no part in plans.

    `wide[w, l]` tells whether label w covers label l. `offsets` and `implied` are Implications.
    """

    starts: NDArray[np.int64]
    nodes: NDArray[np.int64]
    needed: NDArray[np.uint64]
    wide: NDArray[np.bool_]
    offsets: NDArray[np.int64]
    implied: NDArray[np.int32]


@bare_inner
def _place(mask: int) -> int:
    """Return the place of the lowest bit."""
    return place_of(np.uint64(mask & -mask))


@bare_inner
def _implies(rows: Rows, strong: int, weak: int) -> bool:
    if weak == 0 or weak == strong:  # noqa: PLR1714 - compiled code knows no tuples of several types
        return True
    low, high = rows.offsets[strong], rows.offsets[strong + 1]
    while low < high:
        middle = (low + high) >> 1
        if rows.implied[middle] < weak:
            low = middle + 1
        else:
            high = middle
    return bool(low < rows.offsets[strong + 1] and rows.implied[low] == weak)


@bare_inner
def _candidates(rows: Rows, node: int, target: int, possible: int) -> int:
    """Keep those of some nodes of the target that a node can go to by itself."""
    label, tests = rows.nodes[node, 0], rows.nodes[node, 1]
    found = 0
    while possible:
        place = _place(possible)
        possible &= possible - 1
        other = rows.nodes[target + place, 0]
        if (label == other or (label < len(rows.wide) and rows.wide[label, other])) and (
            tests == 0 or _implies(rows, rows.nodes[target + place, 1], tests)
        ):
            found |= 1 << place
    return found


@bare_inner
def _upwards(rows: Rows, target: int, images: int, child: bool) -> int:
    """Find where the parent of a node can be, given where the node can be."""
    found = 0
    while images:
        place = _place(images)
        images &= images - 1
        if child:
            flags = rows.nodes[target + place, 2]
            parent = flags & PARENT_BITS
            if parent and flags & CHILD_BIT:
                found |= 1 << (parent - 1)
        else:
            found |= rows.nodes[target + place, 3] & SET_BITS
    return found


@bare_inner
def _downwards(rows: Rows, target: int, images: int, child: bool) -> int:
    """Find where a node can be, given where its parent can be."""
    column = 2 if child else 3
    found = 0
    while images:
        place = _place(images)
        images &= images - 1
        found |= rows.nodes[target + place, column] >> 16
    return found


@bare_inner
def _items(rows: Rows, node: int, image: int) -> int:
    """List what a node covers of its image, wanted or not."""
    flags = rows.nodes[node, 2]
    found = 0
    if rows.nodes[node, 0] == rows.nodes[image, 0]:
        found |= 1
    if flags & CONT_BIT:
        found |= 14 if flags & ATTRIBUTE_BIT else 15
    elif flags & VAL_BIT:
        found |= 10
    elif _implies(rows, rows.nodes[node, 1], rows.nodes[image, 1]):
        found |= 8
    return found


@bare_inner
def _embed(rows: Rows, source: int, end: int, target: int, size: int, images: NDArray[np.int64]) -> bool:
    """Write for each node of a source its images in all embeddings; returns whether there are any."""
    count = end - source
    top = 0
    for place in range(size):
        if rows.nodes[target + place, 2] & (PARENT_BITS | CHILD_BIT) == CHILD_BIT:
            top |= 1 << place
    for m in range(count):
        images[m] = (1 << size) - 1
    for m in range(count - 1, -1, -1):
        flags = rows.nodes[source + m, 2]
        parent = flags & PARENT_BITS
        possible = images[m]
        if parent == 0 and flags & CHILD_BIT:
            possible &= top
        found = _candidates(rows, source + m, target, possible)
        images[m] = found
        if found == 0:
            return False
        if parent:
            images[parent - 1] &= _upwards(rows, target, found, flags & CHILD_BIT != 0)
    for m in range(count):
        flags = rows.nodes[source + m, 2]
        parent = flags & PARENT_BITS
        if parent:
            images[m] &= _downwards(rows, target, images[parent - 1], flags & CHILD_BIT != 0)
    return True


@bare
def cover(
    rows: Rows,
    sources: NDArray[np.int32],
    targets: NDArray[np.int32],
    images: NDArray[np.int64],
    embeds: NDArray[np.bool_],
    masks: NDArray[np.uint64],
) -> None:
    """Answer for pairs of views; `images` is scratch for 16 nodes."""
    for i in range(len(sources)):
        source, end = rows.starts[sources[i]], rows.starts[sources[i] + 1]
        target = rows.starts[targets[i]]
        size = rows.starts[targets[i] + 1] - target
        masks[i] = 0
        embeds[i] = end > source and size > 0 and _embed(rows, source, end, target, size, images)
        if not embeds[i]:
            continue
        whole = np.uint64(0)
        for m in range(end - source):
            left = images[m]
            while left:
                place = _place(left)
                left &= left - 1
                found = _items(rows, source + m, target + place)
                whole |= np.uint64(found) << np.uint64(4 * place)
        masks[i] = whole & rows.needed[targets[i]]


@bare_inner
def _feature(kind: int, one: int, other: int) -> int:
    """Choose the bit of a feature."""
    found = (np.uint64(one + 1) * HASH) ^ np.uint64(kind)
    found = (found ^ (found >> _SHIFT)) * HASH
    found = (found ^ np.uint64(other + 1)) * HASH
    number = int((found >> _SHIFT) & np.uint64(0x7FFFFFFF))
    return number % EDGE_BITS if kind <= ABOVE else EDGE_BITS + number % (128 - EDGE_BITS)


@bare_inner
def _mark(words: NDArray[np.uint64], view: int, bit: int) -> None:
    words[2 * view + (bit >> 6)] |= np.uint64(1) << np.uint64(bit & 63)


@bare
def sign(rows: Rows, demands: NDArray[np.uint64], offers: NDArray[np.uint64]) -> None:
    """Mark what each view demands of a target, and what it offers as one.

    Labels that cover others demand nothing. Below another node is any node that is one or more edges down; a
    node with tests offers all that these imply.
    """
    wide = len(rows.wide)
    for view in range(len(rows.starts) - 1):
        start = rows.starts[view]
        for node in range(start, rows.starts[view + 1]):
            label, tests = rows.nodes[node, 0], rows.nodes[node, 1]
            flags = rows.nodes[node, 2]
            named = label >= wide
            parent = flags & PARENT_BITS
            if named and flags & CHILD_BIT:
                if parent == 0:
                    bit = _feature(TOP, label, 0)
                    _mark(demands, view, bit)
                    _mark(offers, view, bit)
                elif rows.nodes[start + parent - 1, 0] >= wide:
                    bit = _feature(EDGE, rows.nodes[start + parent - 1, 0], label)
                    _mark(demands, view, bit)
                    _mark(offers, view, bit)
            above = rows.nodes[node, 3] & SET_BITS
            while named and above:
                higher = rows.nodes[start + _place(above), 0]
                above &= above - 1
                if higher >= wide:
                    bit = _feature(ABOVE, higher, label)
                    _mark(demands, view, bit)
                    _mark(offers, view, bit)
            if tests:
                _mark(demands, view, _feature(TESTED_AT if named else TESTED, tests, label if named else 0))
                _mark(offers, view, _feature(TESTED, tests, 0))
                _mark(offers, view, _feature(TESTED_AT, tests, label))
            for i in range(rows.offsets[tests], rows.offsets[tests + 1]):
                _mark(offers, view, _feature(TESTED, rows.implied[i], 0))
                _mark(offers, view, _feature(TESTED_AT, rows.implied[i], label))
