"""The way of an event agrees with a plain search, node by node and edge by edge."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

import pytest

from headgate import Edge, Event, Node, Subscription
from headgate.errors import EventError
from headgate.graph.explain import ENTERED, PASSED, STOPPED, names_at, trace
from headgate.graph.index import GraphIndex
from headgate.records.index.index import RecordIndex
from tests.graph.random_graphs import SHAPES, Drawn, draw_event, draw_graph, valid_text
from tests.graph.reference import passes
from tests.graph.test_changes import change

if TYPE_CHECKING:
    from headgate.core.event import Id


def way_of(drawn: Drawn, event: Event) -> tuple[dict[Id, str], set[tuple[Id, Id, str]]]:
    """Follow an event slowly: what became of it at each node, and at each edge."""
    valid = partial(valid_text, event)
    by_id = {node.id: node for node in drawn.nodes}
    assert event.source is not None
    states: dict[Id, str] = {event.source: ENTERED}
    edges: set[tuple[Id, Id, str]] = set()
    frontier = [event.source]
    while frontier:
        at = frontier.pop(0)
        for edge in (each for each in drawn.edges if each.source == at):
            if not passes(edge, valid):
                edges.add((edge.source, edge.target, STOPPED))
                continue
            edges.add((edge.source, edge.target, PASSED))
            if edge.target not in states:
                states[edge.target] = PASSED if passes(by_id[edge.target], valid) else STOPPED
                if states[edge.target] == PASSED:
                    frontier.append(edge.target)
    return states, edges


def check(index: GraphIndex, drawn: Drawn, event: Event) -> set[str]:
    """Check the way of an event; returns what became of it here and there."""
    view = index.view
    found = trace(view, event, 10_000)
    states, edges = way_of(drawn, event)
    assert {each.id: each.state for each in found.nodes} == states
    assert {(each.source, each.target, each.state) for each in found.edges} == edges
    assert not found.cut
    assert found.passed == sum(state == PASSED for state in states.values())
    valid = partial(valid_text, event)
    at: dict[Id, list[Subscription]] = {node.id: [] for node in drawn.nodes}
    for each in drawn.subscriptions:
        assert each.node is not None
        at[each.node].append(each)
    for node in found.nodes:
        hung = at[node.id]
        assert names_at(view, node.id) == sorted(each.id for each in hung)
        served = [each for each in hung if node.state != STOPPED and valid(each.filter, each.dialect)]
        assert (node.subscriptions, node.served) == (len(hung), len(served))
        assert (node.verdict is not None) == (node.state == STOPPED)
    assert found.served == sum(node.served for node in found.nodes)
    for why in (*(each.verdict for each in found.nodes), *(each.verdict for each in found.edges)):
        assert why is None or not why.matches
    return {*states.values(), *(state for *_, state in edges)}


@pytest.mark.parametrize("shape", SHAPES)
def test_ways_agree_with_a_plain_search_while_the_graph_changes(shape: str) -> None:
    rng = random.Random(f"trace {shape}")
    seen: set[str] = set()
    for _ in range(6):
        drawn = draw_graph(rng, shape, rng.randrange(2, 25))
        index = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex)
        for number in range(8):
            event = draw_event(rng, str(rng.choice(drawn.nodes).id))
            seen |= check(index, drawn, event)
            change(rng, index, drawn, number)
    assert seen == {ENTERED, PASSED, STOPPED}


def test_a_long_way_is_cut_and_a_strange_source_refused() -> None:
    nodes = [Node("pub"), *(Node(f"n{i:02}") for i in range(50))]
    edges = [Edge("pub", node.id) for node in nodes[1:]]
    index = GraphIndex.build(nodes, edges, [Subscription("s", "age > 1", node="n49")], room=RecordIndex)
    found = trace(index.view, Event("e", {"age": 2}, source="pub"), 10)
    assert (len(found.nodes), len(found.edges), found.passed, found.served, found.cut) == (10, 9, 50, 1, True)
    with pytest.raises(EventError, match="is not a node of the graph"):
        trace(index.view, Event("e", {}, source="elsewhere"), 10)
    assert names_at(index.view, "elsewhere") == []
