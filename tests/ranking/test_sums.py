"""Sums of weighted clauses against adding everything up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import EventError, SubscriptionError
from headgate.ranking.filters.sums import Sums
from tests.seeds import examples

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    Row = Sequence[tuple[int, float]]

pytestmark = pytest.mark.jit_off

CLAUSES = 9


def build(rows: Sequence[Row], *, ranks: list[int] | None = None, first: int = 4, short: int = 3) -> Sums:
    """Build with small tiers and short lists, so that few rows make several of each."""
    start = np.cumsum([0, *(len(row) for row in rows)])
    clauses = np.array([clause for row in rows for clause, _ in row], np.int32)
    weights = np.array([weight for row in rows for _, weight in row], np.float64)
    known = None if ranks is None else np.array(ranks)
    return Sums.build(start, clauses, weights, known, first=first, short=short)


def obvious(
    rows: Sequence[Row],
    held: Collection[int],
    k: int,
    factors: Mapping[int, float] | None = None,
    out: Collection[int] = (),
) -> list[tuple[int, float]]:
    """Add up everything, sort everything."""
    found = []
    for number, row in enumerate(rows):
        factor = {clause: 1.0 if factors is None else factors[clause] for clause, _ in row}
        what = [(clause, weight) for clause, weight in row if clause in held and factor[clause] > 0]
        if what and number not in out:
            found.append((number, float(sum(weight * factor[clause] for clause, weight in what))))
    return sorted(found, key=lambda each: (-each[1], each[0]))[:k]


def answer(found: tuple[np.ndarray, np.ndarray]) -> list[tuple[int, float]]:
    """Pair rows with values."""
    return list(zip(found[0].tolist(), found[1].tolist(), strict=True))


weights = st.one_of(st.integers(0, 3).map(float), st.sampled_from([0.1, 0.2, 0.7, 1e-9, 1e9, 1e-320]))
row_lists = st.lists(st.lists(st.tuples(st.integers(0, CLAUSES - 1), weights), max_size=5), max_size=50)
numbers = st.sets(st.integers(0, CLAUSES - 1))


@given(rows=row_lists, held=numbers, k=st.integers(0, 60), ranks=st.none() | st.permutations(range(CLAUSES)))
@examples(200)
def test_agrees_with_adding_everything_up(
    rows: list[Row], held: set[int], k: int, ranks: list[int] | None
) -> None:
    """Ties, weights of 0, rows without clauses, the same clause twice, any order of selectivity."""
    sums = build(rows, ranks=ranks)
    assert answer(sums.top(np.array(sorted(held), np.int64), k)) == obvious(rows, held, k)


@given(
    rows=row_lists,
    held=numbers,
    k=st.integers(1, 20),
    factors=st.lists(st.sampled_from([0.0, 1e-6, 0.3, 1.0, 2.5, 1e6]), min_size=CLAUSES, max_size=CLAUSES),
    removed=st.sets(st.integers(0, 49)),
    refused=st.sets(st.integers(0, 49)),
)
@examples(200)
def test_factors_and_rows_left_out(
    rows: list[Row], held: set[int], k: int, factors: list[float], removed: set[int], refused: set[int]
) -> None:
    """Factors below and above 1, of 0, and far apart; rows that are gone or not admitted."""
    gone = np.array([row in removed for row in range(len(rows))], np.uint8)
    admitted = np.array([row not in refused for row in range(len(rows))], bool)
    found = build(rows).top(
        np.array(sorted(held), np.int64), k, factors=np.array(factors), admitted=admitted, removed=gone
    )
    assert answer(found) == obvious(rows, held, k, dict(enumerate(factors)), removed | refused)


@pytest.mark.parametrize("whole", [True, False])
def test_many_rows_in_many_tiers(whole: bool) -> None:
    """Popular and rare clauses, several tiers, lists that are cut off and lists that are gone on with."""
    chance = np.random.default_rng(7)
    popular = chance.zipf(1.3, 12_000) % 300
    rows: list[Row] = []
    for number in range(3000):
        some = popular[4 * number : 4 * number + int(chance.integers(0, 5))]
        if whole:
            rows.append([(int(clause), float(chance.integers(0, 4))) for clause in some])
        else:
            rows.append([(int(clause), float(chance.random())) for clause in some])
    sums = build(rows, first=16, short=40)
    for share in (0.02, 0.2, 0.9):
        held = np.flatnonzero(chance.random(300) < share)
        for k in (1, 20, 5000):
            assert answer(sums.top(held, k)) == obvious(rows, set(held.tolist()), k)


def test_an_equal_value_in_a_later_tier_comes_first() -> None:
    """Row 0 has just the k-th value, some of it from an entry that is left out; its number decides."""
    rows = [[(0, 1.5), (1, 0.5)], *([(2, 2.0), (3, 5.0)] for _ in range(4))]
    sums = build(rows, ranks=[0, 1, 2, 3], first=4, short=1)
    assert answer(sums.top(np.array([0, 1, 2]), 1)) == [(0, 2.0)]
    assert answer(sums.top(np.array([0, 1, 2]), 3)) == [(0, 2.0), (1, 2.0), (2, 2.0)]


def test_what_is_held_may_be_unknown_or_named_twice() -> None:
    """A clause of no row is passed over, and one that is named twice counts once."""
    sums = build([[(0, 1.0)], [(1, 2.0)]])
    assert answer(sums.top(np.array([1, 0, 1, 77, -3]), 5)) == [(1, 2.0), (0, 1.0)]


def test_nothing_to_find() -> None:
    """No rows, no clauses that hold, k = 0."""
    assert answer(build([]).top(np.array([0, 1]), 3)) == []
    sums = build([[(0, 1.0)], []])
    assert answer(sums.top(np.array([], np.int64), 3)) == []
    assert answer(sums.top(np.array([0]), 0)) == []


def test_bad_input_is_refused() -> None:
    """One line that says what is wrong."""
    with pytest.raises(SubscriptionError, match="a weight of row 1 is nan"):
        build([[(0, 1.0)], [(0, np.nan)]])
    with pytest.raises(SubscriptionError, match="a weight of row 0 is -1"):
        build([[(0, -1.0)]])
    with pytest.raises(SubscriptionError, match="row 0 add up to more than a float holds"):
        build([[(0, 1e308), (1, 1e308)]])
    with pytest.raises(SubscriptionError, match="row 0 has 40,000 clauses"):
        build([[(0, 1.0)] * 40_000])
    sums = build([[(0, 1.0)], [(1, 1.0)]])
    with pytest.raises(SubscriptionError, match="k is -1"):
        sums.top(np.array([0]), -1)
    with pytest.raises(EventError, match="a factor is -1"):
        sums.top(np.array([0]), 1, factors=np.array([-1.0, 1.0]))
    with pytest.raises(EventError, match="1 factors for 2"):
        sums.top(np.array([0]), 1, factors=np.array([1.0]))
    with pytest.raises(EventError, match="3 flags for 2 rows"):
        sums.top(np.array([0]), 1, removed=np.zeros(3, np.uint8))


def test_a_row_with_very_many_clauses() -> None:
    """Parts of a row fit into two bytes however many clauses it has."""
    rows = [[(clause, 0.001) for clause in range(32_000)], [(0, 31.0)], [(1, 33.0)]]
    held = np.arange(32_000)
    assert answer(build(rows).top(held, 3)) == obvious(rows, set(range(32_000)), 3)
