"""Filters in clauses."""

from __future__ import annotations

import random

import pytest

from headgate.contents.protocol import Clause
from headgate.errors import FilterError
from headgate.rdf.events.reading import make_graph
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.language.printing import print_pattern
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from headgate.rdf.whole.clauses import split
from tests.rdf.random_patterns import planted_pattern, random_graph, random_pattern, random_taxonomy
from tests.rdf.reference import matches
from tests.seeds import seeds, share

PREFIX = "PREFIX : <urn:x:> "
SUBCLASS = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
SUBPROPERTY = "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>"


def clauses(text: str, dialect: str = "sparql") -> list[tuple[str, tuple[str, ...]]]:
    """Take a filter apart; braces and the word ASK are left out."""
    return [(clause.filter[6:-2], clause.names) for clause in split(PREFIX + text, dialect)]


def test_edges_and_conditions() -> None:
    assert clauses(
        "SELECT ?x { ?x :Year ?y ; ?p ?z . ?x a/rdfs:subClassOf* :C FILTER(?y > 1 && ?z IN (1, ?y)) }"
    ) == [
        ("?x <urn:x:Year> ?y", ("urn:x:year",)),
        ("?x ?p ?z", ("?p",)),
        (f"?x a/{SUBCLASS}* <urn:x:C>", ("a/rdfs:subclassof*",)),
        ("?x <urn:x:Year> ?y . FILTER(?y > 1)", ("?y",)),
        ("?x <urn:x:Year> ?y . ?x ?p ?z . FILTER(?z IN (1, ?y))", ("?z", "?y")),
    ]


def test_one_edge_is_one_clause() -> None:
    assert clauses("SELECT * { ?x a [] }") == [
        ("?x a _:b0", ("http://www.w3.org/1999/02/22-rdf-syntax-ns#type",))
    ]
    assert clauses("(?x, p, 2)", "tuples") == [("?x <urn:x:p> 2", ("urn:x:p",))]


def test_a_condition_and_what_binds_it_is_one_clause() -> None:
    assert clauses("ASK { ?x :year ?y FILTER(?y > 3) }") == [("?x <urn:x:year> ?y . FILTER(?y > 3)", ("?y",))]
    assert clauses("(?x, year, ?y, {}, {?y > 3})", "tuples") == clauses("ASK { ?x :year ?y FILTER(?y > 3) }")
    assert len(clauses("ASK { ?x :year ?y FILTER(?y > 3) FILTER(?x = :a) }")) == 3
    assert len(clauses("ASK { ?x :year ?y ; :cites ?z FILTER(?y > 3) }")) == 3


def test_what_binds_a_condition() -> None:
    """The first triple pattern that has all variables, or the first for each; any if there are none."""
    assert (
        clauses("ASK { ?x :a ?y . ?y :b ?z . ?x ?y ?z FILTER(?x = ?z) }")[-1][0]
        == "?x ?y ?z . FILTER(?x = ?z)"
    )
    assert clauses("ASK { ?x :a ?y . ?y :b ?z . ?z :c ?w FILTER(?x = ?z) }")[-1][0] == (
        "?x <urn:x:a> ?y . ?y <urn:x:b> ?z . FILTER(?x = ?z)"
    )
    assert clauses("ASK { ?x :a ?y . ?y :b ?z FILTER(true) }")[-1] == ("?x <urn:x:a> ?y . FILTER(true)", ())


def test_checks_are_asked_with_what_binds_them() -> None:
    check = f"?p {SUBPROPERTY}* <urn:x:q>"
    name = ("rdfs:subpropertyof*",)
    assert clauses("ASK { ?p rdfs:subPropertyOf* :q . ?x ?p ?y }") == [(f"{check} . ?x ?p ?y", name)]
    assert clauses("ASK { ?x :a ?y . ?p rdfs:subPropertyOf* :q . ?x ?p ?y }") == [
        ("?x <urn:x:a> ?y", ("urn:x:a",)),
        (f"{check} . ?x ?p ?y", name),
        ("?x ?p ?y", ("?p",)),
    ]


def test_what_is_written_twice_counts_twice() -> None:
    assert len(clauses("ASK { ?x :a ?y . ?x :a ?y }")) == 2
    assert len(clauses("ASK { ?x :a ?y . FILTER(?y) FILTER(?y && ?y) }")) == 4


def test_equal_clauses_are_written_alike() -> None:
    one = split("PREFIX a: <urn:x:> ASK { $x  a:p 'one' ; a:q 2 }", "sparql")
    other = split('ASK WHERE { ?x <urn:x:p> """one""" . ?x <urn:x:q> "2"^^xsd:integer }', "sparql")
    assert one == other


def test_joins_are_lost() -> None:
    """All clauses may hold for an event that the filter does not match."""
    text = PREFIX + "ASK { ?x :a ?y . ?y :b ?z }"
    graph = make_graph([("<urn:1>", "<urn:x:a>", "<urn:2>"), ("<urn:3>", "<urn:x:b>", "<urn:4>")])
    assert not matches(parse_filter(text), graph)
    assert all(matches(parse_filter(clause.filter), graph) for clause in split(text, "sparql"))


def test_random_filters() -> None:
    """A clause is one clause again; all clauses of a filter that holds do."""
    held = 0
    for seed in seeds(600):
        rng = random.Random(seed)
        graph = random_graph(rng)
        pattern = planted_pattern(rng, graph) if seed % 3 else random_pattern(rng)
        taxonomy = Taxonomy.of(random_taxonomy(rng))
        found = split(print_pattern(pattern), "sparql")
        holds = matches(pattern, graph, taxonomy)
        held += holds
        for clause in found:
            assert split(clause.filter, "sparql") == (clause,)
            assert not holds or matches(parse_filter(clause.filter), graph, taxonomy)
    assert held > share(200)


def test_a_filter_that_asks_for_nothing() -> None:
    assert split("SELECT DISTINCT * { }", "sparql") == split("ASK {}", "sparql") == (Clause("ASK {}", ()),)


def test_bad_filters_are_refused() -> None:
    with pytest.raises(FilterError, match=r"a pattern of triples and conditions is wanted"):
        split("ASK { ?x ?y ?z OPTIONAL { ?x ?y ?w } }", "sparql")
