"""Scored R-tree: intervals in blocks, in an order in which the first that hold are the best.

    entries           low, high                  in order
    level 0           extents of FANOUT entries each
    level 1           extents of FANOUT nodes of level 0 each, and so on up to at most FANOUT nodes

An extent is the least low and the greatest high below. The walk goes down to the left first, into extents
that hold. In the order of ranks (this structure) any question is answered in order. Other orders and other
structures (`Meeting`) answer only those whose answers all share a point: points, and events within the
interval. Overlap with an event that is an interval they leave to a tree in the order of ranks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.ranking.boxes.ends import narrowed
from headgate.ranking.intervals.scored import RankLists, Scored, Walk, answers, question

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Floats, Ints

    Ranks = NDArray[np.int32]

FANOUT = 64
DEPTH, PENDING, TAKEN, LEAVES = range(4)
"""Places of `Stack.counts`: the level where the walk is (0: entries), hits of the leaf it came to, how many
of them were given, and the leaves it has looked into."""


class Tree(NamedTuple):
    """Entries and the extents above them; level l is node_low[level_start[l]:level_start[l + 1]].

    rank[i] is the rank of entry i; empty if that is i.
    """

    low: Floats
    high: Floats
    rank: Ranks
    node_low: Floats
    node_high: Floats
    level_start: Ints
    fanout: int

    def check(self) -> None:
        """Assert the invariants."""
        below_low, below_high = self.low, self.high
        for level in range(len(self.level_start) - 1):
            begin, end = self.level_start[level], self.level_start[level + 1]
            first = np.arange(0, len(below_low), self.fanout)
            assert end - begin == len(first)
            assert bool((self.node_low[begin:end] == np.minimum.reduceat(below_low, first)).all())
            assert bool((self.node_high[begin:end] == np.maximum.reduceat(below_high, first)).all())
            below_low, below_high = self.node_low[begin:end], self.node_high[begin:end]
        assert len(below_low) <= self.fanout


class Stack(NamedTuple):
    """Where a walk is: at level l it goes on with upto[l], before until[l]; level 0 is the entries."""

    upto: Ints
    until: Ints
    counts: Ints
    hits: Ranks


def make_tree(low: Floats, high: Floats, ranks: Ranks, fanout: int) -> Tree:
    """Put extents above entries."""
    node_low, node_high, starts = [low[:0]], [high[:0]], [0]
    below_low, below_high = low, high
    while len(below_low) > fanout or (len(starts) == 1 and len(below_low)):
        first = np.arange(0, len(below_low), fanout)
        below_low, below_high = np.minimum.reduceat(below_low, first), np.maximum.reduceat(below_high, first)
        node_low.append(below_low)
        node_high.append(below_high)
        starts.append(starts[-1] + len(first))
    return Tree(
        low, high, ranks, np.concatenate(node_low), np.concatenate(node_high), np.array(starts), fanout
    )


def make_stack(tree: Tree) -> Stack:
    """Make room for one walk."""
    levels = len(tree.level_start)
    return Stack(
        np.zeros(levels, np.int64),
        np.zeros(levels, np.int64),
        np.zeros(4, np.int64),
        np.empty(tree.fanout, np.int32),
    )


class RTree:
    """Intervals in the order of their ranks, with extents above them."""

    def __init__(self, scored: Scored, fanout: int = FANOUT) -> None:
        self.tree = make_tree(scored.low, scored.high, np.zeros(0, np.int32), fanout)
        self._kind = scored.kind

    def walk(self, x: float, y: float) -> TreeWalk:
        """Begin to list the intervals with low <= x and high >= y."""
        return TreeWalk(self.tree, *question(x, y, self._kind))

    def top_many(self, x: NDArray[np.float64], y: NDArray[np.float64], k: int) -> RankLists:
        """Find the best k for each of many questions."""
        ranked = answers(len(x), k, len(self.tree.low))
        climb_many(self.tree, make_stack(self.tree), *narrowed(x, y, self._kind), *ranked)
        return ranked


class Meeting(ABC):
    """An index of intervals by where they meet, and a tree in the order of ranks for overlap."""

    def __init__(self, scored: Scored, fanout: int = FANOUT) -> None:
        self._scored, self._fanout = scored, fanout

    @cached_property
    def _ranked(self) -> RTree:
        return RTree(self._scored, self._fanout)

    @abstractmethod
    def begin(self, x: Any, y: Any) -> Walk:
        """Begin to list the intervals with low <= x and high >= y; x is not above y."""

    @abstractmethod
    def find(self, x: Floats, y: Floats, ranks: Ranks, counts: Ints) -> None:
        """Find the best for each of such questions, as many as there is room for."""

    def walk(self, x: float, y: float) -> Walk:
        """Begin to list the intervals with low <= x and high >= y."""
        if x > y:
            return self._ranked.walk(x, y)
        return self.begin(*question(x, y, self._scored.kind))

    def top_many(self, x: NDArray[np.float64], y: NDArray[np.float64], k: int) -> RankLists:
        """Find the best k for each of many questions."""
        if bool((x > y).any()):
            return self._ranked.top_many(x, y, k)
        ranked = answers(len(x), k, len(self._scored.low))
        self.find(*narrowed(x, y, self._scored.kind), *ranked)
        return ranked


class TreeWalk(Walk):
    """A walk through the entries of a tree that hold, in order."""

    def __init__(self, tree: Tree, x: Any, y: Any) -> None:
        self._tree, self._x, self._y = tree, x, y
        self._stack = make_stack(tree)
        begin(tree, self._stack)

    @property
    def leaves(self) -> int:
        """Count the leaves looked into so far."""
        return int(self._stack.counts[LEAVES])

    def fill(self, out: Ranks) -> int:
        """Write as many of the next ranks as there is room."""
        return int(climb(self._tree, self._stack, self._x, self._y, out))


@bare_inner
def gather(low: Floats, high: Floats, at: int, end: int, x: float, y: float, hits: Ranks) -> int:
    """List the places of the intervals from `at` to `end` that hold; returns how many.

    `hits` has room for all of them: places are written before it is known whether they stay.
    """
    count = np.uint64(0)
    for j in range(np.uint64(at), np.uint64(end)):
        hits[count] = j
        count += np.uint64((low[j] <= x) & (high[j] >= y))
    return int(count)


@bare_inner
def begin(tree: Tree, stack: Stack) -> None:
    """Stand before all entries."""
    top = len(tree.level_start) - 1
    stack.counts[DEPTH] = top
    stack.counts[PENDING] = 0
    stack.counts[TAKEN] = 0
    stack.counts[LEAVES] = 0
    stack.upto[top] = 0
    stack.until[top] = 0 if top == 0 else tree.level_start[top] - tree.level_start[top - 1]


@bare_inner
def climb(tree: Tree, stack: Stack, x: float, y: float, out: Ranks) -> int:
    """Write the ranks of the next entries that hold, until `out` is full; returns how many."""
    low, high, node_low, node_high = tree.low, tree.high, tree.node_low, tree.node_high
    upto, until, counts, hits = stack.upto, stack.until, stack.counts, stack.hits
    fanout, top, mapped = tree.fanout, len(tree.level_start) - 1, len(tree.rank) > 0
    room, count = len(out), 0
    depth, pending, taken = counts[DEPTH], counts[PENDING], counts[TAKEN]
    while True:
        while taken < pending and count < room:
            out[count] = hits[taken]
            count += 1
            taken += 1
        if count == room or depth > top:
            break
        i, end = upto[depth], until[depth]
        base = tree.level_start[depth - 1] if depth > 0 else 0
        while i < end and not (node_low[base + i] <= x and node_high[base + i] >= y):
            i += 1
        if i == end:
            depth += 1
            continue
        upto[depth] = i + 1
        depth -= 1
        first = i * fanout
        if depth > 0:
            upto[depth] = first
            until[depth] = min(first + fanout, tree.level_start[depth] - tree.level_start[depth - 1])
            continue
        counts[LEAVES] += 1
        pending, taken = gather(low, high, first, min(first + fanout, len(low)), x, y, hits), 0
        if mapped:
            for j in range(pending):
                hits[j] = tree.rank[hits[j]]
        depth = 1
    counts[DEPTH], counts[PENDING], counts[TAKEN] = depth, pending, taken
    return count


@bare
def climb_many(tree: Tree, stack: Stack, x: Floats, y: Floats, ranks: Ranks, counts: Ints) -> None:
    """Find the best of each of many questions, as many as there is room for."""
    for i in range(len(x)):
        begin(tree, stack)
        counts[i] = climb(tree, stack, x[i], y[i], ranks[i])
