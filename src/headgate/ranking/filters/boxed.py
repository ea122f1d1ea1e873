"""Rows whose clauses are intervals of codes, as boxes in tiers and blocks (`ranking/boxes`).

An attribute (a line of codes, see `listed.py`) that rows have clauses on is a dimension; one that a row has n
clauses on is n of them. Codes are small whole numbers, which floats hold exactly, whatever they stand for.

    row     a BETWEEN 1 AND 5 AND b > 2 AND b < 9        weights 0.5, 1, 2
    box     dimension (a, 0): codes 3 to 7   (b, 0): 2 to 9   (b, 1): 0 to 6

A value is the sum of weights in the order in which clauses are written. Where that is not the order of the
dimensions, it is one of the ways of `dense_kernels.Ways`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.core.jit import kernel
from headgate.ranking.boxes.dense import NO_WAYS, best_relaxed, valuation
from headgate.ranking.boxes.dense_build import BLOCK, NO_ROW, Dense, make_dense
from headgate.ranking.boxes.dense_kernels import Ways
from headgate.ranking.boxes.sketch import Sketch, make_sketch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from headgate.core.arrays import Bools, Bytes, Floats64, Ints, Ints32
    from headgate.ranking.answers import Answers
    from headgate.ranking.filters.clauses import Weighted
    from headgate.ranking.filters.listed import ClauseSets


LEAST = 256
"""Boxes that are worth it."""
MOST = 16
"""Dimensions of boxes, at most."""
FULL = 0.25
"""The part of all intervals that there could be which boxes must have: tiers of empty columns are slow."""
SHARE = 0.5
"""The part of all rows that must be boxes: asking two structures takes longer than asking one about more."""
_FINE, _LARGE = 2.0**30, 2.0**22
"""Sums of multiples of 1 / _FINE below _LARGE are exact, in any order."""
_DENSE, _SKETCH, _UNIT = "dense_", "sketch_", "sketch_unit"


class Boxed:
    """Boxes over codes.

    attribute       by dimension: what it is about
    rows            the rows that are boxes, rising
    summed_alike    whether all weights add up to the same in any order
    """

    def __init__(
        self, dense: Dense, sketch: Sketch, ways: Ways, attribute: Ints32, rows: Ints, summed_alike: bool
    ) -> None:
        self.dense, self.sketch, self.ways = dense, sketch, ways
        self.attribute, self.rows, self.summed_alike = attribute, rows, summed_alike
        self._plain = valuation(np.ones(len(attribute)), ways, summed_alike=summed_alike)

    def top_many(self, x: Floats64, k: int, factors: Floats64 | None, removed: Bytes) -> Answers:
        """Find the best k rows for each of some events; x has their codes, by event and attribute.

        `factors` are by attribute, None if all are 1; `removed` is by row.
        """
        asked = self._plain
        if factors is not None:
            given = np.ascontiguousarray(factors[self.attribute])
            asked = valuation(given, self.ways, summed_alike=self.summed_alike)
        codes = np.ascontiguousarray(x[:, self.attribute], self.dense.low.dtype)
        k = min(k, len(self.rows))
        return best_relaxed(self.dense, self.sketch, self.ways, removed, codes, codes, k, asked)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return it as arrays, for a snapshot."""
        arrays: dict[str, NDArray[Any]] = {
            _DENSE + name: array for name, array in self.dense._asdict().items()
        }
        arrays.update(
            {_SKETCH + name: array for name, array in self.sketch._asdict().items() if name != "unit"}
        )
        arrays[_UNIT] = np.array([self.sketch.unit])
        arrays.update(
            ways_of=self.ways.of, ways_order=self.ways.order, dimension=self.attribute, rows=self.rows
        )
        arrays["summed_alike"] = np.array([self.summed_alike], np.uint8)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Boxed:
        """Read what `to_arrays` gave."""
        columns = {name: arrays[_SKETCH + name] for name in Sketch._fields if name != "unit"}
        return cls(
            Dense(**{name: arrays[_DENSE + name] for name in Dense._fields}),
            Sketch(**columns, unit=float(arrays[_UNIT][0])),
            Ways(arrays["ways_of"], arrays["ways_order"]),
            arrays["dimension"],
            arrays["rows"],
            bool(arrays["summed_alike"][0]),
        )


def make_boxes(table: Weighted, sets: ClauseSets) -> Boxed | None:
    """Make boxes of the rows that can be boxes; None if these are few, or have little in common.

    With too many dimensions it is the rows that have theirs among the commonest.
    """
    intervals = np.diff(sets.set_start)
    single = (sets.odd < 0) & (intervals <= 1)
    if not table.size or not len(sets.attribute):
        return None
    rows = np.flatnonzero(np.logical_and.reduceat(single[table.clause], table.start[:-1]))
    if not _enough(rows, table):
        return None
    some = table if len(rows) == table.size else table.take(rows)
    # A clause that never holds is about the first attribute: it has no interval there.
    about = np.zeros(len(single), np.int32)
    about[intervals == 1] = sets.attribute[sets.set_start[:-1][intervals == 1]]
    attribute = about[some.clause]
    use = np.zeros(len(attribute), np.int32)
    _count_uses(some.start, attribute, np.full((2, int(about.max(initial=0)) + 1), -1, np.int64), use)
    common = _commonest(attribute, use)
    if not common.all():
        kept = np.flatnonzero(np.logical_and.reduceat(common, some.start[:-1]))
        inside = np.isin(np.repeat(np.arange(some.size), np.diff(some.start)), kept)
        rows, some, attribute, use = rows[kept], some.take(kept), attribute[inside], use[inside]
        if not _enough(rows, table):
            return None
    dimension, attributes = _number_dimensions(attribute, use, some.start)
    if len(attribute) < FULL * len(rows) * len(attributes):
        return None
    row = np.repeat(np.arange(some.size), np.diff(some.start))
    low, high = np.full((len(attributes), some.size), np.inf), np.full((len(attributes), some.size), -np.inf)
    weight = np.zeros(low.shape)
    there = intervals[some.clause] == 1
    at = sets.set_start[some.clause[there]]
    low[dimension[there], row[there]] = sets.low[at]
    high[dimension[there], row[there]] = sets.high[at]
    weight[dimension, row] = some.weight
    bound = np.zeros(some.size)
    for column in weight:
        bound += column
    dense = make_dense(low, high, weight, bound)
    ways = _find_ways(some, dimension, len(attributes), dense.number)
    alike = bool((bound < _LARGE).all()) and bool((some.weight * _FINE % 1 == 0).all())
    number = np.where(dense.number == NO_ROW, NO_ROW, rows[np.minimum(dense.number, some.size - 1)])
    dense = dense._replace(
        number=number.astype(np.int32), first=number.reshape(-1, BLOCK).min(1).astype(np.int32)
    )
    sketch = make_sketch(dense.low, dense.high, dense.weight)
    for array in (*dense, *ways, attributes, rows):
        array.flags.writeable = False
    return Boxed(dense, sketch, ways, attributes, rows, alike)


def _enough(rows: Ints, table: Weighted) -> bool:
    """Tell whether boxes of some rows are worth it: lists take what is left, and could take these too."""
    return len(rows) >= LEAST and len(rows) >= SHARE * table.size


@kernel
def _count_uses(start: Ints, attribute: Ints32, last: Ints, use: Ints32) -> None:
    """Count for each clause how many before it in its row are about the same attribute."""
    for row in range(len(start) - 1):
        for i in range(start[row], start[row + 1]):
            if last[0, attribute[i]] == row:
                last[1, attribute[i]] += 1
            else:
                last[0, attribute[i]], last[1, attribute[i]] = row, 0
            use[i] = last[1, attribute[i]]


def _commonest(attribute: Ints32, use: Ints32) -> Bools:
    """Tell of each clause whether its dimension is one of the commonest."""
    width = int(use.max(initial=0)) + 1
    pair = attribute.astype(np.int64) * width + use
    count = np.bincount(pair)
    kept = np.zeros(len(count), np.bool_)
    kept[np.argsort(-count, kind="stable")[:MOST]] = True
    common: Bools = kept[pair]
    return common


def _number_dimensions(attribute: Ints32, use: Ints32, start: Ints) -> tuple[Ints, Ints32]:
    """Number the dimensions as they come in most rows; returns that of each clause, and their attributes."""
    width = int(use.max(initial=0)) + 1
    pair = attribute.astype(np.int64) * width + use
    count = np.bincount(pair)
    position = np.arange(len(attribute)) - np.repeat(start[:-1], np.diff(start))
    mean = np.bincount(pair, position) / np.maximum(count, 1)
    pairs = np.flatnonzero(count)
    pairs = pairs[np.argsort(mean[pairs], kind="stable")]
    number = np.zeros(len(count), np.int64)
    number[pairs] = np.arange(len(pairs))
    return number[pair], (pairs // width).astype(np.int32)


def _find_ways(some: Weighted, dimension: Ints, dimensions: int, number: Ints32) -> Ways:
    """Find in which orders rows are added up; `number` tells which row stands at each place of the boxes."""
    falls = np.zeros(len(dimension), np.bool_)
    falls[1:] = dimension[1:] < dimension[:-1]
    falls[some.start[:-1]] = False
    owner = np.repeat(np.arange(some.size), np.diff(some.start))
    turned = np.unique(owner[falls])
    if not len(turned):
        return Ways(NO_WAYS.of.copy(), NO_WAYS.order.copy())
    taken = some.take(turned)
    orders = np.full((len(turned), dimensions), -1, np.int32)
    row = np.repeat(np.arange(len(turned)), np.diff(taken.start))
    at = np.arange(len(row)) - np.repeat(taken.start[:-1], np.diff(taken.start))
    orders[row, at] = dimension[np.isin(owner, turned)]
    distinct, way = np.unique(orders, axis=0, return_inverse=True)
    of = np.zeros(some.size + 1, np.int32)
    of[turned] = way.reshape(-1) + 1
    # Padding stands behind all rows.
    of_place = of[np.minimum(number, some.size)]
    return Ways(of_place, np.concatenate([np.full((1, dimensions), -1, np.int32), distinct]))
