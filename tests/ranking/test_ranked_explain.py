"""Why a rank: its value, place k, and what was missing, each true when it is tried."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.errors import SubscriptionError
from headgate.ranking.filters.explain import ClauseValue, enough, total
from headgate.ranking.filters.index import RankedIndex
from headgate.records.index.index import RecordIndex
from tests.seeds import examples

if TYPE_CHECKING:
    import random

EVENT = Event("e", {"age": 35, "topic": "news"})
SUBSCRIPTIONS = [
    Subscription("a", "age > 30", score=3.0),
    Subscription("b", "age > 30 AND topic = 'sport'", score=2.0, weights={"age": 0.5, "topic": 4}),
    Subscription("c", "age > 20 AND topic = 'news'", score=1.0),
    Subscription("d", "age > 40 AND topic = 'art'", score=9.0),
    Subscription("e", "age > 10", score=1.0),
]


def build() -> RankedIndex:
    return RankedIndex.build(SUBSCRIPTIONS, room=RecordIndex)


def lines(identity: str, k: int, mode: str = "exact", factors: dict[str, float] | None = None) -> list[str]:
    return build().explain_rank(EVENT, identity, k, mode, factors=factors).lines()


def test_exact_lines() -> None:
    assert lines("a", 2) == ["rank 1 of the best 2, score 3", "  place 2 is 'c' with 1"]
    assert lines("a", 9) == ["rank 1 of the best 9, score 3", "  place 9 is free"]
    assert lines("c", 1) == [
        "not among the best 1: rank 2, score 1",
        "  place 1 is 'a' with 3",
        "2 short of place 1",
    ]
    assert lines("e", 2) == [
        "not among the best 2: rank 3, score 1",
        "  place 2 is 'c' with 1",
        "as much as place 2, which comes first by id",
    ]
    assert lines("b", 2) == [
        "not among the best 2: no match",
        "  place 2 is 'c' with 1",
        "  no match",
        "    held    age > 30          age = 35",
        "    failed  topic = 'sport'   topic = \"news\"",
        "  nearest miss: topic = 'sport'",
        "with a match it would have rank 2, among the best 2",
    ]
    assert lines("b", 1)[-1] == "with a match it would have rank 2, not among the best 1"
    assert lines("a", 0) == ["not among the best 0: rank 1, score 3"]


def test_relaxed_lines() -> None:
    assert lines("c", 2, "relaxed") == [
        "rank 1 of the best 2, sum 2",
        "  place 2 is 'a' with 1",
        "  held    age > 20         weight 1",
        "  held    topic = 'news'   weight 1",
    ]
    assert lines("b", 2, "relaxed") == [
        "not among the best 2: rank 4, sum 0.5",
        "  place 2 is 'a' with 1",
        "  held    age > 30          weight 0.5",
        "  failed  topic = 'sport'   weight 4",
        "0.5 short of place 2",
        "enough would have been: topic = 'sport'",
    ]
    assert lines("d", 1, "relaxed") == [
        "not among the best 1: no clause holds",
        "  place 1 is 'c' with 2",
        "  failed  age > 40        weight 1",
        "  failed  topic = 'art'   weight 1",
        "not even all clauses would have been enough",
    ]
    assert lines("e", 2, "relaxed")[-2:] == [
        "as much as place 2, which comes first by id",
        "not even all clauses would have been enough",
    ]
    assert lines("b", 9, "relaxed", {"age": 2, "topic": 0}) == [
        "rank 4 of the best 9, sum 1",
        "  place 9 is free",
        "  held    age > 30          weight 0.5 * 2",
        "  dropped topic = 'sport'   weight 4",
    ]


def test_properties() -> None:
    index = build()
    first, last = index.explain_rank(EVENT, "a", 2), index.explain_rank(EVENT, "b", 2)
    assert (first.rank, first.entered, first.short, first.runs) == (1, True, None, True)
    assert (last.rank, last.entered, last.short, last.before) == (None, False, None, 1)
    relaxed = index.explain_rank(EVENT, "b", 2, "relaxed")
    assert (relaxed.rank, relaxed.short, relaxed.value) == (4, 0.5, 0.5)
    with pytest.raises(SubscriptionError, match="there is no subscription 'x' here"):
        index.explain_rank(EVENT, "x", 2)
    with pytest.raises(SubscriptionError, match="there is no subscription 'x' here"):
        index.explain_rank(EVENT, "x", 2, "relaxed")
    with pytest.raises(SubscriptionError, match="k is -1"):
        index.explain_rank(EVENT, "a", -1)


@examples(30)
@given(st.randoms(use_true_random=False))
def test_what_is_said_is_so(rng: random.Random) -> None:
    """Ranks agree with the answer; and with the clauses that are enough made true, it enters."""
    texts = ["age > 30", "age > 40", "topic = 'news'", "topic = 'art'", "size IS NULL", "size > 3"]
    here = []
    for identity in range(12):
        clauses = rng.sample(texts, rng.randint(1, 4))
        weights = [rng.choice([0.0, 0.1, 0.2, 1.0, 2.0]) for _ in clauses]
        score = rng.choice([0.0, 1.0, 2.0])
        here.append(Subscription(identity, " AND ".join(clauses), score=score, weights=weights))
    factors = rng.choice([None, {"age": 2.0, "topic": 0.0}])
    index = RankedIndex.build(here, room=RecordIndex)
    k = rng.randint(1, 13)
    exact, relaxed = index.top(EVENT, 20), index.top(EVENT, 20, "relaxed", factors=factors)
    for each in here:
        place = index.explain_rank(EVENT, each.id, k)
        found = [best.subscription for best in exact]
        assert place.rank == (found.index(each.id) + 1 if each.id in found else None)
        assert place.last == (exact[k - 1] if k <= len(exact) else None)
        matching = replace(each, filter="TRUE", weights=None)
        others = [other for other in here if other.id != each.id]
        changed = RankedIndex.build([*others, matching], room=RecordIndex, relaxed=False).top(EVENT, 20)
        assert place.before == [best.subscription for best in changed].index(each.id)

        why = index.explain_rank(EVENT, each.id, k, "relaxed", factors=factors)
        found = [best.subscription for best in relaxed]
        assert why.rank == (found.index(each.id) + 1 if each.id in found else None)
        assert why.entered is (each.id in found[:k])
        assert why.last == (relaxed[k - 1] if k <= len(relaxed) else None)
        if why.rank is not None:
            assert why.value == relaxed[why.before].value
        if why.entered:
            continue
        if why.enough is None:
            assert k <= len(relaxed) or all(clause.factor == 0 for clause in why.clauses)
            continue
        if k > len(relaxed):
            assert len(why.enough) == 1
            continue
        sums = total([clause._replace(held=clause.held or clause in why.enough) for clause in why.clauses])
        assert (-sums, each.id) < (-relaxed[k - 1].value, relaxed[k - 1].subscription)


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0]), st.booleans()), max_size=6),
    st.sampled_from([0.05, 0.5, 1.0, 1.5, 3.0, 9.0]),
)
def test_the_fewest_clauses_are_enough(drawn: list[tuple[float, bool]], wanted: float) -> None:
    clauses = [ClauseValue(f"c{i}", weight, 1.0, held) for i, (weight, held) in enumerate(drawn)]
    found = enough(clauses, lambda value: value >= wanted)
    failed = [i for i, clause in enumerate(clauses) if not clause.held]
    able = [
        set(chosen)
        for count in range(1, len(failed) + 1)
        for chosen in combinations(failed, count)
        if total(clauses, set(chosen)) >= wanted
    ]
    if found is None:
        assert not able
    else:
        chosen = {clauses.index(clause) for clause in found}
        assert chosen in able
        assert len(chosen) == min(map(len, able))


def test_the_last_of_them_is_as_light_as_it_may_be() -> None:
    clauses = [
        ClauseValue(text, weight, 1.0, held=False) for text, weight in (("x", 1.0), ("y", 5.0), ("z", 3.0))
    ]
    assert enough(clauses, lambda value: value >= 6) == (clauses[0], clauses[1])
    assert enough(clauses, lambda value: value >= 2) == (clauses[2],)
    assert enough(clauses, lambda value: value >= 10) is None
