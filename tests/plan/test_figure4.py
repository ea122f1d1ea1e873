"""The examples of sections 4.2 and 4.3 of the paper, and the graphs of real views over XML."""

from __future__ import annotations

import random

import numpy as np
import pytest

from headgate.core.event import XML, Event
from headgate.plan.graphs.cycles import without_cycles
from headgate.plan.graphs.embeddings import EmbeddingFinder, embedding_graph
from headgate.plan.graphs.joining import graphs_of, join_targets
from headgate.plan.graphs.rewritability import find_rewritings
from headgate.xml.language.parse import parse_filter
from headgate.xml.views.views import XmlViews
from tests.plan import reference
from tests.plan.graph_lists import edges_of, has_cycle, inputs_of, rows_of, same
from tests.seeds import seeds
from tests.xml.random_patterns import random_document
from tests.xml.random_views import view_set

pytestmark = pytest.mark.jit_off

V1, V2, V3 = range(3)
FIGURE_4 = ("//a{val}/b{val}", "//a/b{val}", "//a{val}")
"""v1 and v2 embed in each other, v3 in both; v1 needs the value of a, which only v3 has besides."""


def views_of(*texts: str) -> XmlViews:
    """Make views of texts."""
    return XmlViews.build([parse_filter(text) for text in texts])


def test_figure_4_has_a_cycle_of_embeddings() -> None:
    """The embedding graph of the figure."""
    graph = embedding_graph(views_of(*FIGURE_4))
    assert edges_of(graph) == [(V2, V1), (V3, V1), (V1, V2), (V3, V2)]
    assert has_cycle(graph)


def test_figure_4_v3_makes_it_a_cycle_of_rewritings() -> None:
    """Without v3 the cycle of embeddings is none of rewritings; with it, v1 and v2 would feed each other."""
    alone = views_of(*FIGURE_4[:2])
    assert inputs_of(find_rewritings(alone.needed, embedding_graph(alone)).rewritings) == [[], [(V1,)]]
    views = views_of(*FIGURE_4)
    assert inputs_of(find_rewritings(views.needed, embedding_graph(views)).rewritings) == [
        [(V2, V3)],
        [(V1,)],
        [],
    ]


def test_figure_4_cycle_removal_breaks_it() -> None:
    """The edge that is worth less is removed: v1 covers all of v2, but v2 not all of v1."""
    views = views_of(*FIGURE_4)
    graph, removed = without_cycles(embedding_graph(views), needed=views.needed)
    assert removed == 1
    assert edges_of(graph) == [(V3, V1), (V1, V2), (V3, V2)]
    assert not has_cycle(graph)
    assert inputs_of(find_rewritings(views.needed, graph).rewritings) == [[], [(V1,)], []]
    assert inputs_of(graphs_of(views).rewritings) == inputs_of(
        join_targets(EmbeddingFinder(views)).searched.rewritings
    )


def test_section_4_3_interests() -> None:
    """u1 covers three attributes of v; then u2 covers one more, and together they are a rewriting."""
    views = views_of("/a{id,cont}/b{id,cont}", "/a{id}/b{id,cont}", "/a{id,cont}/b{id}")
    graph = embedding_graph(views, targets=np.zeros(1, np.int32))
    first, second = graph.masks.tolist()
    assert int(views.needed[0]).bit_count() == 4
    assert first.bit_count() == 3
    assert (second & ~first).bit_count() == 1
    assert inputs_of(find_rewritings(views.needed, graph).rewritings)[0] == [(1, 2)]


@pytest.mark.parametrize("seed", seeds(8))
def test_graphs_of_random_views(seed: int) -> None:
    """The graph is that of all pairs; rewritings are minimal covers; without cycles, one way or the other."""
    rng = random.Random(seed)
    views = XmlViews.build(view_set(rng, 60))
    graph = embedding_graph(views)
    every = reference.embedding_graph(views)
    assert same(graph, every)
    edges = set(edges_of(graph))
    mutual = {pair for pair in edges if pair[::-1] in edges}
    graphs = graphs_of(views)
    assert graphs.statistics.edges_removed == len(mutual) // 2
    assert not has_cycle(graphs.embeddings)
    joined = join_targets(EmbeddingFinder(views))
    assert joined.removed == len(mutual) // 2
    for found in (inputs_of(graphs.rewritings), inputs_of(joined.searched.rewritings)):
        assert sum(map(len, found)) > 10
        for view, sets in enumerate(found):
            row = rows_of(every)[view]
            for inputs in sets:
                some = [(source, row[source]) for source in inputs]
                assert reference.minimal_covers(int(views.needed[view]), some) == {inputs}


@pytest.mark.parametrize("seed", seeds(4))
def test_rewritings_give_what_views_give(seed: int) -> None:
    """Computed from their inputs, views are what they are from the document."""
    rng = random.Random(seed)
    views = XmlViews.build(view_set(rng, 30))
    found = inputs_of(join_targets(EmbeddingFinder(views)).searched.rewritings)
    held = 0
    for _ in range(5):
        event = Event("e", random_document(rng), content_type=XML)
        results = [views.result(view, event) for view in range(len(views))]
        for view, sets in enumerate(found):
            for inputs in sets[:4]:
                assert views.rewritten(view, inputs, [results[each] for each in inputs]) == results[view]
                held += results[view] is not None
    assert held > 10
