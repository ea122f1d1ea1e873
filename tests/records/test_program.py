"""Programs: tokens, and merged leaves against the filters they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.errors import FilterError
from headgate.records import reference
from headgate.records.index.index import RecordIndex
from headgate.records.language.model import And, Constant, Not, Or, Truth
from headgate.records.language.parse import parse_filter
from headgate.records.language.rewrite import normalise
from headgate.records.programs.leaves import SetLeaf, both, either, never
from headgate.records.programs.lowering import lower
from headgate.records.programs.program import compile_program
from headgate.records.programs.tokens import AND, FALSE, MAX_HEIGHT, OR, TRUE
from tests.records.edges import FILTERS, TREES, VALUES
from tests.seeds import examples

if TYPE_CHECKING:
    from headgate.records.language.model import Expression
    from headgate.records.programs.tokens import Program


def program(text: str) -> Program:
    return compile_program(normalise(parse_filter(text)))


TOKENS: list[tuple[str, tuple[int, ...], int]] = [
    ("TRUE", (TRUE,), 0),
    ("NULL", (FALSE,), 0),
    ("a = NULL", (FALSE,), 0),
    ("a OR NOT a IS NULL OR TRUE", (TRUE,), 0),
    ("a = 1", (0,), 1),
    ("a = 1 AND b = 1", (0, 1, AND), 2),
    ("a = 1 OR b = 1 OR c = 1", (0, 1, OR, 2, OR), 3),
    ("(a = 1 OR b = 1) AND (a = 1 OR c = 1)", (0, 1, OR, 0, 2, OR, AND), 3),
    ("(a = 1 OR b = 1) AND c = 1", (0, 1, 2, OR, AND), 3),
    # Merged over one attribute.
    ("a > 1 AND a < 5", (0,), 1),
    ("a = 1 OR a = 2 OR a IN (3, 4)", (0,), 1),
    ("a = 1 OR b = 1 OR a = 2", (0, 1, OR), 2),
    ("a > 1 AND a > 2 AND a > 3 AND a > 4 AND a > 5", (0,), 1),
    ("a = 1 OR a IS NULL", (0,), 1),
    ("a = 1 OR a = 'x'", (0,), 1),
    ("a = 'x' OR a LIKE 'y%'", (0,), 1),
    ("a > 5 AND a < 1", (FALSE,), 0),
    ("a = 1 AND a IS NULL", (FALSE,), 0),
    # Not merged: a text may meet one as a number and the other as a text.
    ("a > 1 AND a < 'x'", (0, 1, AND), 2),
    ("a = 1 AND a IS NOT NULL", (0, 1, AND), 2),
    ("a LIKE 'x%' AND a > 'x'", (0, 1, AND), 2),
    ("a LIKE '%x' OR a LIKE '%y'", (0, 1, OR), 2),
    ("array_contains(a, 1) AND array_contains(a, 2)", (0, 1, AND), 2),
    ("array_contains(a, 1) OR array_contains(a, 2)", (0, 1, OR), 2),
]


@pytest.mark.parametrize(("text", "tokens", "leaves"), TOKENS)
def test_tokens(text: str, tokens: tuple[int, ...], leaves: int) -> None:
    found = program(text)
    assert found.tokens == tokens
    assert len(found.leaves) == leaves


def test_equal_leaves_are_one() -> None:
    assert len(program("(a = 1 AND b = 1) OR (a = 1 AND c = 1) OR (NOT a != 1 AND d = 1)").leaves) == 4


def test_height_is_limited() -> None:
    def alternating(depth: int) -> Expression:
        tree: Expression = parse_filter("x0 OR y0")
        for level in range(1, depth):
            leaf = Truth(parse_filter(f"z{level}").attribute)  # type: ignore[union-attr]
            tree = And((leaf, tree)) if level % 2 else Or((leaf, tree))
        return tree

    assert compile_program(alternating(MAX_HEIGHT - 3)).tokens
    with pytest.raises(FilterError, match="AND and OR alternate deeper than 256"):
        compile_program(alternating(MAX_HEIGHT + 1))


def test_the_deepest_text_fits() -> None:
    text = "b"
    for level in range(63):
        text = f"(a{level} {'AND' if level % 2 else 'OR'} {text})"
    index = RecordIndex.build([Subscription(1, text), Subscription(2, f"NOT {text}")])
    event = {f"a{level}": bool(level % 2) for level in range(63)}
    assert index.match(Event("e", {**event, "b": True})) == [1]
    assert index.match(Event("e", {**event, "b": False})) == [2]
    assert index.match(Event("e", event)) == []


SIMPLE = [tree for tree in TREES if not isinstance(normalise(tree), And | Or | Constant)]


def leaf_of(tree: Expression) -> SetLeaf | None:
    changed = normalise(tree)
    negated = isinstance(changed, Not)
    predicate = changed.child if isinstance(changed, Not) else changed
    assert not isinstance(predicate, And | Or | Not | Constant)
    leaf = lower(predicate, negated=negated)
    return leaf if isinstance(leaf, SetLeaf) and leaf.quantifier == 0 else None


@examples(150)
@given(st.lists(st.sampled_from(range(len(FILTERS))), min_size=2, max_size=5), st.booleans(), st.data())
def test_merged_filters_agree_with_the_reference(
    numbers: list[int], conjunction: bool, data: st.DataObject
) -> None:
    """AND and OR over one attribute merge their leaves; no kind of value may notice."""
    text = (" AND " if conjunction else " OR ").join(f"({FILTERS[number]})" for number in numbers)
    tree = parse_filter(text)
    index = RecordIndex.build([Subscription(0, text)])
    for value in data.draw(st.lists(st.sampled_from(VALUES), min_size=8, max_size=8)):
        event = Event("e", {"a": value})
        assert bool(index.match(event)) is reference.matches(tree, event.attributes), (text, value)


@examples(300)
@given(st.sampled_from(SIMPLE), st.sampled_from(SIMPLE))
def test_merging_is_symmetric(first: Expression, second: Expression) -> None:
    left, right = leaf_of(first), leaf_of(second)
    if left is not None and right is not None:
        assert both(left, right) == both(right, left)
        assert either(left, right) == either(right, left)
        assert either(left, left) == left
        merged = both(left, left)
        assert merged is None or merged == left
        if never(left):
            assert either(left, right) == right


def test_many_clauses_over_one_attribute() -> None:
    some = " OR ".join(f"a = {number}" for number in range(0, 300, 3))
    none = " AND ".join(f"a != {number}" for number in range(0, 300, 3))
    mixed = " OR ".join(f"a = {number} OR a = 'n{number}' OR b = {number}" for number in range(0, 300, 3))
    index = RecordIndex.build([Subscription(0, some), Subscription(1, none), Subscription(2, mixed)])
    assert len(program(some).leaves) == len(program(none).leaves) == 1
    assert len(program(mixed).leaves) == 2
    for value in (0, 1, 150, 299, 1.0, 3.0, "3", "4", "n3", "x", None, True):
        event = Event("e", {"a": value})
        expected = [
            n
            for n, text in enumerate((some, none, mixed))
            if reference.matches(parse_filter(text), event.attributes)
        ]
        assert index.match(event) == expected, value


@pytest.mark.parametrize("join", ["AND", "OR"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("array_contains(a, 1)", "arrays_overlap(a, array(1))"),
        ("NOT array_contains(a, 2)", "NOT arrays_overlap(a, array(2))"),
        ("s LIKE '%x%'", "s LIKE '%%x%'"),
        ("s NOT LIKE '%y%'", "s NOT LIKE '%%y%'"),
    ],
)
def test_equal_leaves_of_different_texts_stay_what_they_are(left: str, right: str, join: str) -> None:
    text = f"{left} {join} {right}"
    assert len(compile_program(normalise(parse_filter(text))).leaves) == 1
    index = RecordIndex.build([Subscription(1, text)])
    assert index.match(Event(1, {"a": [1], "s": "axb"})) == [1]
    assert index.match(Event(1, {"a": [2], "s": "ayb"})) == []
