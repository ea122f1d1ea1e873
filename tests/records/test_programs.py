"""Programs in columns: carried as bytes, laid end to end, taken in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.records.compiling import from_bytes, to_bytes
from headgate.records.language.parse import parse_filter
from headgate.records.programs.binding import compile_filter, compile_filters
from headgate.records.programs.programs import Programs, concatenate, take
from tests.records.edges import FILTERS
from tests.records.programs import in_columns, sound, spelled
from tests.records.random_filters import random_filter
from tests.seeds import examples

if TYPE_CHECKING:
    import random


@examples(60)
@given(st.randoms(use_true_random=False), st.integers(0, 12), st.data())
def test_taken_filters_are_those_filters(rng: random.Random, count: int, data: st.DataObject) -> None:
    texts = [
        random_filter(rng, wild=True) if rng.random() < 0.5 else rng.choice(FILTERS) for _ in range(count)
    ]
    texts = [text for text in texts if _is_filter(text)]
    order = data.draw(st.lists(st.sampled_from(range(len(texts))), max_size=15)) if texts else []
    halves = [
        compile_filters(texts[: len(texts) // 2]).programs,
        compile_filters(texts[len(texts) // 2 :]).programs,
    ]
    whole = concatenate([from_bytes(to_bytes(half)) for half in halves])
    sound(whole)
    found = take(whole, np.array(order, np.int64))
    sound(found)
    expected = in_columns(compile_filter(texts[number]) for number in order)
    assert spelled(found) == spelled(expected)
    assert found.attributes == expected.attributes
    assert found.texts.texts() == expected.texts.texts()


def _is_filter(text: str) -> bool:
    try:
        parse_filter(text)
    except ValueError:
        return False
    return True


def test_what_no_filter_names_is_left_out() -> None:
    programs = compile_filters(["a = 'x' AND z LIKE '%y%'", "b = 1", "c IN ('x', 'q')"]).programs
    found = take(programs, np.array([2]))
    assert (found.leaves, found.attributes, found.texts.texts()) == (1, (("c",),), ["q", "x"])
    empty = take(programs, np.zeros(0, np.int64))
    sound(empty)
    assert (empty.filters, empty.leaves, empty.attributes, empty.texts.size) == (0, 0, (), 0)


def same(left: Programs, right: Programs) -> None:
    """Assert that two are equal to the byte."""
    assert left.attributes == right.attributes
    assert left.texts.texts() == right.texts.texts()
    for name in Programs._fields[:-2]:
        ours, theirs = getattr(left, name), getattr(right, name)
        assert ours.dtype == theirs.dtype, name
        assert ours.tolist() == theirs.tolist(), name


def test_taking_all_in_order_numbers_as_building_does() -> None:
    texts = ["(a = 1 OR b = 'x') AND c", "b = 'x'", "NOT c OR a LIKE 'x%' OR d NOT IN ('z', 'x')", *FILTERS]
    found = take(compile_filters(texts).programs, np.arange(len(texts)))
    same(found, in_columns(map(compile_filter, texts)))


def test_bytes_and_back() -> None:
    for texts in ([], ["TRUE"], FILTERS):
        programs = compile_filters(texts).programs
        for data in (to_bytes(programs), memoryview(b"x" + to_bytes(programs))[1:]):
            sound(from_bytes(data))
            same(from_bytes(data), programs)


def test_other_bytes_are_refused() -> None:
    data = to_bytes(compile_filters(["a = 1"]).programs)
    for damaged in (b"", data[:-8], b"x" + data[1:], data + bytes(8), bytes(len(data))):
        with pytest.raises(ValueError, match="these bytes are not programs"):
            from_bytes(damaged)
