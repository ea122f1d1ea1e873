"""Rows whose clauses are intervals of codes, as boxes in tiers and blocks (`ranking/boxes`).

A line of codes that rows have clauses on is a dimension; one that a row has n clauses on is n of them. Codes
are small whole numbers, which floats hold exactly, whatever the values that they stand for are.

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
from headgate.ranking.boxes.dense_build import NO_ROW, Dense, make_dense
from headgate.ranking.boxes.dense_kernels import Ways
from headgate.ranking.boxes.sketch import Sketch, make_sketch
from headgate.ranking.intervals.scan import BLOCK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from headgate.contents.protocol import CodedClauses, EventCoder
    from headgate.ranking.boxes.dense import Answers
    from headgate.ranking.filters.clauses import Named, Weighted

    Ints = NDArray[np.int64]
    Ints32 = NDArray[np.int32]

LEAST = 256
"""Rows that are worth boxes: fewer are summed up clause by clause."""
MOST = 16
"""Dimensions of boxes, at most."""
FULL = 0.25
"""The part of all intervals that there could be which boxes must have: tiers of empty columns are slow."""
_FINE, _LARGE = 2.0**30, 2.0**22
"""Sums of multiples of 1 / _FINE below _LARGE are exact, in any order."""
_DENSE, _SKETCH, _UNIT = "dense_", "sketch_", "sketch_unit"


class Boxed:
    """Boxes, and what finds the codes of events.

    line            by dimension: the line that it is about
    rows            the rows that are boxes, rising
    summed_alike    whether all weights add up to the same in any order
    """

    def __init__(
        self,
        dense: Dense,
        sketch: Sketch,
        ways: Ways,
        line: Ints32,
        rows: Ints,
        summed_alike: bool,
        coder: EventCoder,
    ) -> None:
        self.dense, self.sketch, self.ways = dense, sketch, ways
        self.line, self.rows, self.summed_alike = line, rows, summed_alike
        self.coder = coder
        self._plain = valuation(np.ones(len(line)), ways, summed_alike=summed_alike)

    def top(self, codes: Ints32, k: int, factors: Mapping[str, float], removed: NDArray[np.uint8]) -> Answers:
        """Find the best k rows for each of some events, given by their codes; `removed` is by row."""
        asked = self._plain
        if factors:
            names = self.coder.names
            given = [factors.get(names[line], 1.0) for line in self.line.tolist()]
            asked = valuation(np.array(given, np.float64), self.ways, summed_alike=self.summed_alike)
        x = np.ascontiguousarray(codes[:, self.line], self.dense.low.dtype)
        k = min(k, len(self.rows))
        return best_relaxed(self.dense, self.sketch, self.ways, removed, x, x, k, asked)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return it as arrays, for a snapshot."""
        arrays: dict[str, NDArray[Any]] = dict(self.coder.to_arrays())
        arrays.update({_DENSE + name: array for name, array in self.dense._asdict().items()})
        arrays.update(
            {_SKETCH + name: array for name, array in self.sketch._asdict().items() if name != "unit"}
        )
        arrays[_UNIT] = np.array([self.sketch.unit])
        arrays.update(ways_of=self.ways.of, ways_order=self.ways.order, line=self.line, rows=self.rows)
        arrays["summed_alike"] = np.array([self.summed_alike], np.uint8)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], coder: EventCoder) -> Boxed:
        """Read what `to_arrays` gave."""
        columns = {name: arrays[_SKETCH + name] for name in Sketch._fields if name != "unit"}
        return cls(
            Dense(**{name: arrays[_DENSE + name] for name in Dense._fields}),
            Sketch(**columns, unit=float(arrays[_UNIT][0])),
            Ways(arrays["ways_of"], arrays["ways_order"]),
            arrays["line"],
            arrays["rows"],
            bool(arrays["summed_alike"][0]),
            coder,
        )


def may_be_boxes(table: Weighted, named: Named) -> bool:
    """Tell whether coding clauses is worth it: whether enough rows look at enough of few attributes."""
    if table.size < LEAST:
        return False
    alone = np.diff(named.start) == 1
    name = np.full(len(alone), -1, np.int64)
    name[alone] = named.name[named.start[:-1][alone]]
    kept = name[table.clause]
    rows, clauses = _whole_rows(table, kept)
    if rows < LEAST:
        return False
    uses = np.bincount(clauses, minlength=1)
    rare = np.ones(len(uses) + 1, np.bool_)
    rare[np.argsort(-uses, kind="stable")[:MOST]] = False
    # Now those that are about the commonest attributes only.
    rows, clauses = _whole_rows(table, np.where(rare[np.minimum(kept, len(uses))], -1, kept))
    return rows >= LEAST and len(clauses) >= FULL * rows * len(np.unique(clauses))


def _whole_rows(table: Weighted, kept: Ints) -> tuple[int, Ints]:
    """Count the rows of which no clause is -1, and return what their clauses are."""
    rows = np.logical_and.reduceat(kept >= 0, table.start[:-1])
    return int(rows.sum()), kept[np.repeat(rows, np.diff(table.start))]


def make_boxes(table: Weighted, coded: CodedClauses) -> Boxed | None:
    """Make boxes of the rows that can be boxes; None if these are few, or have little in common.

    With too many dimensions it is the rows that have theirs among the commonest.
    """
    single = (coded.line >= 0) & (np.diff(coded.start) <= 1)
    if not table.size or not single.any():
        return None
    rows = np.flatnonzero(np.logical_and.reduceat(single[table.clause], table.start[:-1]))
    if len(rows) < LEAST:
        return None
    some = table.take(rows)
    line = coded.line[some.clause]
    use = np.zeros(len(line), np.int32)
    _count_uses(some.start, line, np.full((2, len(coded.coder.names)), -1, np.int64), use)
    common = _commonest(line, use)
    if not common.all():
        kept = np.flatnonzero(np.logical_and.reduceat(common, some.start[:-1]))
        inside = np.isin(np.repeat(np.arange(some.size), np.diff(some.start)), kept)
        rows, some, line, use = rows[kept], some.take(kept), line[inside], use[inside]
        if len(rows) < LEAST:
            return None
    dimension, lines = _number_dimensions(line, use, some.start)
    if len(line) < FULL * len(rows) * len(lines):
        return None
    row = np.repeat(np.arange(some.size), np.diff(some.start))
    low, high = np.full((len(lines), some.size), np.inf), np.full((len(lines), some.size), -np.inf)
    weight = np.zeros(low.shape)
    # A clause that never holds has no interval.
    there = np.diff(coded.start)[some.clause] == 1
    at = coded.start[some.clause[there]]
    low[dimension[there], row[there]] = coded.low[at]
    high[dimension[there], row[there]] = coded.high[at]
    weight[dimension, row] = some.weight
    bound = np.zeros(some.size)
    for column in weight:
        bound += column
    dense = make_dense(low, high, weight, bound)
    ways = _find_ways(some, dimension, len(lines), dense.number)
    alike = bool((bound < _LARGE).all()) and bool((some.weight * _FINE % 1 == 0).all())
    number = np.where(dense.number == NO_ROW, NO_ROW, rows[np.minimum(dense.number, some.size - 1)])
    dense = dense._replace(
        number=number.astype(np.int32), first=number.reshape(-1, BLOCK).min(1).astype(np.int32)
    )
    sketch = make_sketch(dense.low, dense.high, dense.weight)
    for array in (*dense, *ways, lines, rows):
        array.flags.writeable = False
    return Boxed(dense, sketch, ways, lines, rows, alike, coded.coder)


@kernel
def _count_uses(start: Ints, line: Ints32, last: Ints, use: Ints32) -> None:
    """Count for each clause how many before it in its row are on the same line."""
    for row in range(len(start) - 1):
        for i in range(start[row], start[row + 1]):
            if last[0, line[i]] == row:
                last[1, line[i]] += 1
            else:
                last[0, line[i]], last[1, line[i]] = row, 0
            use[i] = last[1, line[i]]


def _commonest(line: Ints32, use: Ints32) -> NDArray[np.bool_]:
    """Tell of each clause whether its dimension is one of the commonest."""
    width = int(use.max(initial=0)) + 1
    pair = line.astype(np.int64) * width + use
    count = np.bincount(pair)
    kept = np.zeros(len(count), np.bool_)
    kept[np.argsort(-count, kind="stable")[:MOST]] = True
    found: NDArray[np.bool_] = kept[pair]
    return found


def _number_dimensions(line: Ints32, use: Ints32, start: Ints) -> tuple[Ints, Ints32]:
    """Number the dimensions as they come in most rows; returns that of each clause, and their lines."""
    width = int(use.max(initial=0)) + 1
    pair = line.astype(np.int64) * width + use
    count = np.bincount(pair)
    place = np.arange(len(line)) - np.repeat(start[:-1], np.diff(start))
    mean = np.bincount(pair, place) / np.maximum(count, 1)
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
