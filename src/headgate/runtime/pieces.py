"""One of the pieces that answer and change as one: what stands behind an engine, and what leads to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.core.event import SOURCE
from headgate.core.ranks import EXACT
from headgate.engine.engine import Engine
from headgate.runtime.operations import AddEdge, AddNode, RemoveEdge, RemoveNode, SetFilter

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.core.event import Id
    from headgate.core.subscription import Subscription
    from headgate.engine.backend import Backend, Events
    from headgate.engine.question import Top
    from headgate.graph.index import GraphIndex
    from headgate.runtime.operations import Change
    from headgate.runtime.routes import Route


class Piece:
    """A shard, or all in one piece."""

    def __init__(
        self, backend: Backend, route: Route | None = None, types: frozenset[str] | None = None
    ) -> None:
        self.backend = backend
        self.route = route
        """What leads here; None if every event does."""
        self.types = types
        """The content types that events have which come here as Python values; None if all do."""
        self.ids = backend.built
        """Those of the snapshot, whatever came and went since."""
        self._count: int | None = len(self.ids)

    @classmethod
    def open(cls, place: Path, route: Route | None = None, *, verify: bool) -> Piece:
        """Open a snapshot in one piece."""
        return cls(Engine.open(place, verify=verify).backend, route)

    @property
    def routed(self) -> bool:
        """Tell whether there is a graph."""
        return self.backend.routed

    def __len__(self) -> int:
        """Count the subscriptions that are here now."""
        if self._count is None:
            self._count = len(self.backend)
        return self._count

    def met(self, events: Events, top: Top | None) -> NDArray[np.int64]:
        """List the rows of the events that can match here; what leads here is about whole filters."""
        here = np.ones(len(events), np.bool_)
        if self.types is None:
            if not len(self):
                return np.zeros(0, np.int64)
        elif (
            not isinstance(events, pa.RecordBatch)
            and not {each.content_type for each in events} <= self.types
        ):
            here = np.array([each.content_type in self.types for each in events], np.bool_)
        if self.route is not None and (top is None or top.mode == EXACT):
            here = self.route.met(events)
        if self.routed:
            here &= _known(self.backend.graph, events)
        return np.flatnonzero(here)

    # Changing

    def has_node(self, node: Id | None) -> bool:
        """Tell whether a node is here; those that lead on are everywhere."""
        # Nodes of a graph in shards never change: what it was numbered with knows them all.
        return node is not None and self.backend.graph.base.find(node) >= 0

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription: from now on every event comes here."""
        self.backend.subscribe(subscription)
        self._counted(1)
        self.route = None

    def replace(self, subscription: Subscription) -> None:
        """Have a subscription in the place of another of its id."""
        self.backend.replace(subscription)
        self.route = None

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription."""
        self.backend.unsubscribe(identity)
        self._counted(-1)

    def _counted(self, more: int) -> None:
        if self._count is not None:
            self._count += more

    def change_graph(self, change: Change) -> None:
        """Change nodes and edges."""
        graph = self.backend.graph
        match change:
            case AddNode(node):
                graph.add_node(node)
            case RemoveNode(identity):
                graph.remove_node(identity)
            case AddEdge(edge):
                graph.add_edge(edge)
            case RemoveEdge(source, target):
                graph.remove_edge(source, target)
            case SetFilter(identity, text, dialect):
                graph.set_filter(identity, text, dialect)
        # With a node go subscriptions that hang nowhere else, and one may come.
        self._count = None


def _known(graph: GraphIndex, events: Events) -> NDArray[np.bool_]:
    """Tell which events come from a node of a graph, or of this shard of it."""
    if not isinstance(events, pa.RecordBatch):
        kind: pa.DataType = pa.int64() if graph.base.names.node_ids.numbered else pa.string()
        source: pa.Array[Any] = pa.array([event.source for event in events], kind)
        events = pa.RecordBatch.from_arrays([source], names=[SOURCE])
    return graph.known(events)
