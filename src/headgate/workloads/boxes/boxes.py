"""Points and boxes after section 4 of Machanavajjhala et al., "Scalable ranked publish/subscribe", VLDB 2008.

[0, 1) is divided into cells in every dimension. Points come from regions, which are rectangles of cells with
one volume and random sides, anywhere in the space:

    side of a region, 5 cells        |   |   | m |   |   |      m: the middle
    Zipf's law by distance            5th 3rd 1st 2nd 4th       skew_within; in each dimension by itself

A point is uniform in its cell. A box has a point in its middle and reaches its length to both sides: in each
dimension (r + u) / cells, r a Zipf rank below the number of cells, u uniform. Its weight there is 1 - length.

Ends, values and weights are rounded to floats of 4 bytes, as an index of the paper's size holds them. What is
written out is their shortest decimals, which are in the same order: texts and arrays give the same answers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.workloads.hashing import Key, integers, uniform, zipf_rank

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

_BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))
_SMALL = np.float32(2**-19)
"""What is nearer to 0 is 0, or its text would have an exponent."""


class Law(NamedTuple):
    """The parameters of Table 1 that points and lengths are drawn by."""

    regions: int = 10
    cells: int = 100
    volume: float = 1 / 20
    """The part of the space that a region takes."""
    skew_across: float = 0.0
    skew_within: float = 1.0
    skew_length: float = 0.75


TABLE_1 = Law()
"""Its defaults."""


class Regions(NamedTuple):
    """Rectangles: region r takes the cells from start[r, i] on, size[r, i] of them, in dimension i."""

    start: Ints
    size: Ints


class Columns(NamedTuple):
    """Boxes with an interval in every dimension: row n, column i. Ends are floats of 4 bytes in 8."""

    low: Floats
    high: Floats
    weight: Floats
    score: Floats

    def lists(self) -> Lists:
        """Write the same boxes as lists."""
        count, dimensions = self.low.shape
        start = np.arange(count + 1) * dimensions
        attribute = np.tile(np.arange(dimensions), count)
        return Lists(start, attribute, self.low.ravel(), self.high.ravel(), self.weight.ravel(), self.score)


class Lists(NamedTuple):
    """Boxes with intervals in some dimensions: those of box n are attribute[start[n] : start[n + 1]]."""

    start: Ints
    attribute: Ints
    low: Floats
    high: Floats
    weight: Floats
    score: Floats


def regions(law: Law, dimensions: int, key: Key) -> Regions:
    """Draw regions for the rows of the key.

    The logarithms of the sides share that of the volume, all shares as likely, so no side is longer than
    the space. Sides are whole cells, so the volume is met but for rounding.
    """
    share = np.stack([-np.log1p(-uniform(key, i)) for i in range(dimensions)], axis=1)
    share /= share.sum(axis=1, keepdims=True)
    size = np.clip(np.rint(law.cells * law.volume**share), 1, law.cells).astype(np.int64)
    where = np.stack([uniform(key, dimensions + i) for i in range(dimensions)], axis=1)
    return Regions(np.floor(where * (law.cells - size + 1)).astype(np.int64), size)


def place(law: Law, start: Ints, size: Ints, key: Key) -> Floats:
    """Draw a value in each of some sides of regions.

    >>> key = Key(1, "t", "c", np.arange(3))
    >>> place(TABLE_1, np.array([90, 90, 0]), np.array([1, 5, 5]), key).round(2).tolist()
    [0.9, 0.93, 0.01]
    """
    total = _harmonic(law.cells, law.skew_within)
    rank = np.searchsorted(total, uniform(key, 0) * total[size - 1], side="right")
    rank = np.minimum(rank, size - 1)
    # 1 to the right, 1 to the left, 2 to the right: an even side has its middle left of the centre.
    offset = (rank + 1) // 2 * np.where(rank % 2, 1, -1)
    cell = start + (size - 1) // 2 + offset
    return np.minimum(single((cell + uniform(key, 1)) / law.cells), _BELOW_ONE)


def lengths(law: Law, key: Key) -> Floats:
    """Draw a length in [0, 1) for each row of the key."""
    return (zipf_rank(key, law.cells, law.skew_length) + uniform(key, 1)) / law.cells


def region_of(law: Law, key: Key) -> Ints:
    """Draw a region for each row of the key."""
    if law.skew_across == 0:
        return integers(key, 0, law.regions)
    return zipf_rank(key, law.regions, law.skew_across)


def single(values: Floats) -> Floats:
    """Round to floats of 4 bytes, and what is nearly 0 to 0."""
    short = values.astype(np.float32)
    return np.where(np.abs(short) < _SMALL, np.float32(0), short).astype(np.float64)


@lru_cache(maxsize=64)
def _harmonic(n: int, exponent: float) -> Floats:
    total: Floats = np.cumsum(np.arange(1, n + 1, dtype=np.float64) ** -exponent)
    total.setflags(write=False)
    return total
