"""Rank after reachability: the best k, relaxed, of the subscriptions that an event comes to through a graph.

Whether nodes and edges let an event pass is strict. Of the subscriptions at the nodes that are reached the
clauses count, at least one of which must hold. A subscription that has no filter of its own, because a node
serves it, is one clause that always holds and weighs 1.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.rooms import CLAUSES
from headgate.core.subscription import Subscription
from headgate.errors import SubscriptionError
from headgate.graph.model import SUBSCRIPTION
from headgate.graph.ranked.ranked import find, hanging, ranking_of, served, servers
from headgate.ranking.filters.clause_index import ClauseIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.protocol import ContentRoom
    from headgate.core.event import Event, Id
    from headgate.core.ids import Ids
    from headgate.core.ranks import Best, Weights
    from headgate.graph.base import Base
    from headgate.graph.changes.view import View
    from headgate.graph.index import GraphIndex
    from headgate.graph.model import Node
    from headgate.ranking.filters.explain import RankExplanation
    from headgate.ranking.rows import Rows

    Ints = NDArray[np.int64]


SERVED, GONE = -1, -2


class _Joined(NamedTuple):
    """The rows that the subscriptions of a view have, by place; -1 for none.

    `changes` is how often the clauses were changed.
    """

    view: View
    changes: int
    row: Ints


class ReachedClauses:
    """A graph, and the clauses of its subscriptions, which are changed through this only.

    Nodes and edges may be changed in the graph itself: what they serve is looked up before an answer.
    """

    def __init__(self, graph: GraphIndex, clauses: ClauseIndex, room: ContentRoom) -> None:
        self._graph = graph
        self._clauses = clauses
        self._room = room
        self._seen: View | None = None
        self._matched: tuple[Base, Ids, Ints] | None = None
        self._joined: _Joined | None = None

    @staticmethod
    def build(
        nodes: Iterable[Node], subscriptions: Iterable[Subscription], *, room: ContentRoom
    ) -> ClauseIndex:
        """Index the clauses of subscriptions, and those that only nodes name."""
        given = list(subscriptions)
        known = {subscription.id for subscription in given}
        served = dict.fromkeys(node.subscription for node in nodes if node.subscription not in known)
        given += [
            Subscription(identity, room.always, room.dialect) for identity in served if identity is not None
        ]
        return ClauseIndex.build(given, room=room)

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot of the graph with the clauses inside; `source` says what it was built from."""
        # Whoever changes subscriptions takes this lock first, and then that of the graph.
        with self._clauses.moments.lock:
            self._graph.save(path, source=source, inside={CLAUSES: self._save_clauses})

    def compact(self) -> None:
        """Number the graph anew with all its changes, and fold those of the clauses."""
        with self._clauses.moments.lock:
            self._graph.compact()
            self._clauses.compact()

    def _save_clauses(self, path: Path) -> None:
        """Write a snapshot of the clauses, without those of subscriptions that the graph has lost."""
        with self._clauses.moments.lock:
            view = self._graph.view
            self._catch_up(view)
            rows = self._clauses.rows
            kept = np.zeros(rows.count, np.bool_)
            kept[self.rows_of(view)[served(view)]] = True
            for row in np.flatnonzero(~kept & ~rows.gone).tolist():
                self._clauses.unsubscribe(rows.id(row))
            self._clauses.save(path)

    def subscribe(self, subscription: Subscription) -> None:
        """Hang a subscription at its node; refuses what the graph refuses, and weights that do not fit."""
        with self._clauses.moments.lock:
            self._clauses.check(subscription)
            self._graph.subscribe(subscription)
            if subscription.id in self._clauses:
                # Its node was removed.
                self._clauses.unsubscribe(subscription.id)
            self._clauses.subscribe(subscription)

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription; refuses one that is not there."""
        with self._clauses.moments.lock:
            self._graph.unsubscribe(identity)
            if identity in self._clauses:
                self._clauses.unsubscribe(identity)

    def set_weights(self, identity: Id, weights: Weights | None) -> None:
        """Give the clauses of a subscription other weights."""
        with self._clauses.moments.lock:
            view = self._graph.view
            self._catch_up(view)
            # A node that was removed takes away what hung at it; its clauses stay until they are saved.
            if self._clauses.rows.find(identity) not in self.rows_of(view)[served(view)]:
                raise SubscriptionError(f"there is no subscription {identity!r} here")
            self._clauses.set_weights(identity, weights)

    def top(self, event: Event, k: int, *, factors: Mapping[str, float] | None = None) -> list[Best]:
        """List the best k of the subscriptions that an event comes to and of which anything holds."""
        return self._clauses.top(event, k, factors=factors, admitted=self._admission(event))

    def explain(
        self, event: Event, identity: Id, k: int, *, factors: Mapping[str, float] | None = None
    ) -> RankExplanation:
        """Say why a subscription has its rank, and what it lacked to enter the best k."""
        admitted = self._admission(event)
        found = self._clauses.explain(event, identity, k, factors=factors, admitted=admitted)
        if find(admitted.view, identity) in admitted.places:
            return found
        return replace(found, blocked=tuple(self._graph.explain(event, identity).lines()))

    def _admission(self, event: Event) -> _Admission:
        view = self._graph.view
        self._catch_up(view)
        return _Admission(self, view, hanging(view, event))

    def _catch_up(self, view: View) -> None:
        """Index what the graph serves since somebody changed its nodes."""
        if view is self._seen:
            return
        with self._clauses.moments.lock:
            places = served(view)
            for place in places[self.rows_of(view)[places] < 0].tolist():
                identity, text = view.subscription_id(place), _filter_at(view, place)
                self._clauses.subscribe(Subscription(identity, text or self._room.always, self._room.dialect))
            self._seen = view

    def rows_of(self, view: View) -> Ints:
        """Return the row of each subscription of a view, by place; -1 for none."""
        joined, changes = self._joined, self._clauses.moments.count
        if joined is not None and joined.view is view and joined.changes == changes:
            return joined.row
        rows = self._clauses.rows
        later: Sequence[Id] = [] if view.later is None else view.later.subscription_ids
        row = np.concatenate([self._base_rows(view.base, rows.base), np.full(len(later), -1, np.int64)])
        row[rows.gone[row]] = -1
        first = len(row) - len(later)
        for at, identity in enumerate(later, first):
            row[at] = rows.find(identity)
        behind = set(later)
        for identity in rows.later:
            if identity in behind:
                continue
            at = find(view, identity)
            if at >= 0:
                row[at] = rows.find(identity)
        self._joined = _Joined(view, changes, row)
        return row

    def _base_rows(self, base: Base, ids: Ids) -> Ints:
        """Return the row of each subscription of a base among other ids, by place; -1 for none."""
        matched = self._matched
        if matched is None or matched[0] is not base or matched[1] is not ids:
            wanted, known = base.subscription_array, ids.to_arrow()
            found = np.full(len(wanted), -1, np.int64)
            if wanted.type == known.type:
                # The overloads are about types that are known before; these are not.
                compute: Any = import_module("pyarrow.compute")
                found = np.asarray(compute.index_in(wanted, value_set=known).fill_null(-1), np.int64)
            self._matched = matched = (base, ids, found)
        return matched[2].copy()


def own_filter(view: View, subscription: Id) -> str | None:
    """Return the filter of a subscription, if it has one of its own; refuses one that is not served."""
    place = find(view, subscription)
    if place < 0 or not servers(view, place):
        raise SubscriptionError(f"there is no subscription {subscription!r} here")
    return _filter_at(view, place)


def own_vertices(view: View) -> Ints:
    """List the vertex that has the filter of each subscription, by place.

    It is SERVED where only nodes serve it, and GONE where nothing does.
    """
    ranks = ranking_of(view).ranks
    serves = ranks.serves
    hung = np.flatnonzero((serves >= 0) & (ranks.stands_for == SUBSCRIPTION))[::-1]
    found = np.full(view.subscriptions, GONE, np.int64)
    found[serves[serves >= 0]] = SERVED
    # Of several the first counts, which is written last.
    found[serves[hung]] = hung
    return found


def comes_to(view: View, event: Event, subscription: Id) -> bool:
    """Tell whether an event comes to a subscription, whether or not its own filter holds."""
    return find(view, subscription) in hanging(view, event)


def _filter_at(view: View, place: int) -> str | None:
    hung = [vertex for vertex in servers(view, place) if view.stands_for(vertex)[0] == SUBSCRIPTION]
    return view.filter_of(hung[0]) if hung else None


class _Admission(NamedTuple):
    """The subscriptions that an event comes to, by place of a view."""

    owner: ReachedClauses
    view: View
    places: Ints

    def admitted(self, rows: Rows) -> NDArray[np.bool_]:
        """Tell of each row whether it is one of them."""
        found = np.zeros(rows.count, np.bool_)
        row = self.owner.rows_of(self.view)[self.places]
        found[row[row >= 0]] = True
        return found
