"""An event's way through a graph: the nodes and edges that it passed, and where it was stopped and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headgate.graph.model import EDGE, NODE, SUBSCRIPTION

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.contents.protocol import Verdict
    from headgate.core.event import Event, Id
    from headgate.graph.changes.view import View

ENTERED, PASSED, STOPPED = "entered", "passed", "stopped"
"""What became of an event at a node: it came in there; it went through; the filter failed."""


@dataclass(frozen=True)
class NodeTrace:
    """A node that the event came to."""

    id: Id
    state: str
    subscriptions: int
    """How many hang there."""
    served: int
    """How many of these get the event."""
    verdict: Verdict | None = None
    """Why the event was stopped."""


@dataclass(frozen=True)
class EdgeTrace:
    """An edge that leaves a node that the event passed, or came in at."""

    source: Id
    target: Id
    state: str
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Trace:
    """An event's way, breadth first."""

    nodes: tuple[NodeTrace, ...]
    edges: tuple[EdgeTrace, ...]
    passed: int
    """Nodes that it passed, also those that are not listed."""
    served: int
    """Subscriptions that get it, also those at nodes that are not listed."""
    cut: bool
    """Whether there are more nodes than were asked for."""


def trace(view: View, event: Event, most: int) -> Trace:
    """Follow an event from its source; lists at most so many nodes, and the edges between these."""
    return _Tracing(view, event, most).run()


def hung_at(view: View, vertex: int) -> NDArray[np.int64]:
    """Find the vertices of the subscriptions that hang at a node."""
    children = np.array(view.children(vertex), np.int64)
    found: NDArray[np.int64] = children[kinds_of(view)[children] == SUBSCRIPTION]
    if view.later is not None:
        place = found - view.arrays.roots
        found = found[view.serving[place >> 6] >> (place & 63).astype(np.uint64) & np.uint64(1) > 0]
    return found


def names_at(view: View, node: Id) -> list[Id]:
    """List the subscriptions that hang at a node, in the order of their ids."""
    vertex = view.find(node)
    if vertex < 0:
        return []
    places = {view.serves(each) for each in hung_at(view, vertex).tolist()} - {-1}
    return sorted((view.subscription_id(place) for place in places), key=str)


def kinds_of(view: View) -> NDArray[np.uint8]:
    """Return what each vertex stands for."""
    kinds = view.arrays.stands_for
    return kinds if view.later is None else np.concatenate([kinds, view.later.stands_for])


class _Tracing:
    def __init__(self, view: View, event: Event, most: int) -> None:
        self._view = view
        self._event = event
        self._most = most
        self._source = view.source(event)
        self._kinds = kinds_of(view)
        self._reached = np.zeros(len(self._kinds), bool)
        self._reached[view.walk(event)] = True
        self._seen = {self._source}
        self._queue = [self._source]
        self._cut = False
        self._nodes: list[NodeTrace] = []
        self._edges: list[EdgeTrace] = []

    def run(self) -> Trace:
        for vertex in self._queue:
            self._visit(vertex)
        reached = np.flatnonzero(self._reached)
        reached = reached[reached != self._source]
        return Trace(
            tuple(self._nodes),
            tuple(self._edges),
            int(np.count_nonzero(self._kinds[reached] == NODE)),
            self._served(np.flatnonzero(self._reached)),
            self._cut,
        )

    def _served(self, vertices: NDArray[np.int64]) -> int:
        found = vertices[self._kinds[vertices] == SUBSCRIPTION].tolist()
        return sum(self._view.serves(vertex) >= 0 for vertex in found)

    def _visit(self, vertex: int) -> None:
        view, own = self._view, self._name(vertex)
        hung = hung_at(view, vertex)
        entered = vertex == self._source
        if not entered and not self._reached[vertex]:
            why = view.explain_filter(self._event, vertex)
            self._nodes.append(NodeTrace(own, STOPPED, len(hung), 0, why))
            return
        served = int(np.count_nonzero(self._reached[hung]))
        self._nodes.append(NodeTrace(own, ENTERED if entered else PASSED, len(hung), served))
        for child in view.children(vertex):
            kind = self._kinds[child]
            if kind == NODE and self._lives(child) and self._wants(child):
                self._edges.append(EdgeTrace(own, self._name(child), PASSED))
            elif kind == EDGE:
                self._follow(child)

    def _follow(self, vertex: int) -> None:
        """Follow an edge that has a filter."""
        source, target = self._view.edge_ends(self._view.stands_for(vertex)[1])
        (ahead,) = self._view.children(vertex)
        if not self._lives(ahead):
            return
        if self._reached[vertex]:
            if self._wants(ahead):
                self._edges.append(EdgeTrace(source, target, PASSED))
            return
        # Where a stop leads to is not looked at: the event came no further.
        why = self._view.explain_filter(self._event, vertex)
        self._edges.append(EdgeTrace(source, target, STOPPED, why))

    def _lives(self, vertex: int) -> bool:
        """Tell whether a node is still there: what led to one that was removed may be."""
        return self._view.find(self._name(vertex)) == vertex

    def _wants(self, vertex: int) -> bool:
        """Tell whether a node is among those that are listed, and have it visited."""
        if vertex in self._seen:
            return True
        if len(self._queue) >= self._most:
            self._cut = True
            return False
        self._seen.add(vertex)
        self._queue.append(vertex)
        return True

    def _name(self, vertex: int) -> Id:
        return self._view.node_id(self._view.stands_for(vertex)[1])
