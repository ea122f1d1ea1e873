"""Score-order scan: look at all intervals, the best first, in blocks that the compiler makes parallel.

It has no structure at all, and wins where many of the best intervals hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.ranking.boxes.ends import narrowed
from headgate.ranking.intervals.scored import Found, Scored, answers, question

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    Ranks = NDArray[np.int32]
    Ints = NDArray[np.int64]


BLOCK = 64
_LENGTH = np.uint64(BLOCK)


@bare_inner
def any_holds(low: Floats, high: Floats, at: int, x: float, y: float) -> bool:
    """Tell whether any interval of a whole block holds."""
    found = False
    first = np.uint64(at)
    for j in range(_LENGTH):
        found |= (low[first + j] <= x) & (high[first + j] >= y)
    return found


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


AT, PENDING, TAKEN = range(3)
"""Places of `Place.counts`: the next block, hits of the last one, and how many of them were given."""


class Place(NamedTuple):
    """Where a scan is."""

    counts: Ints
    hits: Ranks


def make_place() -> Place:
    """Stand before all intervals."""
    return Place(np.zeros(3, np.int64), np.empty(BLOCK, np.int32))


class Scan:
    """All intervals in the order of their ranks."""

    def __init__(self, scored: Scored) -> None:
        self._scored = scored

    @property
    def nbytes(self) -> int:
        """Count the bytes of the ends: a rank is a place."""
        return self._scored.low.nbytes + self._scored.high.nbytes

    def walk(self, x: float, y: float) -> ScanWalk:
        """Begin to list the intervals with low <= x and high >= y."""
        return ScanWalk(self._scored, x, y)

    def top_many(self, x: NDArray[np.float64], y: NDArray[np.float64], k: int) -> Found:
        """Find the best k for each of many questions."""
        found = answers(len(x), k, len(self._scored.low))
        xs, ys = narrowed(x, y, self._scored.kind)
        scan_many(self._scored.low, self._scored.high, make_place(), xs, ys, *found)
        return found


class ScanWalk:
    """A walk through all intervals."""

    def __init__(self, scored: Scored, x: float, y: float) -> None:
        self._low, self._high = scored.low, scored.high
        self._x, self._y = question(x, y, scored.kind)
        self._one = np.empty(1, np.int32)
        self._place = make_place()

    def next(self) -> int:
        """Return the next rank, or -1 after the last."""
        return int(self._one[0]) if self.fill(self._one) else -1

    def fill(self, out: Ranks) -> int:
        """Write as many of the next ranks as there is room."""
        return int(scan_on(self._low, self._high, self._place, self._x, self._y, out))


@bare_inner
def scan_on(low: Floats, high: Floats, place: Place, x: float, y: float, out: Ranks) -> int:
    """Write the ranks of the next intervals that hold, until `out` is full; returns how many."""
    counts, hits = place.counts, place.hits
    at, pending, taken = counts[AT], counts[PENDING], counts[TAKEN]
    size, room, count = len(low), len(out), 0
    while True:
        while taken < pending and count < room:
            out[count] = hits[taken]
            count += 1
            taken += 1
        if count == room or at >= size:
            break
        end = min(at + BLOCK, size)
        if end < at + BLOCK or any_holds(low, high, at, x, y):
            pending, taken = gather(low, high, at, end, x, y, hits), 0
        at = end
    counts[AT], counts[PENDING], counts[TAKEN] = at, pending, taken
    return count


@bare
def scan_many(
    low: Floats, high: Floats, place: Place, x: Floats, y: Floats, ranks: Ranks, counts: Ints
) -> None:
    """Find the best of each of many questions, as many as there is room for."""
    for i in range(len(x)):
        place.counts[:] = 0
        counts[i] = scan_on(low, high, place, x[i], y[i], ranks[i])
