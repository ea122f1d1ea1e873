"""A running graph gives after every change what a graph built anew gives."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from headgate import Edge, Event, Node, Subscription
from headgate.errors import FilterError, GraphError, SubscriptionError
from headgate.graph.index import EVALUATORS, GraphIndex
from headgate.records.index.index import RecordIndex
from tests.graph.random_graphs import SHAPES, Drawn, draw_event, draw_filter, draw_graph, valid_text
from tests.graph.reference import reach_nodes, reach_subscriptions
from tests.seeds import NIGHTLY, seeds

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.core.event import Id


def change(rng: random.Random, index: GraphIndex, drawn: Drawn, number: int) -> str:
    """Make one random change to the index and to what users would have given; returns which."""
    kinds = ("node", "edge", "filter", "subscribe", "unsubscribe", "remove node", "remove edge")
    what = rng.choice(kinds)
    node = rng.choice(drawn.nodes).id if drawn.nodes else None
    other = rng.choice(drawn.nodes).id if drawn.nodes else None
    if what == "node" or node is None or other is None:
        added = Node(f"x{number:03}", draw_filter(rng), subscription=f"y{number:03}", score=rng.randrange(5))
        index.add_node(added)
        drawn.nodes.append(added)
    elif what == "edge":
        edge = Edge(
            node, other, draw_filter(rng) if rng.random() < 0.4 else None, cost=rng.choice((1.0, 0.5))
        )
        index.add_edge(edge)
        drawn.edges.append(edge)
    elif what == "filter":
        text = draw_filter(rng)
        index.set_filter(node, text)
        drawn.nodes[:] = [replace(each, filter=text) if each.id == node else each for each in drawn.nodes]
    elif what == "subscribe":
        subscription = Subscription(f"z{number:03}", draw_filter(rng) or "TRUE", node=node)
        index.subscribe(subscription)
        drawn.subscriptions.append(subscription)
    elif what == "unsubscribe":
        return unsubscribe(rng, index, drawn)
    elif what == "remove node" and len(drawn.nodes) > 2:
        index.remove_node(node)
        drawn.nodes[:] = [each for each in drawn.nodes if each.id != node]
        drawn.edges[:] = [each for each in drawn.edges if node not in {each.source, each.target}]
        drawn.subscriptions[:] = [each for each in drawn.subscriptions if each.node != node]
    elif drawn.edges:
        edge = rng.choice(drawn.edges)
        index.remove_edge(edge.source, edge.target)
        drawn.edges[:] = [
            each for each in drawn.edges if (each.source, each.target) != (edge.source, edge.target)
        ]
    return what


def unsubscribe(rng: random.Random, index: GraphIndex, drawn: Drawn) -> str:
    ids = [each.id for each in drawn.subscriptions]
    ids += [each.subscription for each in drawn.nodes if each.subscription is not None]
    if ids:
        gone: Id = rng.choice(ids)
        index.unsubscribe(gone)
        drawn.subscriptions[:] = [each for each in drawn.subscriptions if each.id != gone]
        drawn.nodes[:] = [
            replace(each, subscription=None) if each.subscription == gone else each for each in drawn.nodes
        ]
    return "unsubscribe"


def check(index: GraphIndex, drawn: Drawn, event: Event, evaluators: tuple[str, ...], after: str) -> None:
    assert event.source is not None
    valid = partial(valid_text, event)
    nodes = reach_nodes(drawn.nodes, drawn.edges, event.source, valid)
    served = reach_subscriptions(drawn.nodes, drawn.edges, drawn.subscriptions, event.source, valid)
    for evaluator in evaluators:
        assert index.nodes(event, evaluator) == sorted(nodes), (after, evaluator)
        assert index.match(event, evaluator) == sorted(served), (after, evaluator)
        assert sorted(index.reach(event, evaluator)) == sorted(served), (after, evaluator)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", seeds(4))
def test_random_changes(shape: str, seed: int) -> None:
    rng = random.Random(f"changes {shape}{seed}")
    drawn = draw_graph(rng, shape, rng.choice((2, 10, 60, 130, 400)))
    index = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex)
    acyclic = index.base.acyclic
    for number in range(40 if NIGHTLY else 15):
        what = change(rng, index, drawn, number)
        event = draw_event(rng, str(rng.choice(drawn.nodes).id), number)
        evaluators = ("auto", "general", "scc-skip") if number % 5 else EVALUATORS
        check(index, drawn, event, tuple(e for e in evaluators if acyclic or not e.startswith("dag")), what)
        if rng.random() < 0.1:
            index.compact()
            index.base.arrays.check()
            index.base.planes.check()
            acyclic = index.base.acyclic
            assert index.skipping
            check(index, drawn, event, ("auto", "general", "scc-skip"), "compact")


def chain(*filters: str | None) -> GraphIndex:
    """Lead from n0 over n1… to the last, which serves `end`."""
    last = len(filters)
    nodes = [Node("n0")]
    nodes += [
        Node(f"n{i}", text, subscription="end" if i == last else None) for i, text in enumerate(filters, 1)
    ]
    edges = [Edge(f"n{i}", f"n{i + 1}") for i in range(last)]
    return GraphIndex.build(nodes, edges, room=RecordIndex)


def event(**data: object) -> Event:
    return Event("e", data, source="n0")


def test_an_edge_that_merges_components_turns_skipping_off_until_compaction() -> None:
    index = chain(None, None, None)
    seen = [index.skipping]
    index.add_edge(Edge("n3", "n1"))
    seen.append(index.skipping)
    assert index.nodes(event(), "scc-skip") == ["n1", "n2", "n3"]
    index.compact()
    seen.append(index.skipping)
    assert seen == [True, False, True]
    assert index.nodes(event(), "scc-skip") == ["n1", "n2", "n3"]
    with pytest.raises(GraphError, match="the graph has cycles"):
        index.match(event(), "dag")


def test_edges_with_the_numbering_leave_skipping_on() -> None:
    index = chain(None, "a = 1", None)
    index.add_edge(Edge("n1", "n3"))
    index.subscribe(Subscription("late", "b = 2", node="n3"))
    assert index.skipping
    for evaluator in EVALUATORS:
        assert index.match(event(b=2), evaluator) == ["end", "late"]


def test_a_publisher_may_come_to_be_reached() -> None:
    index = GraphIndex.build(
        [Node("p", "a = 1", subscription="own"), Node("q"), Node("r", subscription="end")],
        [Edge("p", "r"), Edge("q", "r")],
        room=RecordIndex,
    )
    index.add_edge(Edge("q", "p"))
    assert index.match(Event("e", {"a": 1}, source="q")) == ["end", "own"]
    assert index.match(Event("e", {"a": 2}, source="q")) == ["end"]
    assert index.match(Event("e", {}, source="p")) == ["end"]


def star(count: int) -> GraphIndex:
    nodes = [Node("p"), *(Node(f"n{i:04}") for i in range(count))]
    return GraphIndex.build(nodes, [Edge("p", node.id) for node in nodes[1:]], room=RecordIndex)


def test_sinks_may_come_to_lead_somewhere() -> None:
    """Many of them, so that words hold nothing but sinks."""
    index = star(300)
    index.subscribe(Subscription("s", "TRUE", node="n0150"))
    index.add_edge(Edge("n0200", "n0100", "a = 1"))
    index.add_node(Node("late", subscription="t"))
    index.add_edge(Edge("n0250", "late"))
    one = Event("e", {"a": 1}, source="p")
    for evaluator in ("auto", "general", "scc-skip", "index-then-bfs", "bfs-then-match"):
        assert index.match(one, evaluator) == ["s", "t"]
        assert sorted(index.reach(one, evaluator)) == ["s", "t"]


def test_a_moved_publisher_leaves_nothing_behind() -> None:
    index = GraphIndex.build(
        [Node("p", subscription="own"), Node("q")],
        [],
        [Subscription("s", "a = 1", node="p")],
        room=RecordIndex,
    )
    index.add_edge(Edge("q", "p"))
    index.unsubscribe("own")
    assert len(index) == 1
    index.remove_node("p")
    assert len(index) == 0
    index.subscribe(Subscription("s", "TRUE", node="q"))
    assert index.match(Event("e", {"a": 2}, source="q")) == ["s"]
    index.compact()
    assert index.match(Event("e", {"a": 2}, source="q")) == ["s"]


def test_a_loop_at_the_source_turns_skipping_off() -> None:
    index = chain(None, None)
    index.add_edge(Edge("n1", "n1"))
    for evaluator in EVALUATORS:
        assert index.nodes(Event("e", {}, source="n1"), evaluator) == ["n1", "n2"]


def test_kinds_of_new_nodes_stay() -> None:
    index = GraphIndex.build([Node("a", kind="pub")], [], room=RecordIndex)
    for number in range(3):
        index.add_node(Node(f"n{number}", kind="network"))
        index.compact()
    names = index.base.names
    assert names.kinds == ("pub", "network")
    assert [names.kinds[kind] for kind in names.node_kind] == ["pub", "network", "network", "network"]


def test_refused_changes_leave_no_trace_among_others() -> None:
    index = chain(None, None)
    index.add_node(Node("x"))
    for wrong in (7, "nobody"):
        with pytest.raises((SubscriptionError, GraphError)):
            index.unsubscribe(wrong)
    with pytest.raises(GraphError, match="ids here are text"):
        index.add_node(Node("y", subscription=7))
    with pytest.raises(GraphError, match=r"does not fit into 64 bits|ids here are text"):
        index.add_node(Node(2**70))
    index.add_edge(Edge("n1", "x"))
    assert "y" not in index
    assert index.view.subscriptions == 1
    assert [each.subscription for each in index.top(event(), 3)] == ["end"]


def test_ids_that_cannot_be_stored_are_refused() -> None:
    index = GraphIndex.build([Node(1)], [], room=RecordIndex)
    with pytest.raises(GraphError, match="does not fit into 64 bits"):
        index.add_node(Node(2**70))
    with pytest.raises(GraphError, match="does not fit into 64 bits"):
        index.subscribe(Subscription(2**70, "TRUE", node=1))
    with pytest.raises(GraphError, match="give text or a whole number"):
        index.add_node(Node(True))
    assert True not in index


def test_unsubscribing_what_a_publisher_serves() -> None:
    index = GraphIndex.build(
        [Node("p", subscription="own"), Node("q"), Node("r")],
        [Edge("p", "r"), Edge("q", "r")],
        room=RecordIndex,
    )
    index.unsubscribe("own")
    with pytest.raises(SubscriptionError, match="there is no subscription 'own'"):
        index.unsubscribe("own")
    index.add_edge(Edge("q", "p"))
    assert index.match(Event("e", {}, source="q")) == []
    index.compact()
    assert index.match(Event("e", {}, source="q")) == []
    assert len(index) == 0


def test_a_subscription_leaves_with_the_last_node_it_hangs_at() -> None:
    index = GraphIndex.build(
        [Node("p"), Node("a", subscription="s"), Node("b", subscription="s")],
        [Edge("p", "a"), Edge("p", "b")],
        [Subscription("s", "x = 1"), Subscription("t", "x = 1", node="a")],
        room=RecordIndex,
    )
    index.remove_node("a")
    assert index.match(Event("e", {"x": 1}, source="p")) == ["s"]
    index.subscribe(Subscription("t", "x = 1", node="b"))
    assert index.match(Event("e", {"x": 1}, source="p")) == ["s", "t"]
    index.remove_node("b")
    assert index.match(Event("e", {"x": 1}, source="p")) == []
    index.subscribe(Subscription("s", "TRUE", node="p"))
    assert index.match(Event("e", {}, source="p")) == ["s"]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda g: g.add_node(Node("n1")), GraphError, "node 'n1' is in the graph already"),
        (lambda g: g.add_node(Node(7)), GraphError, "ids here are text"),
        (lambda g: g.add_node(Node("m", "a >")), FilterError, "at character"),
        (lambda g: g.add_edge(Edge("n1", "zz")), GraphError, "there is no node 'zz'"),
        (lambda g: g.add_edge(Edge("zz", "n1")), GraphError, "there is no node 'zz'"),
        (lambda g: g.add_edge(Edge("n1", "n2", "a >")), FilterError, "at character"),
        (lambda g: g.remove_edge("n2", "n1"), GraphError, "there is no edge from 'n2' to 'n1'"),
        (lambda g: g.remove_node("zz"), GraphError, "there is no node 'zz'"),
        (lambda g: g.set_filter("zz", None), GraphError, "there is no node 'zz'"),
        (lambda g: g.set_filter("n1", "a >"), FilterError, "at character"),
        (lambda g: g.subscribe(Subscription("s", "TRUE")), SubscriptionError, "is attached to no node"),
        (lambda g: g.subscribe(Subscription("end", "TRUE", node="n1")), SubscriptionError, "already"),
        (lambda g: g.subscribe(Subscription("s", "TRUE", node="zz")), GraphError, "there is no node 'zz'"),
        (lambda g: g.unsubscribe("zz"), SubscriptionError, "there is no subscription 'zz'"),
        (lambda g: g.match(event(), "bfs"), GraphError, "there is no evaluator 'bfs'"),
    ],
)
def test_refused_changes_leave_the_graph_as_it_was(
    make: Callable[[GraphIndex], object], error: type[Exception], message: str
) -> None:
    index = chain(None, "a = 1", None)
    with pytest.raises(error, match=message):
        make(index)
    assert index.match(event(a=1)) == ["end"]
    assert index.nodes(event(a=2)) == ["n1"]
    index.compact()
    assert index.match(event(a=1)) == ["end"]
    assert index.nodes(event(a=2)) == ["n1"]
