"""Hot loops: which of many known words a text has, in one pass and with one look into a hash for each word.

Words are cut some at a time, then looked up together: so the misses of the cache overlap, which are most of
what a look into a large hash costs.

The hash is of folded letters, not of bytes, so that no folded text is made. A slot holds half of a word's
hash and its number plus one; 0 is free. Slots are a power of two, at most half of them taken.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.bits import packed, upper
from headgate.core.jit import bare, bare_inner, kernel
from headgate.core.jit.memory import prefetch
from headgate.core.text.alphabets import JAVA

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Ints, Ints32, Words
    from headgate.core.interning import TextPool
    from headgate.core.text.alphabets import Alphabet


_BASIS = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(0xFFFFFFFF00000000)
_LETTERS, _FIRST_MARK, _LAST_MARK = 0x40000, 0xE0100, 0xE01EF


_MOST_KEPT = 1 << 16
TOGETHER = 64
"""Words that are looked up together."""


class Cut(NamedTuple):
    """Words that were cut from a text: where each begins and ends, and its hash.

    `number` is what they were found to be, -1 for a word that is not known.
    """

    begin: Ints32
    end: Ints32
    hashed: Words
    number: Ints

    @classmethod
    def make(cls) -> Cut:
        """Make room for words that are looked up together."""
        begin, end = np.zeros((2, TOGETHER), np.int32)
        return cls(begin, end, np.zeros(TOGETHER, np.uint64), np.zeros(TOGETHER, np.int64))


class FoundWords(NamedTuple):
    """Text t has the known words number[start[t]:start[t + 1]], each once."""

    start: Ints
    number: Ints32


def make_slots(known: TextPool, alphabet: Alphabet = JAVA) -> Words:
    """Make the hash of folded words, which are distinct.

    >>> from headgate.core.interning import TextPool
    >>> len(make_slots(TextPool.build(["news", "sport", "art"])))
    8
    """
    slots = np.zeros(2 << max(1, known.size).bit_length(), np.uint64)
    _fill(fixed(known.offsets), fixed(known.data), 0, known.size, alphabet.table, slots)
    return slots


def add_words(offsets: Ints, data: Bytes, first: int, last: int, alphabet: Alphabet, slots: Words) -> None:
    """Put more words into a hash that has room for them."""
    _fill(fixed(offsets), fixed(data), first, last, alphabet.table, slots)


class KnownWords(NamedTuple):
    """Folded words, distinct, their hash, and what letters are."""

    letters: Ints32
    offsets: Ints
    data: Bytes
    slots: Words

    @classmethod
    def of(cls, known: TextPool, slots: Words | None = None, alphabet: Alphabet = JAVA) -> KnownWords:
        """Take words over where they lie, with a hash that was made of them if there is one."""
        slots = make_slots(known, alphabet) if slots is None else slots
        return cls(alphabet.table, fixed(known.offsets), fixed(known.data), fixed(slots))

    def find(self, texts: TextPool) -> FoundWords:
        """Find the known words of some texts.

        >>> from headgate.core.interning import TextPool
        >>> known = KnownWords.of(TextPool.build(["news", "über"]))
        >>> known.find(TextPool.build(["ÜBER the News, new news"])).number.tolist()
        [1, 0]
        """
        return self._find(fixed(texts.offsets), fixed(texts.data), int(np.diff(texts.offsets).max(initial=0)))

    def find_one(self, text: str) -> Ints32:
        """Find the known words of one text."""
        data = text.encode()
        offsets = np.array((0, len(data)))
        offsets.flags.writeable = False
        return self._find(offsets, np.frombuffer(data, np.uint8), len(data)).number

    def _find(self, offsets: Ints, data: Bytes, longest: int) -> FoundWords:
        start = np.zeros(len(offsets), np.int64)
        # A word takes a byte, and what stands before the next another.
        number = np.empty((len(data) + len(offsets)) // 2 + 1, np.int32)
        marks, before = _marks_of(1 << (longest + 1).bit_length(), len(start))
        _find(offsets, data, self, marks, before, start, number)
        return FoundWords(start, number[: start[-1]])


_KEPT = threading.local()
_LAST_TEXT = 2**31 - 1


def _marks_of(size: int, texts: int) -> tuple[Ints, int]:
    """Return this thread's marks of words, and a number up to which texts have had them.

    They are kept, since to make them anew takes as long as finding the words of a short text.
    """
    if size > _MOST_KEPT:
        return np.zeros(size, np.int64), 0
    marks: Ints | None = getattr(_KEPT, "marks", None)
    if marks is None or len(marks) < size or _KEPT.texts + texts > _LAST_TEXT:
        marks = _KEPT.marks = np.zeros(size, np.int64)
        _KEPT.texts = 0
    before: int = _KEPT.texts
    _KEPT.texts += texts
    return marks, before


def fixed(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that is not to be written to: kernels are compiled for such only, not for both."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


@bare_inner
def _next(data: Bytes, at: int) -> tuple[np.int64, int]:
    """Return the character at a place, which is beyond ASCII, and the place of the next."""
    first = np.int64(data[at])
    if first < 0xE0:
        return ((first & 0x1F) << 6) | (np.int64(data[at + 1]) & 0x3F), at + 2
    if first < 0xF0:
        code = ((first & 0x0F) << 12) | ((np.int64(data[at + 1]) & 0x3F) << 6)
        return code | (np.int64(data[at + 2]) & 0x3F), at + 3
    code = ((first & 0x07) << 18) | ((np.int64(data[at + 1]) & 0x3F) << 12)
    return code | ((np.int64(data[at + 2]) & 0x3F) << 6) | (np.int64(data[at + 3]) & 0x3F), at + 4


@bare_inner
def _letter(table: Ints32, data: Bytes, at: int) -> tuple[np.int64, int]:
    """Return the folded letter at a place, 0 for what is none, and the place of the next."""
    if data[at] < 0x80:
        return np.int64(table[data[at]]), at + 1
    code, behind = _next(data, at)
    if code < _LETTERS:
        return np.int64(table[code]), behind
    is_mark = table[_LETTERS] != 0 and _FIRST_MARK <= code <= _LAST_MARK
    return (code if is_mark else np.int64(0)), behind


@bare_inner
def _add(hashed: np.uint64, letter: np.int64) -> np.uint64:
    return (hashed ^ np.uint64(letter)) * _PRIME


@bare_inner
def _finish(hashed: np.uint64) -> np.uint64:
    return hashed ^ (hashed >> _HALF)


@kernel
def _fill(offsets: Ints, data: Bytes, first: int, last: int, table: Ints32, slots: Words) -> None:
    """Put words into a hash, from one on."""
    mask = np.uint64(len(slots) - 1)
    for word in range(first, last):
        at, hashed = offsets[word], _BASIS
        while at < offsets[word + 1]:
            letter, at = _letter(table, data, at)
            hashed = _add(hashed, letter)
        hashed = _finish(hashed)
        slot = hashed & mask
        while slots[slot]:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = (hashed & _HIGH) | np.uint64(word + 1)


@bare
def _same(table: Ints32, data: Bytes, at: int, stop: int, known: Bytes, begin: int, end: int) -> bool:
    """Tell whether a word of a text is a known one, which is folded already."""
    while at < stop and begin < end:
        one, at = _letter(table, data, at)
        other, begin = _letter(table, known, begin)
        if one != other:
            return False
    return at == stop and begin == end


@bare_inner
def next_word(known: KnownWords, data: Bytes, at: int, stop: int) -> tuple[int, int, int, np.uint64]:
    """Read on up to the end of a word: returns the place behind that, the word's ends, and its hash.

    Where no word begins, the ends are the same.
    """
    begin, end, hashed = at, at, _BASIS
    while at < stop:
        letter, at = _letter(known.letters, data, at)
        if letter == 0:
            break
        end = at
        hashed = _add(hashed, letter)
    return at, begin, end, _finish(hashed)


@bare_inner
def number_of(known: KnownWords, data: Bytes, begin: int, end: int, hashed: np.uint64) -> int:
    """Return the number of a word by its hash, -1 if it is not known."""
    slots, offsets = known.slots, known.offsets
    mask = np.uint64(len(slots) - 1)
    slot = hashed & mask
    while slots[slot]:
        if (slots[slot] ^ hashed) & _HIGH == 0:
            word = np.int64(slots[slot] & _LOW) - 1
            if _same(known.letters, data, begin, end, known.data, offsets[word], offsets[word + 1]):
                return int(word)
        slot = (slot + np.uint64(1)) & mask
    return -1


@bare_inner
def next_known(known: KnownWords, data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Read on to the end of the next known word: returns the place behind that, and its number or -1."""
    number = -1
    while at < stop and number < 0:
        at, begin, end, hashed = next_word(known, data, at, stop)
        if begin < end:
            number = number_of(known, data, begin, end, hashed)
    return at, number


@bare_inner
def slot_of(marks: Ints, number: int) -> int:
    """Return the slot of a word, or a free one: the upper half of its mark is the word's number plus one."""
    last = len(marks) - 1
    slot = number & last
    while marks[slot] and upper(marks[slot]) != number + 1:
        slot = (slot + 1) & last
    return slot


@bare_inner
def cut_words(known: KnownWords, data: Bytes, at: int, stop: int, cut: Cut) -> tuple[int, int]:
    """Cut the next words of a text, as many as there is room for; returns the place behind, and how many."""
    slots = known.slots
    mask = np.uint64(len(slots) - 1)
    n = 0
    while at < stop and n < len(cut.begin):
        at, begin, end, hashed = next_word(known, data, at, stop)
        if begin < end:
            cut.begin[n], cut.end[n], cut.hashed[n] = begin, end, hashed
            prefetch(slots, int(hashed & mask))
            n += 1
    return at, n


@bare_inner
def number_words(known: KnownWords, data: Bytes, cut: Cut, count: int) -> None:
    """Find the numbers of words that were cut: in passes, each of which asks for what the next one reads."""
    slots, offsets = known.slots, known.offsets
    mask = np.uint64(len(slots) - 1)
    for i in range(count):
        slot = slots[cut.hashed[i] & mask]
        cut.number[i] = np.int64(slot & _LOW) - 1
        if slot:
            prefetch(offsets, cut.number[i])
    for i in range(count):
        if cut.number[i] >= 0:
            prefetch(known.data, offsets[cut.number[i]])
    for i in range(count):
        if cut.number[i] >= 0:
            cut.number[i] = number_of(known, data, int(cut.begin[i]), int(cut.end[i]), cut.hashed[i])


@kernel
def _find(
    offsets: Ints, data: Bytes, known: KnownWords, marks: Ints, before: int, start: Ints, number: Ints32
) -> None:
    """Find the known words of each text; `marks` is a hash of those of a text that were found already.

    A mark is the text, counted from `before` on, and the word: those of other texts are free places.
    """
    marked = len(marks) - 1
    cut = Cut(
        np.empty(TOGETHER, np.int32),
        np.empty(TOGETHER, np.int32),
        np.empty(TOGETHER, np.uint64),
        np.empty(TOGETHER, np.int64),
    )
    n = 0
    for t in range(len(offsets) - 1):
        at, stop = offsets[t], offsets[t + 1]
        while at < stop:
            at, count = cut_words(known, data, at, stop, cut)
            number_words(known, data, cut, count)
            for i in range(count):
                word = cut.number[i]
                if word < 0:
                    continue
                own = before + t + 1
                mark = packed(own, word)
                slot = word & marked
                while marks[slot] != mark and upper(marks[slot]) == own:
                    slot = (slot + 1) & marked
                if marks[slot] != mark:
                    marks[slot] = mark
                    number[n] = word
                    n += 1
        start[t + 1] = n
