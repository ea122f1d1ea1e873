"""Numbers at the ends of what doubles hold, and values that are none: right answers, or one clear line."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from headgate import Engine, Event, Subscription
from headgate.core.ranks import Best
from headgate.errors import HeadgateError
from headgate.ranking.boxes.index import BoxIndex, methods
from headgate.ranking.model import Box, Interval
from tests.ranking import reference

TINY = 5e-324


def sums(index: BoxIndex) -> list[str]:
    """List the methods that add up weights."""
    return [method for method in methods("relaxed") if len(index.dimensions) < 200 or ":" not in method]


@pytest.mark.parametrize("factors", [{"d000": 1e308, "d001": 1e-300}, {"d000": 2.0, "d001": TINY}])
def test_factors_that_are_far_apart_lose_nobody(factors: dict[str, float]) -> None:
    names = [f"d{i:03}" for i in range(20)]
    boxes = [Box(i, {name: Interval(0, 1)}) for i, name in enumerate(names)]
    index, event = BoxIndex.build(boxes), dict.fromkeys(names, 0.5)
    wanted = reference.relaxed(boxes, event, 50, dimensions=names, factors=factors)
    assert len(wanted) == 20
    for method in methods("relaxed"):
        assert index.top(event, 50, "relaxed", method=method, factors=factors) == wanted, method


def test_the_same_for_filters() -> None:
    engine = Engine.build(
        [Subscription("a", "x > 1 AND z > 5"), Subscription("b", "y > 1 AND z > 5")], ranked=True
    )
    found = engine.top(Event("e", {"x": 2, "y": 2, "z": 0}), 5, "relaxed", factors={"x": 1e308, "y": 1e-300})
    assert found == [Best("a", 1e308), Best("b", 1e-300)]


def test_the_smallest_weights_through_the_sketch() -> None:
    n = 200
    low, high = np.zeros((3, n)), np.ones((3, n))
    low[2, :64], high[2, :64] = 5, 6
    weight = np.full((3, n), 300 * TINY)
    index = BoxIndex.from_columns(list(range(n)), ["a", "b", "c"], low, high, np.zeros(n), weight)
    for method in sums(index):
        found = index.top({"a": 0.5, "b": 0.5, "c": 0.5}, 1, "relaxed", method=method)
        assert [best.subscription for best in found] == [64], method


def test_many_dimensions_by_every_method() -> None:
    d, n = 300, 2000
    low, high = np.zeros((d, n)), np.ones((d, n))
    low[250:, :1024], high[250:, :1024] = 5, 6
    low[280:, 1024:], high[280:, 1024:] = 5, 6
    names = [f"d{i:03}" for i in range(d)]
    index = BoxIndex.from_columns(list(range(n)), names, low, high, np.zeros(n))
    for method in ("dense", "scan", "rows", "auto"):
        found = index.top(dict.fromkeys(names, 0.5), 2, "relaxed", method=method)
        assert found == [Best(1024, 280.0), Best(1025, 280.0)], method


def test_an_infinite_end_is_no_end_whether_open_or_not() -> None:
    everything = [Interval(), Interval(low_open=True), Interval(high_open=True), Interval(-np.inf, np.inf)]
    assert all(interval == Interval() for interval in everything)
    index = BoxIndex.build(Box(i, {"x": interval}) for i, interval in enumerate(everything))
    assert len(index.top({}, 9)) == len(index.top({"x": np.inf}, 9)) == 4


def test_nothing_warns_about_numbers_that_are_allowed() -> None:
    boxes = [
        Box(i, {"x": Interval(i * 1e306, np.inf, high_open=True), "y": Interval(-1e308, 1e308 - i)}, i, 1e300)
        for i in range(100)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index = BoxIndex.build(boxes)
        for mode in ("exact", "relaxed"):
            for method in methods(mode):
                found = index.top({"x": 1e308, "y": -1e20}, 3, mode, method=method)
                assert len(found) == 3
        index.explain({"x": 1e308, "y": -1e20}, 0, 3, "relaxed", factors={"x": 1e300})


def test_whole_numbers_are_rounded_to_doubles_once() -> None:
    boxes = [Box("a", {"x": Interval(low=2**53 + 1)})]
    for value in (2**53, 2**53 + 1):
        assert BoxIndex.build(boxes).top({"x": value}, 1) == reference.exact(boxes, {"x": value}, 1)
        assert value in boxes[0].intervals["x"]


def test_numbers_of_numpy_are_numbers() -> None:
    numbers: list[Any] = [np.int64(0), np.float32(9), np.int32(2), np.float32(3), np.int64(2), np.int64(1)]
    low, high, score, weight, factor, k = numbers
    index = BoxIndex.build([Box(1, {"x": Interval(low, high)}, score, weight)])
    for value in (np.int64(5), np.float32(5), np.float64(5), np.uint8(5)):
        assert index.top({"x": value}, k, "relaxed", factors={"x": factor}) == [Best(1, 6.0)]


def test_a_change_is_refused_whole_or_made_whole() -> None:
    names = [f"d{i:03}" for i in range(30)]
    index = BoxIndex.build([Box(i, {names[i % 30]: Interval(0, 1)}) for i in range(100)])
    index.top({"d000": 0.5}, 5, "relaxed")
    index.compact_after = 0
    both = {"d001": Interval(0, 1), "d002": Interval(0, 1)}
    with pytest.raises(HeadgateError, match="subscription 1000 add up to more than a double holds"):
        Box(1000, both, weights=1e308)
    index.insert(Box(1000, both))
    with pytest.raises(HeadgateError, match="subscription 1000 add up to more than a double holds"):
        index.set_weights(1000, 1e308)
    for score in range(8):
        index.set_score(3, float(score))
    index.delete(1000)
    assert 1000 not in index
    assert len(index) == 100


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda index: index.top({"x": 10**400}, 0.5), "k is 0.5"),
        (lambda index: index.set_score("a", 10**400), "give a finite number"),
        (lambda index: index.set_weights("a", 10**400), "give a finite number, 0 or more"),
        (lambda index: index.top({"x": 1}, 1, "relaxed", factors={"x": 10**400}), "give a finite number"),
        (lambda index: index.top(None, 1), "the event is None"),
        (lambda index: index.top({"x": 1}, 1, "relaxed", factors=[1]), r"the factors is \[1\]"),
        (lambda index: index.top({"x": 1}, 1, "relaxed", combine=[1]), "there is no combination"),
        (lambda index: index.top({"x": "1"}, 1), "neither a number nor an interval"),
        (lambda index: index.top({"x": True}, 1), "neither a number nor an interval"),
        (lambda index: index.delete(np.int64(3)), "there is no"),
        (lambda index: index.delete(3.0), "there is no"),
        (lambda index: index.delete(None), "there is no"),
        (lambda _: Box(1, {"x": (1, 2)}), "give an Interval for each name"),  # type: ignore[dict-item]
        (lambda _: Box(1, {2: Interval()}), "give an Interval for each name"),  # type: ignore[dict-item]
        (lambda _: Box(1, [1]), "give an Interval for each name"),  # type: ignore[arg-type]
        (lambda _: BoxIndex.from_columns([1], ["x"], [["a"]], [[1]], [0]), "a column is not one of numbers"),
        (
            lambda _: BoxIndex.from_columns([1], ["x"], [[0], [0, 1]], [[1]], [0]),
            "a column is not one of numb",
        ),
        (lambda _: Interval(0, 10**400), "does not fit into a double"),
        (lambda _: Interval(0, 1, low_open="no"), "give True or False"),  # type: ignore[arg-type]
        (lambda _: Interval(2, 1), "upside down"),
        (lambda _: Interval(float("nan"), 1), "give a number"),
        (lambda _: Box(1, {}, score=float("nan")), "give a finite number"),
    ],
)
def test_what_is_no_number_is_one_clear_line(call: Any, line: str) -> None:
    index = BoxIndex.build([Box("a", {"x": Interval(0, 1)})])
    with pytest.raises(HeadgateError, match=line) as refused:
        call(index)
    assert "\n" not in str(refused.value)


def test_no_factors_are_none_in_either_mode() -> None:
    index = BoxIndex.build([Box("a", {"x": Interval(0)}, score=2)])
    engine = Engine.build([Subscription("a", "x >= 0", score=2)])
    for mode, value in (("exact", 2.0), ("relaxed", 1.0)):
        assert index.top({"x": 1}, 1, mode, factors={}) == [Best("a", value)]
        assert engine.top(Event("e", {"x": 1}), 1, mode, factors={}) == [Best("a", value)]


def test_an_event_of_a_huge_whole_number_is_above_all() -> None:
    index = BoxIndex.build([Box("a", {"x": Interval(0)}), Box("b", {"x": Interval(0, 1)})])
    assert [best.subscription for best in index.top({"x": 10**400}, 5)] == ["a"]
