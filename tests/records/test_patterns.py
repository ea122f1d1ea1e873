"""LIKE: the kernel, the regular expression of the reference, and an answer by definition."""

from __future__ import annotations

import time
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.core.interning import TextPool
from headgate.errors import FilterError
from headgate.records.index.checking import match_glob
from headgate.records.index.index import RecordIndex
from headgate.records.language.model import Attribute, Like
from headgate.records.language.parse import parse_filter
from headgate.records.language.patterns import ANY_CHARACTER, ANY_TEXT, problem, to_regex, tokens
from headgate.records.language.printing import print_filter
from headgate.records.programs.leaves import GlobLeaf
from headgate.records.programs.lowering import lower
from headgate.records.reference import matches
from tests.seeds import examples

LETTERS = "ab%_\\日é🎈\n\U0010ffff"
PARTS = st.sampled_from(["a", "b", "ab", "%", "%", "_", "_", "日", "é", "🎈", "\\%", "\\_", "\\\\", "\n"])
A = Attribute.of("a")


def by_definition(parts: tuple[str | int, ...], text: str) -> bool:
    @cache
    def fits(part: int, place: int) -> bool:
        if part == len(parts):
            return place == len(text)
        if parts[part] == ANY_TEXT:
            return fits(part + 1, place) or (place < len(text) and fits(part, place + 1))
        if place == len(text):
            return False
        return parts[part] in {ANY_CHARACTER, text[place]} and fits(part + 1, place + 1)

    return fits(0, 0)


def by_kernel(pattern: str, escape: str, text: str) -> bool:
    found: list[int] = []
    for part in tokens(pattern, escape):
        found.extend(part.encode() if isinstance(part, str) else [part])
    pool = TextPool.build(["before", text, "after"])
    glob = np.array(found, np.int16)
    return bool(match_glob(pool.data, pool.offsets[1], pool.offsets[2], glob, 0, len(glob)))


def by_index(pattern: str, escape: str, text: str) -> bool:
    printed = print_filter(Like(A, pattern, escape))
    assert parse_filter(printed) == Like(A, pattern, escape)
    index = RecordIndex.build([Subscription(1, printed), Subscription(2, f"NOT {printed}")])
    found = index.match(Event("e", {"a": text}))
    assert found in ([1], [2])
    return found == [1]


@examples(400)
@example(["%", "a", "_", "%"], "aa")
@example(["%", "_"], "🎈")
@example(["_", "%", "é"], "é")
@example(["\\%"], "%")
@example(["%", "日", "本"], "日日本")
@given(st.lists(PARTS, max_size=8), st.text(LETTERS, max_size=10))
def test_three_answers_agree(parts: list[str], text: str) -> None:
    pattern = "".join(parts)
    expected = by_definition(tuple(tokens(pattern, "\\")), text)
    assert by_kernel(pattern, "\\", text) is expected
    assert bool(to_regex(pattern, "\\").fullmatch(text)) is expected


@examples(60)
@given(st.lists(PARTS, max_size=5), st.text(LETTERS, max_size=6))
def test_the_index_agrees(parts: list[str], text: str) -> None:
    pattern = "".join(parts)
    assert by_index(pattern, "\\", text) is by_definition(tuple(tokens(pattern, "\\")), text)


@examples(60)
@given(st.sampled_from("!%_a日'"), st.text("!%_a日'", max_size=6), st.text("!%_a日'", max_size=6))
def test_other_escape_characters(escape: str, pattern: str, text: str) -> None:
    if problem(pattern, escape) is None:
        expected = by_definition(tuple(tokens(pattern, escape)), text)
        assert by_index(pattern, escape, text) is expected
        assert bool(to_regex(pattern, escape).fullmatch(text)) is expected
    else:
        with pytest.raises(FilterError):
            parse_filter(print_filter(Like(A, pattern, escape)))


@examples(40)
@given(st.text(max_size=12), st.text(max_size=12))
def test_a_prefix_is_a_range_of_texts(prefix: str, rest: str) -> None:
    escaped = prefix.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    assert not isinstance(lower(Like(A, f"{escaped}%"), negated=False), GlobLeaf)
    assert not isinstance(lower(Like(A, escaped), negated=True), GlobLeaf)
    for text in (prefix + rest, rest, prefix[:-1], prefix + "\U0010ffff"):
        assert by_index(f"{escaped}%", "\\", text) is text.startswith(prefix)
        assert by_index(escaped, "\\", text) is (text == prefix)


EDGES = ["", "a", "b", "\x7f", "\x80", "\u07ff", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]


@pytest.mark.parametrize("prefix", [*EDGES, "a\U0010ffff", "a\U0010ffff\U0010ffff"])
def test_prefixes_at_the_edges_of_utf8(prefix: str) -> None:
    for text in [*EDGES, "a\U0010ffff", *(prefix + text for text in EDGES)]:
        assert by_index(f"{prefix}%", "\\", text) is text.startswith(prefix)


PATHOLOGICAL = [
    ("%a" * 40 + "%b", "a" * 3000),
    ("%a_" * 30 + "b%", "a" * 3000),
    ("%" * 200 + "b", "a" * 3000),
    ("%_" * 100 + "b", "a" * 3000),
    ("_%" * 100 + "b_", "a" * 3000),
    ("%" + "a" * 200 + "b%", "a" * 3000),
    ("%日%" * 50 + "x", "日" * 2000),
]


@pytest.mark.parametrize(("pattern", "text"), PATHOLOGICAL, ids=range(len(PATHOLOGICAL)))
def test_no_pattern_is_slow(pattern: str, text: str) -> None:
    started = time.thread_time()
    assert matches(Like(A, pattern), {("a",): text}) is False
    assert by_index(pattern, "\\", text[:200]) is False
    assert time.thread_time() - started < 5


def test_what_spark_refuses() -> None:
    assert problem("a\\", "\\") == "the pattern ends with its escape character"
    assert problem("\\a", "\\") == "'a' stands after the escape character; only %, _ and itself may"
    assert problem("a", "") == problem("a", "xy") == "ESCAPE takes one character"
    assert problem("%%", "%") is None
    assert problem("\\\\\\%", "\\") is None
