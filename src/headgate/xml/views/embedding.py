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

from headgate.xml.language.model import CHILD, CONT, ROOT, VAL, covers, is_attribute
from headgate.xml.language.values import implies

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.xml.language.model import Label, Test

    Tests = tuple[Test, ...]
    from collections.abc import Iterator

    from headgate.xml.language.model import Node, Pattern


class Implications(NamedTuple):
    """Set a implies the sets `implied[offsets[a]:offsets[a + 1]]`, and itself."""

    offsets: NDArray[np.int64]
    implied: NDArray[np.int32]


def implications(sets: Sequence[Tests], used: Mapping[Label, Iterable[int]]) -> Implications:
    """Find what implies what among the sets that are used at the same label, or at labels that cover another.

    `used` are the sets at each label.
    """
    at = {label: sorted({0, *numbers}) for label, numbers in used.items() if any(numbers)}
    at |= {label: [0] for label in used if label not in at}
    found: list[set[int]] = [set() for _ in sets]
    compared: set[tuple[int, int]] = set()
    wide = [label for label in at if is_wide(label)]
    for special, below in at.items():
        for general in {special, *wide}:
            if not covers(general, special):
                continue
            above = at[general]
            for one, other in ((below, above), (above, below)):
                _compare(sets, one, other, compared, found)
    rows = [sorted(row) for row in found]
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
    found: list[set[int]],
) -> None:
    # Two different texts that a value is equal to: commonest of all, and neither implies the other.
    odd = [each for each in weak if not _equality(sets[each])]
    for a in strong:
        for b in odd if _equality(sets[a]) else weak:
            if a == b or (a, b) in compared:
                continue
            compared.add((a, b))
            if all(implies(sets[a], test) for test in sets[b]):
                found[a].add(b)


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
    found = ITEM_ID
    if VAL in node.returns:
        found |= ITEM_VAL
    if CONT in node.returns:
        found |= ITEM_CONT
    return found | ITEM_TESTS if node.tests else found


def needed(pattern: Pattern) -> int:
    """List the items of a view; 0 if it is too large to take part in a plan."""
    if len(pattern.nodes) > MAX_NODES:
        return 0
    return sum(items(node) << 4 * place for place, node in enumerate(pattern.nodes))


def fits(source: Node, target: Node) -> bool:
    """Tell whether a node can go to a node, by themselves."""
    return covers(source.label, target.label) and all(implies(target.tests, test) for test in source.tests)


def provides(source: Node, target: Node) -> int:
    """List the items of a node that a source's node covers, if it goes there."""
    found = 0
    if source.label == target.label or (CONT in source.returns and not is_attribute(source.label)):
        found |= ITEM_ID
    if CONT in source.returns:
        found |= ITEM_CONT
    if CONT in source.returns or VAL in source.returns:
        found |= ITEM_VAL | ITEM_TESTS
    if all(implies(source.tests, test) for test in target.tests):
        found |= ITEM_TESTS
    return found & items(target)


def embeddings(source: Pattern, target: Pattern, images: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """List all embeddings that begin with some images: for each node of the source one of the target."""
    if len(images) == len(source.nodes):
        yield images
        return
    for image in range(len(target.nodes)):
        if _holds(source, target, (*images, image)):
            yield from embeddings(source, target, (*images, image))


def _holds(source: Pattern, target: Pattern, images: tuple[int, ...]) -> bool:
    """Tell whether the last of the nodes that have an image may have it."""
    node, image = source.nodes[len(images) - 1], images[-1]
    above = ROOT if node.parent == ROOT else images[node.parent]
    return fits(node, target.nodes[image]) and _below(target, above, image, node.axis)


def _below(target: Pattern, above: int, image: int, axis: str) -> bool:
    """Tell whether an axis can lead from a node of the target, or ROOT, to a node of it."""
    node = target.nodes[image]
    if axis == CHILD:
        return node.axis == CHILD and node.parent == above
    return above == ROOT or above in ancestors(target, image)


def ancestors(pattern: Pattern, place: int) -> list[int]:
    """List the nodes above a node, from the nearest."""
    found: list[int] = []
    above = pattern.nodes[place].parent
    while above != ROOT:
        found.append(above)
        above = pattern.nodes[above].parent
    return found


def pairs(source: Pattern, target: Pattern) -> list[set[int]] | None:
    """List for each node of the source where embeddings take it; None if there is none.

    From the last node to the first, what a node can go to with all that is below it; then, from the first to
    the last, what is left because of what is above. On trees this is exact.
    """
    every = range(len(target.nodes))
    found = [{image for image in every if fits(node, target.nodes[image])} for node in source.nodes]
    for place in reversed(range(len(source.nodes))):
        node = source.nodes[place]
        if node.parent == ROOT:
            found[place] = {image for image in found[place] if _below(target, ROOT, image, node.axis)}
        else:
            found[node.parent] = {
                above
                for above in found[node.parent]
                if any(_below(target, above, image, node.axis) for image in found[place])
            }
        if not found[place]:
            return None
    for place, node in enumerate(source.nodes):
        if node.parent != ROOT:
            found[place] = {
                image
                for image in found[place]
                if any(_below(target, above, image, node.axis) for above in found[node.parent])
            }
    return found


def covered(source: Pattern, target: Pattern) -> int | None:
    """List the items that a source covers through all of its embeddings; None if it has none."""
    found: int | None = None
    for images in embeddings(source, target):
        found = found or 0
        for place, image in enumerate(images):
            found |= provides(source.nodes[place], target.nodes[image]) << 4 * image
    return found
