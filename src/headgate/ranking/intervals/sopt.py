"""SOPT-R-tree: an R-tree whose entries are arranged so that the walk meets few holes.

Two intervals that share no point may stand in either order. The constraint graph says which may not: it has
an edge from an interval to a lower one if they share a point that no interval between them in score has.
Algorithm 2 of the paper finds the edges by going through the intervals from the best down, and keeping which
one is lowest over each stretch of the line (the visible blocks). Algorithm 1 then takes, again and again, the
interval with the least low end among those with no edge left into them.

    position 0        all that is left of the first end point
    position 2i + 1   the i-th distinct end point, from 0 on
    position 2i + 2   the gap behind it

Blocks begin at marked positions; the marks are bits in words of 64, with a bit a word above them, so that
neighbours are found in a few steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.bits import lowest, place_of
from headgate.core.heaps import pop, push
from headgate.core.jit import bare, bare_inner
from headgate.ranking.intervals.rtree import FANOUT, Meeting, TreeWalk, climb_many, make_stack, make_tree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Floats, Ints
    from headgate.ranking.intervals.scored import Scored

    Ranks = NDArray[np.int32]

_NOBODY = -1
_ONE = np.uint64(1)
_ALL = np.uint64(2**64 - 1)


class SoptTree(Meeting):
    """Intervals in the arrangement of Algorithm 1, with extents above them."""

    def __init__(self, scored: Scored, fanout: int = FANOUT) -> None:
        super().__init__(scored, fanout)
        order = arrangement(scored)
        self.tree = make_tree(scored.low[order], scored.high[order], order, fanout)

    def begin(self, x: Any, y: Any) -> TreeWalk:
        """Begin to list the intervals with low <= x and high >= y; x is not above y."""
        return TreeWalk(self.tree, x, y)

    def find(self, x: Floats, y: Floats, ranks: Ranks, counts: Ints) -> None:
        """Find the best for each of such questions, as many as there is room for."""
        climb_many(self.tree, make_stack(self.tree), x, y, ranks, counts)


def arrangement(scored: Scored) -> Ranks:
    """Put ranks into the order of Algorithm 1; of equal low ends the better comes first.

    >>> from headgate.ranking.intervals.scored import rank
    >>> scored = rank(np.array([5.0, 0.0, 1.0]), np.array([9.0, 2.0, 6.0]), np.array([3.0, 2.0, 1.0]))
    >>> arrangement(scored).tolist()
    [1, 0, 2]
    """
    n = len(scored.low)
    points, first, last = positions(scored)
    view = look(points, first, last)
    source = view.source[: view.start[-1]]
    # Edges are found by their lower end; the arrangement follows them from the upper one.
    out_start = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(source, minlength=n), out=out_start[1:])
    target = np.empty(len(source), np.int32)
    _turn(source, view.start, out_start[:-1].copy(), target)
    order = np.empty(n, np.int32)
    degree = np.diff(view.start).astype(np.int32)
    _arrange(first, out_start, target, degree, np.empty(n, np.int64), order)
    return order


def positions(scored: Scored) -> tuple[Floats, Ranks, Ranks]:
    """Number end points and the gaps between them; returns the points, and each interval's positions."""
    n = len(scored.low)
    points, where = np.unique(np.concatenate([scored.low, scored.high]), return_inverse=True)
    places: Ranks = (2 * where + 1).astype(np.int32)
    return points, places[:n], places[n:]


class View(NamedTuple):
    """What is visible from below some intervals, and the edges into rank r: source[start[r]:start[r + 1]]."""

    marks: Marks
    owner: Ranks
    source: Ranks
    start: Ints


def look(points: Floats, first: Ranks, last: Ranks) -> View:
    """Go through some intervals, the best first, given by their positions."""
    size = 2 * len(points) + 1
    view = View(
        make_marks(size),
        np.full(size, _NOBODY, np.int32),
        np.empty(3 * len(first), np.int32),
        np.zeros(len(first) + 1, np.int64),
    )
    mark(view.marks, 0)
    _see(first, last, view)
    return view


@bare
def _see(first: Ranks, last: Ranks, view: View) -> None:
    """Go down through the intervals; a block begins at a mark and belongs to owner[mark]."""
    marks, owner, source, start = view.marks, view.owner, view.source, view.start
    edges = 0
    for i in range(len(first)):
        begin, end = first[i], last[i]
        block = previous_mark(marks, begin)
        below = owner[block]
        if below >= 0:
            source[edges] = below
            edges += 1
        block = next_mark(marks, block + 1)
        while 0 <= block <= end:
            below = owner[block]
            if below >= 0:
                source[edges] = below
                edges += 1
            if block > begin:
                unmark(marks, block)
            block = next_mark(marks, block + 1)
        # What is left of the last block goes on behind this interval.
        if block != end + 1:
            mark(marks, end + 1)
            owner[end + 1] = below
        mark(marks, begin)
        owner[begin] = i
        start[i + 1] = edges


@bare
def _turn(source: Ranks, start: Ints, at: Ranks, target: Ranks) -> None:
    """List edges by where they begin; at[r] is where those of rank r go."""
    for i in range(len(start) - 1):
        for e in range(start[i], start[i + 1]):
            target[at[source[e]]] = i
            at[source[e]] += 1


@bare
def _arrange(first: Ranks, out_start: Ranks, target: Ranks, degree: Ranks, heap: Ints, order: Ranks) -> None:
    """Take the leftmost of those that nothing holds back; the heap has the least (position, rank) on top."""
    size = 0
    for i in range(len(degree)):
        if degree[i] == 0:
            size = push(heap, size, np.int64(first[i]) << 32 | i)
    done = 0
    while size > 0:
        best = heap[0] & 0xFFFFFFFF
        size = pop(heap, size)
        order[done] = best
        done += 1
        for e in range(out_start[best], out_start[best + 1]):
            other = target[e]
            degree[other] -= 1
            if degree[other] == 0:
                size = push(heap, size, np.int64(first[other]) << 32 | other)


class Marks(NamedTuple):
    """A set of positions with quick neighbours: bits in words, and a bit above each word that is not 0.

    Level l is words[level[l]:level[l + 1]]; bit b of word w there is for word 64 w + b one level below.

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
