"""Scored interval tree and IR-tree: each interval in one node, each node's list the best first.

A node takes the median of the end points of its intervals as its centre. Intervals that hold there stay,
those below it go to the left, those above it to the right: each side has at most half of them. A question
follows one path. Not all of the lists there holds.

The interval tree finds the next entry that does by looking at one after the other, which is slow where few
do: it is the paper's score-sorted variant, the quicker of its two. The IR-tree has an R-tree over each list:

    extents, level 2     [5, 90]                                 least low and greatest high of WIDTH below
    extents, level 1     [5, 90]           [12, 77]
    entries              [5, 60] [40, 90]  [12, 55] [50, 77]     the best first

Any two intervals of a node share its centre, so a point inside an extent is inside one of the intervals below
(Lemma 3.1 of the paper): a walk for a point meets no dead ends.

Against the paper, a list is searched no sooner than its first entry could be the next answer. Scores that
follow the lengths are best in the lowest nodes, so most of a path is never searched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.papers.merging import LIST_BITS, LISTS, Heads, enter, go_on, make_heads
from headgate.ranking.intervals.rtree import Meeting
from headgate.ranking.intervals.scored import Walk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Floats, Ints
    from headgate.ranking.intervals.scored import Scored

    Ranks = NDArray[np.int32]

NO_NODE = -1
WIDTH_BITS = 5
WIDTH = 1 << WIDTH_BITS
"""Entries, or extents, under an extent of an IR-tree."""


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


class Extents(NamedTuple):
    """The extents above the list of node v: those from first[v] on, level by level from below.

    A list of at most WIDTH entries has none. There is none at all in an interval tree, and `first` is empty.
    """

    first: Ranks
    low: Floats
    high: Floats

    def check(self, nodes: Nodes) -> None:
        """Assert the invariants."""
        ends = [*self.first.tolist(), len(self.low)]
        for node, (first, last) in enumerate(zip(nodes.start, nodes.start[1:], strict=False)):
            low, high, at = nodes.low[first:last], nodes.high[first:last], ends[node]
            while len(low) > WIDTH:
                begins = np.arange(0, len(low), WIDTH)
                low, high = np.minimum.reduceat(low, begins), np.maximum.reduceat(high, begins)
                assert bool((self.low[at : at + len(low)] == low).all())
                assert bool((self.high[at : at + len(low)] == high).all())
                at += len(low)
            assert at == ends[node + 1]


class IntervalTree(Meeting):
    """Intervals in the nodes of an interval tree."""

    def __init__(self, scored: Scored) -> None:
        super().__init__(scored)
        self.nodes = make_nodes(scored)
        self.extents = Extents(np.zeros(0, np.int32), scored.low[:0], scored.high[:0])

    def begin(self, x: Any, y: Any) -> PathWalk:
        """Begin to list the intervals with low <= x and high >= y; x is not above y."""
        return PathWalk(self.nodes, self.extents, x, y)

    def find(self, x: Floats, y: Floats, ranks: Ranks, counts: Ints) -> None:
        """Find the best for each of such questions, as many as there is room for."""
        _many(self.nodes, self.extents, make_heads(), x, y, ranks, counts)


class IrTree(IntervalTree):
    """The same with an R-tree in each node."""

    def __init__(self, scored: Scored) -> None:
        super().__init__(scored)
        self.extents = make_extents(self.nodes)


class PathWalk(Walk):
    """A walk through the lists of one path."""

    def __init__(self, nodes: Nodes, extents: Extents, x: Any, y: Any) -> None:
        self._nodes, self._extents, self._x, self._y = nodes, extents, x, y
        self._heads = make_heads()
        _begin(nodes, x, y, self._heads)

    def fill(self, out: Ranks) -> int:
        """Write as many of the next ranks as there is room."""
        return _take(self._nodes, self._extents, self._x, self._y, self._heads, out)


def make_extents(nodes: Nodes) -> Extents:
    """Put extents above the lists of all nodes."""
    width = np.diff(nodes.start)
    counts = np.zeros(len(width), np.int64)
    while (width > WIDTH).any():
        width = np.where(width > WIDTH, -(-width // WIDTH), 0)
        counts += width
    first = np.cumsum(counts) - counts
    kind, total = nodes.low.dtype, int(counts.sum())
    extents = Extents(first.astype(np.int32), np.empty(total, kind), np.empty(total, kind))
    _extend(nodes, extents)
    return extents


@bare
def _extend(nodes: Nodes, extents: Extents) -> None:
    """Write the extents of all nodes, level by level."""
    for node in range(len(extents.first)):
        size, at = nodes.start[node + 1] - nodes.start[node], np.int64(extents.first[node])
        below, low, high = np.int64(nodes.start[node]), nodes.low, nodes.high
        while size > WIDTH:
            for i in range(0, size, WIDTH):
                extents.low[at], extents.high[at] = low[below + i], high[below + i]
                for j in range(i + 1, min(i + WIDTH, size)):
                    extents.low[at] = min(extents.low[at], low[below + j])
                    extents.high[at] = max(extents.high[at], high[below + j])
                at += 1
            size = ((size - 1) >> WIDTH_BITS) + 1
            below, low, high = at - size, extents.low, extents.high


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
    rank = np.argsort(node, kind="stable").astype(np.int32)
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


@bare_inner
def _begin(nodes: Nodes, x: float, y: float, heads: Heads) -> None:
    """Enter the lists of the path that may have an answer."""
    heads.size[0] = 0
    node, which = 0 if len(nodes.centre) else NO_NODE, 0
    while node != NO_NODE:
        if nodes.least[node] <= x and nodes.most[node] >= y:
            which = enter(heads, which, node, nodes.start, nodes.rank)
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
def _climb(nodes: Nodes, extents: Extents, node: int, x: float, y: float, at: int) -> int:
    """Find the same through extents: along a group, up at its end, and down where one holds."""
    start, end = nodes.start[node], nodes.start[node + 1]
    level, i, count, base = 0, at - start, end - start, extents.first[node]
    while True:
        stop = min(count, ((i >> WIDTH_BITS) + 1) << WIDTH_BITS)
        if level == 0:
            i = _seek(nodes, x, y, start + i, start + stop) - start
        else:
            while i < stop and not (extents.low[base + i] <= x and extents.high[base + i] >= y):
                i += 1
        if i < stop:
            if level == 0:
                return int(start + i)
            level -= 1
            i <<= WIDTH_BITS
            count = ((end - start - 1) >> (WIDTH_BITS * level)) + 1
            if level > 0:
                base -= count
        elif stop == count:
            return int(end)
        else:
            i >>= WIDTH_BITS
            if level > 0:
                base += count
            level += 1
            count = ((count - 1) >> WIDTH_BITS) + 1


@bare_inner
def _take(nodes: Nodes, extents: Extents, x: float, y: float, heads: Heads, out: Ranks) -> int:
    """Write the next ranks until `out` is full; returns how many."""
    count, room = 0, len(out)
    while count < room and heads.size[0] > 0:
        which = heads.keys[0] & (LISTS - 1)
        node, at = heads.node[which], heads.at[which]
        if nodes.low[at] <= x and nodes.high[at] >= y:
            out[count] = heads.keys[0] >> LIST_BITS
            count += 1
            at += 1
        elif len(extents.first) == 0:
            at = _seek(nodes, x, y, at, nodes.start[node + 1])
        else:
            at = _climb(nodes, extents, node, x, y, at)
        go_on(heads, at, nodes.start, nodes.rank)
    return count


@bare
def _many(
    nodes: Nodes, extents: Extents, heads: Heads, x: Floats, y: Floats, ranks: Ranks, counts: Ints
) -> None:
    """Find the best of each of many questions, as many as there is room for."""
    for i in range(len(x)):
        _begin(nodes, x[i], y[i], heads)
        counts[i] = _take(nodes, extents, x[i], y[i], heads, ranks[i])
