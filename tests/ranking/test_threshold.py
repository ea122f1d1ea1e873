"""The Threshold Algorithm: what it answers, where it stops, and what it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.measure import memory_of
from headgate.core.ranks import Best
from headgate.papers.intersecting import Intersecting
from headgate.ranking.boxes.boxes import BoxQuery, ask, of_boxes
from headgate.ranking.boxes.rows import bounds
from headgate.ranking.boxes.threshold import Threshold
from headgate.ranking.boxes.threshold_kernels import EXACT, MAX, SUM, heap_of, offer
from headgate.ranking.intervals.rtree import RTree
from headgate.ranking.intervals.scored import Walk
from headgate.ranking.intervals.structures import STRUCTURES
from headgate.ranking.model import Box, Interval
from tests.ranking import reference
from tests.seeds import examples

if TYPE_CHECKING:
    from headgate.ranking.answers import RankedRows
    from headgate.ranking.intervals.scored import Ranks

pytestmark = pytest.mark.jit_off

ALL = np.zeros(0, np.uint8)
NAMES = ("a", "b", "c")

INTERVALS = st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda ends: Interval(min(ends), max(ends)))
WEIGHTS = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0])
BOXES = st.lists(
    st.dictionaries(st.sampled_from(NAMES), st.tuples(INTERVALS, WEIGHTS)), min_size=1, max_size=40
).map(
    lambda drawn: [
        Box(
            number,
            {name: interval for name, (interval, _) in sides.items()},
            float(number % 3),
            {name: weight for name, (_, weight) in sides.items()},
        )
        for number, sides in enumerate(drawn)
    ]
)
EVENTS = st.fixed_dictionaries({name: st.integers(0, 5) for name in NAMES})


class Counting(RTree):
    """A tree whose walks count how many ranks were taken."""

    taken = 0

    def walk(self, x: float, y: float) -> Walk:  # type: ignore[override]
        """Begin a walk that counts."""
        return CountingWalk(super().walk(x, y))


class CountingWalk(Walk):
    """A walk that counts."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk

    def fill(self, out: Ranks) -> int:
        """Write the next ranks."""
        Counting.taken += len(out)
        return self._walk.fill(out)


def best(found: RankedRows) -> list[Best]:
    """Return rows as an answer: row r is the box of id r here."""
    return [Best(row, value) for value, row in zip(found.values.tolist(), found.rows.tolist(), strict=True)]


@examples(80)
@given(BOXES, EVENTS, st.integers(1, 45), st.sampled_from(sorted(STRUCTURES)))
def test_both_variants_are_the_reference(
    boxes: list[Box], event: dict[str, int], k: int, structure: str
) -> None:
    arrays = of_boxes(boxes, NAMES)
    arrays.check(len(NAMES))
    threshold = Threshold(arrays, len(NAMES), STRUCTURES[structure])
    asked = ask(event, NAMES, "overlap")
    for how, function in ((SUM, sum), (MAX, max)):
        wanted = reference.relaxed(boxes, event, k, dimensions=NAMES, combine=function)
        assert best(threshold.top(asked, k, how, ALL)) == wanted
        assert best(threshold.top_any(asked, k, function, ALL)) == wanted


@examples(60)
@given(BOXES, EVENTS, st.integers(1, 45), st.sampled_from(sorted(STRUCTURES)))
def test_intersected_walks_are_the_reference(
    boxes: list[Box], event: dict[str, int], k: int, structure: str
) -> None:
    intersecting = Intersecting(of_boxes(boxes, NAMES), len(NAMES), STRUCTURES[structure])
    found = intersecting.top(ask(event, NAMES, "overlap"), k, EXACT, ALL)
    assert best(found) == reference.exact(boxes, event, k)


@examples(60)
@given(BOXES, EVENTS, st.integers(1, 20), st.sets(st.integers(0, 39)))
def test_rows_that_went_are_not_ranked(
    boxes: list[Box], event: dict[str, int], k: int, gone: set[int]
) -> None:
    flags = np.array([box.id in gone for box in boxes], np.uint8)
    threshold = Threshold(of_boxes(boxes, NAMES), len(NAMES), RTree)
    asked = ask(event, NAMES, "overlap")
    left = [box for box in boxes if box.id not in gone]
    for marked, there in ((ALL, boxes), (flags, left)):
        wanted = reference.relaxed(there, event, k, dimensions=NAMES)
        assert best(threshold.top(asked, k, SUM, marked)) == wanted
        assert best(threshold.top_any(asked, k, sum, marked)) == wanted


def test_it_stops_long_before_the_end_of_its_lists() -> None:
    boxes = [
        Box(number, {name: Interval(0, 9) for name in NAMES}, weights=1.0 - number / 10_000)
        for number in range(10_000)
    ]
    threshold = Threshold(of_boxes(boxes, NAMES), len(NAMES), Counting)
    asked = ask(dict.fromkeys(NAMES, 5), NAMES, "overlap")
    Counting.taken = 0
    assert threshold.top(asked, 10, SUM, ALL).rows.tolist() == list(range(10))
    assert Counting.taken <= 3 * 16
    Counting.taken = 0
    assert threshold.top_any(asked, 10, sum, ALL).rows.tolist() == list(range(10))
    assert Counting.taken <= 3 * 16


def test_a_dropped_dimension_has_no_walk() -> None:
    boxes = [Box(number, {name: Interval(0, 9) for name in NAMES}) for number in range(50)]
    threshold = Threshold(of_boxes(boxes, NAMES), len(NAMES), Counting)
    asked = ask(dict.fromkeys(NAMES, 5), NAMES, "overlap", {"a": 0.0, "b": 0.0, "c": 0.0})
    Counting.taken = 0
    assert not len(threshold.top(asked, 10, SUM, ALL).rows)
    assert not len(threshold.top_any(asked, 10, sum, ALL).rows)
    assert Counting.taken == 0
    asked.factor[1] = 2.0
    assert threshold.top(asked, 3, SUM, ALL).values.tolist() == [2.0, 2.0, 2.0]
    assert Counting.taken > 0


def test_it_reads_on_while_the_threshold_ties_with_the_worst() -> None:
    """The box with the smallest id is last in both lists, and worth as much as the others."""
    boxes = [Box(0, {"a": Interval(0, 9), "b": Interval(0, 9)}, weights=1.0)]
    boxes += [Box(number, {"a": Interval(0, 9)}, weights=2.0) for number in range(1, 100)]
    threshold = Threshold(of_boxes(boxes, ("a", "b")), 2, RTree)
    asked = ask({"a": 1, "b": 1}, ("a", "b"), "overlap")
    assert best(threshold.top(asked, 1, SUM, ALL)) == [Best(0, 2.0)]
    assert best(threshold.top_any(asked, 1, sum, ALL)) == [Best(0, 2.0)]


def test_ties_end_where_values_are_single_weights() -> None:
    """All weights are 1, so every box ties; those with the smallest ids are first in every list."""
    boxes = [
        Box(number, {name: Interval(0, 9) for name in NAMES if number % 3 or name == "a"})
        for number in range(10_000)
    ]
    threshold = Threshold(of_boxes(boxes, NAMES), len(NAMES), Counting)
    event = dict.fromkeys(NAMES, 5)
    Counting.taken = 0
    found = threshold.top(ask(event, NAMES, "overlap"), 30, MAX, ALL)
    assert best(found) == reference.relaxed(boxes, event, 30, dimensions=NAMES, combine=max)
    assert Counting.taken < 500


def test_sums_are_rounded_as_the_reference_rounds_them() -> None:
    rng = np.random.default_rng(4)
    boxes = [
        Box(number, {name: Interval(0, 9) for name in NAMES}, weights={name: rng.random() for name in NAMES})
        for number in range(500)
    ]
    threshold = Threshold(of_boxes(boxes, NAMES), len(NAMES), RTree)
    event, factors = dict.fromkeys(NAMES, 5), {"a": 0.3, "c": 1.7}
    found = threshold.top(ask(event, NAMES, "overlap", factors), 100, SUM, ALL)
    assert best(found) == reference.relaxed(boxes, event, 100, dimensions=NAMES, factors=factors)


@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.0]), st.integers(0, 30))), st.integers(1, 8))
def test_the_heap_keeps_the_best(given_rows: list[tuple[float, int]], k: int) -> None:
    heap = heap_of(k)
    for value, row in given_rows:
        offer(heap, value, row)
    size = int(heap.size[0])
    kept = sorted(zip((-heap.value[:size]).tolist(), heap.row[:size].tolist(), strict=True))
    assert kept == sorted((-value, row) for value, row in given_rows)[:k]


def test_what_a_box_is_worth_at_most() -> None:
    boxes = of_boxes(
        [Box(0, {"a": Interval(0, 1), "b": Interval(2, 2, high_open=True)}, 7.0, {"a": 0.5, "b": 4.0})], NAMES
    )
    assert bounds(boxes, SUM).tolist() == [0.5]
    assert bounds(boxes, EXACT).tolist() == [7.0]


@pytest.mark.parametrize("structure", sorted(STRUCTURES))
def test_indexes_say_how_large_they_are(structure: str) -> None:
    boxes = of_boxes([Box(number, {"a": Interval(0, number)}) for number in range(100)], NAMES)
    assert memory_of(Threshold(boxes, len(NAMES), STRUCTURES[structure])) > 0
    assert memory_of(Intersecting(boxes, len(NAMES), STRUCTURES[structure])) > 0
    assert isinstance(ask({}, NAMES, "overlap"), BoxQuery)
