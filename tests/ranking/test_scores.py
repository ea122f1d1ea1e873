"""Scores that depend on the event: their arithmetic, their bounds, and the best k by them."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Best, Engine, Event, Node, Subscription
from headgate.contents.scores import NEGATE, NUMBER, TERM, Form, Step
from headgate.errors import GraphError, SubscriptionError
from headgate.ranking.scores import table as table_module
from headgate.ranking.scores.arithmetic import Range, most, scores
from headgate.records.expressions.expression import Expression
from headgate.records.index.index import RecordIndex
from tests.seeds import seeds

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PLAIN = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.3, 7.5, -2.25, 1e300, -1e300, 1e-300, 5e-324])
TERMS = st.one_of(PLAIN, st.sampled_from([math.nan, math.inf, -math.inf]), st.floats())


@st.composite
def forms(draw: st.DrawFn) -> Form:
    steps: list[Step] = []
    numbers = terms = depth = 0
    for _ in range(draw(st.integers(1, 9))):
        what = draw(st.sampled_from([NUMBER, TERM, NEGATE, "+", "-", "*", "/", "least", "greatest"]))
        if what == NEGATE and depth:
            steps.append(Step(NEGATE))
        elif what not in (NUMBER, TERM, NEGATE) and depth > 1:
            steps.append(Step(what))
            depth -= 1
        elif what == TERM:
            steps.append(Step(TERM, terms))
            terms, depth = terms + 1, depth + 1
        else:
            steps.append(Step(NUMBER, numbers))
            numbers, depth = numbers + 1, depth + 1
    steps += [Step("+")] * (depth - 1)
    return Form(tuple(steps), tuple(f"t{place}" for place in range(terms)), numbers)


def slowly(form: Form, numbers: list[float], terms: list[float]) -> float:
    """Compute one score, number by number."""
    stack: list[float] = []
    for what, place in form.steps:
        if what == NUMBER:
            stack.append(numbers[place])
        elif what == TERM:
            stack.append(terms[place])
        elif what == NEGATE:
            stack.append(-stack.pop())
        else:
            right, left = stack.pop(), stack.pop()
            if what in ("least", "greatest"):
                there = [each for each in (left, right) if not math.isnan(each)]
                chosen = min if what == "least" else max
                stack.append(chosen(there) if there else math.nan)
            elif what == "/":
                stack.append(left / right if right else math.nan)
            else:
                with np.errstate(all="ignore"):
                    one, other = np.float64(left), np.float64(right)
                    stack.append(
                        float(one + other if what == "+" else one - other if what == "-" else one * other)
                    )
    return stack[0] if math.isfinite(stack[0]) else 0.0


@given(forms(), st.data())
def test_scores_and_bounds(form: Form, data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 5))
    table = [data.draw(st.lists(PLAIN, min_size=rows, max_size=rows)) for _ in range(form.numbers)]
    numbers = np.array(table, np.float64).reshape(form.numbers, rows)
    terms = [data.draw(TERMS) for _ in form.terms]
    found = scores(form, numbers, np.array(terms, np.float64).reshape(-1, 1))
    assert found.tolist() == [slowly(form, numbers[:, row].tolist(), terms) for row in range(rows)]
    if form.numbers:
        block = Range(numbers.min(axis=1, keepdims=True), numbers.max(axis=1, keepdims=True))
        bound = most(form, block, np.array(terms, np.float64))
        assert found.max() <= bound[0]


NAMES = ["price", "bid", "n", "Name"]
SCORES = [
    "0.3 * price + {a}",
    "{a} * price + {b} * bid",
    "least(bid, {a}) - price / n",
    "greatest({a}, price, bid) * {b}",
    "-price + length(name)",
    "CASE WHEN n > 2 THEN price ELSE {a} END * {b}",
    "coalesce(bid, 0) + {a}",
    "price",
    "{a}",
]


def draw_subscription(rng: random.Random, identity: int) -> Subscription:
    numbers = {name: rng.choice(["1", "0.5", "-2.25", "1e3", "7"]) for name in "ab"}
    score: float | str = (
        rng.choice(SCORES).format(**numbers) if rng.random() < 0.7 else rng.choice([0.0, 1.5, -3.0])
    )
    return Subscription(
        identity, rng.choice(["n > 1", "n <= 3", "price IS NOT NULL", "name LIKE 'a%'", "n = n"]), score=score
    )


def draw_event(rng: random.Random, number: int) -> dict[str, object]:
    found: dict[str, object] = {"id": number, "n": rng.choice([0, 1, 2, 3, 4])}
    found |= {
        name: rng.choice([None, 0.0, 1.5, -4.0, 1e308]) for name in ("price", "bid") if rng.random() < 0.9
    }
    return found | {"name": rng.choice(["a", "abc", "b", None])}


def best_of_all(subscriptions: Iterable[Subscription], row: dict[str, object], k: int) -> list[Best]:
    """Evaluate every filter and every score alone."""
    event, attributes = Event(0, row), {name: row.get(name) for name in row if name != "id"}
    found = []
    for each in subscriptions:
        if RecordIndex.build([Subscription(0, each.filter)]).match(event):
            value = each.score
            if isinstance(value, str):
                scoring = RecordIndex.scoring(value)
                terms = [Expression.parse(term).evaluate(attributes) for term in scoring.form.terms]
                doubles = [math.nan if term is None else float(term) for term in terms]
                value = slowly(scoring.form, list(scoring.numbers), doubles)
            found.append(Best(each.id, value))
    return sorted(found, key=lambda best: (-best.value, best.subscription))[:k]


@pytest.mark.parametrize("seed", seeds(4))
def test_the_best_by_scores_of_the_event(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built at once, late, compacted, saved; one by one and in batches; with bounds and without."""
    rng = random.Random(seed)
    subscriptions = {number: draw_subscription(rng, number) for number in range(40)}
    rows = [draw_event(rng, number) for number in range(12)]
    engine = Engine.build(list(subscriptions.values())[:25], ranked=True)
    for each in list(subscriptions.values())[25:]:
        engine.subscribe(each)
    for identity in rng.sample(range(40), 6):
        subscriptions[identity] = replace(subscriptions[identity], score=draw_subscription(rng, 0).score)
        engine.set_score(identity, subscriptions[identity].score)
    for identity in rng.sample(range(40), 4):
        engine.unsubscribe(identity)
        del subscriptions[identity]
    wanted = [best_of_all(subscriptions.values(), row, 5) for row in rows]
    table = pa.RecordBatch.from_pylist(rows)

    def check(engine: Engine) -> None:
        assert [engine.top(row, 5) for row in rows] == wanted
        for batch in (table, rows):
            found = engine.top_batch(batch, 5).to_pylist()
            assert [
                (row["event_id"], row["subscription_id"], row["score"], row["rank"]) for row in found
            ] == [
                (number, best.subscription, best.value, rank)
                for number, listed in enumerate(wanted)
                for rank, best in enumerate(listed, 1)
            ]
        for row, listed in zip(rows, wanted, strict=True):
            for rank, best in enumerate(listed):
                told = engine.explain_rank(row, best.subscription, 5)
                assert (told.before, told.value, told.runs) == (rank, best.value, True)

    check(engine)
    monkeypatch.setattr(table_module, "FEW", 4)
    monkeypatch.setattr(table_module, "BLOCK", 3)
    engine.compact()
    check(engine)
    engine.save(tmp_path / "snapshot")
    again = Engine.open(tmp_path / "snapshot")
    check(again)
    again.set_score(next(iter(subscriptions)), "price * 2")


REFUSED = [
    ("lower(", r"the score of subscription 's1': .*"),
    ("'text'", "the score of subscription 's1': a score is a number, and 'text' is none: give a number"),
    ("rand()", r"the score of subscription 's1': .*rand.*"),
    (
        math.nan,
        r"the score of subscription 's1' is nan: give a finite number, or an expression over the event",
    ),
    ("", r"the score of subscription 's1' is '': give a finite number, or an expression over the event"),
]


@pytest.mark.parametrize(("score", "reason"), REFUSED)
def test_scores_that_are_none(score: float | str, reason: str) -> None:
    with pytest.raises(SubscriptionError, match=reason):
        Engine.build([Subscription("s1", "a = 1", score=score)])


def test_where_scores_are_numbers() -> None:
    with pytest.raises(GraphError, match="in a graph it must not depend on the event"):
        Engine.build([Subscription("s1", "a = 1", node="n", score="a")], nodes=[Node("n")], edges=[])
    with pytest.raises(SubscriptionError, match="the events of its filter have no attributes"):
        Engine.build([Subscription("s1", "//a", "xpath", score="a")])
