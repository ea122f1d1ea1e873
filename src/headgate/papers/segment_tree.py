"""Scored segment tree: each interval in the few nodes that it covers, each node's list the best first.

Distinct end points p0 < p1 < ... cut the line into positions, because ends are closed:

    position 2i       the end point p(i)
    position 2i + 1   the gap behind it; a pair of positions is the paper's atomic segment, [p(i), p(i + 1))

A binary tree stands over the positions, numbered as a heap: the root is 1, the children of v are 2v and
2v + 1, and position p is leaf `leaves` + p. An interval is in the nodes that lie in it while their parents do
not. All intervals in the nodes above a position hold there, so a walk only merges lists: O(log log n) for
each rank. The price is that an interval is in up to 2 log n lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.errors import SubscriptionError
from headgate.papers.merging import LIST_BITS, LISTS, Heads, enter, go_on, make_heads
from headgate.ranking.intervals.rtree import Meeting
from headgate.ranking.intervals.scored import Walk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Floats, Ints
    from headgate.ranking.intervals.scored import Scored

    Ranks = NDArray[np.int32]

ENTRIES = 2**31 - 1
"""The most entries of all lists together: places in them are kept in 4 bytes."""


class Segments(NamedTuple):
    """The distinct end points, and the list of node v, ranks[start[v]:start[v + 1]], in rising order.

    There is no node 0; its list is empty. The leaves are a power of two, and at least two for each point.
    """

    points: Floats
    start: Ranks
    ranks: Ranks

    @property
    def leaves(self) -> int:
        """Count the leaves; the first of them has that number, too."""
        return (len(self.start) - 1) // 2

    def list(self, node: int) -> Ranks:
        """Return the list of a node."""
        return self.ranks[self.start[node] : self.start[node + 1]]

    def check(self) -> None:
        """Assert the invariants."""
        assert bool((np.diff(self.points) > 0).all())
        assert self.leaves >= max(1, 2 * len(self.points))
        assert self.leaves & (self.leaves - 1) == 0
        assert self.start[0] == self.start[1] == 0
        assert self.start[-1] == len(self.ranks)
        for node in range(1, 2 * self.leaves):
            assert bool((np.diff(self.list(node)) > 0).all())
            assert not set(self.list(node)) & set(self.list(node ^ 1))


class SegmentTree(Meeting):
    """Intervals in the lists of a segment tree."""

    def __init__(self, scored: Scored) -> None:
        super().__init__(scored)
        self.segments = make_segments(scored)

    def begin(self, x: Any, y: Any) -> SegmentWalk:
        """Begin to list the intervals with low <= x and high >= y; x is not above y."""
        return SegmentWalk(self.segments, self._scored.high, x, y)

    def find(self, x: Floats, y: Floats, ranks: Ranks, counts: Ints) -> None:
        """Find the best for each of such questions, as many as there is room for."""
        _many(self.segments, self._scored.high, make_heads(), x, y, ranks, counts)


class SegmentWalk(Walk):
    """A walk through the lists above one position."""

    def __init__(self, segments: Segments, high: Floats, x: Any, y: Any) -> None:
        self._segments, self._high, self._y = segments, high, y
        self._heads = make_heads()
        self._all = _begin(segments, x, y, self._heads)

    def fill(self, out: Ranks) -> int:
        """Write as many of the next ranks as there is room."""
        return _take(self._segments, self._high, self._y, self._all, self._heads, out)


def make_segments(scored: Scored) -> Segments:
    """Put intervals into the nodes that they cover."""
    n = len(scored.low)
    points, where = np.unique(np.concatenate([scored.low, scored.high]), return_inverse=True)
    first, last = (2 * where[:n]).astype(np.int32), (2 * where[n:]).astype(np.int32)
    leaves = 1 << max(0, 2 * len(points) - 1).bit_length()
    counts = np.zeros(2 * leaves, np.int32)
    total = _enter_all(first, last, leaves, counts, counts[:0])
    if total > ENTRIES:
        raise SubscriptionError(
            f"a segment tree of {n:,} intervals has {total:,} entries, above {ENTRIES:,}: use another index"
        )
    start = np.zeros(2 * leaves + 1, np.int32)
    np.cumsum(counts, out=start[1:])
    ranks = np.empty(total, np.int32)
    _enter_all(first, last, leaves, start[:-1].copy(), ranks)
    return Segments(points, start, ranks)


@bare
def _enter_all(first: Ranks, last: Ranks, leaves: int, at: Ranks, ranks: Ranks) -> int:
    """Count the entries of each node in `at`, or write the lists if `ranks` has room, each from its `at` on.

    Returns how many entries there are. Going through the ranks in order sorts the lists.
    """
    total = 0
    for i in range(len(first)):
        low, high = leaves + np.int64(first[i]), leaves + np.int64(last[i]) + 1
        while low < high:
            if low & 1:
                _enter(i, low, at, ranks)
                total += 1
                low += 1
            if high & 1:
                high -= 1
                _enter(i, high, at, ranks)
                total += 1
            low >>= 1
            high >>= 1
    return total


@bare_inner
def _enter(rank: int, node: np.int64, at: Ranks, ranks: Ranks) -> None:
    if len(ranks) > 0:
        ranks[at[node]] = rank
    at[node] += 1


@bare_inner
def _begin(segments: Segments, x: float, y: float, heads: Heads) -> bool:
    """Enter the lists above the position of x; returns whether all that is in them holds.

    If y lies behind the next end point, the answers are those of the gap behind x with a high end from y on.
    """
    points, start = segments.points, segments.start
    heads.size[0] = 0
    before, behind = 0, len(points)
    while before < behind:
        middle = (before + behind) >> 1
        if points[middle] <= x:
            before = middle + 1
        else:
            behind = middle
    if before == 0:
        return True
    node = ((len(start) - 1) >> 1) + 2 * before - 1
    if points[before - 1] >= y:
        node -= 1
    every = before == len(points) or y <= points[before]
    which = 0
    while node > 0:
        which = enter(heads, which, node, start, segments.ranks)
        node >>= 1
    return bool(every)


@bare_inner
def _take(segments: Segments, high: Floats, y: float, every: bool, heads: Heads, out: Ranks) -> int:
    """Write the next ranks until `out` is full; returns how many."""
    start, ranks, count, room = segments.start, segments.ranks, 0, len(out)
    while count < room and heads.size[0] > 0:
        which = heads.keys[0] & (LISTS - 1)
        rank, at = heads.keys[0] >> LIST_BITS, heads.at[which] + 1
        if every or high[rank] >= y:
            out[count] = rank
            count += 1
        if not every:
            end = start[heads.node[which] + 1]
            while at < end and high[ranks[at]] < y:
                at += 1
        go_on(heads, at, start, ranks)
    return count


@bare
def _many(
    segments: Segments, high: Floats, heads: Heads, x: Floats, y: Floats, ranks: Ranks, counts: Ints
) -> None:
    """Find the best of each of many questions, as many as there is room for."""
    for i in range(len(x)):
        every = _begin(segments, x[i], y[i], heads)
        counts[i] = _take(segments, high, y[i], every, heads, ranks[i])
