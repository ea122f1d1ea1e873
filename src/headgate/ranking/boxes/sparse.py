"""Relaxed matching over hundreds of attributes of which a subscription sets a few.

Rows are in tiers by the sum of all their weights (`sums_kernels`), and a tier has a list of intervals for
each attribute (`sparse_build`). An event goes through the tiers from the best on. It visits the lists of the
attributes that it has, skips blocks that lie elsewhere, adds up by row what holds, and looks only at rows
whose sums come up to the k-th value. It stops at the first tier whose best total does not.

1 million rows of 3 to 8 intervals in 500 attributes, k = 20; µs of processor time on a busy machine, medians:

    weights       interval   event with 500 attributes        with 50
                  covers     scan     all lists   this        scan     all lists   this
    random        2 %        54,200   11,500      2,900       19,100   1,400       540
                  10 %       54,600   11,200      2,600       25,000     970       730
                  30 %       63,100   19,400        610       26,300   1,800       670
    equal         10 %       55,400   13,200      3,900       24,600   1,400       740
    1 - length    30 %       66,100   26,600      3,500       26,100   2,300       940

"All lists" stabs every list of the event's attributes and adds to an array over all rows. Neither it nor the
scan picked the best k from what they had added up. They were slower in every case that was measured, so there
is no rule to choose by; the gap to "all lists" is small for events with few attributes.

A prototype over lists of floats also ordered each row's intervals by selectivity and left the last ones out
at first, as `sums` does. For uniform intervals that was no faster: less is read, but more rows are looked at,
each as dear as a hundred additions. Rows with one interval that nearly always holds were not measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.core.ranks import check_k
from headgate.errors import EventError, SubscriptionError
from headgate.ranking.answers import Answers, no_answers
from headgate.ranking.boxes.ends import narrowed, narrowest
from headgate.ranking.boxes.sparse_build import Boxes, Lists, make_lists
from headgate.ranking.boxes.sparse_kernels import SparseQuery, make_desk, sparse_many
from headgate.ranking.filters.sums import Tiers, as_bytes, check_factors, make_tiers, scales
from headgate.ranking.filters.sums_kernels import FIRST, WHOLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Floats64

    Integers = NDArray[np.integer[Any]]


class Sparse:
    """Boxes with few intervals in many attributes, ready to be asked."""

    def __init__(self, boxes: Boxes, tiers: Tiers, lists: Lists) -> None:
        self._boxes, self._tiers, self._lists = boxes, tiers, lists

    @classmethod
    def build(
        cls,
        n_rows: int,
        row_start: Integers,
        attribute: Integers,
        low: Floats64,
        high: Floats64,
        weight: Floats64,
        *,
        first: int = FIRST,
    ) -> Sparse:
        """Build from row r's closed intervals, those from row_start[r] to row_start[r + 1].

        Rows are numbered in the order of ids. Columns are kept as they are where their types allow it.
        `first` is the size of the first tier.
        """
        boxes = _boxes(n_rows, row_start, attribute, low, high, weight)
        attributes = int(boxes.attribute.max(initial=-1)) + 1
        tiers, tier, place, part = make_tiers(boxes.start, boxes.weight, first)
        return cls(boxes, tiers, make_lists(boxes, attributes, len(tiers.most), tier, place, part))

    def top(
        self, x: Floats64, y: Floats64, k: int, factors: Floats64 | None = None, removed: Bytes | None = None
    ) -> tuple[NDArray[np.int32], Floats64]:
        """Find the best k rows of which an interval holds, and their values; equal ones by number."""
        answers = self.top_many(np.atleast_2d(x), np.atleast_2d(y), k, factors, removed)
        return answers.numbers[0, : answers.counts[0]], answers.values[0, : answers.counts[0]]

    def top_many(
        self, x: Floats64, y: Floats64, k: int, factors: Floats64 | None = None, removed: Bytes | None = None
    ) -> Answers:
        """Find the best k rows for each of many events: x and y hold one question for each attribute."""
        check_k(k)
        attributes = len(self._lists.floor)
        if x.shape != y.shape or x.shape[1] < attributes:
            raise EventError(
                f"questions of shape {x.shape} and {y.shape}: give one for each of {attributes} attributes"
            )
        if factors is None:
            factor, scale, reach = np.ones(attributes), np.full(attributes, WHOLE, np.int64), 1.0
        else:
            check_factors(factors, attributes)
            factor = np.asarray(factors, np.float64)[:attributes]
            scale, reach = scales(factor)
        answers = no_answers(len(x), min(k, len(self._tiers.row)))
        if not answers.values.shape[1]:
            return answers
        kind = self._boxes.low.dtype.type
        xs, ys = narrowed(np.ascontiguousarray(x), np.ascontiguousarray(y), kind)
        sparse_many(
            self._tiers,
            self._lists,
            self._boxes,
            SparseQuery(
                np.empty(attributes, kind),
                np.empty(attributes, kind),
                factor,
                scale,
                reach,
                as_bytes(removed, len(self._tiers.row)),
            ),
            xs,
            ys,
            make_desk(attributes),
            answers,
        )
        return answers


def _boxes(
    n_rows: int, row_start: Integers, attribute: Integers, low: Floats64, high: Floats64, weight: Floats64
) -> Boxes:
    start = np.asarray(row_start, np.int64)
    if len(start) != n_rows + 1 or not len(attribute) == len(low) == len(high) == len(weight) == start[-1]:
        raise SubscriptionError(
            f"{len(start)} starts for {n_rows} rows of {len(attribute)} intervals: give one more than rows, "
            "the last of them behind the last interval"
        )
    if np.isnan(low).any() or np.isnan(high).any():
        i = int(np.flatnonzero(np.isnan(low) | np.isnan(high))[0])
        row = int(np.searchsorted(start, i, "right")) - 1
        raise SubscriptionError(f"row {row} has an interval from {low[i]} to {high[i]}: give numbers")
    holds = np.asarray(low) <= np.asarray(high)
    if not holds.all():
        # What holds nothing would hold for an event that overlaps it.
        before = np.zeros(len(holds) + 1, np.int64)
        np.cumsum(holds, out=before[1:])
        start, attribute, low, high, weight = (
            before[start],
            attribute[holds],
            low[holds],
            high[holds],
            weight[holds],
        )
    kind = narrowest(low, high)
    return Boxes(
        start,
        np.asarray(attribute, np.int32),
        low.astype(kind, copy=False),
        high.astype(kind, copy=False),
        np.asarray(weight, np.float64),
    )
