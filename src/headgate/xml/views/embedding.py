"""How a view embeds in another, and what it covers there: the definition, tried out slowly.

An embedding takes each node of the source to a node of the target:

    label      the source's covers the target's
    axis       CHILD goes to CHILD; DESCENDANT to a way of one or more edges downwards
    root       with CHILD it goes to a root with CHILD; with DESCENDANT to any node
    tests      each is implied by those of the target: one that the target lacks would lose results

So an embedding of the target in a document, behind that of the source in the target, is one of the source:
whatever takes part in the target's result is in the source's.

What a target's result is made of are items, 4 bits a node:

    bit 4 n + 0   the node's id: a source's node of the same label, or of a wider one whose cont has the name
    bit 4 n + 1   val:   where it is returned; a source that returns val or cont
    bit 4 n + 2   cont:  where it is returned; a source that returns cont
    bit 4 n + 3   tests: where it has some; a source whose own imply them, or that returns val or cont

Which sets of tests imply which is found at once for all that views have at nodes that can go to each other.
Sets are numbered; 0 is the empty one. Those that a set implies are a row of numbers, rising, without itself:
most nodes have no tests and most tests imply nothing, so rows are short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.bits import place_of
from headgate.core.jit import bare, bare_inner
from headgate.xml.language.model import CHILD, CONT, ROOT, VAL, covers, is_attribute
from headgate.xml.language.values import implies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from headgate.core.arrays import Bools, Ints, Ints32, Words
    from headgate.xml.language.model import Label, Test

    Tests = tuple[Test, ...]
    from headgate.xml.language.model import Node, Pattern


class Implications(NamedTuple):
    """Set a implies the sets `implied[offsets[a]:offsets[a + 1]]`, and itself."""

    offsets: Ints
    implied: Ints32


def implications(sets: Sequence[Tests], used: Mapping[Label, Iterable[int]]) -> Implications:
    """Find what implies what among the sets that are used at the same label, or at labels that cover another.

    `used` are the sets at each label.
    """
    at = {label: sorted({0, *numbers}) for label, numbers in used.items() if any(numbers)}
    at |= {label: [0] for label in used if label not in at}
    implied: list[set[int]] = [set() for _ in sets]
    compared: set[tuple[int, int]] = set()
    wide = [label for label in at if is_wide(label)]
    for special, below in at.items():
        for general in {special, *wide}:
            if not covers(general, special):
                continue
            above = at[general]
            for one, other in ((below, above), (above, below)):
                _compare(sets, one, other, compared, implied)
    rows = [sorted(row) for row in implied]
    offsets = np.zeros(len(sets) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return Implications(offsets, np.array([each for row in rows for each in row], np.int32))


def is_wide(label: Label) -> bool:
    """Tell whether a label covers others.

    >>> [is_wide(each) for each in ("*", "@*:a", "{urn:*}a", "text()")]
    [True, True, False, False]
    """
    return label.removeprefix("@").startswith("*")


def _compare(
    sets: Sequence[Tests],
    strong: Sequence[int],
    weak: Sequence[int],
    compared: set[tuple[int, int]],
    implied: list[set[int]],
) -> None:
    # Two different texts that a value is equal to: commonest of all, and neither implies the other.
    odd = [each for each in weak if not _equality(sets[each])]
    for a in strong:
        for b in odd if _equality(sets[a]) else weak:
            if a == b or (a, b) in compared:
                continue
            compared.add((a, b))
            if all(implies(sets[a], test) for test in sets[b]):
                implied[a].add(b)


def _equality(tests: Tests) -> bool:
    return len(tests) == 1 and tests[0].sign == "=" and isinstance(tests[0].value, str)


MAX_NODES = 16
"""Nodes of a view that takes part in a plan: 4 items each are one word."""

ITEM_ID = 1
ITEM_VAL = 2
ITEM_CONT = 4
ITEM_TESTS = 8
ITEMS = {ITEM_ID: "id", ITEM_VAL: "val", ITEM_CONT: "cont", ITEM_TESTS: "tests"}


def items(node: Node) -> int:
    """List what a node's part of a result is made of."""
    bits = ITEM_ID
    if VAL in node.returns:
        bits |= ITEM_VAL
    if CONT in node.returns:
        bits |= ITEM_CONT
    return bits | ITEM_TESTS if node.tests else bits


def needed(pattern: Pattern) -> int:
    """List the items of a view; 0 if it is too large to take part in a plan."""
    if len(pattern.nodes) > MAX_NODES:
        return 0
    return sum(items(node) << 4 * index for index, node in enumerate(pattern.nodes))


def fits(source: Node, target: Node) -> bool:
    """Tell whether a node can go to a node, by themselves."""
    return covers(source.label, target.label) and all(implies(target.tests, test) for test in source.tests)


def provides(source: Node, target: Node) -> int:
    """List the items of a node that a source's node covers, if it goes there."""
    bits = 0
    if source.label == target.label or (CONT in source.returns and not is_attribute(source.label)):
        bits |= ITEM_ID
    if CONT in source.returns:
        bits |= ITEM_CONT
    if CONT in source.returns or VAL in source.returns:
        bits |= ITEM_VAL | ITEM_TESTS
    if all(implies(source.tests, test) for test in target.tests):
        bits |= ITEM_TESTS
    return bits & items(target)


def pairs(
    source: Pattern, target: Pattern, goes: Callable[[Node, Node], bool] = fits
) -> list[set[int]] | None:
    """List for each node of the source where embeddings take it; None if there is none.

    From the last node to the first, what a node can go to with all that is below it; then, from the first to
    the last, what is left because of what is above. On trees this is exact.
    """
    every = range(len(target.nodes))
    ways = [_ways(target, image) for image in every]

    def leads(above: int, image: int, axis: str) -> bool:
        node = target.nodes[image]
        return (node.axis == CHILD and node.parent == above) if axis == CHILD else above in ways[image]

    images = [{image for image in every if goes(node, target.nodes[image])} for node in source.nodes]
    for index in reversed(range(len(source.nodes))):
        node = source.nodes[index]
        if node.parent == ROOT:
            images[index] = {image for image in images[index] if leads(ROOT, image, node.axis)}
        else:
            images[node.parent] = {
                above
                for above in images[node.parent]
                if any(leads(above, image, node.axis) for image in images[index])
            }
        if not images[index]:
            return None
    for index, node in enumerate(source.nodes):
        if node.parent != ROOT:
            images[index] = {
                image
                for image in images[index]
                if any(leads(above, image, node.axis) for above in images[node.parent])
            }
    return images


def _ways(pattern: Pattern, index: int) -> set[int]:
    """Return the nodes above a node, ROOT among them."""
    above: set[int] = set()
    while index != ROOT:
        index = pattern.nodes[index].parent
        above.add(index)
    return above


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


class NodeRows(NamedTuple):
    """All views: the rows of view v are `starts[v]` to `starts[v + 1]`; none if it takes no part in plans.

    `wide[w, l]` tells whether label w covers label l. `offsets` and `implied` are Implications.
    """

    starts: Ints
    nodes: Ints
    needed: Words
    wide: Bools
    offsets: Ints
    implied: Ints32


@bare_inner
def _place(mask: int) -> int:
    """Return the place of the lowest bit."""
    return place_of(np.uint64(mask & -mask))


@bare_inner
def _implies(rows: NodeRows, strong: int, weak: int) -> bool:
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
def _candidates(rows: NodeRows, node: int, target: int, possible: int) -> int:
    """Keep those of some nodes of the target that a node can go to by itself."""
    label, tests = rows.nodes[node, 0], rows.nodes[node, 1]
    mask = 0
    while possible:
        node_of = _place(possible)
        possible &= possible - 1
        other = rows.nodes[target + node_of, 0]
        if (label == other or (label < len(rows.wide) and rows.wide[label, other])) and (
            tests == 0 or _implies(rows, rows.nodes[target + node_of, 1], tests)
        ):
            mask |= 1 << node_of
    return mask


@bare_inner
def _upwards(rows: NodeRows, target: int, images: int, child: bool) -> int:
    """Find where the parent of a node can be, given where the node can be."""
    mask = 0
    while images:
        index = _place(images)
        images &= images - 1
        if child:
            flags = rows.nodes[target + index, 2]
            parent = flags & PARENT_BITS
            if parent and flags & CHILD_BIT:
                mask |= 1 << (parent - 1)
        else:
            mask |= rows.nodes[target + index, 3] & SET_BITS
    return mask


@bare_inner
def _downwards(rows: NodeRows, target: int, images: int, child: bool) -> int:
    """Find where a node can be, given where its parent can be."""
    column = 2 if child else 3
    mask = 0
    while images:
        index = _place(images)
        images &= images - 1
        mask |= rows.nodes[target + index, column] >> 16
    return mask


@bare_inner
def _items(rows: NodeRows, node: int, image: int) -> int:
    """List what a node covers of its image, wanted or not."""
    flags = rows.nodes[node, 2]
    bits = 0
    if rows.nodes[node, 0] == rows.nodes[image, 0]:
        bits |= 1
    if flags & CONT_BIT:
        bits |= 14 if flags & ATTRIBUTE_BIT else 15
    elif flags & VAL_BIT:
        bits |= 10
    elif _implies(rows, rows.nodes[node, 1], rows.nodes[image, 1]):
        bits |= 8
    return bits


@bare_inner
def _embed(rows: NodeRows, source: int, end: int, target: int, size: int, images: Ints) -> bool:
    """Write for each node of a source its images in all embeddings; returns whether there are any."""
    count = end - source
    top = 0
    for index in range(size):
        if rows.nodes[target + index, 2] & (PARENT_BITS | CHILD_BIT) == CHILD_BIT:
            top |= 1 << index
    for m in range(count):
        images[m] = (1 << size) - 1
    for m in range(count - 1, -1, -1):
        flags = rows.nodes[source + m, 2]
        parent = flags & PARENT_BITS
        possible = images[m]
        if parent == 0 and flags & CHILD_BIT:
            possible &= top
        mask = _candidates(rows, source + m, target, possible)
        images[m] = mask
        if mask == 0:
            return False
        if parent:
            images[parent - 1] &= _upwards(rows, target, mask, flags & CHILD_BIT != 0)
    for m in range(count):
        flags = rows.nodes[source + m, 2]
        parent = flags & PARENT_BITS
        if parent:
            images[m] &= _downwards(rows, target, images[parent - 1], flags & CHILD_BIT != 0)
    return True


@bare
def cover(
    rows: NodeRows, sources: Ints32, targets: Ints32, images: Ints, embeds: Bools, masks: Words
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
                index = _place(left)
                left &= left - 1
                bits = _items(rows, source + m, target + index)
                whole |= np.uint64(bits) << np.uint64(4 * index)
        masks[i] = whole & rows.needed[targets[i]]


@bare_inner
def _feature(kind: int, one: int, other: int) -> int:
    """Choose the bit of a feature."""
    hashed = (np.uint64(one + 1) * HASH) ^ np.uint64(kind)
    hashed = (hashed ^ (hashed >> _SHIFT)) * HASH
    hashed = (hashed ^ np.uint64(other + 1)) * HASH
    number = int((hashed >> _SHIFT) & np.uint64(0x7FFFFFFF))
    return number % EDGE_BITS if kind <= ABOVE else EDGE_BITS + number % (128 - EDGE_BITS)


@bare_inner
def _mark(words: Words, view: int, bit: int) -> None:
    words[2 * view + (bit >> 6)] |= np.uint64(1) << np.uint64(bit & 63)


@bare
def sign(rows: NodeRows, demands: Words, offers: Words) -> None:
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
