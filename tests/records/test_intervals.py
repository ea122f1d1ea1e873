"""Interval algebra against sets of points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from headgate.records.programs.intervals import (
    NUMBERS,
    TEXTS,
    after,
    before,
    complement,
    intersection,
    number,
    union,
)

if TYPE_CHECKING:
    from headgate.records.programs.intervals import Cut, Intervals

LINE = (number(0), number(12))
POINTS = range(12)
WORDS = ["", "\0", "a", "a\0", "ab", "b", "日", "🎈", "\U0010ffff"]

pieces = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=5)
word_cuts = st.sampled_from([*(before(word) for word in WORDS), *(after(word) for word in WORDS), TEXTS[1]])
word_pieces = st.lists(st.tuples(word_cuts, word_cuts), max_size=4)


def make(ranges: list[tuple[int, int]]) -> Intervals:
    return union(tuple((number(low), number(high)) for low, high in ranges if low <= high), ())


def numbers(intervals: Intervals) -> set[int]:
    return {point for point in POINTS for low, high in intervals if low <= number(point) < high}


def words(intervals: Intervals) -> set[str]:
    return {word for word in WORDS for low, high in intervals if low <= before(word) < high}


def check(intervals: Intervals) -> None:
    """Assert that intervals are not empty, sorted, and apart from each other."""
    cuts: list[Cut] = [cut for interval in intervals for cut in interval]
    assert cuts == sorted(set(cuts))


@given(pieces, pieces)
def test_numbers(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    a, b = make(left), make(right)
    assert numbers(a) == {point for point in POINTS for low, high in left if low <= point < high}
    for found, expected in (
        (union(a, b), numbers(a) | numbers(b)),
        (intersection(a, b), numbers(a) & numbers(b)),
        (complement(LINE, a), set(POINTS) - numbers(a)),
        (complement(LINE, complement(LINE, a)), numbers(a)),
    ):
        check(found)
        assert numbers(found) == expected


@given(pieces, pieces, pieces)
def test_laws(x: list[tuple[int, int]], y: list[tuple[int, int]], z: list[tuple[int, int]]) -> None:
    a, b, c = make(x), make(y), make(z)
    assert union(a, b) == union(b, a)
    assert intersection(a, b) == intersection(b, a)
    assert union(a, union(b, c)) == union(union(a, b), c)
    assert intersection(a, union(b, c)) == union(intersection(a, b), intersection(a, c))
    assert complement(LINE, union(a, b)) == intersection(complement(LINE, a), complement(LINE, b))
    assert union(a, a) == intersection(a, a) == a


@given(
    st.lists(st.tuples(word_cuts, word_cuts), max_size=4),
    st.lists(st.tuples(word_cuts, word_cuts), max_size=4),
)
def test_texts(left: list[tuple[Cut, Cut]], right: list[tuple[Cut, Cut]]) -> None:
    a, b = (union(tuple((min(pair), max(pair)) for pair in pairs), ()) for pairs in (left, right))
    check(a)
    assert words(union(a, b)) == words(a) | words(b)
    assert words(intersection(a, b)) == words(a) & words(b)
    assert words(complement(TEXTS, a)) == set(WORDS) - words(a)
    check(complement(TEXTS, a))


def test_cuts_are_in_order() -> None:
    cuts = [cut for word in sorted(WORDS) for cut in (before(word), after(word))]
    assert cuts == sorted(cuts)
    assert cuts[0] == TEXTS[0]
    assert cuts[-1] < TEXTS[1]


def test_the_ends_of_the_lines() -> None:
    lowest, highest = number(-(2**63)), number(2**63)
    assert (lowest, highest) == NUMBERS
    assert complement(NUMBERS, (NUMBERS,)) == ()
    assert complement(NUMBERS, ()) == (NUMBERS,)
    edge = ((number(2**63 - 1), highest),)
    assert complement(NUMBERS, edge) == ((lowest, number(2**63 - 1)),)
    assert complement(TEXTS, ((before(""), after("")),)) == ((after(""), TEXTS[1]),)
