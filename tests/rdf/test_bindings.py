"""Bindings: those of the reference, for the variables that are asked for, up to a limit."""

from __future__ import annotations

import random
import time

import pytest

from headgate.rdf.events.reading import make_graph
from headgate.rdf.index.bindings import Bindings, Facts, PreparedPattern
from headgate.rdf.language.model import SELECT, XSD, Compare, Edge, Graph, Options, Pattern, literal
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from tests.rdf.random_patterns import planted_pattern, random_graph, random_pattern, random_taxonomy
from tests.rdf.reference import solutions
from tests.seeds import seeds, share

OPTIONS = (Options(), Options(injective=True), Options(coerce=True), Options(coerce=True, injective=True))


def bindings(
    pattern: Pattern, graph: Graph, taxonomy: Taxonomy | None, options: Options, limit: int
) -> Bindings:
    """List the bindings of a pattern in a graph."""
    return PreparedPattern(pattern).bindings(Facts(graph, taxonomy), options, limit)


def compared(seed: int) -> bool:
    """Compare with the reference on a random pair, for several limits; tells whether it matched."""
    rng = random.Random(seed)
    graph = random_graph(rng)
    pattern = planted_pattern(rng, graph) if seed % 3 == 0 else random_pattern(rng)
    taxonomy = Taxonomy.of(random_taxonomy(rng)) if seed % 5 else None
    options = OPTIONS[seed % 4]
    expected = solutions(pattern, graph, taxonomy, options)
    for limit in (10**9, 1, 2, 5):
        found = bindings(pattern, graph, taxonomy, options, limit)
        rows = {tuple(each[name] for name in found.names) for each in expected}
        assert set(found.rows) <= rows
        assert len(found.rows) == len(set(found.rows)) == min(limit, len(rows))
        assert found.complete is (len(rows) <= limit)
    return bool(expected)


def test_random_pairs() -> None:
    assert sum(compared(seed) for seed in seeds(900)) > share(250)


@pytest.mark.nightly
def test_many_random_pairs() -> None:
    assert sum(compared(seed) for seed in range(2000, 8000)) > 2000


def test_what_is_asked_for() -> None:
    graph = make_graph([("<urn:x>", "<urn:p>", "<urn:y>"), ("<urn:x>", "<urn:p>", "<urn:z>")])
    found = bindings(parse_filter("SELECT ?a { ?a <urn:p> ?b }"), graph, None, Options(), 10)
    assert found == (("?a",), (("<urn:x>",),), True)
    found = bindings(parse_filter("SELECT ?b ?a { ?a <urn:p> ?b }"), graph, None, Options(), 10)
    assert found == (("?b", "?a"), (("<urn:y>", "<urn:x>"), ("<urn:z>", "<urn:x>")), True)
    # An ASK names none, so all are told that have a name.
    found = bindings(parse_filter("ASK { ?a ?p [] }"), graph, None, Options(), 10)
    assert found == (("?a", "?p"), (("<urn:x>", "<urn:p>"),), True)
    found = bindings(parse_filter("ASK { [] <urn:p> [] }"), graph, None, Options(), 10)
    assert found == ((), ((),), True)
    found = bindings(parse_filter("ASK { [] <urn:q> [] }"), graph, None, Options(), 10)
    assert found == ((), (), True)


def test_limits() -> None:
    graph = make_graph([("<urn:x>", "<urn:p>", f"<urn:{number}>") for number in range(5)])
    pattern = parse_filter("SELECT * { ?a <urn:p> ?b }")
    assert bindings(pattern, graph, None, Options(), 5).complete
    assert not bindings(pattern, graph, None, Options(), 4).complete
    assert bindings(pattern, graph, None, Options(), 0) == (("?a", "?b"), (), False)


def large_event() -> list[tuple[str, str, str]]:
    rng = random.Random(1)
    found = []
    for _ in range(9_900):
        end = f"<urn:n{rng.randrange(2000)}>" if rng.random() < 0.5 else number(rng.randrange(100))
        found.append((f"<urn:n{rng.randrange(2000)}>", f"<urn:p{rng.randrange(5)}>", end))
    return found + [("<urn:hub>", "<urn:p0>", number(each)) for each in range(100)]


def number(value: int) -> str:
    return literal(str(value), f"{XSD}integer")


def test_large_events_and_long_patterns() -> None:
    """Each of these would take for ever if parts that share no variable were tried in all combinations."""
    graph = make_graph(large_event())
    assert len(graph.triples) > 9_800
    star = tuple(Edge("?x", "<urn:p0>", f"?y{each}") for each in range(10))
    above = tuple(Compare(">", f"?y{each}", number(200)) for each in range(10))
    chain = tuple(Edge(f"?x{each}", f"<urn:p{each % 5}>", f"?x{each + 1}") for each in range(10))
    apart = tuple(Edge(f"?s{each}", f"?p{each}", f"?o{each}") for each in range(10))
    started = time.perf_counter()
    assert len(bindings(Pattern(star, (), SELECT, ("?x",)), graph, None, Options(), 100).rows) == 100
    assert bindings(Pattern(star, above[-1:], SELECT, ("?x",)), graph, None, Options(), 100).rows == ()
    assert len(bindings(Pattern(star), graph, None, Options(), 1000).rows) == 1000
    assert bindings(Pattern(chain), graph, None, Options(), 1000).complete
    assert len(bindings(Pattern(apart), graph, None, Options(), 1000).rows) == 1000
    assert len(bindings(Pattern(apart), graph, None, Options(injective=True), 10).rows) == 10
    assert time.perf_counter() - started < 20
