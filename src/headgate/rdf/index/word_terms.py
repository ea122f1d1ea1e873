"""Words that filters name: found in texts, and with the code that each has in the dictionary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from headgate.core.interning import TextPool
from headgate.core.text.alphabets import RUST
from headgate.core.text.finding import KnownWords, add_words, make_slots
from headgate.rdf.index.compile import WORD_MARK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.rdf.index.arrays import Dictionary


class WordTerms(NamedTuple):
    """Words by number, and the code of each."""

    known: KnownWords
    codes: NDArray[np.int32]

    @classmethod
    def of(cls, dictionary: Dictionary) -> WordTerms:
        """Find the words of a dictionary."""
        offsets, data, _ = dictionary
        first = np.append(data, np.uint8(0))[offsets[:-1]]
        codes = np.flatnonzero((first == ord(WORD_MARK)) & (np.diff(offsets) > 0))
        return cls.some(dictionary, codes.astype(np.int32))

    @classmethod
    def some(cls, dictionary: Dictionary, codes: NDArray[np.int32]) -> WordTerms:
        """Take some words of a dictionary, given by their codes."""
        return cls(KnownWords.of(words_of(dictionary, codes), None, RUST), read_only(codes))


def words_of(dictionary: Dictionary, codes: NDArray[np.int32]) -> TextPool:
    """Return the words of some codes, without what marks them."""
    marked = TextPool(dictionary.offsets, dictionary.data).to_arrow().take(codes)
    return TextPool.from_arrow(pc.utf8_slice_codeunits(marked, len(WORD_MARK)))


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same array, where it lies, such that nobody can write through it."""
    view = array.view()
    view.flags.writeable = False
    return view


def grown(array: NDArray[Any], least: int) -> NDArray[Any]:
    """Return an array with room for so many, with what the given one holds."""
    if len(array) >= least:
        return array
    larger = np.zeros((max(least, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


class GrowingWords:
    """Words that become more, for a tail. One writes, any number read what `found` was before.

    Arrays that are full are copied into larger ones, and then the hash is, which points into them.
    """

    def __init__(self) -> None:
        self._count = 0
        self._offsets = np.zeros(64, np.int64)
        self._data = np.zeros(1024, np.uint8)
        self._codes = np.zeros(64, np.int32)
        self._slots = make_slots(TextPool.build([]))
        self.found = self._now()

    def add(self, word: str, code: int) -> None:
        """Append a word."""
        count, text = self._count, word.encode()
        before = self._offsets, self._data, self._codes
        begin = int(self._offsets[count])
        self._offsets = grown(self._offsets, count + 2)
        self._data = grown(self._data, begin + len(text))
        self._codes = grown(self._codes, count + 1)
        self._data[begin : begin + len(text)] = np.frombuffer(text, np.uint8)
        self._offsets[count + 1] = begin + len(text)
        self._codes[count] = code
        first = count
        if 2 * (count + 1) > len(self._slots):
            self._slots, first = np.zeros(4 * len(self._slots), np.uint64), 0
        elif any(one is not other for one, other in zip(before, self._arrays(), strict=True)):
            self._slots = self._slots.copy()
        add_words(self._offsets, self._data, first, count + 1, RUST, self._slots)
        self._count = count + 1
        self.found = self._now()

    def _arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        return self._offsets, self._data, self._codes

    def _now(self) -> WordTerms:
        offsets, data, codes = map(read_only, self._arrays())
        return WordTerms(KnownWords(RUST.table, offsets, data, read_only(self._slots)), codes)
