"""Changes to a running graph, on top of a base that stays as it is.

    new vertices     get numbers behind those of the base
    new children     replace the list of the vertex that they belong to
    new filters      go to a live index of their own, each under a number that is never used again, so that a
                     view knows which of them are its own
    a root that something leads to     gets a new vertex: roots have no position

A view copies what changed since the last one, and shares the rest with it.

A new edge that leads against the numbering turns skipping off: one that joins two components to one does, as
section 3.3 says, and so does one that merely comes late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.columns import Growing
from headgate.core.arguments import check_id
from headgate.core.subscription import SQL, Subscription
from headgate.errors import GraphError, SubscriptionError
from headgate.graph.changes.rows import NO_CHILDREN, ChangedRows, Copied, GrowingBits
from headgate.graph.changes.view import Additions, View
from headgate.graph.model import EDGE, NODE, SUBSCRIPTION, fixed_score
from headgate.graph.walk.walking import Overlay, unchanged

if TYPE_CHECKING:
    from headgate.contents.protocol import Content, ContentRoom
    from headgate.core.event import Id
    from headgate.core.ids import Ids
    from headgate.core.ranks import Score
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
        self._rows = ChangedRows(base.arrays)
        self._stands_for = Growing(np.uint8)
        self._place = Growing(np.int32)
        self._serves = Copied(Growing(np.int32))
        self._score = Growing(np.float64)
        self._pass_cost = Growing(np.float64)
        self._component = Growing(np.int32)
        self._component.extend(base.arrays.component)
        self._moved: Copied[dict[Id, int]] = Copied({})
        # Vertices of the base whose node has another vertex now, or none.
        self._left: set[int] = set()
        self._node_ids: Copied[list[Id]] = Copied([])
        self._node_kinds: Copied[list[str]] = Copied([])
        self._subscription_ids: Copied[list[Id]] = Copied([])
        self._subscription_place: dict[Id, int] = {}
        # New vertices that serve a subscription, by its place.
        self._servants: dict[int, list[int]] = {}
        self._rescored: Copied[dict[int, float]] = Copied({})
        self._edge_ends: Copied[list[tuple[Id, Id]]] = Copied([])
        self._filters: Content | None = None
        self._filter_vertex = Copied(Growing(np.int64))
        self._filters_of: dict[int, list[int]] = {}
        self._open = GrowingBits(base.arrays.open)
        self._dirty = GrowingBits(np.zeros(0, np.uint64))
        self._serving = GrowingBits(base.arrays.serving)
        self._silent: set[int] = set()
        self._mute: Copied[set[int]] = Copied(set())
        self._skipping = True

    # What users change

    def add_node(self, node: Node) -> None:
        """Add a node; refuses an id that is there."""
        _check_id(node.id, self._base.names.node_ids, self._node_ids.value, "node")
        if node.subscription is not None:
            self._check_subscription(node.subscription)
        if self._find(node.id) >= 0:
            raise GraphError(f"node {node.id!r} is in the graph already: remove it first")
        filter_number = self._add_filter(node.filter, node.dialect)
        number = len(self._base.names.node_ids) + len(self._node_ids.value)
        self._node_ids.changing().append(node.id)
        self._node_kinds.changing().append(node.kind)
        vertex = self._new_vertex(NODE, number, filter_number, pass_cost=node.cost)
        self._move(node.id, vertex)
        if node.subscription is not None:
            self._serve(vertex, node.subscription, node.score)

    def remove_node(self, identity: Id) -> None:
        """Remove a node, its edges, and the subscriptions that hang nowhere else."""
        vertex = self._node(identity)
        children = self._rows[vertex].child.tolist()
        hanging = [child for child in children if self._stand(child)[0] == SUBSCRIPTION]
        self._close(vertex)
        self._rows[vertex] = NO_CHILDREN
        self._move(identity, -1)
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
        edge_number = len(self._base.names.edge_ends) + len(self._edge_ends.value)
        self._edge_ends.changing().append((edge.source, edge.target))
        middle = self._new_vertex(EDGE, edge_number, filter_number)
        self._lead(source, middle, edge.cost)
        self._lead(middle, target, 0.0)

    def remove_edge(self, source: Id, target: Id) -> None:
        """Remove every edge from one node to another; refuses if there is none."""
        begin, end = self._node(source), self._node(target)
        row = self._rows[begin]
        split = [
            child
            for child in row.child.tolist()
            if self._stand(child)[0] == EDGE and end in self._rows[child]
        ]
        if end not in row and not split:
            raise GraphError(f"there is no edge from {source!r} to {target!r}")
        self._rows[begin] = row.without([end, *split])
        for middle in split:
            self._close(middle)

    def set_filter(self, identity: Id, text: str | None, dialect: str = SQL) -> None:
        """Give a node another filter, or none."""
        self._node(identity)
        number = self._add_filter(text, dialect)
        vertex = self._reachable(identity)
        self._forget_filters(vertex)
        position = vertex - self._arrays.roots
        self._dirty.set(position)
        self._open.clear(position)
        if number is None:
            self._open.set(position)
        else:
            self._give_filter(number, vertex)

    def prepare(self, subscription: Subscription) -> Any:
        """Compile the filter of a subscription for `subscribe`, or refuse what else is wrong with it."""
        self._check_subscription(subscription.id)
        if subscription.node is None:
            raise SubscriptionError(f"subscription {subscription.id!r} is attached to no node: give `node`")
        try:
            self._node(subscription.node)
        except GraphError as error:
            error.names_it = False
            raise
        fixed_score(subscription.score, subscription.id)
        return self._late_filters().prepare(subscription)

    def subscribe(self, subscription: Subscription, prepared: Any = None) -> None:
        """Hang a subscription at its node; refuses an id that is there."""
        prepared = prepared or self.prepare(subscription)
        if self._servers(subscription.id):
            raise SubscriptionError(f"id {subscription.id!r} is subscribed already: unsubscribe it first")
        assert subscription.node is not None
        node, score = self._node(subscription.node), fixed_score(subscription.score, subscription.id)
        number = self._add_filter(subscription.filter, subscription.dialect, prepared)
        served = self._subscription(subscription.id)
        self._rescored.changing().pop(served, None)
        vertex = self._new_vertex(SUBSCRIPTION, served, number, serves=served, score=score)
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

    def set_score(self, identity: Id, score: Score) -> None:
        """Give a subscription another score, wherever it is served; refuses one that is not there."""
        if not self._servers(identity):
            raise SubscriptionError(f"there is no subscription {identity!r} here")
        self._rescored.changing()[self._known_subscription(identity)] = fixed_score(score, identity)

    def serves(self, identity: Id) -> bool:
        """Tell whether a subscription is served anywhere."""
        return bool(self._servers(identity))

    def view(self) -> View:
        """Return the graph as it is now."""
        arrays = self._arrays
        count = arrays.vertices + self._stands_for.size
        words = (count - arrays.roots + 63) // 64
        rows = self._rows.lay_out(count)
        overlay = Overlay(
            swap=rows.swap,
            start=rows.start,
            child=rows.child,
            open=self._open.copy(words),
            dirty=self._dirty.copy(words),
            component=self._component.used,
        )
        later = Additions(
            stands_for=self._stands_for.used,
            place=self._place.used,
            serves=self._serves.copy().used,
            score=self._score.used,
            pass_cost=self._pass_cost.used,
            moved=self._moved.copy(),
            mute=np.array(sorted(self._mute.copy()), np.int64),
            node_ids=self._node_ids.copy(),
            node_kinds=self._node_kinds.copy(),
            subscription_ids=self._subscription_ids.copy(),
            rescored=self._rescored.copy(),
            edge_ends=self._edge_ends.copy(),
            filters=self._filters,
            filter_vertex=self._filter_vertex.copy().used,
        )
        serving = self._serving.copy(words)
        return View(self._base, overlay, rows.cost, later, serving, skipping=self._skipping)

    # Vertices

    def _find(self, identity: Id) -> int:
        vertex = self._moved.value.get(identity)
        return self._base.find(identity) if vertex is None else vertex

    def _move(self, identity: Id, vertex: int) -> None:
        """Let another vertex stand for a node, or none (-1)."""
        before = self._base.find(identity)
        if before >= 0:
            self._left.add(before)
        self._moved.changing()[identity] = vertex

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
        row = self._rows[vertex]
        self._rows[moved] = row
        if len(row.child):
            # The new vertex comes behind all of them.
            self._skipping = False
        # The old vertex stands for nobody any more.
        self._rows[vertex] = NO_CHILDREN
        self._silence(vertex)
        self._move(identity, moved)
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
        vertex = self._arrays.vertices + self._stands_for.size
        self._component.append(int(self._component.used[-1]) + 1 if vertex else 0)
        self._stands_for.append(stands_for)
        self._place.append(place)
        self._serves.changing().append(-1)
        self._score.append(score)
        self._pass_cost.append(pass_cost)
        if serves >= 0:
            self._set_serving(vertex, serves)
        if filter_number is None:
            self._open.set(vertex - self._arrays.roots)
        else:
            self._give_filter(filter_number, vertex)
        return vertex

    def _set_serving(self, vertex: int, subscription: int) -> None:
        """Let a new vertex serve a subscription."""
        self._serves.changing().used[vertex - self._arrays.vertices] = subscription
        self._serving.set(vertex - self._arrays.roots)
        self._servants.setdefault(subscription, []).append(vertex)

    def _stand(self, vertex: int) -> tuple[int, int]:
        first = self._arrays.vertices
        if vertex < first:
            return int(self._arrays.stands_for[vertex]), int(self._arrays.place[vertex])
        return int(self._stands_for.used[vertex - first]), int(self._place.used[vertex - first])

    def _close(self, vertex: int) -> None:
        """Let nothing pass a vertex any more."""
        position = vertex - self._arrays.roots
        if position >= 0:
            self._dirty.set(position)
            self._open.clear(position)
        self._forget_filters(vertex)
        self._silence(vertex)

    def _silence(self, vertex: int) -> None:
        """Let a vertex serve nobody any more."""
        position, own = vertex - self._arrays.roots, vertex - self._arrays.vertices
        self._silent.add(position)
        if position < 0:
            self._mute.changing().add(vertex)
            return
        self._serving.clear(position)
        if own >= 0:
            served = int(self._serves.value.used[own])
            if served >= 0:
                self._servants[served].remove(vertex)
                self._serves.changing().used[own] = -1

    def _hangs(self, vertex: int) -> bool:
        """Tell whether a node still leads to a subscription."""
        arrays = self._arrays
        first = np.flatnonzero(arrays.child == vertex)
        parents = set((np.searchsorted(arrays.child_start, first, side="right") - 1).tolist())
        parents = {v for v in parents if v not in self._rows}
        return bool(parents) or self._rows.leads_to(vertex)

    # Children

    def _lead(self, source: int, target: int, cost: float) -> None:
        """Let one vertex lead to another; of parallel edges the cheapest counts."""
        self._rows[source] = self._rows[source].joined(target, cost)
        components = self._component.used
        if source == target or components[source] > components[target]:
            self._skipping = False

    # Filters and subscriptions

    def _late_filters(self) -> Content:
        if self._filters is None:
            self._filters = self._room.build([])
        return self._filters

    def _add_filter(self, text: str | None, dialect: str, prepared: Any = None) -> int | None:
        """Index a filter, before anything is changed: it may be refused if it is not prepared."""
        if text is None:
            return None
        number = self._filter_vertex.value.size
        self._late_filters().subscribe(Subscription(number, text, dialect), prepared)
        self._filter_vertex.changing().append(-1)
        return number

    def _give_filter(self, number: int, vertex: int) -> None:
        self._filter_vertex.changing().used[number] = vertex
        self._filters_of.setdefault(vertex, []).append(number)

    def _forget_filters(self, vertex: int) -> None:
        for number in self._filters_of.pop(vertex, ()):
            self._filter_vertex.changing().used[number] = -1

    def _subscription(self, identity: Id) -> int:
        """Return the place of a subscription's id, a new one if need be."""
        number = self._known_subscription(identity)
        if number < 0:
            number = len(self._base.names.subscription_ids) + len(self._subscription_ids.value)
            self._subscription_place[identity] = number
            self._subscription_ids.changing().append(identity)
        return number

    def _known_subscription(self, identity: Id) -> int:
        """Return the place of a subscription's id, -1 for none."""
        number = self._base.names.subscription_ids.find(identity)
        return number if number >= 0 else self._subscription_place.get(identity, -1)

    def _servers(self, identity: Id) -> list[int]:
        """List the vertices that serve a subscription."""
        subscription = self._known_subscription(identity)
        if subscription < 0:
            return []
        roots = self._arrays.roots
        base = [v for v in self._base.servers(subscription) if v - roots not in self._silent]
        return [v for v in base if v >= roots or v not in self._left] + self._servants.get(subscription, [])

    def _serve(self, vertex: int, subscription: Id, score: float) -> None:
        """Let a new node serve a subscription: itself, or by leading to where it hangs."""
        servers = self._servers(subscription)
        for server in servers:
            if self._stand(server)[0] == SUBSCRIPTION:
                self._lead(vertex, server, 0.0)
                return
        own, served = vertex - self._arrays.vertices, self._subscription(subscription)
        rescored = self._rescored.value.get(served)
        if not servers:
            self._rescored.changing().pop(served, None)
        elif rescored is not None:
            # Several nodes may serve one subscription: the highest score counts.
            self._rescored.changing()[served] = max(rescored, score)
        # No view has this vertex yet.
        self._score.used[own] = score
        self._set_serving(vertex, served)

    def _check_subscription(self, identity: Id) -> None:
        later = self._subscription_ids.value
        _check_id(identity, self._base.names.subscription_ids, later, "subscription")


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
