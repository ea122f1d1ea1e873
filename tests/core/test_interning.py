"""Texts as numbers: the pool, and places in it."""

from __future__ import annotations

from bisect import bisect_left

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.core.interning import TextPool

pytestmark = pytest.mark.jit_off

# Few characters, so that texts share prefixes; from each length of UTF-8, and the edges between them.
LETTERS = "\0a~\x7f\x80ÿ\u07ff\u0800日\ud7ff\ue000\uffff\U00010000🎈\U0010ffff"
TEXTS = st.lists(st.text(LETTERS, max_size=4) | st.text(max_size=6))


def expected_place(run: list[str], text: str) -> int:
    rank = bisect_left(run, text)
    return 2 * rank + (rank < len(run) and run[rank] == text)


@given(TEXTS)
def test_texts_come_back(texts: list[str]) -> None:
    pool = TextPool.build(texts)
    pool.check()
    assert pool.size == len(texts)
    assert pool.texts() == texts
    assert [pool.text(i) for i in range(pool.size)] == texts


@example([], [""])
@example([""], ["", "a"])
@example(["\uffff", "\U00010000"], ["\U00010000", "\uffff", "\ue000", "\U0010ffff"])
@given(TEXTS, TEXTS)
def test_places_are_those_of_python(texts: list[str], wanted: list[str]) -> None:
    run = sorted(set(texts))
    wanted = [*wanted, *run]
    found = TextPool.build(run).place(wanted, 0, len(run)).tolist()
    assert found == [expected_place(run, text) for text in wanted]


@given(TEXTS, TEXTS, TEXTS)
def test_a_run_inside_a_pool(before: list[str], texts: list[str], after: list[str]) -> None:
    run = sorted(set(texts))
    pool = TextPool.build([*before, *run, *after])
    wanted = [*before, *run, *after, ""]
    found = pool.place(wanted, len(before), len(before) + len(run)).tolist()
    assert found == [expected_place(run, text) for text in wanted]


def test_nothing_to_place() -> None:
    assert TextPool.build(["a"]).place([], 0, 1).tolist() == []
    assert TextPool.build([]).place(["a", ""], 0, 0).tolist() == [0, 0]


def test_long_common_prefixes() -> None:
    run = sorted("x" * 1000 + suffix for suffix in ("", "a", "b", "ab"))
    assert TextPool.build(run).place([*run, "x" * 999, "x" * 1001], 0, 4).tolist() == [1, 3, 5, 7, 0, 8]
