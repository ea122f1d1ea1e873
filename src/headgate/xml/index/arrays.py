"""The index as flat arrays, and its invariants.

All paths from a root to a node, of all patterns, are one trie: an automaton that patterns share. Where a
pattern branches, or tests a node that is not its last, its *anchor* is: above it there is a path and nothing
else, and the trie alone tells where that leads to. An anchor and each node below it is a *unit*: a node of
the trie, tests, and units below. Equal units are one. A unit without units below and without tests holds
wherever its node of the trie is reached.

    //person[profile/age > 30]/name     //item/name

    trie    0 ─//person─ 1 ─/profile─ 2 ─/age─ 3    units  0: at 1, below 1, 3; anchor   3: at 4
            │            └──/name──── 4                    1: at 2, below 2              4: at 6; anchor
            └─//item── 5 ─/name─ 6                         2: at 3, > 30

A *forest* is a set of anchors that must all hold: one for each root of a pattern. Equal patterns are one
forest, and hang there by their numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

DOCUMENT = 0
"""The node of the trie that stands for the document itself."""
CHILD_AXIS, DESCENDANT_AXIS = 0, 1
"""Places in `model.AXES`."""
EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST, CONTAINING, STARTING = range(8)
"""Places in `model.SIGNS`."""
FAR, ASKED, ANCHOR = 1, 2, 4
"""Of a unit: the axis of descendants leads to it; it is below another; it is an anchor."""
BEGIN, END, TESTS, KIND = range(4)
"""Columns of `Units.row`."""


class Trie(NamedTuple):
    """Nodes of the trie by number, after that of the document. `table` finds one by parent, axis and label.

    `bloom` has a bit for each hash of an axis and a label that leads on from a node: most that lead nowhere
    are seen by it; `far` tells whether the axis is ever that of descendants. The units of a node are
    `unit_start[t]` to `unit_start[t + 1]`.
    """

    parent: NDArray[np.int32]
    axis: NDArray[np.int8]
    label: NDArray[np.int32]
    bloom: NDArray[np.uint64]
    far: NDArray[np.uint8]
    unit_start: NDArray[np.int32]
    table: NDArray[np.int32]


class Units(NamedTuple):
    """Units by number, in the order of their trie nodes.

    A row says where those below begin and end in `below`, then the set of tests, 0 for none, and the kind: a
    sum of FAR, ASKED and ANCHOR. Below are units doubled, plus FAR; first those that fewer units ask for.
    What is asked about one unit lies together. `forest_start` says where its forests begin in `forests`.
    """

    row: NDArray[np.int32]
    below: NDArray[np.int32]
    forest_start: NDArray[np.int32]
    forests: NDArray[np.int32]


class Tests(NamedTuple):
    """Sets of tests: those of set s are `member[set_start[s]:set_start[s + 1]]`; set 0 is empty.

    The value of a test is `number`, or with `text` at least 0 that text.
    """

    set_start: NDArray[np.int32]
    member: NDArray[np.int32]
    sign: NDArray[np.int8]
    number: NDArray[np.float64]
    text: NDArray[np.int32]
    text_offsets: NDArray[np.int64]
    text_data: NDArray[np.uint8]


class Forests(NamedTuple):
    """How many anchors must hold, and the numbers of the filters: `number[start[f]:start[f + 1]]`, rising."""

    need: NDArray[np.int32]
    start: NDArray[np.int32]
    number: NDArray[np.int32]


class XmlArrays(NamedTuple):
    """All of it."""

    trie: Trie
    units: Units
    tests: Tests
    forests: Forests

    @property
    def nbytes(self) -> int:
        """Count the bytes."""
        return sum(array.nbytes for part in self for array in part)

    def read_only(self) -> XmlArrays:
        """Return the same arrays, where they lie, such that nobody can write through them."""
        parts: list[Any] = [type(part)(*[read_only(array) for array in part]) for part in self]
        return XmlArrays(*parts)

    def check(self) -> None:
        """Assert the invariants."""
        trie, units, tests, forests = self
        nodes, count = len(trie.parent), len(units.row)
        assert bool((trie.parent[1:] < np.arange(1, nodes)).all())
        assert trie.parent[DOCUMENT] == -1
        assert len(trie.table) & (len(trie.table) - 1) == 0
        assert nodes - 1 < len(trie.table)
        assert sorted(trie.table[trie.table >= 0].tolist()) == list(range(1, nodes))
        for start, size, of in (
            (trie.unit_start, count, nodes),
            (units.forest_start, len(units.forests), count),
            (forests.start, len(forests.number), len(forests.need)),
            (tests.set_start, len(tests.member), len(tests.set_start) - 1),
        ):
            assert len(start) == of + 1
            assert start[0] == 0
            assert start[-1] == size
            assert bool((np.diff(start) >= 0).all())
        at = np.repeat(np.arange(nodes), np.diff(trie.unit_start))
        begin, end = units.row[:, BEGIN], units.row[:, END]
        assert begin.tolist() == [0, *end[:-1].tolist()][:count]
        assert end[-1:].tolist() == [len(units.below)][:count]
        above = np.repeat(np.arange(count), end - begin)
        kind = np.where(trie.axis[at] == DESCENDANT_AXIS, FAR, 0)
        below = units.below >> 1
        assert bool((units.below & FAR == kind[below]).all())
        kind[below] |= ASKED
        kind[np.diff(units.forest_start) > 0] |= ANCHOR
        assert bool((units.row[:, KIND] == kind).all())
        assert bool((trie.parent[at[below]] == at[above]).all())
        assert sorted(forests.number.tolist()) == list(range(len(forests.number)))
        assert bool((np.bincount(units.forests, minlength=len(forests.need)) == forests.need).all())
        assert tests.set_start[1] == 0


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that nobody can write through: built, mapped and growing arrays are one type then."""
    view = array.view()
    view.flags.writeable = False
    return view
