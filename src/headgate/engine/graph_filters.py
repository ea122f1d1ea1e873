"""The graph behind an engine: filters of nodes and edges, subscriptions in it, and their clauses."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headgate.core.ranks import EXACT, Best
from headgate.core.subscription import Subscription
from headgate.engine.backend import Backend
from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from headgate.contents.portions import Portion
    from headgate.contents.protocol import Content, ContentRoom
    from headgate.contents.results import Home
    from headgate.core.event import Event, Id
    from headgate.core.ids import Ids
    from headgate.core.ranks import Weights
    from headgate.engine.backend import Column, Events
    from headgate.engine.question import Top
    from headgate.engine.reached import ReachedClauses
    from headgate.graph.changes.view import View
    from headgate.graph.index import GraphIndex
    from headgate.graph.ranked.ranked import RankedMatch
    from headgate.ranking.filters.clause_index import ClauseIndex
    from headgate.ranking.filters.explain import RankExplanation


class GraphFilters(Backend):
    """A graph, which ranks by score and way; with clauses it ranks relaxed, too."""

    ranked = True
    routed = True

    def __init__(self, index: GraphIndex, room: ContentRoom, clauses: ClauseIndex | None = None) -> None:
        super().__init__(index, room)
        self._graph = index
        self._first = weakref.ref(index.view)
        self._reached: ReachedClauses | None = None
        self._own: tuple[View, NDArray[np.int64]] | None = None
        if clauses is not None:
            from headgate.engine.reached import ReachedClauses

            self._reached = ReachedClauses(index, clauses, room)

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
        return sorted(view.subscription_id(place) for place in self._served())

    def _served(self) -> list[int]:
        from headgate.graph.ranked.ranked import served

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
        from headgate.engine.reached import own_filter

        return own_filter(self._graph.view, identity)

    def homes(self, ids: Sequence[Id]) -> Iterable[Home | None]:
        """Find the filters of subscriptions at their vertices; one that has none of its own always holds."""
        from headgate.engine.reached import GONE, own_vertices
        from headgate.graph.ranked.ranked import find

        view = self._graph.view
        if self._own is None or self._own[0] is not view:
            self._own = view, own_vertices(view)
        own = self._own[1]
        for identity in ids:
            place = find(view, identity)
            vertex = GONE if place < 0 else int(own[place])
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
        from headgate.engine.reached import comes_to

        return comes_to(self._graph.view, event, identity)

    def top(self, event: Event, top: Top) -> list[RankedMatch] | list[Best]:
        """List the best by score and way, or by the clauses that hold at what is reached."""
        if top.mode != EXACT:
            found: list[Best] = self.relaxed().top(event, top.k, factors=top.weighing)
            return found
        return self._graph.top(event, top.k, **top.path._asdict()) if top.k else []

    def explain_rank(self, event: Event, identity: Id, top: Top) -> RankExplanation:
        """Say which subscriptions come before one."""
        from headgate.ranking.filters.explain import explain_exact

        if top.mode != EXACT:
            told: RankExplanation = self.relaxed().explain(event, identity, top.k, factors=top.weighing)
            return told
        graph = self._graph
        verdict = graph.explain(event, identity)
        whole = graph.top(event, graph.view.subscriptions + 1, **top.path._asdict())
        found = [Best(each.subscription, each.value) for each in whole]
        return explain_exact(found, Best(identity, graph.score(identity)), top.k, verdict)

    def at_once(self, top: Top | None, most: int) -> int:
        """Say how many events may be asked about together: their best are found in portions."""
        if top is None:
            return most
        found = len(self.built)
        return max(1, most // max(1, min(found, top.k) if top.mode == EXACT else found))

    def _best(self, events: Events, ids: Column, top: Top) -> Portion:
        if top.mode != EXACT:
            return super()._best(events, ids, top)
        return self._graph.best(events, ids, top.k, top.path)

    def check_sources(self, events: Events, ids: Column) -> None:
        """Refuse a batch of which one event enters the graph at no node."""
        if isinstance(events, list):
            return
        given: Any = events
        for row, reason in enumerate(self._graph.sources(given)):
            if reason is not None:
                raise EventError(f"event {ids[row].as_py()!r}: {reason}")

    # Changing

    def _subscribe(self, subscription: Subscription) -> None:
        if self._reached is not None:
            self._reached.subscribe(subscription)
        else:
            super()._subscribe(subscription)

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription from the graph, and its clauses."""
        (self._reached or self._graph).unsubscribe(identity)
        self.changes += 1

    def relaxed(self) -> Any:
        """Return the clauses of what is reached; refuses if there are none."""
        return self._reached or super().relaxed()

    def set_weights(self, identity: Id, weights: Weights | None) -> None:
        """Give the clauses of a subscription other weights."""
        self.relaxed().set_weights(identity, weights)
        self.changes += 1

    def compact(self) -> None:
        """Number the graph anew, and fold the clauses."""
        (self._reached or self._graph).compact()

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot, with the clauses inside if there are some."""
        (self._reached or self._graph).save(path, source=source)
