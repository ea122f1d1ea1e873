"""Sparse relaxed matching against the obvious reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.measure import memory_of
from headgate.errors import EventError, SubscriptionError
from headgate.ranking.boxes.ends import MISSING, NOTIONS, closed_ends, probe
from headgate.ranking.boxes.sparse import Sparse
from headgate.ranking.model import Box, Interval
from tests.ranking.reference import relaxed
from tests.seeds import examples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.core.arrays import Floats64


NAMES = [f"a{number}" for number in range(7)]
INFINITE = float("inf")


def build(boxes: Sequence[Box], *, first: int = 4, names: Sequence[str] = NAMES) -> Sparse:
    """Build from boxes, with intervals in the order of the attributes, and with small tiers."""
    held = [[(name, box) for name in names if name in box.intervals] for box in boxes]
    flat = [each for row in held for each in row]
    low, high = closed_ends(box.intervals[name] for name, box in flat)
    return Sparse.build(
        len(boxes),
        np.cumsum([0, *(len(row) for row in held)]),
        np.array([names.index(name) for name, _ in flat], np.int32),
        low,
        high,
        np.array([box.weight(name) for name, box in flat], np.float64),
        first=first,
    )


def questions(event: Mapping[str, object], notion: str) -> tuple[Floats64, Floats64]:
    """Ask what an event asks of each attribute."""
    both = np.array([probe(event.get(name), notion) for name in NAMES])
    return both[:, 0].copy(), both[:, 1].copy()


def answer(found: tuple[NDArray[Any], NDArray[Any]]) -> list[tuple[int, float]]:
    """Pair rows with values."""
    return list(zip(found[0].tolist(), found[1].tolist(), strict=True))


def right(
    boxes: Sequence[Box],
    event: Mapping[str, object],
    k: int,
    notion: str = "overlap",
    factors: Mapping[str, float] | None = None,
) -> list[tuple[int, float]]:
    """Ask the reference."""
    best = relaxed(boxes, event, k, notion, dimensions=NAMES, factors=factors)
    return [(int(each.subscription), each.value) for each in best]


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    """Draw an interval with ends that others share; some hold nothing, some have no ends."""
    ends = [0.0, 1.0, 2.0, 2.5, 3.0, 4.0, 0.1]
    low = draw(st.sampled_from([-INFINITE, *ends]))
    high = draw(st.sampled_from([end for end in [*ends, INFINITE] if end >= low]))
    return Interval(low, high, draw(st.booleans()), draw(st.booleans()))


@st.composite
def box_lists(draw: st.DrawFn) -> list[Box]:
    """Draw boxes with many ties, some without intervals."""
    weights = draw(st.sampled_from([st.integers(0, 2).map(float), st.floats(0, 1), st.just(1.0)]))
    rows = draw(st.lists(st.dictionaries(st.sampled_from(NAMES), intervals(), max_size=5), max_size=40))
    return [Box(i, row, weights={name: draw(weights) for name in row}) for i, row in enumerate(rows)]


values = (
    st.none() | st.sampled_from([0, 1, 2, 2.2, 3.0, 4, 0.1, INFINITE, -INFINITE, float("nan")]) | intervals()
)
events = st.dictionaries(st.sampled_from(NAMES), values)


@given(boxes=box_lists(), event=events, notion=st.sampled_from(NOTIONS), k=st.integers(0, 50))
@examples(300)
def test_agrees_with_the_reference(boxes: list[Box], event: dict[str, object], notion: str, k: int) -> None:
    """Points, intervals that overlap or lie within, missing values; ties, empty and unbounded intervals."""
    assert answer(build(boxes).top(*questions(event, notion), k)) == right(boxes, event, k, notion)


@given(
    boxes=box_lists(),
    event=events,
    k=st.integers(1, 10),
    factors=st.dictionaries(st.sampled_from(NAMES), st.sampled_from([0.0, 1e-7, 0.3, 1.0, 3.7, 1e8])),
    removed=st.sets(st.integers(0, 39)),
)
@examples(300)
def test_factors_and_removed_rows(
    boxes: list[Box], event: dict[str, object], k: int, factors: dict[str, float], removed: set[int]
) -> None:
    """Attributes dropped, weighed less and more, by far; rows that are gone."""
    gone = np.array([box.id in removed for box in boxes], np.uint8)
    by_attribute = np.array([factors.get(name, 1.0) for name in NAMES])
    found = build(boxes).top(*questions(event, "overlap"), k, by_attribute, gone)
    stay = [box for box in boxes if box.id not in removed]
    assert answer(found) == right(stay, event, k, factors=factors)


def random_boxes(count: int, attributes: int, kind: str, seed: int) -> tuple[Any, ...]:
    """Make columns of boxes with 0 to 6 intervals in many attributes."""
    chance = np.random.default_rng(seed)
    start = np.zeros(count + 1, np.int64)
    start[1:] = np.cumsum(chance.integers(0, 7, count))
    attribute = np.concatenate(
        [np.sort(chance.permutation(attributes)[:each]) for each in np.diff(start)]
    ).astype(np.int32)
    size = int(start[-1])
    # Ends that do not fit into 4 bytes, at 0.1, 0.2, and others that do.
    low = chance.integers(0, 100, size) * (0.25 if kind == "equal" else 0.1)
    high = low + chance.integers(0, 30, size) * 0.25
    weight = {
        "equal": np.ones(size),
        "random": chance.random(size),
        "whole": chance.integers(0, 4, size) * 1.0,
    }
    return start, attribute, low, high, weight[kind]


@pytest.mark.parametrize("kind", ["equal", "random", "whole"])
def test_many_rows_in_many_tiers(kind: str) -> None:
    """Lists of several blocks, ends of 4 and of 8 bytes, questions one by one and all at once."""
    start, attribute, low, high, weight = columns = random_boxes(6000, 12, kind, 3)
    sparse = Sparse.build(6000, *columns, first=64)
    chance = np.random.default_rng(4)
    x = np.asarray(chance.integers(0, 120, (12, 12)) * 0.25, np.float64)
    y = np.asarray(x + chance.integers(-1, 2, (12, 1)), np.float64)
    lacks = chance.random((12, 12)) < 0.2
    x[lacks], y[lacks] = MISSING
    owner = np.repeat(np.arange(6000), np.diff(start))
    for k in (1, 20, 9000):
        many = sparse.top_many(x, y, k)
        for i in range(len(x)):
            holds = (low <= x[i, attribute]) & (high >= y[i, attribute])
            value = np.zeros(6000)
            np.add.at(value, owner, np.where(holds, weight, 0.0))
            rows = np.unique(owner[holds])
            rows = rows[np.lexsort((rows, -value[rows]))][:k]
            wanted = list(zip(rows.tolist(), value[rows].tolist(), strict=True))
            assert answer(sparse.top(x[i], y[i], k)) == wanted
            count = many.counts[i]
            assert answer((many.numbers[i, :count], many.values[i, :count])) == wanted


def test_an_equal_value_in_a_later_tier_comes_first() -> None:
    """Row 0 can reach no more than the k-th value, which is found in a better tier; its number decides."""
    more = {"a1": Interval(0, 1), "a2": Interval(7, 8)}
    boxes = [Box(0, {"a0": Interval(0, 1)}, weights=2.0)]
    boxes += [Box(number, more, weights={"a1": 2.0, "a2": 5.0}) for number in range(1, 5)]
    event = {"a0": 1, "a1": 1, "a2": 1}
    for k in (1, 3):
        found = answer(build(boxes).top(*questions(event, "overlap"), k))
        assert found == right(boxes, event, k) == [(row, 2.0) for row in range(k)]


def test_it_is_small() -> None:
    """Six bytes an interval and four a row, and little more."""
    columns = random_boxes(6000, 6, "random", 5)
    sparse = Sparse.build(6000, *columns)
    assert memory_of(sparse) < 6.5 * columns[0][-1] + 4.5 * 6000 + 8_000


def test_nothing_to_find() -> None:
    """No rows, no intervals, k = 0, an event without values."""
    x, y = questions({}, "overlap")
    assert answer(build([]).top(x, y, 3)) == []
    assert answer(build([Box(0, {}), Box(1, {})]).top(x, y, 3)) == []
    boxes = [Box(0, {"a3": Interval(1, 2)}), Box(1, {"a5": Interval()}, weights=0.0)]
    assert answer(build(boxes).top(x, y, 3)) == [(1, 0.0)]
    assert answer(build(boxes).top(x, y, 0)) == []


def test_bad_input_is_refused() -> None:
    """One line that says what is wrong."""
    one = np.ones(1)
    with pytest.raises(SubscriptionError, match="row 0 has an interval from nan to 1"):
        Sparse.build(1, np.array([0, 1]), np.array([0]), one * np.nan, one, one)
    with pytest.raises(SubscriptionError, match="2 starts for 2 rows of 1 intervals"):
        Sparse.build(2, np.array([0, 1]), np.array([0]), one, one, one)
    with pytest.raises(SubscriptionError, match="a weight of row 1 is inf"):
        Sparse.build(2, np.array([0, 0, 1]), np.array([0]), one, one, one * np.inf)
    sparse = Sparse.build(1, np.array([0, 1]), np.array([1]), one, one, one)
    with pytest.raises(EventError, match="give one for each of 2 attributes"):
        sparse.top(one, one, 1)
    with pytest.raises(EventError, match="1 factors for 2"):
        sparse.top(np.ones(2), np.ones(2), 1, one)
    with pytest.raises(SubscriptionError, match="k is -2"):
        sparse.top(np.ones(2), np.ones(2), -2)
