"""Why a box has its rank."""

from __future__ import annotations

import random
from typing import Any

import pytest

from headgate.core.ranks import Best
from headgate.ranking.boxes.index import BoxIndex
from headgate.ranking.model import Box, Interval
from tests.ranking import reference
from tests.ranking.test_boxes import FUNCTIONS, NAMES, draw_boxes, draw_event


def jobs() -> BoxIndex:
    """Return a few boxes; one came later."""
    index = BoxIndex.build(
        [
            Box("s1", {"age": Interval(25, 35), "pay": Interval(low=50)}, 3.0, {"age": 2.0, "pay": 0.5}),
            Box("s2", {"age": Interval(20, 30)}, 2.0, 1.0),
            Box("s3", {"age": Interval(40, 50), "pay": Interval(45, 60)}, 2.0, 1.0),
        ]
    )
    index.insert(
        Box("s4", {"age": Interval(20, 30), "pay": Interval(0, 100)}, 2.0, {"age": 0.25, "pay": 0.25})
    )
    return index


def test_among_the_best() -> None:
    why = jobs().explain({"age": 28, "pay": 65}, "s1", 2)
    assert (why.value, why.rank, why.entered, why.lacks) == (3.0, 1, True, None)
    assert why.last == Best("s2", 2.0)
    assert why.lines() == [
        "rank 1, among the best 2: score 3",
        "  holds  age   28 is in [25, 35]",
        "  holds  pay   65 is in [50, inf]",
        "number 2 is 's2' with 2",
    ]


def test_a_tie_that_the_id_decides() -> None:
    why = jobs().explain({"age": 28, "pay": 65}, "s4", 2)
    assert (why.value, why.rank, why.entered, why.lacks) == (2.0, 3, False, 0.0)
    assert why.lines()[-1] == "it has as much, and 's2' goes before it by id"


def test_what_an_exact_match_lacked() -> None:
    why = jobs().explain({"age": 28, "pay": 65}, "s3", 2)
    assert not why.matches
    assert why.lines() == [
        "no match: 2 of 2 intervals fail",
        "  fails  age   28 is 12 below [40, 50]",
        "  fails  pay   65 is 5 above [45, 60]",
        "number 2 is 's2' with 2",
        "if age and pay held, it would have 2 and rank 3: not enough",
    ]
    one = jobs().explain({"age": 45, "pay": 65}, "s3", 5)
    assert one.lines()[-2:] == [
        "fewer than 5 match, so every match is among the best",
        "if pay held, it would have 2 and rank 1: enough",
    ]


def test_what_a_relaxed_match_lacked() -> None:
    why = jobs().explain({"age": 28, "pay": 50}, "s3", 1, "relaxed", factors={"age": 2})
    assert (why.value, why.rank, why.lacks) == (1.0, 3, 3.5)
    assert why.lines() == [
        "rank 3, not among the best 1: value 1",
        "  fails  age   28 is 12 below [40, 50]   counts 2",
        "  holds  pay   50 is in [45, 60]   counts 1",
        "number 1 is 's1' with 4.5",
        "it lacks 3.5",
        "if age held, it would have 3 and rank 2: not enough",
    ]


def test_words_for_other_events() -> None:
    index = jobs()

    def first(event: dict[str, object], notion: str = "overlap", **more: dict[str, float]) -> str:
        return (
            index.explain(event, "s1", 1, "relaxed", notion=notion, factors=more.get("factors")).sides[0].why
        )

    assert first({}) == "no value for [25, 35]"
    assert first({"age": Interval(30, 40)}) == "[30, 40] overlaps [25, 35]"
    assert first({"age": Interval(1, 20)}) == "[1, 20] is 5 below [25, 35]"
    assert first({"age": Interval(20, 40)}, "within") == "[20, 40] is 5 below and 5 above [25, 35]"
    assert first({"age": Interval(26, 30)}, "within") == "[26, 30] is within [25, 35]"
    assert first({"age": 30}, factors={"age": 0}) == "the event drops it"
    odd = BoxIndex.build([Box(1, {"a": Interval(), "b": Interval(3, 3, low_open=True)}, 1.0)])
    why = odd.explain({}, 1, 1, "relaxed")
    assert [side.why for side in why.sides] == [
        "no value, and [-inf, inf] has no ends",
        "the interval holds nothing",
    ]
    assert why.hopes == ()
    assert odd.explain({}, 1, 1).hopes == ()
    assert odd.explain({}, 1, 0).lines() == [
        "no match: 1 of 2 intervals fail",
        "  holds  a   no value, and [-inf, inf] has no ends",
        "  fails  b   the interval holds nothing",
    ]
    assert odd.explain({}, 1, 1).text() == "\n".join(odd.explain({}, 1, 1).lines())
    assert index.explain({"age": 1}, "s4", 2, "relaxed").lines()[0] == "no match: nothing holds"


@pytest.mark.parametrize("mode", ["exact", "relaxed"])
def test_ranks_values_and_hopes_are_the_reference(mode: str) -> None:
    rng = random.Random(6)
    boxes = draw_boxes(rng, 60)
    index = BoxIndex.build(boxes[:40])
    for box in boxes[40:]:
        index.insert(box)
    for _ in range(40):
        event, k, notion = draw_event(rng), rng.choice((1, 5, 100)), rng.choice(("overlap", "within"))
        box = rng.choice(boxes)
        factors: dict[str, float] = {}
        combine: Any = "sum"
        if mode == "relaxed":
            factors = {name: rng.choice((0, 0.5, 3)) for name in NAMES if rng.random() < 0.3}
            combine = rng.choice(list(FUNCTIONS))
        why = index.explain(event, box.id, k, mode, notion=notion, factors=factors, combine=combine)
        if mode == "exact":
            everyone = reference.exact(boxes, event, 100, notion)
        else:
            everyone = reference.relaxed(
                boxes, event, 100, notion, dimensions=NAMES, factors=factors, combine=FUNCTIONS[combine]
            )
        places = {best.subscription: place for place, best in enumerate(everyone, 1)}
        assert why.rank == places.get(box.id)
        assert why.entered == (box.id in [best.subscription for best in everyone[:k]])
        assert why.last == (everyone[k - 1] if len(everyone) >= k else None)
        if why.rank is not None:
            assert why.value == everyone[why.rank - 1].value
        held = reference.holding(box, event, notion)
        dropped = [name for name in box.intervals if factors.get(name, 1.0) == 0]
        assert {side.dimension for side in why.sides if side.holds} == set(held) - set(dropped)
        for hope in why.hopes:
            # What would be if these intervals had no ends: they hold whatever the event has.
            open_ = Box(
                box.id,
                {**box.intervals, **dict.fromkeys(hope.dimensions, Interval())},
                box.score,
                box.weights,
            )
            others = [open_ if other.id == box.id else other for other in boxes]
            if mode == "exact":
                hoped = reference.exact(others, event, 100, notion)
            else:
                hoped = reference.relaxed(
                    others, event, 100, notion, dimensions=NAMES, factors=factors, combine=FUNCTIONS[combine]
                )
            assert hoped[hope.rank - 1] == Best(box.id, hope.value)
