"""Filters in SQL that are ranked through boxes and lists of codes, against the reference."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Engine, Event, Subscription
from headgate.ranking.filters import boxed, coded
from headgate.ranking.filters.explain import BOXED, BY_RANK, LISTED, LISTED_IN_PART, SUMMED
from headgate.ranking.filters.index import RankedIndex
from headgate.records.index.index import RecordIndex
from headgate.workloads.ranking import Ranking
from tests.ranking.asking import top_batch
from tests.ranking.filters_reference import exact, relaxed
from tests.records.random_filters import random_filter
from tests.seeds import examples

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from headgate.core.ranks import Weights

seeds = st.randoms(use_true_random=False)
VALUES: tuple[object, ...] = (
    *(0, 1, 2, 3, 5, 7, -1, 2**53, 2**53 + 1, 0.5, 1.5, 2.5, 3.0, float("nan")),
    *(Decimal("1.5"), Decimal("2.500"), Decimal(3)),
    *("x", "y", "z", "2", "2.5", True, None),
)
NUMBERS = ("0", "1", "2", "3", "5", "7", "-1", "9007199254740993", "0.5", "1.5", "2.5", "1.25", "-0.5")


@pytest.fixture(autouse=True, params=["boxes", "lists"])
def few_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Code any number of rows, whatever they have in common: as boxes if they can be, or all in lists."""
    monkeypatch.setattr(coded, "LEAST", 1)
    monkeypatch.setattr(coded, "CODED", 0.0)
    monkeypatch.setattr(boxed, "LEAST", 1 if request.param == "boxes" else 1000)
    monkeypatch.setattr(boxed, "SHARE", 0.0)
    monkeypatch.setattr(boxed, "FULL", 0.0)
    return str(request.param)


def random_clause(rng: random.Random) -> str:
    name = rng.choice(["a", "b", "C"])
    low, high = sorted((rng.choice(NUMBERS) for _ in range(2)), key=float)
    return rng.choice(
        [
            f"{name} BETWEEN {low} AND {high}",
            f"{name} {rng.choice(['<', '<=', '>', '>=', '='])} {low}",
            f"{name} = '{rng.choice('xyz')}'",
            f"{name} IN ('x', 'z')",
            f"{name} IN ({', '.join(str(rng.randrange(8)) for _ in range(3))})",
            f"({name} IN (0.5, 2.5) OR {name} = '{rng.choice('xyz2')}')",
            f"{name} NOT IN (1, {rng.randrange(8)})",
            f"{name} BETWEEN {low} AND '{rng.choice('xyz2')}'",
            f"{name} <> {high}",
            f"({name} = {low} OR {rng.choice('abc')} >= {high})",
            f"lower({name}) = '{rng.choice('xyz')}'",
            f"{name} LIKE '%{rng.choice('xyz2')}%'",
            f"{name} IS {rng.choice(['', 'NOT '])}NULL",
        ]
    )


def random_subscription(rng: random.Random, identity: str) -> Subscription:
    if rng.random() < 0.2:
        return Subscription(identity, random_filter(rng, wild=True), score=rng.randrange(4))
    clauses = [random_clause(rng) for _ in range(rng.randint(1, 4))]
    weights: Weights | None = rng.choice(
        [None, [rng.choice([0.1, 0.2, 0.3, 0.0, 1.0]) for _ in clauses], [rng.random() for _ in clauses]]
    )
    return Subscription(identity, " AND ".join(clauses), score=rng.randrange(4), weights=weights)


def random_event(rng: random.Random, number: int) -> Event:
    names = rng.sample(["a", "b", "c"], rng.randint(1, 3))
    return Event(f"e{number}", {name: rng.choice(VALUES) for name in names})


def check(
    index: RankedIndex, subscriptions: list[Subscription], events: list[Event], rng: random.Random
) -> None:
    for event in events:
        k = rng.choice([1, 3, len(subscriptions) + 5])
        factors = rng.choice([None, {"A": rng.choice([0, 0.3, 2])}, {"b": 0.7, "c": 0}])
        assert index.top(event, k) == exact(subscriptions, event, k, room=RecordIndex)
        table = top_batch(index, [event, event], k).to_pylist()
        assert [row["subscription_id"] for row in table[: len(table) // 2]] == [
            each.subscription for each in exact(subscriptions, event, k, room=RecordIndex)
        ]
        wanted = relaxed(subscriptions, event, k, room=RecordIndex, factors=factors)
        assert index.top(event, k, "relaxed", factors=factors) == wanted
        rows = top_batch(index, [event, event], k, "relaxed", factors=factors).to_pylist()
        assert [(row["subscription_id"], row["score"]) for row in rows] == [
            (each.subscription, each.value) for each in wanted
        ] * 2


@examples(10)
@given(rng=seeds)
def test_boxes_rank_as_the_reference_does(rng: random.Random) -> None:
    subscriptions = [random_subscription(rng, f"s{n:02}") for n in range(14)]
    index = RankedIndex.build(subscriptions, room=RecordIndex)
    check(index, subscriptions, [random_event(rng, n) for n in range(2)], rng)


@examples(6)
@given(rng=seeds)
def test_boxes_while_subscriptions_change_and_after(
    rng: random.Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    there = {each.id: each for each in (random_subscription(rng, f"s{n:02}") for n in range(10))}
    index = RankedIndex.build(there.values(), room=RecordIndex)
    for n in range(10, 18):
        fresh = random_subscription(rng, f"s{n:02}")
        index.subscribe(fresh)
        there[fresh.id] = fresh
        gone = rng.choice(list(there))
        index.unsubscribe(gone)
        del there[gone]
        changed = there[rng.choice(list(there))]
        if n % 2:
            score = float(rng.randrange(4))
            index.set_score(changed.id, score)
            there[changed.id] = Subscription(changed.id, changed.filter, score=score, weights=changed.weights)
        else:
            weights = [rng.random() for _ in RecordIndex.clauses(changed.filter)]
            index.set_weights(changed.id, weights)
            there[changed.id] = Subscription(changed.id, changed.filter, score=changed.score, weights=weights)
    events = [random_event(rng, n) for n in range(2)]
    check(index, list(there.values()), events, rng)
    path = tmp_path_factory.mktemp("boxes") / "snapshot"
    index.save(path)
    check(index, list(there.values()), events, rng)
    check(RankedIndex.open(path, room=RecordIndex), list(there.values()), events, rng)


def intervals(count: int) -> list[Subscription]:
    rows = Ranking(3).subscriptions(np.arange(count), 1).to_pylist()
    return [
        Subscription(row["id"], row["filter"], score=row["score"], weights=dict(row["weights"]))
        for row in rows
    ]


def test_texts_that_differ_in_numbers_are_coded_however_they_come(tmp_path: Path, few_rows: str) -> None:
    subscriptions = intervals(300)
    engine = Engine.build(subscriptions)
    events = Ranking(3).events(np.arange(3), 1)
    assert getattr(engine.backend.index.clauses, "boxes" if few_rows == "boxes" else "listed") > 290
    engine.save(tmp_path / "snapshot")
    opened = Engine.open(tmp_path / "snapshot")
    for row in events.to_pylist():
        event = Event.from_row(row)
        wanted = relaxed(subscriptions[:40], event, 5, room=RecordIndex)
        some = Engine.build(subscriptions[:40])
        assert some.top(event, 5, mode="relaxed") == wanted
        assert opened.top(event, 5, mode="relaxed") == engine.top(event, 5, mode="relaxed")
    assert pa.table(top_batch(engine.backend.index, events, 7, "relaxed")).num_rows == 21


def test_an_explanation_says_what_ranked_it(few_rows: str) -> None:
    index = RankedIndex.build(
        [
            Subscription("s", "a BETWEEN 1 AND 5 AND b > 2", weights=[0.5, 2]),
            Subscription("t", "a > 9 OR b = 3", weights=[1]),
            Subscription("u", "a > 9 AND name LIKE '%x'"),
        ],
        room=RecordIndex,
    )
    event = Event("e", {"a": 4, "b": 1})
    found = index.explain_rank(event, "s", 1, "relaxed")
    assert [(each.filter, each.held) for each in found.clauses] == [
        ("a BETWEEN 1 AND 5", True),
        ("b > 2", False),
    ]
    first = BOXED if few_rows == "boxes" else LISTED
    assert (found.rank, found.value, found.through) == (1, 0.5, first)
    assert f"ranked through {first}" in found.lines()
    index.subscribe(Subscription("v", "a > 2"))
    for identity, through in (("t", LISTED), ("u", LISTED_IN_PART), ("v", SUMMED)):
        told = index.explain_rank(event, identity, 1, "relaxed")
        assert told.through == through
        assert (f"ranked through {through}" in told.lines()) == (through != SUMMED)
    assert index.explain_rank(event, "t", 1).through == BY_RANK
    index.compact()
    assert index.explain_rank(event, "v", 1, "relaxed").through == first


def test_sums_of_boxes_are_in_the_order_of_the_clauses() -> None:
    clauses, weights = ["a > 1", "b > 2", "a > 3"], [0.1, 0.2, 0.3]
    index = RankedIndex.build(
        [
            Subscription("s", " AND ".join(clauses), weights=weights),
            Subscription("t", " AND ".join(reversed(clauses)), weights=weights[::-1]),
        ],
        room=RecordIndex,
    )
    assert index.clauses.boxes + index.clauses.listed == 2
    best = index.top(Event("e", {"a": 9, "b": 9}), 5, "relaxed")
    assert [(each.subscription, each.value) for each in best] == [
        ("s", (0.1 + 0.2) + 0.3),
        ("t", (0.3 + 0.2) + 0.1),
    ]
