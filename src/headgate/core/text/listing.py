"""Filters that ask for one word and nothing else but a way to its text, listed by the word.

A *way* is what leads to the texts that a filter looks into, such as a property: one of 64 bits. Who knows the
ways of a text marks the filters of its words; what is marked is collected in rising order, each once.

    stream   way  count  large │ numbers …  ║ way  count  large │ numbers … ║ …
             └ start[word], a group of numbers for each way of the word     └ start[word + 1]

A group of few numbers is marked again whenever its word comes again, which changes nothing. One with more has
a number of its own, and is marked once for a document.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.bits import lowest, place_of
from headgate.core.jit import bare, bare_inner
from headgate.core.jit.memory import prefetch
from headgate.core.text.finding import Cut, KnownWords, cut_words, fixed, number_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.interning import TextPool
    from headgate.core.text.alphabets import Alphabet

    Ints = NDArray[np.int32]

WAYS = 64
LEAST = 64
"""Filters for which lists are made; fewer are matched as all others are."""
_HEAD, _FEW = 3, 8
_ONE, _BITS, _INSIDE = np.uint64(1), np.uint64(6), np.uint64(63)
_LAST_EPOCH = 2**31 - 2


class WordLists(NamedTuple):
    """Words, and the groups of each."""

    known: KnownWords
    start: Ints
    stream: Ints

    @classmethod
    def build(
        cls, words: TextPool, alphabet: Alphabet, word: NDArray[Any], way: NDArray[Any], number: Ints
    ) -> tuple[WordLists, int]:
        """List numbers, given with a word and a way each; returns how many groups are large, too.

        >>> from headgate.core.interning import TextPool
        >>> from headgate.core.text.alphabets import JAVA
        >>> rows = np.array([(0, 5, 2), (1, 5, 0), (0, 5, 1)], np.int32).T
        >>> lists, large = WordLists.build(TextPool.build(["art", "news"]), JAVA, *rows)
        >>> lists.start.tolist(), lists.stream.tolist(), large
        ([0, 5, 9], [5, 2, -1, 1, 2, 5, 1, -1, 0], 0)
        """
        order = np.lexsort((number, way, word))
        word, way, number = (each[order].astype(np.int32) for each in (word, way, number))
        fresh = np.ones(len(word), np.bool_)
        fresh[1:] = (word[1:] != word[:-1]) | (way[1:] != way[:-1])
        first = np.flatnonzero(fresh)
        count = np.diff(np.append(first, len(word)))
        large = count > _FEW
        at = np.cumsum(count + _HEAD) - count - _HEAD
        stream = np.empty(len(word) + _HEAD * len(first), np.int32)
        stream[at], stream[at + 1] = way[first], count
        stream[at + 2] = np.where(large, np.cumsum(large) - 1, -1)
        stream[np.arange(len(word)) + _HEAD * np.cumsum(fresh)] = number
        sizes = np.bincount(word[first], count + _HEAD, words.size)
        start = np.concatenate([np.zeros(1, np.int32), np.cumsum(sizes).astype(np.int32)])
        known = KnownWords.of(words, None, alphabet)
        return cls(known, fixed(start), fixed(stream)), int(large.sum())


class Marks(NamedTuple):
    """One thread's marks: a bit for each number, and above them one for each 64 of these.

    `done` are the epochs of large groups; `out` has room for all numbers, `cut` for some words.
    """

    bits: NDArray[np.uint64]
    above: NDArray[np.uint64]
    done: Ints
    out: Ints
    cut: Cut

    @classmethod
    def make(cls, numbers: int, large: int) -> Marks:
        """Make marks for numbers below one."""
        return cls(
            np.zeros((numbers >> 6) + 1, np.uint64),
            np.zeros((numbers >> 12) + 1, np.uint64),
            np.zeros(large, np.int32),
            np.zeros(numbers, np.int32),
            Cut.make(),
        )

    def next_epoch(self, epoch: int) -> int:
        """Return an epoch that no mark holds."""
        if epoch >= _LAST_EPOCH:
            self.done[:] = 0
            return 1
        return epoch + 1


class Split(NamedTuple):
    """Lists, the ways that lead to their texts, and how many numbers and large groups there are.

    `joined` are words that other filters ask for; `whole` tells that there are no others.
    """

    lists: WordLists
    ways: Any
    numbers: int
    large: int
    joined: NDArray[Any]
    whole: bool


class ListedFilters:
    """Filters that are listed. Any number of threads may ask, each with its marks."""

    def __init__(self, parts: Split) -> None:
        self._parts = parts
        self._local = threading.local()

    def _marks(self) -> tuple[Marks, int]:
        """Return this thread's marks, and an epoch that none of them holds."""
        local = self._local
        if not hasattr(local, "marks"):
            local.marks, local.epoch = Marks.make(self._parts.numbers, self._parts.large), 0
        local.epoch = local.marks.next_epoch(local.epoch)
        return local.marks, local.epoch


def frequent(kinds: NDArray[Any], most: int = WAYS) -> NDArray[Any]:
    """List what comes most often, at most as many as there are ways.

    >>> frequent(np.array([3, 1, 3, 2, 2, 3]), 2).tolist()
    [3, 2]
    """
    kinds, counts = np.unique(kinds, return_counts=True)
    return kinds[np.argsort(-counts, kind="stable")[:most]]


@bare_inner
def mark_words(
    lists: WordLists,
    marks: Marks,
    text: NDArray[np.uint8],
    at: int,
    stop: int,
    ways: np.uint64,
    epoch: int,
) -> None:
    """Mark what is listed for the words of a text, to which some ways lead."""
    start, stream, cut = lists.start, lists.stream, marks.cut
    while at < stop:
        at, count = cut_words(lists.known, text, at, stop, cut)
        number_words(lists.known, text, cut, count)
        for i in range(count):
            if cut.number[i] >= 0:
                prefetch(stream, start[cut.number[i]])
        for i in range(count):
            word = cut.number[i]
            if word >= 0:
                _mark(stream, marks, int(start[word]), int(start[word + 1]), ways, epoch)


@bare_inner
def _mark(stream: Ints, marks: Marks, at: int, stop: int, ways: np.uint64, epoch: int) -> None:
    """Mark the numbers of a word's groups that some ways lead to."""
    while at < stop:
        first, large = at + _HEAD, stream[at + 2]
        is_wanted = ways >> np.uint64(stream[at]) & _ONE != 0
        at = first + stream[at + 1]
        if not is_wanted or (large >= 0 and marks.done[large] == epoch):
            continue
        if large >= 0:
            marks.done[large] = epoch
        for k in range(first, at):
            number = np.uint64(stream[k])
            block = number >> _BITS
            marks.bits[block] |= _ONE << (number & _INSIDE)
            marks.above[block >> _BITS] |= _ONE << (block & _INSIDE)


@bare
def collect(marks: Marks) -> int:
    """Write the numbers that are marked into `out`, rising, and clear the marks; returns how many."""
    count = 0
    for top in range(len(marks.above)):
        blocks = marks.above[top]
        marks.above[top] = 0
        while blocks:
            lone = lowest(blocks)
            blocks ^= lone
            block = 64 * top + place_of(lone)
            word = marks.bits[block]
            marks.bits[block] = 0
            while word:
                bit = lowest(word)
                word ^= bit
                marks.out[count] = 64 * block + place_of(bit)
                count += 1
    return count
