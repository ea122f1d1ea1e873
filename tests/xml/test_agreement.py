"""The index against the reference: random patterns and documents, odd numbers, recursion, changes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate import Event, Subscription
from headgate.contents.columns import from_bytes, to_bytes
from headgate.core.interning import TextPool
from headgate.xml.events.reading import read_document
from headgate.xml.index import matching
from headgate.xml.index.columns import Columns, compile_all, concatenate, take
from headgate.xml.index.index import XmlIndex
from headgate.xml.language.model import DESCENDANT, SIGNS, Node, Pattern
from headgate.xml.language.model import Test as Condition
from headgate.xml.language.printing import print_pattern
from headgate.xml.language.values import number
from tests.seeds import seeds, share
from tests.xml import reference
from tests.xml.invariants import check_arrays
from tests.xml.random_patterns import random_document, random_pattern

if TYPE_CHECKING:
    from headgate.xml.events.document import Document

pytestmark = pytest.mark.jit_off


def subscriptions(patterns: list[Pattern]) -> list[Subscription]:
    return [Subscription(n, print_pattern(pattern), "xpath") for n, pattern in enumerate(patterns)]


def right(patterns: list[Pattern], document: Document) -> list[int]:
    return [n for n, pattern in enumerate(patterns) if reference.matches(pattern, document)]


def event_of(document: Document) -> Event:
    return Event("e", document, content_type="application/xml")


def compare(patterns: list[Pattern], documents: list[str]) -> int:
    """Compare all pairs; returns how many match."""
    index = XmlIndex.build(subscriptions(patterns))
    check_arrays(index._state.base.arrays)  # noqa: SLF001 -- nothing public tells
    matches = 0
    for text in documents:
        document = read_document(text)
        wanted = right(patterns, document)
        assert index.match(event_of(document)) == wanted, text
        matches += len(wanted)
    return matches


def drawn(seed: str, patterns: int, documents: int) -> int:
    rng = random.Random(seed)
    return compare(
        [random_pattern(rng) for _ in range(patterns)], [random_document(rng) for _ in range(documents)]
    )


def test_the_index_is_as_the_reference() -> None:
    matches = sum(drawn(f"index {n}", 50, 6) for n in seeds(25))
    assert matches > share(1000)


@pytest.mark.nightly
def test_the_index_is_as_the_reference_many_times() -> None:
    matches = sum(drawn(f"nightly {n}", 100, 20) for n in range(100))
    assert matches > 20_000


@pytest.mark.nightly
@pytest.mark.parametrize("setting", ["NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"])
def test_interpreted_and_with_checked_bounds(setting: str, tmp_path: Path) -> None:
    """Either raises where compiled code would read beyond an array."""
    code = (
        "from tests.xml.test_agreement import drawn; assert sum(drawn(str(n), 40, 4) for n in range(4)) > 50"
    )
    environment = {
        **os.environ,
        setting: "1",
        "NUMBA_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=250)


def nested(rng: random.Random, depth: int) -> str:
    """Draw elements of two names inside each other, so that paths and `//` meet in many ways."""
    name = rng.choice("ab")
    inside = (
        "".join(nested(rng, depth - 1) for _ in range(rng.choice((1, 2, 3)))) if depth else rng.choice("12")
    )
    return f"<{name}>{inside}</{name}>"


@pytest.mark.parametrize("seed", seeds(6))
def test_labels_inside_themselves(seed: int) -> None:
    rng = random.Random(seed)

    def node(parent: int) -> Node:
        tests = (Condition(rng.choice(("=", "contains")), rng.choice(("1", "2", "12", "21"))),)
        return Node(
            rng.choice(("a", "b", "*")),
            rng.choice(("/", "//")),
            parent,
            tests if rng.random() < 0.2 else (),
        )

    patterns = []
    for _ in range(150):
        nodes = [node(-1)]
        path = [0]
        for _ in range(rng.randrange(7)):
            path = path[: rng.randrange(len(path)) + 1]
            nodes.append(node(path[-1]))
            path.append(len(nodes) - 1)
        patterns.append(Pattern(tuple(nodes)))
    assert compare(patterns, [nested(rng, rng.choice((3, 4, 5))) for _ in range(5)]) > 100


NUMBERS = [
    *(
        "0",
        "-0",
        "1",
        "-1",
        "1.",
        ".5",
        "-.5",
        ".",
        "-",
        "",
        " 1 ",
        "\t1\r\n",
        "+1",
        "1e3",
        "1 2",
        "--1",
        "1.2.3",
    ),
    *(
        "0.1",
        "0.30000000000000004",
        "123456789012345",
        "1234567890123456",
        "9007199254740993",
        "00000000000000001",
    ),
    *(
        "9" * 30,
        "9" * 400,
        "0." + "0" * 330 + "1",
        "1.7976931348623157" + "0" * 20,
        "x",
        "1x",
        "\u00a01",
        "\u0661",
    ),
]


def test_numbers_as_python_reads_them() -> None:
    values = [n for n in map(number, NUMBERS) if n == n and abs(n) < 1e300]  # noqa: PLR0124 -- not NaN
    patterns = [
        Pattern((Node("a", DESCENDANT, tests=(Condition(sign, value),)),))
        for sign in SIGNS[:6]
        for value in sorted({*values, 0.3, 2.0})
    ]
    documents = ["<r>" + "".join(f"<a>{text}</a>" for text in NUMBERS) + "</r>"]
    documents += [f"<r><a>{text}</a></r>" for text in NUMBERS]
    assert compare(patterns, documents) > 1000


def test_texts_as_python_compares_them() -> None:
    texts = ["", "a", "ab", "aab", "ba", "abab", "zoë", "ë", "🎈"]
    patterns = [
        Pattern((Node("*", DESCENDANT, tests=(Condition(sign, text),)),))
        for sign in ("=", "!=", "contains", "starts-with")
        for text in texts
    ]
    documents = [f"<r><a>{one}</a><b>{other}</b></r>" for one in texts for other in texts]
    assert compare(patterns, documents) > 1000


def test_equal_patterns_are_one_and_units_are_shared() -> None:
    texts = ["//a[b][c]/d", "//a[c][b]/d{val}", "//a[c/e][b]/d", "/r//a[b]"]
    index = XmlIndex.build([Subscription(n, text, "xpath") for n, text in enumerate(texts)])
    arrays = index._state.base.arrays  # noqa: SLF001 -- nothing public tells
    assert len(arrays.forests.need) == 3
    # Below //a: b, c, c[e], e, d. Two anchors at it, and the last b of the fourth, which is all that it asks.
    assert len(arrays.units.row) == 5 + 2 + 1
    assert index.match(Event("e", "<r><a><b/><c/><d/></a></r>", content_type="xml")) == [0, 1, 3]


def test_many_labels_and_texts_collide_and_scratch_grows() -> None:
    count = 4000
    patterns = [
        Pattern(
            (Node("r"), Node(f"n{n}", DESCENDANT, 0, (Condition("=", f"t{n % 7}"),)), Node("b", parent=1))
        )
        for n in range(count)
    ]
    index = XmlIndex.build(subscriptions(patterns))
    small = read_document("<r><n1>t1<b/></n1></r>")
    assert index.match(event_of(small)) == [1]
    text = "".join(f"<n{n}>t{n % 7 if n % 3 else 'x'}<b/></n{n}>" for n in range(count))
    assert index.match(event_of(read_document(f"<r>{text}</r>"))) == [n for n in range(count) if n % 3]
    assert index.match(event_of(small)) == [1]


def test_no_room_at_first_is_as_room_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_NODES", "_PAIRS", "_ENTRIES", "_TRUTHS"):
        monkeypatch.setattr(matching, name, 1)
    assert sum(drawn(f"small {n}", 60, 4) for n in seeds(5)) > share(100)


def test_changes_are_as_a_rebuild() -> None:
    for seed in seeds(5):
        rng = random.Random(f"changes {seed}")
        here = {n: random_pattern(rng) for n in range(0, 40, 2)}
        index = XmlIndex.build([Subscription(n, print_pattern(each), "xpath") for n, each in here.items()])
        documents = [read_document(random_document(rng)) for _ in range(4)]
        for _ in range(40):
            identity = rng.randrange(40)
            if identity in here:
                index.unsubscribe(identity)
                del here[identity]
            else:
                here[identity] = random_pattern(rng)
                index.subscribe(Subscription(identity, print_pattern(here[identity]), "xpath"))
            if rng.random() < 0.1:
                index.compact()
            assert len(index) == len(here)
            document = rng.choice(documents)
            event = event_of(document)
            wanted = [each for each in sorted(here) if reference.matches(here[each], document)]
            assert index.match(event) == wanted
            assert index.next(event, 13) == next((each for each in wanted if each >= 13), None)


def test_a_long_tail_is_as_a_base() -> None:
    rng = random.Random("tail")
    patterns = [random_pattern(rng) for _ in range(300)]
    index = XmlIndex.build([])
    index.compact_after = None
    for subscription in subscriptions(patterns):
        index.subscribe(subscription)
        index.match(event_of(read_document("<r/>")))
    sizes = [block.size for block in index._state.tail.view().blocks]  # noqa: SLF001 -- nothing public tells
    assert sizes == [256, 44]
    for _ in range(5):
        document = read_document(random_document(rng))
        assert index.match(event_of(document)) == right(patterns, document)


def test_columns_in_parts_are_one() -> None:
    rng = random.Random(11)
    patterns = [random_pattern(rng) for _ in range(60)]
    whole = compile_all(patterns)
    joined = concatenate(
        [from_bytes(to_bytes(compile_all(patterns[a : a + 20])), Columns) for a in (0, 20, 40)]
    )
    for one, other in zip(whole, joined, strict=True):
        if isinstance(one, TextPool):
            assert isinstance(other, TextPool)
            assert one.texts() == other.texts()
        else:
            np.testing.assert_array_equal(one, other)
    order = np.array([5, 3, 59])
    picked, few = take(whole, order), compile_all([patterns[n] for n in order.tolist()])
    assert picked.size == 3
    assert sorted(picked.labels.texts()) == sorted(few.labels.texts())
    assert sorted(picked.texts.texts()) == sorted(few.texts.texts())
    assert [picked.labels.text(n) for n in picked.label] == [few.labels.text(n) for n in few.label]
    assert concatenate([compile_all([]), few]).size == 3
