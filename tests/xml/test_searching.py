"""The search for a part of a text: right by the definition, and in linear time whatever the texts are."""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING

import numba
import numpy as np
import pytest

from headgate import Subscription, XmlIndex
from headgate.core.jit import kernel
from headgate.xml.answers.answers import answer
from headgate.xml.events.reading import read_document
from headgate.xml.index.searching import has_part, two_way
from headgate.xml.language.parse import parse_filter
from tests.seeds import seeds
from tests.timing import thread_time

if TYPE_CHECKING:
    from numpy.typing import NDArray

pytestmark = pytest.mark.jit_off

COMPILED = not vars(numba.config)["DISABLE_JIT"]
SECONDS = 0.5


@kernel
def both(wanted: NDArray[np.uint8], text: NDArray[np.uint8], begin: int) -> tuple[bool, bool]:
    """Ask both methods."""
    last = len(wanted) - 1
    by_turns = has_part(wanted, 1, last, text, begin, len(text) - 1)
    return by_turns, two_way(wanted, 1, last - 1, text, begin, len(text) - 1)


def check(wanted: bytes, text: bytes) -> None:
    # What is on both sides belongs to others: it must not be looked at.
    one, other = bytearray(b"<" + wanted + b">"), bytearray(b"<<" + text + wanted[-1:])
    found = both(np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8), 2)
    assert found == (wanted in text, wanted in text), (wanted, text)


def test_all_short_texts_of_two_letters() -> None:
    texts = [bytes(letters) for size in range(9) for letters in product(b"ab", repeat=size)]
    for wanted in texts:
        if 0 < len(wanted) < 6:
            for text in texts[:: 1 if COMPILED else 7]:
                check(wanted, text)


@pytest.mark.parametrize("seed", seeds(20))
def test_texts_that_repeat_themselves(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200 if COMPILED else 20):
        piece = bytes(rng.choices(b"ab\xc3", k=rng.randint(1, 6)))
        text = bytearray(piece * rng.randint(1, 200))
        for _ in range(rng.randint(0, 3)):
            text[rng.randrange(len(text))] = rng.choice(b"ab\xc3")
        begin = rng.randrange(len(text))
        wanted = bytearray(text[begin : begin + rng.randint(1, len(text))])
        if rng.random() < 0.5:
            wanted[rng.randrange(len(wanted))] = rng.choice(b"ab\xc3")
        check(bytes(wanted), bytes(text))


@pytest.mark.skipif(not COMPILED, reason="times are those of compiled code")
@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ("a" * 60_000 + "b", "a" * 4_000_000),
        ("b" + "a" * 60_000, "a" * 4_000_000),
        ("a" * 30_000 + "b" + "a" * 30_000, "a" * 4_000_000),
        ("ab" * 30_000 + "b", "ab" * 2_000_000),
        ("a" * 900 + "b", "a" * 4_000_000),
    ],
    ids=["last", "first", "middle", "pairs", "short"],
)
def test_no_text_makes_a_search_long(wanted: str, text: str) -> None:
    filters = f"//a[contains(., '{wanted}')]", f"//a[contains(., '{wanted[:-1]}c')]"
    index = XmlIndex.build([Subscription(place, each, "xpath") for place, each in enumerate(filters)])
    for each in ("<a>b</a>", f"<a>{wanted}</a>"):  # compiles all of it
        index.match_document(read_document(each))
        answer(parse_filter(filters[0]), read_document(each))
    document = read_document(f"<a>{text}</a>")
    with thread_time() as spent:
        assert index.match_document(document).tolist() == []
        assert answer(parse_filter(filters[0]), document) is None
    assert spent.seconds < SECONDS
    document = read_document(f"<a>{text[:3_000_000]}{wanted}</a>")
    with thread_time() as spent:
        assert index.match_document(document).tolist() == [0]
        found = answer(parse_filter(filters[0]), document)
    assert found is not None
    assert found.ids[0].pre.tolist() == [0]
    assert spent.seconds < SECONDS
