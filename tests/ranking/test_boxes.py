"""Boxes give, by every method, what the reference gives."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from headgate.core.ranks import Best
from headgate.errors import EventError, SnapshotError, SubscriptionError
from headgate.ranking.boxes.boxes import of_boxes
from headgate.ranking.boxes.index import BoxIndex, methods
from headgate.ranking.boxes.methods import Question, chosen
from headgate.ranking.model import Box, Interval
from tests.ranking import reference
from tests.seeds import JIT, NIGHTLY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

pytestmark = pytest.mark.jit_off

NAMES = ("age", "hours", "pay")
NOTIONS = ("overlap", "within")


def draw_interval(rng: random.Random) -> Interval:
    """Draw an interval with small whole ends: most are shared, some are none, some points, some empty."""
    low, high = sorted((rng.randrange(8), rng.randrange(8)))
    kind = rng.randrange(8)
    if kind == 0:
        return Interval()
    if kind == 1:
        return Interval(low=low, low_open=rng.random() < 0.5)
    if kind == 2:
        return Interval(high=high)
    if kind == 3:
        return Interval(low, low, high_open=rng.random() < 0.5)
    return Interval(low, high, rng.random() < 0.3, rng.random() < 0.3)


def draw_box(rng: random.Random, identity: int | str, names: Sequence[str] = NAMES) -> Box:
    """Draw a box with small scores and weights, so that many are equal; some dimensions are absent."""
    held = [name for name in names if rng.random() < 0.7]
    weights: Mapping[str, float] | float = {name: rng.choice((0, 0.1, 0.2, 0.7, 2)) for name in held[:2]}
    return Box(
        identity,
        {name: draw_interval(rng) for name in held},
        float(rng.randrange(-2, 3)),
        weights if rng.random() < 0.8 else 0.3,
    )


def draw_event(rng: random.Random, names: Sequence[str] = NAMES) -> dict[str, object]:
    """Draw an event of points, intervals and missing values."""
    event: dict[str, object] = {"unknown": "ignored"}
    for name in names:
        kind = rng.randrange(6)
        if kind == 0:
            event[name] = None
        elif kind == 1:
            event[name] = draw_interval(rng)
        elif kind < 5:
            event[name] = rng.choice((rng.randrange(-1, 9), rng.randrange(8) + 0.5, math.nan, -math.inf))
    return event


def draw_boxes(rng: random.Random, count: int, names: Sequence[str] = NAMES) -> list[Box]:
    """Draw boxes, the ids in no order."""
    ids = rng.sample(range(10 * count + 1), count)
    return [draw_box(rng, identity, names) for identity in ids]


def weigh(values: Sequence[float]) -> float:
    """Combine values in a way that is neither a sum nor a maximum."""
    return min(values, default=0.0) + 0.5 * max(values, default=0.0)


FUNCTIONS: dict[Any, Any] = {"sum": sum, "max": max, weigh: weigh}


def combinations(method: str) -> list[Any]:
    """List what a method can combine by."""
    return {"sparse": ["sum"], "dense": ["sum", "max"]}.get(method, list(FUNCTIONS))


@pytest.mark.parametrize("method", methods("exact"))
def test_exact_is_the_reference(method: str) -> None:
    rng = random.Random(f"exact {method}")
    for round_ in range(12):
        boxes = draw_boxes(rng, rng.choice((0, 1, 7, 150)), NAMES[: round_ % 4])
        index = BoxIndex.build(boxes)
        for _ in range(8):
            event, k, notion = draw_event(rng), rng.choice((0, 1, 3, 20, 1000)), rng.choice(NOTIONS)
            found = index.top(event, k, method=method, notion=notion)
            assert found == reference.exact(boxes, event, k, notion), (boxes, event, k, notion)


@pytest.mark.parametrize("method", methods("relaxed"))
def test_relaxed_is_the_reference(method: str) -> None:
    rng = random.Random(f"relaxed {method}")
    for round_ in range(12):
        boxes = draw_boxes(rng, rng.choice((0, 1, 7, 150)), NAMES[: round_ % 4])
        index = BoxIndex.build(boxes)
        for _ in range(10):
            event, k, notion = draw_event(rng), rng.choice((0, 1, 3, 20, 1000)), rng.choice(NOTIONS)
            factors = {name: rng.choice((0, 0.5, 1, 3)) for name in NAMES if rng.random() < 0.4}
            combine = rng.choice(combinations(method))
            found = index.top(
                event, k, "relaxed", method=method, notion=notion, factors=factors, combine=combine
            )
            assert found == reference.relaxed(
                boxes,
                event,
                k,
                notion,
                dimensions=index.dimensions,
                factors=factors,
                combine=FUNCTIONS[combine],
            ), (boxes, event, k, notion, factors, combine)


@pytest.mark.parametrize("mode", ["exact", "relaxed"])
def test_methods_agree_on_many_boxes(mode: str) -> None:
    """Lists are long enough here that walks are filled many times, and blocks are skipped."""
    rng = np.random.default_rng(5)
    count = 3000 if JIT or NIGHTLY else 500
    ids = np.arange(count)
    low = rng.integers(0, 40, (3, count)).astype(float)
    high = low + rng.integers(0, 12, (3, count))
    low[rng.random(low.shape) < 0.2] = np.nan
    high[np.isnan(low)] = np.nan
    weight, score = rng.integers(1, 6, low.shape) / 8, rng.integers(0, 50, count).astype(float)
    index = BoxIndex.from_columns(ids, ["c", "a", "b"], low, high, score, weight)
    assert index.dimensions == ("a", "b", "c")
    boxes = [
        Box(
            int(row),
            {
                name: Interval(low[dim, row], high[dim, row])
                for dim, name in enumerate("cab")
                if low[dim, row] >= 0
            },
            score[row],
            {name: weight[dim, row] for dim, name in enumerate("cab") if low[dim, row] >= 0},
        )
        for row in ids
    ]
    for event in ({"a": 7, "b": 9, "c": 30}, {"a": Interval(3, 6), "b": 20, "c": 17.5}, {"a": 1000, "b": 11}):
        for k in (1, 40, 5000):
            if mode == "exact":
                wanted = reference.exact(boxes, event, k)
            else:
                wanted = reference.relaxed(boxes, event, k, dimensions=index.dimensions)
            for method in methods(mode):
                assert index.top(event, k, mode, method=method) == wanted, (event, k, method)


def test_factors_do_not_stop_a_scan_too_early() -> None:
    """A box with a small sum of weights may be the best once a factor lifts it."""
    boxes = [Box(number, {"a": Interval(0, 9)}, weights=3.0 + number / 1000) for number in range(200)]
    boxes += [Box(1000 + number, {"b": Interval(0, 9)}, weights=1.0) for number in range(100)]
    index = BoxIndex.build(boxes)
    event, factors = {"a": 5, "b": 5}, {"b": 100, "a": 0.5}
    wanted = reference.relaxed(boxes, event, 5, dimensions=index.dimensions, factors=factors)
    assert wanted[0].subscription == 1000
    for method in methods("relaxed"):
        assert index.top(event, 5, "relaxed", method=method, factors=factors) == wanted


def test_weights_that_are_as_small_as_numbers_are() -> None:
    tiny = 5e-324
    boxes = [
        Box(1, {"a": Interval(0, 9), "b": Interval(0, 9)}, weights=3 * tiny),
        Box(2, {"a": Interval(0, 9)}, weights=7 * tiny),
        Box(3, {"a": Interval(0, 9)}, weights=0.0),
    ]
    index = BoxIndex.build(boxes)
    for factors in ({}, {"a": 0.5, "b": 0.5}, {"a": 1e308}):
        for k in (1, 2, 3):
            wanted = reference.relaxed(boxes, {"a": 1, "b": 1}, k, dimensions=("a", "b"), factors=factors)
            for method in methods("relaxed"):
                found = index.top({"a": 1, "b": 1}, k, "relaxed", method=method, factors=factors)
                assert found == wanted, (method, factors, k)


def test_factors_that_round_weights_to_the_same() -> None:
    """The heavier a box, the larger its id; where a factor makes two the same, the smaller id goes first."""
    weights = 1.9 + np.arange(8) * 2**-52
    boxes = [Box(row, {"a": Interval(0, 9)}, weights=float(weight)) for row, weight in enumerate(weights)]
    index = BoxIndex.build(boxes)
    event, factors = {"a": 1}, {"a": 0.6}
    for k in range(1, 9):
        wanted = reference.relaxed(boxes, event, k, dimensions=("a",), factors=factors)
        assert k < 8 or len({best.value for best in wanted}) < 8
        for method in methods("relaxed"):
            assert index.top(event, k, "relaxed", method=method, factors=factors) == wanted, method


def test_more_dimensions_than_are_laid_out_as_columns() -> None:
    rng = random.Random(3)
    names = [f"d{number:03}" for number in range(90)]
    boxes = [
        Box(number, {name: draw_interval(rng) for name in rng.sample(names, 3)}, float(rng.randrange(4)))
        for number in range(300)
    ]
    index = BoxIndex.build(boxes)
    event = {name: rng.randrange(8) for name in names}
    assert index.top(event, 10) == reference.exact(boxes, event, 10)
    wanted = reference.relaxed(boxes, event, 10, dimensions=index.dimensions)
    assert index.top(event, 10, "relaxed") == wanted


@pytest.mark.parametrize(
    ("dimensions", "intervals", "mode", "combine", "method"),
    [
        (1, 1, "relaxed", "sum", "dense"),
        (16, 1, "exact", "sum", "dense"),
        (16, 1, "relaxed", "max", "threshold:auto"),
        (17, 5, "relaxed", "max", "dense"),
        (64, 1, "relaxed", "max", "dense"),
        (64, 1, "exact", "sum", "dense"),
        (64, 1, "relaxed", "sum", "sparse"),
        (64, 16, "relaxed", "sum", "dense"),
        (65, 17, "relaxed", "max", "dense"),
        (65, 17, "exact", "sum", "dense"),
        (65, 1, "relaxed", "max", "rows"),
        (65, 1, "exact", "sum", "rows"),
        (65, 1, "relaxed", "sum", "sparse"),
    ],
)
def test_what_auto_takes(dimensions: int, intervals: int, mode: str, combine: str, method: str) -> None:
    names = [f"d{i:02}" for i in range(dimensions)]
    boxes = of_boxes([Box(0, {name: Interval(0, 1) for name in names[:intervals]})], names)
    question = Question({}, mode, "overlap", None, combine)
    assert chosen(boxes, dimensions, question, "auto") == method


def test_an_absent_dimension_always_holds_exactly_and_never_relaxed() -> None:
    index = BoxIndex.build([Box("all", {}, 1.0), Box("a", {"a": Interval(1, 2)}, 2.0)])
    assert index.top({"a": 5}, 9) == [Best("all", 1.0)]
    assert index.top({}, 9) == [Best("all", 1.0)]
    assert index.top({"a": 1}, 9, "relaxed") == [Best("a", 1.0)]


def test_an_empty_interval_never_holds() -> None:
    boxes = [Box("e", {"a": Interval(5, 5, low_open=True), "b": Interval(0, 9)}, 2.0)]
    index = BoxIndex.build(boxes)
    wide = {"a": Interval(), "b": Interval()}
    for event in (wide, {"a": 5, "b": 5}, {"a": Interval(0, 9), "b": 1}):
        assert index.top(event, 9) == []
        assert index.top(event, 9, "relaxed") == [Best("e", 1.0)]


def test_columns_need_not_be_in_the_order_of_ids() -> None:
    index = BoxIndex.from_columns(["b", "a"], ["x"], [[0, 0]], [[9, 9]], [1, 1], [[2, 3]])
    assert index.top({"x": 4}, 2) == [Best("a", 1.0), Best("b", 1.0)]
    assert index.top({"x": 4}, 2, "relaxed") == [Best("a", 3.0), Best("b", 2.0)]
    upside_down = BoxIndex.from_columns([1], ["x"], [[9]], [[0]], [1])
    assert upside_down.top({"x": Interval(0, 9)}, 2) == []
    assert BoxIndex.from_columns([], [], np.zeros((0, 0)), np.zeros((0, 0)), []).top({"x": 1}, 1) == []


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"ids": [1, 1]}, "1 is given 2 times"),
        ({"low": [[0, math.nan]]}, "subscription 2 has one end that is NaN"),
        ({"score": [0, math.nan]}, "subscription 2 has a score"),
        ({"weight": [[1, -1]]}, "subscription 2 has a weight"),
        ({"weight": [[1, math.inf]]}, "subscription 2 has a weight"),
        ({"score": [0]}, "'score' has the shape"),
        ({"dimensions": ["a", "b"]}, "'low' has the shape"),
        ({"dimensions": ["a", "a"]}, "given twice"),
        ({"ids": ["a", 1]}, "some ids are text"),
    ],
)
def test_columns_that_are_refused(columns: dict[str, Any], why: str) -> None:
    sound: dict[str, Any] = {
        "ids": [1, 2],
        "dimensions": ["a"],
        "low": [[0, 1]],
        "high": [[5, 6]],
        "score": [1, 2],
        "weight": [[1, 1]],
    }
    BoxIndex.from_columns(**sound)
    with pytest.raises(SubscriptionError, match=why):
        BoxIndex.from_columns(**{**sound, **columns})


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"mode": "strict"}, EventError, "no mode 'strict'"),
        ({"method": "guess"}, EventError, "no method 'guess' of exact"),
        ({"method": "threshold:auto"}, EventError, "no method 'threshold:auto' of exact"),
        ({"mode": "relaxed", "method": "intersect:auto"}, EventError, "of relaxed ranking: use auto"),
        ({"notion": "near"}, EventError, "no notion 'near'"),
        ({"k": -1}, SubscriptionError, "k is -1"),
        ({"k": True}, SubscriptionError, "k is True"),
        ({"event": {"a": "young"}}, EventError, "value of 'a': 'young' is neither"),
        ({"event": {"a": True}}, EventError, "value of 'a': True is neither"),
        ({"factors": {"a": 2.0}}, EventError, "exact ranking goes by scores"),
        ({"combine": "max"}, EventError, "exact ranking goes by scores"),
        ({"mode": "relaxed", "method": "sparse", "combine": "max"}, EventError, "'sparse' knows sums only"),
        ({"mode": "relaxed", "method": "dense", "combine": weigh}, EventError, "'dense' combines by itself"),
        ({"mode": "relaxed", "combine": "mean"}, EventError, "no combination 'mean'"),
        ({"mode": "relaxed", "factors": {"a": -1}}, EventError, "factor of 'a' is -1"),
        ({"mode": "relaxed", "factors": {"z": math.nan}}, EventError, "factor of 'z' is nan"),
        ({"mode": "relaxed", "factors": {"a": math.inf}}, EventError, "factor of 'a' is inf"),
        ({"mode": "relaxed", "combine": lambda _: math.nan}, EventError, "is nan: return a number"),
        ({"mode": "relaxed", "combine": lambda _: "x"}, EventError, "is 'x': return a number"),
    ],
)
def test_questions_that_are_refused(options: dict[str, Any], error: type[Exception], why: str) -> None:
    index = BoxIndex.build([Box("s1", {"a": Interval(0, 5)})])
    with pytest.raises(error, match=why):
        index.top(**{"event": {"a": 1}, "k": 3, **options})


def test_a_repeated_id_is_refused() -> None:
    with pytest.raises(SubscriptionError, match="'s1' is given 2 times"):
        BoxIndex.build([Box("s1", {}), Box("s1", {})])


@pytest.mark.parametrize("text", [False, True])
def test_a_snapshot_answers_as_the_index_did(tmp_path: Path, text: bool) -> None:
    rng = random.Random(8)
    boxes = [draw_box(rng, f"s{number:03}" if text else number) for number in range(100)]
    index = BoxIndex.build(boxes[:80])
    for box in boxes[80:]:
        index.insert(box)
    index.delete(boxes[3].id)
    del boxes[3]
    index.save(tmp_path / "boxes", source={"table": "t"})
    opened = BoxIndex.open(tmp_path / "boxes")
    assert len(opened) == len(index) == 99
    assert opened.dimensions == index.dimensions
    for mode in ("exact", "relaxed"):
        for method in methods(mode):
            event = draw_event(rng)
            assert opened.top(event, 7, mode, method=method) == index.top(event, 7, mode, method=method)
    opened.set_score(boxes[0].id, 1000.0)
    assert opened.top({name: Interval() for name in NAMES}, 1, "exact") is not None
    data = tmp_path / "boxes" / "low.npy"
    data.write_bytes(data.read_bytes()[:-1] + b"x")
    with pytest.raises(SnapshotError, match=r"low\.npy does not have its checksum"):
        BoxIndex.open(tmp_path / "boxes")
