"""Boxes with all of their dimensions in columns, cut into tiers and blocks.

    tier      rows whose bound (the score, or the sum of the weights) is not below that of any later tier's;
              the first is small and the next are twice as long, up to LONGEST
    block     BLOCK rows of one tier that are near each other: the tier is halved again and again, each part
              along the dimension in which its middles differ most

A block keeps the least low and the greatest high of each dimension, the best weight, and its first id. Rows
that fill up the last tier hold for nothing.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.ranking.boxes.ends import narrowest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Floats, Floats64, Ints, Ints32


BLOCK = 64
SHORTEST, LONGEST = 1024, 32_768
NO_ROW = 2**31 - 1
_CUTS = 4096
"""How finely places are told apart, to find rows that are near each other."""


class Dense(NamedTuple):
    """Rows in tiers and blocks.

    by dimension and row      low, high, weight
    by dimension and block    least, greatest, best
    by block                  first: the smallest number of its rows
    by row                    number: its place in the order of ids (relaxed) or of ranks (exact), or NO_ROW
    by tier                   start (its first block, one more for the end), bound (of its rows, at most)
    by dimension and tier     heaviest: the best weight
    """

    low: Floats
    high: Floats
    weight: Floats
    least: Floats
    greatest: Floats
    best: Floats
    first: Ints32
    number: Ints32
    start: Ints
    bound: Floats64
    heaviest: Floats

    def check(self) -> None:
        """Assert the invariants."""
        d, rows = self.low.shape
        blocks = rows // BLOCK
        assert rows == BLOCK * blocks == BLOCK * self.start[-1]
        assert bool((self.least == self.low.reshape(d, blocks, BLOCK).min(2)).all())
        assert bool((self.greatest == self.high.reshape(d, blocks, BLOCK).max(2)).all())
        assert bool((self.first == self.number.reshape(blocks, BLOCK).min(1)).all())
        real = self.number[self.number != NO_ROW]
        assert len(np.unique(real)) == len(real)
        assert bool((np.diff(self.bound) <= 0).all())


def make_dense(low: Floats64, high: Floats64, weight: Floats64, bound: Floats64) -> Dense:
    """Arrange boxes, given by dimension and row; row r has number r, and a bound on what it can be worth.

    A dimension that a row has no interval in is (-inf, inf) or (inf, -inf), as the question asks for.
    """
    d, n = low.shape
    sizes = _tier_sizes(n)
    rows = sum(sizes)
    order = np.full(rows, n)
    order[:n] = np.argsort(-bound, kind="stable")
    kind, weights = narrowest(low, high), narrowest(weight)
    columns = [
        _padded(low, np.inf).astype(kind),
        _padded(high, -np.inf).astype(kind),
        _padded(weight, 0.0).astype(weights),
    ]
    middles = _middles(columns[0], columns[1])
    begin = 0
    for size in sizes:
        order[begin : begin + size] = _near(middles, order[begin : begin + size])
        begin += size
    low_, high_, weight_ = (np.ascontiguousarray(column[:, order]) for column in columns)
    number = np.where(order < n, order, NO_ROW).astype(np.int32)
    blocks = (d, rows // BLOCK, BLOCK)
    best = weight_.reshape(blocks).max(2)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
    top = np.concatenate([bound, np.full(1, -np.inf)])[order]
    dense = Dense(
        low_,
        high_,
        weight_,
        low_.reshape(blocks).min(2),
        high_.reshape(blocks).max(2),
        best,
        number.reshape(blocks[1:]).min(1),
        number,
        starts // BLOCK,
        np.array([top[a:b].max() for a, b in pairwise(starts.tolist())], np.float64),
        np.maximum.reduceat(best, starts[:-1] // BLOCK, axis=1) if n else best,
    )
    for array in dense:
        array.flags.writeable = False
    return dense


def _tier_sizes(rows: int) -> list[int]:
    """Choose how long tiers are, the last one no longer than it must be.

    >>> _tier_sizes(5000), _tier_sizes(10)
    ([1024, 2048, 2048], [64])
    """
    sizes: list[int] = []
    left = rows
    while left > 0:
        size = min(SHORTEST << len(sizes), LONGEST) if len(sizes) < 16 else LONGEST
        while size // 2 >= max(left, BLOCK):
            size //= 2
        sizes.append(size)
        left -= size
    return sizes


def _padded(columns: Floats64, last: float) -> Floats64:
    """Append the row that fills up tiers."""
    return np.concatenate([columns, np.full((len(columns), 1), last)], axis=1)


def _middles(low: Floats, high: Floats) -> NDArray[np.float32]:
    """Return where intervals are among the others, from 0 to 1, so that no unit counts more than another.

    Without one end it is the other that says where; without both, nothing does.
    """
    middles = np.empty(low.shape, np.float32)
    for j in range(len(low)):
        below, above = low[j].astype(np.float64), high[j].astype(np.float64)
        below, above = np.where(np.isfinite(below), below, above), np.where(np.isfinite(above), above, below)
        with np.errstate(invalid="ignore"):
            middle = below / 2 + above / 2
        middle = np.where(np.isfinite(middle), middle, 0.0)
        cuts = np.sort(middle[:: max(1, len(middle) // _CUTS)])
        middles[j] = np.searchsorted(cuts, middle) / max(1, len(cuts))
    return middles


def _near(middles: NDArray[np.float32], order: Ints) -> Ints:
    """Arrange the rows of a tier: halve all parts again and again until they are blocks."""
    parts = order.reshape(1, -1)
    while parts.shape[1] > BLOCK:
        spread = np.stack([np.std(column[parts], axis=1) for column in middles])
        along = spread.argmax(axis=0)
        keys = middles[along[:, None], parts]
        half = parts.shape[1] // 2
        parts = np.take_along_axis(parts, np.argpartition(keys, half, axis=1), axis=1).reshape(-1, half)
    return parts.reshape(-1)
