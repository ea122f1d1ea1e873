"""The graph behind an engine: filters of nodes and edges, subscriptions in it, and their clauses.

Rank after reachability: the best k, relaxed, of the subscriptions that an event comes to through a graph.
Whether nodes and edges let an event pass is strict. Of the subscriptions at the nodes that are reached the
clauses count, at least one of which must hold. A subscription that has no filter of its own, because a node
serves it, is one clause that always holds and weighs 1.
"""

from __future__ import annotations

import weakref
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.ranks import EXACT, Best
from headgate.core.rooms import CLAUSES
from headgate.core.subscription import Subscription
from headgate.engine.backend import Backend
from headgate.errors import EventError, SubscriptionError
from headgate.graph.model import SUBSCRIPTION
from headgate.graph.ranked.ranked import find, hanging, ranking_of, served, servers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from headgate.contents.portions import Portion
    from headgate.contents.protocol import Content, ContentRoom
    from headgate.contents.results import Home
    from headgate.core.arrays import Bools, Ints
    from headgate.core.event import Event, Id
    from headgate.core.ids import Ids
    from headgate.core.ranks import Weights
    from headgate.engine.backend import Column, Events
    from headgate.engine.question import Top
    from headgate.graph.base import Base
    from headgate.graph.changes.view import View
    from headgate.graph.index import GraphIndex
    from headgate.graph.model import Node
    from headgate.graph.ranked.ranked import RankedMatch
    from headgate.ranking.filters.clause_index import ClauseIndex
    from headgate.ranking.filters.explain import RankExplanation
    from headgate.ranking.rows import RowIds


SERVED, GONE = -1, -2


class GraphFilters(Backend):
    """A graph, which ranks by score and way."""

    ranked = True
    routed = True

    def __init__(self, index: GraphIndex, room: ContentRoom) -> None:
        super().__init__(index, room)
        self._graph = index
        self._first = weakref.ref(index.view)
        self._own: tuple[View, Ints] | None = None

    # What is here

    def __len__(self) -> int:
        """Count the subscriptions that are served somewhere."""
        return len(self._served())

    def __contains__(self, identity: Id) -> bool:
        """Tell whether a subscription is served anywhere."""
        return self._graph.serves(identity)

    @property
    def built(self) -> Ids:
        """Return the ids of what was numbered."""
        return self._graph.base.names.subscription_ids

    @property
    def ids(self) -> list[Id]:
        """List the subscriptions that are served somewhere, sorted."""
        view = self._graph.view
        return sorted(view.subscription_id(number) for number in self._served())

    def _served(self) -> list[int]:
        places: list[int] = served(self._graph.view).tolist()
        return places

    @property
    def changed(self) -> bool:
        """Tell whether anything was changed, also if that was done in the graph itself."""
        return super().changed or self._first() is not self._graph.view

    @property
    def contents(self) -> list[Content]:
        """List the filters of what was numbered and of what came since."""
        view = self._graph.view
        late = None if view.later is None else view.later.filters
        return [view.base.content] if late is None else [view.base.content, late]

    @property
    def graph(self) -> GraphIndex:
        """Return the graph."""
        return self._graph

    def filter(self, identity: Id) -> str | None:
        """Return the text of a subscription's own filter, if it has one."""
        return own_filter(self._graph.view, identity)

    def homes(self, ids: Sequence[Id]) -> Iterable[Home | None]:
        """Find the filters of subscriptions at their vertices; one that has none of its own always holds."""
        view = self._graph.view
        if self._own is None or self._own[0] is not view:
            self._own = view, own_vertices(view)
        own = self._own[1]
        for identity in ids:
            number = find(view, identity)
            vertex = GONE if number < 0 else int(own[number])
            if vertex == GONE:
                yield None
            else:
                yield (view.filter_id(vertex) if vertex >= 0 else None) or self._always

    @cached_property
    def _always(self) -> Home:
        return self.room.build([Subscription(0, self.room.always, self.room.dialect)]), 0

    # Asking

    def comes_to(self, event: Event, identity: Id) -> bool:
        """Tell whether an event comes to a subscription."""
        view = self._graph.view
        return find(view, identity) in hanging(view, event)

    def top(self, event: Event, top: Top) -> list[RankedMatch] | list[Best]:
        """List the best by score and way."""
        if top.mode != EXACT:
            self.relaxed()
        return self._graph.top(event, top.k, **top.path._asdict()) if top.k else []

    def _score(self, identity: Id) -> float:
        return self._graph.score(identity)

    def at_once(self, top: Top | None, most: int) -> int:
        """Say how many events may be asked about together: their best are found in portions."""
        if top is None:
            return most
        count = len(self.built)
        return max(1, most // max(1, min(count, top.k) if top.mode == EXACT else count))

    def _best(self, events: Events, ids: Column, top: Top) -> Portion:
        if top.mode != EXACT:
            return super()._best(events, ids, top)
        return self._graph.best(events, ids, top.k, top.path)

    def check_sources(self, events: Events, ids: Column) -> None:
        """Refuse a batch of which one event enters the graph at no node."""
        if isinstance(events, list):
            return
        batch: Any = events
        for row, reason in enumerate(self._graph.sources(batch)):
            if reason is not None:
                raise EventError(f"event {ids[row].as_py()!r}: {reason}")


class _Joined(NamedTuple):
    """The rows that the subscriptions of a view have, by place; -1 for none.

    `changes` is how often the clauses were changed.
    """

    view: View
    changes: int
    row: Ints


class RankedGraph(GraphFilters):
    """A graph that ranks relaxed, too, by clauses of its subscriptions, which are changed through this only.

    Nodes and edges may be changed in the graph itself: what they serve is looked up before an answer.
    """

    def __init__(self, index: GraphIndex, room: ContentRoom, clauses: ClauseIndex) -> None:
        super().__init__(index, room)
        self._clauses = clauses
        self._seen: View | None = None
        self._matched: tuple[Base, Ids, Ints] | None = None
        self._joined: _Joined | None = None

    @classmethod
    def build(
        cls,
        index: GraphIndex,
        nodes: Iterable[Node],
        subscriptions: Sequence[Subscription],
        room: ContentRoom,
    ) -> RankedGraph:
        """Index the clauses of subscriptions, and those that only nodes name."""
        from headgate.ranking.filters.clause_index import ClauseIndex

        known = {subscription.id for subscription in subscriptions}
        served = dict.fromkeys(node.subscription for node in nodes if node.subscription not in known)
        always = [Subscription(each, room.always, room.dialect) for each in served if each is not None]
        return cls(index, room, ClauseIndex.build([*subscriptions, *always], room=room))

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

    def _prepare(self, subscription: Subscription) -> Any:
        """Refuse what the graph refuses, and weights that do not fit."""
        with self._clauses.moments.lock:
            return self._clauses.prepare(subscription), self._graph.prepare(subscription)

    def _put(self, subscription: Subscription, prepared: Any) -> None:
        """Hang a subscription at its node."""
        clauses, own = prepared
        with self._clauses.moments.lock:
            super()._put(subscription, own)
            if subscription.id in self._clauses:
                # Its node was removed.
                self._clauses.unsubscribe(subscription.id)
            self._clauses.subscribe(subscription, clauses)

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription; refuses one that is not there."""
        with self._clauses.moments.lock:
            super().unsubscribe(identity)
            if identity in self._clauses:
                self._clauses.unsubscribe(identity)

    def relaxed(self) -> ClauseIndex:
        """Return the clauses."""
        return self._clauses

    @property
    def looked_at(self) -> list[Any]:
        """List the filters, and their clauses."""
        return [*self.contents, *self._clauses.looked_at]

    def set_weights(self, identity: Id, weights: Weights | None) -> None:
        """Give the clauses of a subscription other weights."""
        with self._clauses.moments.lock:
            view = self._graph.view
            self._catch_up(view)
            # A node that was removed takes away what hung at it; its clauses stay until they are saved.
            if self._clauses.rows.find(identity) not in self.rows_of(view)[served(view)]:
                raise SubscriptionError(f"there is no subscription {identity!r} here")
            super().set_weights(identity, weights)

    def top(self, event: Event, top: Top) -> list[RankedMatch] | list[Best]:
        """List the best by score and way, or of what is reached those of which clauses hold."""
        if top.mode == EXACT:
            return super().top(event, top)
        return self._clauses.top(event, top.k, factors=top.weighing, admitted=self._admission(event))

    def explain_rank(self, event: Event, identity: Id, top: Top) -> RankExplanation:
        """Say why a subscription has its rank, and what it lacked to enter the best k."""
        if top.mode == EXACT:
            return super().explain_rank(event, identity, top)
        admitted = self._admission(event)
        explanation = self._clauses.explain(event, identity, top.k, factors=top.weighing, admitted=admitted)
        if find(admitted.view, identity) in admitted.places:
            return explanation
        return replace(explanation, blocked=tuple(self._graph.explain(event, identity).lines()))

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
            for number in places[self.rows_of(view)[places] < 0].tolist():
                identity, text = view.subscription_id(number), _filter_at(view, number)
                self._clauses.subscribe(Subscription(identity, text or self.room.always, self.room.dialect))
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
            rows = np.full(len(wanted), -1, np.int64)
            if wanted.type == known.type:
                # The overloads are about types that are known before; these are not.
                compute: Any = import_module("pyarrow.compute")
                rows = np.asarray(compute.index_in(wanted, value_set=known).fill_null(-1), np.int64)
            self._matched = matched = (base, ids, rows)
        return matched[2].copy()


def own_filter(view: View, subscription: Id) -> str | None:
    """Return the filter of a subscription, if it has one of its own; refuses one that is not served."""
    number = find(view, subscription)
    if number < 0 or not servers(view, number):
        raise SubscriptionError(f"there is no subscription {subscription!r} here")
    return _filter_at(view, number)


def own_vertices(view: View) -> Ints:
    """List the vertex that has the filter of each subscription, by place.

    It is SERVED where only nodes serve it, and GONE where nothing does.
    """
    ranks = ranking_of(view).ranks
    serves = ranks.serves
    hung = np.flatnonzero((serves >= 0) & (ranks.stands_for == SUBSCRIPTION))[::-1]
    vertices = np.full(view.subscriptions, GONE, np.int64)
    vertices[serves[serves >= 0]] = SERVED
    # Of several the first counts, which is written last.
    vertices[serves[hung]] = hung
    return vertices


def _filter_at(view: View, number: int) -> str | None:
    hung = [vertex for vertex in servers(view, number) if view.stands_for(vertex)[0] == SUBSCRIPTION]
    return view.filter_of(hung[0]) if hung else None


class _Admission(NamedTuple):
    """The subscriptions that an event comes to, by place of a view."""

    owner: RankedGraph
    view: View
    places: Ints

    def admitted(self, rows: RowIds) -> Bools:
        """Tell of each row whether it is one of them."""
        admitted = np.zeros(rows.count, np.bool_)
        row = self.owner.rows_of(self.view)[self.places]
        admitted[row[row >= 0]] = True
        return admitted
