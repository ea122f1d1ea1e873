"""Explanations: verdict, clauses, notes and the nearest miss."""

from __future__ import annotations

import datetime as dt
import math
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate import Event, parse_filter, print_filter
from headgate.records.explain import explain
from headgate.records.model import And, Constant, Not, Or
from headgate.records.reference import evaluate

if TYPE_CHECKING:
    from headgate.core.values import Path
    from headgate.records.explain import Explanation
    from headgate.records.model import Expression


def explained(text: str, data: dict[str, object]) -> Explanation:
    return explain(parse_filter(text), Event("e", data).attributes)


def test_a_match() -> None:
    found = explained("age > 30 AND topic = 'news'", {"age": 35, "topic": "news"})
    assert found.matches
    assert found.filter == "age > 30 AND topic = 'news'"
    assert [
        (clause.text, clause.attribute, clause.value, clause.held, clause.note) for clause in found.clauses
    ] == [
        ("age > 30", "age", 35, True, ""),
        ("topic = 'news'", "topic", "news", True, ""),
    ]
    assert found.nearest_miss == ()


MISSES: list[tuple[str, dict[str, object], list[bool | None], list[str]]] = [
    ("a AND b", {"a": True, "b": False}, [True, False], ["b"]),
    ("a AND b", {"a": False, "b": False}, [False, False], ["a", "b"]),
    ("a OR b", {"a": False, "b": False}, [False, False], ["a"]),
    ("a OR b", {"a": True, "b": False}, [True, False], []),
    ("(a AND b) OR c", {"a": False, "b": False, "c": False}, [False, False, False], ["c"]),
    ("(a AND b) OR (c AND d)", {"c": True}, [None, None, True, None], ["d"]),
    ("NOT a", {"a": True}, [False], ["NOT a"]),
    ("NOT (a OR b)", {"a": True, "b": False}, [False, True], ["NOT a"]),
    ("NOT (a AND b)", {"a": True, "b": True}, [False, False], ["NOT a"]),
    ("NOT (a IS NULL OR b = 1)", {"b": 1}, [False, False], ["a IS NOT NULL", "NOT b = 1"]),
    ("NOT NOT a", {"a": False}, [False], ["a"]),
    # Constants: nothing can be done about FALSE and NULL.
    ("TRUE", {}, [True], []),
    ("FALSE", {}, [False], []),
    ("NULL", {}, [None], []),
    ("a AND FALSE", {"a": False}, [False, False], []),
    ("a AND TRUE", {"a": False}, [False, True], ["a"]),
    ("a OR FALSE", {"a": False}, [False, False], ["a"]),
    ("(a AND FALSE) OR (b AND c)", {}, [None, False, None, None], ["b", "c"]),
    ("a AND NOT FALSE", {"a": False}, [False, True], ["a"]),
    ("a AND (b OR TRUE)", {"a": False}, [False, None, True], ["a"]),
]


@pytest.mark.parametrize(("text", "data", "held", "nearest"), MISSES)
def test_nearest_misses(
    text: str, data: dict[str, object], held: list[bool | None], nearest: list[str]
) -> None:
    found = explained(text, data)
    assert [clause.held for clause in found.clauses] == held
    assert [clause.text for clause in found.nearest_miss] == nearest
    assert found.matches is (evaluate(parse_filter(text), Event("e", data).attributes) is True)


DAY = dt.datetime(2024, 1, 2, tzinfo=dt.UTC)
NOTES: list[tuple[str, object, str]] = [
    ("a > 30", 25, "off by 5"),
    ("a > 30", 30, ""),
    ("a = 30", 31, "off by 1"),
    ("a != 30", 30, ""),
    ("NOT a = 30", 30, ""),
    ("NOT a > 30", 35, "off by 5"),
    ("a BETWEEN 10 AND 20", 23, "off by 3"),
    ("a NOT BETWEEN 10 AND 20", 12, "off by 2"),
    ("a IN (1, 5, 9)", 6, "off by 1"),
    ("a NOT IN (1, 5, 9)", 5, ""),
    ("a > 1.5", 1, "off by 0.5"),
    ("a > 1.5", 1.25, "off by 0.25"),
    ("a = 9223372036854775807", -9223372036854775808, "off by 18446744073709551615"),
    ("a = 0.000000000000000001", 9223372036854775807, "off by 9223372036854775806.999999999999999999"),
    ("a > 1e300", -1e300, "off by 2e+300"),
    ("a < 1", math.inf, "off by inf"),
    ("a < 1", math.nan, ""),
    ("a = 'news'", "sport", ""),
    ("a > TIMESTAMP '2024-01-03'", DAY, "off by 1 day, 0:00:00"),
    ("a = DATE '2024-01-02'", DAY + dt.timedelta(hours=1), "off by 1:00:00"),
    ("a = DATE '2024-01-02'", DAY.replace(tzinfo=None) + dt.timedelta(hours=1), "off by 1:00:00"),
    ("a = TRUE", False, ""),
    ("a LIKE 'x%'", "abc", ""),
    ("array_contains(a, 5)", [1, 2], ""),
    ("a IS NULL", 5, ""),
    # Unknown.
    ("a = NULL", 5, "unknown: compared with NULL"),
    ("a IN (1, NULL)", 5, "unknown: compared with NULL"),
    ("a BETWEEN 1 AND NULL", 5, "unknown: compared with NULL"),
    ("array_contains(a, 5)", [1, None], "unknown: the array has a NULL element"),
    ("arrays_overlap(a, array(5, NULL))", [1], "unknown: compared with NULL"),
    ("a > 5", "abc", "unknown: 'abc' cannot be compared here"),
    ("a > 5", True, "unknown: True cannot be compared here"),
    ("a", 5, "unknown: 5 cannot be compared here"),
    ("a LIKE 'x'", 1.5, "unknown: 1.5 cannot be compared here"),
    ("a = 5", [5], "unknown: [5] cannot be compared here"),
    ("a = 5", {"b": 5}, "unknown: {'b': 5} cannot be compared here"),
    ("array_contains(a, 5)", "x", "unknown: 'x' cannot be compared here"),
    ("array_contains(a, 5)", ["x"], "unknown: ['x'] cannot be compared here"),
    ("a > 5", None, "the attribute is NULL"),
    ("a IS NOT NULL", None, "the attribute is NULL"),
]


@pytest.mark.parametrize(("text", "value", "note"), NOTES)
def test_notes(text: str, value: object, note: str) -> None:
    found = explained(text, {"a": value})
    assert not found.matches
    assert [clause.note for clause in found.clauses] == [note]
    assert found.nearest_miss == found.clauses


def test_absent_attributes() -> None:
    for text in ("a > 5", "a.b > 5", "NOT a", "array_contains(a, 1)"):
        assert [clause.note for clause in explained(text, {"b": 1}).clauses] == [
            "the event has no such attribute"
        ]
    assert explained("A.b > 5", {"a": {"B": 4}}).clauses[0].value == 4


# Small trees over distinct predicates on distinct attributes, where every outcome is possible.
LEAVES: list[Expression] = [parse_filter(name) for name in "pqrs"]


def trees(depth: int) -> st.SearchStrategy[Expression]:
    def grow(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(children, min_size=2, max_size=3).map(tuple)
        return several.map(And) | several.map(Or) | children.map(Not)

    constants = st.sampled_from([Constant(value=True), Constant(value=False), Constant(None)])
    return st.recursive(st.just(LEAVES[0]) | constants, grow, max_leaves=depth)


def with_distinct_leaves(tree: Expression, names: list[str]) -> Expression:
    if isinstance(tree, And | Or):
        return type(tree)(tuple(with_distinct_leaves(child, names) for child in tree.children))
    if isinstance(tree, Not):
        return Not(with_distinct_leaves(tree.child, names))
    if isinstance(tree, Constant):
        return tree
    names.append(f"x{len(names)}")
    return parse_filter(names[-1])


@settings(max_examples=150, deadline=None)
@given(trees(6), st.data())
def test_the_nearest_miss_is_minimal(shape: Expression, data: st.DataObject) -> None:
    names: list[str] = []
    tree = with_distinct_leaves(shape, names)
    outcomes = st.sampled_from([True, False, None])
    now: dict[Path, object] = {(name,): data.draw(outcomes) for name in names}
    found = explain(tree, now)
    assert found.matches is (evaluate(tree, now) is True)
    assert found.filter == print_filter(tree)
    changes = [
        sum(now[name,] is not value for name, value in zip(names, values, strict=True))
        for values in product([True, False, None], repeat=len(names))
        if evaluate(tree, {(name,): value for name, value in zip(names, values, strict=True)}) is True
    ]
    assert len(found.nearest_miss) == min(changes, default=0)
    # And changing just these clauses makes it match.
    then = dict(now)
    for clause in found.nearest_miss:
        then[clause.attribute,] = not clause.text.startswith("NOT")
    assert not changes or evaluate(tree, then) is True
