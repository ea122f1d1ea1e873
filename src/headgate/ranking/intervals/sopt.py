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
neighbours are found in a few steps. Overlap with an event that is an interval needs the order of ranks: two
answers need not share a point then. A plain R-tree in that order is made for the first such question.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare
from headgate.ranking.boxes.ends import narrowed
from headgate.ranking.intervals.marks import Marks, make_marks, mark, next_mark, previous_mark, unmark
from headgate.ranking.intervals.rtree import FANOUT, RTree, TreeWalk, make_tree, tree_top_many
from headgate.ranking.intervals.scored import Found, Scored, question

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    Ranks = NDArray[np.int32]
    Ints = NDArray[np.int64]

_NOBODY = -1


class SoptTree:
    """Intervals in the arrangement of Algorithm 1, with extents above them."""

    def __init__(self, scored: Scored, fanout: int = FANOUT) -> None:
        order = arrangement(scored)
        self.tree = make_tree(scored.low[order], scored.high[order], order, fanout)
        self._scored = scored
        self._fanout = fanout

    @property
    def nbytes(self) -> int:
        """Count the bytes of the arrays."""
        return self.tree.nbytes

    @cached_property
    def _ranked(self) -> RTree:
        return RTree(self._scored, self._fanout)

    def walk(self, x: float, y: float) -> TreeWalk:
        """Begin to list the intervals with low <= x and high >= y."""
        if x > y:
            return self._ranked.walk(x, y)
        return TreeWalk(self.tree, *question(x, y, self._scored.kind))

    def top_many(self, x: NDArray[np.float64], y: NDArray[np.float64], k: int) -> Found:
        """Find the best k for each of many questions."""
        if bool((x > y).any()):
            return self._ranked.top_many(x, y, k)
        return tree_top_many(self.tree, *narrowed(x, y, self._scored.kind), k)

    def leaves_visited(self, x: float, y: float, k: int) -> int:
        """Count the leaves that a walk to the best k looks into: 2k at most, if the k-th is there."""
        walk = self.walk(x, y)
        walk.fill(np.empty(k, np.int32))
        return walk.leaves


def arrangement(scored: Scored) -> Ranks:
    """Put ranks into the order of Algorithm 1; of equal low ends the better comes first.

    >>> from headgate.ranking.intervals.scored import rank
    >>> scored = rank(np.array([5.0, 0.0, 1.0]), np.array([9.0, 2.0, 6.0]), np.array([3.0, 2.0, 1.0]))
    >>> arrangement(scored).tolist()
    [1, 0, 2]
    """
    n = len(scored.low)
    source, start = _edges(scored)
    # Edges are found by their lower end; the arrangement follows them from the upper one.
    out_start = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(source, minlength=n), out=out_start[1:])
    target = np.empty(len(source), np.int32)
    _turn(source, start, out_start[:-1].copy(), target)
    order = np.empty(n, np.int32)
    degree = np.diff(start).astype(np.int32)
    _arrange(scored.low, out_start, target, degree, np.empty(n, np.int32), order)
    return order


def constraint_graph(scored: Scored) -> list[tuple[int, int]]:
    """List the edges of the constraint graph as pairs of ranks, the better one first.

    >>> from headgate.ranking.intervals.scored import rank
    >>> scored = rank(np.array([0.0, 1.0, 1.0]), np.array([2.0, 3.0, 1.0]), np.array([3.0, 2.0, 1.0]))
    >>> constraint_graph(scored)
    [(0, 1), (1, 2)]
    """
    source, start = _edges(scored)
    target = np.repeat(np.arange(len(scored.low)), np.diff(start))
    return sorted(set(zip(source.tolist(), target.tolist(), strict=True)))


def edge_count(scored: Scored) -> int:
    """Count the edges, two blocks of one interval twice: at most three for each interval."""
    return len(_edges(scored)[0])


def visible_blocks(scored: Scored, count: int) -> list[tuple[float, float, int]]:
    """List the blocks that are visible from below the best `count` intervals: begin, end, and who is lowest.

    Positions of end points and gaps that follow each other under one interval are one block; nobody is -1.
    Blocks of nobody are given with the end points around them, or infinities.
    """
    points, first, last = _positions(scored)
    view = _look(points, first[:count], last[:count])
    marks, owner = view.marks, view.owner
    begins, at = [], 0
    while at >= 0:
        begins.append(at)
        at = int(next_mark(marks, at + 1))
    edges = [-np.inf, *points.tolist(), np.inf]
    found = []
    for begin, end in zip(begins, [*begins[1:], len(owner)], strict=True):
        # A gap reaches from the point before it to the one behind it.
        found.append((edges[(begin + 1) // 2], edges[(end + 1) // 2], int(owner[begin])))
    return found


def _positions(scored: Scored) -> tuple[Floats, Ranks, Ranks]:
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


def _edges(scored: Scored) -> tuple[Ranks, Ints]:
    view = _look(*_positions(scored))
    return view.source[: view.start[-1]], view.start


def _look(points: Floats, first: Ranks, last: Ranks) -> View:
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
def _arrange(low: Floats, out_start: Ranks, target: Ranks, degree: Ranks, heap: Ranks, order: Ranks) -> None:
    """Take the leftmost of those that nothing holds back; the heap has the least (low, rank) on top."""
    size = 0
    for i in range(len(degree)):
        if degree[i] == 0:
            size = _push(heap, size, low, i)
    done = 0
    while size > 0:
        best = heap[0]
        size = _pop(heap, size, low)
        order[done] = best
        done += 1
        for e in range(out_start[best], out_start[best + 1]):
            other = target[e]
            degree[other] -= 1
            if degree[other] == 0:
                size = _push(heap, size, low, other)


@bare
def _push(heap: Ranks, size: int, low: Floats, item: int) -> int:
    at = size
    while at > 0:
        above = (at - 1) >> 1
        other = heap[above]
        if low[other] < low[item] or (low[other] == low[item] and other < item):
            break
        heap[at] = other
        at = above
    heap[at] = item
    return size + 1


@bare
def _pop(heap: Ranks, size: int, low: Floats) -> int:
    size -= 1
    item = heap[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        here = heap[child]
        if child + 1 < size:
            beside = heap[child + 1]
            if low[beside] < low[here] or (low[beside] == low[here] and beside < here):
                child += 1
                here = beside
        if low[item] < low[here] or (low[item] == low[here] and item < here):
            break
        heap[at] = here
        at = child
    heap[at] = item
    return size
