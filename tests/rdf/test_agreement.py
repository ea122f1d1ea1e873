"""The index against the reference: random patterns and graphs, shared patterns, changes, odd taxonomies."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate import Event, Options, Subscription, Taxonomy
from headgate.core.interning import TextPool
from headgate.rdf.events.reading import make_graph
from headgate.rdf.index.columns import compile_all, concatenate, take
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.language.model import (
    BELOW_PROPERTY,
    ISA,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    XSD,
    Compare,
    Edge,
    Pattern,
    literal,
)
from headgate.rdf.language.printing import print_pattern
from headgate.rdf.whole.query import parse_any
from tests.rdf import reference
from tests.rdf.invariants import check_arrays
from tests.rdf.random_patterns import planted_pattern, random_graph, random_pattern, random_taxonomy
from tests.seeds import seeds, share

if TYPE_CHECKING:
    from headgate.rdf.language.model import Graph, Term
    from headgate.rdf.whole.query import AnyFilter

pytestmark = pytest.mark.jit_off

OPTIONS = [Options(), Options(coerce=True), Options(injective=True), Options(coerce=True, injective=True)]
EX = "http://example.org/"


def event_of(graph: Graph) -> Event:
    return Event("e", graph, content_type="application/n-triples")


def subscriptions(patterns: list[Pattern]) -> list[Subscription]:
    return [Subscription(n, print_pattern(pattern), "sparql") for n, pattern in enumerate(patterns)]


def right(patterns: list[Pattern], graph: Graph, taxonomy: Taxonomy, options: Options) -> list[int]:
    return [
        number
        for number, pattern in enumerate(patterns)
        if reference.matches(pattern, graph, taxonomy, options)
    ]


def compare(seed: str, patterns: int, graphs: int) -> int:
    """Compare all pairs; returns how many match."""
    rng = random.Random(seed)
    options = rng.choice(OPTIONS)
    taxonomy = Taxonomy.of(random_taxonomy(rng))
    events = [random_graph(rng) for _ in range(graphs)]
    given = [random_pattern(rng) for _ in range(patterns)]
    given += [planted_pattern(rng, rng.choice(events)) for _ in range(patterns // 4)]
    index = RdfIndex.build(subscriptions(given), taxonomy=taxonomy, options=options)
    check_arrays(index._state.base.arrays)  # noqa: SLF001 -- nothing public tells
    matches = 0
    for graph in events:
        wanted = right(given, graph, taxonomy, options)
        assert index.match(event_of(graph)) == wanted, (seed, options)
        matches += len(wanted)
    return matches


def test_the_index_is_as_the_reference() -> None:
    matches = sum(compare(f"index {n}", 24, 6) for n in seeds(15))
    assert matches > share(300)


@pytest.mark.nightly
def test_the_index_is_as_the_reference_many_times() -> None:
    matches = sum(compare(f"nightly {n}", 40, 10) for n in range(60))
    assert matches > 3000


def number(value: int | str, kind: str = "integer") -> Term:
    return literal(str(value), XSD + kind)


ENDS = [
    *(number(n) for n in range(0, 12, 3)),
    *(
        number(n, "decimal")
        for n in ("0.1", "2.5", "3.0", "7.25", "0.1000000000000000055511151231257827021181583404541015625")
    ),
    *(number(n, "double") for n in ("0.1", "1e1", "3", "INF")),
    number("9007199254740993"),
    number("9007199254740992"),
    number("0.1", "float"),
    number("-1" + "0" * 39),
    literal("1000000000000-01-01T00:00:00Z", XSD + "dateTime"),
    literal("2001-01-01T00:00:00Z", XSD + "dateTime"),
    literal("2001-01-01T12:00:00", XSD + "dateTime"),
    literal("2001-01-02", XSD + "date"),
    literal("2001-01-04Z", XSD + "date"),
    literal("b"),
]
VALUES = [
    *ENDS,
    *(number(n) for n in range(-1, 12)),
    number("1e1", "float"),
    number("0.1", "float"),
    number("3", "float"),
    number("0.10", "decimal"),
    number("0.10000000000000001", "decimal"),
    number("NaN", "double"),
    number("INF", "float"),
    number("-INF", "float"),
    number("-INF", "double"),
    literal("1000000000000-01-01T13:59:59", XSD + "dateTime"),
    literal("1000000000000-01-03T00:00:00", XSD + "dateTime"),
    number("-0.0", "double"),
    number("9007199254740994"),
    number("x"),
    number("300", "byte"),
    literal("2001-01-01T06:00:00+05:00", XSD + "dateTime"),
    literal("2000-12-31T06:00:00", XSD + "dateTime"),
    literal("2001-01-01T14:00:00", XSD + "dateTime"),
    literal("2001-01-01T14:00:00.001", XSD + "dateTime"),
    literal("2001-01-02T02:00:00.5Z", XSD + "dateTime"),
    literal("2001-01-03T02:00:00Z", XSD + "dateTime"),
    literal("2001-01-09", XSD + "date"),
    literal("2001-01-02Z", XSD + "date"),
    literal("7"),
    literal(" 2.5 "),
    literal("2001-01-02"),
    literal("c", language="en"),
    f"<{EX}a>",
]


@pytest.mark.parametrize("coerce", [False, True])
def test_ranges_of_one_pattern_are_stabbed_right(coerce: bool) -> None:
    """Hundreds of filters share a pattern, so that their ranges are groups; keys meet ends of all types."""
    rng = random.Random(5)
    options = Options(coerce=coerce)
    patterns = []
    for _ in range(500):
        filters = []
        for _ in range(rng.randint(1, 3)):
            name = rng.choice(("?v", "?v", "?w"))
            sign = rng.choice(("<", "<=", ">", ">=", "="))
            pair = (name, rng.choice(ENDS)) if rng.random() < 0.8 else (rng.choice(ENDS), name)
            filters.append(Compare(sign, *pair))
        edges = (Edge("?x", f"<{EX}p>", "?v"), Edge("?x", f"<{EX}q>", "?w"))
        patterns.append(Pattern(edges, tuple(filters)))
    index = RdfIndex.build(subscriptions(patterns), options=options)
    arrays = index._state.base.arrays  # noqa: SLF001 -- nothing public tells
    check_arrays(arrays)
    assert len(arrays.groups.slot) > 1
    nothing = Taxonomy()
    matches = 0
    for _ in range(30):
        statements = [
            (f"<{EX}{rng.choice('ab')}>", f"<{EX}{rng.choice('pq')}>", rng.choice(VALUES)) for _ in range(6)
        ]
        graph = make_graph(statements)
        wanted = right(patterns, graph, nothing, options)
        assert index.match(event_of(graph)) == wanted
        matches += len(wanted)
    assert matches > 500


def test_a_pattern_is_shared_whatever_its_variables_are_called() -> None:
    texts = [
        "ASK { ?x <urn:p> ?y . ?y <urn:q> ?z FILTER(?z > 1) }",
        "ASK { ?b <urn:q> ?c . ?a <urn:p> ?b FILTER(?c > 2) }",
        "SELECT ?s { ?s <urn:p> [ <urn:q> ?value ] FILTER(?value > 3) }",
    ]
    index = RdfIndex.build([Subscription(n, text, "sparql") for n, text in enumerate(texts)])
    assert len(index._state.base.arrays.patterns.next) == 1  # noqa: SLF001 -- nothing public tells
    event = Event("e", "<urn:a> <urn:p> <urn:b> . <urn:b> <urn:q> 3 .", content_type="text/turtle")
    assert index.match(event) == [0, 1]


def test_changes_are_as_a_rebuild() -> None:
    for seed in seeds(6):
        rng = random.Random(f"changes {seed}")
        options = rng.choice(OPTIONS)
        taxonomy = Taxonomy.of(random_taxonomy(rng))
        here = {n: random_pattern(rng) for n in range(0, 40, 2)}
        index = RdfIndex.build(
            [Subscription(n, print_pattern(each), "sparql") for n, each in here.items()],
            taxonomy=taxonomy,
            options=options,
        )
        events = [event_of(random_graph(rng)) for _ in range(4)]
        for _ in range(40):
            identity = rng.randrange(40)
            if identity in here:
                index.unsubscribe(identity)
                del here[identity]
            else:
                here[identity] = random_pattern(rng)
                index.subscribe(Subscription(identity, print_pattern(here[identity]), "sparql"))
            if rng.random() < 0.1:
                index.compact()
            assert len(index) == len(here)
            event = rng.choice(events)
            wanted = [
                each for each in sorted(here) if reference.matches(here[each], event.data, taxonomy, options)
            ]
            assert index.match(event) == wanted
            assert index.next(event, 13) == next((each for each in wanted if each >= 13), None)


def test_a_live_taxonomy() -> None:
    taxonomy = Taxonomy()
    texts = {
        "class": Pattern((Edge("?x", ISA, "<urn:C>", ISA),)),
        "property": Pattern((Edge("?x", "?p", "?y"), Edge("?p", BELOW_PROPERTY, "<urn:q>", BELOW_PROPERTY))),
        "any class": Pattern((Edge("?x", ISA, "?c", ISA), Edge("?c", "<urn:p>", "?d"))),
    }
    index = RdfIndex.build(
        [Subscription(name, print_pattern(each), "sparql") for name, each in texts.items()], taxonomy=taxonomy
    )
    event = event_of(make_graph([("<urn:x>", "<urn:p>", "<urn:y>"), ("<urn:B>", "<urn:p>", "<urn:y>")]))
    assert index.match(event) == []
    taxonomy.add(("<urn:x>", TYPE, "<urn:A>"))
    assert index.match(event) == []
    taxonomy.add(("<urn:A>", SUBCLASS, "<urn:B>"))
    assert index.match(event) == ["any class"]
    taxonomy.add(("<urn:B>", SUBCLASS, "<urn:C>"))
    assert index.next(event, "b") == "class"
    taxonomy.add(("<urn:p>", SUBPROPERTY, "<urn:q>"))
    assert index.match(event) == ["any class", "class", "property"]
    index.subscribe(Subscription("late", print_pattern(texts["class"]), "sparql"))
    assert index.match(event) == ["any class", "class", "late", "property"]
    taxonomy.remove(("<urn:A>", SUBCLASS, "<urn:B>"))
    assert index.match(event) == ["property"]


def test_an_event_that_brings_its_own_taxonomy() -> None:
    given = [
        ("<urn:x>", TYPE, "<urn:A>"),
        ("<urn:A>", SUBCLASS, "_:between"),
        ("_:between", SUBCLASS, "<urn:B>"),
        ("<urn:p>", SUBPROPERTY, "<urn:q>"),
        ("<urn:x>", "<urn:p>", "<urn:y>"),
    ]
    patterns = [
        Pattern((Edge("?x", ISA, "<urn:C>", ISA),)),
        Pattern((Edge("?x", ISA, "<urn:D>", ISA),)),
        Pattern((Edge("?x", "?p", "<urn:y>"), Edge("?p", BELOW_PROPERTY, "<urn:r>", BELOW_PROPERTY))),
    ]
    taxonomy = Taxonomy.of([("<urn:B>", SUBCLASS, "<urn:C>"), ("<urn:q>", SUBPROPERTY, "<urn:r>")])
    index = RdfIndex.build(subscriptions(patterns), taxonomy=taxonomy)
    graph = make_graph(given)
    assert index.match(event_of(graph)) == right(patterns, graph, taxonomy, Options()) == [0, 2]


def test_nothing_asked_is_always_answered() -> None:
    index = RdfIndex.build([Subscription("all", "ASK {}", "sparql")])
    index.subscribe(Subscription("late", "ASK {}", "sparql"))
    for statements in ([], [("<urn:a>", "<urn:p>", "<urn:a>")]):
        assert index.match(event_of(make_graph(statements))) == ["all", "late"]


def test_a_text_with_blanks_in_a_check_of_the_taxonomy() -> None:
    text = 'ASK { ?s <urn:p> ?c . ?c rdfs:subClassOf* <urn:C> FILTER(?c = "a b") }'
    index = RdfIndex.build([Subscription(1, text, "sparql")])
    assert index.match(event_of(make_graph([("<urn:a>", "<urn:p>", '"a b"')]))) == []


def test_columns_in_parts_are_one() -> None:
    rng = random.Random(11)
    patterns: list[AnyFilter] = [random_pattern(rng) for _ in range(60)]
    text = "ASK {{ {{ ?x <urn:p> {0} }} UNION {{ ?x <urn:q> {0} MINUS {{ ?x <urn:r> 1 }} }} }}"
    patterns[5::9] = [parse_any(text.format(number), tried=False) for number in range(len(patterns[5::9]))]
    whole = compile_all(patterns, Options())
    joined = concatenate([compile_all(patterns[a : a + 20], Options()) for a in (0, 20, 40)])
    for left, other in zip(whole, joined, strict=True):
        if isinstance(left, TextPool):
            assert isinstance(other, TextPool)
            assert left.texts() == other.texts()
        else:
            np.testing.assert_array_equal(left, other)
    order = np.array([5, 3, 59])
    picked = take(whole, order)
    assert picked.size == 3
    assert np.diff(picked.member_start).tolist() == [2, 1, 2]
    assert picked.asks.texts() == [whole.asks.text(0), whole.asks.text(6)]
    few = compile_all([patterns[n] for n in order.tolist()], Options())
    assert sorted(picked.terms.texts()) == sorted(few.terms.texts())
    assert sorted(picked.expressions.texts()) == sorted(few.expressions.texts())
