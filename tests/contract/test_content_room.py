"""What every content room promises, in one suite: match, next, explain and match_batch tell one story."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.errors import EventError, SubscriptionError
from tests.contract.rooms import Room, every_room
from tests.seeds import examples

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.contents.portions import Portion
    from headgate.contents.protocol import Content
    from headgate.core.event import Id

pytestmark = pytest.mark.jit_off

# Seeds instead of drawn numbers: a graph pattern takes more of them than hypothesis wants to keep.
randoms = st.integers(0, 2**32 - 1).map(random.Random)


def name_of(number: int, *, text: bool) -> Id:
    """Ids whose order is not the order they are given in."""
    return f"s{number * 7 % 100:02}" if text else number * 7 % 100 - 50


def drawn(room: Room, rng: random.Random, *, text: bool, count: int = 12) -> tuple[Content, list[Id]]:
    subscriptions = [
        Subscription(name_of(n, text=text), room.draw_filter(rng), room.index.dialect) for n in range(count)
    ]
    return room.index.build(subscriptions), sorted(subscription.id for subscription in subscriptions)


@every_room
@examples(40)
@given(randoms, st.booleans())
def test_one_story(room: Room, rng: random.Random, text: bool) -> None:
    index, ids = drawn(room, rng, text=text)
    assert len(index) == len(ids)
    rows = [room.draw_row(rng, number) for number in range(5)]
    expected: list[tuple[object, Id]] = []
    for row in rows:
        event = Event.from_row(row)
        matching = index.match(event)
        assert matching == sorted(set(matching))
        assert set(matching) <= set(ids)
        for identity in ids:
            assert index.explain(event, identity).matches is (identity in matching)
            later = [match for match in matching if not match < identity]  # type: ignore[operator]
            assert index.next(event, identity) == (later[0] if later else None)
        expected += [(row["id"], identity) for identity in matching]
    batch = pa.RecordBatch.from_pylist(rows, schema=room.schema)
    found = index.match_batch(batch)
    assert found.schema.names == ["event_id", "subscription_id"]
    assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == expected


@every_room
@examples(10)
@given(randoms)
def test_portions_tell_the_same_story(room: Room, rng: random.Random) -> None:
    index, ids = drawn(room, rng, text=False)
    rows = [room.draw_row(rng, number) for number in range(9)]
    batch = pa.RecordBatch.from_pylist(rows, schema=room.schema)
    events = [Event.from_row(row) for row in rows]
    for late in (False, True):
        if late:
            index.unsubscribe(ids[0])
            index.subscribe(Subscription(60, room.draw_filter(rng), room.index.dialect))
        expected = [(n, found) for n, event in enumerate(events) for found in index.match(event)]
        for most in (1, 3 * len(index), 1000 * len(index)):
            for given_as in (batch, events):
                portions = [*index.ask(given_as, batch.column("id"), most)]
                assert [each.begin for each in portions] == [0, *(each.end for each in portions[:-1])]
                assert portions[-1].end == len(rows)
                # One event by itself may have more.
                assert all(len(each.rows) <= most or len({*each.rows.tolist()}) == 1 for each in portions)
                found = [
                    pair
                    for each in portions
                    for pair in zip(each.rows.tolist(), sorted_within(each), strict=True)
                ]
                assert found == expected


def sorted_within(portion: Portion) -> list[int]:
    """List the ids by event and id: within an event, any order is right."""
    return [*map(int, portion.numbers[np.lexsort((portion.numbers, portion.rows))])]


@every_room
def test_types_of_the_answer(room: Room) -> None:
    rng = random.Random(3)
    for text, kind in ((True, pa.string()), (False, pa.int64())):
        index, _ = drawn(room, rng, text=text)
        for rows in ([], [room.draw_row(rng, 0)]):
            found = index.match_batch(pa.RecordBatch.from_pylist(rows, schema=room.schema))
            assert found.schema.types == [pa.int64(), kind]


@every_room
def test_two_columns_that_only_case_tells_apart_are_refused(room: Room) -> None:
    rng = random.Random(5)
    batch = pa.RecordBatch.from_pylist([room.draw_row(rng, 0)], schema=room.schema)
    looked_at = "i" if room.name == "records" else "data"
    always = Subscription("always", room.index.always, room.index.dialect)
    some = Subscription("some", "i = 1" if room.name == "records" else room.index.always, room.index.dialect)
    index = room.index.build([always, some])
    for name in ("id", looked_at):
        twice = batch.append_column(name.upper(), batch.column(batch.schema.names.index(name)))
        with pytest.raises(EventError) as refused:
            index.match_batch(twice)
        assert str(refused.value) == (
            f"the column {name} is given twice: names that differ in case only are the same"
        )
    # Columns that nobody looks at may be called anything.
    extra = batch.append_column("extra", pa.array([1])).append_column("EXTRA", pa.array([1]))
    assert "always" in index.match_batch(extra).column(1).to_pylist()


@every_room
def test_asking_twice_gives_the_same(room: Room) -> None:
    rng = random.Random(4)
    index, _ = drawn(room, rng, text=True)
    event = Event.from_row(room.draw_row(rng, 0))
    assert index.match(event) == index.match(event)


@every_room
def test_an_unknown_id_is_an_error(room: Room) -> None:
    index, _ = drawn(room, random.Random(5), text=True)
    with pytest.raises(SubscriptionError, match="there is no subscription 'nobody' here"):
        index.explain(Event.from_row(room.draw_row(random.Random(5), 0)), "nobody")


@every_room
def test_the_order_of_building_does_not_matter(room: Room) -> None:
    rng = random.Random(6)
    subscriptions = [Subscription(number, room.draw_filter(rng), room.index.dialect) for number in range(20)]
    events = [Event.from_row(room.draw_row(rng, number)) for number in range(20)]
    forward, backward = room.index.build(subscriptions), room.index.build(reversed(subscriptions))
    for event in events:
        assert forward.match(event) == backward.match(event)


@every_room
def test_an_index_answers_as_its_parts(room: Room) -> None:
    """Subscriptions do not see each other."""
    rng = random.Random(7)
    subscriptions = [Subscription(number, room.draw_filter(rng), room.index.dialect) for number in range(20)]
    whole = room.index.build(subscriptions)
    alone = {subscription.id: room.index.build([subscription]) for subscription in subscriptions}
    for number in range(10):
        event = Event.from_row(room.draw_row(rng, number))
        assert whole.match(event) == [identity for identity, index in alone.items() if index.match(event)]


@every_room
def test_a_saved_index_answers_the_same(room: Room, tmp_path: Path) -> None:
    rng = random.Random(8)
    index, ids = drawn(room, rng, text=True)
    index.save(tmp_path / "snapshot")
    opened = room.index.open(tmp_path / "snapshot")
    for number in range(10):
        event = Event.from_row(room.draw_row(rng, number))
        assert opened.match(event) == index.match(event)
        assert opened.next(event, ids[4]) == index.next(event, ids[4])
        assert opened.explain(event, ids[4]) == index.explain(event, ids[4])


@every_room
def test_an_empty_index(room: Room) -> None:
    index = room.index.build([])
    row = room.draw_row(random.Random(9), 0)
    assert len(index) == 0
    assert index.match(Event.from_row(row)) == []
    assert index.next(Event.from_row(row), "a") is None
    assert index.match_batch(pa.RecordBatch.from_pylist([row], schema=room.schema)).num_rows == 0
