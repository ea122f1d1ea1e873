r"""Patterns that are a path to a node and ask for a word of its value: found by the word, without units.

    //item[re:test(title, '\bnews\b', 'i')]       ─//item─/title─~news

The trie alone tells where such a path leads to, up to the word. A way is the node of the trie above it. So a
document is walked without its words; where it leads to a way, words are cut and looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.contents.columns import picked, read_only
from headgate.core.jit import bare
from headgate.core.text.alphabets import PYTHON
from headgate.core.text.listing import (
    LEAST,
    ListedFilters,
    Marks,
    Split,
    WordLists,
    collect,
    frequent,
    mark_words,
)
from headgate.xml.index.arrays import BEGIN, CHILD_AXIS, END, TESTS
from headgate.xml.index.paths import find_paths, walk_trie
from headgate.xml.index.scratch import DONE, PATHS
from headgate.xml.language.model import WORD_MARK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.interning import TextPool
    from headgate.xml.events.document import Document
    from headgate.xml.index.arrays import Trie, XmlArrays
    from headgate.xml.index.scratch import MatchScratch

    Ints = NDArray[np.int32]

_NO_WAY = -1


def are_words(labels: TextPool) -> NDArray[np.bool_]:
    """Tell which labels are words."""
    first = np.append(labels.data, np.uint8(0))[labels.offsets[:-1]]
    are: NDArray[np.bool_] = (first == ord(WORD_MARK)) & (np.diff(labels.offsets) > 0)
    return are


def split(arrays: XmlArrays, labels: TextPool) -> Split | None:
    """List the patterns that are a path to a word; None if they are few."""
    trie, units, _, forests = arrays
    is_word = are_words(labels)
    if len(forests.number) < LEAST or not is_word.any():
        return None
    at = np.repeat(np.arange(len(trie.parent)), np.diff(trie.unit_start))
    leaf = _leaves(arrays, (trie.label[at] >= 0) & is_word[trie.label[at]] & (trie.axis[at] == CHILD_AXIS))
    anchor = np.repeat(np.arange(len(at)), np.diff(units.forest_start))
    fits = (leaf[anchor] >= 0) & (forests.need[units.forests] == 1)
    ways = frequent(trie.parent[at[leaf[anchor[fits]]]])
    way = np.full(len(trie.parent), _NO_WAY, np.int8)
    way[ways] = np.arange(len(ways))
    fits[fits] = way[trie.parent[at[leaf[anchor[fits]]]]] >= 0
    forest, end = units.forests[fits], at[leaf[anchor[fits]]]
    joined = np.zeros(labels.size, np.bool_)
    joined[trie.label[at[units.made_of(anchor[~fits])]]] = True
    joined &= is_word
    ends, inside = picked(forests.start, forest)
    # Texts are read twice if some words are left to be joined.
    if len(inside) < max(LEAST, joined.sum()):
        return None
    words, word_number = np.unique(trie.label[end], return_inverse=True)
    of_word, of_way = (np.repeat(each, np.diff(ends)) for each in (word_number, way[trie.parent[end]]))
    lists, large = WordLists.build(
        _without_marks(labels.take(words)), PYTHON, of_word, of_way, forests.number[inside]
    )
    return Split(lists, read_only(way), len(forests.number), large, joined, bool(fits.all()))


def _without_marks(words: TextPool) -> TextPool:
    return type(words).build([word[len(WORD_MARK) :] for word in words.texts()])


def _leaves(arrays: XmlArrays, is_word: NDArray[np.bool_]) -> Ints:
    """Return for each unit that is a path to a word and nothing else the unit of the word; -1 for others."""
    row = arrays.units.row
    begins, ends, tested = row[:, BEGIN], row[:, END], row[:, TESTS] > 0
    leaf = np.where((begins == ends) & is_word & ~tested, np.arange(len(row)), -1).astype(np.int32)
    path = np.flatnonzero((ends - begins == 1) & ~tested)
    below = arrays.units.below[begins[path]] >> 1
    while True:
        known = leaf[below]
        if (leaf[path] == known).all():
            return leaf
        leaf[path] = known


class ListedPatterns(ListedFilters):
    """Such patterns, asked. The ways of a split are those of each node of the trie."""

    def find(self, trie: Trie, document: Document, classes: Ints, scratch: MatchScratch) -> Ints | int:
        """List the numbers of those that hold, rising; or return what there was no room for."""
        marks, epoch = self._marks()
        count = _find(trie, document, classes, scratch, self._parts.lists, self._parts.ways, marks, epoch)
        return marks.out[:count].copy() if count >= 0 else -1 - int(count)


@bare
def _find(
    trie: Trie,
    document: Document,
    classes: Ints,
    scratch: MatchScratch,
    words: WordLists,
    way: NDArray[np.int8],
    marks: Marks,
    epoch: int,
) -> int:
    """Find what is listed for words of values, to which the trie leads."""
    fixed, sized, lists = scratch.fixed, scratch.sized, scratch.lists
    find_paths(document, classes, sized, fixed)
    done = walk_trie(trie, classes, sized, fixed, lists)
    if done != DONE:
        return -1 - done
    begins, stops = document.begins, document.stops
    for p in range(1, fixed.counts[PATHS]):
        ways = np.uint64(0)
        for i in range(sized.active_start[p], sized.active_start[p + 1]):
            own_way = way[lists.active[i]]
            if own_way >= 0:
                ways |= np.uint64(1) << np.uint64(own_way)
        if ways == 0:
            continue
        for i in range(sized.node_start[p], sized.node_start[p + 1]):
            n = sized.node[i]
            mark_words(words, marks, document.text, int(begins[n]), int(stops[n]), ways, epoch)
    return collect(marks)
