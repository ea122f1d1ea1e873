"""A graph works over every content room: with its planes, and without them through `match` and `next`."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headgate import Edge, Event, Node, Subscription
from headgate.graph.index import EVALUATORS, GraphIndex
from tests.contract.rooms import Room, WithoutPlanes, every_room
from tests.graph.random_graphs import SHAPES, Drawn, draw_graph
from tests.graph.reference import reach_nodes, reach_subscriptions
from tests.seeds import seeds, share

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.contents.protocol import ContentRoom

pytestmark = pytest.mark.jit_off


def draw(room: Room, rng: random.Random, shape: str) -> Drawn:
    """Draw a graph whose filters are of the room."""

    def some() -> str | None:
        return room.draw_filter(rng) if rng.random() < 0.6 else None

    drawn = draw_graph(rng, shape, rng.choice((3, 30, 90)), filters=False)
    nodes = [
        Node(each.id, some(), subscription=each.subscription, dialect=room.index.dialect)
        for each in drawn.nodes
    ]
    edges = [
        Edge(each.source, each.target, some() if rng.random() < 0.2 else None, room.index.dialect)
        for each in drawn.edges
    ]
    subscriptions = [
        Subscription(each.id, room.draw_filter(rng), room.index.dialect, node=each.node)
        for each in drawn.subscriptions
    ]
    return Drawn(nodes, edges, subscriptions)


def holds(index: ContentRoom, event: Event, text: str, dialect: str) -> bool:
    return bool(index.build([Subscription(0, text, dialect)]).match(event))


@every_room
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("planes", [True, False], ids=["planes", "match and next"])
def test_every_evaluator_over_every_room(room: Room, shape: str, *, planes: bool) -> None:
    rng = random.Random(f"{room.name}{shape}")
    index = room.index if planes or room.name != "records" else WithoutPlanes
    drawn = draw(room, rng, shape)
    graph = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=index)
    rows = []
    expected = []
    for number in seeds(5):
        row = {**room.draw_row(rng, number), "source": rng.choice(drawn.nodes).id}
        event = Event.from_row(row)
        assert event.source is not None
        valid = partial(holds, room.index, event)
        nodes = sorted(reach_nodes(drawn.nodes, drawn.edges, event.source, valid))
        served = sorted(
            reach_subscriptions(drawn.nodes, drawn.edges, drawn.subscriptions, event.source, valid)
        )
        for evaluator in EVALUATORS:
            if graph.base.acyclic or not evaluator.startswith("dag"):
                assert graph.nodes(event, evaluator) == nodes, evaluator
                assert graph.match(event, evaluator) == served, evaluator
                assert sorted(graph.reach(event, evaluator)) == served, evaluator
        rows.append(row)
        expected += [(row["id"], each) for each in served]
    schema = room.schema
    if "source" not in schema.names:
        schema = schema.append(pa.field("source", pa.string()))
    found = graph.match_batch(pa.RecordBatch.from_pylist(rows, schema=schema))
    assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == expected


@every_room
def test_a_changed_graph_over_every_room(room: Room, tmp_path: Path) -> None:
    """Later filters and one that changed: compaction and a snapshot do not change the answers."""
    rng = random.Random(f"changed {room.name}")
    dialect = room.index.dialect
    for _ in range(share(6)):
        drawn = draw(room, rng, SHAPES[0])
        graph = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=room.index)
        text = room.draw_filter(rng)
        first, last = drawn.nodes[0], drawn.nodes[-1]
        graph.add_node(Node("late", text, dialect=dialect))
        graph.add_edge(Edge(first.id, "late"))
        graph.add_edge(Edge("late", last.id))
        graph.subscribe(Subscription("served", text, dialect, node=last.id))
        graph.set_filter(last.id, room.draw_filter(rng), dialect)
        events = [
            Event.from_row({**room.draw_row(rng, number), "source": rng.choice((first.id, "late"))})
            for number in range(5)
        ]
        before = [graph.match(event) for event in events]
        graph.compact()
        assert [graph.match(event) for event in events] == before
        graph.save(tmp_path / "graph")
        opened = GraphIndex.open(tmp_path / "graph", room=room.index)
        assert [opened.match(event) for event in events] == before
