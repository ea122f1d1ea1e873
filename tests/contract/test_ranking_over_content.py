"""Ranking works over every content room: both modes, changes, batches, snapshots, against the slow twin."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.ranking.filters.index import EXACT, MODES, RELAXED, RankedIndex
from tests.contract.rooms import Room, every_kind
from tests.ranking import filters_reference as content_reference
from tests.ranking.asking import top_batch
from tests.seeds import examples, seeds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from headgate import Best
    from headgate.core.event import Id
    from headgate.core.ranks import Weights

pytestmark = pytest.mark.jit_off

# Seeds instead of drawn numbers: a graph pattern takes more of them than hypothesis wants to keep.
randoms = st.integers(0, 2**32 - 1).map(random.Random)
SCORES = (-1.5, 0.0, 1.0, 1.0, 1.0, 2.0, 7.25)
# The sum of 0.1, 0.2 and 0.3 depends on the order.
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 1.0, 1.0, 1.0, 2.0)


def draw_weights(room: Room, rng: random.Random, text: str) -> Weights | None:
    clauses = room.index.clauses(text, room.index.dialect)
    names = sorted({name for clause in clauses for name in clause.names})
    kind = rng.randrange(3)
    if kind == 0 and names:
        return {name: rng.choice(WEIGHTS) for name in rng.sample(names, rng.randint(1, len(names)))}
    return [rng.choice(WEIGHTS) for _ in clauses] if kind == 1 else None


def draw(room: Room, rng: random.Random, identity: Id) -> Subscription:
    text = room.draw_filter(rng)
    if rng.random() < 0.5:
        text = room.both(text, room.draw_filter(rng))
    weights = draw_weights(room, rng, text)
    return Subscription(identity, text, room.index.dialect, score=rng.choice(SCORES), weights=weights)


def draw_all(room: Room, rng: random.Random, count: int, *, text: bool) -> list[Subscription]:
    numbers = rng.sample(range(100), count)
    return [draw(room, rng, f"s{number:02}" if text else number - 50) for number in numbers]


def draw_factors(room: Room, rng: random.Random) -> Mapping[str, float] | None:
    if rng.random() < 0.3:
        return None
    names = [name for name in room.names if rng.random() < 0.5]
    return {name.upper(): rng.choice((0.0, 0.5, 1.0, 3.0)) for name in names} | {"nobody": 2.0}


def is_odd(identity: Id) -> bool:
    return str(identity)[-1] in "13579"


def answer(
    room: Room,
    subscriptions: list[Subscription],
    event: Event,
    mode: str,
    factors: Mapping[str, float] | None = None,
) -> list[Best]:
    """Rank all, slowly."""
    if mode == EXACT:
        return content_reference.exact(subscriptions, event, 1000, room=room.index)
    return content_reference.relaxed(subscriptions, event, 1000, room=room.index, factors=factors)


@every_kind
@examples(15)
@given(randoms, st.booleans())
def test_both_modes_are_as_their_slow_twins(room: Room, rng: random.Random, text: bool) -> None:
    subscriptions = draw_all(room, rng, 12, text=text)
    index = RankedIndex.build(subscriptions, room=room.index)
    assert len(index) == 12
    rows = [room.draw_row(rng, number // 2) for number in range(4)]
    factors = draw_factors(room, rng)
    expected: dict[str, list[list[Best]]] = {mode: [] for mode in MODES}
    for row in rows:
        event = Event.from_row(row)
        for mode in MODES:
            asked = factors if mode == RELAXED else None
            right = answer(room, subscriptions, event, mode, asked)
            for k in (0, 1, 3, 12, 2**40):
                assert index.top(event, k, mode, factors=asked) == right[:k]
            odd = [best for best in right if is_odd(best.subscription)]
            assert index.top(event, 2, mode, factors=asked, admitted=is_odd) == odd[:2]
            expected[mode].append(right)
        matches = [best.subscription for best in expected[EXACT][-1]]
        assert index.match(event) == sorted(matches)
    batch = pa.RecordBatch.from_pylist(rows, schema=room.schema)
    for mode in MODES:
        asked = factors if mode == RELAXED else None
        found = top_batch(index, batch, 3, mode, factors=asked)
        assert found == top_batch(index, [Event.from_row(row) for row in rows], 3, mode, factors=asked)
        assert found.schema.names == ["event_id", "subscription_id", "score", "rank"]
        assert found.schema.types[1:] == [pa.string() if text else pa.int64(), pa.float64(), pa.int32()]
        assert [tuple(row.values()) for row in found.to_pylist()] == [
            (row["id"], best.subscription, best.value, rank + 1)
            for row, right in zip(rows, expected[mode], strict=True)
            for rank, best in enumerate(right[:3])
        ]


@every_kind
@examples(10)
@given(randoms)
def test_changes_are_as_a_rebuild(room: Room, rng: random.Random) -> None:
    here = {each.id: each for each in draw_all(room, rng, 8, text=True)}
    index = RankedIndex.build(here.values(), room=room.index)
    for _ in range(30):
        change = rng.randrange(5)
        if change == 0 or not here:
            each = draw(room, rng, f"s{rng.randrange(100):02}")
            if each.id not in here:
                index.subscribe(each)
                here[each.id] = each
            continue
        identity = rng.choice(sorted(here))
        if change == 1:
            index.unsubscribe(identity)
            del here[identity]
        elif change in {2, 3}:
            score = rng.choice(SCORES)
            index.set_score(identity, score)
            here[identity] = replace(here[identity], score=score)
        else:
            weights = draw_weights(room, rng, here[identity].filter)
            index.set_weights(identity, weights)
            here[identity] = replace(here[identity], weights=weights)
        if rng.random() < 0.1:
            index.compact()
    rebuilt = RankedIndex.build(here.values(), room=room.index)
    assert len(index) == len(here)
    assert all((identity in index) is (identity in here) for identity in map("s{:02}".format, range(100)))
    rows = [room.draw_row(rng, number) for number in range(5)]
    factors = draw_factors(room, rng)
    batch = pa.RecordBatch.from_pylist(rows, schema=room.schema)
    for _ in range(2):
        for event in map(Event.from_row, rows):
            assert index.match(event) == rebuilt.match(event)
            for k in (1, 4, 20):
                assert index.top(event, k) == rebuilt.top(event, k)
                found = index.top(event, k, RELAXED, factors=factors)
                assert found == rebuilt.top(event, k, RELAXED, factors=factors)
        assert index.match_batch(batch) == rebuilt.match_batch(batch)
        for mode in MODES:
            assert top_batch(index, batch, 3, mode) == top_batch(rebuilt, batch, 3, mode)
        index.compact()


@every_kind
@pytest.mark.parametrize("relaxed", [True, False])
def test_a_saved_index_answers_the_same(room: Room, tmp_path: Path, *, relaxed: bool) -> None:
    rng = random.Random(3)
    index = RankedIndex.build(draw_all(room, rng, 12, text=True), room=room.index, relaxed=relaxed)
    for each in (draw(room, rng, "later"), draw(room, rng, "s")):
        index.subscribe(each)
    index.set_score("later", 9.0)
    index.unsubscribe("s")
    index.save(tmp_path / "snapshot")
    opened = RankedIndex.open(tmp_path / "snapshot", room=room.index)
    assert opened.relaxed is relaxed
    for number in range(5):
        event = Event.from_row(room.draw_row(rng, number))
        for mode in MODES if relaxed else (EXACT,):
            assert opened.top(event, 20, mode) == index.top(event, 20, mode)
    opened.subscribe(draw(room, rng, "s"))
    opened.set_score("s", -3.0)
    assert opened.score("s") == -3.0
    assert opened.score("later") == 9.0


@every_kind
def test_a_filter_is_its_clauses(room: Room) -> None:
    rng = random.Random(4)
    for number in seeds(60):
        text = room.both(room.draw_filter(rng), room.draw_filter(rng))
        clauses = room.index.clauses(text, room.index.dialect)
        assert len(clauses) >= 2
        event = Event.from_row(room.draw_row(rng, number))
        together = all(
            content_reference.holds(room.index, clause.filter, room.index.dialect, event)
            for clause in clauses
        )
        holds = content_reference.holds(room.index, text, room.index.dialect, event)
        assert holds is together if room.whole else together or not holds
        for clause in clauses:
            assert room.index.clauses(clause.filter, room.index.dialect) == (clause,)


@every_kind
def test_numbers_are_matches(room: Room) -> None:
    rng = random.Random(5)
    index = room.index.build(
        [Subscription(3 * n, room.draw_filter(rng), room.index.dialect) for n in range(30)]
    )
    for n in range(5):
        index.subscribe(Subscription(3 * n + 1, room.draw_filter(rng), room.index.dialect))
    index.unsubscribe(9)
    for number in range(10):
        event = Event.from_row(room.draw_row(rng, number))
        matching = index.match(event)
        assert index.numbers(event).tolist() == matching
        for at_least in (None, 4, 40, 1000):
            later = [each for each in matching if at_least is None or int(each) >= at_least]
            for count in (None, 0, 1, 3, 100):
                assert index.numbers(event, count, at_least).tolist() == later[:count]
