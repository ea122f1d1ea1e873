"""Ranking of record filters: clauses and their weights, factors, ties, and questions that make no sense."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from headgate import Best, Event, Subscription
from headgate.core.ids import Ids
from headgate.core.snapshot import write_snapshot
from headgate.errors import EventError, FilterError, SnapshotError, SubscriptionError
from headgate.ranking.filters.clause_index import ClauseIndex
from headgate.ranking.filters.clauses import Collector, weigh
from headgate.ranking.filters.index import RankedIndex
from headgate.ranking.filters.keys import rank
from headgate.records.index.index import RecordIndex
from tests.lanes import some
from tests.ranking.asking import top_batch

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.core.event import Id
    from headgate.core.ranks import Weights

EVENT = Event("e", {"age": 35, "topic": "news", "tags": ["a", "b"]})


def build(*subscriptions: Subscription) -> RankedIndex:
    return RankedIndex.build(subscriptions, room=RecordIndex)


def top(index: RankedIndex, k: int = 10, mode: str = "exact", **more: object) -> list[tuple[object, float]]:
    return [(best.subscription, best.value) for best in index.top(EVENT, k, mode, **more)]  # type: ignore[arg-type]


# Clauses


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("age > 30", [("age > 30", ("age",))]),
        (
            "Age>30 and (b=1 AND (c AND d))",
            [("Age > 30", ("age",)), ("b = 1", ("b",)), ("c", ("c",)), ("d", ("d",))],
        ),
        ("a = 1 OR b = 2 AND c = 3", [("a = 1 OR b = 2 AND c = 3", ("a", "b", "c"))]),
        ("a BETWEEN 1 AND 2", [("a BETWEEN 1 AND 2", ("a",))]),
        ("NOT (a = 1 OR a = 2)", [("NOT (a = 1 OR a = 2)", ("a",))]),
        ("user.age > 1 AND TRUE", [("user.age > 1", ("user.age",)), ("TRUE", ())]),
        ("a = 1 AND a = 1", [("a = 1", ("a",)), ("a = 1", ("a",))]),
        ("NULL", [("NULL", ())]),
    ],
)
def test_clauses(text: str, clauses: list[tuple[str, tuple[str, ...]]]) -> None:
    assert [tuple(clause) for clause in RecordIndex.clauses(text)] == clauses


def test_clauses_of_another_dialect() -> None:
    found = RecordIndex.clauses("subset(tags, 'a', 'b')", "labels")
    assert [clause.filter for clause in found] == ["array_contains(tags, 'a')", "array_contains(tags, 'b')"]
    index = build(Subscription("s", "subset(tags, 'a', 'x')", "labels", weights=[2, 5]))
    assert top(index, mode="relaxed") == [("s", 2.0)]
    index.set_score("s", 1.0)
    index.subscribe(Subscription("t", "subset(tags, 'x', 'b')", "labels", weights={"TAGS": 3}))
    assert top(index, mode="relaxed") == [("t", 3.0), ("s", 2.0)]


def test_a_bad_filter_has_no_clauses() -> None:
    with pytest.raises(FilterError, match="now is not part of the filter language"):
        RecordIndex.clauses("a > now()")


# Weights


def test_weights_by_attribute_take_the_highest_and_else_1() -> None:
    index = build(
        Subscription(
            "s", "(age = 35 OR topic = 'x') AND age > 1 AND tags IS NOT NULL", weights={"Age": 2, "topic": 5}
        )
    )
    assert top(index, mode="relaxed") == [("s", 5.0 + 2.0 + 1.0)]


def test_each_clause_that_is_written_counts() -> None:
    index = build(
        Subscription("s", "age = 35 AND age = 35"), Subscription("t", "age=35 AND age = 35", weights=[0.5, 4])
    )
    assert top(index, mode="relaxed") == [("t", 4.5), ("s", 2.0)]
    assert index.clauses.distinct == 1


def test_a_weight_of_0_counts_as_holding() -> None:
    index = build(Subscription("s", "age = 35", weights=[0]), Subscription("t", "age = 36", weights=[9]))
    assert top(index, mode="relaxed") == [("s", 0.0)]


def test_sums_are_in_the_order_of_the_clauses() -> None:
    clauses = ["age > 1", "age > 2", "age > 3"]
    weights = [0.1, 0.2, 0.3]
    turned = build(
        Subscription("s", " AND ".join(clauses), weights=weights),
        Subscription("t", " AND ".join(reversed(clauses)), weights=weights[::-1]),
    )
    assert (0.1 + 0.2) + 0.3 > (0.3 + 0.2) + 0.1
    assert top(turned, mode="relaxed") == [("s", (0.1 + 0.2) + 0.3), ("t", (0.3 + 0.2) + 0.1)]


@pytest.mark.parametrize(
    ("weights", "line"),
    [
        ([1.0], "subscription 's' has 1 weights and 2 clauses: give one for each clause"),
        ([1.0, -1.0], "the weight of clause 2 of subscription 's' is -1.0: give a finite number, 0 or more"),
        ([1.0, math.nan], "the weight of clause 2 of subscription 's' is nan"),
        ([1.0, math.inf], "the weight of clause 2 of subscription 's' is inf"),
        ([1.0, True], "the weight of clause 2 of subscription 's' is True"),
        ({"age": "1"}, "the weight of 'age' of subscription 's' is '1'"),
        (
            {"size": 1},
            "subscription 's' weighs 'size', which its filter does not look at: it looks at 'age', 'topic'",
        ),
        ({"age": 1, "AGE": 2}, "subscription 's' weighs two names that differ in case only"),
        ({3: 1}, "subscription 's' weighs 3: name an attribute, by text"),
        (
            "12",
            "the weights of subscription 's' are '12': give a number for each attribute, or for each clause",
        ),
        (
            5.0,
            "the weights of subscription 's' are 5.0: give a number for each attribute, or for each clause",
        ),
        (
            [1e308, 1e308],
            "the weights of subscription 's' add up to more than a float holds: scale them down",
        ),
    ],
)
def test_weights_that_are_refused(weights: Weights, line: str) -> None:
    with pytest.raises(SubscriptionError) as refused:
        build(Subscription("s", "age > 30 AND topic = 'news'", weights=weights))
    assert str(refused.value).startswith(line)
    index = build(Subscription("s", "age > 30 AND topic = 'news'"))
    with pytest.raises(SubscriptionError) as refused:
        index.set_weights("s", weights)
    assert str(refused.value).startswith(line)
    assert top(index, mode="relaxed") == [("s", 2.0)]


def test_a_filter_of_too_many_clauses_is_not_ranked() -> None:
    clauses = RecordIndex.clauses(" AND ".join(["a"] * 10)) * 4_000
    with pytest.raises(SubscriptionError, match="has 40,000 clauses: no more than 32,767 are ranked"):
        weigh(clauses, None, "subscription 's'")


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, True, " ", None])
def test_scores_that_are_refused(score: float) -> None:
    with pytest.raises(SubscriptionError, match="the score of subscription 's' is"):
        Subscription("s", "age > 30", score=score)
    index = build(Subscription("s", "age > 30", score=1.0))
    with pytest.raises(SubscriptionError, match="the score of subscription 's' is"):
        index.set_score("s", score)
    assert top(index) == [("s", 1.0)]


# Questions


def test_ties_go_by_id() -> None:
    names = ["d", "b", "c", "a", "e"]
    index = build(*(Subscription(name, "age > 30 AND topic = 'x'", score=2) for name in names))
    assert top(index) == []
    assert top(index, 3, "relaxed") == [("a", 1.0), ("b", 1.0), ("c", 1.0)]
    index.subscribe(Subscription("bb", "age > 30", score=2))
    index.set_score("d", 3)
    index.set_weights("a", [1.0, 2.0])
    assert top(index, 3, "relaxed") == [("a", 1.0), ("b", 1.0), ("bb", 1.0)]
    numbered = build(*(Subscription(n, "age > 30", score=-(n % 2)) for n in (10, 9, -1, 2)))
    assert top(numbered) == [(2, 0.0), (10, 0.0), (-1, -1.0), (9, -1.0)]


def test_scores_of_both_zeros_are_equal() -> None:
    index = build(Subscription("b", "age > 30", score=-0.0), Subscription("a", "age > 30", score=0.0))
    assert top(index) == [("a", 0.0), ("b", 0.0)]


@pytest.mark.parametrize("mode", ["exact", "relaxed"])
def test_how_many_are_wanted(mode: str) -> None:
    index = build(*(Subscription(n, "age > 30", score=n) for n in range(5)))
    assert top(index, 0, mode) == []
    assert len(top(index, 5, mode)) == len(top(index, 6, mode)) == len(top(index, 2**40, mode)) == 5
    assert len(top_batch(index, [EVENT], 2**40, mode)) == 5
    assert len(top_batch(index, [EVENT], 0, mode)) == 0
    for k in (-1, 1.5, True, "3", None):
        with pytest.raises(SubscriptionError, match="give how many are wanted, a whole number from 0 up"):
            index.top(EVENT, k, mode)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["exact", "relaxed"])
def test_an_empty_index(mode: str) -> None:
    index = build()
    assert (len(index), top(index, 3, mode), index.match(EVENT)) == (0, [], [])
    assert top_batch(index, [EVENT], 3, mode).num_rows == 0
    index.subscribe(Subscription(7, "age > 30", score=1.0))
    assert top(index, 3, mode) == [(7, 1.0)]
    with pytest.raises(SubscriptionError, match="ids here are whole numbers"):
        index.subscribe(Subscription("s", "age > 30"))
    index.unsubscribe(7)
    assert top(index, 3, mode) == []


def test_modes_and_factors_that_are_refused() -> None:
    index = build(Subscription("s", "age > 30"))
    with pytest.raises(SubscriptionError, match="there is no mode 'fuzzy': use 'exact' or 'relaxed'"):
        index.top(EVENT, 1, "fuzzy")
    with pytest.raises(SubscriptionError, match="factors re-weigh clauses, which mode 'exact' does not"):
        index.top(EVENT, 1, factors={"age": 2})
    for factors, line in (
        ({"age": -1}, "the factor of 'age' is -1: give a finite number, 0 or more; 0 drops it"),
        ({"age": math.nan}, "the factor of 'age' is nan"),
        ({"age": math.inf}, "the factor of 'age' is inf"),
        ({"age": "1"}, "the factor of 'age' is '1'"),
        ({1: 1}, "there is a factor for 1: name an attribute, by text"),
        ({"age": 1, "Age": 2}, "there are two factors for 'age'"),
        ([1], "factors are \\[1\\]: give a number for each attribute"),
    ):
        with pytest.raises(SubscriptionError, match=line):
            index.top(EVENT, 1, "relaxed", factors=factors)  # type: ignore[arg-type]
    exact = RankedIndex.build([Subscription("s", "age > 30")], room=RecordIndex, relaxed=False)
    with pytest.raises(
        SubscriptionError, match="the clauses are not indexed: build the index with relaxed=True"
    ):
        exact.top(EVENT, 1, "relaxed")


def test_factors() -> None:
    index = build(
        Subscription("s", "age > 30 AND topic = 'news'", weights=[2, 3]),
        Subscription("t", "age > 30 OR topic = 'news'", weights=[5]),
        Subscription("u", "TRUE AND tags IS NULL"),
    )
    assert top(index, mode="relaxed") == [("s", 5.0), ("t", 5.0), ("u", 1.0)]
    assert top(index, mode="relaxed", factors={}) == top(index, mode="relaxed", factors={"else": 0})
    assert top(index, mode="relaxed", factors={"AGE": 2}) == [("t", 10.0), ("s", 7.0), ("u", 1.0)]
    assert top(index, mode="relaxed", factors={"age": 0}) == [("s", 3.0), ("u", 1.0)]
    assert top(index, mode="relaxed", factors={"age": 2, "topic": 3}) == [
        ("t", 30.0),
        ("s", 13.0),
        ("u", 1.0),
    ]
    assert top(index, mode="relaxed", factors={"age": 0, "topic": 0}) == [("u", 1.0)]
    index.subscribe(Subscription("v", "age > 31", weights=[4]))
    assert top(index, mode="relaxed", factors={"age": 0.5}) == [
        ("s", 4.0),
        ("t", 2.5),
        ("v", 2.0),
        ("u", 1.0),
    ]
    index.unsubscribe("u")
    assert top(index, mode="relaxed", factors={"age": 0, "topic": 0}) == []


def test_events_that_share_an_id_are_told_apart() -> None:
    index = build(Subscription("s", "age > 30", score=2), Subscription("t", "age > 20", score=1))
    events = [
        Event("e", {"age": 25}),
        Event("e", {"age": 35}),
        Event("f", {"age": 5}),
        Event("e", {"age": 21}),
    ]
    expected = [("e", "t", 1), ("e", "s", 1), ("e", "t", 2), ("e", "t", 1)]
    for mode in ("exact", "relaxed"):
        found = top_batch(index, events, 2, mode)
        assert [
            (row["event_id"], row["subscription_id"], row["rank"]) for row in found.to_pylist()
        ] == expected
    ids = pa.array([1, 2, 3, 4])
    named = index.best(events, ids, 1).batch(ids)
    assert named["event_id"].to_pylist() == [1, 2, 4]
    with pytest.raises(EventError, match="the events have no column 'id'; the columns are age"):
        top_batch(index, pa.RecordBatch.from_pylist([{"age": 25}]), 2)


def test_what_is_asked_of_one_subscription() -> None:
    index = build(Subscription("s", "age > 30", score=2))
    assert (index.score("s"), index.filter("s"), index.explain(EVENT, "s").matches) == (2.0, "age > 30", True)
    for ask in (index.score, index.filter, index.unsubscribe, lambda each: index.explain(EVENT, each)):
        for unknown in ("t", 3):
            with pytest.raises(SubscriptionError, match=f"there is no subscription {unknown!r} here"):
                ask(unknown)
    with pytest.raises(SubscriptionError, match="there is no subscription 't' here"):
        index.set_score("t", 1.0)
    with pytest.raises(SubscriptionError, match="there is no subscription 't' here"):
        index.set_weights("t", None)


# Parts that others have made


def test_from_contents() -> None:
    filters = ["age > 30", "age > 40 AND topic = 'news'", "topic = 'news'"]
    scores = np.array([1.0, 5.0, 3.0])
    keys, rows = rank(scores)
    content = RecordIndex.build(
        Subscription(int(key), filters[row]) for key, row in zip(keys, rows, strict=True)
    )
    collector = Collector()
    for text in filters:
        found = RecordIndex.clauses(text)
        collector.add(found, weigh(found, None, "one"))
    table = collector.finish()
    table.rows.check()
    ids = Ids.of(["a", "b", "c"])
    clauses = ClauseIndex.from_table(ids, table, room=RecordIndex)
    index = RankedIndex.from_contents(ids, scores, content, clauses, room=RecordIndex)
    assert top(index) == [("c", 3.0), ("a", 1.0)]
    assert top(index, mode="relaxed") == [("a", 1.0), ("b", 1.0), ("c", 1.0)]


def test_snapshots_of_other_layouts_and_rooms_are_refused(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "x", "ranking", {}, counts={}, about={"layout": 0})
    with pytest.raises(SnapshotError, match="has another layout of the ranking than this Headgate reads"):
        RankedIndex.open(tmp_path / "x", room=RecordIndex)
    write_snapshot(tmp_path / "y", "clauses", {}, counts={}, about={"layout": 0})
    with pytest.raises(SnapshotError, match="has another layout of clauses than this Headgate reads"):
        ClauseIndex.open(tmp_path / "y", room=RecordIndex)
    build(Subscription("s", "age > 30")).save(tmp_path / "z")
    with pytest.raises(SnapshotError, match="is a snapshot of 'ranking', not of 'clauses'"):
        ClauseIndex.open(tmp_path / "z", room=RecordIndex)
    (tmp_path / "z" / "clauses" / "weight.npy").write_bytes(b"")
    with pytest.raises(SnapshotError, match=r"weight.npy has 0 bytes"):
        RankedIndex.open(tmp_path / "z", room=RecordIndex)


def test_best_is_what_users_see() -> None:
    assert build(Subscription("s", "age > 30", score=2)).top(EVENT, 1) == [Best("s", 2.0)]


@pytest.mark.parametrize("seed", some(range(3), 1))
def test_the_first_of_many_matches_one_by_one_and_together(seed: int) -> None:
    rng = random.Random(seed)
    forms = ("a > {}", "a <> {} AND b IS NOT NULL", "a BETWEEN {} AND 90", "a > {} OR c LIKE '%x%'")
    there: dict[Id, Subscription] = {
        n: Subscription(n, rng.choice(forms).format(rng.randrange(60)), score=rng.randrange(9))
        for n in range(3000)
    }
    index = RankedIndex.build(there.values(), room=RecordIndex, relaxed=False)
    events = [Event(n, {"a": rng.randrange(100), "b": 1, "c": rng.choice("xy")}) for n in range(24)]
    # Few match the last one, and the windows that suit the others are too short for it.
    events.append(Event(24, {"a": -5}))
    batch = pa.RecordBatch.from_pylist([{"id": each.id, **each.data} for each in events])

    def check(k: int) -> None:
        wanted = []
        for event in events:
            found = sorted((-float(there[int(each)].score), each) for each in index.match(event))[:k]
            wanted += [(event.id, each, -score) for score, each in found]
            best = index.top(event, k)
            assert [(-each.value, each.subscription) for each in best] == found
        for table in (top_batch(index, batch, k), top_batch(index, events, k)):
            rows = table.to_pylist()
            assert [(row["event_id"], row["subscription_id"], row["score"]) for row in rows] == wanted

    for k in (1, 7, 4000):
        check(k)
    for n in rng.sample(range(3000), 300):
        index.unsubscribe(n)
        del there[n]
    for n in range(3000, 3100):
        there[n] = Subscription(n, f"a > {rng.randrange(60)}", score=rng.randrange(10))
        index.subscribe(there[n])
    for each in rng.sample(sorted(there), 50):
        there[each] = replace(there[each], score=rng.randrange(12))
        index.set_score(each, there[each].score)
    check(7)
    index.compact()
    check(7)
