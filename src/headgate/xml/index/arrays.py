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

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bools, Bytes, Floats64, Ints, Ints32, Words

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

    parent: Ints32
    axis: NDArray[np.int8]
    label: Ints32
    bloom: Words
    far: Bytes
    unit_start: Ints32
    table: Ints32


class Units(NamedTuple):
    """Units by number, in the order of their trie nodes.

    A row says where those below begin and end in `below`, then the set of tests, 0 for none, and the kind: a
    sum of FAR, ASKED and ANCHOR. Below are units doubled, plus FAR; first those that fewer units ask for.
    What is asked about one unit lies together. `forest_start` says where its forests begin in `forests`.
    """

    row: Ints32
    below: Ints32
    forest_start: Ints32
    forests: Ints32

    def pairs(self) -> tuple[Ints, Ints32]:
        """List what is below units: pairs of one and another below it."""
        return np.repeat(np.arange(len(self.row)), self.row[:, END] - self.row[:, BEGIN]), self.below >> 1

    def made_of(self, units: Ints) -> Bools:
        """Mark some units, and all that these are made of."""
        parent, child = self.pairs()
        marks = np.zeros(len(self.row), np.bool_)
        marks[units] = True
        while not marks[child[marks[parent]]].all():
            marks[child[marks[parent]]] = True
        return marks


class Tests(NamedTuple):
    """Sets of tests: those of set s are `member[set_start[s]:set_start[s + 1]]`; set 0 is empty.

    The value of a test is `number`, or with `text` at least 0 that text.
    """

    set_start: Ints32
    member: Ints32
    sign: NDArray[np.int8]
    number: Floats64
    text: Ints32
    text_offsets: Ints
    text_data: Bytes


class Forests(NamedTuple):
    """How many anchors must hold, and the numbers of the filters: `number[start[f]:start[f + 1]]`, rising."""

    need: Ints32
    start: Ints32
    number: Ints32


class XmlArrays(NamedTuple):
    """All of it."""

    trie: Trie
    units: Units
    tests: Tests
    forests: Forests
