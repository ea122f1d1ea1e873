"""Texts in any case and whole words: the ways from filters to answers that they take, and another engine."""

from __future__ import annotations

import random
import unicodedata
from typing import TYPE_CHECKING

import pyarrow as pa
import pyoxigraph as ox
import pytest

from headgate import Event, Options, Subscription
from headgate.core.text.alphabets import RUST
from headgate.rdf.events.reading import make_graph
from headgate.rdf.events.triples import write_lines
from headgate.rdf.explain.explain import Explanation
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.language.model import SUBPROPERTY, TYPE, literal
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.language.searches import search_of
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from tests.rdf import reference
from tests.rdf.invariants import check_arrays

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from headgate.rdf.language.model import Graph


def asking(condition: str) -> str:
    return f"ASK {{ ?x <urn:title> ?t ; <urn:by> ?u FILTER({condition}) }}"


FORMS = [
    r'REGEX(?t, "\\b{}\\b", "i")',
    r'REGEX(STR(?t), "(^|\\W){}(\\W|$)", "i")',
    r'REGEX(?t, "\\b{}\\b")',
    r'REGEX(?t, "\\b{}\\b", "i") && REGEX(?u, "\\bab\\b", "i")',
    r'REGEX(?t, "\\b{}\\b", "i") && REGEX(?t, "\\bab\\b", "i") && ?u > 3',
    r'!REGEX(?t, "\\b{}\\b", "i")',
    r'REGEX(?t, "\\b{}\\b", "i") || REGEX(STR(?u), "2")',
    'REGEX(?t, "{}", "i")',
    'REGEX(STR(?t), "^{}", "i") && REGEX(STR(?t), "a", "i")',
    'REGEX(?t, "{}$", "i")',
    'REGEX(?u, "^{}$", "i")',
    'LCASE(?u) = "{}"',
    'LCASE(STR(?u)) IN ("{}", "ab", "urn:ab")',
    'CONTAINS(LCASE(?t), "{}") && STRSTARTS(LCASE(?u), "a")',
    'STRENDS(LCASE(STR(?t)), "{}")',
    'CONTAINS(?t, "{}")',
]


def drawn(rng: random.Random) -> tuple[list[str], list[Graph]]:
    """Draw filters, and events with words of theirs."""
    vocabulary = ["".join(rng.choices("abcdeÉéßẞıİiΣσς", k=rng.randint(1, 4))) for _ in range(60)]  # noqa: RUF001
    texts = [asking(rng.choice(FORMS).format(rng.choice(vocabulary))) for _ in range(120)]

    def some() -> str:
        found = " ".join(w.title() if rng.random() < 0.3 else w for w in rng.choices(vocabulary, k=6))
        return rng.choice((literal(found), literal(found.upper(), language="en"), literal(f'{found}\n"a"')))

    others = [literal("5", "http://www.w3.org/2001/XMLSchema#integer"), "<urn:AB>", literal("Ab"), "_:b"]
    graphs = [
        make_graph(
            (
                f"<urn:{rng.choice('xy')}>",
                f"<urn:{rng.choice(('title', 'by'))}>",
                rng.choice((some(), *others)),
            )
            for _ in range(8)
        )
        for _ in range(30)
    ]
    return texts, graphs


@pytest.mark.parametrize("injective", [False, True])
def test_all_ways_give_the_same(tmp_path: Path, injective: bool) -> None:
    """In the base, in the tail, compacted, saved; event by event and in a table."""
    options = Options(injective=injective, coerce=injective)
    texts, graphs = drawn(random.Random(f"text {injective}"))
    patterns = [parse_filter(text) for text in texts]
    expected = [
        [n for n, each in enumerate(patterns) if reference.matches(each, graph, None, options)]
        for graph in graphs
    ]
    assert sum(map(len, expected)) > 300
    events = [Event(n, graph, content_type="application/n-triples") for n, graph in enumerate(graphs)]
    subscriptions = [Subscription(n, text, "sparql") for n, text in enumerate(texts)]
    index = RdfIndex.build(subscriptions, options=options)
    late = RdfIndex.build(subscriptions[:50], options=options)
    for each in subscriptions[50:]:
        late.subscribe(each)
    table = pa.RecordBatch.from_pydict(
        {
            "id": list(range(len(graphs))),
            "data": [write_lines(graph) for graph in graphs],
            "datacontenttype": ["application/n-triples"] * len(graphs),
        }
    )
    pairs = [(n, each) for n, found in enumerate(expected) for each in found]
    for tried in (index, late):
        assert [tried.match(event) for event in events] == expected
        assert [tuple(row.values()) for row in tried.match_batch(table).to_pylist()] == pairs
    late.compact()
    late.save(tmp_path / "snapshot")
    for tried in (late, RdfIndex.open(tmp_path / "snapshot")):
        check_arrays(tried._state.base.arrays)  # noqa: SLF001 -- nothing public tells
        assert [tried.match(event) for event in events] == expected
    for number in range(0, 120, 7):
        assert index.explain(events[3], number).matches is (number in expected[3])
        assert bool(index.bindings(events[3], number).rows) is (number in expected[3])


LISTED = [
    r'ASK {{ ?x {p} ?t FILTER(REGEX(?t, "\\b{w}\\b", "i")) }}',
    r'ASK {{ ?x {p} ?t FILTER(REGEX(STR(?t), "\\b{w}\\b", "i")) }}',
]
NEARLY_LISTED = [
    r'ASK {{ ?x ?p ?t FILTER(REGEX(?t, "\\b{w}\\b", "i")) }}',
    r'ASK {{ ?x ?p ?t FILTER(REGEX(STR(?t), "\\b{w}\\b", "i")) }}',
    r'ASK {{ ?x ?x ?t FILTER(REGEX(STR(?t), "\\b{w}\\b", "i")) }}',
    r'ASK {{ ?t {p} ?t FILTER(REGEX(STR(?t), "\\b{w}\\b", "i")) }}',
    r'ASK {{ ?t {p} ?x FILTER(REGEX(STR(?t), "\\b{w}\\b", "i")) }}',
    r'ASK {{ ?x a ?t FILTER(REGEX(STR(?t), "\\b{w}\\b", "i")) }}',
    r'ASK {{ ?x {p} ?t FILTER(REGEX(?t, "\\b{w}\\b", "i") && STRSTARTS(?t, "a")) }}',
    r'ASK {{ <urn:x> {p} ?t FILTER(REGEX(?t, "\\b{w}\\b", "i")) }}',
    r'ASK {{ ?x {p} ?t ; <urn:q> ?u FILTER(REGEX(?t, "\\b{w}\\b", "i")) }}',
    r'ASK {{ ?x {p} ?t FILTER(REGEX(?t, "\\b{w}\\b", "i") && REGEX(?t, "\\bab\\b", "i")) }}',
    'ASK {{ ?x {p} ?t FILTER(CONTAINS(LCASE(?t), "{w}")) }}',
    r'ASK {{ ?x <urn:q> ?u OPTIONAL {{ ?x {p} ?t }} FILTER(REGEX(?t, "\\b{w}\\b", "i")) }}',
]


@pytest.mark.parametrize(("seed", "others"), [(1, 0), (2, 40), (3, 200)])
def test_words_that_are_listed_give_what_joins_and_the_reference_give(seed: int, others: int) -> None:
    """Filters of one word and a property alone, among others like them and unlike them."""
    rng = random.Random(f"listed {seed}")
    letters = "abÉéßẞıİiΣσς"  # noqa: RUF001
    vocabulary = [*{"".join(rng.choices(letters, k=rng.randint(1, 3))) for _ in range(40)}, "ab"]
    names = [f"<urn:{n}>" for n in range(70)]
    common = names[:3]

    def written(forms: list[str], count: int) -> list[str]:
        return [
            rng.choice(forms).format(
                p=rng.choice(common if rng.random() < 0.7 else names), w=rng.choice(vocabulary)
            )
            for _ in range(count)
        ]

    texts = written(LISTED, 300) + written(NEARLY_LISTED, others)
    taxonomy = Taxonomy()
    taxonomy.add(("<urn:1>", SUBPROPERTY, "<urn:2>"))
    taxonomy.add(("<urn:x>", TYPE, "<urn:ab>"))
    index = RdfIndex.build(
        (Subscription(n, text, "sparql") for n, text in enumerate(texts)), taxonomy=taxonomy
    )
    matcher = index._state.base.matcher  # noqa: SLF001 -- nothing public tells
    listed = matcher.inner._split  # noqa: SLF001
    assert listed is not None
    assert listed.whole is (others == 0 and len(listed.ways.strings) == len(names))

    def some() -> str:
        words = " ".join(rng.choices(vocabulary, k=4))
        return rng.choice(
            (
                literal(words.upper()),
                literal(f'{words}\n"{rng.choice(vocabulary)}"\\{rng.choice(vocabulary)}'),
                literal(words, language="en"),
                literal(words, "urn:type"),
                f"<urn:{rng.choice(vocabulary)}>",
                "<urn:x>",
                "_:ab",
            )
        )

    total = 0
    for _ in range(12):
        graph = make_graph(
            (
                rng.choice(("<urn:x>", "<urn:y>", "_:ab")),
                rng.choice(("<urn:q>", "<urn:x>", *common * 4, rng.choice(names))),
                some(),
            )
            for _ in range(rng.randint(0, 8))
        )
        found = matcher.inner.match(graph)
        # By joins alone, with all words of the graph.
        joined = matcher.inner.match_encoded(graph, matcher.inner.encoder.encode(graph), {})
        assert found.tolist() == joined.tolist()
        expected = [
            n
            for n, text in enumerate(texts)
            if "OPTIONAL" not in text and reference.matches(parse_filter(text), graph, taxonomy)
        ]
        event = Event("e", graph, content_type="application/n-triples")
        assert [n for n in map(int, index.match(event)) if "OPTIONAL" not in texts[n]] == expected
        total += len(expected)
    assert total > 100


def test_more_than_a_pattern_has_room_for() -> None:
    wide = " && ".join(rf'REGEX(?t, "\\bw{n}\\b", "i")' for n in range(80))
    other = " && ".join(f'CONTAINS(LCASE(?t), "w{n}")' for n in range(80))
    index = RdfIndex.build(
        [Subscription(1, asking(wide), "sparql"), Subscription(2, asking(f"{wide} && {other}"), "sparql")]
    )
    text = " ".join(f"W{n}" for n in range(80))
    for given, found in ((text, [1, 2]), (text[:-4], [])):
        graph = make_graph(
            [("<urn:x>", "<urn:title>", literal(given)), ("<urn:x>", "<urn:by>", literal("a"))]
        )
        assert index.match(Event("e", graph, content_type="application/n-triples")) == found


@pytest.mark.parametrize(
    ("condition", "note"),
    [
        (r'REGEX(?t, "\\bnews\\b", "i")', "the text has 'newsletter', and not the word alone"),
        (r'REGEX(?t, "\\bsport\\b", "i")', "the text does not have the word"),
        (r'REGEX(?t, "\\bnewsletter\\b")', "the text has the word but for case"),
        (r'!REGEX(?t, "\\bthe\\b", "i")', "the text has the word"),
        ('REGEX(?t, "the")', "the text fits but for case"),
        ('REGEX(?t, "x", "i")', "the text does not fit in any case"),
        ('LCASE(?t) = "The Newsletter"', "it differs in case only"),
    ],
)
def test_what_is_told(condition: str, note: str) -> None:
    index = RdfIndex.build([Subscription(1, f"ASK {{ ?x <urn:title> ?t FILTER({condition}) }}", "sparql")])
    event = Event("e", '<urn:x> <urn:title> "The Newsletter" .', content_type="text/turtle")
    told = index.explain(event, 1)
    assert isinstance(told, Explanation)
    assert told.filters[0].note == note


EVERY = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
CASED = [each for each in EVERY if each.lower() != each or each.upper() != each]
ODD = [
    "İstanbul",
    "ΣΊΣΥΦΟΣ ΣΑΣ",
    "Straße STRASSE ẞ",
    "K \u017f µ",
    "ǅ Ǆ",
    "aΣ.b Σ",
    "naïve_x",
    "日本 語",
    "Ⓐ",
    "x²",
]


def asked(expression: str, rows: Sequence[tuple[str, ...]]) -> list[str | None]:
    """Ask the other engine for an expression over ?a, ?b and so on, a row of texts each."""
    values = " ".join(f"({' '.join(map(literal, row))})" for row in rows)
    names = " ".join(f"?{name}" for name, _ in zip("abc", rows[0], strict=False))
    found = ox.Store().query(f"SELECT ({expression} AS ?r) {{ VALUES ({names}) {{ {values} }} }}")
    assert isinstance(found, ox.QuerySolutions)
    return [None if row[0] is None else row[0].value for row in found]


@pytest.mark.parametrize(
    "last", [0x3000, pytest.param(0x110000, marks=pytest.mark.nightly, id="all")], ids=str
)
def test_the_other_engine_has_the_same_words(last: int) -> None:
    """The characters that are in words, but for such as are newer than Python's Unicode."""
    known = [each for each in EVERY if each < chr(last - 1) and unicodedata.category(each) != "Cn"]
    (left,) = asked(r'REPLACE(?a, "\\W", "")', [("".join(known),)])
    assert left == "".join(filter(RUST.is_letter, known))


def test_the_other_engine_has_the_same_cases() -> None:
    """Lower case of all letters; any case of those that are alike by some rule, and words of odd texts."""
    texts = [*ODD, *(f"a{each}b {each}" for each in CASED)]
    assert asked("LCASE(?a)", [(text,) for text in texts]) == [text.lower() for text in texts]
    pairs = [
        (one, other)
        for each in CASED[:: len(CASED) // 90]
        for one in {each, *each.lower(), *each.upper()}
        for other in {each, *each.lower(), *each.upper()}
    ]
    pairs += [(one, other) for one in "iIıİkKKsSſßẞΐΐΰΰﬅﬆ" for other in "iIıİkKKsSſßẞΐΐΰΰﬅﬆ"]  # noqa: RUF001
    _agree([(f"a{one}", rf"\b{'A'}{other}\b") for one, other in pairs])
    words = sorted({word for text in ODD for word in RUST.words(text)})
    _agree([(text, rf"\b{word}\b") for text in ODD for word in words])


@pytest.mark.nightly
def test_the_other_engine_folds_every_letter_alike() -> None:
    """Each letter with case: of all of them, those that it finds in any case."""
    whole = "".join(CASED)
    for each in CASED:
        (left,) = asked('REPLACE(?a, ?b, "", "i")', [(whole, each)])
        assert set(whole) - set(left or "") == {one for one in CASED if RUST.fold(one) == RUST.fold(each)}


def _agree(rows: list[tuple[str, str]]) -> None:
    theirs = asked('REGEX(?a, ?b, "i")', rows)
    for (text, pattern), found in zip(rows, theirs, strict=True):
        search = search_of(pattern, "i")
        assert search is not None
        assert str(search.found_in(text)).lower() == found, (text, pattern)
