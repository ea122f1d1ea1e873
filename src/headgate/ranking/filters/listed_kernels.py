"""Hot loops over rows of clauses in lists: by line those that are sets of codes, by number the others.

Tiers, lists and sums are those of `sparse_kernels` and `sums_kernels`. Sums of a tier are bounds: ends in
lists are cells, and a clause on several lines may count more than once. Who has enough is valued clause by
clause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.core.heaps import put, sort_best
from headgate.core.jit import bare, bare_inner
from headgate.ranking.boxes.sparse_kernels import ListBuffers, SparseQuery, add_tier, ask_lists
from headgate.ranking.filters.sums_kernels import (
    BEFORE,
    MANY,
    NO_PLACES,
    ClauseQuery,
    SumBuffers,
    add_first,
    add_short,
    clear,
    need_of_tier,
    next_row,
    sort_short,
)

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes, Floats, Floats64, Ints, Ints32
    from headgate.ranking.answers import Answers
    from headgate.ranking.boxes.sparse_build import Lists
    from headgate.ranking.filters.sums import Postings, Tiers


class CodedRows(NamedTuple):
    """Rows of weighted clauses, and what clauses are.

    by row        its clauses are clause[start[r]:start[r + 1]], with their weights
    by clause     group: which factor it has; odd: its number among those that are no sets of codes, or -1
                  its intervals are those from set_start[c] up to set_start[c + 1]
    by interval   low, high: codes, both in, on the line of an attribute; part: a clause holds if an interval
                  of each of its parts does, and only those of part 0 are in lists
    """

    start: Ints
    clause: Ints32
    weight: Floats64
    group: Ints32
    odd: Ints32
    set_start: Ints
    part: Ints32
    attribute: Ints32
    low: Ints32
    high: Ints32


class ListedRows(NamedTuple):
    """Rows in lists; posting lists of odd clauses that are shorter than `short` are read once."""

    tiers: Tiers
    lists: Lists
    postings: Postings
    rows: CodedRows
    short: int


class Odd(NamedTuple):
    """Which of the odd clauses hold: of question i those from start[i] up to start[i + 1], rising.

    factor, scale    of each, and in parts of WHOLE
    flag             by odd clause: 1 while it holds; all 0 before and after
    """

    start: Ints
    held: Ints32
    factor: Floats64
    scale: Ints
    flag: Bytes


@bare_inner
def clause_holds(rows: CodedRows, clause: int, x: Floats, flag: Bytes) -> bool:
    """Tell whether a clause holds for the codes x, given by attribute."""
    if rows.odd[clause] >= 0:
        return bool(flag[rows.odd[clause]] != 0)
    first, last = rows.set_start[clause], rows.set_start[clause + 1]
    held = -1
    for i in range(first, last):
        part = rows.part[i]
        if part == held:
            continue
        if part > held + 1:
            return False
        code = x[rows.attribute[i]]
        if rows.low[i] <= code <= rows.high[i]:
            held = part
    return bool(last > first and held == rows.part[last - 1])


@bare_inner
def value_of(rows: CodedRows, row: int, x: Floats, factor: Floats64, flag: Bytes) -> float:
    """Add up the weights of a row's clauses that hold, in the order given; -1 if none does."""
    value, holds = 0.0, False
    for i in range(rows.start[row], rows.start[row + 1]):
        clause = rows.clause[i]
        own = factor[rows.group[clause]]
        if own > 0.0 and clause_holds(rows, clause, x, flag):
            value += rows.weight[i] * own
            holds = True
    return value if holds else -1.0


@bare
def listed_many(
    listed: ListedRows,
    query: SparseQuery,
    odd: Odd,
    xs: Floats64,
    factor: Floats64,
    scratch: ListBuffers,
    aside: SumBuffers,
    answers: Answers,
) -> None:
    """Find the best rows of each of many questions beside those that are there; `factor` is by group."""
    tiers, lists, postings = listed.tiers, listed.lists, listed.postings
    for i in range(len(xs)):
        for attribute in range(len(query.x)):
            query.x[attribute] = xs[i, attribute]
        begin, end = odd.start[i], odd.start[i + 1]
        for h in range(begin, end):
            odd.flag[odd.held[h]] = 1
        held = ClauseQuery(
            odd.held[begin:end],
            odd.factor[begin:end],
            odd.scale[begin:end],
            query.removed[:0],
            query.removed[:0],
        )
        values, numbers, size = answers.values[i], answers.numbers[i], 0
        # What is there is sorted: to put it in again one by one makes a heap of it.
        for j in range(answers.counts[i]):
            size = put(values, numbers, size, values[j], numbers[j])
        live = ask_lists(lists, query, scratch)
        long = sort_short(postings, held, listed.short, aside) if end > begin else 0
        for t in range(len(tiers.most)):
            need = need_of_tier(tiers, t, size, values, numbers, query.reach)
            if need > MANY:
                break
            clear(scratch.sums, tiers.start[t + 1] - tiers.start[t])
            add_tier(lists, t, query, live, scratch)
            if end > begin:
                add_short(t, aside)
                add_first(t, postings, held, long, 0, aside)
            at, word = BEFORE, NO_PLACES
            while True:
                at, word, row = next_row(
                    tiers,
                    t,
                    scratch.sums,
                    at,
                    word,
                    need,
                    0,
                    query.reach,
                    query.removed,
                    size,
                    values,
                    numbers,
                )
                if row < 0:
                    break
                value = value_of(listed.rows, row, query.x, factor, odd.flag)
                if value >= 0:
                    size = put(values, numbers, size, value, row)
        sort_best(values, numbers, size)
        answers.counts[i] = size
        for h in range(begin, end):
            odd.flag[odd.held[h]] = 0
