"""Tiers, blocks and sketches against the obvious sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate.ranking.boxes.dense import DenseExact, DenseRelaxed
from headgate.ranking.boxes.dense_build import LONGEST, SHORTEST, make_dense
from headgate.ranking.boxes.sketch import make_sketch
from headgate.ranking.intervals.sopt import make_marks, mark, next_mark, previous_mark, unmark
from tests.seeds import seeds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.ranking.answers import Answers

    Columns = NDArray[np.float64]

MISSING = (-np.inf, np.inf)


def boxes(rng: np.random.Generator, d: int, n: int, *, grid: int = 12) -> tuple[Columns, Columns, Columns]:
    """Draw boxes with shared ends, some without a dimension, and weights with many ties."""
    low = rng.integers(0, grid, (d, n)).astype(float)
    high: Columns = low + rng.integers(0, grid // 2, (d, n)).astype(float)
    weight = rng.integers(0, 4, (d, n)) / 2
    absent = rng.random((d, n)) < 0.2
    low[absent], high[absent], weight[absent] = np.inf, -np.inf, 0.0
    unbounded = rng.random((d, n)) < 0.05
    low[unbounded & ~absent] = -np.inf
    return low, high, weight


def questions(rng: np.random.Generator, d: int, count: int, grid: int = 12) -> tuple[Columns, Columns]:
    """Draw points, events that are intervals (both notions), and missing values."""
    a = rng.integers(0, grid, (count, d)).astype(float)
    b = a + rng.integers(0, 3, (count, d))
    kind = rng.integers(0, 4, (count, d))
    x = np.choose(kind, [a, a, b, np.full_like(a, MISSING[0])])
    y = np.choose(kind, [a, b, a, np.full_like(a, MISSING[1])])
    return x, y


def holding(low: Columns, high: Columns, x: Columns, y: Columns) -> NDArray[np.bool_]:
    """Tell of every dimension and row whether it holds for one question."""
    return (low <= x[:, None]) & (high >= y[:, None])


def relaxed_reference(
    held: NDArray[np.bool_],
    weight: Columns,
    factors: Columns,
    removed: NDArray[np.uint8],
    k: int,
    *,
    largest: bool,
) -> list[tuple[int, float]]:
    """Add up weights dimension by dimension, and sort."""
    value = np.zeros(weight.shape[1])
    for j, factor in enumerate(factors):
        worth = np.where(held[j], weight[j] * factor, 0.0)
        value = np.maximum(value, worth) if largest else value + worth
    counts = (held & (factors > 0)[:, None]).any(0) & (removed == 0)
    rows = np.flatnonzero(counts)
    order = rows[np.lexsort((rows, -value[rows]))][:k]
    return [(int(row), float(value[row])) for row in order]


def listed(found: Answers, i: int) -> list[tuple[int, float]]:
    """List the answers to one question."""
    count = found.counts[i]
    return list(zip(found.numbers[i, :count].tolist(), found.values[i, :count].tolist(), strict=True))


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [0, 1, 70, 1100])
@pytest.mark.parametrize("seed", seeds(3))
def test_relaxed_adds_up_what_holds(d: int, n: int, seed: int) -> None:
    rng = np.random.default_rng([d, n, seed])
    low, high, weight = boxes(rng, d, n)
    index = DenseRelaxed(low, high, weight)
    index.dense.check()
    x, y = questions(rng, d, 12)
    for k in (0, 1, 7, n + 5):
        for factors in (np.ones(d), rng.choice([0.0, 1.0], d), rng.choice([0.0, 0.5, 3.0], d)):
            for removed in (np.zeros(n, np.uint8), (rng.random(n) < 0.3).astype(np.uint8)):
                for largest in (False, True):
                    found = index.top_many(x, y, k, factors=factors, largest=largest, removed=removed)
                    for i in range(len(x)):
                        held = holding(low, high, x[i], y[i])
                        wanted = relaxed_reference(held, weight, factors, removed, k, largest=largest)
                        assert listed(found, i) == wanted


def test_relaxed_sums_are_those_of_floats_in_the_order_of_dimensions() -> None:
    rng = np.random.default_rng(7)
    low, high, _ = boxes(rng, 4, 500)
    weight = np.where(low <= high, rng.random((4, 500)), 0.0)
    x, y = questions(rng, 4, 20)
    found = DenseRelaxed(low, high, weight).top_many(x, y, 50)
    for i in range(len(x)):
        held = holding(low, high, x[i], y[i])
        assert listed(found, i) == relaxed_reference(
            held, weight, np.ones(4), np.zeros(500, np.uint8), 50, largest=False
        )


def test_weights_that_a_factor_makes_equal_go_by_number() -> None:
    weight = np.array([[1.0, np.nextafter(1.0, 2.0)]])
    index = DenseRelaxed(np.zeros((1, 2)), np.ones((1, 2)), weight)
    at = np.array([[0.5]])
    assert listed(index.top_many(at, at, 2), 0) == [(1, weight[0, 1]), (0, 1.0)]
    tiny = np.array([5e-324])
    assert listed(index.top_many(at, at, 2, factors=tiny), 0) == [(0, 5e-324), (1, 5e-324)]


@pytest.mark.parametrize("d", [0, 1, 2, 4])
@pytest.mark.parametrize("n", [0, 1, 70, 1100])
def test_exact_lists_the_first_of_which_all_hold(d: int, n: int) -> None:
    rng = np.random.default_rng([d, n])
    low, high, _ = boxes(rng, d, n)
    absent = low > high
    low[absent], high[absent] = -np.inf, np.inf
    never = rng.random(n) < 0.1
    if d:
        low[0, never], high[0, never] = np.inf, -np.inf
    index = DenseExact(low, high)
    x, y = questions(rng, d, 30)
    for k in (0, 1, 9, n + 5):
        for removed in (np.zeros(n, np.uint8), (rng.random(n) < 0.3).astype(np.uint8)):
            found = index.top_many(x, y, k, removed=removed)
            for i in range(len(x)):
                held = holding(low, high, x[i], y[i]).all(0) & (removed == 0)
                assert found.numbers[i, : found.counts[i]].tolist() == np.flatnonzero(held)[:k].tolist()


def test_tiers_grow_and_blocks_are_near() -> None:
    rng = np.random.default_rng(1)
    n = 3 * LONGEST
    low = rng.random((2, n))
    dense = make_dense(low, low + 0.01, np.ones((2, n)), -np.arange(n, dtype=float))
    dense.check()
    sizes = np.diff(dense.start) * 64
    assert sizes[0] == SHORTEST
    assert sizes.max() == LONGEST
    wide = (dense.greatest - dense.least).mean()
    assert wide < 0.25, "blocks of a tier cut the square into small parts"


def test_a_sketch_never_leaves_out_what_holds() -> None:
    rng = np.random.default_rng(3)
    low, high, weight = boxes(rng, 3, 2048, grid=1000)
    sketch = make_sketch(low, high, weight)
    assert bool((sketch.weight * sketch.unit >= weight * (1 - 1e-12)).all())
    for value in rng.integers(0, 1000, 200).astype(float):
        for j in range(3):
            cell = np.searchsorted(sketch.edge[j], value, "right")
            holds = (low[j] <= value) & (high[j] >= value)
            by_cells = (sketch.low[j] <= cell) & (sketch.high[j] >= cell)
            assert not bool((holds & ~by_cells).any())


@pytest.mark.parametrize("size", [1, 64, 65, 5000])
def test_marks_know_their_neighbours(size: int) -> None:
    rng = np.random.default_rng(size)
    marks, there = make_marks(size), set[int]()
    for _ in range(600):
        at = int(rng.integers(size))
        if rng.random() < 0.5:
            mark(marks, at)
            there.add(at)
        else:
            unmark(marks, at)
            there.discard(at)
        seen = int(rng.integers(size))
        assert next_mark(marks, seen) == min((each for each in there if each >= seen), default=-1)
        assert previous_mark(marks, seen) == max((each for each in there if each <= seen), default=-1)
