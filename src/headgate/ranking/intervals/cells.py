"""Prefix lists: for each cell of a grid, the best intervals that reach into it.

    cell c        the numbers from edge[c] up to edge[c + 1], that excluded
    its list      entry[LENGTH * c : LENGTH * c + filled[c]], by rank; ~rank if it may miss a part of the cell
    sure[c]       how many of them hold all over the cell
    whole[c]      1 if no other interval reaches into it

For a small k this is a look into one list. What a list does not know, the SOPT-R-tree behind it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.ranking.intervals.rtree import Meeting, TreeWalk, begin, climb, make_stack
from headgate.ranking.intervals.scored import Walk
from headgate.ranking.intervals.sopt import SoptTree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Floats, Ints
    from headgate.ranking.intervals.rtree import Stack, Tree
    from headgate.ranking.intervals.scored import Scored

    Ranks = NDArray[np.int32]

LENGTH = 64
_SHARE = 128
"""Intervals to a cell, so that a list's entry adds half a byte for each byte of a rank."""


class Grid(NamedTuple):
    """Cells and their lists."""

    edge: Floats
    entry: Ranks
    filled: Ranks
    sure: Ranks
    whole: NDArray[np.uint8]

    def check(self) -> None:
        """Assert the invariants."""
        cells = len(self.filled)
        assert len(self.edge) == cells + 1
        assert len(self.entry) == LENGTH * cells
        assert bool((np.diff(self.edge) > 0).all())
        assert bool((self.sure <= self.filled).all())
        assert bool((self.filled <= LENGTH).all())


class Auto(Meeting):
    """Prefix lists, with a SOPT-R-tree behind them."""

    def __init__(self, scored: Scored) -> None:
        super().__init__(scored)
        self.grid = make_grid(scored)
        self.tree = SoptTree(scored).tree

    def begin(self, x: Any, y: Any) -> AutoWalk:
        """Begin to list the intervals with low <= x and high >= y; x is not above y."""
        return AutoWalk(self, self._scored, x, y)

    def find(self, x: Floats, y: Floats, ranks: Ranks, counts: Ints) -> None:
        """Find the best for each of such questions, as many as there is room for."""
        low, high = self._scored.low, self._scored.high
        _many(self.grid, low, high, self.tree, make_stack(self.tree), x, y, ranks, counts)


class AutoWalk(Walk):
    """A walk through a list, and then through what is behind it."""

    def __init__(self, auto: Auto, scored: Scored, x: Any, y: Any) -> None:
        self._auto, self._scored, self._x, self._y = auto, scored, x, y
        self._cell = find_cell(auto.grid.edge, x)
        self._at = self._given = 0
        self._rest: Walk | None = None

    def fill(self, out: Ranks) -> int:
        """Write as many of the next ranks as there is room."""
        if self._rest is not None:
            return self._rest.fill(out)
        grid, low, high = self._auto.grid, self._scored.low, self._scored.high
        count, self._at = take_from(grid, self._cell, low, high, self._x, self._y, self._at, out)
        self._given += count
        if count == len(out) or grid.whole[self._cell]:
            return int(count)
        self._rest = TreeWalk(self._auto.tree, self._x, self._y)
        self._rest.fill(np.empty(self._given, np.int32))
        return int(count + self._rest.fill(out[count:]))


def make_grid(scored: Scored, cells: int | None = None) -> Grid:
    """Cut the line so that each cell has about as many ends, and fill the lists."""
    wanted = max(1, len(scored.low) // _SHARE) if cells is None else cells
    ends = np.sort(np.concatenate([scored.low, scored.high]))
    inner = np.unique(ends[np.linspace(0, len(ends), wanted, endpoint=False).astype(np.int64)[1:]])
    inner = inner[np.isfinite(inner)]
    infinity = np.array([np.inf], scored.kind)
    edge = np.concatenate([-infinity, inner, infinity])
    size = len(edge) - 1
    grid = Grid(
        edge,
        np.zeros(LENGTH * size, np.int32),
        np.zeros(size, np.int32),
        np.zeros(size, np.int32),
        np.zeros(size, np.uint8),
    )
    _fill(scored.low, scored.high, grid, np.arange(size + 1, dtype=np.int32))
    return grid


@bare
def _fill(low: Floats, high: Floats, grid: Grid, beyond: Ranks) -> None:
    """Go down through the intervals; beyond[c] leads from a full cell towards the next that is not."""
    edge, cells = grid.edge, len(grid.filled)
    left = cells
    for r in range(len(low)):
        if left == 0:
            break
        c = _open_cell(beyond, find_cell(edge, low[r]))
        while c < cells and edge[c] <= high[r]:
            place = grid.filled[c]
            if place == LENGTH:
                # The first that the list has no room for; it takes no more.
                beyond[c] = c + 1
                left -= 1
            else:
                all_over = low[r] <= edge[c] and high[r] >= edge[c + 1]
                grid.entry[LENGTH * c + place] = r if all_over else ~r
                grid.filled[c] = place + 1
                grid.sure[c] += all_over
            c = _open_cell(beyond, c + 1)
    for c in range(cells):
        if beyond[c] == c:
            grid.whole[c] = 1


@bare_inner
def _open_cell(beyond: Ranks, c: int) -> int:
    """Find the first cell from c on that takes more, and shorten the way for the next search."""
    end = c
    while beyond[end] != end:
        end = beyond[end]
    while c != end:
        after = beyond[c]
        beyond[c] = end
        c = after
    return end


@bare_inner
def find_cell(edge: Floats, value: float) -> int:
    """Find the cell of a number."""
    first, size = 0, len(edge) - 1
    while size > 1:
        half = size >> 1
        if edge[first + half] <= value:
            first += half
        size -= half
    return first


@bare_inner
def take_from(
    grid: Grid, c: int, low: Floats, high: Floats, x: float, y: float, given: int, out: Ranks
) -> tuple[int, int]:
    """Write ranks of a cell's list that hold, from entry `given` on; returns how many and where it stops."""
    count, room, end = 0, len(out), grid.filled[c]
    inside = y <= grid.edge[c + 1]
    at = given
    while at < end and count < room:
        r = grid.entry[LENGTH * c + at]
        at += 1
        if r >= 0 and inside:
            out[count] = r
            count += 1
        else:
            r = r if r >= 0 else ~r
            if low[r] <= x and high[r] >= y:
                out[count] = r
                count += 1
    return count, at


@bare
def _many(
    grid: Grid,
    low: Floats,
    high: Floats,
    tree: Tree,
    stack: Stack,
    x: Floats,
    y: Floats,
    ranks: Ranks,
    counts: Ints,
) -> None:
    """Find the best of each of many questions, as many as there is room for."""
    room = ranks.shape[1]
    for i in range(len(x)):
        if room <= LENGTH:
            c = find_cell(grid.edge, x[i])
            if grid.whole[c] or (room <= grid.sure[c] and y[i] <= grid.edge[c + 1]):
                counts[i] = take_from(grid, c, low, high, x[i], y[i], 0, ranks[i])[0]
                continue
        begin(tree, stack)
        counts[i] = climb(tree, stack, x[i], y[i], ranks[i])
