"""Views over RDF: how patterns map to patterns, and views computed from others."""

from __future__ import annotations

import random
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate.core.event import N_TRIPLES, Event
from headgate.errors import PlanError
from headgate.rdf.language.model import Edge, Pattern
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.language.rewrite import substitute
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from headgate.rdf.views.views import RdfViews
from tests.rdf.random_patterns import random_graph, random_taxonomy
from tests.rdf.random_views import view_set
from tests.rdf.reference import solutions
from tests.seeds import seeds, share

if TYPE_CHECKING:
    from numpy.typing import NDArray


def pairs_of(count: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """List all pairs of views."""
    sources, targets = np.divmod(np.arange(count * count, dtype=np.int32), np.int32(count))
    return sources, targets


def covered(source: Pattern, target: Pattern) -> set[int] | None:
    """List the edges of a target that are the image of one of the source's; None if there is no mapping."""
    terms = dict.fromkeys(
        term for edge in target.edges for term in (edge.subject, edge.property, edge.object)
    )
    found: set[int] | None = None
    for images in product(terms, repeat=len(source.variables)):
        given = dict(zip(source.variables, images, strict=True))
        edges = [
            Edge(
                given.get(edge.subject, edge.subject),
                given.get(edge.property, edge.property),
                given.get(edge.object, edge.object),
                edge.path,
            )
            for edge in source.edges
        ]
        filters = {substitute(each, given) for each in source.filters}
        if set(edges) <= set(target.edges) and filters <= set(target.filters):
            found = (found or set()) | {target.edges.index(edge) for edge in edges}
    return found


@pytest.mark.parametrize("seed", seeds(25))
def test_coverage_is_what_the_mappings_cover_one_by_one(seed: int) -> None:
    """The search agrees with trying everything, the filters lose nothing, and embedding is a preorder."""
    rng = random.Random(seed)
    patterns = [each for each in view_set(rng, random_graph(rng), 24) if len(each.variables) <= 3][:12]
    views = RdfViews.build(patterns)
    size = len(views)
    sources, targets = pairs_of(size)
    embeds, masks = views.coverage(sources, targets)
    for source, target, embed, mask in zip(
        sources.tolist(), targets.tolist(), embeds.tolist(), masks.tolist(), strict=True
    ):
        expected = covered(views.patterns[source], views.patterns[target])
        if not views.needed[source] or not views.needed[target]:
            expected = None
        assert ({bit for bit in range(64) if mask >> bit & 1} if embed else None) == expected
        if embed:
            labels = [
                set(views.labels[views.label_offsets[v] : views.label_offsets[v + 1]].tolist())
                for v in (source, target)
            ]
            assert labels[0] <= labels[1]
            for word in (0, 1):
                assert not int(views.demands[2 * source + word]) & ~int(views.offers[2 * target + word])
    matrix = embeds.reshape(size, size)
    assert np.array_equal(matrix.diagonal(), views.needed != 0)
    assert np.all(matrix[matrix @ matrix])


def _compare(numbers: range) -> tuple[int, int, int]:
    made = given = joined = 0
    for seed in numbers:
        rng = random.Random(seed)
        graph = random_graph(rng)
        taxonomy = Taxonomy.of(random_taxonomy(rng)) if rng.random() < 0.5 else None
        views = RdfViews.build(view_set(rng, graph, 16), taxonomy)
        size = len(views)
        events = [
            Event(1, graph, content_type=N_TRIPLES),
            Event(2, random_graph(rng), content_type=N_TRIPLES),
        ]
        direct = [[views.result(view, event) for view in range(size)] for event in events]
        embeds, masks = (each.reshape(size, size) for each in views.coverage(*pairs_of(size)))
        for view in range(size):
            useful = [each for each in range(size) if each != view and embeds[each, view]]
            for number in (1, 2, 3):
                chosen = list(combinations(useful, number))
                for inputs in rng.sample(chosen, min(len(chosen), 12)):
                    if np.bitwise_or.reduce(masks[list(inputs), view]) != views.needed[view]:
                        continue
                    made += 1
                    joined += number > 1
                    plan = views.rewriting(view, inputs)
                    for results in direct:
                        if max(len(results[each].rows) for each in inputs) > 200:
                            continue
                        found = plan.run([results[each] for each in inputs])
                        assert found == results[view], (seed, view, inputs)
                        given += bool(found.rows)
    return made, given, joined


def test_rewritings_give_what_the_event_gives() -> None:
    """No difference in any rewriting of random views on random events."""
    made, given, joined = _compare(seeds(8))
    assert made > share(1000)
    assert given > share(500)
    assert joined > share(300)


@pytest.mark.nightly
def test_many_rewritings_give_what_the_event_gives() -> None:
    """The same at length."""
    made, given, joined = _compare(range(1000, 1080))
    assert made > 10_000
    assert given > 5000
    assert joined > 3000


@pytest.mark.parametrize("seed", seeds(20))
def test_results_are_all_bindings_of_all_variables(seed: int) -> None:
    """With those of blank nodes, as the definition lists them."""
    rng = random.Random(seed)
    graph = random_graph(rng)
    views = RdfViews.build([each for each in view_set(rng, graph, 12) if len(each.edges) <= 3])
    for view, pattern in enumerate(views.patterns):
        found = views.result(view, Event(1, graph, content_type=N_TRIPLES))
        expected = {tuple(each[name] for name in found.names) for each in solutions(pattern, graph)}
        assert found.rows == expected
        assert set(found.names) == set(pattern.variables)


def _views(*texts: str) -> RdfViews:
    return RdfViews.build([parse_filter(text) for text in texts])


RULES = [
    pytest.param("ASK { ?s <urn:p> ?o FILTER(?o > 5) }", "ASK { ?s <urn:p> ?o }", False, id="a filter more"),
    pytest.param(
        "ASK { ?s <urn:p> ?o }", "ASK { ?s <urn:p> ?o FILTER(?o > 5) }", True, id="a filter is tested again"
    ),
    pytest.param(
        "ASK { ?a <urn:p> ?b FILTER(?b > 5) }", "ASK { ?s <urn:p> ?o FILTER(?o > 5 && ?s != ?o) }", True,
        id="a filter under other names",
    ),
    pytest.param("ASK { ?s <urn:p> <urn:c> }", "ASK { ?s <urn:p> ?o }", False, id="a constant is too few"),
    pytest.param("ASK { ?s <urn:p> ?o }", "ASK { ?s <urn:p> <urn:c> }", True, id="a variable for a constant"),
    pytest.param("ASK { ?s <urn:p> ?s }", "ASK { ?s <urn:p> ?o }", False, id="one variable for two"),
    pytest.param("ASK { ?s <urn:p> ?o }", "ASK { ?s <urn:p> ?s }", True, id="two variables for one"),
    pytest.param("ASK { ?s ?p ?o }", "ASK { ?s a/rdfs:subClassOf* <urn:c> }", False, id="no path"),
    pytest.param(
        "ASK { ?s a/rdfs:subClassOf* ?o }", "ASK { ?s a/rdfs:subClassOf* <urn:c> }", True, id="the same path"
    ),
    pytest.param("ASK { ?s <urn:p> ?o }", "ASK { <urn:a> <urn:p> <urn:b> }", True, id="no variables left"),
    pytest.param(
        "ASK { ?a <urn:p> ?b }", "ASK { ?x <urn:p> ?y . ?y <urn:p> ?z }", True, id="joined with itself"
    ),
    pytest.param("ASK { ?s <urn:p> [] }", "ASK { ?s <urn:p> ?o }", True, id="a blank node is a variable"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "expected"), RULES)
def test_what_can_be_computed_from_what(source: str, target: str, expected: bool) -> None:
    """Rules of mappings, each by itself; what can be computed is right."""
    views = _views(source, target)
    embeds, masks = views.coverage(np.array([0], np.int32), np.array([1], np.int32))
    assert bool(embeds[0]) == expected
    assert (masks[0] == views.needed[1]) == expected
    event = Event(
        1,
        """@prefix : <urn:> . :a :p :b , :c , 7 . :b :p 3 , :a . :c :p :c . :b a :c .""",
        content_type="turtle",
    )
    if expected:
        direct = views.result(1, event)
        assert direct.rows
        assert views.rewritten(1, [0], [views.result(0, event)]) == direct
    else:
        with pytest.raises(PlanError, match="does not embed"):
            views.plan_of(1, [0])


def test_a_plan_can_be_read_and_what_is_missing_is_named() -> None:
    """Lines say what stands for what, what is joined, and what is tested."""
    views = _views(
        "ASK { ?a <urn:p> ?b }",
        "ASK { ?x <urn:q> ?y FILTER(?y > 5) }",
        "ASK { ?s <urn:p> <urn:c> ; <urn:q> ?v FILTER(?v > 5 && ?v < 9) }",
    )
    assert views.plan_of(2, [0, 1]) == [
        "take view 0 with ?a as ?s, ?b as <urn:c>",
        "take view 1 with ?x as ?s, ?y as ?v",
        "join them by their common variables",
        "filter ?v < 9",
    ]
    with pytest.raises(PlanError, match=r"nothing covers \?s <urn:q> \?v"):
        views.plan_of(2, [0])


def test_patterns_without_edges_and_with_too_many() -> None:
    """They take no part."""
    many = tuple(Edge("?s", f"<urn:p{number}>", f"?o{number}") for number in range(65))
    views = RdfViews.build([Pattern(()), Pattern(many), Pattern(many[:1])])
    assert views.needed.tolist() == [0, 0, 1]
    assert views.coverage(*pairs_of(3))[0].reshape(3, 3).tolist() == [
        [False] * 3,
        [False] * 3,
        [False, False, True],
    ]
    with pytest.raises(PlanError, match="view 1 has 65 edges"):
        views.plan_of(1, [2])
    with pytest.raises(PlanError, match="does not embed"):
        views.plan_of(2, [0])


def test_a_search_ends() -> None:
    """Where a mapping is very hard to find it counts as none, in little time."""
    clique = " . ".join(f"?x{i} ?p ?x{j}" for i in range(9) for j in range(i))
    cycle = " . ".join(f"?y{i} ?q ?y{(i + step) % 13}" for i in range(13) for step in (1, 3, 4))
    views = _views(f"ASK {{ {clique} }}", f"ASK {{ {cycle} }}")
    embeds, _ = views.coverage(np.array([0, 1, 0], np.int32), np.array([1, 0, 0], np.int32))
    assert embeds.tolist() == [False, False, True]


def test_size_counts_rows_and_terms() -> None:
    """A row is its terms."""
    views = _views("ASK { ?s <urn:p> ?o }")
    found = views.result(0, Event(1, '<urn:a> <urn:p> "é" .', content_type="nt"))
    assert views.size(found) == (1, len("<urn:a>") + 1 + 4 + 1)
