"""Views over records: what implies what, and views computed from others."""

from __future__ import annotations

import random
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate.core.event import Event
from headgate.errors import PlanError
from headgate.records.programs.binding import parse_text
from headgate.records.reference import matches
from headgate.records.views.coverage import clauses_of, tree_implies
from headgate.records.views.views import KEY, ROW, RecordViews
from tests.records.random_filters import random_event, random_filter
from tests.seeds import seeds, share

if TYPE_CHECKING:
    from numpy.typing import NDArray


def view_texts(rng: random.Random, size: int) -> list[str]:
    """Draw filters that share clauses, or have clauses that imply those of others."""
    clauses = [random_filter(rng, depth=rng.choice((0, 0, 0, 1, 2)), wild=True) for _ in range(6)]
    clauses += [f"i {rng.choice('<>')} {rng.randrange(9)}" for _ in range(4)]
    clauses += [f"i = {rng.randrange(9)} OR s = 'news'", "i IS NOT NULL", "i IN (1, 2, 5)", "s LIKE 'ne%'"]
    return [
        " AND ".join(f"({each})" for each in rng.sample(clauses, rng.choice((1, 2, 2, 3, 4))))
        for _ in range(size)
    ]


def pairs_of(count: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """List all pairs of views."""
    sources, targets = np.divmod(np.arange(count * count, dtype=np.int32), np.int32(count))
    return sources, targets


IMPLIED = [
    ("a > 7", "a > 5", True),
    ("a > 5", "a > 7", False),
    ("a = 3", "a IN (1, 3)", True),
    ("a = 3", "a >= 1 OR b = 2", True),
    ("a >= 1 OR b = 2", "a >= 1", False),
    ("a = 1 OR a = 2", "a IN (1, 2)", True),
    ("a IN (1, 2)", "a = 1 OR a = 2", True),
    ("a = 3", "a IS NOT NULL", True),
    ("a LIKE '%x%'", "a IS NOT NULL", True),
    ("array_contains(a, 3)", "a IS NOT NULL", True),
    ("a IS NULL", "a IS NOT NULL", False),
    ("a IS NULL", "a IS NULL OR a > 3", True),
    ("a > 3", "a IS NULL OR a > 3", True),
    ("NOT (a <= 3)", "a > 3", True),
    ("a != 3", "NOT a = 3", True),
    ("a <=> 3", "a = 3", True),
    ("NOT a <=> 3", "a != 3", False),
    ("a != 3", "NOT a <=> 3", True),
    ("a = 'news'", "a LIKE 'ne%'", False),
    ("a LIKE 'new%'", "a LIKE 'ne%'", True),
    ("a LIKE '%x%'", "a LIKE '%x%'", True),
    ("array_contains(a, 3)", "arrays_overlap(a, array(3, 4))", True),
    ("forall(a, x -> x IN (1))", "forall(a, x -> x IN (1, 2))", True),
    ("(a = 1 AND b = 2) OR (a = 1 AND c = 3)", "a = 1", True),
    ("a > 5", "b > 5", False),
]


@pytest.mark.parametrize(("strong", "weak", "expected"), IMPLIED)
def test_clauses_imply_clauses(strong: str, weak: str, expected: bool) -> None:
    """Value sets lie in value sets, and trees in trees."""
    (one,), (other,) = clauses_of(strong), clauses_of(weak)
    assert tree_implies(one.tree, other.tree) == expected
    assert tree_implies(one.tree, one.tree)


@pytest.mark.parametrize("seed", seeds(30))
def test_what_is_implied_holds_wherever_it_should(seed: int) -> None:
    """No event tells a clause from what it implies; NULLs and errors included."""
    rng = random.Random(seed)
    clauses = [clause for text in view_texts(rng, 8) for clause in clauses_of(text)]
    events = [Event(number, random_event(rng, number)).attributes for number in range(60)]
    held = [[matches(clause.expression, event) for event in events] for clause in clauses]
    for one, first in zip(clauses, held, strict=True):
        for other, second in zip(clauses, held, strict=True):
            if tree_implies(one.tree, other.tree):
                assert all(b for a, b in zip(first, second, strict=True) if a), (one.text, other.text)
                assert other.names <= one.names


@pytest.mark.parametrize("seed", seeds(30))
def test_clauses_say_together_what_the_filter_says(seed: int) -> None:
    """A filter is TRUE if and only if all of its clauses are."""
    rng = random.Random(seed)
    for text in (random_filter(rng, wild=True) for _ in range(10)):
        whole, clauses = parse_text(text), clauses_of(text)
        for number in range(10):
            event = Event(number, random_event(rng, number)).attributes
            assert matches(whole, event) == all(matches(each.expression, event) for each in clauses)


@pytest.mark.parametrize("carries", [ROW, KEY])
@pytest.mark.parametrize("seed", seeds(15))
def test_coverage_is_what_clauses_imply(seed: int, carries: str) -> None:
    """The loops agree with the definition, and the filters lose nothing."""
    texts = view_texts(random.Random(seed), 20)
    views = RecordViews.build(texts, carries)
    parts = [clauses_of(text) for text in texts]
    sources, targets = pairs_of(len(texts))
    embeds, masks = views.coverage(sources, targets)
    for source, target, embed, mask in zip(
        sources.tolist(), targets.tolist(), embeds.tolist(), masks.tolist(), strict=True
    ):
        expected = all(any(tree_implies(b.tree, a.tree) for b in parts[target]) for a in parts[source])
        assert embed == expected
        covered = [
            carries == ROW or any(tree_implies(a.tree, b.tree) for a in parts[source]) for b in parts[target]
        ]
        assert mask == (sum(found << place for place, found in enumerate(covered)) if expected else 0)
        if embed:
            labels = [
                set(views.labels[views.label_offsets[v] : views.label_offsets[v + 1]].tolist())
                for v in (source, target)
            ]
            assert labels[0] <= labels[1]
            for word in (0, 1):
                assert not int(views.demands[2 * source + word]) & ~int(views.offers[2 * target + word])
    matrix = embeds.reshape(len(texts), len(texts))
    assert matrix.diagonal().all()
    assert np.all(matrix[matrix @ matrix])


@pytest.mark.parametrize("carries", [ROW, KEY])
def test_rewritings_give_what_the_event_gives(carries: str) -> None:
    """No difference in any rewriting, over covers of up to three views."""
    made = given = joined = 0
    for seed in seeds(20):
        rng = random.Random(seed)
        views = RecordViews.build(view_texts(rng, 20), carries)
        events = [Event(number, random_event(rng, number)) for number in range(20)]
        direct = [[views.result(view, event) for view in range(len(views))] for event in events]
        embeds, masks = (each.reshape(20, 20) for each in views.coverage(*pairs_of(20)))
        for view in range(20):
            useful = [each for each in range(20) if each != view and embeds[each, view] and masks[each, view]]
            for size in (1, 2, 3):
                for inputs in list(combinations(useful, size))[:20]:
                    if np.bitwise_or.reduce(masks[list(inputs), view]) != views.needed[view]:
                        continue
                    made += 1
                    joined += size > 1
                    for results in direct:
                        found = views.rewritten(view, inputs, [results[each] for each in inputs])
                        assert found == results[view]
                        given += found is not None
    assert made > share(100)
    assert given > share(100)
    assert joined > share(20)


def test_a_key_needs_all_clauses() -> None:
    """With KEY, views are joined until nothing is left; what is missing is named."""
    views = RecordViews.build(["a = 1", "b = 2", "a = 1 AND b = 2 AND c = 3", "c > 1", "c = 3"], KEY)
    with pytest.raises(PlanError, match="nothing covers c = 3"):
        views.plan_of(2, [0, 1, 3])
    with pytest.raises(PlanError, match="not implied"):
        views.plan_of(0, [2])
    assert views.plan_of(2, [0, 1, 4]) == [
        "take the key of view 0: a = 1",
        "take the key of view 1: b = 2",
        "take the key of view 4: c = 3",
        "keep it if all of them have it",
    ]


def test_a_row_is_tested_again() -> None:
    """With ROW, what an input does not guarantee is selected."""
    views = RecordViews.build(["a > 1 AND b = 2", "a > 3 AND b = 2 AND (c = 3 OR d IS NULL)"])
    assert views.plan_of(1, [0]) == [
        "take the row of view 0: a > 1 AND b = 2",
        "select a > 3",
        "select c = 3 OR d IS NULL",
    ]


def test_views_without_clauses_and_with_too_many() -> None:
    """TRUE feeds everything that carries rows, FALSE nothing; more than 64 clauses take no part."""
    many = " AND ".join(f"x{number} = 1" for number in range(65))
    views = RecordViews.build(["TRUE", "a = 1", "FALSE", many, "TRUE AND TRUE"])
    embeds, masks = (each.reshape(5, 5) for each in views.coverage(*pairs_of(5)))
    assert views.needed.tolist() == [1, 1, 1, 0, 1]
    assert embeds[0].tolist() == [True, True, True, False, True]
    assert embeds[1].tolist() == [False, True, False, False, False]
    assert masks[0, 1] == 1
    assert views.equals.tolist() == [0, 1, 2, 3, 0]
    event = Event(1, {"a": 1})
    assert views.rewritten(1, [0], [event]) == event
    assert views.rewritten(2, [0], [event]) is None
    with pytest.raises(PlanError, match="view 3 has 65 clauses"):
        views.rewritten(3, [0], [event])


def test_sizes() -> None:
    """A row is as large as its JSON, a key as its id."""
    event = Event("näh", {"a": 1})
    rows, keys = RecordViews.build(["a = 1"]), RecordViews.build(["a = 1"], KEY)
    assert rows.size(rows.result(0, event)) == (1, 7)
    assert keys.size(keys.result(0, event)) == (1, 4)
    assert keys.size(7) == (1, 8)
    assert rows.size(None) == (0, 0)
    with pytest.raises(PlanError, match="carry 'all'"):
        RecordViews.build([], "all")
