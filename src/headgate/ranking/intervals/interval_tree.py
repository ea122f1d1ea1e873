"""Scored interval tree: each interval in one node, each node's list the best first.

A node takes the median of the end points of its intervals as its centre. Intervals that hold there stay,
those below it go to the left, those above it to the right: each side has at most half of them. A question
follows one path. Not all of the lists there holds: the next entry that does is found by looking at one after
the other, which is slow where few do. This is the paper's score-sorted variant, the quicker of its two.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.ranking.intervals.merging import (
    LIST_BITS,
    LISTS,
    Heads,
    enter,
    leave,
    make_heads,
    sink,
    top_or_scan,
    walk_or_scan,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.ranking.intervals.scored import Found, Scored, Walk

    Floats = NDArray[np.floating[Any]]
    Ranks = NDArray[np.int32]
    Ints = NDArray[np.int64]

NO_NODE = -1


class Nodes(NamedTuple):
    """Node v has the entries from start[v] to start[v + 1], in rising order of rank; the root is node 0.

    least[v] and most[v] are the outermost ends of its entries. left[v] and right[v] are nodes, or NO_NODE.
    """

    centre: Floats
    least: Floats
    most: Floats
    left: Ranks
    right: Ranks
    start: Ranks
    low: Floats
    high: Floats
    rank: Ranks

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        return sum(array.nbytes for array in self)

    def check(self) -> None:
        """Assert the invariants."""
        if len(self.centre):
            assert self._check_below(0, -np.inf, np.inf) == len(self.rank)
        assert sorted(self.rank.tolist()) == list(range(len(self.rank)))

    def _check_below(self, node: int, floor: float, ceiling: float) -> int:
        begin, end = int(self.start[node]), int(self.start[node + 1])
        low, high, centre = self.low[begin:end], self.high[begin:end], self.centre[node]
        left, right = int(self.left[node]), int(self.right[node])
        assert begin < end
        assert bool((np.diff(self.rank[begin:end]) > 0).all())
        assert bool(((low <= centre) & (high >= centre)).all())
        assert self.least[node] == low.min() >= floor
        assert self.most[node] == high.max() <= ceiling
        sides = [0, 0]
        if left != NO_NODE:
            sides[0] = self._check_below(left, floor, float(np.nextafter(centre, -np.inf)))
        if right != NO_NODE:
            sides[1] = self._check_below(right, float(np.nextafter(centre, np.inf)), ceiling)
        total = end - begin + sum(sides)
        assert 2 * max(sides) <= total
        return total


class IntervalTree:
    """Intervals in the nodes of an interval tree.

    It answers questions whose answers share a point: points, and events within the interval. Overlap with an
    event is answered by a scan of the table in the order of ranks.
    """

    def __init__(self, scored: Scored) -> None:
        self.nodes = make_nodes(scored)
        self._scored = scored

    @property
    def nbytes(self) -> int:
        """Count the bytes of the tree; the table in the order of ranks is not in it."""
        return self.nodes.nbytes

    def walk(self, x: float, y: float) -> Walk:
        """Begin to list the intervals with low <= x and high >= y."""
        return walk_or_scan(self._scored, x, y, partial(IntervalWalk, self.nodes))

    def top_many(self, x: NDArray[np.float64], y: NDArray[np.float64], k: int) -> Found:
        """Find the best k for each of many questions."""
        top = partial(_many, self.nodes, make_heads())
        return top_or_scan(self._scored, x, y, k, top)


class IntervalWalk:
    """A walk through the lists of one path."""

    def __init__(self, nodes: Nodes, x: Any, y: Any) -> None:
        self._nodes, self._x, self._y = nodes, x, y
        self._heads = make_heads()
        self._one = np.empty(1, np.int32)
        _begin(nodes, x, y, self._heads)

    def next(self) -> int:
        """Return the next rank, or -1 after the last."""
        return int(self._one[0]) if self.fill(self._one) else -1

    def fill(self, out: Ranks) -> int:
        """Write as many of the next ranks as there is room."""
        return _go_on(self._nodes, self._x, self._y, self._heads, out)


def make_nodes(scored: Scored) -> Nodes:
    """Put intervals into nodes."""
    n = len(scored.low)
    ends = np.concatenate([scored.low, scored.high])
    order = np.argsort(ends).astype(np.int32)
    centre, sides = np.empty(n, scored.kind), np.full((2, n), NO_NODE, np.int32)
    node = np.empty(n, np.int32)
    count = _divide(ends, order, np.empty((LISTS, 3), np.int64), centre, sides, node)
    start = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(node, minlength=count), out=start[1:])
    rank = np.empty(n, np.int32)
    _fill(node, start[:-1].copy(), rank)
    low, high = scored.low[rank], scored.high[rank]
    least = np.minimum.reduceat(low, start[:-1]) if n else low
    most = np.maximum.reduceat(high, start[:-1]) if n else high
    return Nodes(
        centre[:count].copy(),
        least,
        most,
        sides[0, :count].copy(),
        sides[1, :count].copy(),
        start,
        low,
        high,
        rank,
    )


@bare
def _divide(ends: Floats, order: Ranks, stack: Ints, centre: Floats, sides: Ranks, node: Ranks) -> int:
    """Find the node of each interval; returns how many nodes there are.

    End e is the low end of interval e, or from n on the high end of e - n. order[begin:end] are the ends of a
    node's intervals, sorted; those of its left and of its right go to the front of either half. The stack has
    a begin and an end, and where to write the number of the node: side * n + parent, or -1 for the root.
    """
    n = len(node)
    count, depth = 0, 0
    if n > 0:
        stack[0, 0], stack[0, 1], stack[0, 2] = 0, 2 * n, -1
        depth = 1
    while depth > 0:
        depth -= 1
        begin, end, above = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        this = count
        count += 1
        if above >= 0:
            sides[above // n, above % n] = this
        middle = (begin + end) >> 1
        value = ends[order[middle]]
        centre[this] = value
        left, at = begin, begin
        while ends[order[at]] < value:
            e = order[at]
            if e >= n or ends[e + n] < value:
                order[left] = e
                left += 1
            else:
                node[e] = this
            at += 1
        while at < end and ends[order[at]] == value:
            e = order[at]
            node[e if e < n else e - n] = this
            at += 1
        right, first = at, at
        while at < end:
            e = order[at]
            if e < n or ends[e - n] > value:
                order[right] = e
                right += 1
            else:
                node[e - n] = this
            at += 1
        # The left side waits below the right one: no more wait than the path is deep.
        if left > begin:
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = begin, left, this
            depth += 1
        if right > first:
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = first, right, n + this
            depth += 1
    return count


@bare
def _fill(node: Ranks, at: Ranks, rank: Ranks) -> None:
    """Write the lists, each from its `at` on; going through the ranks in order sorts them."""
    for i in range(len(node)):
        rank[at[node[i]]] = i
        at[node[i]] += 1


@bare_inner
def _begin(nodes: Nodes, x: float, y: float, heads: Heads) -> None:
    """Enter the lists of the path that have an answer."""
    heads.size[0] = 0
    node, which = 0 if len(nodes.centre) else NO_NODE, 0
    while node != NO_NODE:
        if nodes.least[node] <= x and nodes.most[node] >= y:
            end = nodes.start[node + 1]
            at = _seek(nodes, x, y, nodes.start[node], end)
            if at < end:
                enter(heads, which, at + 1, end, nodes.rank[at])
                which += 1
        if y < nodes.centre[node]:
            node = nodes.left[node]
        elif x > nodes.centre[node]:
            node = nodes.right[node]
        else:
            node = NO_NODE


@bare_inner
def _seek(nodes: Nodes, x: float, y: float, at: int, end: int) -> int:
    """Find the first entry from `at` on that holds; `end` if there is none."""
    low, high = nodes.low, nodes.high
    while at < end and not (low[at] <= x and high[at] >= y):
        at += 1
    return at


@bare_inner
def _go_on(nodes: Nodes, x: float, y: float, heads: Heads, out: Ranks) -> int:
    """Write the next ranks until `out` is full; returns how many."""
    count, room = 0, len(out)
    while count < room and heads.size[0] > 0:
        key = heads.keys[0]
        out[count] = key >> LIST_BITS
        count += 1
        which = key & (LISTS - 1)
        end = heads.end[which]
        at = _seek(nodes, x, y, heads.at[which], end)
        if at < end:
            heads.at[which] = at + 1
            sink(heads, np.int64(nodes.rank[at]) << LIST_BITS | which)
        else:
            leave(heads)
    return count


@bare
def _many(nodes: Nodes, heads: Heads, x: Floats, y: Floats, ranks: Ranks, counts: Ints) -> None:
    """Find the best of each of many questions, as many as there is room for."""
    for i in range(len(x)):
        _begin(nodes, x[i], y[i], heads)
        counts[i] = _go_on(nodes, x[i], y[i], heads, ranks[i])
