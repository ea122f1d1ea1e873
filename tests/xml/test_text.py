"""Whole words in any case: the ways from filters to answers that they take, and Python's expressions."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headgate import Event, Subscription
from headgate.core.text.alphabets import PYTHON
from headgate.xml.events.reading import read_document
from headgate.xml.index.columns import compile_all
from headgate.xml.index.index import XmlIndex, xml_keys
from headgate.xml.language.parse import parse_filter
from headgate.xml.views.views import XmlViews
from tests.xml import reference

if TYPE_CHECKING:
    from pathlib import Path

FORMS = [
    r"//item[re:test(title, '\b{}\b', 'i')]",
    r"//item[re:test(., '\b{}\b', 'i')]/title{{val}}",
    r"re:test(//title, '\b{}\b', 'i') and //item/@n > 3",
    r"//item[re:test(@n, '\b{}\b', 'i')][title]",
    r"//*[re:test(., '\b{}\b', 'i') and re:test(., '\bab\b', 'i')]",
    r"//item[re:test(title, '\b{}\b', 'i') and @n > 2]/b",
    r"//text()[re:test(., '\b{}\b', 'i')]",
    r"/feed//b[re:test(., '\b{}\b', 'i')][contains(., 'a')]",
    "//item[contains(title, '{}')]",
]


def drawn(rng: random.Random) -> tuple[list[str], list[str]]:
    """Draw filters, and documents with words of theirs."""
    vocabulary = ["".join(rng.choices("abcdeÉéßẞiıİ", k=rng.randint(1, 3))) for _ in range(40)]  # noqa: RUF001
    filters = [rng.choice(FORMS).format(rng.choice(vocabulary)) for _ in range(120)]

    def some() -> str:
        return " ".join(each.upper() if rng.random() < 0.3 else each for each in rng.choices(vocabulary, k=5))

    def item() -> str:
        parts = "".join(f"<{name}>{some()}</{name}>{some()}" for name in rng.choices(("title", "b"), k=3))
        return f'<item n="{rng.choice((some(), "3", "4 ab"))}">{parts}</item>'

    return filters, [f"<feed>{''.join(item() for _ in range(rng.randint(1, 3)))}</feed>" for _ in range(25)]


def test_all_ways_give_the_same(tmp_path: Path) -> None:
    """In the base, in the tail, compacted, saved; event by event and in a table."""
    filters, texts = drawn(random.Random(7))
    patterns = [parse_filter(text) for text in filters]
    documents = [read_document(text) for text in texts]
    expected = [
        [n for n, each in enumerate(patterns) if reference.matches(each, document)] for document in documents
    ]
    assert sum(map(len, expected)) > 300
    events = [Event(n, text, content_type="application/xml") for n, text in enumerate(texts)]
    subscriptions = [Subscription(n, text, "xpath") for n, text in enumerate(filters)]
    index = XmlIndex.build(subscriptions)
    late = XmlIndex.build(subscriptions[:30])
    for each in subscriptions[30:]:
        late.subscribe(each)
    table = pa.RecordBatch.from_pydict(
        {
            "id": list(range(len(texts))),
            "data": texts,
            "datacontenttype": ["application/xml"] * len(texts),
        }
    )
    pairs = [(n, each) for n, found in enumerate(expected) for each in found]
    for tried in (index, late):
        assert [tried.match(event) for event in events] == expected
        assert [tuple(row.values()) for row in tried.match_batch(table).to_pylist()] == pairs
    late.compact()
    late.save(tmp_path / "snapshot")
    for tried in (late, XmlIndex.open(tmp_path / "snapshot")):
        assert [tried.match(event) for event in events] == expected
    for number in range(0, 120, 5):
        assert index.explain(events[3], number).matches is (number in expected[3])
        answer = index.answer(events[3], number)
        rows = [] if answer is None else list(answer.tuples(1000).rows)
        assert rows == reference.tuples(patterns[number], documents[3])


LISTED = [
    r"//item[re:test({n}, '\b{w}\b', 'i')]",
    r"//{n}[re:test(., '\b{w}\b', 'i')]",
    r"/feed//{n}//b[re:test(@n, '\b{w}\b', 'i')]",
    r"//*[re:test(text(), '\b{w}\b', 'i')]/@n",
    r"//feed[.//{n}[re:test(., '\b{w}\b', 'i')]]",
]
NOT_LISTED = [
    r"//item[re:test({n}, '\b{w}\b', 'i')]/b",
    r"//{n}[re:test(., '\b{w}\b', 'i') and re:test(., '\bab\b', 'i')]",
    r"//{n}[re:test(., '\b{w}\b', 'i')][@n > 3]",
    r"re:test(//{n}, '\b{w}\b', 'i') and //item",
    "//{n}[contains(., '{w}')]",
]


@pytest.mark.parametrize(("seed", "others"), [(1, 0), (2, 40), (3, 150)])
def test_words_that_are_listed_give_what_nodes_and_the_reference_give(seed: int, others: int) -> None:
    """Filters that are a path to a word, among others like them and unlike them."""
    rng = random.Random(f"listed {seed}")
    vocabulary = [*{"".join(rng.choices("abÉéßẞiıİ", k=rng.randint(1, 3))) for _ in range(40)}, "ab"]  # noqa: RUF001
    names = ["title", "b", "item", *(f"n{n}" for n in range(70))]

    def written(forms: list[str], count: int) -> list[str]:
        return [
            rng.choice(forms).format(
                n=rng.choice(names[:3] if rng.random() < 0.7 else names), w=rng.choice(vocabulary)
            )
            for _ in range(count)
        ]

    filters = written(LISTED, 250) + written(NOT_LISTED, others)
    index = XmlIndex.build(Subscription(n, text, "xpath") for n, text in enumerate(filters))
    patterns = [parse_filter(text) for text in filters]
    matcher = index._state.base.matcher.inner  # noqa: SLF001 -- nothing public tells
    assert matcher._split is not None  # noqa: SLF001

    def some() -> str:
        return " ".join(each.upper() if rng.random() < 0.3 else each for each in rng.choices(vocabulary, k=4))

    def item() -> str:
        parts = "".join(
            f'<{name}>{some()}<b n="{some()}">{some()}</b></{name}>'
            for name in rng.choices((*names[:3], *names), k=3)
        )
        return f'<item n="{rng.choice((some(), "3", "4 ab"))}">{parts}</item>'

    total = 0
    for _ in range(12):
        text = f"<feed>{''.join(item() for _ in range(rng.randint(0, 3)))}</feed>"
        document = read_document(text)
        # With all words as nodes.
        joined = matcher._thread_scratch().match(*matcher._with_words(document, matcher._words), {})  # noqa: SLF001
        assert matcher.match(document).tolist() == joined.tolist()
        expected = [n for n, each in enumerate(patterns) if reference.matches(each, document)]
        assert index.match(Event("e", text, content_type="application/xml")) == expected
        total += len(expected)
    assert total > 100


def test_what_is_told() -> None:
    index = XmlIndex.build([Subscription(1, r"//title[re:test(., '\bnews\b', 'i')]", "xpath")])
    told = index.explain(Event("e", "<title>Newsletter</title>", content_type="application/xml"), 1).lines()
    assert "fails for 'Newsletter': the text has 'newsletter', and not the word alone" in told[1]


def test_a_view_with_a_word_feeds_the_same_word_only() -> None:
    texts = [r"//a[re:test(b, '\bx\b', 'i')]/c", r"//a[re:test(b, '\bX\b', 'i')]/c", "//a[b]/c"]
    views = XmlViews.build([parse_filter(text) for text in texts])
    assert views.equals.tolist()[:2] == [0, 0]
    text = "<r><a><b>X y</b><c>1</c></a><a><b>y</b><c>2</c></a></r>"
    event = Event("e", text, content_type="application/xml")
    assert views.size(views.result(0, event)) != views.size(views.result(2, event))


def test_words_are_no_keys() -> None:
    columns = compile_all([parse_filter(r"//a[re:test(b, '\bx\b', 'i')]")])
    assert xml_keys(columns) == [frozenset({"a", "b"})]


EVERY = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
CASED = [each for each in EVERY if each.lower() != each or each.upper() != each]


def test_words_are_those_of_regular_expressions() -> None:
    """All characters that are in words; for each with case, all that are the same in any case."""
    assert re.sub(r"\W", "", "".join(EVERY)) == "".join(filter(PYTHON.is_letter, EVERY))
    whole = "".join(CASED)
    alike: dict[str, list[str]] = {}
    for each in CASED:
        alike.setdefault(PYTHON.fold(each), []).append(each)
    for each in CASED:
        assert re.findall(re.escape(each), whole, re.IGNORECASE) == alike[PYTHON.fold(each)], each


@pytest.mark.parametrize(
    "text", ["a\u0301b", "İ \u0131I", "K \u017f", "ß ẞ SS", "x² ½", "日本 語", "a\u200d"]
)
def test_words_of_odd_texts(text: str) -> None:
    for word in PYTHON.words(text):
        assert re.search(rf"\b{word}\b", text, re.IGNORECASE)
