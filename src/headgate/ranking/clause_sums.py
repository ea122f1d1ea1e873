"""The sums of what holds, row by row, and the highest of them: the plain way."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.ranking.clauses import Weighted
    from headgate.ranking.rows import Rows

    Ints = NDArray[np.int64]


class Ranking(NamedTuple):
    """Rows and their values."""

    rows: Ints
    values: NDArray[np.float64]

    def with_(self, other: Ranking) -> Ranking:
        """Put others behind."""
        return Ranking(np.concatenate([self.rows, other.rows]), np.concatenate([self.values, other.values]))

    def where(self, kept: NDArray[np.bool_]) -> Ranking:
        """Keep some."""
        return Ranking(self.rows[kept], self.values[kept])


def summed(
    table: Weighted,
    held: NDArray[np.bool_],
    factors: NDArray[np.float64] | None,
    alive: NDArray[np.bool_],
) -> Ranking:
    """Sum what holds, row by row in the order of the clauses; only rows of which anything does."""
    holds = held[table.clause]
    weight = table.weight[holds]
    if factors is not None:
        weight = weight * factors[table.clause[holds]]
    row = np.repeat(np.arange(table.size), np.diff(table.start))[holds]
    # In the order of the clauses: bincount adds one after the other.
    values = np.asarray(np.bincount(row, weight, minlength=table.size), np.float64)
    some = np.zeros(table.size, np.bool_)
    some[row] = True
    rows = np.flatnonzero(some & alive)
    return Ranking(rows, values[rows])


def best(found: Ranking, k: int, rows: Rows) -> Ranking:
    """Take the k highest values, the highest first; equal ones by id."""
    if k == 0:
        return Ranking(found.rows[:0], found.values[:0])
    if len(found.rows) > k:
        least = np.partition(found.values, len(found.values) - k)[len(found.values) - k]
        found = found.where(found.values >= least)
    order = np.lexsort((rows.places(found.rows), -found.values))[:k]
    return Ranking(found.rows[order], found.values[order])
