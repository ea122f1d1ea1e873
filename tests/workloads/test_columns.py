"""Draws depend on their address only, and look random."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import HeadgateError
from headgate.workloads.columns import Key, bits, integers, uniform, weighted, zipf_rank

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS = np.arange(100_000)


def key(column: str = "age", seed: int = 1, table: str = "events") -> Key:
    return Key(seed, table, column, ROWS)


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=20), st.integers(0, 5))
def test_a_row_has_its_value_in_any_company(rows: list[int], draw: int) -> None:
    together = bits(Key(3, "events", "age", np.array(rows)), draw)
    alone = [bits(Key(3, "events", "age", np.array([row])), draw)[0] for row in rows]
    assert together.tolist() == alone


def test_values_are_those_of_splitmix64() -> None:
    rows = [0, 1, 10**12]
    start = int.from_bytes(blake2b(b"(7, 'events', 'age', 0)", digest_size=8).digest(), "little")
    assert bits(Key(7, "events", "age", np.array(rows))).tolist() == [splitmix64(start, row) for row in rows]


@pytest.mark.parametrize(
    "other",
    [key(seed=2), key(table="event"), key("ag"), Key(1, "event", "sage", ROWS)],
    ids=["seed", "table", "column", "boundary"],
)
def test_every_part_of_the_address_counts(other: Key) -> None:
    assert abs(correlation(uniform(key()), uniform(other))) < 0.02


def test_draws_and_rows_are_independent() -> None:
    first, second = uniform(key()), uniform(key(), draw=1)
    assert abs(correlation(first, second)) < 0.02
    assert abs(correlation(first[:-1], first[1:])) < 0.02


def test_uniform_is_uniform() -> None:
    values = uniform(key())
    assert values.min() >= 0
    assert values.max() < 1
    counts = np.histogram(values, bins=100, range=(0, 1))[0]
    # Chi squared with 99 degrees of freedom is between 61 and 149 in 998 of 1,000 cases.
    assert 61 < ((counts - 1000) ** 2 / 1000).sum() < 149


def test_every_bit_is_a_fair_coin() -> None:
    words = bits(key())
    for bit in range(64):
        ones = int(((words >> np.uint64(bit)) & np.uint64(1)).sum())
        assert abs(ones - 50_000) < 800


@given(st.integers(-(10**6), 10**6), st.integers(1, 1000))
def test_integers_stay_inside(low: int, size: int) -> None:
    values = integers(Key(1, "t", "c", np.arange(200)), low, low + size)
    assert values.min() >= low
    assert values.max() < low + size


def test_integers_reach_all_values_evenly() -> None:
    counts = np.bincount(integers(key(), 0, 10))
    assert len(counts) == 10
    assert abs(counts - 10_000).max() < 500


def test_weighted_follows_the_weights() -> None:
    counts = np.bincount(weighted(key(), (1, 0, 3, 0)), minlength=4)
    assert counts[1] == counts[3] == 0
    assert abs(counts[0] - 25_000) < 700


@pytest.mark.parametrize("exponent", [0.0, 0.8, 1.0, 2.0])
def test_zipf_rank_follows_its_law(exponent: float) -> None:
    counts = np.bincount(zipf_rank(key(), 50, exponent), minlength=50)
    law = np.arange(1, 51, dtype=np.float64) ** -exponent
    expected = law / law.sum() * len(ROWS)
    assert (abs(counts - expected) < 5 * np.sqrt(expected) + 1).all()


def test_nothing_to_draw_from_is_refused() -> None:
    with pytest.raises(HeadgateError, match="from 3 up to 3"):
        integers(key(), 3, 3)
    with pytest.raises(HeadgateError, match="out of 0"):
        zipf_rank(key(), 0, 1.0)
    for weights in ((), (0, 0), (2, -1)):
        with pytest.raises(HeadgateError, match="by weights"):
            weighted(key(), weights)


def test_no_rows_give_no_values() -> None:
    none = Key(1, "t", "c", np.array([], np.int64))
    assert uniform(none).shape == weighted(none, (1, 2)).shape == (0,)


def correlation(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    return float(np.corrcoef(left, right)[0, 1])


def splitmix64(start: int, row: int) -> int:
    """Compute one value in plain integers."""
    mask = 2**64 - 1
    word = (start + row * 0x9E3779B97F4A7C15) & mask
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & mask
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
    return word ^ (word >> 31)
