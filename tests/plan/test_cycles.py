"""Cycle removal: no cycle is left, and little is removed."""

from __future__ import annotations

import random
from graphlib import CycleError, TopologicalSorter
from itertools import permutations

import numpy as np
import pytest

from headgate.plan.graphs.cycles import edges_back, without_cycles
from headgate.plan.graphs.embeddings import embedding_graph
from headgate.plan.model import Embeddings
from tests.plan import reference
from tests.plan.graph_lists import edges_of, has_cycle
from tests.plan.set_views import SetViews, random_views
from tests.seeds import seeds

Edges = list[tuple[int, int]]


def graph_of(vertices: int, edges: Edges, masks: dict[tuple[int, int], int] | None = None) -> Embeddings:
    """Make a graph of pairs of a source and a target."""
    rows = [sorted(source for source, target in edges if target == vertex) for vertex in range(vertices)]
    offsets = np.cumsum([0, *map(len, rows)])
    flat = [(source, target) for target, row in enumerate(rows) for source in row]
    weights = [1 if masks is None else masks[edge] for edge in flat]
    return Embeddings(
        offsets.astype(np.int64),
        np.array([source for source, _ in flat], np.int32),
        np.array(weights, np.uint64),
    )


def random_edges(rng: random.Random, vertices: int, *, two_cycles: bool = True) -> Edges:
    """Draw edges, all directions of a pair or one at most."""
    share = rng.choice([0.1, 0.3, 0.6])
    drawn = [pair for pair in permutations(range(vertices), 2) if rng.random() < share]
    if two_cycles:
        return drawn
    rng.shuffle(drawn)
    return [edge for place, edge in enumerate(drawn) if edge[::-1] not in drawn[:place]]


def is_acyclic(vertices: int, edges: Edges) -> bool:
    """Ask the standard library."""
    sorter = TopologicalSorter({vertex: [a for a, b in edges if b == vertex] for vertex in range(vertices)})
    try:
        sorter.prepare()
    except CycleError:
        return False
    return True


def component_of(edges: Edges, vertex: int, vertices: int) -> set[int]:
    """Find the strongly connected component of a vertex by walking both ways."""

    def reached(pairs: Edges) -> set[int]:
        seen, grown = {vertex}, True
        while grown:
            more = {b for a, b in pairs if a in seen} - seen
            seen, grown = seen | more, bool(more)
        return seen

    assert vertex < vertices
    return reached(edges) & reached([(b, a) for a, b in edges])


@pytest.mark.jit_off
@pytest.mark.parametrize("seed", seeds(60))
def test_no_cycle_is_left_and_little_is_removed(seed: int) -> None:
    """What is left is a part of the graph, without cycles; what was removed is near the least possible."""
    rng = random.Random(seed)
    vertices = rng.randrange(1, 10)
    edges = random_edges(rng, vertices)
    graph = graph_of(vertices, edges)
    left, removed = without_cycles(graph)
    kept = edges_of(left)
    assert set(kept) <= set(edges)
    assert len(kept) + removed == len(edges)
    assert is_acyclic(vertices, kept)
    assert not has_cycle(left)
    assert has_cycle(graph) == (not is_acyclic(vertices, edges))
    least = reference.fewest_removed(vertices, edges)
    assert least <= removed <= 2 * least + 1
    assert (removed == 0) == (least == 0)


def test_it_is_near_the_least_on_the_whole() -> None:
    """Over many graphs, hardly more is removed than must be."""
    removed = least = 0
    for seed in seeds(200):
        rng = random.Random(seed)
        vertices = rng.randrange(4, 9)
        edges = random_edges(rng, vertices)
        removed += without_cycles(graph_of(vertices, edges))[1]
        least += reference.fewest_removed(vertices, edges)
    assert least <= removed <= 1.1 * least


@pytest.mark.jit_off
@pytest.mark.parametrize("seed", seeds(30))
def test_the_bound_of_eades_lin_and_smyth(seed: int) -> None:
    """Without cycles of two edges, at most |E| / 2 - |V| / 6 edges of a component are removed."""
    rng = random.Random(seed)
    vertices = rng.choice([5, 12, 40])
    edges = random_edges(rng, vertices, two_cycles=False)
    graph = graph_of(vertices, edges)
    targets = np.repeat(np.arange(vertices), np.diff(graph.offsets))
    back = edges_back(graph)
    gone = list(zip(graph.sources[back].tolist(), targets[back].tolist(), strict=True))
    left = set(range(vertices))
    while left:
        component = component_of(edges, min(left), vertices)
        left -= component
        inner = [edge for edge in edges if set(edge) <= component]
        removed = [edge for edge in gone if set(edge) <= component]
        if len(component) > 1:
            assert len(removed) <= len(inner) / 2 - len(component) / 6
        else:
            assert not removed
    assert all(b in component_of(edges, a, vertices) for a, b in gone)


@pytest.mark.jit_off
@pytest.mark.parametrize("seed", seeds(10))
def test_in_a_clique_benefit_decides(seed: int) -> None:
    """Any order removes the same number, so it is by the shares that views cover, then by size."""
    rng = random.Random(seed)
    vertices = rng.randrange(2, 9)
    edges = list(permutations(range(vertices), 2))
    masks = {edge: rng.choice([1, 3, 7]) for edge in edges}
    sizes = np.array([rng.choice([1.0, 2.0]) for _ in range(vertices)])
    needed = np.full(vertices, 7, np.uint64)
    left, removed = without_cycles(graph_of(vertices, edges, masks), needed=needed, sizes=sizes)
    assert removed == vertices * (vertices - 1) // 2
    benefit = [
        sum(masks[v, u].bit_count() - masks[u, v].bit_count() for u in range(vertices) if u != v)
        for v in range(vertices)
    ]
    wanted = sorted(range(vertices), key=lambda v: (-benefit[v], sizes[v], v))
    rank = {v: place for place, v in enumerate(wanted)}
    assert all(rank[a] < rank[b] for a, b in edges_of(left))


@pytest.mark.jit_off
def test_the_view_that_shows_more_feeds_the_other() -> None:
    """Two views of the same set: the one that shows all covers the other, not the reverse."""
    views = SetViews.build([([1, 2], []), ([1, 2], [1, 2])])
    for needed in (views.needed, None):
        left, removed = without_cycles(embedding_graph(views), needed=needed)
        assert removed == 1
        assert edges_of(left) == ([(1, 0)] if needed is not None else [(0, 1)])


@pytest.mark.jit_off
@pytest.mark.parametrize("seed", seeds(10))
@pytest.mark.parametrize("spread", [1, 3, 32])
def test_embeddings_with_many_views_alike(seed: int, spread: int) -> None:
    """However edges between views that are alike are spread, no cycle is left, and some source for each."""
    views = random_views(random.Random(seed), 60, 4, alike=0.6)
    graph = embedding_graph(views, spread=spread)
    left, removed = without_cycles(graph)
    assert not has_cycle(left)
    assert is_acyclic(60, edges_of(left))
    if spread == 32:
        edges = set(edges_of(graph))
        assert removed == sum(edge[::-1] in edges for edge in edges) // 2
    rows = np.diff(left.offsets)
    for first in set(views.equals.tolist()):
        members = np.flatnonzero(views.equals == first)
        if views.needed[first]:
            # All members but one can be fed by one that is alike.
            fed = [
                any(views.equals[s] == first for s in left.sources[left.offsets[m] :][: rows[m]])
                for m in members
            ]
            assert spread < 32 or sum(fed) == len(members) - 1


@pytest.mark.jit_off
def test_a_graph_without_edges() -> None:
    """Nothing is removed from nothing."""
    left, removed = without_cycles(graph_of(3, []))
    assert removed == 0
    assert edges_of(left) == []
    assert not has_cycle(graph_of(0, []))


def test_a_long_cycle_loses_one_edge() -> None:
    """A ring, far larger than any recursion would bear."""
    count = 50_000
    vertices = np.arange(count, dtype=np.int32)
    ring = Embeddings(np.arange(count + 1), np.roll(vertices, 1), np.ones(count, np.uint64))
    left, removed = without_cycles(ring)
    assert removed == 1
    assert not has_cycle(left)
