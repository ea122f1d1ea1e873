"""Rows in tiers, and the hot loops that add up which of their clauses hold, tier by tier.

    position   0 1 2 3 | 4 5 6 7 8 9 10 11 | 12 …     rows by falling total of their weights, then by number
    tier       0       | 1                 | 2

No row can have a higher value than its total. So tiers are looked at in order, and none any more whose best
total is below the k-th value. The sums of one tier fit into the second-level cache: adding to them costs a
few cycles, where adding to an array over all rows costs a miss.

Inside a tier a weight is a whole number of parts, rounded up; a part is a power of two. Sums of such numbers
are exact, and rounded sums never fall when terms rise, so a row's parts are never worth less than its value:
not even by a rounding error, and whole weights make exact bounds, which ties need. A weight of 0 is a
part too: a row with no parts is one of which nothing holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.bits import lowest, place_of
from headgate.core.heaps import put, sort_best
from headgate.core.jit import bare, bare_inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Floats64, Ints, Ints32
    from headgate.ranking.filters.clauses import Weighted
    from headgate.ranking.filters.sums import Postings, Tiers

    Parts = NDArray[np.uint16]

PLACE_BITS = 16
PLACE = (1 << PLACE_BITS) - 1
"""A place in a tier takes the low bits of a number, with its tier or with parts above."""

FIRST, LARGEST = 4096, 1 << PLACE_BITS
"""How many rows the first tier has, and how many the largest."""

MANY = 65535
"""The most parts that a row may have."""

WHOLE_BITS = 16
WHOLE = 1 << WHOLE_BITS
"""A factor as large as the event's largest; others are written as parts of that."""

SHORT = 1024
"""A list with fewer entries is read once, not tier by tier: to go back to it takes longer than that."""

TINY = 1e-290
"""Below this, products are no longer rounded by a part of themselves, and no bound is relied on."""

LOOK = 50
"""How many entries may be added in the time that one row takes to be looked at."""

STRIDE = 512
"""Places whose sums are compared at once."""

BEFORE, NO_PLACES = -64, np.uint64(0)
"""Where the search of a tier for rows begins: before the first 64 places."""

_WORD = np.uint64(64)


class ClauseQuery(NamedTuple):
    """What is asked: clauses that hold, in rising order, their factors, and those in parts of WHOLE.

    Rows are left out if `removed` is 1 or `admitted` is 0; either may be empty: then all are in.
    """

    held: Ints32
    factor: Floats64
    scale: Ints
    admitted: Bytes
    removed: Bytes


class SumBuffers(NamedTuple):
    """Room for one question.

    sums       of a tier
    at, stop   by clause that holds: the entry of its list that is next, and where adding stopped
    live       the clauses whose long lists go on
    bucket     by tier: where its part of `share` starts
    share      entries of short lists, by tier: place, and the parts above PLACE_BITS
    """

    sums: Parts
    at: Ints
    stop: Ints
    live: Ints
    bucket: Ints
    share: NDArray[np.uint32]


@bare_inner
def needed(value: float, number: int, reach: float, unit: float, least: int) -> int:
    """Return how many parts a row must have to come before the k-th best.

    A row that has a larger number than the k-th needs more than its value; `least` is the smallest that there
    is. `reach` is what a weight of 1 may be worth in this event.
    """
    if value == np.inf or value < TINY:
        return 1
    parts = min(value / reach / unit, float(MANY))
    whole = int(np.ceil(parts))
    if least > number and whole == parts:
        whole += 1
    return min(max(1, whole), MANY)


@bare_inner
def need_of_tier(tiers: Tiers, t: int, size: int, values: Floats64, numbers: Ints32, reach: float) -> int:
    """Return how many parts a row of a tier must have to be among the best; more than MANY if none can be."""
    if size < len(values):
        return 1
    if values[0] >= TINY and tiers.most[t] * reach < values[0]:
        return MANY + 1
    return needed(values[0], numbers[0], reach, tiers.unit[t], tiers.least[t])


@bare_inner
def clear(sums: Parts, size: int) -> None:
    """Set the sums of a tier to 0, up to a whole stride."""
    for i in range(np.uint64((size + STRIDE - 1) & -STRIDE)):
        sums[i] = 0


@bare_inner
def next_word(sums: Parts, at: int, size: int, need: np.uint16) -> int:
    """Find the first 64 places from `at` on that may have enough parts; at or behind `size` if none do.

    Most strides have no such place, and the largest of many numbers is found faster than which are large.
    """
    while at < size:
        if at & (STRIDE - 1):
            return at
        first, most = np.uint64(at), np.uint16(0)
        for j in range(np.uint64(STRIDE)):
            most = max(most, sums[first + j])
        if most >= need:
            return at
        at += STRIDE
    return at


@bare_inner
def reaching(sums: Parts, first: int, need: np.uint16) -> np.uint64:
    """Mark which of 64 places have at least so many parts."""
    at, word = np.uint64(first), np.uint64(0)
    for j in range(_WORD):
        word |= np.uint64(sums[at + j] >= need) << j
    return word


@bare_inner
def next_row(
    tiers: Tiers,
    t: int,
    sums: Parts,
    at: int,
    word: np.uint64,
    need: int,
    left_out: int,
    reach: float,
    removed: Bytes,
    size: int,
    values: Floats64,
    numbers: Ints32,
) -> tuple[int, np.uint64, int]:
    """Find the next row of a tier that may be among the best; returns where to go on, and the row or -1."""
    first, least = tiers.start[t], np.uint16(max(1, need - left_out))
    count = tiers.start[t + 1] - first
    while True:
        while not word:
            at = next_word(sums, at + 64, count, least)
            if at >= count:
                return at, word, -1
            word = reaching(sums, at, least)
        bit = lowest(word)
        word ^= bit
        place = at + place_of(bit)
        row = tiers.row[first + place]
        if len(removed) and removed[row]:
            continue
        if size < len(values):
            return at, word, row
        if sums[place] + left_out >= needed(values[0], numbers[0], reach, tiers.unit[t], row):
            return at, word, row


@bare_inner
def scaled(part: int, scale: int) -> int:
    """Return what is left of a part at a scale, rounded up."""
    return (part * scale + WHOLE - 1) >> WHOLE_BITS


@bare_inner
def beyond(spot: Ints32, at: int, last: int, end: int) -> int:
    """Find the first entry from `at` on that stands at `end` or behind: by longer and longer steps."""
    step = 1
    while at + step < last and spot[at + step] < end:
        at += step
        step *= 2
    low, high = at, min(at + step, last)
    while low < high:
        middle = (low + high) >> 1
        if spot[middle] < end:
            low = middle + 1
        else:
            high = middle
    return low


@bare_inner
def value_of(rows: Weighted, row: int, query: ClauseQuery) -> float:
    """Add up the weights of a row's clauses that hold, in the order given."""
    value = 0.0
    for i in range(rows.start[row], rows.start[row + 1]):
        low, high = 0, len(query.held)
        while low < high:
            middle = (low + high) >> 1
            if query.held[middle] < rows.clause[i]:
                low = middle + 1
            else:
                high = middle
        if low < len(query.held) and query.held[low] == rows.clause[i]:
            value += rows.weight[i] * query.factor[low]
    return value


@bare_inner
def sort_short(postings: Postings, query: ClauseQuery, short: int, scratch: SumBuffers) -> int:
    """Put the entries of short lists into buckets by tier; returns how many long ones are left, in `live`."""
    live, bucket = 0, scratch.bucket
    for t in range(len(bucket)):
        bucket[t] = 0
    for fill in range(2):
        for i in range(len(query.held)):
            first, last, scale = (
                postings.start[query.held[i]],
                postings.start[query.held[i] + 1],
                query.scale[i],
            )
            if last - first >= short:
                if fill:
                    scratch.live[live], scratch.at[i] = i, first
                    live += 1
            elif fill:
                for at in range(first, last):
                    t = (postings.spot[at] >> PLACE_BITS) + 1
                    scratch.share[bucket[t]] = (postings.spot[at] & PLACE) + (
                        scaled(postings.part[at], scale) << PLACE_BITS
                    )
                    bucket[t] += 1
            else:
                for at in range(first, last):
                    bucket[(postings.spot[at] >> PLACE_BITS) + 2] += 1
        if not fill:
            # One place too far to the right: filling moves the start of each bucket to that of the next.
            for t in range(2, len(bucket)):
                bucket[t] += bucket[t - 1]
    return live


@bare_inner
def add_short(t: int, scratch: SumBuffers) -> None:
    """Add the entries of short lists to the sums of a tier."""
    for i in range(scratch.bucket[t], scratch.bucket[t + 1]):
        share = int(scratch.share[i])
        scratch.sums[share & PLACE] += share >> PLACE_BITS


@bare_inner
def add_first(
    t: int, postings: Postings, query: ClauseQuery, live: int, cut: int, scratch: SumBuffers
) -> int:
    """Add clauses that hold to the sums of a tier, down to a bound; returns the highest one left out."""
    end, left_out = (t + 1) << PLACE_BITS, 0
    for z in range(live):
        i = scratch.live[z]
        at, last, scale = scratch.at[i], postings.start[query.held[i] + 1], query.scale[i]
        while at < last and postings.spot[at] < end and postings.bound[at] >= cut:
            scratch.sums[postings.spot[at] & PLACE] += scaled(postings.part[at], scale)
            at += 1
        scratch.stop[i] = at
        if at < last and postings.spot[at] < end:
            left_out = max(left_out, postings.bound[at])
            at = beyond(postings.spot, at, last, end)
        scratch.at[i] = at
    return left_out


@bare_inner
def add_rest(postings: Postings, query: ClauseQuery, live: int, scratch: SumBuffers) -> None:
    """Add what was left out."""
    for z in range(live):
        i = scratch.live[z]
        for at in range(scratch.stop[i], scratch.at[i]):
            scratch.sums[postings.spot[at] & PLACE] += scaled(postings.part[at], query.scale[i])


@bare_inner
def reach_it(sums: Parts, size: int, need: int) -> int:
    """Count the places of a tier with at least so many parts."""
    least, count = np.uint16(need), np.uint32(0)
    for i in range(np.uint64(size)):
        count += np.uint32(sums[i] >= least)
    return int(count)


@bare
def sums_top(
    tiers: Tiers,
    postings: Postings,
    rows: Weighted,
    query: ClauseQuery,
    reach: float,
    short: int,
    scratch: SumBuffers,
    values: Floats64,
    numbers: Ints32,
) -> int:
    """Find the rows of highest value, as many as there is room for; returns how many there are.

    Of a tier, long lists are added down to a bound of half of what a row needs. What a row may get from the
    rest of them is less than that, so it must have the other half. If too many do, the rest is added too.
    """
    size, live = 0, sort_short(postings, query, short, scratch)
    for t in range(len(tiers.most)):
        need = need_of_tier(tiers, t, size, values, numbers, reach)
        if need > MANY:
            break
        count = tiers.start[t + 1] - tiers.start[t]
        clear(scratch.sums, count)
        add_short(t, scratch)
        left_out = add_first(t, postings, query, live, need >> 1, scratch)
        if left_out:
            rest = 0
            for z in range(live):
                rest += scratch.at[scratch.live[z]] - scratch.stop[scratch.live[z]]
            if reach_it(scratch.sums, count, max(1, need - left_out)) * LOOK > rest:
                add_rest(postings, query, live, scratch)
                left_out = 0
        kept = 0
        for z in range(live):
            i = scratch.live[z]
            if scratch.at[i] < postings.start[query.held[i] + 1]:
                scratch.live[kept] = i
                kept += 1
        live = kept
        at, word = BEFORE, NO_PLACES
        while True:
            at, word, row = next_row(
                tiers, t, scratch.sums, at, word, need, left_out, reach, query.removed, size, values, numbers
            )
            if row < 0:
                break
            if not len(query.admitted) or query.admitted[row]:
                size = put(values, numbers, size, value_of(rows, row, query), row)
        if live == 0 and scratch.bucket[t + 1] == len(scratch.share):
            break
    sort_best(values, numbers, size)
    return size
