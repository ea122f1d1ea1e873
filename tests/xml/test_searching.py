"""The search for a part of a text: right by the definition, and in linear time whatever the texts are."""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING

import numba
import numpy as np
import pyarrow as pa
import pytest

from headgate import Event, Omissions, Subscription
from headgate.core.jit import kernel
from headgate.core.searching import has_part, two_way
from headgate.xml.answers.answers import answer
from headgate.xml.events.reading import read_document
from headgate.xml.index.index import XmlIndex
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


@pytest.mark.skipif(not COMPILED, reason="times are those of compiled code")
def test_a_filter_that_searches_too_much_is_left_out() -> None:
    """The text of an element is searched for each element that it is in, and a filter may search often."""
    letters, depth = 400_000, 100
    sure = "".join(f"[contains(., '{'x' * n}')]" for n in range(1, 60)) + "[contains(., 'zy')]"
    branches = "".join(f"[.//*[contains(., '{'x' * n}')][contains(., 'y{n}')]]" for n in range(1, 9))
    filters = {
        "bad": f"//*{sure}",
        "branches": f"//*{branches}",
        "few": "//*[contains(., 'y1')][contains(., 'y2')]",
        "one": "//a[contains(., 'xz')]",
        "other": "//a[b]",
    }
    index = XmlIndex.build([Subscription(each, text, "xpath") for each, text in filters.items()])
    text = "<a>" * depth + "x" * letters + "z" + "</a>" * depth
    event = Event("e", text, content_type="xml")
    index.match(event)
    with thread_time() as spent, Omissions() as left_out:
        assert index.match(event) == ["one"]
    assert spent.seconds < 10 * SECONDS
    assert [each.subscription for each in left_out] == ["bad", "branches"]
    assert next(iter(left_out)).reason.startswith("more than 134,217,728 letters would be searched for it")
    assert index.explain(event, "bad").lines() == [f"left out: {next(iter(left_out)).reason}"]
    # Nothing of it is left for the next document, and those that came later are bounded too.
    small = Event("f", f"<a>zy{'x' * 100}</a>", content_type="xml")
    with Omissions() as left_out:
        assert index.match(small) == ["bad"]
    assert not list(left_out)
    index.subscribe(Subscription("later", f"//a{sure}", "xpath"))
    with Omissions() as left_out:
        found = index.match_batch([event, small], pa.array([1, 2]))
    assert found["subscription_id"].to_pylist() == ["one", "bad", "later"]
    assert [(each.event, each.subscription) for each in left_out] == [
        (1, "bad"),
        (1, "branches"),
        (1, "later"),
    ]


@pytest.mark.skipif(not COMPILED, reason="times are those of compiled code")
def test_many_filters_that_search_are_all_asked() -> None:
    """Together they search more than one may; none of them does."""
    index = XmlIndex.build([Subscription(n, f"//a[contains(., 'y{n}')]", "xpath") for n in range(300)])
    event = Event("e", f"<a>{'x' * 1_000_000}y299</a>", content_type="xml")
    with Omissions() as left_out:
        assert index.match(event) == [2, 29, 299]
    assert not list(left_out)
