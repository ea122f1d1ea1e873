"""A set of positions with quick neighbours: bits in words of 64, and a bit above each word that is not 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.bits import lowest, place_of
from headgate.core.jit import bare_inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ONE = np.uint64(1)
_ALL = np.uint64(2**64 - 1)


class Marks(NamedTuple):
    """Level l is words[level[l]:level[l + 1]]; bit b of word w there is for word 64 w + b one level below.

    Those of level 0 stand for positions. The last level has one word.
    """

    words: NDArray[np.uint64]
    level: NDArray[np.int64]


def make_marks(size: int) -> Marks:
    """Make an empty set of positions below `size`."""
    level = [0]
    while True:
        size = max(1, -(-size // 64))
        level.append(level[-1] + size)
        if size == 1:
            return Marks(np.zeros(level[-1], np.uint64), np.array(level))


@bare_inner
def mark(marks: Marks, at: int) -> None:
    """Put a position into the set."""
    for level in range(len(marks.level) - 1):
        word = marks.level[level] + (at >> 6)
        before = marks.words[word]
        marks.words[word] = before | (_ONE << np.uint64(at & 63))
        if before != np.uint64(0):
            return
        at >>= 6


@bare_inner
def unmark(marks: Marks, at: int) -> None:
    """Take a position out of the set."""
    for level in range(len(marks.level) - 1):
        word = marks.level[level] + (at >> 6)
        marks.words[word] &= ~(_ONE << np.uint64(at & 63))
        if marks.words[word] != np.uint64(0):
            return
        at >>= 6


@bare_inner
def next_mark(marks: Marks, at: int) -> int:
    """Find the first position from `at` on; -1 for none."""
    levels = len(marks.level) - 1
    level = 0
    while level < levels:
        word = marks.level[level] + (at >> 6)
        if word >= marks.level[level + 1]:
            return -1
        rest = marks.words[word] & (_ALL << np.uint64(at & 63))
        if rest != np.uint64(0):
            at = ((at >> 6) << 6) + place_of(lowest(rest))
            while level > 0:
                level -= 1
                at = (at << 6) + place_of(lowest(marks.words[marks.level[level] + at]))
            return at
        at = (at >> 6) + 1
        level += 1
    return -1


@bare_inner
def previous_mark(marks: Marks, at: int) -> int:
    """Find the last position up to `at`; -1 for none."""
    levels = len(marks.level) - 1
    level = 0
    while level < levels and at >= 0:
        rest = marks.words[marks.level[level] + (at >> 6)] & (_ALL >> np.uint64(63 - (at & 63)))
        if rest != np.uint64(0):
            at = ((at >> 6) << 6) + place_of(_highest(rest))
            while level > 0:
                level -= 1
                at = (at << 6) + place_of(_highest(marks.words[marks.level[level] + at]))
            return at
        at = (at >> 6) - 1
        level += 1
    return -1


@bare_inner
def _highest(word: np.uint64) -> np.uint64:
    """Keep the highest bit of a word that is not 0."""
    word |= word >> np.uint64(1)
    word |= word >> np.uint64(2)
    word |= word >> np.uint64(4)
    word |= word >> np.uint64(8)
    word |= word >> np.uint64(16)
    word |= word >> np.uint64(32)
    return word ^ (word >> _ONE)
