"""What one thread needs to match, and how it grows.

Nothing is cleared between documents but what is as large as a document. What is marked with an epoch counts
for that one only. Other numbers are looked up in a *sparse set*: `place[x]` says where x stands in a list,
and that is so only if it does stand there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Floats64, Ints, Ints32
    from headgate.xml.index.arrays import XmlArrays

DONE, FULL_PAIRS, FULL_ENTRIES, FULL_TRUTHS, TOO_MUCH = range(5)
"""What a run ends with; with all but the first, it must be run again: there was no room, or too much text was
searched."""
OUT, HARD, PATHS, PAIRS, ENTRIES, TRUTHS, SETS, WANTED, HITS, LETTERS, MOST = range(11)
"""Places in `counts`. LETTERS were searched, and MOST is how many may be."""
NO, MAYBE, SOME, ALL = range(4)
"""What is known of the nodes of a path: something holds for none, perhaps for some, for some, for all."""
EPOCH, WHERE, WHERE_SOME, WHERE_ALL = range(4)
"""Columns of `IndexScratch.state`."""
NEVER = 2**31 - 1
"""Stands for a path where something does not hold: behind all."""


class IndexScratch(NamedTuple):
    """By what the index has: nodes of the trie, units, sets of tests, forests, filters; and counts.

    `state` of a unit is the epoch, and where it held last; of paths also where it held last for some nodes,
    and for all. For the axis of children see `kernels`. `accepted`, `wanted` and `partial` (it does not
    hold for all nodes of each path where it may hold) are epochs. A set of tests with `skip` is not asked,
    and holds nowhere.
    """

    active_place: Ints32
    stack_place: Ints32
    state: Ints32
    accepted: Ints32
    wanted: Ints32
    partial: Ints32
    set_place: Ints32
    forest_place: Ints32
    out: Ints32
    skip: Bytes
    counts: Ints


class DocumentScratch(NamedTuple):
    """By what the document has.

    Of nodes: `path` (-1 for a leaf that no filter can name) and `rank` among those of the path; `value` is
    the number that it reads as, if `known` is 1; 2 is a number that only Python reads. `hard` lists these.

    Of paths, in document order of a tree of them, from 1 on; 0 is the document: `name`, `parent`, `end`, and
    how many entries of the stack of descendants belong to them and those above (`depth`). `top` is the
    highest path above such that all nodes of it, and of those between, have a child on the way to this one.
    Nodes by path are `node[node_start[p]:node_start[p + 1]]`.
    """

    path: Ints32
    rank: Ints32
    value: Floats64
    known: Bytes
    hard: Ints32
    node: Ints32
    node_start: Ints32
    name: Ints32
    parent: Ints32
    end: Ints32
    depth: Ints32
    top: Ints32
    active_start: Ints32
    maybe_start: Ints32
    maybe_end: Ints32
    first: Ints32
    following: Ints32
    number: Ints32
    table: Ints32


class Lists(NamedTuple):
    """Lists that grow: of pairs with paths, of held units, and of what tests said.

    `active` are nodes of the trie, by path; `stack` those that lead to descendants of the path that is looked
    at, each once. `maybe` are units that may hold at nodes of a path, with `least`, which is what is known,
    and `truth`: where the answers of their tests begin in `truths`, -1 if they hold for all. `above`, `known`
    and `before` are entries of parents. `set_of` and `set_path` are sets of tests that were asked, with what
    they said, and how many letters were searched for that (`set_letters`). `wanted` are units to be looked at
    node by node. `forest` and `hits` count the anchors that hold.
    """

    active: Ints32
    stack: Ints32
    maybe: Ints32
    truth: Ints32
    least: Ints32
    set_of: Ints32
    set_path: Ints32
    set_truth: Ints32
    set_known: Ints32
    set_letters: Ints
    wanted: Ints32
    forest: Ints32
    hits: Ints32
    above: Ints32
    known: Ints32
    before: Ints32
    truths: Bytes


class MatchScratch(NamedTuple):
    """All of it."""

    fixed: IndexScratch
    sized: DocumentScratch
    lists: Lists


def make_fixed(arrays: XmlArrays) -> IndexScratch:
    """Make what an index needs."""
    units = len(arrays.units.row)
    return IndexScratch(
        _ints(len(arrays.trie.parent)),
        _ints(len(arrays.trie.parent)),
        np.zeros((units, 4), np.int32),
        _ints(units),
        _ints(units),
        _ints(units),
        _ints(len(arrays.tests.set_start)),
        _ints(len(arrays.forests.need)),
        _ints(len(arrays.forests.number)),
        np.zeros(len(arrays.tests.set_start), np.uint8),
        np.zeros(11, np.int64),
    )


def make_sized(nodes: int) -> DocumentScratch:
    """Make what a document of so many nodes needs; it has as many paths at most, and that of itself."""
    made: dict[str, NDArray[Any]] = {name: _ints(nodes + 2) for name in DocumentScratch._fields}
    made["value"] = np.zeros(nodes + 2, np.float64)
    made["known"] = np.zeros(nodes + 2, np.uint8)
    made["table"] = _ints(1 << (2 * nodes + 2).bit_length())
    return DocumentScratch(**made)


def make_lists(pairs: int, entries: int, truths: int) -> Lists:
    """Make lists with room for so many."""
    made: dict[str, NDArray[Any]] = {name: _ints(pairs) for name in Lists._fields}
    for name in ("above", "known", "before"):
        made[name] = _ints(entries)
    made["set_letters"] = np.zeros(pairs, np.int64)
    made["truths"] = np.zeros(truths, np.uint8)
    return Lists(**made)


def _ints(size: int) -> Ints32:
    return np.zeros(size, np.int32)
