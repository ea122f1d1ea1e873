"""What filters mean: each decision by a case made by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headgate.rdf.events.reading import make_graph
from headgate.rdf.language.model import SUBCLASS, SUBPROPERTY, TYPE, XSD, Options, Pattern, literal
from headgate.rdf.language.parse import parse_expression, parse_filter
from headgate.rdf.language.values import evaluate, truth
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from tests.rdf.reference import matches, solutions

if TYPE_CHECKING:
    from headgate.rdf.language.model import Graph, Term

PROLOGUE = (
    "PREFIX : <urn:x:> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
    "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
)
COERCE = Options(coerce=True)
INJECTIVE = Options(injective=True)


def term(text: str) -> Term:
    """Make a term of a word: a number, `_:blank`, a "string" as it is, `a` for rdf:type, else a name."""
    if text.startswith(('"', "_", "<")):
        return text
    if text.lstrip("-").isdigit():
        return literal(text, f"{XSD}integer")
    return {"a": TYPE, "sub": SUBCLASS, "subp": SUBPROPERTY}.get(text, f"<urn:x:{text}>")


def statements(text: str) -> list[tuple[Term, Term, Term]]:
    """Make triples of words: `x p y; x p 1`."""
    found = [
        tuple(term(word.strip()) for word in each.split(maxsplit=2))
        for each in text.split(";")
        if each.strip()
    ]
    return [(s, p, o) for s, p, o in found]


def event(text: str) -> Graph:
    return make_graph(statements(text))


def asked(
    pattern: str,
    graph: str,
    taxonomy: str = "",
    options: Options = Options(),  # noqa: B008
) -> list[dict[Term, Term]]:
    """Find the solutions, and see that `matches` says the same."""
    parsed = parse_filter(f"{PROLOGUE} SELECT * WHERE {{ {pattern} }}")
    known = Taxonomy.of(statements(taxonomy)) if taxonomy else None
    found = solutions(parsed, event(graph), known, options)
    assert matches(parsed, event(graph), known, options) is bool(found)
    return found


CASES: list[tuple[str, str, str, int]] = [
    # Triples: terms are equal if text, datatype and language are.
    (":x :p :y", "x p y", "", 1),
    (":x :p :y", "y p x", "", 0),
    (":x :p 1", "x p 1", "", 1),
    (":x :p 1", 'x p "01"^^<http://www.w3.org/2001/XMLSchema#integer>', "", 0),
    (":x :p 1", 'x p "1"', "", 0),
    (":x :p 1.0", "x p 1", "", 0),
    (':x :p "a"', 'x p "a"@en', "", 0),
    (':x :p "a"@EN', 'x p "a"@en', "", 1),
    (':x :p "a"^^xsd:string', 'x p "a"', "", 1),
    # Variables: shared ones stand for one term, different ones may stand for the same.
    ("?a :p ?b", "x p y; y p z", "", 2),
    ("?a :p ?b . ?b :p ?c", "x p y; y p z", "", 1),
    ("?a :p ?b . ?c :p ?d", "x p y; y p z", "", 4),
    ("?a :p ?a", "x p y; y p x", "", 0),
    ("?a :p ?a", "x p y; y p y", "", 1),
    ("?a ?p ?b", "x p y; x q y", "", 2),
    ("?a ?p ?p", "x p y; x p p", "", 1),
    ("?p ?p ?p", "x p p; p p p", "", 1),
    ("?a ?p ?b . ?p :label ?l", 'x p y; p label "P"', "", 1),
    ("?a :p ?b . ?a :p ?b", "x p y", "", 1),
    ("?a :p ?b . ?c :p ?b", "x p y", "", 1),
    # Disconnected parts each need a match.
    ("?a :p ?b . ?c :q ?d", "x p y", "", 0),
    ("?a :p ?b . ?c :q ?d", "x p y; z q w", "", 1),
    # Blank nodes: a variable in a filter, local in an event.
    ("_:b :p ?y", "x p y; z p y", "", 2),
    ("[] :p ?y", "_:b0 p y", "", 1),
    ("?a :p [ :q ?c ]", "x p _:b0; _:b0 q 1", "", 1),
    ("?a :p [ :q ?c ]", "x p _:b0; _:b1 q 1", "", 0),
    # Types, direct.
    ("?a a :C", "x a D", "D sub C", 0),
    ("?a a :C", "x p y", "x a C", 1),
    ("?a a :C", "y p x", "x a C", 1),
    ("?a a :C", "y x z", "x a C", 0),
    ("?a a :C", "x p y", "z a C", 0),
    ("?a a ?c", "x a C", "x a D", 2),
    ("?a a ?c", "x a C", "x a C", 1),
    # Types, through the taxonomy.
    ("?a a/rdfs:subClassOf* :C", "x a C", "", 1),
    ("?a a/rdfs:subClassOf* :C", "x a D", "D sub C", 1),
    ("?a a/rdfs:subClassOf* :C", "x a E", "D sub C; E sub D", 1),
    ("?a a/rdfs:subClassOf* :C", "x a D", "C sub D", 0),
    ("?a a/rdfs:subClassOf* :C", "x a D; D sub C", "", 1),
    ("?a a/rdfs:subClassOf* :C", "x a E; E sub D", "D sub C", 1),
    ("?a a/rdfs:subClassOf* :C", "x a E; D sub C", "E sub D", 1),
    ("?a a/rdfs:subClassOf* :C", "x p y", "x a D; D sub C", 1),
    ("?a a/rdfs:subClassOf* :C", "x p y", "z a D; D sub C", 0),
    ("?a a/rdfs:subClassOf* :C", "x a D; x a E", "D sub C; E sub C", 1),
    ("?a a/rdfs:subClassOf* :A", "x a D", "D sub B; D sub C; B sub A; C sub A", 1),
    ("?a a/rdfs:subClassOf* :C", "x a B", "A sub B; B sub C; C sub A", 1),
    ("?a a/rdfs:subClassOf* ?c", "x a D", "D sub C; C sub B", 3),
    ("?a a/rdfs:subClassOf* ?c . ?a :is ?c", "x a D; x is C", "D sub C", 1),
    ("?a a/rdfs:subClassOf* ?a", "C a D", "D sub C", 1),
    ("_:b a/rdfs:subClassOf* :C", "_:b0 a C; _:b1 a C", "", 2),
    # The taxonomy is no part of the event.
    ("?a rdfs:subClassOf ?b", "x p y", "C sub D", 0),
    ("?a rdfs:subClassOf ?b", "C sub D; D sub E", "", 2),
    ("?a ?p ?b", "x p y", "C sub D", 1),
    # Below, as a check of what else is bound; a class is below itself, known or not.
    ("?a :about ?c . ?c rdfs:subClassOf* :C", "x about D", "D sub C", 1),
    ("?a :about ?c . ?c rdfs:subClassOf* :C", "x about C", "", 1),
    ("?a :about ?c . ?c rdfs:subClassOf* :D", "x about C", "D sub C", 0),
    ("?a :about ?c . :D rdfs:subClassOf* ?c", "x about C", "D sub C", 1),
    ("?a :about ?c . ?a :like ?d . ?c rdfs:subClassOf* ?d", "x about D; x like C", "D sub C", 1),
    ("?a :about ?c . ?c rdfs:subClassOf* ?c", 'x about "text"', "", 1),
    ("?a :about ?c . ?c rdfs:subClassOf* :C", "x about D", "D subp C", 0),
    ("?a ?p ?b . ?p rdfs:subPropertyOf* :made", "x made y; x wrote z; x saw y", "wrote subp made", 2),
    ("?a ?p ?b . ?p rdfs:subPropertyOf* :made", "x wrote z; wrote subp made", "", 1),
    ("?a ?p ?b . ?p rdfs:subPropertyOf* :made", "x wrote z", "wrote sub made", 0),
    # Filters: only what is true passes.
    ("?a :year ?y FILTER(?y > 2000)", "x year 2001; z year 2000", "", 1),
    ("?a :year ?y FILTER(?y > 2000)", 'x year "2001"', "", 0),
    ("?a :year ?y FILTER(!(?y > 2000))", 'x year "2001"', "", 0),
    ("?a :year ?y FILTER(?y > 2000 || isLiteral(?y))", 'x year "2001"', "", 1),
    ("?a :year ?y FILTER(?y = 2001.0)", "x year 2001", "", 1),
    ("?a :p ?y FILTER(?y != ?a)", "x p x; x p z", "", 1),
    ("?a :p ?y FILTER(?y)", 'x p "text"; x p ""; x p 0; x p y', "", 1),
    ("?a :p ?y FILTER(?y IN (1, 2))", "x p 2; x p 3", "", 1),
    ("?a :p ?y FILTER(?y NOT IN (1, 2))", "x p 2; x p 3", "", 1),
    ("?a :p ?y FILTER(?a = ?b) ?b :q ?z", "x p 1; x q 2; y q 3", "", 1),
]


@pytest.mark.parametrize(("pattern", "graph", "taxonomy", "count"), CASES)
def test_meaning(pattern: str, graph: str, taxonomy: str, count: int) -> None:
    assert len(asked(pattern, graph, taxonomy)) == count


APART: list[tuple[str, str, str, int]] = [
    # Different nodes stand for different terms.
    ("?a :p ?b", "x p x; x p y", "", 1),
    ("?a :p ?b . ?c :p ?b", "x p y", "", 0),
    ("?a :p ?b . ?c :p ?b", "x p y; z p y", "", 2),
    ("?a :p ?b . ?c :p ?d", "x p y; y p z", "", 0),
    # Constants are nodes too, literals as well.
    ("?a :p :x", "x p x", "", 0),
    (":x :p ?b . :x :q 1", "x p 1; x q 1", "", 0),
    (":x :p ?b . :x :q 1", "x p 2; x q 1", "", 1),
    # Different edges stand for different triples, equal ones are one edge.
    ("?a :p ?b . ?a ?p ?b", "x p y", "", 0),
    ("?a :p ?b . ?a ?p ?b", "x p y; x q y", "", 1),
    ("?a :p ?b . ?a :p ?b", "x p y", "", 1),
    # Properties are no nodes.
    ("?a ?p ?b . ?b ?q ?c", "x p y; y p z", "", 1),
    ("?a ?p ?b", "x p p", "", 1),
    # A class that a path names is no node, a variable for one is; in a plain edge it always is.
    ("?a :p ?c . ?a a/rdfs:subClassOf* :C", "x p C; x a C", "", 1),
    ("?a :p ?b . ?a a/rdfs:subClassOf* ?c", "x p C; x a C", "", 0),
    ("?a :p ?b . ?a a/rdfs:subClassOf* ?c", "x p C; x a D", "", 1),
    ("?a :p ?b . ?a a :C", "x p C; x a C", "", 0),
    ("?a :p ?b . ?b rdfs:subClassOf* :C", "x p C", "", 1),
]


@pytest.mark.parametrize(("pattern", "graph", "taxonomy", "count"), APART)
def test_injective(pattern: str, graph: str, taxonomy: str, count: int) -> None:
    assert len(asked(pattern, graph, taxonomy, INJECTIVE)) == count


EXPRESSIONS: list[tuple[str, object]] = [
    # Errors: && and || know the answer if the other side decides it.
    ("1 < 2 && 'a' < 2", None),
    ("2 < 1 && 'a' < 2", False),
    ("'a' < 2 && 2 < 1", False),
    ("1 < 2 || 'a' < 2", True),
    ("'a' < 2 || 1 < 2", True),
    ("2 < 1 || 'a' < 2", None),
    ("!('a' < 2)", None),
    ("!(2 < 1)", True),
    ("(1 < 2) = true", True),
    ("(1 < 2) > (2 < 1)", True),
    # IN: a disjunction of =.
    ("1 IN ()", False),
    ("1 NOT IN ()", True),
    ("STR(_:b) IN ()", None),
    ("1 IN (2, 1.0)", True),
    ("1 IN (2, 'a')", None),
    ("1 IN (1, 'a')", True),
    ("1 NOT IN (2, 'a')", None),
    ("<urn:x> IN (1, <urn:x>)", True),
    # Functions.
    ("STR(<urn:x>)", '"urn:x"'),
    ("STR('01'^^xsd:integer)", '"01"'),
    ("STR('chat'@fr)", '"chat"'),
    ("STR(1 < 2)", '"true"'),
    ("STR(_:b)", None),
    ("LANG('chat'@FR)", '"fr"'),
    ("LANG('chat')", '""'),
    ("LANG(1)", '""'),
    ("LANG(<urn:x>)", None),
    ("LANG(_:b)", None),
    ("DATATYPE('chat')", f"<{XSD}string>"),
    ("DATATYPE('chat'@fr)", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"),
    ("DATATYPE('x'^^<urn:t>)", "<urn:t>"),
    ("DATATYPE(1 < 2)", f"<{XSD}boolean>"),
    ("DATATYPE(<urn:x>)", None),
    ("isIRI(<urn:x>)", True),
    ("isURI(<urn:x>)", True),
    ("isIRI('urn:x')", False),
    ("isIRI(_:b)", False),
    ("isLiteral('a')", True),
    ("isLiteral(1 < 2)", True),
    ("isLiteral(_:b)", False),
    ("isLiteral(STR(_:b))", None),
    ("STRSTARTS('chat', 'ch')", True),
    ("STRSTARTS('chat', 'Ch')", False),
    ("STRENDS('chat', 'at')", True),
    ("CONTAINS('chat', 'ha')", True),
    ("CONTAINS('chat', '')", True),
    ("CONTAINS('chat'@fr, 'ha')", True),
    ("CONTAINS('chat'@fr, 'ha'@fr)", True),
    ("CONTAINS('chat'@fr, 'ha'@en)", None),
    ("CONTAINS('chat', 'ha'@fr)", None),
    ("CONTAINS(1, '1')", None),
    ("CONTAINS(STR(1), '1')", True),
    ("CONTAINS(<urn:x>, 'x')", None),
]


@pytest.mark.parametrize(("text", "expected"), EXPRESSIONS)
def test_expressions(text: str, expected: object) -> None:
    # A blank node is none of a filter's terms; in these cases ?b stands for one.
    parsed = parse_expression(text.replace("_:b", "?b").replace("xsd:integer", f"<{XSD}integer>"))
    assert evaluate(parsed, {"?b": "_:b0"}, Options()) == expected


TRUTHS: list[tuple[str, bool | None]] = [
    ('"true"^^boolean', True),
    ('"0"^^boolean', False),
    ('"yes"^^boolean', False),
    ('"1"^^integer', True),
    ('"0"^^integer', False),
    ('"abc"^^integer', False),
    ('"300"^^byte', False),
    ('"0.0"^^decimal', False),
    ('"NaN"^^double', False),
    ('"-0"^^double', False),
    ('"INF"^^float', True),
    ('"a"', True),
    ('""', False),
    ('"a"@en', True),
    ('""@en', False),
    ('"2001-01-01"^^date', None),
    ("<urn:x>", None),
    ("_:b0", None),
]


@pytest.mark.parametrize(("text", "expected"), TRUTHS)
def test_effective_boolean_values(text: str, expected: bool | None) -> None:
    lexical, typed, name = text.partition("^^")
    assert truth(f"{lexical}^^<{XSD}{name}>" if typed else text) is expected


def test_an_unbound_variable_is_an_error() -> None:
    assert evaluate(parse_expression("?x = 1"), {}, Options()) is None


# The paper's bibliography (Figure 5) and taxonomy (Figure 6).
PUBLICATION = 'paper17 author "Arno Jacobsen"; paper17 conference SIGMOD; SIGMOD year "2001"'
TAXONOMY = (
    "Journal sub Publication; Proceedings sub Publication; Report sub Publication; Report sub Department; "
    "Report sub Jacobsens; SIGMOD sub Proceedings; paper17 a Jacobsens; paper17 a SIGMOD"
)
FIRST = ':paper17 :author "Arno Jacobsen" ; :conference :SIGMOD . :SIGMOD :year ?x FILTER(?x > 2000)'
SECOND = (
    '?y :author "Arno Jacobsen" ; :conference :SIGMOD ; a/rdfs:subClassOf* :Publication . '
    ":SIGMOD :year ?x FILTER(?x > 1999)"
)


def test_the_papers_example() -> None:
    assert asked(FIRST, PUBLICATION, TAXONOMY, COERCE) == [{"?x": '"2001"'}]
    assert asked(SECOND, PUBLICATION, TAXONOMY, COERCE) == [{"?y": "<urn:x:paper17>", "?x": '"2001"'}]
    assert asked(SECOND, PUBLICATION, TAXONOMY.replace("paper17 a SIGMOD", "paper18 a SIGMOD"), COERCE) == []


def test_without_coercion_a_year_that_is_a_string_is_an_error() -> None:
    assert asked(FIRST, PUBLICATION, TAXONOMY) == []
    assert asked(SECOND, PUBLICATION, TAXONOMY) == []
    assert asked(FIRST, PUBLICATION.replace('"2001"', "2001"), TAXONOMY) == [{"?x": term("2001")}]


def test_solutions_are_distinct_and_have_blank_nodes_too() -> None:
    found = asked("?a :p [] . ?a a/rdfs:subClassOf* :C", "x p y; x p z; x a D; x a E", "D sub C; E sub C")
    assert [sorted(each.values()) for each in found] == [
        ["<urn:x:x>", "<urn:x:y>"],
        ["<urn:x:x>", "<urn:x:z>"],
    ]
    assert all(set(each) == {"?a", "?:b0"} for each in found)


def test_a_limit() -> None:
    pattern = parse_filter(f"{PROLOGUE} SELECT * {{ ?a :p ?b }}")
    graph = event("x p 1; x p 2; x p 3")
    assert len(solutions(pattern, graph, None, Options(), 2)) == 2
    assert len(solutions(pattern, graph, None, Options(), 3)) == 3
    assert len(solutions(pattern, graph, None, Options(), 4)) == 3


def test_an_empty_event_and_an_empty_pattern() -> None:
    assert not matches(parse_filter("ASK { ?a ?p ?b }"), make_graph([]))
    assert matches(Pattern(()), make_graph([]))
    assert not matches(Pattern((), (literal("false", f"{XSD}boolean"),)), make_graph([]))
