"""The best k boxes over dense columns: every row may have an interval in every dimension.

Tiers bound what later rows can be worth, blocks leave out rows that are far away, and a sketch leaves out
most of the others. In one dimension a scored interval index is better than all that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.ranking.answers import Answers, no_answers
from headgate.ranking.boxes.dense_build import BLOCK, LONGEST, make_dense
from headgate.ranking.boxes.dense_kernels import (
    MAX,
    SUM,
    RelaxedBuffers,
    Valuation,
    Ways,
    exact_many,
    relaxed_many,
)
from headgate.ranking.boxes.ends import narrowed
from headgate.ranking.boxes.sketch import MOST, make_page, make_sketch
from headgate.ranking.intervals.scored import rank

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Floats
    from headgate.ranking.boxes.dense_build import Dense
    from headgate.ranking.boxes.sketch import Sketch

    Columns = NDArray[np.float64]

_SKETCHED = 3
"""Dimensions from which a sketch pays."""


class Line:
    """One dimension: a scored interval index is better than blocks there."""

    def __init__(
        self, low: NDArray[np.float64], high: NDArray[np.float64], score: NDArray[np.float64]
    ) -> None:
        # Loaded here: a ranked engine has no line.
        from headgate.ranking.intervals.cells import Auto

        self._scored = rank(low, high, score)
        self._index = Auto(self._scored)

    def top_many(self, x: NDArray[np.float64], y: NDArray[np.float64], k: int) -> Answers:
        """Find the best k for each of many questions; values are scores."""
        ranks, counts = self._index.top_many(x, y, k)
        if not len(self._scored.row):
            return no_answers(len(x), 0)
        ranks = np.where(np.arange(ranks.shape[1]) < counts[:, None], ranks, 0)
        return Answers(self._scored.row[ranks], self._scored.score[ranks], counts)


class _Dense:
    """Rows in tiers and blocks with a sketch; one dimension is a line, too."""

    def __init__(self, low: Columns, high: Columns, weight: Columns, bound: Columns) -> None:
        self.dense = make_dense(low, high, weight, bound)
        self._sketch = make_sketch(self.dense.low, self.dense.high, self.dense.weight)
        self._rows = low.shape[1]
        self._nobody = np.zeros(self._rows, np.uint8)
        self._line: Line | None = None


class DenseRelaxed(_Dense):
    """Rows by the combined weights of the dimensions that hold; a row's number is its place, by id.

    A dimension that a row has no interval in is (inf, -inf) with weight 0.
    """

    def __init__(self, low: Columns, high: Columns, weight: Columns) -> None:
        bound = np.zeros(low.shape[1])
        for column in weight:
            bound += column
        super().__init__(low, high, weight, bound)
        if len(low) == 1:
            self._line = Line(low[0], high[0], weight[0])

    def top_many(
        self,
        x: Columns,
        y: Columns,
        k: int,
        *,
        factors: NDArray[np.float64] | None = None,
        largest: bool = False,
        removed: NDArray[np.uint8] | None = None,
    ) -> Answers:
        """Find the best k for each of many questions, given by question and dimension.

        Values are sums, or with `largest` the largest weight. A factor of 0 drops a dimension.
        """
        removed = self._nobody if removed is None else removed
        given = np.ones(len(self.dense.low)) if factors is None else np.asarray(factors, np.float64)
        if self._line is not None and given[0] == 1.0 and removed is self._nobody:
            # With another factor, weights that differ may round to the same value, and ids decide.
            return self._line.top_many(x[:, 0], y[:, 0], k)
        xs, ys = narrowed(x, y, self.dense.low.dtype.type)
        asked = valuation(given, NO_WAYS, largest=largest)
        return best_relaxed(self.dense, self._sketch, NO_WAYS, removed, xs, ys, min(k, self._rows), asked)


NO_WAYS = Ways(np.zeros(0, np.int32), np.zeros((0, 0), np.int32))
"""All rows are added up in the order of the dimensions."""
for _column in NO_WAYS:
    _column.flags.writeable = False
_SLACK = 1 + 1e-12
"""What another order of some hundred terms may add to a sum, and more."""


def valuation(
    factors: NDArray[np.float64], ways: Ways, *, largest: bool = False, summed_alike: bool = False
) -> Valuation:
    """Say how values are made; `summed_alike` tells that weights add up to the same in any order."""
    counted = bool(((factors == 0.0) | (factors == 1.0)).all())
    return Valuation(
        factors,
        np.argsort(-factors, kind="stable"),
        MAX if largest else SUM,
        plain=bool((factors == 1.0).all()),
        sketched=counted and not largest and _SKETCHED <= len(factors) <= MOST,
        slack=1.0 if not len(ways.of) or (counted and summed_alike) else _SLACK,
    )


def best_relaxed(
    dense: Dense,
    sketch: Sketch,
    ways: Ways,
    removed: NDArray[np.uint8],
    x: Floats,
    y: Floats,
    k: int,
    asked: Valuation,
) -> Answers:
    """Find the best k, of no more rows than there are, for each of many questions."""
    d = len(dense.low)
    answers = no_answers(len(x), k)
    if d and asked.factors.any():
        scratch = RelaxedBuffers(np.empty(LONGEST // BLOCK), np.empty(BLOCK), make_page(d))
        relaxed_many(dense, sketch, ways, removed, x, y, asked, scratch, answers)
    return answers


class DenseExact(_Dense):
    """Rows by number, the smallest first, of which every dimension holds; numbers are by falling score.

    A dimension that a row has no interval in is (-inf, inf). A row that can never hold is (inf, -inf) in one.
    `row_of` says where a row is marked as removed, if not at its number.
    """

    def __init__(self, low: Columns, high: Columns, row_of: NDArray[np.int64] | None = None) -> None:
        if not len(low):
            low = np.full((1, low.shape[1]), -np.inf)
            high = -low
        self._row_of = np.arange(low.shape[1]) if row_of is None else row_of
        falling = -np.arange(low.shape[1], dtype=np.float64)
        super().__init__(low, high, np.zeros(low.shape), falling)
        if len(low) == 1:
            self._line = Line(low[0], high[0], falling)

    def top_many(
        self, x: Columns, y: Columns, k: int, *, removed: NDArray[np.uint8] | None = None
    ) -> Answers:
        """Find the best k for each of many questions, given by question and dimension; values are 0."""
        if x.shape[1] == 0:
            x, y = np.zeros((len(x), 1)), np.zeros((len(x), 1))
        removed = self._nobody if removed is None else removed
        if self._line is not None and removed is self._nobody:
            best = self._line.top_many(x[:, 0], y[:, 0], k)
            return best._replace(values=np.zeros(best.values.shape))
        xs, ys = narrowed(x, y, self.dense.low.dtype.type)
        answers = no_answers(len(x), min(k, self._rows))
        page = make_page(len(self.dense.low))
        exact_many(self.dense, self._sketch, removed, self._row_of, xs, ys, page, answers)
        return answers
