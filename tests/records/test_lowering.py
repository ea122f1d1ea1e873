"""Every predicate, lowered and not, against the reference on values at the edges of every type."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.records import reference
from headgate.records.index.index import RecordIndex
from headgate.records.language.model import (
    ArrayContains,
    ArraysOverlap,
    Comparison,
    In,
    Like,
    Literal,
    LiteralType,
)
from headgate.records.language.parse import parse_filter
from headgate.records.language.printing import print_literal
from headgate.records.programs import lowering
from tests.records.edges import FILTERS, LITERALS, SCALARS, TREES, VALUES
from tests.seeds import examples


@pytest.fixture(scope="module")
def index() -> RecordIndex:
    found = RecordIndex.build(Subscription(number, text) for number, text in enumerate(FILTERS))
    found.built.arrays.check()
    found.built.texts.check()
    return found


def test_every_predicate_on_every_value(index: RecordIndex) -> None:
    events = [Event(place, {"a": value}) for place, value in enumerate(VALUES)]
    events.append(Event(len(VALUES), {}))
    pairs = index.match_batch(events)
    found = {(row["event_id"], row["subscription_id"]) for row in pairs.to_pylist()}
    wrong = []
    for place, event in enumerate(events):
        for number, tree in enumerate(TREES):
            expected = reference.evaluate(tree, event.attributes)
            if ((place, number) in found) is not (expected is True):
                wrong.append((FILTERS[number], event.data, expected))
    assert wrong == []


def test_next_evaluates_the_same(index: RecordIndex) -> None:
    for value in VALUES:
        event = Event("e", {"a": value})
        matching = index.match(event)
        assert index.next(event, 0) == min(matching, default=None)
        for middle in (len(FILTERS) // 3, len(FILTERS) // 2):
            assert index.next(event, middle) == min((n for n in matching if int(n) >= middle), default=None)


@examples(150)
@given(
    st.sampled_from(LITERALS),
    st.integers(-(2**63), 2**63 - 1) | st.floats() | st.sampled_from(SCALARS) | st.text(max_size=3),
)
def test_comparisons_are_a_partition(literal: str, value: object) -> None:
    """Exactly one of <, = and > holds, or none where the types do not meet."""
    attributes = Event("e", {"a": value}).attributes
    less, equal, greater = (reference.evaluate(parse_filter(f"a {op} {literal}"), attributes) for op in "<=>")
    assert [less, equal, greater].count(True) == (0 if less is None else 1)
    assert reference.evaluate(parse_filter(f"a <= {literal}"), attributes) is reference.any_of((less, equal))
    assert reference.evaluate(parse_filter(f"a >= {literal}"), attributes) is reference.any_of(
        (greater, equal)
    )
    assert reference.evaluate(parse_filter(f"a != {literal}"), attributes) is reference.negate(equal)


def test_a_double_meets_every_whole_number_that_rounds_to_it() -> None:
    near = [2**53 + delta for delta in range(-3, 6)]
    near += [2**63 - delta for delta in (1, 511, 512, 513, 1024, 1025)]
    for value in near:
        for double in {float(value), math.nextafter(float(value), math.inf)}:
            literal = print_literal(Literal(LiteralType.DOUBLE, double))
            index = RecordIndex.build(
                Subscription(n, f"a {op} {literal}") for n, op in enumerate(("<", "=", ">"))
            )
            expected = 0 if float(value) < double else 1 if float(value) == double else 2
            assert index.match(Event("e", {"a": value})) == [expected]


def test_leaves_of_long_predicates_are_not_kept() -> None:
    """Else some thousands of long texts would stay in the memory of a worker."""
    long, many = "x" * 1000, ", ".join(map(str, range(100)))
    texts = [f"a = '{long}'", f"a LIKE '{long}%'", f"a IN ('{long}', 'b')", f"a IN ({many})"]
    texts += [f"array_contains(a, '{long}')", f"arrays_overlap(a, array('{long}'))"]
    kept = lowering.lower_again.cache_info
    # Full, it would not grow.
    lowering.lower_again.cache_clear()
    before = kept().currsize
    for text in texts:
        lower_all(text)
    assert kept().currsize == before
    for _ in range(2):
        lower_all("a = 'of the usual length, and never seen before'")
    assert kept().currsize == before + 1


def lower_all(text: str) -> None:
    """Lower a filter that is one predicate."""
    tree = parse_filter(text)
    assert isinstance(tree, Comparison | Like | In | ArrayContains | ArraysOverlap)
    lowering.lower(tree, negated=False)
