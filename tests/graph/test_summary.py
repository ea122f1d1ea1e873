"""Layers, components, groups and the path of an event, against plain Python over the graph as given."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from headgate import Edge, Event, Node, Subscription
from headgate.errors import EventError, GraphError
from headgate.graph import summary
from headgate.graph.index import GraphIndex
from headgate.graph.summary import (
    ANYWHERE,
    ASIDE,
    BEFORE,
    BEHIND,
    CORE,
    HANGING,
    INTERMEDIARY,
    ISOLATED,
    PUBLISHER,
    SEVERAL,
    SUBSCRIBER,
)
from headgate.records.index.index import RecordIndex
from tests.graph.random_graphs import SHAPES, draw_event, draw_graph, holds
from tests.graph.reference import passes, reach_nodes, reach_subscriptions
from tests.seeds import seeds

if TYPE_CHECKING:
    from headgate.graph.changes.view import View
    from tests.graph.random_graphs import Drawn

CASES = [(shape, seed) for shape in SHAPES for seed in seeds(8)]


@dataclass
class Plain:
    """A graph as sets of names."""

    points: set[str]
    edges: set[tuple[str, str]]

    def after(self, start: str) -> set[str]:
        """Find what a point leads to, in any number of steps but none."""
        found: set[str] = set()
        front = [start]
        while front:
            here = front.pop()
            new = {target for source, target in self.edges if source == here} - found
            found |= new
            front += new
        return found


def make(shape: str, seed: int) -> tuple[Drawn, View, Plain]:
    """Draw a graph and index it."""
    rng = random.Random(f"summary {shape}{seed}")
    drawn = draw_graph(rng, shape, rng.choice((1, 2, 6, 20, 60)))
    view = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex).view
    edges = {(str(edge.source), str(edge.target)) for edge in drawn.edges}
    edges |= {(str(each.node), str(each.id)) for each in drawn.subscriptions}
    points = {str(node.id) for node in drawn.nodes} | {str(each.id) for each in drawn.subscriptions}
    return drawn, view, Plain(points, edges)


@pytest.mark.parametrize(("shape", "seed"), CASES)
def test_the_outline(shape: str, seed: int) -> None:
    drawn, view, plain = make(shape, seed)
    found = summary.outline(view)
    names = [view.name(vertex) for vertex in found.vertex.tolist()]
    assert sorted(names) == sorted(plain.points)
    ends = [(names[a], names[b]) for a, b in zip(found.source, found.target, strict=True)]
    assert Counter(ends) == Counter(plain.edges)
    filtered = {(str(edge.source), str(edge.target)) for edge in drawn.edges if edge.filter is not None}
    assert {end for end, via in zip(ends, found.via, strict=True) if via >= 0} == filtered
    assert (found.nodes, found.edges) == (len(drawn.nodes), len(drawn.edges))
    kinds = {str(node.id): node.kind for node in drawn.nodes}
    for name, kind, layer in zip(names, found.kind.tolist(), found.layer.tolist(), strict=True):
        assert kinds.get(name) == (None if kind == HANGING else found.kinds[kind])
        entered, left = any(b == name for _, b in plain.edges), any(a == name for a, _ in plain.edges)
        layers = {(False, True): PUBLISHER, (True, True): INTERMEDIARY, (True, False): SUBSCRIBER}
        assert layer == layers.get((entered, left), ISOLATED)


@pytest.mark.parametrize(("shape", "seed"), CASES)
def test_components_and_sides(shape: str, seed: int) -> None:
    _, view, plain = make(shape, seed)
    found = summary.outline(view)
    names = [view.name(vertex) for vertex in found.vertex.tolist()]
    after = {name: plain.after(name) for name in names}
    component = {
        name: frozenset({name, *(each for each in after[name] if name in after[each])}) for name in names
    }
    by_number = defaultdict(set)
    for name, number in zip(names, found.component.tolist(), strict=True):
        by_number[number].add(name)
    assert {frozenset(each) for each in by_number.values()} == {*component.values()}
    nodes = {component[name] for name, kind in zip(names, found.kind, strict=True) if kind != HANGING}
    assert found.components == len(nodes)
    assert sorted(found.sizes[found.sizes > 0].tolist()) == sorted(map(len, nodes))

    cores = {component[name] for name, side in zip(names, found.side, strict=True) if side == CORE}
    largest = max(map(len, component.values()))
    assert len(cores) == (largest > 1)
    for name, side, layer in zip(names, found.side.tolist(), found.layer.tolist(), strict=True):
        if not cores or layer != INTERMEDIARY:
            assert side == ANYWHERE
            continue
        (core,) = cores
        assert len(core) == largest
        leads, led = bool(after[name] & core), any(name in after[each] for each in core)
        sides = {(True, True): CORE, (True, False): BEFORE, (False, True): BEHIND, (False, False): ASIDE}
        assert side == sides[leads, led]


@pytest.mark.parametrize(("shape", "seed"), CASES)
def test_groups_and_degrees(shape: str, seed: int) -> None:
    _, view, _ = make(shape, seed)
    found = summary.outline(view)
    groups = summary.group(found)
    of = groups.of.tolist()
    pairs = Counter((of[a], of[b]) for a, b in zip(found.source, found.target, strict=True))
    assert groups.edges == dict(pairs)
    assert Counter(of) == Counter({n: each.points for n, each in enumerate(groups.groups)})
    for number, each in enumerate(groups.groups):
        own = [point for point in range(len(of)) if of[point] == number]
        assert {int(found.layer[point]) for point in own} == {each.layer}
        assert {int(found.side[point]) for point in own} == {each.side}
        kinds = {int(found.kind[point]) for point in own}
        assert kinds == {each.kind} if each.kind != SEVERAL else len(kinds) > 1
        components = [int(found.component[point]) for point in own]
        assert each.components == len({*components})
        assert each.largest == max(found.sizes[components])
        assert {found.sizes[number] > 1 for number in components} == {each.cyclic}
    rows = summary.degrees(found)
    assert sum(row.points for row in rows) == len(of)
    assert round(sum(row.points * row.mean_in for row in rows)) == len(found.source)
    assert round(sum(row.points * row.mean_out for row in rows)) == len(found.source)
    most = max(Counter(found.target.tolist()).values(), default=0)
    assert max(row.most_in for row in rows) == most


@pytest.mark.parametrize(("shape", "seed"), CASES)
def test_the_path_of_an_event(shape: str, seed: int) -> None:
    drawn, view, _ = make(shape, seed)
    found = summary.outline(view)
    names = [view.name(vertex) for vertex in found.vertex.tolist()]
    rng = random.Random(seed)
    for number in range(4):
        event = draw_event(rng, str(rng.choice(drawn.nodes).id), number)
        source = str(event.source)

        def true(text: str, _: str, event: Event = event) -> bool:
            return holds(event, text)

        nodes = {str(each) for each in reach_nodes(drawn.nodes, drawn.edges, source, true)}
        served = reach_subscriptions(drawn.nodes, drawn.edges, drawn.subscriptions, source, true)
        hanging = {str(each.id) for each in drawn.subscriptions}
        reached = nodes | {str(each) for each in served} & hanging
        there = nodes | {source}
        edges = {(str(edge.source), str(edge.target)): passes(edge, true) for edge in drawn.edges}
        edges |= {(str(each.node), str(each.id)): True for each in drawn.subscriptions}
        begun = {edge for edge in edges if edge[0] in there}

        journey = summary.follow(view, found, event)
        ends = [(names[a], names[b]) for a, b in zip(found.source, found.target, strict=True)]

        def chosen(flags: object, of: list[str] | list[tuple[str, str]]) -> set[object]:
            return {each for each, flag in zip(of, flags, strict=True) if flag}  # type: ignore[call-overload]

        assert names[journey.source] == source
        assert chosen(journey.reached, names) == reached
        assert chosen(journey.stopped, names) == {b for a, b in begun if edges[a, b] and b not in reached}
        assert chosen(journey.travelled, ends) == {(a, b) for a, b in begun if edges[a, b] and b in reached}
        assert chosen(journey.tried, ends) == {
            (a, b) for a, b in begun if not edges[a, b] or b not in reached
        }
        assert chosen(journey.refused, ends) == {edge for edge in begun if not edges[edge]}
        assert {view.subscription_id(place) for place in journey.served.tolist()} == served
        groups = summary.group(found)
        counted = summary.between(found, groups, journey.travelled)
        assert sum(counted.values()) == journey.travelled.sum()
        assert {*counted} <= {*groups.edges}


def test_few_groups_for_many_kinds() -> None:
    nodes = [Node(i, kind=f"kind {i % 90}") for i in range(1000)]
    rng = random.Random(5)
    edges = {(rng.randrange(1000), rng.randrange(1000)) for _ in range(1100)}
    view = GraphIndex.build(
        nodes,
        [Edge(a, b) for a, b in edges],
        [Subscription(i, "a = 1", node=i) for i in range(20)],
        room=RecordIndex,
    ).view
    groups = summary.group(summary.outline(view))
    assert len(groups.groups) <= 12
    kinds = {each.kind for each in groups.groups}
    assert SEVERAL in kinds
    assert [each.points for each in groups.groups if each.kind == HANGING] == [20]


def test_the_empty_graph() -> None:
    view = GraphIndex.build([], [], room=RecordIndex).view
    found = summary.outline(view)
    assert (found.nodes, found.edges, found.components) == (0, 0, 0)
    assert summary.group(found).groups == ()
    assert summary.degrees(found) == []
    with pytest.raises(EventError, match="is not a node of the graph"):
        summary.follow(view, found, Event(1, {}, source="a"))


def test_a_graph_that_changed_is_refused() -> None:
    index = GraphIndex.build([Node("a"), Node("b")], [], room=RecordIndex)
    index.add_edge(Edge("a", "b"))
    with pytest.raises(GraphError, match="compact it"):
        summary.outline(index.view)
    index.compact()
    assert summary.outline(index.view).edges == 1
