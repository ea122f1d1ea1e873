"""The scored interval indexes by name, and the one that is quickest for the data."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare
from headgate.errors import SubscriptionError
from headgate.ranking.boxes.ends import narrowed
from headgate.ranking.intervals.cells import LENGTH, Grid, find_cell, make_grid, take_from
from headgate.ranking.intervals.interval_tree import IntervalTree
from headgate.ranking.intervals.ir_tree import IrTree
from headgate.ranking.intervals.rtree import RTree, Stack, Tree, TreeWalk, begin, climb, make_stack
from headgate.ranking.intervals.scan import Place, Scan, ScanWalk, make_place, scan_on
from headgate.ranking.intervals.scored import Found, Scored, answers, question
from headgate.ranking.intervals.segment_tree import SegmentTree
from headgate.ranking.intervals.sopt import SoptTree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.ranking.intervals.scored import Walk

    Floats = NDArray[np.floating[Any]]
    Ranks = NDArray[np.int32]
    Ints = NDArray[np.int64]
    from collections.abc import Callable

    from headgate.ranking.intervals.scored import Scored, ScoredIndex


_TRIALS = 64
_DEEP = 256
"""How many questions the choice is tried with, and how many answers to each."""
_BLOCK_COST, _LEAF_COST = 1, 2
"""What it takes to look into a block of the scan, and into a leaf of the tree and the way there."""


class Auto:
    """Prefix lists, with a SOPT-R-tree or a scan behind them; `scans` insists on one of the two."""

    def __init__(self, scored: Scored, *, scans: bool | None = None) -> None:
        self._scored = scored
        self.grid = make_grid(scored)
        self._sopt = SoptTree(scored)
        self.scans = _scan_is_better(scored, self._sopt) if scans is None else scans

    @property
    def nbytes(self) -> int:
        """Count the bytes of the lists, the tree, and the ends in the order of ranks."""
        return self.grid.nbytes + self._sopt.nbytes + self._scored.low.nbytes + self._scored.high.nbytes

    @cached_property
    def _ranked(self) -> RTree:
        return RTree(self._scored)

    def walk(self, x: float, y: float) -> Walk:
        """Begin to list the intervals with low <= x and high >= y."""
        if x > y:
            return self._ranked.walk(x, y)
        return AutoWalk(self, self._scored, *question(x, y, self._scored.kind))

    def behind(self, x: Any, y: Any) -> Walk:
        """Begin to list them without the lists."""
        return ScanWalk(self._scored, x, y) if self.scans else TreeWalk(self._sopt.tree, x, y)

    def top_many(self, x: NDArray[np.float64], y: NDArray[np.float64], k: int) -> Found:
        """Find the best k for each of many questions."""
        if bool((x > y).any()):
            return self._ranked.top_many(x, y, k)
        found = answers(len(x), k, len(self._scored.low))
        xs, ys = narrowed(x, y, self._scored.kind)
        tree = self._sopt.tree
        work = Work(self._scored.low, self._scored.high, make_place(), make_stack(tree), self.scans)
        _choose_many(self.grid, tree, work, xs, ys, *found)
        return found


class Work(NamedTuple):
    """The ends in the order of ranks, and room for a walk through either structure."""

    low: Floats
    high: Floats
    place: Place
    stack: Stack
    scans: bool


class AutoWalk:
    """A walk through a list, and then through what is behind it."""

    def __init__(self, auto: Auto, scored: Scored, x: Any, y: Any) -> None:
        self._auto, self._scored, self._x, self._y = auto, scored, x, y
        self._cell = find_cell(auto.grid.edge, x)
        self._at = self._given = 0
        self._rest: Walk | None = None
        self._one = np.empty(1, np.int32)

    def next(self) -> int:
        """Return the next rank, or -1 after the last."""
        return int(self._one[0]) if self.fill(self._one) else -1

    def fill(self, out: Ranks) -> int:
        """Write as many of the next ranks as there is room."""
        if self._rest is not None:
            return self._rest.fill(out)
        grid, low, high = self._auto.grid, self._scored.low, self._scored.high
        count, self._at = take_from(grid, self._cell, low, high, self._x, self._y, self._at, out)
        self._given += count
        if count == len(out) or grid.whole[self._cell]:
            return int(count)
        self._rest = self._auto.behind(self._x, self._y)
        self._rest.fill(np.empty(self._given, np.int32))
        return int(count + self._rest.fill(out[count:]))


def _scan_is_better(scored: Scored, sopt: SoptTree) -> bool:
    """Tell whether a scan looks at less than the tree, for questions in the middle of intervals."""
    n = len(scored.low)
    if n == 0:
        return True
    with np.errstate(invalid="ignore", over="ignore"):
        rows = np.linspace(0, n - 1, min(n, _TRIALS)).astype(np.int64)
        middles = (scored.low[rows].astype(np.float64) + scored.high[rows]) / 2
    middles = middles[np.isfinite(middles)]
    if not len(middles):
        return True
    found = Scan(scored).top_many(middles, middles, _DEEP)
    full = found.counts == found.ranks.shape[1]
    depth = np.where(full, found.ranks[:, -1], n) // 64 + 1
    leaves = [sopt.leaves_visited(at, at, _DEEP) for at in middles.tolist()]
    return bool(_BLOCK_COST * depth.mean() < _LEAF_COST * np.mean(leaves))


@bare
def _choose_many(
    grid: Grid, tree: Tree, work: Work, x: Floats, y: Floats, ranks: Ranks, counts: Ints
) -> None:
    """Find the best of each of many questions, as many as there is room for."""
    room = ranks.shape[1]
    for i in range(len(x)):
        if room <= LENGTH:
            c = find_cell(grid.edge, x[i])
            if grid.whole[c] or (room <= grid.sure[c] and y[i] <= grid.edge[c + 1]):
                counts[i] = take_from(grid, c, work.low, work.high, x[i], y[i], 0, ranks[i])[0]
                continue
        if work.scans:
            work.place.counts[:] = 0
            counts[i] = scan_on(work.low, work.high, work.place, x[i], y[i], ranks[i])
        else:
            begin(tree, work.stack)
            counts[i] = climb(tree, work.stack, x[i], y[i], ranks[i])


STRUCTURES: dict[str, Callable[[Scored], ScoredIndex]] = {
    "interval-tree": IntervalTree,
    "r-tree": RTree,
    "segment-tree": SegmentTree,
    "ir-tree": IrTree,
    "sopt-r-tree": SoptTree,
    "scan": Scan,
    "cells": partial(Auto, scans=True),
    "auto": Auto,
}
"""The first five are the paper's; `cells` is prefix lists before a scan."""


def structure(name: str) -> Callable[[Scored], ScoredIndex]:
    """Find a structure."""
    if name not in STRUCTURES:
        raise SubscriptionError(f"there is no structure {name!r}: use {', '.join(STRUCTURES)}")
    return STRUCTURES[name]
