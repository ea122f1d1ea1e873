"""The reference against pyoxigraph: no difference that the list of habits does not explain."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headgate.rdf.events.reading import make_graph
from headgate.rdf.language.model import ISA, PLAIN, TYPE, XSD, Call, Compare, Not, literal
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.language.printing import print_expression, print_pattern
from headgate.rdf.language.values import value_of
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from tests.rdf.habits import HABITS, kept
from tests.rdf.oracle import judge, judge_expression
from tests.rdf.random_patterns import (
    BLANKS,
    CLASSES,
    COMMON,
    NODES,
    ODD,
    PROPERTIES,
    REGEXES,
    SIGNS,
    planted_pattern,
    random_graph,
    random_literal,
    random_pattern,
    random_taxonomy,
)
from tests.seeds import seeds, share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.rdf.language.model import Edge, Expression, Graph, Pattern, Term
    from tests.rdf.habits import Habit

DOCUMENT = Path(__file__).parents[2] / "docs" / "algorithms" / "rdf-oracles.md"


def judged(numbers: Iterable[int]) -> Counter[str]:
    """Compare on random pairs; counts matches, agreements, and the habits that explained the rest."""
    counts: Counter[str] = Counter()
    for seed in numbers:
        rng = random.Random(seed)
        if seed % 8 == 0:
            graph = random_graph(rng)
            pattern = planted_pattern(rng, graph)
        else:
            pattern = random_pattern(rng)
            graph = likely_graph(rng, pattern)
        taxonomy = Taxonomy.of(random_taxonomy(rng))
        verdict = judge(pattern, graph, taxonomy)
        assert verdict.explained, (
            f"seed {seed}: {print_pattern(pattern)}\n{graph.statements()}\n{taxonomy.statements()}\n"
            f"ours {sorted(verdict.ours)}\ntheirs {sorted(verdict.theirs)}\n"
            f"ours with {sorted(verdict.habits)} {sorted(verdict.habitual)}"
        )
        counts.update({"matches": bool(verdict.ours), "agreed": verdict.agreed})
        counts.update(() if verdict.agreed else verdict.habits)
    return counts


def likely_graph(rng: random.Random, pattern: Pattern) -> Graph:
    """Draw an event, mostly with triples that the pattern's edges could stand for."""
    statements = random_graph(rng).statements()
    for _ in range(rng.choice((0, 1, 1, 2))):
        chosen = {name: _chosen(rng, pattern.edges, name) for name in pattern.variables}
        for edge in pattern.edges:
            subject, name, item = (
                chosen.get(term, term) for term in (edge.subject, edge.property, edge.object)
            )
            if edge.path == ISA:
                name, item = TYPE, rng.choice(CLASSES)
            fits = edge.path in {PLAIN, ISA} and not subject.startswith('"') and name.startswith("<")
            if fits and rng.random() < 0.9:
                statements.append((subject, name, item))
    return make_graph(statements)


def _chosen(rng: random.Random, edges: Iterable[Edge], name: Term) -> Term:
    if any(edge.property == name for edge in edges):
        return rng.choice(PROPERTIES)
    if any(edge.subject == name for edge in edges) or rng.random() < 0.3:
        return rng.choice((*NODES, *BLANKS))
    return random_literal(rng)


def test_random_pairs() -> None:
    counts = judged(seeds(2000))
    assert counts["matches"] > share(900)
    assert counts["agreed"] > share(1500)


@pytest.mark.nightly
def test_many_random_pairs() -> None:
    counts = judged(range(10_000, 30_000))
    assert counts["matches"] > 9000
    assert counts["agreed"] > 15_000
    assert len([habit for habit in HABITS if counts[habit.name]]) >= 6, "the pairs should show most habits"


EDGES = {
    "float": "0.1 3.4028235e38 3.4028235677973366e38 3.40282356779733e38 1e-46 7.006492321624085e-46 "
    "16777219 +INF 1.00000017881393432617187499 1.00000017881393432617187500001",
    "double": "1e400 -1e400 1e-400 0.1 4.9e-324 1.7976931348623159e308 +INF .5 5. inf nan +NaN",
    "decimal": "0.1 0.10 -.5 +5. 00012.3400 9223372036854775808 123456789012345678901.5 . 1e1 INF",
    "integer": "9223372036854775807 -9223372036854775808 9223372036854775808 16777217 1.0 - ٣",
    "dateTime": "2001-01-01T00:00:00-05:00 2000-02-29T12:00:00 1900-02-29T12:00:00 0000-01-01T00:00:00Z "
    "-0001-12-31T23:59:59.999 10000-01-01T00:00:00Z 2001-01-01T14:00:00 2001-01-01T14:00:00.001 "
    "2001-01-01T24:00:01Z 2001-1-1T00:00:00 2001-01-01T00:00:00+14:00 2001-01-01T00:00:00+14:01 "
    "2001-01-01t00:00:00Z 2001-12-31T23:59:60Z 2001-01-01T00:00 -0000-01-01T00:00:00Z 02001-01-01T00:00:00Z",
    "dateTimeStamp": "2001-01-01T00:00:00Z",
    "date": "2001-01-02 2001-01-01+14:00 2001-01-01-14:00 2000-12-31-13:00 2000-02-29 -0004-02-29 "
    "-0001-02-29 10000-01-01 2001-1-1",
    "boolean": "TRUE 01",
    "byte": "127 128 -129",
    "positiveInteger": "0 1",
    "unsignedLong": "18446744073709551615",
}
TERMS = (
    *COMMON,
    *ODD,
    *(literal(text, f"{XSD}{name}") for name, texts in EDGES.items() for text in texts.split()),
    *NODES[:2],
)


def expressions() -> Iterable[Expression]:
    """Yield all comparisons of the terms, and all functions of them."""
    for left, right in product(TERMS, TERMS):
        yield from (Compare(sign, left, right) for sign in SIGNS)
    for term in TERMS:
        yield Not(term)
        for name in ("STR", "LANG", "DATATYPE", "LCASE", "ISIRI", "ISLITERAL"):
            yield Call(name, (term,))
        for other in TERMS[:40]:
            for name in ("STRSTARTS", "STRENDS", "CONTAINS"):
                yield Call(name, (term, other))
        for pattern in REGEXES:
            yield Call("REGEX", (term, literal(pattern)))
            yield Call("REGEX", (term, literal(pattern), literal("i")))


def agreed(asked: Iterable[Expression]) -> int:
    """Compare the values of expressions, where errors are told from false; counts those that agree."""
    count = 0
    for expression in asked:
        verdict = judge_expression(expression)
        assert verdict.explained, (print_expression(expression), verdict)
        count += verdict.agreed
    return count


def test_comparisons_and_functions() -> None:
    assert agreed(random.Random(1).sample(list(expressions()), share(20_000))) > share(12_000)


@pytest.mark.nightly
def test_every_comparison_and_function() -> None:
    assert agreed(expressions()) > 80_000


def test_a_term_that_is_kept_by_value_has_the_same_value() -> None:
    for term in TERMS:
        if (value := value_of(term)) is not None:
            other = value_of(kept(term))
            assert other == value or repr(other) == repr(value), term


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.name)
def test_the_oracle_still_has_its_habits(habit: Habit) -> None:
    pattern = parse_filter(f"SELECT ?o WHERE {{ <urn:s> <urn:p> ?o FILTER({habit.filter}) }}")
    verdict = judge(pattern, make_graph([("<urn:s>", "<urn:p>", habit.object)]), Taxonomy())
    assert not verdict.agreed
    assert verdict.explained
    assert verdict.habits == {habit.name}


def test_the_habits_are_written_down() -> None:
    text = DOCUMENT.read_text()
    for habit in HABITS:
        assert f"| {habit.name} |" in text


def test_a_difference_without_a_habit_is_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = parse_filter("SELECT ?o WHERE { <urn:s> <urn:p> ?o FILTER(?o > false) }")
    graph = make_graph([("<urn:s>", "<urn:p>", literal("true", f"{XSD}boolean"))])
    monkeypatch.setattr("tests.rdf.oracle.HABITS", ())
    assert not judge(pattern, graph, Taxonomy()).explained
