"""Relaxed ranking of clauses of any content: the rows with the highest sums of the weights of what holds.

Which clauses hold is found elsewhere, once an event. Here a row has some clauses, a clause stands in some
rows, and the rows that matter are to be found without a look at all rows of all clauses that hold.

The clauses of a row are put into an order, those first that hold least often. If a row is worth more than
the weights of its last clauses together, then one of its first holds. So a clause that holds for nearly every
event, and stands in every row, is last in all of them and its list is hardly ever gone through. See
`sums_kernels` for how far lists are gone through.

1 million rows of 3 to 8 out of 200,000 clauses, by Zipf's law, k = 20, ms on a busy machine in two runs,
beside adding up all lists of what holds in one array, without picking the best k from it:

    hold                               this         all lists
    the 50 most popular, 2 % of all    2.2 to 2.6   4.3 to 7.9
    20 % of all                        7.9 to 8.7   7.4 to 11.7
    2 % of all, or 5 % of the rare     2.0 to 4.1   1.5 to 3.0

So bounds save something where long lists hold, and nothing where only short ones do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare
from headgate.core.ranks import check_k
from headgate.errors import EventError, SubscriptionError
from headgate.ranking.filters.clauses import Weighted
from headgate.ranking.filters.sums_kernels import (
    FIRST,
    LARGEST,
    MANY,
    PLACE_BITS,
    SHORT,
    WHOLE,
    ClauseQuery,
    SumBuffers,
    sums_top,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Floats64, Ints, Ints32

    Integers = NDArray[np.integer[Any]]
    Parts = NDArray[np.uint16]

MARGIN = 1 + 1e-9
"""Products with factors are rounded, and so are their sums, but by far less than this."""


class Tiers(NamedTuple):
    """Tier t has the positions start[t] to start[t + 1]; at position p is the row row[p].

    most     by tier: the highest total of a row in it
    least    by tier: the smallest row in it
    unit     by tier: what a part is worth
    """

    start: Ints32
    row: Ints32
    most: Floats64
    least: Ints32
    unit: Floats64


class Postings(NamedTuple):
    """Where each clause stands: entries start[c] to start[c + 1], by tier, in a tier by falling bound.

    spot     of the row: its place in its tier, and that above PLACE_BITS
    part     the clause's weight, in the tier's parts
    bound    the parts of the row's clauses from this one on, the most selective clauses first
    """

    start: Ints
    spot: Ints32
    part: Parts
    bound: Parts


class Sums:
    """Rows of weighted clauses, ready to be asked.

    >>> sums = Sums.build(np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([1.0, 2.0, 2.5]))
    >>> sums.top(np.array([1]), 2)
    (array([1, 0], dtype=int32), array([2.5, 2. ]))
    """

    def __init__(self, rows: Weighted, tiers: Tiers, postings: Postings, short: int) -> None:
        self._rows, self._tiers, self._postings, self._short = rows, tiers, postings, short

    @classmethod
    def build(
        cls,
        clause_start: Integers,
        clauses: Integers,
        weights: Floats64,
        selectivity_rank: Integers | None = None,
        *,
        first: int = FIRST,
        short: int = SHORT,
    ) -> Sums:
        """Build from row r's clauses, clauses[clause_start[r]:clause_start[r + 1]], and their weights.

        `selectivity_rank` says by clause which hold less often: the lower, the less. Without it, those come
        first that stand in fewer rows, which need not be right, but gives the short lists the high bounds.
        `first` is the size of the first tier; lists shorter than `short` are read once.
        """
        rows = Weighted(
            np.asarray(clause_start, np.int64), np.asarray(clauses, np.int32), np.asarray(weights, np.float64)
        )
        tiers, tier, place, part = make_tiers(rows.start, rows.weight, first)
        lengths = np.bincount(rows.clause, minlength=1)
        rank = lengths if selectivity_rank is None else np.asarray(selectivity_rank)
        often = np.unique(rank, return_inverse=True)[1]
        owner = np.repeat(np.arange(len(tier)), np.diff(rows.start))
        order = np.argsort((often[rows.clause] << 16) + (MANY - part.astype(np.int64)))
        bound = np.empty(len(part), np.uint16)
        bound_rests(order[::-1], owner, part, np.zeros(len(tier), np.int64), bound)
        key = (rows.clause.astype(np.int64) << 32) + (tier[owner].astype(np.int64) << PLACE_BITS)
        order = np.argsort(key + (MANY - bound.astype(np.int64)))
        start = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=start[1:])
        spot = ((tier << PLACE_BITS) + place)[owner[order]]
        return cls(rows, tiers, Postings(start, spot, part[order], bound[order]), short)

    def top(
        self,
        held: Integers,
        k: int,
        *,
        factors: Floats64 | None = None,
        admitted: NDArray[np.generic] | None = None,
        removed: Bytes | None = None,
    ) -> tuple[Ints32, Floats64]:
        """Find the best k rows of which a clause holds, and their values; equal ones by number.

        `factors`, by clause, multiply weights in this event; a clause with 0 is as if it did not hold. With
        some far larger than others bounds are poor, and more is looked at. Rows are left out where `admitted`
        is 0 or `removed` is not.
        """
        check_k(k)
        rising = len(held) < 2 or bool((held[1:] > held[:-1]).all())
        every: Integers = held if rising else np.unique(held)
        known: Ints32 = every[(every >= 0) & (every < len(self._postings.start) - 1)].astype(np.int32)
        if factors is None:
            factor, scale, reach = np.ones(len(known)), np.full(len(known), WHOLE, np.int64), 1.0
        else:
            check_factors(factors, len(self._postings.start) - 1)
            known = known[factors[known] > 0]
            factor = np.asarray(factors, np.float64)[known]
            scale, reach = scales(factor)
        count = len(self._tiers.row)
        room = min(k, count)
        values, rows = np.empty(room, np.float64), np.empty(room, np.int32)
        if not room or not len(known):
            return rows[:0], values[:0]
        size = sums_top(
            self._tiers,
            self._postings,
            self._rows,
            ClauseQuery(known, factor, scale, as_bytes(admitted, count), as_bytes(removed, count)),
            reach,
            self._short,
            self._desk(known),
            values,
            rows,
        )
        return rows[:size], values[:size]

    def _desk(self, held: Ints32) -> SumBuffers:
        each = self._postings.start[held + 1] - self._postings.start[held]
        return SumBuffers(
            sums=np.empty(LARGEST, np.uint16),
            at=np.empty(len(held), np.int64),
            stop=np.empty(len(held), np.int64),
            live=np.empty(len(held), np.int64),
            bucket=np.empty(len(self._tiers.most) + 2, np.int64),
            share=np.empty(int(each[each < self._short].sum()), np.uint32),
        )


def make_tiers(
    row_start: Ints, weight: Floats64, first: int = FIRST, ways: Ints | None = None
) -> tuple[Tiers, Ints32, Ints32, Parts]:
    """Put rows into tiers; returns those, by row the tier and the place in it, and each weight in parts.

    `ways` says how often each weight may be added at most, where that is not once.
    """
    count = len(row_start) - 1
    lengths = np.diff(row_start)
    if len(weight) and not (np.isfinite(weight) & (weight >= 0)).all():
        i = int(np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))[0])
        row = int(np.searchsorted(row_start, i, "right")) - 1
        raise SubscriptionError(f"a weight of row {row} is {weight[i]}: give a finite number, 0 or more")
    if count and lengths.max() > MANY // 2:
        row = int(lengths.argmax())
        raise SubscriptionError(
            f"row {row} has {lengths[row]:,} clauses: no more than {MANY // 2:,} are ranked"
        )
    totals = np.empty(count, np.float64)
    add_up(row_start, weight, totals)
    if not np.isfinite(totals).all():
        row = int(np.flatnonzero(~np.isfinite(totals))[0])
        raise SubscriptionError(
            f"the weights of row {row} add up to more than a float holds: scale them down"
        )
    order = np.argsort(-totals, kind="stable").astype(np.int32)
    ends, size = [0], first
    while ends[-1] < count:
        ends.append(min(ends[-1] + size, count))
        size = min(2 * size, LARGEST)
    start = np.array(ends, np.int32)
    most = totals[order[start[:-1]]]
    least = np.minimum.reduceat(order, start[:-1]) if count else order
    sums = most
    if ways is not None and (ways > 1).any():
        added = np.empty(count, np.float64)
        add_up(row_start, weight * ways, added)
        sums = np.maximum.reduceat(added[order], start[:-1])
    # A sum is then at most 2**15 parts, and rounding up adds one for each term: below MANY.
    unit = np.ldexp(1.0, np.maximum(np.frexp(sums)[1] - 15, -1074))
    tiers = Tiers(start, order, most, least, unit)
    tier, place = np.empty(count, np.int32), np.empty(count, np.int32)
    part = np.empty(len(weight), np.uint16)
    cut_parts(row_start, weight, tiers, tier, place, part)
    return tiers, tier, place, part


def check_factors(factors: Floats64, count: int) -> None:
    """Refuse factors that would make sums fall when more holds, and fewer than are needed."""
    if len(factors) < count:
        raise EventError(f"{len(factors)} factors for {count}: give one for each, 1 where nothing changes")
    if not (np.isfinite(factors) & (factors >= 0)).all():
        bad = factors[~(np.isfinite(factors) & (factors >= 0))][0]
        raise EventError(f"a factor is {bad}: give a finite number, 0 or more")


def scales(factor: Floats64) -> tuple[Ints, float]:
    """Write factors as parts of the largest, rounded up; returns those and what a weight of 1 may come to."""
    most = float(factor.max(initial=0.0))
    if most == 0:
        return np.zeros(len(factor), np.int64), 1.0
    # A factor that is next to nothing beside the largest is not 0 all the same.
    parts = np.maximum(np.ceil(factor / most * WHOLE), factor > 0)
    return np.minimum(parts, WHOLE).astype(np.int64), most * MARGIN


def as_bytes(flags: NDArray[np.generic] | None, count: int) -> Bytes:
    """Return a flag for each of so many rows as bytes, none as no bytes."""
    if flags is None:
        return np.zeros(0, np.uint8)
    if len(flags) != count:
        raise EventError(f"{len(flags)} flags for {count} rows: give one for each")
    return np.ascontiguousarray(flags).astype(np.uint8, copy=False)


@bare
def add_up(row_start: Ints, weight: Floats64, totals: Floats64) -> None:
    """Add up the weights of each row in the order given."""
    for row in range(len(row_start) - 1):
        total = 0.0
        for i in range(row_start[row], row_start[row + 1]):
            total += weight[i]
        totals[row] = total


@bare
def cut_parts(
    row_start: Ints, weight: Floats64, tiers: Tiers, tier: Ints32, place: Ints32, parts: Parts
) -> None:
    """Write each weight in the parts of its row's tier; notes the tier and the place in it of each row."""
    for t in range(len(tiers.most)):
        first = tiers.start[t]
        for position in range(first, tiers.start[t + 1]):
            row = tiers.row[position]
            tier[row], place[row] = t, position - first
            for i in range(row_start[row], row_start[row + 1]):
                parts[i] = max(1, int(np.ceil(weight[i] / tiers.unit[t])))


@bare
def bound_rests(order: Ints, owner: Ints, parts: Parts, sums: Ints, bound: Parts) -> None:
    """Add up the parts of each row's clauses from each one on; clauses come in order, the last first."""
    for i in order:
        sums[owner[i]] += parts[i]
        bound[i] = sums[owner[i]]
