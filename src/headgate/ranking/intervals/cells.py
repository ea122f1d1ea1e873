"""Prefix lists: for each cell of a grid, the best intervals that reach into it.

    cell c        the numbers from edge[c] up to edge[c + 1], that excluded
    its list      entry[LENGTH * c : LENGTH * c + filled[c]], by rank; ~rank if it may miss a part of the cell
    sure[c]       how many of them hold all over the cell
    whole[c]      1 if no other interval reaches into it

For a small k this is a look into one list. What a list does not know, the structure behind it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.ranking.intervals.scored import Scored

    Floats = NDArray[np.floating[Any]]
    Ranks = NDArray[np.int32]
    Ints = NDArray[np.int64]

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

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        return sum(array.nbytes for array in self)

    def check(self) -> None:
        """Assert the invariants."""
        cells = len(self.filled)
        assert len(self.edge) == cells + 1
        assert len(self.entry) == LENGTH * cells
        assert bool((np.diff(self.edge) > 0).all())
        assert bool((self.sure <= self.filled).all())
        assert bool((self.filled <= LENGTH).all())


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
