"""Every rewrite pass by truth table."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event
from headgate.records.language.model import And, Comparison, Constant, Not, Op, Or, Truth
from headgate.records.language.parse import parse_filter
from headgate.records.language.rewrite import (
    PASSES,
    drop_unknown,
    expand_between,
    flatten,
    normalise,
    push_not,
    resolve_nulls,
)
from headgate.records.reference import evaluate
from tests.records.random_filters import random_event, random_filter
from tests.seeds import NIGHTLY, examples

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from headgate.core.values import Path
    from headgate.records.language.model import Expression

    Pass = Callable[[Expression], Expression]

# Leaves that are TRUE, FALSE and NULL as their attribute is True, False or missing.
P, Q, R = (parse_filter(name) for name in ("p", "q", "r"))
CONSTANTS: tuple[Expression, ...] = (Constant(value=True), Constant(value=False), Constant(None))
# Predicates that passes change, each with the values of its attribute that give every outcome.
OTHERS: list[tuple[Expression, list[object]]] = [
    (parse_filter("p BETWEEN 1 AND 3"), [0, 2, 4, None]),
    (parse_filter("p BETWEEN 3 AND 1"), [0, 2, 4, None]),
    (parse_filter("p BETWEEN NULL AND 3"), [0, 4, None]),
    (parse_filter("p BETWEEN 1 AND NULL"), [0, 4, None]),
    (parse_filter("p BETWEEN NULL AND NULL"), [0, None]),
    (parse_filter("p BETWEEN '1' AND 3"), [0, 2, 4, "2", "x", None, True]),
    *((Comparison(op, P.attribute, parse_filter("p = NULL").literal), [1, "x", None]) for op in Op),  # type: ignore[union-attr]
    (parse_filter("p IN (NULL)"), [1, None]),
    (parse_filter("p IN (NULL, NULL)"), [1, None]),
    (parse_filter("p IN (1, NULL)"), [1, 2, None]),
    (parse_filter("p IS NULL"), [1, None]),
    (parse_filter("p"), [True, False, None, 5]),
    (parse_filter("p <=> 1"), [1, 2, None, "x"]),
    (parse_filter("array_contains(p, 1)"), [[1], [2], [None], [], None, 5]),
    (parse_filter("arrays_overlap(p, array(1, NULL))"), [[1], [2], [], None, 5]),
    (parse_filter("arrays_overlap(p, array())"), [[1], [], None, 5]),
    (parse_filter("forall(p, x -> x IN (1, 2))"), [[1, 2], [3], [1, None], [3, None], [], None, 5]),
    (parse_filter("forall(p, x -> x IS NULL OR x = 1)"), [[1, None], [3, None], ["x"], [], None, 5]),
    (parse_filter("forall(p, x -> x IN (NULL))"), [[1], [], None, 5]),
]
VALUE_PASSES: list[Pass] = [expand_between, resolve_nulls, push_not, flatten]


def small_trees() -> list[Expression]:
    """List NOT, AND and OR over leaves and constants, to depth 2, with up to three children."""
    leaves: list[Expression] = [P, Q, *CONSTANTS]
    once: list[Expression] = [*leaves, *(Not(leaf) for leaf in leaves)]
    once += [kind(pair) for kind in (And, Or) for pair in product(leaves, repeat=2)]
    trees = [*once, *(Not(tree) for tree in once)]
    some = [P, Not(Q), CONSTANTS[2], And((P, Q)), Or((P, Not(Q))), Not(And((Q, P))), Or((Q, CONSTANTS[1]))]
    trees += [kind(pair) for kind in (And, Or) for pair in product(some, once)]
    trees += [kind(triple) for kind in (And, Or) for triple in product(some, some, some)]
    return [*trees, *(Not(tree) for tree in trees[-500:])]


TREES = small_trees()
SOME = TREES[:: 1 if NIGHTLY else 3]
ROWS: list[dict[Path, object]] = [{("p",): p, ("q",): q} for p, q in product([True, False, None], repeat=2)]


def nodes(tree: Expression) -> Iterator[Expression]:
    yield tree
    if isinstance(tree, And | Or):
        for child in tree.children:
            yield from nodes(child)
    elif isinstance(tree, Not):
        yield from nodes(tree.child)


def is_pushed(tree: Expression) -> bool:
    """Tell whether NOT stands at predicates only."""
    below = [node.child for node in nodes(tree) if isinstance(node, Not)]
    return not any(isinstance(child, And | Or | Not | Constant) for child in below)


def test_there_are_enough_trees() -> None:
    assert len(set(TREES)) > 1500


@pytest.mark.parametrize("rewrite", VALUE_PASSES)
def test_value_is_kept(rewrite: Pass) -> None:
    for tree in SOME:
        changed = rewrite(tree)
        for row in ROWS:
            assert evaluate(changed, row) is evaluate(tree, row), (tree, row)


@pytest.mark.parametrize("rewrite", [drop_unknown, flatten])
def test_truth_is_kept_once_not_is_pushed(rewrite: Pass) -> None:
    for tree in map(push_not, SOME):
        changed = rewrite(tree)
        for row in ROWS:
            assert (evaluate(changed, row) is True) is (evaluate(tree, row) is True), (tree, row)


def test_the_whole_keeps_truth() -> None:
    for tree in SOME:
        changed = normalise(tree)
        for row in ROWS:
            assert (evaluate(changed, row) is True) is (evaluate(tree, row) is True), (tree, row)


@pytest.mark.parametrize("rewrite", [expand_between, resolve_nulls, push_not])
@pytest.mark.parametrize(("predicate", "values"), OTHERS)
def test_predicates_keep_their_value(rewrite: Pass, predicate: Expression, values: list[object]) -> None:
    around: list[Expression] = [predicate, Not(predicate), And((predicate, Q)), Or((Not(predicate), Q))]
    around.append(Not(Or((predicate, Q))))
    for tree in around:
        changed = rewrite(tree)
        for p, q in product(values, [True, False, None]):
            row: dict[Path, object] = {("p",): p, ("q",): q}
            assert evaluate(changed, row) is evaluate(tree, row), (tree, row)


@pytest.mark.parametrize(("predicate", "values"), OTHERS)
def test_predicates_keep_their_truth(predicate: Expression, values: list[object]) -> None:
    for tree in (predicate, Not(predicate), Not(Not(predicate)), Or((Not(predicate), Q))):
        for p, q in product(values, [True, False, None]):
            row: dict[Path, object] = {("p",): p, ("q",): q}
            assert (evaluate(normalise(tree), row) is True) is (evaluate(tree, row) is True), (tree, row)


@pytest.mark.parametrize("rewrite", PASSES)
def test_passes_are_idempotent_and_change_nothing_in_place(rewrite: Pass) -> None:
    for tree in SOME:
        given_tree = push_not(tree)
        before = repr(given_tree)
        changed = rewrite(given_tree)
        assert repr(given_tree) == before
        assert rewrite(changed) == changed


def test_what_each_pass_promises() -> None:
    for tree in SOME:
        assert is_pushed(push_not(tree))
        dropped = drop_unknown(push_not(tree))
        assert Constant(None) not in set(nodes(dropped))
        assert isinstance(dropped, Constant) or not any(isinstance(node, Constant) for node in nodes(dropped))
        whole = normalise(tree)
        for node in nodes(whole):
            if isinstance(node, And | Or):
                assert len(node.children) == len(set(node.children)) > 1
                assert not any(isinstance(child, type(node)) for child in node.children)


def test_the_example_that_others_get_wrong() -> None:
    # Vespa's AndOrSimplifier makes `NOT a OR NOT b OR NOT c` of it.
    assert normalise(parse_filter("NOT (p AND (q OR r))")) == Or((Not(P), And((Not(Q), Not(R)))))


@examples(200)
@given(st.randoms(use_true_random=False))
def test_deep_filters(rng: random.Random) -> None:
    tree = parse_filter(random_filter(rng, depth=5, wild=True))
    rows = [Event.from_row(random_event(rng, 0)).attributes for _ in range(4)]
    for rewrite in VALUE_PASSES:
        changed = rewrite(tree)
        assert [evaluate(changed, row) for row in rows] == [evaluate(tree, row) for row in rows]
    whole = normalise(tree)
    assert is_pushed(whole)
    assert [evaluate(whole, row) is True for row in rows] == [evaluate(tree, row) is True for row in rows]
    for rewrite in PASSES:
        assert rewrite(whole) == whole


def test_bare_attributes_are_boolean_leaves() -> None:
    assert isinstance(P, Truth)
    assert [evaluate(P, {("p",): value}) for value in (True, False, None)] == [True, False, None]
