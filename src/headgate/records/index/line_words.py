"""Lines of words: an event has the codes of the words of its text that filters name.

Filters name tens of thousands of words, and a text has hundreds. So the texts of such a line are in a hash as
well (`core/text/finding.py`), and a text is cut into words and looked up in one pass. Words that no filter
names are left out, since the leaves of these lines are single words and what lies outside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.interning import TextPool
from headgate.core.text.finding import KnownWords, make_slots
from headgate.records.computed import WORDS
from headgate.records.index.grams import by_event
from headgate.records.programs.programs import starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.core.values import Path
    from headgate.records.index.arrays import BuiltIndex
    from headgate.records.index.lines import Lines

    Ints = NDArray[np.int64]


def add_slots(attributes: Sequence[Path], lines: Lines, texts: TextPool) -> Lines:
    """Put the texts of each line of words into a hash."""
    found = [np.zeros(0, np.uint64)] * lines.size
    for c, line in enumerate(lines.column_line.tolist()):
        if attributes[lines.line_attribute[line]][:1] == (WORDS,):
            found[line] = make_slots(texts.some(int(lines.text_first[c]), int(lines.text_last[c])))
    lengths = np.array([len(own) for own in found], np.int64)
    return lines._replace(slot_start=starts(lengths), slots=np.concatenate([np.zeros(0, np.uint64), *found]))


class LineWords(NamedTuple):
    """A line of words, ready for texts: the words, and the code of each."""

    known: KnownWords
    codes: NDArray[np.int32]

    @classmethod
    def of(cls, index: BuiltIndex, line: int) -> LineWords:
        """Take it out of an index; the data of texts stay where they are."""
        lines = index.lines
        c = int(np.searchsorted(lines.column_line, line))
        first, last = int(lines.text_first[c]), int(lines.text_last[c])
        cells = lines.cell_code[lines.cell_base[line] + lines.column_cell[c] : lines.cell_base[line + 1]]
        known = TextPool(index.texts.offsets[first : last + 1], index.texts.data)
        return cls(
            KnownWords.of(known, lines.slots[lines.slot_start[line] : lines.slot_start[line + 1]]),
            cells[1::2],
        )

    def find(self, texts: TextPool) -> tuple[Ints, NDArray[np.int32]]:
        """List the codes of the words of each text: where they begin, and they themselves."""
        start, number = self.known.find(texts)
        return start, self.codes[number]

    def find_one(self, text: str) -> NDArray[np.int32]:
        """List the codes of the words of one text."""
        return self.codes[self.known.find_one(text)]


def event_words(
    code: NDArray[np.int32], texts: TextPool, index: BuiltIndex, line: int
) -> tuple[Ints, NDArray[np.int32]]:
    """List the codes of the words of each event's text (place code[e] of texts, -1 for none)."""
    return by_event(code, *LineWords.of(index, line).find(texts))
