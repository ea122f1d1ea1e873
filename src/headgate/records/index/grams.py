"""Lines of letters and words: an event has many codes there, those of its text that filters name.

A text that fits a LIKE pattern holds every three bytes in a row that the pattern names. So an attribute
with patterns has one more line, whose codes are these *grams*. An event has the codes of all grams of its
text, as it has those of all elements of an array, and a pattern is found under its rarest gram. Patterns
that name no three bytes in a row have none.

Filters name tens of thousands of words, and a text has hundreds. So the texts of such a line are in a hash as
well (`core/text/finding.py`), and a text is cut into words and looked up in one pass. Words that no filter
names are left out, since the leaves of these lines are single words and what lies outside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.contents.columns import picked
from headgate.core.interning import TextPool
from headgate.core.jit import kernel
from headgate.core.text.finding import KnownWords, make_slots
from headgate.records.computed import WORDS
from headgate.records.programs.programs import GLOB, starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.arrays import Bytes, Floats64, Ints, Ints32
    from headgate.core.values import Path
    from headgate.records.index.arrays import BuiltIndex
    from headgate.records.index.lines import Lines, Parts
    from headgate.records.programs.programs import Programs


GRAMS = 2
"""What `line_multi` says of a line of grams."""


class PartGrams(NamedTuple):
    """The grams of each part that is a pattern: line[p] and the codes code[start[p]:start[p + 1]]."""

    start: Ints
    line: Ints32
    code: Ints32


def add_grams(programs: Programs, lines: Lines, parts: Parts) -> tuple[Lines, PartGrams]:
    """Add the lines of grams behind all others."""
    is_glob = (programs.leaf_kind[parts.part_leaf] == GLOB) if len(parts.part_leaf) else np.zeros(0, bool)
    grams = [_grams(programs, int(leaf)) for leaf in parts.part_leaf[is_glob]]
    owners = programs.leaf_attribute[parts.part_leaf[is_glob]] if grams else np.zeros(0, np.int32)
    counts = np.zeros(len(parts.part_leaf), np.int64)
    line = np.full(len(parts.part_leaf), -1, np.int32)
    keys: list[Ints32] = []
    codes = [np.zeros(0, np.int32)] * len(grams)
    places = np.flatnonzero(is_glob)
    attributes: list[int] = []
    for attribute in np.unique(owners).tolist():
        mine = np.flatnonzero(owners == attribute).tolist()
        known = np.unique(np.concatenate([grams[position] for position in mine]))
        if not len(known):
            continue
        for position in mine:
            codes[position] = (np.searchsorted(known, grams[position]) + 1).astype(np.int32)
            counts[places[position]] = len(codes[position])
            line[places[position]] = lines.size + len(attributes)
        attributes.append(attribute)
        keys.append(known)
    more = len(attributes)
    lengths = np.array([0] * lines.size + [len(known) for known in keys], np.int64)
    grown = lines._replace(
        line_attribute=np.concatenate([lines.line_attribute, np.array(attributes, np.int32)]),
        line_multi=np.concatenate([lines.line_multi, np.full(more, GRAMS, np.uint8)]),
        line_codes=np.concatenate([lines.line_codes, (lengths[lines.size :] + 1).astype(np.int32)]),
        cell_base=np.concatenate([lines.cell_base, np.full(more, lines.cell_base[-1], np.int64)]),
        gram_start=starts(lengths),
        grams=np.concatenate([np.zeros(0, np.int32), *keys]),
    )
    return grown, PartGrams(starts(counts), line, np.concatenate([np.zeros(0, np.int32), *codes]))


def _grams(programs: Programs, leaf: int) -> Ints32:
    """List the grams of a pattern."""
    tokens = programs.glob_tokens[programs.glob_start[leaf] : programs.glob_start[leaf + 1]].astype(np.int32)
    if len(tokens) < 3:
        return np.zeros(0, np.int32)
    first, second, third = tokens[:-2], tokens[1:-1], tokens[2:]
    named = (first >= 0) & (second >= 0) & (third >= 0)
    return np.unique(((first << 16) | (second << 8) | third)[named])


def rarest(grams: PartGrams, line_base: Ints32, weight: Floats64) -> Ints:
    """Choose the atom of each part's rarest gram, -1 for parts without."""
    best = np.full(len(grams.line), -1, np.int64)
    for p in np.flatnonzero(np.diff(grams.start)).tolist():
        atoms = line_base[grams.line[p]] + grams.code[grams.start[p] : grams.start[p + 1]]
        best[p] = atoms[np.argmin(weight[atoms])]
    return best


def event_grams(code: Ints32, texts: TextPool, known: Ints32) -> tuple[Ints, Ints32]:
    """List the codes of the grams of each event's text (place code[e] of texts, -1 for none)."""
    codes = np.zeros(len(texts.data), np.int32)
    ends = np.zeros(texts.size + 1, np.int64)
    _find_grams(texts.offsets, texts.data, known, ends, codes)
    return by_event(code, ends, codes)


def by_event(code: Ints32, ends: Ints, codes: Ints32) -> tuple[Ints, Ints32]:
    """Lay out by events what was found in texts: found[ends[t]:ends[t + 1]] in text t = code[e]."""
    begin, at = picked(np.append(ends, ends[-1:]), np.where(code >= 0, code, len(ends) - 1))
    return begin, codes[at]


@kernel
def _find_grams(offsets: Ints, data: Bytes, known: Ints32, ends: Ints, codes: Ints32) -> None:
    """Look up every three bytes of every text."""
    n = 0
    for t in range(len(offsets) - 1):
        for at in range(offsets[t], offsets[t + 1] - 2):
            gram = (np.int32(data[at]) << 16) | (np.int32(data[at + 1]) << 8) | np.int32(data[at + 2])
            low, high = 0, len(known)
            while low < high:
                middle = (low + high) >> 1
                if known[middle] < gram:
                    low = middle + 1
                else:
                    high = middle
            if low < len(known) and known[low] == gram:
                codes[n] = low + 1
                n += 1
        ends[t + 1] = n


def add_slots(attributes: Sequence[Path], lines: Lines, texts: TextPool) -> Lines:
    """Put the texts of each line of words into a hash."""
    slots = [np.zeros(0, np.uint64)] * lines.size
    for c, line in enumerate(lines.column_line.tolist()):
        if attributes[lines.line_attribute[line]][:1] == (WORDS,):
            slots[line] = make_slots(texts.some(int(lines.text_first[c]), int(lines.text_last[c])))
    lengths = np.array([len(own) for own in slots], np.int64)
    return lines._replace(slot_start=starts(lengths), slots=np.concatenate([np.zeros(0, np.uint64), *slots]))


class LineWords(NamedTuple):
    """A line of words, ready for texts: the words, and the code of each."""

    known: KnownWords
    codes: Ints32

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

    def find(self, texts: TextPool) -> tuple[Ints, Ints32]:
        """List the codes of the words of each text: where they begin, and they themselves."""
        start, number = self.known.find(texts)
        return start, self.codes[number]

    def find_one(self, text: str) -> Ints32:
        """List the codes of the words of one text."""
        return self.codes[self.known.find_one(text)]


def event_words(code: Ints32, texts: TextPool, index: BuiltIndex, line: int) -> tuple[Ints, Ints32]:
    """List the codes of the words of each event's text (place code[e] of texts, -1 for none)."""
    return by_event(code, *LineWords.of(index, line).find(texts))
