"""The facade that joins the rooms: one object, whatever there is between publishers and subscribers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.snapshot import room_of
from headgate.errors import GraphError, SnapshotError
from headgate.graph.base import ROOM as GRAPH
from headgate.graph.index import GraphIndex
from headgate.graph.ranked import DECAY, MINUS
from headgate.records.base import ROOM as RECORDS
from headgate.records.index import RecordIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from headgate.core.content import Verdict
    from headgate.core.event import Event, Id
    from headgate.core.subscription import Subscription
    from headgate.graph.model import Edge, Node
    from headgate.graph.ranked import Ranked


class Engine:
    """Subscriptions, with a graph between them and the publishers or without.

    >>> from headgate import Edge, Engine, Event, Node, Subscription
    >>> engine = Engine.build([Subscription("s1", "age > 30")])
    >>> engine.publish(Event("e1", {"age": 35}))
    ['s1']
    >>> engine = Engine.build(
    ...     [Subscription("s1", "age > 30", node="net")],
    ...     nodes=[Node("pub"), Node("net", "topic = 'sport'")],
    ...     edges=[Edge("pub", "net")],
    ... )
    >>> engine.publish(Event("e1", {"age": 35, "topic": "sport"}, source="pub"))
    ['s1']
    """

    def __init__(self, index: RecordIndex | GraphIndex) -> None:
        self.index = index

    @classmethod
    def build(
        cls,
        subscriptions: Iterable[Subscription] = (),
        *,
        nodes: Iterable[Node] | None = None,
        edges: Iterable[Edge] = (),
    ) -> Engine:
        """Index subscriptions; with nodes, they hang in the graph of these and the edges."""
        if nodes is None:
            if any(True for _ in edges):
                raise GraphError("there are edges and no nodes: give both, or neither")
            subscriptions = list(subscriptions)
            for hanging in (each for each in subscriptions if each.node is not None):
                raise GraphError(
                    f"subscription {hanging.id!r} hangs at node {hanging.node!r}, and there is no graph: "
                    "give nodes, or leave `node` out"
                )
            return cls(RecordIndex.build(subscriptions))
        return cls(GraphIndex.build(nodes, edges, subscriptions, room=RecordIndex))

    @classmethod
    def open(cls, path: Path, *, verify: bool = True) -> Engine:
        """Open a snapshot, with a graph or without."""
        room = room_of(path)
        if room == GRAPH:
            return cls(GraphIndex.open(path, room=RecordIndex, verify=verify))
        if room == RECORDS:
            return cls(RecordIndex.open(path, verify=verify))
        raise SnapshotError(
            f"snapshot {path} belongs to the room {room!r}: give one of records, or of a graph in one piece"
        )

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; `source` says what it was built from."""
        self.index.save(path, source=source)

    @property
    def graph(self) -> GraphIndex:
        """Return the graph; refuses if there is none."""
        if isinstance(self.index, GraphIndex):
            return self.index
        raise GraphError("there is no graph here: build the engine with nodes and edges")

    def publish(self, event: Event) -> list[Id]:
        """List the subscriptions that get an event, sorted."""
        return self.index.match(event)

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription; it matches from now on."""
        self.index.subscribe(subscription)

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription; it matches no more."""
        self.index.unsubscribe(identity)

    def explain(self, event: Event, identity: Id) -> Verdict:
        """Say why a subscription gets an event or not."""
        return self.index.explain(event, identity)

    def top(
        self, event: Event, k: int, *, by: str = MINUS, decay: float = DECAY, hops: bool = False
    ) -> list[Ranked]:
        """List the best k of the subscriptions that get an event: the score falls with the way there."""
        return self.graph.top(event, k, by=by, decay=decay, hops=hops)
