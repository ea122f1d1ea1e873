"""What is refused, where, and in which words."""

from __future__ import annotations

import time

import pytest

from headgate.errors import FilterError
from headgate.rdf.language.model import Pattern
from headgate.rdf.language.parse import parse_expression, parse_filter, parse_text

OBJECT = "a variable, an IRI, a literal or a blank node"

# The mark stands before the place; it is no part of the text.
QUERIES = [
    ("⟪", "the filter is empty: expected ASK, SELECT, CONSTRUCT, PREFIX or BASE"),
    (" # nothing⟪", "the filter is empty: expected ASK, SELECT, CONSTRUCT, PREFIX or BASE"),
    ("ASK⟪", "the filter ends too early: expected WHERE or '{'"),
    ("ASK { ?x ?y ⟪}", f"'}}' cannot stand here: expected {OBJECT}"),
    ("ASK { ?x ?y ?z⟪", "the filter ends too early: expected FILTER, '}', '.', ',' or ';'"),
    ("ASK { ?x ?y ?z ⟪?w }", "?w cannot stand here: expected FILTER, '}', '.', ',' or ';'"),
    (
        "ASK { ?x ?y ?z . ⟪. }",
        "'.' cannot stand here: expected a triple, FILTER, OPTIONAL, MINUS, BIND, VALUES or '}'",
    ),
    ("ASK { ?x ?y ?z } ⟪}", "'}' cannot stand here: expected the end"),
    ("ASK { ?x a ?y , ⟪}", f"'}}' cannot stand here: expected {OBJECT}"),
    ("ASK { [ ] ⟪}", "'}' cannot stand here: expected a variable, an IRI or 'a'"),
    ("ASK ⟪?x ?y ?z", "?x cannot stand here: expected WHERE or '{'"),
    ("SELECT ⟪{ ?x ?y ?z }", "'{' cannot stand here: expected a variable, DISTINCT, REDUCED, '(' or '*'"),
    ("SELECT ?x⟪, ?y { ?x ?y ?z }", "',' cannot stand here: expected a variable, WHERE, '{' or '('"),
    ("ASK { ?x ?y ⟪foo }", "foo is not a keyword: an IRI is <…> or prefix:name, a variable ?foo"),
    ("ASK { ?x ?y 2000⟪abc }", "abc is not a keyword: an IRI is <…> or prefix:name, a variable ?abc"),
    ("ASK { ?x ⟪A ?y }", "rdf:type is written a, in lower case"),
    ("ASK { ?x ?y ⟪~ }", "~ is not part of the filter language"),
    ("ASK { ?x ?y ⟪$ }", "$ is not part of the filter language"),
    ("ASK { ?x ?y ⟪'abc }", "a quote is still open"),
    ('ASK { ?x ?y ⟪"""abc\n }', "a quote is still open"),
    ("ASK { FILTER(1 = 1) ⟪}", "a FILTER needs a triple pattern"),
    ("PREFIX ⟪ex <http://e/> ASK { ?x ?y ?z }", "a prefix is written with a colon at its end, such as ex:"),
    ("PREFIX ⟪ex:a <http://e/> ASK { ?x ?y ?z }", "a prefix is written with a colon at its end, such as ex:"),
    ("PREFIX ex: ⟪ASK { ?x ?y ?z }", "ASK cannot stand here: expected an IRI"),
    # What SPARQL has and filters have not.
    (
        "⟪DESCRIBE ?x",
        "DESCRIBE is not supported: a filter is ASK { … }, SELECT … { … } or CONSTRUCT { … } { … }",
    ),
    ("⟪INSERT DATA { }", "INSERT is not supported: a filter asks and changes nothing"),
    ("SELECT ?x ⟪FROM <http://g> { ?x ?y ?z }", "FROM is not supported: an event is one graph"),
    ("ASK { ?x ?y ?z ⟪UNION { ?x ?y ?w } }", "UNION stands between groups: { … } UNION { … }"),
    ("ASK { ⟪GRAPH ?g { ?x ?y ?z } }", "GRAPH is not supported: an event is one graph"),
    (
        "ASK { ⟪SERVICE <http://x> { ?x ?y ?z } }",
        "SERVICE is not supported: a filter looks at the event only",
    ),
    ("SELECT ⟪* { ?x ?y ?z } GROUP BY ?x", "SELECT * cannot stand with GROUP BY: name the variables"),
    # Conditions.
    ("ASK { ?x ?y ?z FILTER(⟪regex(?z)) }", "regex takes 2 or 3 arguments, not 1"),
    ("ASK { ?x ?y ?z FILTER(⟪lower(?z)) }", "lower is not a function of SPARQL 1.1: did you mean LCASE?"),
    ("ASK { ?x ?y ?z FILTER(⟪isIRI(?z, ?x)) }", "isIRI takes 1 argument, not 2"),
    ("ASK { ?x ?y ?z FILTER(⟪CONTAINS(?z)) }", "CONTAINS takes 2 arguments, not 1"),
    ("ASK { ?x ?y ?z FILTER ⟪?z }", "FILTER takes its condition in parentheses"),
    ("ASK { ?x ?y ?z FILTER ⟪!?z }", "FILTER takes its condition in parentheses"),
    (
        "ASK { ?x ?y ?z FILTER(!⟪!?z) }",
        "'!' cannot stand here: expected a variable, an IRI, a literal, a function or '('",
    ),
    (
        "ASK { ?x ?y ?z FILTER(⟪) }",
        "')' cannot stand here: expected a variable, an IRI, a literal, a function, '(' or '!'",
    ),
    ("ASK { ?x ?y ?z FILTER(?z =⟪= 1) }", "equality is written with one ="),
    ("ASK { ?x ?y ?z FILTER(?z ⟪<> 1) }", "unequal is written !="),
    ("ASK { ?x ?y ?z FILTER(?z = 1 ⟪AND ?x = 2) }", "and is written &&"),
    ("ASK { ?x ?y ?z FILTER(?z = 1 ⟪or ?x = 2) }", "or is written ||"),
    ("ASK { ?x ?y ?z FILTER(⟪NOT ?z) }", "not is written !"),
    ("ASK { ?x ?y ?z FILTER(?z = 1 ⟪& ?z = 2) }", "and is written &&"),
    ("ASK { ?x ?y ?z FILTER(?z = 1 ⟪| ?z = 2) }", "or is written ||"),
    ("ASK { ?x ?y ?z FILTER(?z < 1 ⟪< 2) }", "'<' cannot stand here: expected ')', '&&' or '||'"),
    ("ASK { ?x ?y ?z FILTER(?z⟪<3&&?y>2) }", "<3&&?y> is read as an IRI: put a space behind the <"),
    ("ASK { ?x ?y ?z FILTER(?z IN ⟪3) }", "3 cannot stand here: expected '('"),
    ("ASK { ?x ?y ?z FILTER(?z > 1 ⟪}", "'}' cannot stand here: expected ')', '&&' or '||'"),
    (
        "ASK { ?x ?y ?z FILTER(?z = ⟪_:b) }",
        "a blank node cannot stand in a FILTER: give it the name of a variable",
    ),
    # What stands where it may, and cannot be meant.
    ("ASK { ?x ?y ?z FILTER(⟪?w = 1) }", "the filter looks at ?w, which no triple binds"),
    ("SELECT ⟪?w { ?x ?y ?z }", "SELECT names ?w, which no triple binds"),
    ("SELECT ?x ⟪$x { ?x ?y ?z }", "SELECT names ?x twice"),
    ("ASK { ⟪'a' ?y ?z }", "a literal cannot be the subject of a triple"),
    ("ASK { ?x ?y ?z . ⟪3 ?y ?z }", "a literal cannot be the subject of a triple"),
    ("ASK { ?x ⟪'p' ?z }", "a literal cannot be a property"),
    ("ASK { ?x ⟪_:p ?z }", "a blank node cannot be a property: use a variable"),
    ("ASK { ?x ⟪[] ?z }", "a blank node cannot be a property: use a variable"),
    ("ASK { ?x ⟪ex:p ?z }", "the prefix ex: is not declared: write PREFIX ex: <…> before"),
    ("ASK { ?x ⟪:p ?z }", "the prefix : is not declared: write PREFIX : <…> before"),
    ("ASK { ?x ⟪<p> ?z }", "<p> is relative and no BASE is declared: write the whole IRI"),
    ("BASE <http://e/> ASK { ?x ⟪<@http://a> ?z }", "<@http://a> is not a valid IRI"),
    ("BASE <http://e/> ASK { ?x ⟪<%zz> ?z }", "<%zz>, which is <http://e/%zz>, is not a valid IRI"),
    ("BASE ⟪<e> ASK { ?x ?y ?z }", "<e> is relative and no BASE is declared: write the whole IRI"),
    ("ASK { ?x ⟪<http://e/%zz> ?z }", "<http://e/%zz> is not a valid IRI"),
    ("PREFIX : <http://a:> ASK { ?x ⟪:b ?z }", ":b, which is <http://a:b>, is not a valid IRI"),
    ("ASK { ?x ?y ⟪'a\\q' }", "the escape \\q is not known: a backslash is written \\\\"),
    ("ASK { ?x ?y ⟪'\\uD800' }", "\\uD800 is not a character"),
    ("ASK { ?x ?y '⟪\ud800' }", "half of a surrogate pair is not a character"),
    ("ASK { ?x ?y ⟪'a'@toolonglanguage }", "@toolonglanguage is not a language tag"),
    ("ASK { ?x ?y ⟪'a'^^rdf:langString }", 'a string with a language is written "…"@en'),
    ("ASK { ?x ?y 'a'^^⟪'b' }", "'b' cannot stand here: expected an IRI"),
    (
        "ASK { ?x ?y ?z FILTER(lang(?z) = ⟪'en-US') }",
        'languages are compared in lower case: write "en-us"',
    ),
    (
        "ASK { ?x ?y ?z FILTER(lang(?z) IN ('en', ⟪'DE')) }",
        'languages are compared in lower case: write "de"',
    ),
    (
        "ASK { ?x ?y ?z FILTER STRSTARTS(lang(?z), ⟪'En') }",
        'languages are compared in lower case: write "en"',
    ),
    # Paths.
    ("ASK { ?x ?p⟪* ?z }", "'*' cannot stand here: expected a variable, an IRI, a literal or a blank node"),
    ("ASK { ?x a/rdfs:subClassOf* ⟪'C' }", "a literal is neither a class nor a property"),
    (
        "ASK { rdf:type ⟪rdfs:subPropertyOf* rdf:type }",
        "this path between two constants says nothing of an event",
    ),
    ("ASK { ?x ?p ?y . ?z ⟪rdfs:subClassOf* ?x }", "the path looks at ?z, which no other triple binds"),
    ("ASK { ?x ⟪rdfs:subClassOf* ?x }", "the path looks at ?x, which no other triple binds"),
    ("ASK { [] ⟪rdfs:subClassOf* rdf:type }", "the path looks at _:b0, which no other triple binds"),
]

# What whole queries say, and patterns do not.
MORE = [
    "CONSTRUCT { ?x ?y ?z } { ?x ?y ?z }",
    "SELECT REDUCED ?x { ?x ?y ?z }",
    "SELECT (COUNT(?x) AS ?n) { ?x ?y ?z }",
    "ASK { ?x ?y ?z OPTIONAL { ?x ?y ?w } }",
    "ASK { { ?x ?y ?z } UNION { ?x ?y ?w } }",
    "ASK { { SELECT ?x { ?x ?y ?z } } }",
    "ASK { ?x ?y ?z minus { ?x ?y ?w } }",
    "ASK { ?x ?y ?z BIND(?x AS ?w) }",
    "ASK { VALUES ?x { 1 } ?x ?y ?z }",
    "SELECT * { ?x ?y ?z } ORDER BY ?x",
    "SELECT * { ?x ?y ?z } LIMIT 5",
    "SELECT * { ?x ?y ?z } HAVING(?x)",
    "ASK { ?x ?y ?z FILTER EXISTS { ?x ?y ?w } }",
    "ASK { ?x ?y ?z FILTER NOT EXISTS { ?x ?y ?w } }",
    "ASK { ?x ?y ?z FILTER(exists { ?x ?y ?w }) }",
    "ASK { ?x ?y ?z FILTER regex(?z, 'a|b') }",
    "ASK { ?x ?y ?z FILTER regex(?z, '\\\\bab', 'i') }",
    "ASK { ?x ?y ?z FILTER regex(?z, '\\\\btwo words\\\\b', 'i') }",
    "ASK { ?x ?y ?z FILTER regex(?z, 'a$b') }",
    "ASK { ?x ?y ?z FILTER regex(?z, 'a', 'm') }",
    "ASK { ?x ?y ?z FILTER regex(?z, ?x) }",
    "ASK { ?x ?y ?z FILTER regex(?z, 'a'@en) }",
    "ASK { ?x ?y ?z FILTER(bound(?z)) }",
    "ASK { ?x ?y ?z FILTER(xsd:integer(?z) > 3) }",
    "ASK { ?x ?y ?z FILTER(?z + 1 > 2) }",
    "ASK { ?x ?y ?z FILTER(?z +1 > 2) }",
    "ASK { ?x ?y ?z FILTER(2 > ?z -1) }",
    "ASK { ?x ?y ?z FILTER(?z * 2 > 2) }",
    "ASK { ?x ?y ?z FILTER(?z / 2 > 2) }",
    "ASK { ?x ?y ?z FILTER(-?z > 2) }",
    "ASK { ?x ^a ?z }",
    "ASK { ?x !a ?z }",
    "ASK { ?x a|rdfs:label ?z }",
    "ASK { ?x a/rdfs:label ?z }",
    "ASK { ?x a/rdfs:label* ?z }",
    "ASK { ?x rdfs:label/rdfs:subClassOf* ?z }",
    "ASK { ?x rdfs:subClassOf+ ?z }",
    "ASK { ?x rdfs:subClassOf? ?z }",
    "ASK { ?x rdfs:label* ?z }",
    "ASK { ?x a* ?z }",
]
TUPLES = [
    ("⟪", "the filter is empty: expected PREFIX, BASE or '('"),
    ("BASE <http://e/> ⟪", "the filter ends too early: expected PREFIX, BASE or '('"),
    ("BASE <http://e/> (?x, p⟪)", "')' cannot stand here: expected ','"),
    ("BASE <http://e/> (?x, p, ?y⟪", "the filter ends too early: expected ')' or ','"),
    ("BASE <http://e/> (?x, p, ?y, {}, {}⟪, {})", "',' cannot stand here: expected ')'"),
    ("BASE <http://e/> (?x, p, ?y)⟪, (?x, p, ?y)", "',' cannot stand here: expected the end or '('"),
    ("⟪ASK { ?x ?y ?z }", "ASK cannot stand here: expected PREFIX, BASE or '('"),
    (
        "(?x, ⟪p, ?y)",
        "the bare name p needs PREFIX : <…> or BASE <…> before; text goes between quotes",
    ),
    ("(?x, ?p, ?y, {⟪?y > 1})", "this constrains ?y and stands with ?x"),
    ("(<urn:x>, ?p, ?y, {⟪?x > 1})", "this constrains ?x and stands with <urn:x>"),
    ("(?x, ?p, ?y, {?x ⟪< <urn:C>})", "< compares with a literal: a class takes <=, = or >="),
    ("(?x, ?p, ?y, {?x = ⟪?y})", "a constraint compares with a class or a literal"),
    ("(?x, ?p, ?y, {⟪_:b <= <urn:C>})", "_:b cannot stand here: expected a variable or '}'"),
    ("(⟪'x', ?p, ?y)", "a literal cannot be the subject of a tuple"),
    ("(?x, ⟪'p', ?y)", "a property is a name or a variable"),
    ("(?x, ⟪_:p, ?y)", "a property is a name or a variable"),
    ("(?x, ?p, ⟪'y)", "a quote is still open"),
]


@pytest.mark.parametrize(
    ("marked", "reason", "dialect"),
    [(*case, "sparql") for case in QUERIES] + [(*case, "tuples") for case in TUPLES],
)
def test_refusals(marked: str, reason: str, dialect: str) -> None:
    text = marked.replace("⟪", "", 1)
    with pytest.raises(FilterError) as refused:
        parse_filter(text, dialect)
    assert refused.value.reason == reason
    assert refused.value.position == marked.index("⟪")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", MORE)
def test_what_is_more_than_a_pattern(text: str) -> None:
    assert not isinstance(parse_text(text), Pattern)
    with pytest.raises(FilterError, match="a pattern of triples and conditions is wanted"):
        parse_filter(text)


def test_every_refusal_again() -> None:
    """A shape that was refused is refused again, and one that was taken may be refused for its words."""
    for marked, reason in QUERIES * 2:
        with pytest.raises(FilterError) as refused:
            parse_filter(marked.replace("⟪", "", 1))
        assert refused.value.reason == reason


LARGE = [
    ("x" * 70_000, "the filter has 70,000 characters and at most 65,536 are taken"),
    (f"ASK {{ ?x ?y '{'x' * 10**7}' }}", "the filter has 10,000,016 characters and at most 65,536 are taken"),
    ("{" * 5_000, "the filter nests deeper than 64"),
    ("ASK { ?x ?y " + "[ ?y " * 4_000, "the filter nests deeper than 64"),
    ("ASK { ?x ?y ?z FILTER(" + "(" * 64 + "?x", "the filter nests deeper than 64"),
    ("ASK {" * 5_000, "the filter has 10,000 words and at most 8,192 are taken"),
    (
        f"ASK {{ ?x ?y ?z FILTER({'||'.join(['?z=1'] * 20_000)}) }}",
        "the filter has 120,023 characters and at most 65,536 are taken",
    ),
    (
        f"ASK {{ ?x ?y ?z FILTER({'||'.join(['?z'] * 16_000)}) }}",
        "the filter has 32,008 words and at most 8,192 are taken",
    ),
    (
        f"ASK {{ ?x ?y ?z FILTER({'||'.join(['?z=1'] * 1_001)}) }}",
        "the filter joins more than 1,000 conditions by && and ||",
    ),
    (f"ASK {{ ?x ?y ?z FILTER(?z IN ({','.join(['1'] * 1_001)})) }}", "the list is longer than 1,000"),
    (f"ASK {{ {' . '.join(['?x ?y ?z'] * 65)} }}", "the filter has more than 64 triple patterns"),
    (f"ASK {{ ?x ?y {', '.join(['?z'] * 65)} }}", "the filter has more than 64 triple patterns"),
    (
        f"ASK {{ {' . '.join(f'?x{n} ?y{n} ?z{n}' for n in range(22))} }}",
        "the filter has 66 variables and at most 64 are taken",
    ),
    ('ASK { ?x ?y "' + '\\"' * 30_000, "a quote is still open"),
    ('ASK { ?x ?y """' + '\\"""' * 15_000, "a quote is still open"),
    ("a." * 32_000, "the filter has 64,000 words and at most 8,192 are taken"),
    ("<" * 65_536, "the filter has 65,536 words and at most 8,192 are taken"),
    ("PREFIX a" + "." * 65_000, "the filter has 65,002 words and at most 8,192 are taken"),
    (" " * 65_536, "the filter is empty: expected ASK, SELECT, CONSTRUCT, PREFIX or BASE"),
    ("#" * 65_536, "the filter is empty: expected ASK, SELECT, CONSTRUCT, PREFIX or BASE"),
    (f"BASE <http://e/{'../' * 20_000}> ASK {{ <{'../' * 1_500}> ?y ?z FILTER(?q) }}",
     "the filter looks at ?q, which no triple binds"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), LARGE, ids=[reason for _, reason in LARGE])
def test_large_texts_are_refused_soon(text: str, reason: str) -> None:
    with pytest.raises(FilterError):
        parse_filter("ASK")  # so that the parser is there
    start = time.perf_counter()
    with pytest.raises(FilterError) as refused:
        parse_filter(text)
    assert time.perf_counter() - start < 0.5
    assert refused.value.reason == reason
    assert len(str(refused.value)) < 200


def test_tuples_have_limits_too() -> None:
    for text, reason in (
        ("(?x, ?p, ?y)" * 65, "the filter has more than 64 triple patterns"),
        (
            "(?x, ?p, ?y, {" + ", ".join(["?x = <urn:C>"] * 64) + "})",
            "the filter has more than 64 triple patterns",
        ),
        ("(?x, ?p, ?y, {" + ", ".join(["?x = 1"] * 1_001) + "})", "the list is longer than 1,000"),
        ("(" * 70, "the filter nests deeper than 64"),
    ):
        with pytest.raises(FilterError) as refused:
            parse_filter(text, "tuples")
        assert refused.value.reason == reason


def test_expressions_are_refused_too() -> None:
    with pytest.raises(FilterError, match=r"ends too early: expected a variable, .*, at character 5"):
        parse_expression("?x =")
    with pytest.raises(FilterError, match=r"'\)' cannot stand here"):
        parse_expression("?x)")
