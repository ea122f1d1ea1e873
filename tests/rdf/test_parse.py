"""Texts of filters to patterns and back."""

from __future__ import annotations

import random
import re

import pyoxigraph
import pytest

from headgate.errors import FilterError, SubscriptionError
from headgate.rdf.language import refusal as limits
from headgate.rdf.language.model import (
    ASK,
    BELOW,
    BELOW_PROPERTY,
    ISA,
    RDFS,
    SELECT,
    TYPE,
    XSD,
    And,
    Call,
    Compare,
    Edge,
    Member,
    Not,
    Or,
    Pattern,
    iri,
    literal,
)
from headgate.rdf.language.names import resolve
from headgate.rdf.language.parse import parse_expression, parse_filter
from headgate.rdf.language.printing import print_expression, print_pattern
from headgate.rdf.language.words import cut, kinds_of, places
from tests.rdf.random_patterns import planted_pattern, random_graph, random_pattern
from tests.rdf.spelling import PREDECLARED, PROLOGUE, nearly, random_word, spelled
from tests.seeds import seeds, share

STORE = pyoxigraph.Store()
EX = "PREFIX ex: <http://example.org/> "


def filtered(text: str) -> object:
    """Parse the expression of a filter over ?x and ?y."""
    return parse_filter(f"{EX} ASK {{ ?x ?p ?y FILTER({text}) }}").filters[0]


def whole(number: str) -> str:
    """Write an integer as a term."""
    return f'"{number}"^^<{XSD}integer>'


def test_a_filter() -> None:
    found = parse_filter(
        EX + "SELECT DISTINCT ?x WHERE { ?x a/rdfs:subClassOf* ex:Article ; ex:year ?y . FILTER(?y > 2000) }"
    )
    assert found.edges == (
        Edge("?x", ISA, "<http://example.org/Article>", ISA),
        Edge("?x", "<http://example.org/year>", "?y"),
    )
    assert found.filters == (Compare(">", "?y", whole("2000")),)
    assert (found.form, found.selected, found.distinct) == (SELECT, ("?x",), True)
    assert found.variables == ("?x", "?y")


def test_printed_patterns_parse_to_themselves() -> None:
    for seed in seeds(2_000):
        rng = random.Random(seed)
        pattern = random_pattern(rng) if seed % 2 else planted_pattern(rng, random_graph(rng))
        text = print_pattern(pattern)
        assert parse_filter(text) == pattern
        assert print_pattern(parse_filter(text)) == text
        for each in pattern.filters:
            assert parse_expression(print_expression(each)) == each


def test_what_is_printed_is_sparql() -> None:
    for seed in seeds(1_000):
        STORE.query(print_pattern(random_pattern(random.Random(seed))))


def test_any_spelling_is_the_same_pattern() -> None:
    for seed in seeds(2_000):
        rng = random.Random(seed)
        pattern = random_pattern(rng)
        text = spelled(rng, pattern)
        assert parse_filter(text) == pattern, text
        if seed < 500:
            STORE.query(text, prefixes=PREDECLARED)


def differences(numbers: range) -> int:
    """Hold texts that are nearly filters against pyoxigraph; count those that both take.

    What is taken here, it takes; what it takes and we do not is refused for something that we say.
    """
    taken = 0
    for seed in numbers:
        text = nearly(random.Random(seed))
        try:
            pattern = parse_filter(text)
        except FilterError as error:
            reason = str(error)
        else:
            STORE.query(text, prefixes=PREDECLARED)
            assert parse_filter(print_pattern(pattern)) == pattern
            taken += 1
            continue
        try:
            STORE.query(text, prefixes=PREDECLARED)
        except (SyntaxError, ValueError, RuntimeError):
            continue
        if re.match(r"'[-+]' cannot stand here", reason):
            # It lets blanks stand between a sign and its number, which SPARQL writes as one word.
            continue
        assert not re.search(
            "cannot stand here(?!: expected a variable, an IRI, a literal, a f)|too early", reason
        ), text
    return taken


def test_texts_that_are_nearly_filters() -> None:
    assert differences(seeds(3_000)) > share(500)


@pytest.mark.nightly
def test_many_texts_that_are_nearly_filters() -> None:
    assert differences(range(3_000, 100_000)) > 20_000


def test_words_are_the_same_terms() -> None:
    """What a word means, pyoxigraph tells by a triple that it makes of it."""
    taken = 0
    for seed in seeds(4_000):
        word = random_word(random.Random(seed))
        try:
            edges = parse_filter(f"{PROLOGUE} ASK {{ <urn:s> <urn:p> {word} }}").edges
        except FilterError:
            continue
        text = f"{PROLOGUE} CONSTRUCT {{ <urn:s> <urn:p> {word} }} {{}}"
        try:
            made = STORE.query(text, prefixes=PREDECLARED)
        except SyntaxError:
            assert re.search(r"\..*\.", word), word  # of names with two dots it takes some only
            continue
        assert isinstance(made, pyoxigraph.QueryTriples)
        found = {
            iri(end.value)
            if isinstance(end, pyoxigraph.NamedNode)
            else literal(end.value, end.datatype.value, end.language or "")
            for _, _, end in made
            if isinstance(end, pyoxigraph.NamedNode | pyoxigraph.Literal)
        }
        assert found == {edge.object for edge in edges}
        taken += 1
    assert taken > share(1_000)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("ASK { ?x ex:p 1, 2 ; ex:q 3 }", "ASK { ?x ex:p 1 . ?x ex:p 2 . ?x ex:q 3 }"),
        ("ASK { ?x ex:p 1 ;; ex:q 3 ; . }", "ASK { ?x ex:p 1 . ?x ex:q 3 }"),
        ("ask where { ?x ex:p ?y . }", "ASK { ?x ex:p ?y }"),
        ("ASK{?x ex:p ?y.FILTER(?y>1)?y ex:q?z}", "ASK { ?x ex:p ?y . ?y ex:q ?z . FILTER(?y > 1) }"),
        ("ASK { FILTER isIRI(?y) . ?x ex:p ?y }", "ASK { ?x ex:p ?y FILTER(isIRI(?y)) }"),
        ("ASK { FILTER isURI(?y) ?x ex:p ?y }", "ASK { ?x ex:p ?y FILTER(isIRI(?y)) }"),
        ("ASK { ?x ex:p [] }", "ASK { ?x ex:p _:b0 }"),
        ("ASK { [] ex:p _:b0 }", "ASK { _:b1 ex:p _:b0 }"),
        ("ASK { ?x ex:p [ ex:q 1 ; ex:r [] ] }", "ASK { ?x ex:p _:b0 . _:b0 ex:q 1 . _:b0 ex:r _:b1 }"),
        ("ASK { [ ex:q 1 ] ex:p ?x }", "ASK { _:b0 ex:q 1 . _:b0 ex:p ?x }"),
        ("ASK { [ ex:q 1 ] }", "ASK { _:b0 ex:q 1 }"),
        ("ASK { ?x a ex:C }", "ASK { ?x rdf:type ex:C }"),
        ("ASK { $x ?p $y }", "ASK { ?x ?p ?y }"),
        ("SELECT * { ?x ?p [] }", "SELECT ?x ?p { ?x ?p [] }"),
        ('ASK { ?x ?p "a"^^xsd:string }', "ASK { ?x ?p 'a' }"),
        ('ASK { ?x ?p "a"@EN-us }', "ASK { ?x ?p '''a''' @en-us }"),
        ('ASK { ?x ?p "a\\"\\u00e9\\n" }', 'ASK { ?x ?p """a"é\n""" }'),
        ("ASK { ?x ?p -1, true }", "ASK { ?x ?p '-1'^^xsd:integer, TRUE }"),
        ("ASK { ?x ?p +1.50, .5e-3 }", f"ASK {{ ?x ?p '+1.50'^^<{XSD}decimal>, '.5e-3'^^xsd:double }}"),
        ("ASK { ?x ex:a\\.b%20 ?y }", "ASK { ?x <http://example.org/a.b%20> ?y }"),
        ("ASK { ?x ex: ?y }", "ASK { ?x <http://example.org/> ?y }"),
        ("BASE <http://example.org/a/b> ASK { <#x> <../p> <//h/q> }",
         "ASK { <http://example.org/a/b#x> ex:p <http://h/q> }"),
        ("PREFIX ex: <urn:x:> ASK { ?x ex:p ?y }", "ASK { ?x <urn:x:p> ?y }"),
        ("PREFIX rdfs: <urn:x:> ASK { ?x rdfs:p ?y }", "ASK { ?x <urn:x:p> ?y }"),
        ("ASK { ?x (a/rdfs:subClassOf*) ex:C }", "ASK { ?x rdf:type/rdfs:subClassOf* ex:C }"),
        ("ASK { # } \n ?x ?p ?y }#", "ASK { ?x ?p ?y }"),
    ],
)  # fmt: skip
def test_abbreviations(short: str, long: str) -> None:
    assert parse_filter(EX + short) == parse_filter(EX + long)
    for text in (short, long):
        STORE.query((EX + text).replace("TRUE", "true"), prefixes=PREDECLARED)


def test_a_filter_may_ask_for_nothing() -> None:
    assert parse_filter(" ASK WHERE{}") == Pattern(())
    assert parse_filter("SELECT DISTINCT * { }") == Pattern((), form=SELECT, distinct=True)
    for text in ("ASK {}", "SELECT * {}", "SELECT DISTINCT * {}"):
        assert print_pattern(parse_filter(text)) == text


def test_paths() -> None:
    checks = "?p rdfs:subPropertyOf* ex:p . ex:C rdfs:subClassOf* ?c"
    found = parse_filter(f"{EX} ASK {{ ?x ?p ?y . ?x a/rdfs:subClassOf* ?c . {checks} }}")
    assert [edge.path for edge in found.edges] == ["", ISA, BELOW_PROPERTY, BELOW]
    assert found.edges[3] == Edge("<http://example.org/C>", BELOW, "?c", BELOW)
    assert found.variables == ("?x", "?p", "?y", "?c")
    by_iri = parse_filter(EX + f"ASK {{ ?x {TYPE}/<{RDFS}subClassOf>* ex:C }}")
    assert by_iri == parse_filter("PREFIX t: <http://example.org/> ASK { ?x a/rdfs:subClassOf* t:C }")


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("?x", "?x"),
        ("?x = 1 || ?x && ?y", Or((Compare("=", "?x", whole("1")), And(("?x", "?y"))))),
        ("?x && ?y && ?p", And(("?x", "?y", "?p"))),
        ("?x && (?y && ?p)", And(("?x", And(("?y", "?p"))))),
        ("(?x || ?y) && ?p", And((Or(("?x", "?y")), "?p"))),
        ("((?x))", "?x"),
        ("!?x", Not("?x")),
        ("!?x = ?y", Compare("=", Not("?x"), "?y")),
        ("!(?x = ?y)", Not(Compare("=", "?x", "?y"))),
        ("(?x < ?y) = true", Compare("=", Compare("<", "?x", "?y"), f'"true"^^<{XSD}boolean>')),
        ("?x IN ()", Member("?x", ())),
        ("?x iN (1, ex:a, ?y, str(?y))",
         Member("?x", (whole("1"), "<http://example.org/a>", "?y", Call("STR", ("?y",))))),
        ("?x not in (1)", Not(Member("?x", (whole("1"),)))),
        ("isuri(?x)", Call("ISIRI", ("?x",))),
        ("IsLiteral(?x)", Call("ISLITERAL", ("?x",))),
        ("STRSTARTS(STR(?x), 'a')", Call("STRSTARTS", (Call("STR", ("?x",)), '"a"'))),
        ("strEnds(?x, 'a') ", Call("STRENDS", ("?x", '"a"'))),
        ("contains(?x, 'a')", Call("CONTAINS", ("?x", '"a"'))),
        ("lang(?x) = 'en'", Compare("=", Call("LANG", ("?x",)), '"en"')),
        ("datatype(?x) != xsd:date", Compare("!=", Call("DATATYPE", ("?x",)), f"<{XSD}date>")),
        ("?x >= 1.0 ", Compare(">=", "?x", f'"1.0"^^<{XSD}decimal>')),
        ("?x >= 1e0 ", Compare(">=", "?x", f'"1e0"^^<{XSD}double>')),
        ("?x>-1", Compare(">", "?x", whole("-1"))),
    ],
)  # fmt: skip
def test_expressions(text: str, expression: object) -> None:
    assert filtered(text) == expression


def test_every_word_has_its_place() -> None:
    for seed in seeds(500):
        text = f" {nearly(random.Random(seed))}#"
        words = cut(text)
        *starts, end = places(text)
        assert end == len(text)
        assert len(starts) == len(words) == len(kinds_of(words))
        assert all(text.startswith(word, start) for word, start in zip(words, starts, strict=True))
        ends = [0, *(start + len(word) for word, start in zip(words, starts, strict=True))]
        between = [text[left:right] for left, right in zip(ends, [*starts, len(text)], strict=True)]
        assert not re.search(r"[^\s]", re.sub(r"#[^\r\n]*", "", "".join(between))), between


def test_shapes_are_filled_in_anew() -> None:
    first = parse_filter("PREFIX a: <urn:a:> ASK { ?x a:p 'one'@en . FILTER(?x = 1) }")
    other = parse_filter("PREFIX b: <urn:b:> ASK { ?y b:p 'two'@fr . FILTER(?y = 1.5) }")
    assert print_pattern(first) == 'ASK { ?x <urn:a:p> "one"@en . FILTER(?x = 1) }'
    assert print_pattern(other) == 'ASK { ?y <urn:b:p> "two"@fr . FILTER(?y = 1.5) }'
    with pytest.raises(FilterError, match=r"the prefix a: is not declared"):
        parse_filter("PREFIX b: <urn:b:> ASK { ?y a:p 'two'@fr . FILTER(?y = 1.5) }")
    with pytest.raises(FilterError, match=r"looks at \?y, which no triple binds"):
        parse_filter("PREFIX b: <urn:b:> ASK { ?x b:p 'two'@fr . FILTER(?y = 1.5) }")


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"), ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"), ("g?y#s", "http://a/b/c/g?y#s"), (";x", "http://a/b/c/;x"),
        ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("..", "http://a/b/"), ("../g", "http://a/b/g"),
        ("../..", "http://a/"), ("../../../g", "http://a/g"), ("/./g", "http://a/g"), ("g.", "http://a/b/c/g."),
        ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"),
        ("g/./h", "http://a/b/c/g/h"), ("g;x=1/../y", "http://a/b/c/y"), ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/../x", "http://a/b/c/g#s/../x"), ("http:g", "http:g"),
    ],
)  # fmt: skip
def test_relative_iris(reference: str, found: str) -> None:
    """The examples of RFC 3986, section 5.4."""
    assert resolve("http://a/b/c/d;p?q", reference) == found


def test_dialects_of_records_are_not_read() -> None:
    with pytest.raises(
        SubscriptionError, match=r"dialect 'sql' is not for RDF events: filters of RDF events are 'sparql'"
    ):
        parse_filter("a = 1", "sql")


def test_the_largest_filters_are_taken() -> None:
    members = ", ".join(map(str, range(limits.MAX_LIST)))
    filters = " && ".join(["?z0 > 1"] * limits.MAX_JOINED)
    edges = " . ".join(f"?x{place % 8} ?y ?z{place % 50}" for place in range(limits.MAX_EDGES))
    nested = "(" * (limits.MAX_DEPTH - 1) + "?y" + ")" * (limits.MAX_DEPTH - 1)
    found = parse_filter(f"ASK {{ {edges} FILTER(?y IN ({members})) FILTER({filters}) }}")
    assert parse_filter(print_pattern(found)) == found
    assert found.form == ASK
    assert len(found.edges) == limits.MAX_EDGES
    assert parse_filter(f"ASK {{ ?x ?y ?z FILTER{nested} }}").filters == ("?y",)
