"""A graph works over every content room: with its planes, and without them through `match` and `next`."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headgate import Edge, Event, GraphIndex, Node, RecordIndex, Subscription
from headgate.graph.evaluators import EVALUATORS
from headgate.graph.reference import reach_nodes, reach_subscriptions
from tests.contract.rooms import Room, every_room
from tests.graph.random_graphs import SHAPES, Drawn, draw_graph

if TYPE_CHECKING:
    from headgate.core.content import ContentRoom


class WithoutPlanes(RecordIndex):
    """A room that answers by `match` and `next` only."""

    def sieve(self, first: int, size: int) -> None:
        """Have none."""
        del first, size


def draw(room: Room, rng: random.Random, shape: str) -> Drawn:
    """Draw a graph whose filters are of the room."""

    def some() -> str | None:
        return room.draw_filter(rng) if rng.random() < 0.6 else None

    drawn = draw_graph(rng, shape, rng.choice((3, 30, 90)), filters=False)
    nodes = [Node(each.id, some(), subscription=each.subscription) for each in drawn.nodes]
    edges = [Edge(each.source, each.target, some() if rng.random() < 0.2 else None) for each in drawn.edges]
    subscriptions = [
        Subscription(each.id, room.draw_filter(rng), node=each.node) for each in drawn.subscriptions
    ]
    return Drawn(nodes, edges, subscriptions)


def holds(index: ContentRoom, event: Event, text: str, dialect: str) -> bool:
    return bool(index.build([Subscription(0, text, dialect)]).match(event))


@every_room
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("planes", [True, False], ids=["planes", "match and next"])
def test_every_evaluator_over_every_room(room: Room, shape: str, *, planes: bool) -> None:
    rng = random.Random(f"{room.name}{shape}")
    index = room.index if planes else WithoutPlanes
    drawn = draw(room, rng, shape)
    graph = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=index)
    rows = []
    expected = []
    for number in range(5):
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
