"""Tables to graphs: what does not fit is refused with its reason, and the rest is a graph."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from headgate import Edge, Event, Node, Subscription
from headgate.errors import GraphError
from headgate.graph.build.tables import read_tables
from headgate.graph.index import EVALUATORS, GraphIndex
from headgate.records.index.index import RecordIndex
from headgate.xml.index.index import XmlIndex


def nodes(**columns: list[object]) -> pa.Table:
    return pa.table(columns)


def test_refused_rows_and_the_rest() -> None:
    read = read_tables(
        pa.table(
            {
                "id": ["b", "a", None, "b", "c", "d", "e"],
                "cost": [0.0, 1.0, 0.0, 0.0, -1.0, math.nan, 0.0],
                "score": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, math.inf],
                "refusal": [None, None, None, None, None, None, None],
            }
        ),
        pa.table(
            {
                "source": ["a", "a", "zz", None, "b", "a"],
                "target": ["b", "c", "a", "b", "a", "b"],
                "cost": [1.0, 1.0, 1.0, 1.0, -2.0, None],
                "refusal": [None, None, None, None, None, "the filter is bad"],
            }
        ),
        pa.table(
            {
                "id": ["s1", "s2", "s3", "s1"],
                "filter": ["TRUE", "TRUE", "TRUE", "TRUE"],
                "node": ["a", "zz", None, "b"],
            }
        ),
    )
    reasons = {(each.table, each.row): (each.id, each.reason) for each in read.refused}
    assert reasons == {
        ("nodes", 2): ("", "the node has no id: give text or a whole number"),
        ("nodes", 3): ("b", "node 'b' is given again: an id can be used once"),
        ("nodes", 4): ("c", "node 'c' has cost -1.0: give a number from 0 up"),
        ("nodes", 5): ("d", "node 'd' has cost nan: give a number from 0 up"),
        ("nodes", 6): ("e", "node 'e' has score inf: give a finite number"),
        ("edges", 1): ("a → c", "edge from 'a' to 'c': node 'c' was refused"),
        ("edges", 2): ("zz → a", "edge from 'zz' to 'a': there is no node 'zz'"),
        ("edges", 3): ("None → b", "edge from None to 'b': no node is named"),
        ("edges", 4): ("b → a", "edge from 'b' to 'a' has cost -2.0: give a number from 0 up"),
        ("edges", 5): ("a → b", "the filter is bad"),
        ("subscriptions", 1): ("s2", "subscription 's2': there is no node 'zz'"),
        ("subscriptions", 2): (
            "s3",
            "subscription 's3': it is attached to no node: name one as its 'node'",
        ),
        ("subscriptions", 3): ("s1", "subscription 's1' is given again: an id can be used once"),
    }
    assert list(read.parts.node_ids) == ["a", "b"]
    assert read.node_row.tolist() == [1, 0]
    assert read.edge_row.tolist() == [0]
    assert read.subscription_row.tolist() == [0]
    index = GraphIndex.from_parts(read.parts, RecordIndex)
    assert index.nodes(Event("e", {}, source="a")) == ["b"]
    assert index.match(Event("e", {}, source="a")) == ["s1"]


def test_a_row_that_cannot_be_read_opens_nothing() -> None:
    read = read_tables(
        pa.table({"id": ["p", "a", "b"], "subscription": [None, "s1", "s2"]}),
        pa.table({"source": ["p", "p"], "target": ["a", "b"]}),
        pa.table({"id": [None, "s2"], "filter": [None, "x = 1"], "refusal": ["not valid JSON", None]}),
    )
    assert {(each.table, each.row) for each in read.refused} == {("subscriptions", 0), ("nodes", 1)}
    assert "node 'a' does not serve 's1'" in read.refused[-1].reason
    index = GraphIndex.from_parts(read.parts, RecordIndex)
    assert index.match(Event("e", {"x": 1}, source="p")) == ["s2"]
    assert index.match(Event("e", {}, source="p")) == []


def test_whole_numbers_as_ids() -> None:
    read = read_tables(
        pa.table({"id": pa.array([3, 1, 2], pa.int32()), "subscription": [30, None, 20]}),
        pa.table({"source": [1, 2, 9], "target": [2, 3, 1]}),
    )
    assert [each.reason for each in read.refused] == ["edge from 9 to 1: there is no node 9"]
    index = GraphIndex.from_parts(read.parts, RecordIndex)
    assert index.match(Event("e", {}, source=1)) == [20, 30]


def test_a_node_may_name_a_subscription_of_the_table() -> None:
    index = GraphIndex.build(
        [Node("p"), Node("a", subscription="s"), Node("b", subscription="s", filter="x = 1")],
        [Edge("p", "a"), Edge("p", "b")],
        [Subscription("s", "y = 2")],
        room=RecordIndex,
    )
    assert index.match(Event("e", {"y": 2}, source="p")) == ["s"]
    assert index.match(Event("e", {"y": 3, "x": 1}, source="p")) == []


def test_several_nodes_may_serve_one_subscription() -> None:
    index = GraphIndex.build(
        [Node("p"), Node("a", "x = 1", subscription="s"), Node("b", "x = 2", subscription="s")],
        [Edge("p", "a"), Edge("p", "b")],
        room=RecordIndex,
    )
    assert [index.match(Event("e", {"x": x}, source="p")) for x in (1, 2, 3)] == [["s"], ["s"], []]


def test_labels_on_nodes_and_edges() -> None:
    index = GraphIndex.build(
        [
            Node("p"),
            Node("a", "subset(topics, 'sport')", dialect="labels"),
            Node("b", "superset(topics, 'sport', 'news')", dialect="labels", subscription="s"),
        ],
        [Edge("p", "a"), Edge("a", "b", "intersects(topics, 'news')", dialect="labels")],
        room=RecordIndex,
    )
    assert index.match(Event("e", {"topics": ["sport", "news"]}, source="p")) == ["s"]
    assert index.match(Event("e", {"topics": ["sport"]}, source="p")) == []
    assert index.match(Event("e", {"topics": ["sport", "news", "art"]}, source="p")) == []
    index.add_node(Node("c", "subset(topics)", dialect="labels", subscription="t"))
    index.add_edge(Edge("p", "c"))
    assert index.match(Event("e", {}, source="p")) == ["t"]
    index.compact()
    assert index.match(Event("e", {"topics": ["sport", "news"]}, source="p")) == ["s", "t"]


@pytest.mark.parametrize(
    ("given_nodes", "given_edges", "message"),
    [
        ([Node("a"), Node("a")], [], "node 'a' is given again"),
        ([Node("a")], [Edge("a", "b")], "edge from 'a' to 'b': there is no node 'b'"),
        ([Node("a"), Node(1)], [], "ids must be all text or all whole numbers"),
        ([Node(1)], [Edge("1", "1")], "there is no node '1'"),
        ([Node(2**70)], [], "does not fit into 64 bits"),
        ([Node("\ud800")], [], "lone surrogate"),
        ([Node(True)], [], "give text or a whole number"),
        ([Node(1)], [Edge(1, 2**70)], "ids must be all text or all whole numbers"),
        ([Node("a"), Node("b", "x >")], [], "node 'b': .*, at character"),
        ([Node("a")], [Edge("a", "a", "x >")], "edge from 'a' to 'a': .*, at character"),
    ],
)
def test_refused_models(given_nodes: list[Node], given_edges: list[Edge], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        GraphIndex.build(given_nodes, given_edges, room=RecordIndex)


@pytest.mark.parametrize("cost", [-1.0, math.nan, math.inf])
def test_refused_costs(cost: float) -> None:
    with pytest.raises(GraphError, match="give a number from 0 up"):
        Node("a", cost=cost)
    with pytest.raises(GraphError, match="give a number from 0 up"):
        Edge("a", "b", cost=cost)
    if cost >= 0 or math.isnan(cost):
        with pytest.raises(GraphError, match="give a finite number"):
            Node("a", score=cost)


def test_empty_and_tiny_graphs() -> None:
    index = GraphIndex.build([], [], room=RecordIndex)
    with pytest.raises(Exception, match="source 'a' of event 'e' is not a node of the graph"):
        index.match(Event("e", {}, source="a"))
    alone = GraphIndex.build([Node("a", subscription="s")], [], room=RecordIndex)
    assert alone.match(Event("e", {}, source="a")) == []
    cycle = GraphIndex.build([Node("a"), Node("b")], [Edge("a", "b"), Edge("b", "a")], room=XmlIndex)
    for evaluator in EVALUATORS:
        with pytest.raises(Exception, match="event 'e' has no source"):
            cycle.match(Event("e", "<r/>", content_type="xml"), evaluator)
        with pytest.raises(Exception, match="not valid XML"):
            cycle.match(Event("e", "<r", source="a", content_type="xml"), evaluator)
    with pytest.raises(
        Exception, match=r"event 'e' has the source \{'tid': 't'\}: .* by text or a whole number"
    ):
        alone.match(Event.from_row({"id": "e", "source": {"tid": "t"}}))
    assert (len(index), len(alone)) == (0, 1)
    loop = GraphIndex.build([Node("a", subscription="s")], [Edge("a", "a")], room=RecordIndex)
    assert loop.match(Event("e", {}, source="a")) == ["s"]
