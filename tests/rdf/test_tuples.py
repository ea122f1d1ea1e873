"""The 5-tuples of G-ToPSS as a notation of filters."""

from __future__ import annotations

import pytest

from headgate.errors import FilterError
from headgate.rdf.events.reading import make_graph
from headgate.rdf.language.model import BELOW, ISA, SUBCLASS, TYPE, XSD, Options
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.language.printing import print_pattern
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from tests.rdf.reference import matches

EX = "http://example.org/"
# Figure 5 (a) and (b) of the paper.
FIGURE_5A = f"""
    BASE <{EX}>
    (Arnos-paper-17, author, "Arno Jacobsen")
    (Arnos-paper-17, conference, SIGMOD)
    (SIGMOD, year, ?z, {{}}, {{?z > 2000}})
"""
FIGURE_5B = f"""
    BASE <{EX}>
    (?y, author, "Arno Jacobsen", {{?y <= Publication}})
    (?y, conference, SIGMOD, {{}}, {{}})
    (SIGMOD, year, ?x, {{}}, {{?x > 1999}})
"""


def named(local: str) -> str:
    """Write an IRI as a term."""
    return f"<{EX}{local}>"


# Figure 5 (c), and of Figure 6 what is about it: instances are listed in the taxonomy.
PUBLICATION = [
    (named("Arnos-paper-17"), named("author"), '"Arno Jacobsen"'),
    (named("Arnos-paper-17"), named("conference"), named("SIGMOD")),
    (named("Arnos-paper-17"), named("title"), '"Very Fast…"'),
    (named("SIGMOD"), named("year"), '"2001"'),
    (named("SIGMOD"), named("location"), '"Some Location"'),
]
TAXONOMY = Taxonomy.of(
    [
        (named("Journal"), SUBCLASS, named("Publication")),
        (named("ConferenceProceeding"), SUBCLASS, named("Publication")),
        (named("Arnos-paper-17"), TYPE, named("ConferenceProceeding")),
    ]
)


@pytest.mark.parametrize("text", [FIGURE_5A, FIGURE_5B])
def test_the_figures_of_the_paper(text: str) -> None:
    pattern = parse_filter(text, "tuples")
    graph = make_graph(PUBLICATION)
    assert matches(pattern, graph, TAXONOMY, Options(coerce=True))
    # By SPARQL's rules a string is not greater than a number.
    assert not matches(pattern, graph, TAXONOMY)
    later = make_graph([(s, p, '"1998"' if o == '"2001"' else o) for s, p, o in PUBLICATION])
    assert not matches(pattern, later, TAXONOMY, Options(coerce=True))
    assert matches(pattern, graph, Taxonomy.of([]), Options(coerce=True)) == (text == FIGURE_5A)


def test_what_the_figures_are_in_sparql() -> None:
    prefix = f"PREFIX : <{EX}>"
    assert parse_filter(FIGURE_5A, "tuples") == parse_filter(
        f"""{prefix} ASK {{ :Arnos-paper-17 :author "Arno Jacobsen" ; :conference :SIGMOD .
        :SIGMOD :year ?z FILTER(?z > 2000) }}"""
    )
    assert parse_filter(FIGURE_5B, "tuples") == parse_filter(
        f"""{prefix} ASK {{ ?y :author "Arno Jacobsen" .
        ?y a/rdfs:subClassOf* :Publication ; :conference :SIGMOD .
        :SIGMOD :year ?x FILTER(?x > 1999) }}"""
    )


@pytest.mark.parametrize(
    ("tuples", "sparql"),
    [
        ("(?x, p, ?y)", "?x :p ?y"),
        ("(?x, p, ?y, {})", "?x :p ?y"),
        ("(?x, p, ?y, {}, {})", "?x :p ?y"),
        ("(?x, p, ?y) (?y, p, ?x)", "?x :p ?y . ?y :p ?x"),
        ("(?x, ?p, ?x)", "?x ?p ?x"),
        ("(?x, a, C)", "?x a :C"),
        ("(x, p, 'text')", ":x :p 'text'"),
        ("(x, p, 2.50)", ":x :p 2.50"),
        ("(x, p, true)", ":x :p true"),
        ("(x, p, 'chat'@FR)", ":x :p 'chat'@fr"),
        ("(x, p, '1'^^xsd:byte)", ":x :p '1'^^xsd:byte"),
        ("(_:n, :p, <http://example.org/o>)", "_:n :p :o"),
        ("(?x, p, ?y, {?x <= C})", "?x :p ?y . ?x a/rdfs:subClassOf* :C"),
        ("(?x, p, ?y, {}, {?y <= C})", "?x :p ?y . ?y a/rdfs:subClassOf* :C"),
        ("(?x, p, ?y, {?x = C})", "?x :p ?y . ?x a :C"),
        ("(?x, p, ?y, {?x >= C})", "?x :p ?y . :C rdfs:subClassOf* ?x"),
        ("(?x, p, ?y, {?x <= C, ?x >= D})", "?x :p ?y . ?x a/rdfs:subClassOf* :C . :D rdfs:subClassOf* ?x"),
        ("(?x, p, ?y, {}, {?y > 1, ?y <= 9})", "?x :p ?y FILTER(?y > 1) FILTER(?y <= 9)"),
        ("(?x, p, ?y, {}, {?y = 'a'})", "?x :p ?y FILTER(?y = 'a')"),
        ("(?x, p, ?y, {}, {?y != 1})", "?x :p ?y FILTER(?y != 1)"),
        ("(?x, p, ?y, {}, {?y >= '2001-01-01'^^xsd:date})", "?x :p ?y FILTER(?y >= '2001-01-01'^^xsd:date)"),
        (
            "(?x, p, ?x, {?x <= C}, {?x <= D})",
            "?x :p ?x . ?x a/rdfs:subClassOf* :C . ?x a/rdfs:subClassOf* :D",
        ),
        ("(ask, where, filter)", ":ask :where :filter"),
        ("# a comment\n(?x, p, # another\n ?y)", "?x :p ?y"),
    ],
)
def test_tuples_and_sparql(tuples: str, sparql: str) -> None:
    prefix = f"PREFIX : <{EX}> "
    found = parse_filter(prefix + tuples, "tuples")
    assert found == parse_filter(f"{prefix} ASK {{ {sparql} }}")
    assert parse_filter(print_pattern(found)) == found


def test_classes_and_literals() -> None:
    found = parse_filter(f"BASE <{EX}> (?x, p, ?y, {{?x <= C, ?x = C, ?x >= C}}, {{?y <= 3}})", "tuples")
    assert [(edge.subject, edge.path, edge.object) for edge in found.edges] == [
        ("?x", "", "?y"),
        ("?x", ISA, named("C")),
        ("?x", "", named("C")),
        (named("C"), BELOW, "?x"),
    ]
    assert len(found.filters) == 1


def test_bare_names() -> None:
    """A default prefix goes before BASE, as it is the more special of the two."""
    text = "PREFIX : <urn:p:> BASE <http://b/> (a-b, ünder_score, <c>)"
    assert (
        print_pattern(parse_filter(text, "tuples")) == "ASK { <urn:p:a-b> <urn:p:ünder_score> <http://b/c> }"
    )
    assert print_pattern(parse_filter("BASE <http://b/x/> (y, p, true)", "tuples")) == (
        "ASK { <http://b/x/y> <http://b/x/p> true }"
    )
    with pytest.raises(FilterError, match=r"the bare name y needs PREFIX : <…> or BASE <…>"):
        parse_filter("(y, <urn:p>, ?z)", "tuples")


def test_numbers_keep_their_form() -> None:
    found = parse_filter("(?x, ?p, ?y, {}, {?y > +01.50})", "tuples")
    assert f'"+01.50"^^<{XSD}decimal>' in str(found.filters)
