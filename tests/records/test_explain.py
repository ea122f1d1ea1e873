"""Explanations: verdict, clauses, notes and the nearest miss."""

from __future__ import annotations

import datetime as dt
import math
import random
from itertools import combinations, product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event
from headgate.records.explain.explain import explain
from headgate.records.language.model import And, Constant, Not, Or
from headgate.records.language.parse import parse_filter
from headgate.records.language.printing import print_filter
from headgate.records.language.rewrite import push_not
from headgate.records.reference import evaluate
from tests.records.random_filters import random_event, random_filter
from tests.seeds import examples

if TYPE_CHECKING:
    from headgate.core.values import Path
    from headgate.records.explain.explain import Explanation
    from headgate.records.language.model import Expression


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
    # Numbers, whole, decimal and double.
    ("a > 30", 25, "off by 5"),
    ("a > 30", 30, "equal to 30"),
    ("a >= 30", 29.5, "off by 0.5"),
    ("a < 30", 31, "off by 1"),
    ("a <= 30", 31, "off by 1"),
    ("a = 30", 31, "off by 1"),
    ("a <=> 30", 31, "off by 1"),
    ("a != 30", 30, "equal to 30"),
    ("NOT a = 30", 30, "equal to 30"),
    ("NOT a <=> 30", 30, "equal to 30"),
    ("NOT a > 30", 35, "off by 5"),
    ("a > 1.5", 1, "off by 0.5"),
    ("a > 1.5", 1.25, "off by 0.25"),
    ("a = 9223372036854775807", -9223372036854775808, "off by 18446744073709551615"),
    ("a = 0.000000000000000001", 9223372036854775807, "off by 9223372036854775806.999999999999999999"),
    ("a > 1e300", -1e300, "off by 2e+300"),
    ("a < 1", math.inf, "off by inf"),
    ("a < 1", math.nan, "NaN is above every other number"),
    ("a < 'NaN'", math.nan, "equal to 'NaN'"),
    ("a = 'NaN'", 1.5, ""),
    # Texts that are cast, on either side.
    ("a > 30", "25", "off by 5"),
    ("a > 1.5", "1.25", "off by 0.25"),
    ("a > '30'", 25, "off by 5"),
    ("a > '1.5'", 1.25, "off by 0.25"),
    ("a > DATE '2024-01-03'", "2024-01-02 23:00", "off by 1 day, 0:00:00"),
    ("a > TIMESTAMP '2024-01-03'", "2024-01-02 23:00", "off by 1:00:00"),
    ("a > '2024-01-03'", DAY, "off by 1 day, 0:00:00"),
    # Moments.
    ("a > TIMESTAMP '2024-01-03'", DAY, "off by 1 day, 0:00:00"),
    ("a = DATE '2024-01-02'", DAY + dt.timedelta(hours=1), "off by 1:00:00"),
    ("a = DATE '2024-01-02'", DAY.replace(tzinfo=None) + dt.timedelta(hours=1), "off by 1:00:00"),
    ("a > DATE '2024-01-03'", DAY.date(), "off by 1 day, 0:00:00"),
    ("a != DATE '2024-01-02'", DAY, "equal to DATE '2024-01-02'"),
    # Texts.
    ("a = 'news'", "sport", ""),
    ("a = 'news'", "News", "differs in case only"),
    ("a <=> 'news'", " news", "differs in blanks around it only"),
    ("a IN ('art', 'News')", "news", "differs in case only"),
    ("a IN ('art', 'news')", "sport", ""),
    ("a NOT IN ('art', 'news')", "art", "equal to 'art'"),
    ("a != 'news'", "news", "equal to 'news'"),
    ("a > 'm'", "b", "comes before 'm'"),
    ("a < 'm'", "z", "comes after 'm'"),
    ("a BETWEEN 'f' AND 'm'", "b", "comes before 'f'"),
    ("a BETWEEN 'f' AND 'm'", "z", "comes after 'm'"),
    ("a NOT BETWEEN 'f' AND 'm'", "g", "inside"),
    # BETWEEN and IN.
    ("a BETWEEN 10 AND 20", 23, "off by 3"),
    ("a BETWEEN 10 AND 20", 8, "off by 2"),
    ("a BETWEEN 20 AND 10", 15, "the range is empty"),
    ("a BETWEEN 20 AND 10", 20, "the range is empty"),
    ("a BETWEEN 1 AND NULL", 0, "off by 1"),
    ("a NOT BETWEEN 10 AND 20", 12, "inside, off by 2"),
    ("a NOT BETWEEN 10 AND 20", 10, "equal to 10"),
    ("a IN (1, 5, 9)", 6, "off by 1"),
    ("a IN (1.5e0, 5)", 6, "off by 1"),
    ("a NOT IN (1, 5, 9)", 5, "equal to 5"),
    ("a NOT IN (1, NULL)", 1, "equal to 1"),
    # Booleans.
    ("a = TRUE", False, ""),
    ("a != TRUE", "yes", "equal to TRUE"),
    ("a", False, "it is false"),
    ("a", "no", "it is false"),
    ("NOT a", True, "it is true"),
    # Patterns.
    ("a LIKE 'x%'", "abc", "the text does not fit the pattern"),
    ("a LIKE 'X%'", "xyz", "the text fits the pattern but for case"),
    ("a LIKE 'X!%' ESCAPE '!'", "x%", "the text does not fit the pattern"),
    ("a LIKE 'AX%' ESCAPE 'X'", "a%", "the text does not fit the pattern"),
    ("a LIKE '2%'", 15, "the text does not fit the pattern"),
    ("a NOT LIKE 'a%'", "abc", "the text fits the pattern"),
    # Arrays.
    ("array_contains(a, 5)", [1, 2], "the nearest element is off by 3"),
    ("array_contains(a, 'x')", ["y"], "no element is equal"),
    ("array_contains(a, 5)", [], "the array is empty"),
    ("NOT array_contains(a, 5)", [1, 5], "the array holds 5"),
    ("arrays_overlap(a, array(5, 9))", [1, 7], "the nearest element is off by 2"),
    ("arrays_overlap(a, array())", [1], "the list is empty"),
    ("NOT arrays_overlap(a, array('x', 'y'))", ["z", "y"], "the array holds 'y'"),
    ("forall(a, x -> x IN (1, 2))", [1, 5, None], "the element 5 is not in the list"),
    ("forall(a, x -> x IS NULL)", [None, "y"], "the element 'y' is not NULL"),
    ("NOT forall(a, x -> x IN (1, 2))", [1, 2], "every element is in the list"),
    ("NOT forall(a, x -> x IS NULL)", [None], "every element is NULL"),
    ("NOT forall(a, x -> x IN (1, 2))", [], "the array is empty"),
    # NULL.
    ("a IS NULL", 5, "the attribute is not NULL"),
    ("NOT a IS NOT NULL", [1], "the attribute is not NULL"),
    ("a <=> NULL", 5, "the attribute is not NULL"),
    ("a IS NOT NULL", None, "the attribute is NULL"),
    ("a <=> 5", None, "the attribute is NULL"),
    ("NOT a <=> NULL", None, "the attribute is NULL"),
    ("a > 5", None, "the attribute is NULL"),
    # Unknown.
    ("a = NULL", 5, "unknown: compared with NULL"),
    ("a IN (1, NULL)", 5, "unknown: compared with NULL"),
    ("a NOT IN (1, NULL)", 5, "unknown: compared with NULL"),
    ("a BETWEEN 1 AND NULL", 5, "unknown: compared with NULL"),
    ("array_contains(a, 5)", [1, None], "unknown: the array has a NULL element"),
    ("arrays_overlap(a, array(5, NULL))", [1], "unknown: compared with NULL"),
    ("a > 5", "abc", "unknown: 'abc' cannot be compared here"),
    ("a > 5", True, "unknown: True cannot be compared here"),
    ("a", 5, "unknown: 5 cannot be compared here"),
    ("a LIKE 'x'", 1.5, "unknown: 1.5 cannot be compared here"),
    ("a NOT LIKE 'x'", 1.5, "unknown: 1.5 cannot be compared here"),
    ("a = 5", [5], "unknown: [5] cannot be compared here"),
    ("a = 5", {"b": 5}, "unknown: {'b': 5} cannot be compared here"),
    ("array_contains(a, 5)", "x", "unknown: 'x' is not an array"),
    ("forall(a, x -> x = 5)", "x", "unknown: 'x' is not an array"),
    ("forall(a, x -> x = 5)", [5, None], "unknown: the array has a NULL element"),
    ("forall(a, x -> x IN (5, NULL))", [1], "unknown: compared with NULL"),
    ("forall(a, x -> x IS NULL OR x = 5)", [None, "x"], "unknown: [None, 'x'] cannot be compared here"),
    ("array_contains(a, 5)", ["x"], "unknown: ['x'] cannot be compared here"),
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


@examples(150)
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


# Every operator with events for which it holds, fails and, where it can be, is unknown.
OPERATORS: list[tuple[str, list[object], list[object], list[object]]] = [
    ("a = 5", [5, "5", 5.0], [4, "4", math.nan], [None, "x", True, [5]]),
    ("a != 5", [4], [5, 5.0], [None, "x"]),
    ("a <> 5", [4], [5], [None, {}]),
    ("a < 5", [4, -math.inf], [5, math.nan], [None, "x"]),
    ("a <= 5", [5], [6], [None, True]),
    ("a > 5", [6, math.nan], [5], [None, "x"]),
    ("a >= 5", [5], [4.5], [None, DAY]),
    ("a <=> 5", [5], [4, None], ["x"]),
    ("a <=> NULL", [None], [5, [], "x"], []),
    ("a BETWEEN 1 AND 3", [1, 2, 3, "2"], [0, 4], [None, "x"]),
    ("a BETWEEN 1 AND 2.5", [1, 2, 2.5], [0, 3], [None, "x"]),
    ("a IN (1, 2)", [1, 2.0], [3], [None, "x"]),
    ("a IN (1, NULL)", [1], [], [None, 2]),
    ("a IN ('x', 'y')", ["x"], ["z"], [None, 5]),
    ("a IS NULL", [None], [5, [], {}], []),
    ("a LIKE 'x%'", ["x", "xy"], ["y", 5], [None, 1.5, []]),
    ("a LIKE '%x_'", ["xy", "axy"], ["x", True], [None, DAY]),
    ("a", [True, "yes"], [False, "no"], [None, 1]),
    ("array_contains(a, 1)", [[1, None], [1.0]], [[], [2]], [None, [2, None], ["1"], 1]),
    ("arrays_overlap(a, array(1, 2))", [[2, 3]], [[], [3]], [None, [3, None], 1]),
    ("forall(a, x -> x IN (1, 2))", [[], [2, "1"]], [[1, 3], [3, None]], [None, [1, None], 1]),
    ("a = 'x'", ["x"], ["y", "X"], [None, 5]),
    ("a > TIMESTAMP '2024-01-01'", [DAY, "2024-01-02"], [DAY - dt.timedelta(9)], [None, 5, "x"]),
    ("a = DATE '2024-01-02'", [DAY, "2024-01-02 10:00"], [DAY + dt.timedelta(1)], [None, 5]),
    ("a = TRUE", [True, "y"], [False], [None, 1]),
]


@pytest.mark.parametrize(("text", "true", "false", "unknown"), OPERATORS, ids=[row[0] for row in OPERATORS])
def test_every_operator_in_every_outcome(
    text: str, true: list[object], false: list[object], unknown: list[object]
) -> None:
    outcomes: list[tuple[bool | None, list[object]]] = [(True, true), (False, false), (None, unknown)]
    for held, values in outcomes:
        for value in values:
            found, negation = (explained(given, {"a": value}) for given in (text, f"NOT ({text})"))
            assert [clause.held for clause in found.clauses] == [held]
            assert [clause.held for clause in negation.clauses] == [None if held is None else not held]
            for one in (found, negation):
                (clause,) = one.clauses
                assert one.matches is (clause.held is True)
                assert one.nearest_miss == (() if one.matches else one.clauses)
                assert clause.attribute == "a"
                assert not clause.note if clause.held else clause.note or clause.held is False
                assert clause.value is value or clause.value == value


def with_some_true(node: Expression, chosen: set[int], place: list[int]) -> Expression:
    """Replace the predicates (negated or not) at some places, counted from the left, by TRUE."""
    if isinstance(node, And | Or):
        return type(node)(tuple(with_some_true(child, chosen, place) for child in node.children))
    place[0] += 1
    return Constant(value=True) if place[0] - 1 in chosen and not isinstance(node, Constant) else node


@examples(200)
@given(st.integers(0, 2**32), st.booleans())
def test_random_filters_match_with_the_nearest_miss_made_true(seed: int, wild: bool) -> None:
    rng = random.Random(seed)
    tree = parse_filter(random_filter(rng, 2, wild=wild))
    attributes = Event.from_row(random_event(rng, 1)).attributes
    found = explain(tree, attributes)
    pushed = push_not(tree)
    assert found.matches is (evaluate(tree, attributes) is True)
    assert found.matches is (evaluate(pushed, attributes) is True)
    failed = [place for place, clause in enumerate(found.clauses) if clause.held is not True]
    assert all(clause.note for clause in found.clauses if clause.held is None and clause.attribute)

    def would_match(chosen: tuple[int, ...]) -> bool:
        return evaluate(with_some_true(pushed, {*chosen}, [0]), attributes) is True

    if len(failed) <= 9:
        sets = (chosen for size in range(len(failed) + 1) for chosen in combinations(failed, size))
        ways = [chosen for chosen in sets if would_match(chosen)]
        assert len(found.nearest_miss) == min(map(len, ways), default=0)
        texts = [tuple(found.clauses[place].text for place in chosen) for chosen in ways]
        assert tuple(clause.text for clause in found.nearest_miss) in texts or not ways
