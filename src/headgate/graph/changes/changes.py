"""Changes to a running graph, on top of a base that stays as it is.

    new vertices     get numbers behind those of the base
    new children     replace the list of the vertex that they belong to
    new filters      go to a live index of their own, each under a number that is never used again, so that a
                     view knows which of them are its own
    a root that something leads to     gets a new vertex: roots have no position

A new edge that leads against the numbering turns skipping off: one that joins two components to one does, as
section 3.3 says, and so does one that merely comes late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.ids import check_id
from headgate.core.subscription import SQL, Subscription
from headgate.errors import GraphError, SubscriptionError
from headgate.graph.arrays import bits_of
from headgate.graph.changes.view import Additions, View
from headgate.graph.model import EDGE, NODE, SUBSCRIPTION
from headgate.graph.walk.walking import Overlay, unchanged

if TYPE_CHECKING:
    from headgate.contents.protocol import Content, ContentRoom
    from headgate.core.event import Id
    from headgate.core.ids import Ids
    from headgate.graph.base import Base
    from headgate.graph.model import Edge, Node


def frozen_view(base: Base) -> View:
    """Return the view of a graph in which nothing changed."""
    return View(base, unchanged(base.arrays), np.zeros(0), None, base.arrays.serving, skipping=True)


class Changes:
    """What was changed since the base was built. One writer at a time."""

    def __init__(self, base: Base, room: ContentRoom) -> None:
        self._base = base
        self._room = room
        self._arrays = base.arrays
        self._children: dict[int, dict[int, float]] = {}
        self._stands_for: list[int] = []
        self._place: list[int] = []
        self._serves: list[int] = []
        self._score: list[float] = []
        self._pass_cost: list[float] = []
        self._moved: dict[Id, int] = {}
        self._node_ids: list[Id] = []
        self._node_kinds: list[str] = []
        self._subscription_ids: list[Id] = []
        self._subscription_place: dict[Id, int] = {}
        self._rescored: dict[int, float] = {}
        self._edge_ends: list[tuple[Id, Id]] = []
        self._filters: Content | None = None
        self._filter_vertex: list[int] = []
        self._open: set[int] = set()
        self._closed: set[int] = set()
        self._silent: set[int] = set()
        self._skipping = True

    # What users change

    def add_node(self, node: Node) -> None:
        """Add a node; refuses an id that is there."""
        self._check_id(node.id, self._base.names.node_ids, self._node_ids, "node")
        if node.subscription is not None:
            self._check_id(
                node.subscription, self._base.names.subscription_ids, self._subscription_ids, "subscription"
            )
        if self._find(node.id) >= 0:
            raise GraphError(f"node {node.id!r} is in the graph already: remove it first")
        filter_number = self._add_filter(node.filter, node.dialect)
        place = len(self._base.names.node_ids) + len(self._node_ids)
        self._node_ids.append(node.id)
        self._node_kinds.append(node.kind)
        vertex = self._new_vertex(NODE, place, filter_number, pass_cost=node.cost)
        self._moved[node.id] = vertex
        if node.subscription is not None:
            self._serve(vertex, node.subscription, node.score)

    def remove_node(self, identity: Id) -> None:
        """Remove a node, its edges, and the subscriptions that hang nowhere else."""
        vertex = self._node(identity)
        hanging = [child for child in self._children_of(vertex) if self._stand(child)[0] == SUBSCRIPTION]
        self._close(vertex)
        self._children[vertex] = {}
        self._moved[identity] = -1
        for child in hanging:
            if not self._hangs(child):
                self._close(child)

    def add_edge(self, edge: Edge) -> None:
        """Add an edge between nodes that are there."""
        self._node(edge.source)
        self._node(edge.target)
        filter_number = self._add_filter(edge.filter, edge.dialect)
        # The target first: it may be the source too, and get another vertex.
        target = self._reachable(edge.target)
        source = self._node(edge.source)
        if filter_number is None:
            self._lead(source, target, edge.cost)
            return
        place = len(self._base.names.edge_ends) + len(self._edge_ends)
        self._edge_ends.append((edge.source, edge.target))
        middle = self._new_vertex(EDGE, place, filter_number)
        self._lead(source, middle, edge.cost)
        self._lead(middle, target, 0.0)

    def remove_edge(self, source: Id, target: Id) -> None:
        """Remove every edge from one node to another; refuses if there is none."""
        begin, end = self._node(source), self._node(target)
        children = self._own(begin)
        split = [
            child for child in children if self._stand(child)[0] == EDGE and end in self._children_of(child)
        ]
        if end not in children and not split:
            raise GraphError(f"there is no edge from {source!r} to {target!r}")
        for child in (end, *split):
            children.pop(child, None)
        for middle in split:
            self._close(middle)

    def set_filter(self, identity: Id, text: str | None, dialect: str = SQL) -> None:
        """Give a node another filter, or none."""
        self._node(identity)
        number = self._add_filter(text, dialect)
        vertex = self._reachable(identity)
        self._forget_filters(vertex)
        position = vertex - self._arrays.roots
        self._closed.add(position)
        self._open.discard(position)
        if number is None:
            self._open.add(position)
        else:
            self._filter_vertex[number] = vertex

    def subscribe(self, subscription: Subscription) -> None:
        """Hang a subscription at its node; refuses an id that is there."""
        self._check_id(
            subscription.id, self._base.names.subscription_ids, self._subscription_ids, "subscription"
        )
        if self._servers(subscription.id):
            raise SubscriptionError(f"id {subscription.id!r} is subscribed already: unsubscribe it first")
        if subscription.node is None:
            raise SubscriptionError(f"subscription {subscription.id!r} is attached to no node: give `node`")
        node = self._node(subscription.node)
        number = self._add_filter(subscription.filter, subscription.dialect)
        place = self._subscription(subscription.id)
        self._rescored.pop(place, None)
        vertex = self._new_vertex(SUBSCRIPTION, place, number, serves=place, score=subscription.score)
        self._lead(node, vertex, 0.0)

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription from all places; refuses one that is not there."""
        servers = self._servers(identity)
        if not servers:
            raise SubscriptionError(f"there is no subscription {identity!r} here")
        for vertex in servers:
            if self._stand(vertex)[0] == SUBSCRIPTION:
                self._close(vertex)
            self._silence(vertex)

    def set_score(self, identity: Id, score: float) -> None:
        """Give a subscription another score, wherever it is served; refuses one that is not there."""
        if not self._servers(identity):
            raise SubscriptionError(f"there is no subscription {identity!r} here")
        self._rescored[self._known_subscription(identity)] = score

    def serves(self, identity: Id) -> bool:
        """Tell whether a subscription is served anywhere."""
        return bool(self._servers(identity))

    def view(self) -> View:
        """Return the graph as it is now."""
        arrays, first = self._arrays, self._arrays.vertices
        count = first + len(self._stands_for)
        words = (count - arrays.roots + 63) // 64
        swap = np.full(count, -1, np.int32)
        rows = [sorted(children.items()) for children in self._children.values()]
        swap[list(self._children)] = np.arange(len(rows), dtype=np.int32)
        # Vertices that came later have no row in the base, not even an empty one.
        bare = np.flatnonzero(swap[first:] < 0) + first
        swap[bare] = len(rows)
        sizes = [len(row) for row in rows] + [0]
        start = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
        opened, serving = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
        opened[: arrays.words], serving[: arrays.words] = arrays.open, arrays.serving
        dirty = bits_of(np.array(sorted(self._closed), np.int64), words)
        opened = (opened & ~dirty) | bits_of(np.array(sorted(self._open), np.int64), words)
        speaking = np.flatnonzero(np.array(self._serves, np.int64) >= 0) + first - arrays.roots
        serving |= bits_of(speaking, words)
        silent = np.array(sorted(self._silent), np.int64)
        serving &= ~bits_of(silent[silent >= 0], words)
        last = int(arrays.component[-1]) + 1 if first else 0
        overlay = Overlay(
            swap=swap,
            start=start,
            child=np.array([child for row in rows for child, _ in row], np.int32),
            open=opened,
            dirty=dirty,
            component=np.concatenate([arrays.component, last + np.arange(count - first, dtype=np.int32)]),
        )
        later = Additions(
            stands_for=np.array(self._stands_for, np.uint8),
            place=np.array(self._place, np.int32),
            serves=np.array(self._serves, np.int32),
            score=np.array(self._score, np.float64),
            pass_cost=np.array(self._pass_cost, np.float64),
            moved=dict(self._moved),
            mute=silent[silent < 0] + arrays.roots,
            node_ids=list(self._node_ids),
            node_kinds=list(self._node_kinds),
            subscription_ids=list(self._subscription_ids),
            rescored=dict(self._rescored),
            edge_ends=list(self._edge_ends),
            filters=self._filters,
            filter_vertex=np.array(self._filter_vertex, np.int64),
        )
        costs = np.array([cost for row in rows for _, cost in row], np.float64)
        return View(self._base, overlay, costs, later, serving, skipping=self._skipping)

    # Vertices

    def _find(self, identity: Id) -> int:
        found = self._moved.get(identity)
        return self._base.find(identity) if found is None else found

    def _node(self, identity: Id) -> int:
        vertex = self._find(identity)
        if vertex < 0:
            raise GraphError(f"there is no node {identity!r} in the graph")
        return vertex

    def _reachable(self, identity: Id) -> int:
        """Find the vertex of a node that something may lead to."""
        vertex = self._node(identity)
        if vertex >= self._arrays.roots:
            return vertex
        text = self._base.content.filter(vertex) if vertex in self._base.content else None
        filter_number = self._add_filter(text, self._room.dialect)
        moved = self._new_vertex(
            NODE,
            int(self._arrays.place[vertex]),
            filter_number,
            serves=-1 if vertex - self._arrays.roots in self._silent else int(self._arrays.serves[vertex]),
            score=float(self._arrays.score[vertex]),
            pass_cost=float(self._arrays.pass_cost[vertex]),
        )
        for child, cost in self._own(vertex).items():
            self._lead(moved, child, cost)
        # The old vertex stands for nobody any more.
        self._children[vertex] = {}
        self._silent.add(vertex - self._arrays.roots)
        self._moved[identity] = moved
        return moved

    def _new_vertex(
        self,
        stands_for: int,
        place: int,
        filter_number: int | None,
        *,
        serves: int = -1,
        score: float = 0.0,
        pass_cost: float = 0.0,
    ) -> int:
        vertex = self._arrays.vertices + len(self._stands_for)
        self._stands_for.append(stands_for)
        self._place.append(place)
        self._serves.append(serves)
        self._score.append(score)
        self._pass_cost.append(pass_cost)
        if filter_number is None:
            self._open.add(vertex - self._arrays.roots)
        else:
            self._filter_vertex[filter_number] = vertex
        return vertex

    def _stand(self, vertex: int) -> tuple[int, int]:
        first = self._arrays.vertices
        if vertex < first:
            return int(self._arrays.stands_for[vertex]), int(self._arrays.place[vertex])
        return self._stands_for[vertex - first], self._place[vertex - first]

    def _close(self, vertex: int) -> None:
        """Let nothing pass a vertex any more."""
        position = vertex - self._arrays.roots
        if position >= 0:
            self._closed.add(position)
            self._open.discard(position)
        self._forget_filters(vertex)
        self._silence(vertex)

    def _silence(self, vertex: int) -> None:
        """Let a vertex serve nobody any more."""
        self._silent.add(vertex - self._arrays.roots)
        if vertex >= self._arrays.vertices:
            self._serves[vertex - self._arrays.vertices] = -1

    def _hangs(self, vertex: int) -> bool:
        """Tell whether a node still leads to a subscription."""
        arrays = self._arrays
        first = np.flatnonzero(arrays.child == vertex)
        parents = set((np.searchsorted(arrays.child_start, first, side="right") - 1).tolist())
        parents = {v for v in parents if v not in self._children}
        return bool(parents) or any(vertex in children for children in self._children.values())

    # Children

    def _children_of(self, vertex: int) -> dict[int, float]:
        found = self._children.get(vertex)
        if found is not None or vertex >= self._arrays.vertices:
            return found or {}
        first, last = self._arrays.child_start[vertex], self._arrays.child_start[vertex + 1]
        children, costs = self._arrays.child[first:last], self._arrays.child_cost[first:last]
        return dict(zip(children.tolist(), costs.tolist(), strict=True))

    def _own(self, vertex: int) -> dict[int, float]:
        """Return the children of a vertex, for changing them."""
        if vertex not in self._children:
            self._children[vertex] = self._children_of(vertex)
        return self._children[vertex]

    def _lead(self, source: int, target: int, cost: float) -> None:
        """Let one vertex lead to another; of parallel edges the cheapest counts."""
        children = self._own(source)
        children[target] = min(cost, children.get(target, cost))
        if source == target or self._component(source) > self._component(target):
            self._skipping = False

    def _component(self, vertex: int) -> int:
        first = self._arrays.vertices
        return int(self._arrays.component[vertex]) if vertex < first else first + vertex

    # Filters and subscriptions

    def _add_filter(self, text: str | None, dialect: str) -> int | None:
        """Index a filter, before anything is changed: it may be refused."""
        if text is None:
            return None
        if self._filters is None:
            self._filters = self._room.build([])
        number = len(self._filter_vertex)
        self._filters.subscribe(Subscription(number, text, dialect))
        self._filter_vertex.append(-1)
        return number

    def _forget_filters(self, vertex: int) -> None:
        self._filter_vertex = [-1 if owner == vertex else owner for owner in self._filter_vertex]

    def _subscription(self, identity: Id) -> int:
        """Return the place of a subscription's id, a new one if need be."""
        place = self._known_subscription(identity)
        if place < 0:
            place = len(self._base.names.subscription_ids) + len(self._subscription_ids)
            self._subscription_place[identity] = place
            self._subscription_ids.append(identity)
        return place

    def _known_subscription(self, identity: Id) -> int:
        """Return the place of a subscription's id, -1 for none."""
        place = self._base.names.subscription_ids.find(identity)
        return place if place >= 0 else self._subscription_place.get(identity, -1)

    def _servers(self, identity: Id) -> list[int]:
        """List the vertices that serve a subscription."""
        place = self._known_subscription(identity)
        if place < 0:
            return []
        first, roots = self._arrays.vertices, self._arrays.roots
        base = np.flatnonzero(self._arrays.serves == place).tolist()
        gone = {vertex for vertex in self._moved_from() if vertex < roots}
        later = [first + i for i, serves in enumerate(self._serves) if serves == place]
        return [v for v in base if v - roots not in self._silent and v not in gone] + later

    def _moved_from(self) -> list[int]:
        """List the vertices of the base whose node has another vertex now, or none."""
        return [self._base.find(identity) for identity in self._moved]

    def _serve(self, vertex: int, subscription: Id, score: float) -> None:
        """Let a new node serve a subscription: itself, or by leading to where it hangs."""
        self._check_id(
            subscription, self._base.names.subscription_ids, self._subscription_ids, "subscription"
        )
        servers = self._servers(subscription)
        for server in servers:
            if self._stand(server)[0] == SUBSCRIPTION:
                self._lead(vertex, server, 0.0)
                return
        own, place = vertex - self._arrays.vertices, self._subscription(subscription)
        if not servers:
            self._rescored.pop(place, None)
        elif place in self._rescored:
            # Several nodes may serve one subscription: the highest score counts.
            self._rescored[place] = max(self._rescored[place], score)
        self._serves[own], self._score[own] = place, score

    @staticmethod
    def _check_id(identity: Id, ids: Ids, later: list[Id], noun: str) -> None:
        try:
            check_id(identity)
        except SubscriptionError as error:
            raise GraphError(f"{noun}: {error}") from None
        known = ids[0] if len(ids) else (later[0] if later else identity)
        if isinstance(identity, int) is not isinstance(known, int):
            wanted = "whole numbers" if isinstance(known, int) else "text"
            named = "id" if noun == "subscription" else noun
            raise GraphError(f"{named} {identity!r} has the wrong type: ids here are {wanted}")
