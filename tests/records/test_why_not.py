"""Near misses: the ranking is that of all filters explained, whatever the index makes of them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.records import reference
from headgate.records.events.columns import EventColumns
from headgate.records.events.encode import encode
from headgate.records.explain.explain import clause_of, explain
from headgate.records.explain.why_not import NEVER, NearMiss, fewest_possible, lower_bounds
from headgate.records.index.index import RecordIndex
from headgate.records.language.parse import parse_filter
from tests.records.random_filters import random_event, random_filter
from tests.seeds import examples

if TYPE_CHECKING:
    from headgate.core.event import Id

pytestmark = pytest.mark.jit_off


def build(*filters: str) -> RecordIndex:
    return RecordIndex.build(Subscription(number, text) for number, text in enumerate(filters))


def brute_force(
    filters: dict[Id, str], event: Event, limit: int = 10, within: int | None = None
) -> list[NearMiss]:
    """Explain everything."""
    found = []
    for identity, text in sorted(filters.items()):
        tree = parse_filter(text)
        failed = fewest_possible(tree, event.attributes)
        if failed is None or reference.matches(tree, event.attributes):
            continue
        clauses = tuple(clause_of(node, event.attributes) for node in failed)
        if within is None or len(clauses) <= within:
            found.append(NearMiss(identity, text, clauses))
    return sorted(found, key=lambda miss: len(miss.failed))[:limit]


def some_filter(rng: random.Random) -> str:
    """Draw a filter of any shape: one clause, a few, a normal form, or a tree too wide for one."""
    draw = rng.random()
    wild = rng.random() < 0.5
    if draw < 0.7:
        return random_filter(rng, rng.choice([1, 2, 3, 4]), wild=wild)
    groups, each = (4, 3) if draw < 0.85 else (2, 3)
    inner, outer = rng.choice([(" OR ", " AND "), (" AND ", " OR ")])
    return outer.join(
        "(" + inner.join(random_filter(rng, 0, wild=wild) for _ in range(each)) + ")" for _ in range(groups)
    )


@examples(40)
@given(st.integers(0, 2**32))
def test_the_ranking_is_that_of_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    filters: dict[Id, str] = {number: some_filter(rng) for number in range(30)}
    late = set(rng.sample(range(30), rng.choice([0, 5])))
    index = RecordIndex.build(Subscription(n, text) for n, text in filters.items() if n not in late)
    for number in late:
        index.subscribe(Subscription(number, filters[number]))
    for number in rng.sample(range(30), 4):
        index.unsubscribe(number)
        del filters[number]
    for _ in range(3):
        event = Event.from_row(random_event(rng, 1))
        for limit, within in ((30, None), (1, None), (4, None), (30, 1), (3, 2)):
            assert index.why_not(event, limit, within) == brute_force(filters, event, limit, within)


@examples(40)
@given(st.integers(0, 2**32))
def test_bounds_are_below_and_tell_what_matches(seed: int) -> None:
    rng = random.Random(seed)
    filters = [some_filter(rng) for _ in range(30)]
    built = build(*filters).built
    event = Event.from_row(random_event(rng, 1))
    encoded = encode(EventColumns([event]), built)
    bounds = lower_bounds(built, encoded, np.zeros(30, np.uint8)).tolist()
    for text, bound in zip(filters, bounds, strict=True):
        found = explain(parse_filter(text), event.attributes)
        failed = fewest_possible(parse_filter(text), event.attributes)
        assert found.matches is (bound == 0), text
        assert (failed is None) is (bound == NEVER), text
        if failed is not None:
            assert len(found.nearest_miss) <= len(failed), text
            assert bound <= len(failed), text


WIDE = " AND ".join(f"(a{n} = 1 OR b{n} = 1 OR c{n} = 1)" for n in range(4))
NEAR: list[tuple[str, dict[str, object], list[str] | None]] = [
    ("a = 1 AND b = 2", {"a": 1}, ["b = 2"]),
    ("a = 1 AND b = 2", {"a": 1, "b": 2}, None),
    ("a = 1 OR (b = 2 AND c = 3)", {"b": 2}, ["a = 1"]),
    # One clause that the index checks twice, and two that it checks once.
    ("a BETWEEN 1 AND 2.5", {}, ["a BETWEEN 1 AND 2.5"]),
    ("a BETWEEN 1 AND '9' AND b BETWEEN 1 AND 2.5", {}, ["a BETWEEN 1 AND '9'", "b BETWEEN 1 AND 2.5"]),
    ("a > 1 AND a < 9", {}, ["a > 1", "a < 9"]),
    ("a = 1 AND a = 1", {}, ["a = 1", "a = 1"]),
    ("a NOT IN (1, 2) AND NOT b LIKE '%x%'", {"a": 1, "b": "x"}, ["a NOT IN (1, 2)", "b NOT LIKE '%x%'"]),
    (
        "array_contains(a, 1) AND NOT array_contains(a, 2)",
        {"a": [2]},
        ["array_contains(a, 1)", "NOT array_contains(a, 2)"],
    ),
    (WIDE, {"a0": 1, "b1": 1, "c2": 1}, ["a3 = 1"]),
    (f"({WIDE}) OR z", {}, ["z"]),
    (f"({WIDE}) OR FALSE", {"a0": 1}, ["a1 = 1", "a2 = 1", "a3 = 1"]),
    (f"({WIDE}) AND (z = NULL OR z = 5)", {"a0": 1, "a1": 1, "a2": 1}, ["a3 = 1", "z = 5"]),
    # No event can take these ways.
    ("a = NULL", {"a": 1}, None),
    ("a = NULL OR (b AND c)", {}, ["b", "c"]),
    ("a > 5 AND a < 3", {"a": 6}, None),
    ("(a > 5 AND a < 3) OR (b AND c)", {"a": 6}, ["b", "c"]),
    ("a > 5 AND (a < 3 OR FALSE)", {"a": 6}, None),
    ("a NOT BETWEEN 1 AND NULL AND a > 5", {"a": 6}, None),
    ("a BETWEEN 3 AND 1 OR b", {"a": 3}, ["b"]),
    ("a NOT IN (1, NULL) OR (b AND c)", {"a": 1}, ["b", "c"]),
    ("arrays_overlap(a, array()) OR b", {"a": []}, ["b"]),
    ("FALSE", {}, None),
    ("a AND NULL", {"a": True}, None),
]


@pytest.mark.parametrize(("text", "data", "failed"), NEAR)
def test_examples(text: str, data: dict[str, object], failed: list[str] | None) -> None:
    found = [miss.failed for miss in build(text).why_not(Event("e", data))]
    assert [[clause.text for clause in clauses] for clauses in found] == ([] if failed is None else [failed])


def test_ties_are_in_the_order_of_ids() -> None:
    # Every bound is 1, and only one filter in ten has one clause.
    texts = ["a > 1" if number % 10 == 9 else "a > 1 AND a < 9" for number in range(200)]
    index = build(*texts)
    assert [miss.id for miss in index.why_not(Event("e", {}), 3)] == [9, 19, 29]
    everything = [miss.id for miss in index.why_not(Event("e", {}), 200)]
    assert everything == [*range(9, 200, 10), *(number for number in range(200) if number % 10 != 9)]
    assert len(index.why_not(Event("e", {}), 200, within=1)) == 20


def test_ids_may_be_text_and_late() -> None:
    index = RecordIndex.build([Subscription("b", "x = 1"), Subscription("d", "x = 1 AND y = 1")])
    index.subscribe(Subscription("a", "x = 2"))
    index.subscribe(Subscription("c", "y = 1 AND x IS NULL"))
    assert [miss.id for miss in index.why_not(Event("e", {}))] == ["a", "b", "c", "d"]
    index.unsubscribe("b")
    index.unsubscribe("a")
    assert [miss.id for miss in index.why_not(Event("e", {}))] == ["c", "d"]
    assert index.why_not(Event("e", {}), 0) == []


def test_nothing_is_near_an_empty_index() -> None:
    assert RecordIndex.build([]).why_not(Event("e", {"a": 1})) == []


def test_a_snapshot_gives_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = random.Random(5)
    index = build(*(some_filter(rng) for _ in range(60)))
    place = tmp_path_factory.mktemp("near") / "snapshot"
    index.save(place)
    event = Event.from_row(random_event(rng, 1))
    assert RecordIndex.open(place).why_not(event) == index.why_not(event)
