"""Frozen structures that know rows and flags, asked as of one moment.

They leave out rows by flags, one byte each. Making these for every question would take longer than most
answers. So flags of some moment are kept. For the rows that went since then, as many more are asked for, and
they are left out here. There are at most as many as moments; after LAG of them, flags are made again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.ranking.boxes.dense import DenseExact, DenseRelaxed
from headgate.ranking.boxes.sparse import Sparse
from headgate.ranking.boxes.threshold_kernels import EXACT, MAX, Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headgate.ranking.boxes.boxes import Asked, Boxes
    from headgate.ranking.boxes.threshold_kernels import Alive

    Flags = NDArray[np.uint8] | None
    Ask = Callable[[int, Flags], Rows]

LAG, SPARE = 256, 16
"""Moments after which flags are made again; rows more than wanted that are asked for at first."""


class Flagged:
    """The flags of some moment, and answers as of another. `order` is that of the rows in the structure."""

    def __init__(self, order: NDArray[np.int64] | None = None) -> None:
        self._order = order
        self._kept: tuple[int, Flags] = (0, None)

    def top(self, k: int, alive: Alive, ask: Ask) -> Rows:
        """Ask for the best k; `ask` is given how many, and the flags of rows to be left out."""
        if not len(alive.gone):
            return ask(k, None)
        moment, flags = self._kept
        if not 0 <= alive.moment - moment <= LAG:
            later = alive.moment > moment
            gone = alive.gone if self._order is None else alive.gone[self._order]
            moment, flags = alive.moment, (gone <= alive.moment).astype(np.uint8)
            if later:
                self._kept = moment, flags
        lag = alive.moment - moment
        found = Rows(np.zeros(0), np.zeros(0, np.int64))
        for spare in sorted({min(lag, SPARE), lag}):
            found = ask(k + spare, flags)
            there = alive.gone[found.row] > alive.moment
            enough = len(found.row) < k + spare or int(there.sum()) >= k
            found = Rows(found.value[there][:k], found.row[there][:k])
            if enough:
                break
        return found


class DenseRows:
    """Boxes in tiers and blocks over dense columns."""

    def __init__(self, boxes: Boxes, dimensions: int, how: int) -> None:
        shape, at = (dimensions, boxes.size), (boxes.dim, boxes.row)
        # Where a box has no interval, anything holds if all must hold, and nothing if any may.
        ends = np.inf if how == EXACT else -np.inf
        low, high = np.full(shape, -ends), np.full(shape, ends)
        low[at], high[at] = boxes.low, boxes.high
        self._exact: DenseExact | None = None
        self._relaxed: DenseRelaxed | None = None
        if how == EXACT:
            self._order = np.argsort(-boxes.score, kind="stable")
            self._flagged = Flagged(self._order)
            self._score = boxes.score
            self._exact = DenseExact(low[:, self._order], high[:, self._order])
        else:
            self._flagged = Flagged()
            weight = np.zeros(shape)
            weight[at] = boxes.weight
            self._relaxed = DenseRelaxed(low, high, weight)

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        built = self._exact if self._relaxed is None else self._relaxed
        assert built is not None
        return built.nbytes

    def top(self, asked: Asked, k: int, how: int, alive: Alive) -> Rows:
        """Find the best k."""
        x, y = asked.x[None, :], asked.y[None, :]

        def exact(wanted: int, flags: Flags) -> Rows:
            assert self._exact is not None
            found = self._exact.top_many(x, y, wanted, removed=flags)
            row = self._order[found.numbers[0, : found.counts[0]]]
            return Rows(self._score[row], row)

        def relaxed(wanted: int, flags: Flags) -> Rows:
            assert self._relaxed is not None
            factors = None if bool((asked.factor == 1.0).all()) else asked.factor
            found = self._relaxed.top_many(x, y, wanted, factors=factors, largest=how == MAX, removed=flags)
            count = found.counts[0]
            return Rows(found.values[0, :count], found.numbers[0, :count].astype(np.int64))

        return self._flagged.top(k, alive, exact if how == EXACT else relaxed)


class SparseRows:
    """Boxes with few intervals in many dimensions; sums only."""

    def __init__(self, boxes: Boxes) -> None:
        self._sparse = Sparse.build(boxes.size, boxes.start, boxes.dim, boxes.low, boxes.high, boxes.weight)
        self._flagged = Flagged()

    @property
    def nbytes(self) -> int:
        """Count the bytes that it adds to the boxes."""
        return self._sparse.nbytes

    def top(self, asked: Asked, k: int, how: int, alive: Alive) -> Rows:  # noqa: ARG002 -- there is one way
        """Find the best k."""
        factors = None if bool((asked.factor == 1.0).all()) else asked.factor

        def ask(wanted: int, flags: Flags) -> Rows:
            row, value = self._sparse.top(asked.x, asked.y, wanted, factors, flags)
            return Rows(value, row.astype(np.int64))

        return self._flagged.top(k, alive, ask)
