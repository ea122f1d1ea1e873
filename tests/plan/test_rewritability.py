"""Rewritings: minimal covers, each once, most promising first, within their bounds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from headgate.core.event import Event
from headgate.plan.graphs import rewritability as module
from headgate.plan.graphs.cycles import without_cycles
from headgate.plan.graphs.embeddings import EmbeddingFinder, embedding_graph
from headgate.plan.graphs.joining import graphs_of, join_targets
from headgate.plan.graphs.rewritability import Search, find_rewritings
from headgate.plan.model import Embeddings
from tests.plan import reference
from tests.plan.graph_lists import inputs_of
from tests.plan.set_views import SetViews, random_views
from tests.seeds import seeds

pytestmark = pytest.mark.jit_off

ALL = Search(k=100_000, quota=None, most_inputs=16, most_steps=10_000_000)


def random_row(rng: random.Random) -> tuple[int, list[tuple[int, int]]]:
    """Draw what is needed, and sources with masks, some of them 0 or beside what is needed."""
    bits = rng.choice([1, 3, 5, 8, 64])
    needed = rng.getrandbits(bits) | 1 << (bits - 1)
    row = []
    for source in range(rng.randrange(0, 11)):
        density = rng.choice([1, 2, 3])
        mask = rng.getrandbits(bits)
        for _ in range(density - 1):
            mask = mask & rng.getrandbits(bits) if rng.random() < 0.5 else mask | rng.getrandbits(bits)
        row.append((source + 1, mask))
    return needed, row


def one_row(needed: int, row: list[tuple[int, int]]) -> tuple[np.ndarray, Embeddings]:
    """Make a graph in which view 0 has all the sources."""
    views = len(row) + 1
    offsets = np.full(views + 1, len(row), np.int64)
    offsets[0] = 0
    graph = Embeddings(
        offsets,
        np.array([source for source, _ in row], np.int32),
        np.array([mask for _, mask in row], np.uint64),
    )
    return np.array([needed] + [1] * len(row), np.uint64), graph


@pytest.mark.parametrize("seed", seeds(150))
def test_all_minimal_covers_are_found_each_once(seed: int) -> None:
    """Without bounds it is what trying all sets gives."""
    needed, row = random_row(random.Random(seed))
    found = find_rewritings(*one_row(needed, row), ALL)
    covers = inputs_of(found.rewritings)[0]
    assert len(covers) == len(set(covers))
    assert set(covers) == reference.minimal_covers(needed, row)
    assert not len(found.cut_short)


@pytest.mark.parametrize("seed", seeds(150))
def test_bounds_leave_minimal_covers(seed: int) -> None:
    """Within bounds, what is found are minimal covers, as many as the bounds allow."""
    rng = random.Random(seed)
    needed, row = random_row(rng)
    search = Search(rng.choice([1, 2, 30]), rng.choice([1, 2, None]), rng.choice([1, 2, 3, 8]))
    found = find_rewritings(*one_row(needed, row), search)
    covers = inputs_of(found.rewritings)[0]
    every = reference.minimal_covers(needed, row, search.most_inputs)
    assert len(covers) == len(set(covers))
    assert set(covers) <= every
    assert bool(covers) == bool(every)
    assert len(covers) <= search.k
    if search.quota is None:
        assert len(covers) == min(search.k, len(every))
    elif len(covers) < search.k:
        # Each source that is tried first gives as many as the quota lets it, or all that are left to it.
        assert len(covers) >= min(search.quota, len(every))


@pytest.mark.parametrize("seed", seeds(20))
def test_a_view_is_rewritable_if_all_others_cover_it(seed: int) -> None:
    """Over a whole graph, with threads, and whatever the blocks."""
    rng = random.Random(seed)
    views = random_views(rng, 70, 8)
    graph, _ = without_cycles(embedding_graph(views), needed=views.needed)
    found = inputs_of(find_rewritings(views.needed, graph, threads=rng.choice([1, 2])).rewritings)
    for view in range(70):
        begin, end = graph.offsets[view], graph.offsets[view + 1]
        masks = np.bitwise_or.reduce(graph.masks[begin:end], initial=0)
        coverable = views.needed[view] != 0 and views.needed[view] & ~masks == 0
        assert bool(found[view]) == bool(coverable)
        assert len(set(found[view])) == len(found[view]) <= 30
        for inputs in found[view]:
            assert list(inputs) == sorted(set(inputs))
            assert set(inputs) <= set(graph.sources[begin:end].tolist())


@pytest.mark.parametrize("seed", seeds(5))
def test_rewritings_give_what_the_view_gives(seed: int) -> None:
    """Computed from their inputs, views are what they are from the event."""
    rng = random.Random(seed)
    views = random_views(rng, 60, 7)
    found = inputs_of(graphs_of(views).rewritings)
    assert sum(map(len, found)) > 20
    for _ in range(5):
        event = Event("e", {e: rng.random() for e in range(7) if rng.random() < 0.8})
        for view, sets in enumerate(found):
            for inputs in sets:
                results = [views.result(each, event) for each in inputs]
                assert views.rewritten(view, inputs, results) == views.result(view, event)


def test_the_most_interesting_comes_first() -> None:
    """By what is covered, then by weight; the hash decides only where both are the same."""
    row = [(1, 0b0011), (2, 0b1111), (3, 0b1100), (4, 0b1110), (5, 0b1111)]
    needed, graph = one_row(0b1111, row)
    weights = np.array([0, 1, 7, 1, 1, 3.0])
    covers = inputs_of(find_rewritings(needed, graph, weights=weights).rewritings)[0]
    assert covers == [(5,), (2,), (1, 4), (1, 3)]


def test_targets_prefer_different_sources_that_are_alike() -> None:
    """Where sources are alike, first choices are spread over them."""
    views = SetViews.build([([1], [1])] * 10 + [([1, e], [1]) for e in range(2, 32)])
    graph, _ = without_cycles(embedding_graph(views), needed=views.needed)
    only = find_rewritings(views.needed & np.uint64(2 | 2 << 32), graph, Search(k=1))
    first = [sets[0][0] for sets in inputs_of(only.rewritings)[10:]]
    assert len(set(first)) >= 6


def test_a_quota_makes_first_choices_differ() -> None:
    """At most so many rewritings begin with the same source."""
    row = [(1, 0b0111), (2, 0b0111), *((source, 0b1000) for source in range(3, 13))]
    needed, graph = one_row(0b1111, row)
    covers = inputs_of(find_rewritings(needed, graph, Search(30, 6)).rewritings)[0]
    assert [sum(first in inputs for inputs in covers) for first in (1, 2)] == [6, 6]
    covers = inputs_of(find_rewritings(needed, graph, Search(30, None)).rewritings)[0]
    assert len(covers) == 20


def test_a_search_that_is_cut_short_is_told() -> None:
    """Too few steps: fewer rewritings, and the view is named."""
    row = [(source, 1 << (source % 8)) for source in range(1, 41)]
    needed, graph = one_row(0b11111111, row)
    found = find_rewritings(needed, graph, Search(k=1000, quota=None, most_steps=50))
    assert found.cut_short.tolist() == [0]
    assert 0 < len(found.rewritings.input_offsets) - 1 < 50
    none = find_rewritings(needed, graph, Search(k=1000, quota=None, most_inputs=7))
    assert len(none.rewritings.inputs) == 0
    assert len(none.cut_short) == 0


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks give the same as large ones, in the same order."""
    views = random_views(random.Random(7), 90, 8)
    graph, _ = without_cycles(embedding_graph(views), needed=views.needed)
    whole = find_rewritings(views.needed, graph)
    monkeypatch.setattr(module, "_BLOCK", 7)
    parts = find_rewritings(views.needed, graph)
    assert inputs_of(whole.rewritings) == inputs_of(parts.rewritings)
    some = np.array([5, 80, 3], np.int32)
    few = inputs_of(find_rewritings(views.needed, graph, targets=some).rewritings)
    every = inputs_of(whole.rewritings)
    assert few == [every[view] if view in some else [] for view in range(90)]


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (Search(k=0), "k is 0 and must be 1 or more"),
        (Search(quota=0), "quota is 0 and must be 1 or more"),
        (Search(most_inputs=17), "most_inputs is 17 and must be 1 to 16"),
        (Search(most_steps=0), "most_steps is 0 and must be 1 or more"),
    ],
)
def test_bounds_out_of_range_are_refused(search: Search, message: str) -> None:
    """They say what would be right."""
    with pytest.raises(ValueError, match=message):
        find_rewritings(*one_row(1, []), search)


@pytest.mark.parametrize("seed", seeds(10))
@pytest.mark.parametrize("spread", [2, 32])
def test_joined_graphs_have_no_cycle_and_the_same_sources(
    seed: int, spread: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Target by target: as many edges are left out as cycle removal takes, and no cycle is left."""
    monkeypatch.setattr("headgate.plan.graphs.joining.BLOCK", 16)
    views = random_views(random.Random(seed), 80, 6, alike=0.4)
    joined = join_targets(EmbeddingFinder(views, spread))
    graph = embedding_graph(views, spread=spread)
    assert np.array_equal(joined.in_degrees, np.diff(graph.offsets))
    left, removed = without_cycles(graph, needed=views.needed)
    if spread == 32:
        assert joined.removed == removed
        both = [
            inputs_of(joined.searched.rewritings),
            inputs_of(find_rewritings(views.needed, left).rewritings),
        ]
        assert sum(map(bool, both[0])) > 20
        assert abs(sum(map(bool, both[0])) - sum(map(bool, both[1]))) <= 2
    # No cycle, whatever is chosen: all inputs of all rewritings together make none.
    feeds = {
        view: {i for one in sets for i in one}
        for view, sets in enumerate(inputs_of(joined.searched.rewritings))
    }
    placed: set[int] = set()
    while len(placed) < 80:
        ready = {view for view in feeds if view not in placed and feeds[view] <= placed}
        assert ready
        placed |= ready


def test_statistics_are_those_of_table_2() -> None:
    """Counted by hand on four views."""
    views = SetViews.build([([1], [1]), ([2], [2]), ([1, 2], [1, 2]), ([1, 2], [1])])
    graphs = graphs_of(views)
    assert inputs_of(graphs.rewritings) == [[], [], [(0, 1)], [(2,), (0, 1)]]
    told = graphs.statistics
    assert (told.views, told.edges, told.edges_removed, told.views_embedded_in) == (4, 6, 1, 2)
    # Inputs 2 + 1 + 2, one edge from each rewriting to its view, one from the source to each view.
    assert (told.rewritings, told.rewriting_edges, told.rewritable_views) == (3, 5 + 3 + 4, 2)
    assert told.average_inputs == pytest.approx(5 / 3)
    assert told.average_out_degree == pytest.approx(5 / 4)
    assert told.views_embedded_in / told.views == pytest.approx(0.5)
    assert told.cut_short == 0
