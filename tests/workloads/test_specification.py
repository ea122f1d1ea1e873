"""Texts and programs of one specification say the same, and the parser takes the texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.specified_programs import check, programs
from benchmarks.workload_statistics import matches
from headgate.core.casts import to_bool, to_date, to_double, to_int, to_timestamp
from headgate.records.language.model import And, Or
from headgate.records.language.parse import parse_filter
from headgate.records.programs.programs import starts
from headgate.records.reference import evaluate
from headgate.workloads.columns import Key
from headgate.workloads.records.specification import Attribute, Operator, Specification, text_order
from headgate.workloads.records.synthetic import distinct, operands, values
from tests.seeds import examples, share
from tests.workloads.specifications import SEED, WORKLOADS, decode, parsed, written

if TYPE_CHECKING:
    from headgate.workloads.records.synthetic import Synthetic

ATTRIBUTES = tuple(Attribute(f"a{number}", number < 4, 14, 0.5, 0.9) for number in range(8))
everywhere = pytest.mark.parametrize("workload", WORKLOADS, ids=repr)


@st.composite
def specifications(draw: st.DrawFn) -> Specification:
    """Make any specification: every operator, values that touch each other, up to three conjunctions."""
    conjunctions, sizes, attribute, operator, lists = [], [], [], [], []
    for _ in range(draw(st.integers(0, 5))):
        first = draw(st.lists(st.integers(0, 7), min_size=1, max_size=3, unique=True))
        conjunctions.append(len(first))
        for begin in first:
            rest = [each for each in range(8) if each != begin]
            others = st.lists(st.sampled_from(rest), min_size=int(len(first) > 1), max_size=4, unique=True)
            named = [begin, *draw(others)]
            sizes.append(len(named))
            attribute.extend(named)
            for each in named:
                allowed = [kind for kind in Operator if not (kind.is_range and ATTRIBUTES[each].is_text)]
                kind = draw(st.sampled_from(allowed))
                operator.append(kind)
                lists.append(draw(_operands(kind, is_text=ATTRIBUTES[each].is_text)))
    flat = [value for each in lists for value in each]
    return Specification(
        ATTRIBUTES,
        starts(np.array(conjunctions, np.int64)),
        starts(np.array(sizes, np.int64)),
        np.array(attribute, np.int64),
        np.array(operator, np.uint8),
        starts(np.array([len(each) for each in lists], np.int64)),
        np.array(flat, np.int64),
    )


def _operands(kind: Operator, *, is_text: bool) -> st.SearchStrategy[list[int]]:
    value = st.integers(0, 13)
    if kind in {Operator.IN, Operator.NOT_IN}:
        order = text_order(14).tolist()
        ascending = st.lists(value, min_size=1, max_size=6, unique=True)
        return ascending.map(lambda found: sorted(found, key=order.__getitem__ if is_text else None))
    if kind in {Operator.BETWEEN, Operator.NOT_BETWEEN}:
        return st.tuples(value, value).map(sorted)
    return value.map(lambda found: [found])


@examples(150)
@given(specifications())
def test_programs_are_those_of_the_texts(spec: Specification) -> None:
    check(spec)
    made = programs(spec)
    made.check()
    again = parsed(written(spec))
    assert decode(made) == decode(again)
    assert {*made.attributes} == {*again.attributes}
    assert sorted(made.texts.texts()) == sorted(again.texts.texts())


@examples(100)
@given(specifications(), st.lists(st.integers(-1, 13), min_size=8, max_size=8))
def test_matches_are_those_of_the_reference(spec: Specification, event: list[int]) -> None:
    row: dict[tuple[str, ...], object] = {
        (each.name,): f"v{value}" if each.is_text else value
        for each, value in zip(ATTRIBUTES, event, strict=True)
        if value >= 0
    }
    slow = [evaluate(parse_filter(text), row) is True for text in written(spec)]
    assert matches(spec, np.array(event)).tolist() == slow


@everywhere
def test_programs_of_workloads_are_those_of_their_texts(workload: Synthetic) -> None:
    spec = workload.specification(np.arange(100_000, 100_000 + share(2_000)), SEED)
    check(spec)
    made = programs(spec)
    made.check()
    assert decode(made) == decode(parsed(written(spec)))


@everywhere
def test_equal_equalities_are_one_leaf(workload: Synthetic) -> None:
    spec = workload.specification(np.arange(2000), SEED)
    single = np.diff(spec.operand_start) == 1
    first = spec.operands[spec.operand_start[:-1]]
    different = {*zip(spec.attribute[single], spec.operator[single], first[single], strict=True)}
    assert programs(spec).leaves == len(different) + np.count_nonzero(~single)


@everywhere
def test_events_are_the_numbers_that_were_drawn(workload: Synthetic) -> None:
    rows = np.arange(30)
    for numbers, event in zip(
        workload.numbers(rows, SEED), workload.events(rows, SEED).to_pylist(), strict=True
    ):
        for attribute, number in zip(workload.attributes, numbers.tolist(), strict=True):
            value = f"v{number}" if attribute.is_text else number
            assert event[attribute.name] == (None if number < 0 else value)


@everywhere
def test_texts_have_the_shape_that_was_drawn(workload: Synthetic) -> None:
    spec = workload.specification(np.arange(share(500)), SEED)
    sizes, conjunctions = np.diff(spec.predicate_start).tolist(), np.diff(spec.conjunction_start).tolist()
    for text, count in zip(written(spec), conjunctions, strict=True):
        model = parse_filter(text)
        parts = model.children if isinstance(model, Or) else (model,)
        assert len(parts) == count
        for part in parts:
            assert isinstance(part, And)
            assert len(part.children) == sizes.pop(0)


@everywhere
@examples(10)
@given(cuts=st.lists(st.integers(0, 120), max_size=6), seed=st.integers(0, 2**40))
def test_rows_are_the_same_whatever_the_batches(workload: Synthetic, cuts: list[int], seed: int) -> None:
    rows = np.arange(1000, 1120)
    for make in (workload.subscriptions, workload.events):
        whole = pa.Table.from_batches([make(rows, seed)])
        parts = [make(part, seed) for part in np.split(rows, sorted(cuts))]
        assert pa.Table.from_batches(parts).combine_chunks().equals(whole.combine_chunks())
        backward = make(rows[::-1], seed).take(pa.array(range(119, -1, -1)))
        assert backward.to_pylist() == whole.to_pylist()


@everywhere
def test_schemas_and_ids(workload: Synthetic) -> None:
    subscriptions = workload.subscriptions(np.array([123, 12_345_678]), SEED)
    assert subscriptions.schema == workload.subscription_schema()
    assert subscriptions.column("id").to_pylist() == ["filter-0000123", "filter-12345678"]
    events = workload.events(np.arange(50), SEED)
    events.validate(full=True)
    assert events.schema == workload.schema()
    assert events.column("id")[42].as_py() == "event-0000042"
    none = np.array([], np.int64)
    assert workload.events(none, SEED).num_rows == workload.subscriptions(none, SEED).num_rows == 0
    assert programs(workload.specification(none, SEED)).filters == 0


@everywhere
def test_a_seed_makes_its_own_rows(workload: Synthetic) -> None:
    rows = np.arange(10)
    assert workload.subscriptions(rows, 1).column(1) != workload.subscriptions(rows, 2).column(1)
    assert workload.events(rows, 1).column(1) != workload.events(rows, 2).column(1)


@pytest.mark.parametrize("cast", [to_bool, to_int, to_double, to_date, to_timestamp])
def test_no_value_casts_to_another_type(cast: object) -> None:
    assert callable(cast)
    assert all(cast(f"v{number}") is None for number in range(3000))


def test_distinct_draws_are_different_and_even() -> None:
    drawn = distinct(Key(1, "t", "c", np.arange(60_000)), 3, 5)
    assert (np.sort(drawn, axis=1)[:, 1:] > np.sort(drawn, axis=1)[:, :-1]).all()
    orders = np.bincount(drawn @ [25, 5, 1])
    orders = orders[orders > 0]
    assert len(orders) == 60
    assert abs(orders - 1000).max() < 150
    first = np.arange(60_000) % 5
    given_first = distinct(Key(1, "t", "c", np.arange(60_000)), 3, 5, first)
    assert (given_first[:, 0] == first).all()
    assert abs(np.bincount(given_first[:, 2]) - 12_000).max() < 500


def test_operands_of_filters_follow_the_law_of_events() -> None:
    attribute = np.zeros(50_000, np.int64)
    laws = (Attribute("a", True, 40, 0.9, 1.0),)
    key = Key(1, "t", "", np.arange(50_000))
    drawn = np.bincount(values(laws, attribute, key), minlength=40) / 50_000
    law = np.arange(1, 41) ** -0.9
    assert abs(drawn - law / law.sum()).max() < 0.01
    start, found = operands(laws, attribute, np.full(50_000, Operator.IN, np.uint8), key, (8, 0.1, 0.2))
    lengths = np.diff(start)
    assert {*lengths.tolist()} == set(range(2, 9))
    assert np.bincount(found)[0] > np.bincount(found)[1:].max()


def test_two_values_are_enough_for_a_list() -> None:
    rows = np.arange(200)
    laws = (Attribute("a", False, 2, 3.0, 1.0),)
    start, found = operands(
        laws,
        np.zeros(200, np.int64),
        np.full(200, Operator.NOT_IN, np.uint8),
        Key(1, "t", "", rows),
        (8, 0, 1),
    )
    assert start.tolist() == (np.arange(201) * 2).tolist()
    assert found.tolist() == [0, 1] * 200
