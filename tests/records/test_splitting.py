"""Clauses of a filter: both ways of finding them agree, and together they say what the filter says."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from headgate import Event
from headgate.core.values import dotted
from headgate.records.index.index import RecordIndex
from headgate.records.language.model import And, predicates
from headgate.records.language.parse import parse_filter
from headgate.records.language.printing import print_filter
from headgate.records.language.splitting import split
from headgate.records.reference import evaluate
from tests.records.random_filters import random_event, random_filter

if TYPE_CHECKING:
    from headgate.records.language.model import Expression


def conjuncts(expression: Expression) -> list[Expression]:
    if isinstance(expression, And):
        return [each for child in expression.children for each in conjuncts(child)]
    return [expression]


def by_parser(text: str) -> list[tuple[str, tuple[str, ...]]]:
    found = []
    for each in conjuncts(parse_filter(text)):
        names = dict.fromkeys(dotted(predicate.attribute.path) for predicate in predicates(each))
        found.append((print_filter(each), tuple(names)))
    return found


@pytest.mark.parametrize("plain", [True, False])
def test_clauses_are_what_the_parser_finds(*, plain: bool) -> None:
    rng = random.Random(1)
    for number in range(200):
        texts = [random_filter(rng, wild=not plain) for _ in range(rng.randint(1, 3))]
        text = rng.choice([" AND ", " and\t", "\n AND  "]).join(
            texts if plain else [f"({each})" for each in texts]
        )
        found = split(text, "sql")
        assert [tuple(each) for each in found] == by_parser(text), text
        assert [tuple(each) for each in split(text, "sql")] == by_parser(text), text
        event = Event.from_row(random_event(rng, number)).attributes
        held = [evaluate(parse_filter(each.filter), event) is True for each in found]
        assert all(held) is (evaluate(parse_filter(text), event) is True), text


@pytest.mark.parametrize(
    "text",
    [
        "a = 1 AND b BETWEEN 1 AND 2 AND c",
        "a = 1 AND NOT b = 2 AND !c",
        "(a = 1) AND b = 2",
        "a = 1 AND b = 2 OR c = 3",
        "a = 1 /* and */ AND b = 2",
        "a = 'x AND y' AND b = 2",
        "`a AND b` = 1 AND c = 2",
        "a IS NULL AND a IS NOT NULL and not a",
        "1 < a AND a < 3",
        "TRUE AND a",
    ],
)
def test_texts_that_look_like_others(text: str) -> None:
    assert [tuple(each) for each in RecordIndex.clauses(text)] == by_parser(text)
