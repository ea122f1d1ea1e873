"""Words that filters ask for, as nodes: a document gets a child more for each word of a value.

A condition on a word is a node of a pattern like others, below the one whose value has the word: its label is
the word, behind a mark that no label has. So the trie leads to it, and no filter is looked at whose word is
not there. Only values of nodes are cut into words whose label some filter asks for words; of the words, only
those that filters name are added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.contents.columns import read_only
from headgate.core.bits import lower, packed
from headgate.core.interning import TextPool
from headgate.core.jit import bare, kernel
from headgate.core.text.alphabets import PYTHON
from headgate.core.text.finding import KnownWords, next_known, slot_of
from headgate.xml.events.document import BEGINS, ENDS, LABELS, LEVELS, PARENTS, STOPS, Document
from headgate.xml.index.paths import CLASSES
from headgate.xml.language.model import WORD_MARK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.xml.index.arrays import Trie
    from headgate.xml.language.model import Label

    Ints = NDArray[np.int32]


class WordNodes(NamedTuple):
    """Words by number, the label of each, and the labels that are asked for words."""

    known: KnownWords
    labels: Ints
    asked: NDArray[np.bool_]

    @classmethod
    def of(cls, labels: Sequence[Label], trie: Trie, is_word: NDArray[np.bool_]) -> WordNodes | None:
        """Take words among labels; None if there are none."""
        numbers = np.flatnonzero(is_word).tolist()
        if not numbers:
            return None
        words = TextPool.build([labels[number][len(WORD_MARK) :] for number in numbers])
        asked = np.zeros(len(labels), np.bool_)
        below = 1 + np.flatnonzero(is_word[trie.label[1:]])
        asked[trie.label[trie.parent[below]]] = True
        return cls(KnownWords.of(words, None, PYTHON), np.array(numbers, np.int32), asked)

    def added(self, document: Document, classes: Ints) -> tuple[Document, Ints]:
        """Return a document with the words of its values, in arrays that are not to be written to."""
        own = classes.reshape(-1, CLASSES)
        wanted = np.any(self.asked[own] & (own >= 0), axis=1)
        if not wanted.any():
            return document, classes
        size = 1 << (2 + min(len(document.text), self.known.slots.size)).bit_length()
        marks, last = np.zeros(size, np.int64), np.full(size, -1, np.int32)
        room = 64 + len(document.text) // 4
        while True:
            owner, word, met = np.empty((3, room), np.int32)
            counts = np.zeros(2, np.int64)
            if _find(
                document.labels,
                document.begins,
                document.stops,
                document.text,
                wanted,
                self.known,
                marks,
                last,
                owner,
                word,
                met,
                counts,
            ):
                break
            room *= 2
            marks[:], last[:] = 0, -1
        more, names = counts.tolist()
        nodes = len(document.labels) + more
        laid = np.empty((STOPS + 1, nodes), np.int32)
        _lay(*document[1:7], owner[:more], word[:more], len(own), laid)
        rows = np.full((names, CLASSES), -1, np.int32)
        rows[:, 0] = self.labels[met[:names]]
        labels, parents, ends, levels, begins, stops = map(read_only, laid)
        larger = Document((), labels, parents, ends, levels, begins, stops, document.text)
        return larger, read_only(np.concatenate([classes, rows.ravel()]))


@bare
def _find(
    labels: Ints,
    begins: Ints,
    stops: Ints,
    text: NDArray[np.uint8],
    wanted: NDArray[np.bool_],
    known: KnownWords,
    marks: NDArray[np.int64],
    last: Ints,
    owner: Ints,
    word: Ints,
    met: Ints,
    counts: NDArray[np.int64],
) -> bool:
    """Find the known words of values, each once for a node; returns whether there was room.

    `counts` are words of nodes, and different words; `met` are their numbers. `marks` finds one by its
    number: in a slot are the number plus one, and its place in `met`; `last` is the node that had it last.
    """
    count, names = 0, 0
    for n in range(len(labels)):
        if not wanted[labels[n]]:
            continue
        at, stop = int(begins[n]), int(stops[n])
        while at < stop:
            at, number = next_known(known, text, at, stop)
            if number < 0:
                break
            slot = slot_of(marks, number)
            if marks[slot] == 0:
                if names == len(met):
                    return False
                marks[slot] = packed(number + 1, names)
                met[names] = number
                names += 1
            if last[slot] == n:
                continue
            if count == len(owner):
                return False
            last[slot] = n
            owner[count], word[count] = n, lower(marks[slot])
            count += 1
    counts[0], counts[1] = count, names
    return True


@kernel
def _lay(
    labels: Ints,
    parents: Ints,
    ends: Ints,
    levels: Ints,
    begins: Ints,
    stops: Ints,
    owner: Ints,
    word: Ints,
    names: int,
    laid: NDArray[np.int32],
) -> None:
    """Lay a document out with its words, each right behind its node; `laid` are the columns of a document."""
    nodes = len(labels)
    new_number = np.empty(nodes + 1, np.int32)
    at = 0
    for n in range(nodes):
        new_number[n] = n + at
        while at < len(owner) and owner[at] == n:
            at += 1
    new_number[nodes] = nodes + at
    at = 0
    for n in range(nodes):
        here = new_number[n]
        laid[LABELS, here] = labels[n]
        laid[PARENTS, here] = new_number[parents[n]] if parents[n] >= 0 else parents[n]
        # The words of the last node below are behind it.
        laid[ENDS, here] = new_number[ends[n] + 1] - 1
        laid[LEVELS, here] = levels[n]
        laid[BEGINS, here], laid[STOPS, here] = begins[n], stops[n]
        for behind in range(here + 1, new_number[n + 1]):
            laid[LABELS, behind] = names + word[at]
            laid[PARENTS, behind], laid[ENDS, behind], laid[LEVELS, behind] = here, behind, levels[n] + 1
            laid[BEGINS, behind], laid[STOPS, behind] = 0, 0
            at += 1
