"""Words: the kernel against the plain split, and its table against what a letter is."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.interning import TextPool
from headgate.core.jit import bare
from headgate.core.text.alphabets import (
    JAVA,
    LETTERS,
    PYTHON,
    RUST,
    Alphabet,
    is_word,
    wanted_word,
    words,
)
from headgate.core.text.finding import KnownWords
from headgate.core.text.listing import Marks, WordLists, collect, mark_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

ODD = "aAbBzZ09_-. 'éÉßẞſKσςΣıİi\u0307\u0301²½ǅǆ日本🎈Ⓐⓐ\u200d\U000e0101𐐀𐐨\u0345ͅµμ"  # noqa: RUF001


ALPHABETS = {"java": JAVA, "rust": RUST, "python": PYTHON}
EACH = pytest.mark.parametrize("alphabet", ALPHABETS.values(), ids=ALPHABETS)


@EACH
@given(
    texts=st.lists(st.text(ODD, max_size=12), max_size=6),
    wanted=st.lists(st.text(ODD, max_size=3), max_size=12),
)
def test_known_words_are_found_once(alphabet: Alphabet, texts: list[str], wanted: list[str]) -> None:
    known = sorted({word for each in wanted for word in alphabet.words(each)})
    words_known = KnownWords.of(TextPool.build(known), None, alphabet)
    found = words_known.find(TextPool.build(texts))
    for t, text in enumerate(texts):
        numbers = found.number[found.start[t] : found.start[t + 1]].tolist()
        expected = dict.fromkeys(known.index(word) for word in alphabet.words(text) if word in known)
        assert numbers == list(expected), (text, known)
        assert words_known.find_one(text).tolist() == numbers


@bare
def _marked(
    lists: WordLists, marks: Marks, data: NDArray[np.uint8], offsets: NDArray[np.int64], ways: int, epoch: int
) -> int:
    for t in range(len(offsets) - 1):
        mark_words(lists, marks, data, int(offsets[t]), int(offsets[t + 1]), np.uint64(ways), epoch)
    return collect(marks)


@EACH
@given(
    documents=st.lists(
        st.tuples(st.lists(st.text(ODD, max_size=12), max_size=3), st.integers(0, 7)), max_size=4
    ),
    wanted=st.lists(
        st.tuples(st.text(ODD, max_size=3), st.integers(0, 2), st.integers(1, 20)), min_size=1, max_size=12
    ),
)
def test_listed_numbers_are_those_of_the_words(
    alphabet: Alphabet, documents: list[tuple[list[str], int]], wanted: list[tuple[str, int, int]]
) -> None:
    """Groups that are small and large, by one way or several; texts one after another."""
    asked = [(word, way) for text, way, many in wanted for word in alphabet.words(text) for _ in range(many)]
    random.Random(len(asked)).shuffle(asked)
    known = sorted({word for word, _ in asked})
    rows = np.array([(known.index(word), way, n) for n, (word, way) in enumerate(asked)], np.int32)
    lists, large = WordLists.build(TextPool.build(known), alphabet, *rows.reshape(-1, 3).T)
    marks, epoch = Marks.make(len(asked), large), 0
    for texts, ways in documents:
        epoch = marks.next_epoch(epoch)
        pool = TextPool.build(texts)
        count = _marked(lists, marks, pool.data, pool.offsets, ways, epoch)
        there = {word for text in texts for word in alphabet.words(text)}
        expected = [n for n, (word, way) in enumerate(asked) if word in there and ways >> way & 1]
        assert marks.out[:count].tolist() == expected


def test_marks_begin_anew_behind_the_last_epoch() -> None:
    marks = Marks.make(1, 1)
    marks.done[0] = 1
    assert marks.next_epoch(2**31 - 2) == 1
    assert not marks.done.any()


def test_marks_of_earlier_texts_hide_nothing() -> None:
    """Marks are kept from call to call: for short texts, for longer ones, and begun anew for long ones."""
    known = KnownWords.of(TextPool.build(["a", "b"]))
    for text in ("a b a", "a", "b " * 40_000 + "a", "b a", "a " * 500, "a b"):
        for _ in range(2):
            expected = list(dict.fromkeys(["a", "b"].index(word) for word in text.split()))
            assert known.find_one(text).tolist() == expected


def test_many_words_at_once() -> None:
    rng = random.Random(1)
    known = sorted({"".join(rng.choices("abcdé", k=rng.randint(1, 6))) for _ in range(3000)})
    pool = TextPool.build(known)
    texts = [
        " ".join("".join(rng.choices("aAbcdDéÉ", k=rng.randint(1, 6))) for _ in range(300)) for _ in range(5)
    ]
    found = KnownWords.of(pool).find(TextPool.build(texts))
    place = {word: number for number, word in enumerate(known)}
    for t, text in enumerate(texts):
        expected = dict.fromkeys(place[word] for word in words(text) if word in place)
        assert found.number[found.start[t] : found.start[t + 1]].tolist() == list(expected)
        assert len(expected) > 50


@EACH
def test_the_table_says_what_the_definition_says(alphabet: Alphabet) -> None:
    table = alphabet.table
    rng = random.Random(2)
    odd = [ord(each) for each in ODD if ord(each) < LETTERS]
    for code in {*range(0x600), *odd, *rng.sample(range(0xE000, LETTERS), 5000)}:
        assert (table[code] != 0) == alphabet.is_letter(chr(code)), hex(code)
        words_of = alphabet.words(chr(code))
        assert [chr(table[code])] == words_of if table[code] else not words_of, hex(code)


@pytest.mark.nightly
def test_no_other_character_beyond_the_table_is_a_letter() -> None:
    for alphabet in ALPHABETS.values():
        found = [code for code in range(LETTERS, 0x110000) if alphabet.is_letter(chr(code))]
        assert found == (list(range(0xE0100, 0xE01F0)) if alphabet.marks else [])


@EACH
def test_folding_is_done_once(alphabet: Alphabet) -> None:
    folded = alphabet.table[:LETTERS][alphabet.table[:LETTERS] != 0]
    assert (alphabet.table[folded] == folded).all()


@pytest.mark.parametrize(
    ("one", "other"),
    [("Straße", "STRAẞE"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("Kelvin", "KELVIN"), ("İ", "i"), ("ǅ", "ǆ"), ("µ", "Μ")],  # noqa: RUF001
)
def test_letters_that_differ_in_case_are_the_same(one: str, other: str) -> None:
    assert words(one) == words(other)


@pytest.mark.parametrize("text", ["", "two words", "don't", "a.b", "½", "🎈", " a"])
def test_what_is_no_word(text: str) -> None:
    assert not is_word(text)
    assert wanted_word(rf"\b{text}\b") is None
