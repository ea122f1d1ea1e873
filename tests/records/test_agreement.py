"""The index, the reference and the printed form agree on random filters and events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.records import reference
from headgate.records.index.index import RecordIndex
from headgate.records.language.parse import parse_filter
from headgate.records.language.printing import print_filter
from headgate.records.language.rewrite import normalise
from tests.records.random_filters import SCHEMA, random_event, random_filter
from tests.seeds import examples

if TYPE_CHECKING:
    import random

pytestmark = pytest.mark.jit_off

seeds = st.randoms(use_true_random=False)


def build(filters: list[str]) -> RecordIndex:
    index = RecordIndex.build(Subscription(number, text) for number, text in enumerate(filters))
    index.built.arrays.check()
    index.built.texts.check()
    return index


@examples(150)
@given(seeds, st.booleans())
def test_index_agrees_with_reference(rng: random.Random, wild: bool) -> None:
    filters = [random_filter(rng, wild=wild) for _ in range(8)]
    rows = [random_event(rng, identity) for identity in range(8)]
    index = build(filters)
    expected: list[tuple[object, int]] = []
    for row in rows:
        event = Event.from_row(row)
        matching = [
            n for n, text in enumerate(filters) if reference.matches(parse_filter(text), event.attributes)
        ]
        assert index.match(event) == matching, (filters, row)
        expected.extend((row["id"], number) for number in matching)
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    found = index.match_batch(batch).to_pydict()
    assert list(zip(found["event_id"], found["subscription_id"], strict=True)) == expected


@examples(60)
@given(seeds)
def test_next_walks_through_the_matches(rng: random.Random) -> None:
    index = build([random_filter(rng, wild=True) for _ in range(12)])
    event = Event.from_row(random_event(rng, 0))
    walked = []
    at_least = 0
    while (found := index.next(event, at_least)) is not None:
        assert isinstance(found, int)
        walked.append(found)
        at_least = found + 1
    assert walked == index.match(event)


@examples(300)
@given(seeds)
def test_printed_filters_parse_back(rng: random.Random) -> None:
    tree = parse_filter(random_filter(rng, depth=4, wild=True))
    assert parse_filter(print_filter(tree)) == tree


@examples(200)
@given(seeds)
def test_explanations_give_the_verdict(rng: random.Random) -> None:
    text, event = random_filter(rng, wild=True), Event.from_row(random_event(rng, 0))
    found = build([text]).explain(event, 0)
    tree = parse_filter(text)
    assert found.matches == reference.matches(tree, event.attributes)
    if found.matches:
        assert found.nearest_miss == ()
    elif normalise(tree) != parse_filter("FALSE"):
        assert all(clause.held is not True for clause in found.nearest_miss)
