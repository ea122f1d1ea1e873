"""Whole SPARQL queries: what is indexed of them, what the evaluator decides, and that it is bounded."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyoxigraph as ox
import pytest

from headgate import Event, Omissions, Subscription
from headgate.contents.results import ResultRows
from headgate.core.event import N_TRIPLES
from headgate.errors import FilterError, SubscriptionError
from headgate.rdf.events.reading import make_graph, read_graph
from headgate.rdf.events.triples import write_lines
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.language.model import DECIDES, EVERY, NARROWS, XSD, Options
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.language.printing import print_pattern
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from headgate.rdf.whole.evaluator import EVALUATOR, Evaluator, Seen
from headgate.rdf.whole.query import Query, parse_any
from headgate.rdf.whole.worker import TAXONOMY_GRAPH
from tests.rdf import reference
from tests.rdf.random_patterns import random_graph
from tests.rdf.whole_oracle import ALLOWED, compare, draw

if TYPE_CHECKING:
    from pathlib import Path

EX = "http://example.org/"
PREFIX = f"PREFIX : <{EX}> "
TURTLE = "@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "


def build(*texts: str, options: Options | None = None, taxonomy: Taxonomy | None = None) -> RdfIndex:
    """Index queries under their numbers."""
    given = [Subscription(number, PREFIX + text, "sparql") for number, text in enumerate(texts)]
    return RdfIndex.build(given, options=options, taxonomy=taxonomy)


def event(text: str) -> Event:
    """Read an event."""
    return Event("e", read_graph(TURTLE + text, "turtle"), content_type=N_TRIPLES)


# Against pyoxigraph


@pytest.mark.parametrize("seed", [1, 2])
def test_random_queries_agree_with_pyoxigraph(seed: int) -> None:
    count = compare(random.Random(seed))
    assert count["matches"] > 10
    assert count["verified"] > 50
    assert count["explained"] < count["pairs"] / 20


def test_random_queries_over_a_taxonomy_agree_with_pyoxigraph() -> None:
    assert compare(random.Random(3), taxonomy=True)["matches"] > 5


@pytest.mark.nightly
def test_many_random_queries_agree_with_pyoxigraph() -> None:
    count: Counter[str] = Counter()
    for seed in range(1_000, 1_500):
        count += compare(random.Random(seed), taxonomy=seed % 4 == 0)
    assert count["pairs"] == 100_000
    assert count["explained"] < count["pairs"] / 20


def test_answers_are_those_of_pyoxigraph() -> None:
    rng = random.Random(5)
    compared = 0
    for drawn in draw(rng, 60):
        query = drawn.parsed
        if not isinstance(query, Query) or query.carried or query.form != "SELECT":
            continue
        index = RdfIndex.build([Subscription(0, drawn.text, "sparql")], options=ALLOWED)
        for _ in range(8):
            graph = random_graph(rng)
            store = ox.Store()
            store.extend(ox.parse(write_lines(graph).encode(), ox.RdfFormat.N_TRIPLES))
            theirs = store.query(drawn.text)
            assert isinstance(theirs, ox.QuerySolutions)
            rows = {tuple("" if term is None else str(term) for term in row) for row in theirs}
            found = index.bindings(Event("e", graph, content_type=N_TRIPLES), 0, 10_000)
            assert len(found.rows) == len(rows)
            assert {tuple(ox_text(term) for term in row) for row in found.rows} == rows
            compared += len(rows)
    assert compared > 20


def ox_text(term: str) -> str:
    """Write a term as pyoxigraph does."""
    if not term.startswith('"'):
        return term
    (quad,) = ox.parse(f"<urn:a> <urn:p> {term} .".encode(), ox.RdfFormat.N_TRIPLES)
    return str(quad.object)


# What is indexed


NEEDS = {
    "ASK { ?x :p ?y OPTIONAL { ?x :q ?z } }": [(DECIDES, "?x :p ?y")],
    "ASK { ?x :p ?y OPTIONAL { ?x :q ?z } FILTER(?z > 1) }": [(NARROWS, "?x :p ?y")],
    "ASK { ?x :p ?y OPTIONAL { ?x :q ?z } ?z :r 1 }": [(NARROWS, "?x :p ?y . ?z :r 1")],
    "ASK { { ?x :p 1 } UNION { ?x :q 2 } }": [(DECIDES, "?x :p 1"), (DECIDES, "?x :q 2")],
    "ASK { ?x :r 3 { ?x :p 1 } UNION { ?x :q 2 MINUS { ?x :s 4 } } }": [
        (DECIDES, "?x :r 3 . ?x :p 1"),
        (NARROWS, "?x :r 3 . ?x :q 2"),
    ],
    "ASK { ?x :p ?y FILTER NOT EXISTS { ?x :q ?z } }": [(NARROWS, "?x :p ?y")],
    "ASK { ?x :p ?y FILTER EXISTS { ?x :q ?z FILTER(?z > ?y) } }": [
        (DECIDES, "?x :p ?y . ?x :q ?n1 . FILTER(?n1 > ?y)")
    ],
    "ASK { ?x :p ?y BIND(?y + 1 AS ?z) FILTER(?y > 1 && ?z < 9) }": [
        (NARROWS, "?x :p ?y . FILTER(?y > 1)")
    ],
    "ASK { VALUES ?y { :a :b } ?x :p ?y }": [(DECIDES, "?x :p ?y . FILTER(?y IN (:a, :b))")],
    "ASK { VALUES ?y { 1 } ?x :p ?y }": [(NARROWS, "?x :p ?y . FILTER(?y IN (1))")],
    "ASK { ?x :p/:q ?y }": [(DECIDES, "?x :p ?n1 . ?n1 :q ?y")],
    "ASK { ?x (:p|^:q) ?y }": [(DECIDES, "?x :p ?y"), (DECIDES, "?y :q ?x")],
    "ASK { ?x :p+ ?y }": [(NARROWS, "?x :p ?n1 . ?n2 :p ?y")],
    "ASK { ?x :r 1 ; :p* ?y }": [(NARROWS, "?x :r 1")],
    "ASK { ?x !:p :a }": [(NARROWS, "?x ?n1 :a")],
    "ASK { ?x a/rdfs:subClassOf* :C ; :p (1) OPTIONAL { ?x :q ?z } }": [
        (DECIDES, "?x a/rdfs:subClassOf* :C . ?x :p _:b0 . _:b0 rdf:first 1 . _:b0 rdf:rest rdf:nil")
    ],
    "ASK { ?x :p/rdfs:subClassOf* :C }": [(DECIDES, "?x :p ?n1 . ?n1 rdfs:subClassOf* :C")],
    "ASK { ?x :p ?y ; rdfs:subClassOf+ :C }": [(NARROWS, "?x :p ?y")],
    "ASK { { SELECT ?x { ?x :p ?y } LIMIT 2 } ?x :q ?y }": [(NARROWS, "?x :p ?n1 . ?x :q ?y")],
    "SELECT ?x { ?x :p ?y } GROUP BY ?x HAVING(COUNT(?y) > 2)": [(NARROWS, "?x :p ?y")],
    "SELECT (COUNT(?y) AS ?n) { ?x :p ?y } HAVING(COUNT(?y) > 2)": [(NARROWS, "?x :p ?y")],
    "SELECT (COUNT(?y) AS ?n) { ?x :p ?y } HAVING(COUNT(?y) < 2)": [(EVERY, "")],
    "SELECT ?x { ?x :p ?y } OFFSET 1": [(NARROWS, "?x :p ?y")],
    "CONSTRUCT { ?x :hit true } { ?x :p ?y }": [(DECIDES, "?x :p ?y")],
    "ASK { ?x ?p ?y MINUS { ?x :q 1 } }": [(EVERY, "")],
    "ASK { ?x :p ?y FILTER(REGEX(?y, 'a|b') && CONTAINS(?y, 'c')) }": [
        (NARROWS, "?x :p ?y . FILTER(CONTAINS(?y, 'c'))")
    ],
}  # fmt: skip


@pytest.mark.parametrize("text", NEEDS)
def test_what_is_indexed_of_a_query(text: str) -> None:
    found = parse_any(PREFIX + text)
    assert isinstance(found, Query)
    wanted = [
        (role, print_pattern(parse_filter(f"{PREFIX}ASK {{ {needed} }}"))) for role, needed in NEEDS[text]
    ]
    assert [(role, print_pattern(pattern)) for pattern, role in found.members] == wanted


def test_patterns_stay_patterns() -> None:
    text = "PREFIX : <urn:x:> SELECT ?x { ?x :p [ :q 1 ] FILTER(?x != :y) }"
    assert parse_any(text) == parse_filter(text)


def test_too_many_alternatives_become_what_they_share() -> None:
    unions = " ".join(f"{{ ?x :p{n} 1 }} UNION {{ ?x :q{n} 1 }}" for n in range(7))
    found = parse_any(f"{PREFIX}ASK {{ ?x :r 1 {unions} }}")
    assert isinstance(found, Query)
    assert len(found.members) <= 64
    assert found.verified


# All ways to ask


def test_every_way_to_ask_gives_the_same(tmp_path: Path) -> None:
    rng = random.Random(7)
    queries = [each.text for each in draw(rng, 40)]
    given = [Subscription(number, text, "sparql") for number, text in enumerate(queries)]
    whole = RdfIndex.build(given, options=ALLOWED)
    late = RdfIndex.build(given[:10], options=ALLOWED)
    for each in given[10:]:
        late.subscribe(each)
    events = [Event(str(n), random_graph(rng), content_type=N_TRIPLES) for n in range(8)]
    expected = [whole.match(each) for each in events]
    assert sum(map(len, expected)) > 20
    assert [late.match(each) for each in events] == expected
    late.unsubscribe(3)
    late.compact()
    without = [[number for number in found if number != 3] for found in expected]
    assert [late.match(each) for each in events] == without
    late.save(tmp_path / "snapshot")
    reopened = RdfIndex.open(tmp_path / "snapshot")
    assert [reopened.match(each) for each in events] == without
    reopened.subscribe(given[3])
    assert [reopened.match(each) for each in events] == expected
    rows: dict[str, Any] = {
        "id": [each.id for each in events],
        "data": [write_lines(each.data) for each in events],
        "datacontenttype": [N_TRIPLES] * len(events),
    }
    batch = whole.match_batch(pa.RecordBatch.from_pydict(rows)).to_pydict()
    pairs = list(zip(batch["event_id"], batch["subscription_id"], strict=True))
    assert pairs == [
        (event.id, each) for event, found in zip(events, expected, strict=True) for each in found
    ]
    assert [
        [number for number in range(40) if whole.explain(each, number).matches] for each in events
    ] == expected


def test_bindings_rows_and_graphs() -> None:
    index = build(
        "SELECT ?x ?z { ?x :p ?y OPTIONAL { ?x :q ?z } } ORDER BY ?x",
        "SELECT ?x ?y { { ?x :p ?y } UNION { ?x :q ?z } }",
        "CONSTRUCT { ?x :twice ?z } { ?x :p ?y BIND(?y * 2 AS ?z) }",
        "ASK { ?x :p ?y FILTER NOT EXISTS { ?x :q 9 } }",
        "ASK { ?x :p ?y OPTIONAL { ?x :q ?z } FILTER(?y > 90) }",
    )
    found = event(":a :p 1 ; :q 2 . :b :p 3 .")
    assert index.match(found) == [0, 1, 2, 3]
    assert index.bindings(found, 0).plain() == [
        {"x": "http://example.org/a", "z": "2"},
        {"x": "http://example.org/b", "z": ""},
    ]
    assert {tuple(row.values()) for row in index.bindings(found, 1).plain()} == {
        ("http://example.org/a", "1"), ("http://example.org/b", "3"), ("http://example.org/a", "")
    }  # fmt: skip
    assert index.bindings(found, 2).names == ("?subject", "?predicate", "?object")
    assert [len(index.bindings(found, number).rows) for number in (3, 4)] == [2, 0]
    graph, _, nothing = index.results(found, [2, 0, 9], 10)
    assert nothing is None
    assert isinstance(graph, ResultRows)
    assert sorted(graph.rows[0][0].splitlines()) == [
        f'<{EX}{name}> <{EX}twice> "{twice}"^^<{XSD}integer> .' for name, twice in (("a", 2), ("b", 6))
    ]
    (first,) = index.results(found, [0], 1)
    assert isinstance(first, ResultRows)
    assert not first.complete


def test_explanations_tell_what_was_indexed_and_what_verified() -> None:
    index = build(
        "ASK { ?x :p ?y FILTER NOT EXISTS { ?x :q 1 } }",
        "ASK { ?x ?p ?y MINUS { ?x :q 1 } }",
        options=Options(unindexed=1),
    )
    assert index.explain(event(":a :p 1 ."), 0).lines() == [
        "match",
        "  indexed part, which narrows: match",
        "    held    ?x <http://example.org/p> ?y   ?x = <http://example.org/a>, ?y = 1",
        "  verified: the whole query gives an answer",
    ]
    assert index.explain(event(":a :p 1 ; :q 1 ."), 0).lines()[0] == (
        "no match: the indexed part holds, the query as a whole gives no answer"
    )
    assert index.explain(event(":a :q 1 ."), 0).lines() == [
        "no match: the indexed part does not hold",
        "  indexed part, which narrows: no match: at best 0 of 1 edge can hold at once",
        "    failed  ?x <http://example.org/p> ?y    (the event has no triple with this property)",
        "  verified: not asked",
    ]
    assert index.explain(event(":a :q 1 ."), 1).lines() == [
        "no match: the query as a whole gives no answer",
        "  indexed part: nothing, it is evaluated for every event",
        "  verified: the whole query gives no answer",
    ]


# What is refused


REFUSED = {
    "ASK { ?x ?p ?y MINUS { ?x :q 1 } }": "nothing in it can be indexed",
    "ASK { ?x :p ?y FILTER(NOW() > ?y) }": "NOW is not supported: an event's answer must be the same",
    "ASK { ?x :p ?y OPTIONAL { SERVICE <urn:x> { ?x :p ?z } } }": "SERVICE is not supported: a filter looks",
    "ASK { ?x :p ?y OPTIONAL { GRAPH ?g { ?x :p ?z } } }": "GRAPH is not supported: an event is one graph",
    "SELECT COUNT(?x) { ?x :p ?y }": "an expression of SELECT stands in parentheses and has a name",
    "DESCRIBE ?x { ?x :p ?y }": "DESCRIBE is not supported",
    "INSERT DATA { :a :p :b }": "INSERT is not supported: a filter asks and changes nothing",
    "ASK { ?x :p ?y FILTER(?z + 1 > 2) }": "the filter looks at ?z, which nothing in the query binds",
    "ASK { ?x :p ?y FILTER(STRLEN(?y, ?x) > 2) }": "STRLEN takes 1 argument, not 2",
    "ASK { ?x :p ?y FILTER(:f(?y) > 2) }": "<http://example.org/f> is not a function",
    "ASK { ?x :p ?y OPTIONAL { ?x :q } }": "'}' cannot stand here: expected a variable, an IRI, a literal or",
    "ASK { ?x :p ?y OPTIONAL { ?x :q ?z }": "the filter ends too early",
    "ASK { ?x :p ?y BIND(1 AS ?y) }": "BIND gives ?y a value, and it has one already: take another name",
    "SELECT * { ?x :p ?y } GROUP BY ?x": "SELECT * cannot stand with GROUP BY: name the variables",
    "CONSTRUCT { ?x :p/:q ?y } { ?x :p ?y }": "CONSTRUCT makes triples: a path cannot stand there",
    "ASK { ?x :p ?y VALUES (?x ?y) { (:a) } }": "VALUES has 2 variables and this row 1 terms",
    "ASK { ?x " + "/".join([":p"] * 300) + " ?y }": "the paths have more than 256 steps",
    "ASK { ?x :p ?y OPTIONAL " + "{" * 70 + "}" * 70 + " }": "the filter nests deeper than 64",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_filters_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(FilterError) as refused:
        build(text)
    assert REFUSED[text] in str(refused.value)


@pytest.mark.parametrize("option", ["coerce", "injective"])
def test_options_that_the_evaluator_does_not_know_go_with_patterns(option: str) -> None:
    with pytest.raises(FilterError, match=f"with the option {option} a filter is a pattern"):
        build("ASK { ?x :p ?y OPTIONAL { ?x :q ?z } }", options=Options(**{option: True}))
    index = build("ASK { { ?x :p 1 } UNION { ?x :q 2 } }", options=Options(**{option: True}))
    assert index.match(event(":a :q 2 .")) == [0]


def test_queries_that_nothing_is_indexed_of_are_counted() -> None:
    text = "ASK { ?x ?p ?y MINUS { ?x :q 1 } }"
    index = build(text, options=Options(unindexed=1))
    assert index.match(event(":a :p 1 .")) == [0]
    with pytest.raises(SubscriptionError, match="2 queries have nothing that can be indexed, and the option"):
        index.subscribe(Subscription(1, PREFIX + text, "sparql"))
    assert index.match(event(":a :p 1 .")) == [0]
    with pytest.raises(SubscriptionError, match="2 queries have nothing"):
        build(text, text, options=Options(unindexed=1))


# Bounds


def test_a_query_that_takes_too_long_is_left_out_alone() -> None:
    cross = " ".join(f"?a{n} :p ?b{n} ." for n in range(8))
    index = build(
        f"SELECT (COUNT(*) AS ?n) {{ {cross} }} HAVING(COUNT(*) > 3)",
        "ASK { ?x :p ?y FILTER NOT EXISTS { ?x :q 1 } }",
        f"ASK {{ ?x (:p|:q)+ ?y . {cross} FILTER(?b0 + ?b1 + ?b2 + ?b3 + ?b4 + ?b5 + ?b6 + ?b7 < -1) }}",
        "ASK { ?x :p ?y }",
        "ASK { ?x :p ?y FILTER(REGEX(STR(?y), '^(a+)+$|^([0-9]+)+x$')) }",
        "ASK { ?x (:p*)* ?y . ?y (:p+)+ ?z . ?x :p ?z MINUS { ?x :q 1 } }",
    )
    given = event(" ".join(f":n{n} :p {n}, :n{(n + 1) % 60} ." for n in range(60)))
    with Omissions() as left_out:
        assert index.match(given) == [1, 3, 5]
    told = list(left_out)
    assert [each.subscription for each in told] == [0, 2]
    assert all("the evaluator was not done after" in each.reason for each in told)
    assert index.explain(given, 0).lines()[0].startswith("left out: the evaluator was not done after")


def test_an_evaluator_that_dies_is_started_again() -> None:
    index = build("ASK { ?x :p ?y FILTER NOT EXISTS { ?x :q 1 } }")
    assert index.match(event(":a :p 1 .")) == [0]
    before = EVALUATOR.pid
    EVALUATOR.close()
    assert index.match(event(":a :p 1 .")) == [0]
    assert EVALUATOR.pid not in (None, before)


def test_memory_of_the_evaluator_is_bounded() -> None:
    evaluator = Evaluator(seconds=20.0, memory=256 << 20)
    lines = "".join(f'<urn:s> <urn:p> "{n:0100}" .\n' for n in range(300)).encode()
    text = "SELECT ?x ?y ?z { ?s ?p ?x, ?y, ?z } ORDER BY CONCAT(?x, ?y, ?z)"
    try:
        asked, other = evaluator.ask(Seen(lines, None), [(text, b""), ("ASK { ?s ?p ?o }", b"")])
        assert "the evaluator died of signal" in str(asked)
        assert other is True
    finally:
        evaluator.close()


# The taxonomy


CLASSES = Taxonomy.read(
    TURTLE
    + """:Article rdfs:subClassOf :Publication . :Preprint rdfs:subClassOf :Article .
    :editor rdfs:subPropertyOf :creator . :moby a :Book . :Book rdfs:subClassOf :Publication .""",
    "turtle",
)
TAXONOMY_CASES = (
    ("?x a/rdfs:subClassOf* :Publication OPTIONAL { ?x :q 1 }", ":a a :Preprint .", True),
    ("?x a/rdfs:subClassOf* :Publication MINUS { ?x :q 1 }", ":a a :Preprint .", True),
    ("?x a/rdfs:subClassOf* :Publication MINUS { ?x :q 1 }", ":a a :Preprint ; :q 1 .", False),
    ("?x a/rdfs:subClassOf+ :Article", ":a a :Article .", False),
    ("?x a/rdfs:subClassOf+ :Article", ":a a :Preprint .", True),
    ("?x a/rdfs:subClassOf/rdfs:subClassOf :Publication", ":a a :Preprint .", True),
    ("?x a/rdfs:subClassOf :Publication", ":a a :Preprint .", False),
    ("?x rdfs:subClassOf ?y OPTIONAL { ?x :q 1 }", ":a a :Preprint .", False),
    ("?x a :Book MINUS { ?x :q 1 }", ":a :cites :moby .", True),
    ("?x :about/rdfs:subClassOf* :Publication", ":a :about :Preprint .", True),
    ("?x :about ?c . :Preprint rdfs:subClassOf+ ?c", ":a :about :Publication .", True),
    ("?x :about ?c . :Preprint rdfs:subClassOf+ ?c", ":a :about :Preprint .", False),
    ("?x ?p ?y . ?p rdfs:subPropertyOf+ :creator", ":a :editor :b .", True),
    ("?x ?p ?y . ?p rdfs:subPropertyOf+ :creator", ":a :creator :b .", False),
    ("?x ?p ?y . ?p rdfs:subPropertyOf+ rdfs:member", ":a rdf:_3 :b .", True),
    ("?x ?p ?y . ?p rdfs:subPropertyOf* rdfs:member", ":a rdf:_3 :b .", True),
    ("?x ?p ?y . ?p rdfs:subPropertyOf* rdfs:member", ":a rdf:value :b .", False),
    ("?x a/rdfs:subClassOf+ :Blog", ":a a :Mine . :Mine rdfs:subClassOf :Blog .", True),
    ("?x :p ?n FILTER NOT EXISTS { ?x a/rdfs:subClassOf* :Publication }", ":a :p 1 ; a :Preprint .", False),
    ("?x :p ?n FILTER NOT EXISTS { ?x a/rdfs:subClassOf* :Publication }", ":a :p 1 ; a :Other .", True),
    (
        "?x a/rdfs:subClassOf+ ?c . [] :about _:c . _:c :q ?c",
        ":a a :Preprint . :b :about :k . :k :q :Article .",
        True,
    ),
)


@pytest.mark.parametrize(("body", "data", "verdict"), TAXONOMY_CASES)
def test_paths_see_the_taxonomy(body: str, data: str, verdict: bool) -> None:
    prefixed = "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . " + data
    index = build(f"ASK {{ {body} }}", taxonomy=CLASSES, options=ALLOWED)
    assert index.match(event(prefixed)) == [0] * verdict


def test_the_graph_of_the_taxonomy_is_no_graph_of_users() -> None:
    with pytest.raises(FilterError, match="GRAPH is not supported"):
        build(f"ASK {{ GRAPH <{TAXONOMY_GRAPH}> {{ ?x :p ?y }} }}")


def test_domains_and_ranges_give_types() -> None:
    text = f"""{TURTLE} :by rdfs:domain :Work ; rdfs:range :Person . :wrote rdfs:subPropertyOf :by .
    :Work rdfs:subClassOf :Thing ."""
    asked = (
        "ASK { ?x a :Work ; :wrote ?y . ?y a :Person }",
        "ASK { ?x a/rdfs:subClassOf* :Thing }",
        "ASK { ?x a :Person FILTER NOT EXISTS { ?x :q 1 } }",
        "ASK { ?x :by ?y }",
    )
    given = event(':a :wrote :b . :c :by "a text" .')
    for schema, found in ((True, [0, 1, 2, 3]), (False, [3])):
        taxonomy = Taxonomy.read(text, "turtle", schema=schema)
        index = build(*asked, taxonomy=taxonomy)
        assert index.match(given) == found
        plain = [
            number
            for number in (0, 1, 3)
            if reference.matches(parse_filter(PREFIX + asked[number]), given.data, taxonomy)
        ]
        assert plain == [number for number in found if number != 2]
    assert Taxonomy.read(text, "turtle").ignored == 2


TUPLES = "PREFIX : <http://example.org/> (?y, :about, ?z, {{{}}}, {{{}}})"


@pytest.mark.parametrize(
    ("constraints", "data", "verdict"),
    [
        (("", "?z <= :Publication"), ":a :about :b . :b a :Preprint .", True),
        (("", "?z <= :Publication"), ":a :about :Preprint .", True),
        (("", "?z <= :Publication"), ":a :about :Publication .", True),
        (("", "?z <= :Preprint"), ":a :about :Publication .", False),
        (("", "?z >= :Preprint"), ":a :about :Publication .", True),
        (("", "?z >= :Publication"), ":a :about :Preprint .", False),
        (("", "?z >= :moby"), ":a :about :Publication ; :cites :moby .", True),
        (("?y <= :Book", "?z <= :Article"), ":moby :about :Preprint .", True),
    ],
)
def test_constraints_of_tuples_hold_for_class_nodes(
    constraints: tuple[str, str], data: str, verdict: bool
) -> None:
    given = Subscription(0, TUPLES.format(*constraints), "tuples")
    for options in (Options(), Options(coerce=True)):
        index = RdfIndex.build([given], taxonomy=CLASSES, options=options)
        assert index.match(event(data)) == [0] * verdict
        assert bool(index.bindings(event(data), 0).rows) is verdict


def test_events_without_triples() -> None:
    index = build("ASK { OPTIONAL { ?x :p ?y } }", "ASK { ?x :p ?y MINUS { ?x :q 1 } }", options=ALLOWED)
    assert index.match(Event("e", make_graph([]), content_type=N_TRIPLES)) == [0]
