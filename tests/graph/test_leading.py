"""Who leads to a subscription that holds: marked from below, and no answer depends on it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate import Edge, Event, Node, Subscription
from headgate.graph.arrays import bits_of
from headgate.graph.index import GraphIndex
from headgate.graph.walk.hits import BY_FILTERS
from headgate.graph.walk.leading import MOST, ParentLists, above, mark, unmark
from headgate.records.index.index import RecordIndex
from tests.graph.random_graphs import SHAPES
from tests.graph.test_batches import table
from tests.graph.test_ranked import drawn_graph
from tests.graph.test_ways import best_one_by_one, by, rows_of, was_asked

if TYPE_CHECKING:
    from headgate.graph.arrays import GraphArrays

pytestmark = pytest.mark.jit_off


def parents_of(g: GraphArrays) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {p: set() for p in range(g.vertices - g.roots)}
    for v in range(g.roots, g.vertices):
        for child in g.child[g.child_start[v] : g.child_start[v + 1]].tolist():
            found[child - g.roots].add(v - g.roots)
    return found


def climbed(parents: dict[int, set[int]], below: set[int], holding: set[int]) -> set[int]:
    """Name whoever leads to some positions by such as hold: the slow twin."""
    found = set(below)
    while more := {q for p in found for q in parents[p] & holding} - found:
        found |= more
    return found


def positions(bits: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")).tolist())


@pytest.mark.parametrize("shape", SHAPES)
def test_marks_are_those_of_the_slow_twin(shape: str) -> None:
    rng = random.Random(f"leading {shape}")
    some = False
    for _ in range(8):
        drawn = drawn_graph(rng, shape)
        index = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex)
        g = index.view.arrays
        up, parents = above(g), parents_of(g)
        turned = {p: set(up.parent[up.start[p] : up.start[p + 1]].tolist()) for p in parents}
        assert turned == parents
        free, serving = positions(g.open), positions(g.serving)
        assert positions(up.always) == climbed(parents, free & serving, set(parents))
        hit = {p for p in parents if p not in free and rng.random() < 0.4}
        leads, marked = np.zeros(g.words, np.uint64), np.zeros(len(parents), np.int64)
        given = bits_of(np.array(sorted(hit), np.int64), g.words)
        order = np.array(rng.sample(sorted(hit), len(hit)), np.int64)
        count = mark(up, g.open, given, g.serving, order, leads, marked)
        expected = climbed(parents, hit & serving, hit | free)
        assert positions(leads) == expected == set(marked[:count].tolist())
        some |= bool(expected - (hit & serving))
        unmark(leads, marked, count)
        assert not leads.any()
    assert some


def test_a_crowd_above_is_not_marked() -> None:
    up = ParentLists(np.array([0, MOST + 1, MOST + 1]), np.zeros(MOST + 1, np.int32), np.zeros(1, np.uint64))
    leads, marked, one = np.zeros(1, np.uint64), np.zeros(2, np.int64), np.ones(1, np.uint64)
    assert mark(up, one, one, one, np.array([0]), leads, marked) == -1
    assert not leads.any()


def test_events_whose_marks_would_be_too_many_are_answered_too() -> None:
    crowd = MOST + 10
    nodes = [Node("pub"), Node("in"), Node("out", "age > 3")]
    nodes += [Node(f"n{each}", None if each % 2 else "age > 1") for each in range(crowd)]
    edges = [Edge("pub", "in"), Edge("in", "out", cost=5.0)]
    edges += [Edge("in", f"n{each}", cost=1.0) for each in range(crowd)]
    edges += [Edge(f"n{each}", "out", cost=float(each)) for each in range(crowd)]
    subscriptions = [
        Subscription("all", "age > 3", node="out", score=9.0),
        Subscription("old", "age > 60", node="out", score=12.0),
        Subscription("near", "age > 4", node="n7", score=1.0),
    ]
    index = by(GraphIndex.build(nodes, edges, subscriptions, room=RecordIndex), BY_FILTERS)
    events = [Event(str(age), {"age": age}, source="pub") for age in (1, 3, 5, 61, 2, 99)]
    expected = best_one_by_one(index, events, 3)
    assert {found for _, found, *_ in expected} == {"all", "old", "near"}
    assert rows_of(index.top_batch(table(events), 3)) == expected
    assert was_asked(index)
