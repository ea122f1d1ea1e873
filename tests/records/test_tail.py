"""The tail: the answers of the reference, views that stand still, growth, readers beside a writer."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.errors import EventError
from headgate.records import reference
from headgate.records.index.index import RecordIndex
from headgate.records.language.parse import parse_filter
from headgate.records.language.rewrite import normalise
from headgate.records.programs.program import compile_program
from headgate.records.programs.tokens import Program
from headgate.records.tail.events import ALL_BITS
from headgate.records.tail.kernels import GUARD_WORDS
from headgate.records.tail.tail import Tail
from tests.records import edges
from tests.records.programs import sound, spelled
from tests.records.random_filters import random_event, random_filter
from tests.seeds import examples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.core.values import Path
    from headgate.records.language.model import Expression
    from headgate.records.tail.tail import TailView

seeds = st.randoms(use_true_random=False)


def program(text: str) -> Program:
    return compile_program(normalise(parse_filter(text)))


def tail_of(*filters: str) -> Tail:
    tail = Tail()
    for number, text in enumerate(filters):
        assert tail.add(program(text)) == number
    assert len(tail) == len(filters)
    return tail


def none_removed(view: TailView) -> NDArray[np.uint8]:
    return np.zeros(view.filters, np.uint8)


def one(tail: Tail, event: Mapping[Path, object], view: TailView | None = None) -> list[int]:
    view = view or tail.view()
    found: list[int] = tail.match_one(view, event, none_removed(view)).tolist()
    return found


def right(trees: Sequence[Expression], event: Mapping[Path, object]) -> list[int]:
    return [number for number, tree in enumerate(trees) if reference.matches(tree, event)]


@examples(100)
@given(seeds, st.booleans())
def test_the_tail_agrees_with_the_reference(rng: random.Random, wild: bool) -> None:
    filters = [random_filter(rng, wild=wild) for _ in range(12)]
    rows = [random_event(rng, identity) for identity in range(8)]
    events = [Event.from_row(row).attributes for row in rows]
    expected = [right([parse_filter(text) for text in filters], event) for event in events]
    tail = tail_of(*filters)
    assert [one(tail, event) for event in events] == expected, filters


def test_edges_of_every_type() -> None:
    tail = Tail()
    for tree in edges.TREES:
        tail.add(compile_program(normalise(tree)))
    events: list[dict[Path, object]] = [{("a",): value} for value in edges.VALUES]
    expected = [right(edges.TREES, event) for event in events]
    assert [one(tail, event) for event in events] == expected


def test_edges_behind_guards() -> None:
    """With a second operand the edges become guards, or give way to the better one."""
    texts = edges.FILTERS[::7]
    filters = [f"({text}) AND b = {number % 3}" for number, text in enumerate(texts)]
    filters += [f"({text}) AND b > 0" for text in texts]
    tail, trees = tail_of(*filters), [parse_filter(text) for text in filters]
    events: list[dict[Path, object]] = [
        {("a",): value, ("b",): number % 4} for number, value in enumerate(edges.VALUES)
    ]
    expected = [right(trees, event) for event in events]
    assert [one(tail, event) for event in events] == expected


def test_an_empty_tail() -> None:
    tail = Tail()
    assert len(tail) == 0
    assert one(tail, {("a",): 1}) == []
    assert tail.view().attributes == []
    assert tail.programs(np.zeros(0, bool)).filters == 0


def test_filters_without_attributes() -> None:
    tail = tail_of("TRUE", "FALSE", "NULL", "NOT FALSE")
    assert one(tail, {}) == [0, 3]
    assert one(tail, {("a",): 1}) == [0, 3]


def test_constants_inside_a_program() -> None:
    leaves = program("a = 1").leaves
    tail = Tail()
    cases = [(0, -3, -1), (0, -4, -1), (0, -3, -2), (0, -4, -2), (-4, 0, -2), (-3, 0, -1), (0, 0, -2)]
    for tokens in cases:
        tail.add(Program(tokens, leaves))
    assert one(tail, {("a",): 1}) == [0, 2, 3, 4, 5, 6]
    assert one(tail, {("a",): 2}) == [2]
    assert tail.programs(np.ones(len(cases), bool)).tokens.tolist()[:3] == [0, -3, -1]


def test_deep_programs() -> None:
    rng = random.Random(3)
    filters = []
    for _ in range(6):
        text = "a = 0"
        for level in range(60):
            leaf = f"{rng.choice('abc')} {rng.choice(['=', '!=', '<'])} {rng.randrange(4)}"
            text = f"{leaf} {('AND', 'OR')[level % 2]} ({text})"
        filters.append(text)
    tail, trees = tail_of(*filters), [parse_filter(text) for text in filters]
    events: list[dict[Path, object]] = [
        {(name,): rng.choice([None, 0, 1, 2, 3]) for name in "abc"} for _ in range(40)
    ]
    assert [one(tail, event) for event in events] == [right(trees, event) for event in events]
    again = tail.programs(np.ones(len(filters), bool))
    assert np.diff(again.token_start).tolist() == [len(program(text).tokens) for text in filters]


def test_programs_stacked_as_high_as_they_may() -> None:
    leaves = program("a = 1 OR b = 2").leaves
    tokens = (*(number % 2 for number in range(255)), *([-2, -1] * 127))
    tail = Tail()
    tail.add(Program(tokens, leaves))
    assert tail.programs(np.ones(1, bool)).tokens[-254:].tolist() == list(tokens[-254:])
    assert one(tail, {("a",): 1, ("b",): 2}) == [0]
    assert one(tail, {}) == []


def test_views_stand_still() -> None:
    tail = Tail()
    views = [tail.view()]
    for number in range(300):
        tail.add(program(f"a = 1 AND b{number % 20} IS NULL" if number % 3 else "a > 0"))
        views.append(tail.view())
        assert tail.view() is views[-1]
    for count, view in enumerate(views):
        assert view.filters == count
        assert one(tail, {("a",): 1}, view) == list(range(count))
    assert views[1].attributes == [("a",)]
    assert len(views[-1].attributes) == 21


def test_what_filters_look_at() -> None:
    view = tail_of("a IS NULL", "b = 1", "c LIKE '%x%'", "array_contains(d, 1)", "e IS NOT NULL").view()
    assert view.attributes == [("a",), ("b",), ("c",), ("d",), ("e",)]


def test_removed_filters_are_passed_over() -> None:
    tail = tail_of("a = 1", "a > 0", "a = 1 AND b = 2", "TRUE")
    view = tail.view()
    event: dict[Path, object] = {("a",): 1, ("b",): 2}
    removed = np.array([1, 0, 1, 1, 0], np.uint8)
    assert tail.match_one(view, event, removed).tolist() == [1]


@pytest.mark.parametrize(
    ("text", "guarded"),
    [
        ("a = 'x'", True),
        ("a = 5", True),
        ("a = 5e0", True),
        ("a = 12345678901234567", True),
        ("a IN ('x', 'y', 'z')", True),
        ("a > 5", True),
        ("a IS NOT NULL", True),
        ("(a = 'x' OR b = 'y') AND c = 'z'", True),
        ("array_contains(a, 'x')", True),
        ("a LIKE 'x'", True),
        ("a = 'x' OR b = 'y'", True),
        ("a = 'x' OR b LIKE 'y%'", False),
        ("a IS NULL", False),
        ("NOT array_contains(a, 'x')", False),
        ("array_contains(a, 5)", False),
        ("a LIKE 'x%'", False),
        ("a > 'x'", False),
        ("FALSE", False),
    ],
)
def test_guards(text: str, guarded: bool) -> None:
    assert (tail_of(text).view().arrays.guard_start[1] > 0) == guarded


def test_guards_of_several_operands() -> None:
    arrays = tail_of("n BETWEEN 1 AND 2000 AND a IN ('x', 'y', 'z') AND (b = 1 OR c = 2)").view().arrays
    guards = arrays.guards[: GUARD_WORDS * arrays.guard_start[1]].reshape(-1, GUARD_WORDS).tolist()
    assert guards[0][1:] == [1, 2000, ALL_BITS]
    assert guards[-1][3].bit_count() == 3


def test_growth_and_many_guards() -> None:
    rng = random.Random(9)
    filters = []
    for number in range(3000):
        items = ", ".join(f"'v{rng.randrange(40)}'" for _ in range(rng.choice([1, 1, 2, 5])))
        filters.append(f"a IN ({items}) AND n BETWEEN {number % 50} AND {number % 50 + 20}")
        if number % 7 == 0:
            filters[-1] = f"t{number % 30} = 'word{number}' OR a = 'v{number % 40}'"
        if number % 11 == 0:
            filters[-1] = f"array_contains(tags, 'v{number % 13}') AND n != {number % 17}"
    tail, trees = tail_of(*filters), [parse_filter(text) for text in filters]
    events: list[dict[Path, object]] = [
        {("a",): f"v{n}", ("n",): 3 * n, ("tags",): [f"v{n}", f"v{n}", None], ("t7",): "word7"}
        for n in range(12)
    ]
    expected = [right(trees, event) for event in events]
    assert [one(tail, event) for event in events] == expected


def test_many_filters_that_hold() -> None:
    tail = Tail()
    same = program("a = 1")
    for _ in range(9000):
        tail.add(same)
    assert [len(one(tail, {("a",): number % 2})) for number in range(20)] == [0, 9000] * 10


def test_programs_build_the_same_answers() -> None:
    rng = random.Random(21)
    filters = [random_filter(rng, wild=True) for _ in range(120)]
    rows = [random_event(rng, number) for number in range(60)]
    tail = tail_of(*filters)
    keep = np.array([rng.random() < 0.7 for _ in filters])
    programs = tail.programs(keep)
    programs.check()
    sound(programs)
    kept = [text for text, here in zip(filters, keep, strict=True) if here]
    whole = tail.programs(np.ones(len(filters), bool))
    for found, text in zip(spelled(whole), filters, strict=True):
        alone = tail_of(text).programs(np.ones(1, bool))
        assert spelled(alone) == [found]
        assert len(found) == len(program(text).tokens)
    index = RecordIndex.from_programs(Ids.of(range(len(kept))), TextPool.build(kept), programs)
    trees = [parse_filter(text) for text in kept]
    for row in rows:
        event = Event.from_row(row)
        assert index.match(event) == right(trees, event.attributes)
    assert spelled(tail.programs(keep[:50])) == spelled(programs)[: int(keep[:50].sum())]


def test_readers_beside_a_writer() -> None:
    groups, total = 40, 4000
    programs = [
        program(f"k = 'v{number % groups}' AND x{number % 9} IS NULL" if number % 10 else "k IS NOT NULL")
        for number in range(total)
    ]
    tail = Tail()
    removed = np.zeros(total, np.uint8)

    def expected(count: int, group: int) -> list[int]:
        return [number for number in range(count) if number % groups == group or number % 10 == 0]

    def write() -> None:
        for each in programs:
            tail.add(each)

    def read(group: int) -> None:
        event: dict[Path, object] = {("k",): f"v{group}"}
        seen = 0
        for _ in range(100):
            view = tail.view()
            assert tail.match_one(view, event, removed).tolist() == expected(view.filters, group)
            assert seen <= view.filters
            seen = view.filters

    with ThreadPoolExecutor(5) as pool:
        work = [pool.submit(write), *(pool.submit(read, group) for group in (1, 7, 11, 33))]
        for each in work:
            each.result()
    assert one(tail, {("k",): "v7"}) == expected(total, 7)


def test_an_add_that_fails_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    tail = tail_of("a = 1", "b > 1", "a = 1 AND b = 2")
    view = tail.view()

    def fail(*_: object) -> None:
        raise MemoryError

    for text in ("a = 1 AND c = 'x'", "c != 1", "a = 7"):
        with monkeypatch.context() as patch:
            patch.setattr("headgate.records.tail.tail.TailView", fail)
            with pytest.raises(MemoryError):
                tail.add(program(text))
        assert tail.view() is view
    assert tail.add(program("a = 1 AND d IS NULL")) == 3
    assert one(tail, {("a",): 1, ("b",): 2, ("c",): "x"}) == [0, 1, 2, 3]
    assert one(tail, {("a",): 1, ("b",): 2}, view) == [0, 1, 2]
    with pytest.raises(AssertionError):
        tail.add(Program((0, 0), program("a = 1").leaves))
    assert tail.add(program("a = 1")) == 4
    assert one(tail, {("a",): 1}) == [0, 3, 4]
    assert tail.programs(np.ones(5, bool)).filters == 5


def test_values_that_cannot_be_matched_raise() -> None:
    tail = tail_of("a = 1")
    assert one(tail, {("b",): b"x"}) == []
    with pytest.raises(EventError, match="a value of type bytes is not supported"):
        one(tail, {("a",): b"x"})
