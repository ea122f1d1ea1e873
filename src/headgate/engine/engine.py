"""The facade that joins the rooms: one object, whatever there is between publishers and subscribers.

Rooms are loaded when filters, a graph or ranks ask for them. So indexes are told apart by the names of their
rooms: a class to compare with would have to be loaded first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from headgate.contents.kind import Wanted
from headgate.contents.protocol import Answers, Binds, Informed
from headgate.contents.registry import (
    content_of,
    kind_of,
    kinds,
    quoted,
    room_at,
    room_of_content,
    strange,
    titles,
)
from headgate.core.rooms import CLAUSES, GRAPH, RANKING
from headgate.core.snapshot import is_snapshot, open_with_inside, room_of
from headgate.core.subscription import Subscription
from headgate.errors import GraphError, SnapshotError, SubscriptionError, TaxonomyError
from headgate.graph.model import DECAY, MINUS
from headgate.ranking.model import EXACT, Best, check_asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from headgate.contents.protocol import Content, ContentRoom, Verdict
    from headgate.core.event import Event, Id
    from headgate.core.ranks import Weights
    from headgate.engine.reached import ReachedClauses
    from headgate.graph.index import GraphIndex
    from headgate.graph.model import Edge, Node
    from headgate.graph.ranked.ranked import Ranked
    from headgate.ranking.filters.clause_index import ClauseIndex
    from headgate.ranking.filters.explain import RankExplanation
    from headgate.ranking.filters.index import RankedIndex
    from headgate.rdf.index.bindings import Bindings
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.xml.answers.answers import Answer


class Engine:
    """Subscriptions, with a graph between them and the publishers or without, ranked or not.

    All filters of one engine look at one kind of content: records, RDF, XML, or what others have added.

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
    >>> engine = Engine.build(
    ...     [Subscription("s1", "age > 30", score=1), Subscription("s2", "age > 20", score=2)]
    ... )
    >>> [best.subscription for best in engine.top(Event("e1", {"age": 35}), 2)]
    ['s2', 's1']
    >>> engine = Engine.build([Subscription("s1", "ASK { ?x a <urn:Art> }", "sparql")])
    >>> event = Event("e1", "<urn:x> a <urn:Art> .", content_type="text/turtle")
    >>> engine.publish(event), engine.bindings(event, "s1").rows
    (['s1'], (('<urn:x>',),))
    """

    def __init__(
        self,
        index: Content | GraphIndex | RankedIndex,
        clauses: ClauseIndex | None = None,
        *,
        room: ContentRoom | None = None,
    ) -> None:
        self.index = index
        self._graph = cast("GraphIndex", index) if index.room_name == GRAPH else None
        self._ranking = cast("RankedIndex", index) if index.room_name == RANKING else None
        self._room = room_of_content(None) if room is None else room
        self._reached: ReachedClauses | None = None
        if self._graph is not None and clauses is not None:
            from headgate.engine.reached import ReachedClauses

            self._reached = ReachedClauses(self._graph, clauses, self._room)

    @classmethod
    def build(
        cls,
        subscriptions: Iterable[Subscription] = (),
        *,
        nodes: Iterable[Node] | None = None,
        edges: Iterable[Edge] = (),
        ranked: bool | None = None,
        taxonomy: Taxonomy | None = None,
        options: Options | None = None,
    ) -> Engine:
        """Index subscriptions; with nodes, they hang in the graph of these and the edges.

        `ranked` makes ready for the best k. If it is not said, that is done if a subscription has weights, or
        without a graph a score: a graph ranks by scores as it is.

        The dialects of the filters say whether they look at records, at XML or at RDF; these may have a
        `taxonomy` and `options`.
        """
        subscriptions, edges = list(subscriptions), list(edges)
        nodes = None if nodes is None else list(nodes)
        room = _room([*subscriptions, *(nodes or []), *edges], taxonomy, options)
        weighed = any(each.weights is not None for each in subscriptions)
        if nodes is None:
            if edges:
                raise GraphError("there are edges and no nodes: give both, or neither")
            for hanging in (each for each in subscriptions if each.node is not None):
                raise GraphError(
                    f"subscription {hanging.id!r} hangs at node {hanging.node!r}, and there is no graph: "
                    "give nodes, or leave `node` out"
                )
            if ranked is None:
                ranked = weighed or any(each.score != 0 for each in subscriptions)
            if ranked:
                from headgate.ranking.filters.index import RankedIndex

                return cls(RankedIndex.build(subscriptions, room=room), room=room)
            return cls(room.build(subscriptions), room=room)
        from headgate.graph.index import GraphIndex

        graph = GraphIndex.build(nodes, edges, subscriptions, room=room)
        if not (weighed if ranked is None else ranked):
            return cls(graph, room=room)
        from headgate.engine.reached import ReachedClauses

        return cls(graph, ReachedClauses.build(nodes, subscriptions, room=room), room=room)

    @classmethod
    def open(cls, path: Path, *, verify: bool = True) -> Engine:
        """Open a snapshot, with a graph or without, ranked or not, of any kind of content."""
        kind = room_of(path)
        if kind not in {GRAPH, RANKING, *kinds()}:
            raise SnapshotError(
                f"snapshot {path} belongs to the room {kind!r}: give one of {titles()}, of a ranking, or of "
                "a graph in one piece"
            )
        room = room_at(path)
        if kind == GRAPH:
            return open_with_inside(path, lambda: cls._open_graph(path, room, verify=verify))
        if kind == RANKING:
            from headgate.ranking.filters.index import RankedIndex

            return cls(RankedIndex.open(path, room=room, verify=verify), room=room)
        return cls(room.open(path, verify=verify), room=room)

    @classmethod
    def _open_graph(cls, path: Path, room: ContentRoom, *, verify: bool) -> Engine:
        from headgate.graph.index import GraphIndex

        clauses = None
        if is_snapshot(path / CLAUSES):
            from headgate.ranking.filters.clause_index import ClauseIndex

            clauses = ClauseIndex.open(path / CLAUSES, room=room, verify=verify)
        return cls(GraphIndex.open(path, room=room, verify=verify), clauses, room=room)

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; `source` says what it was built from."""
        (self._reached or self.index).save(path, source=source)

    @property
    def graph(self) -> GraphIndex:
        """Return the graph; refuses if there is none."""
        if self._graph is not None:
            return self._graph
        raise GraphError("there is no graph here: build the engine with nodes and edges")

    @property
    def taxonomy(self) -> Taxonomy:
        """Return the taxonomy, which may be changed; refuses if there is none."""
        for each in (self.index, self._room):
            if isinstance(each, Informed) and each.taxonomy is not None:
                return cast("Taxonomy", each.taxonomy)
        raise TaxonomyError("there is no taxonomy here: only filters of RDF have one")

    def publish(self, event: Event) -> list[Id]:
        """List the subscriptions that get an event, sorted."""
        return self.index.match(event)

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription; it matches from now on."""
        if self._reached is not None:
            self._reached.subscribe(subscription)
            return
        if subscription.weights is not None and self._ranking is None:
            raise SubscriptionError(
                f"subscription {subscription.id!r} has weights, and clauses are not ranked here: "
                "build the engine with ranked=True, or leave them out"
            )
        self.index.subscribe(subscription)

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription; it matches no more."""
        (self._reached or self.index).unsubscribe(identity)

    def set_score(self, identity: Id, score: float) -> None:
        """Give a subscription another score."""
        ranked = self._graph or self._ranking
        if ranked is None:
            raise SubscriptionError("nothing is ranked here: build the engine with ranked=True")
        ranked.set_score(identity, score)

    def set_weights(self, identity: Id, weights: Weights | None) -> None:
        """Give the clauses of a subscription other weights."""
        self._relaxed().set_weights(identity, weights)

    def explain(self, event: Event, identity: Id) -> Verdict:
        """Say why a subscription gets an event or not."""
        return self.index.explain(event, identity)

    def bindings(self, event: Event, identity: Id, limit: int = 1000) -> Bindings:
        """List the bindings under which a subscription's filter holds for an RDF event, at most `limit`.

        There is none if no way through the graph leads the event to the subscription.
        """
        if isinstance(self.index, Binds):
            return cast("Bindings", self.index.bindings(event, identity, limit))
        if kind_of(self._room.room_name).results != "bindings":
            raise SubscriptionError("these filters bind no variables: those of RDF do")
        found = cast("Bindings", cast("Binds", self._alone(identity)).bindings(event, 0, limit))
        return found if self._comes_to(event, identity) else found._replace(rows=(), complete=True)

    def answer(self, event: Event, identity: Id) -> Answer | None:
        """Return what a subscription's pattern gives for an XML event; None if it does not match.

        None too if no way through the graph leads the event to the subscription.
        """
        if isinstance(self.index, Answers):
            return cast("Answer | None", self.index.answer(event, identity))
        if kind_of(self._room.room_name).results != "tuples":
            raise SubscriptionError("these filters return no nodes: those of XML do")
        if not self._comes_to(event, identity):
            return None
        return cast("Answer | None", cast("Answers", self._alone(identity)).answer(event, 0))

    def _alone(self, identity: Id) -> Content:
        """Index the filter of a subscription by itself: what is asked for rarely need not be kept."""
        if self._graph is not None:
            from headgate.engine.reached import own_filter

            text = own_filter(self._graph.view, identity) or self._room.always
        else:
            text = cast("Content", self.index).filter(identity)
        return self._room.build([Subscription(0, text, self._room.dialect)])

    def _comes_to(self, event: Event, identity: Id) -> bool:
        """Tell whether an event comes to a subscription; without a graph, to all of them."""
        if self._graph is None:
            return True
        from headgate.engine.reached import comes_to

        return comes_to(self._graph.view, event, identity)

    def top(
        self,
        event: Event,
        k: int,
        mode: str = EXACT,
        *,
        factors: Mapping[str, float] | None = None,
        by: str = MINUS,
        decay: float = DECAY,
        hops: bool = False,
    ) -> list[Ranked] | list[Best]:
        """List the best k of the subscriptions that get an event, or in mode "relaxed" nearly do.

        Exact: by score, which in a graph falls with the way there (`by`, `decay` and `hops` say how).
        Relaxed: by the weights of the clauses that hold, at least one; in a graph, of the subscriptions at
        nodes that are reached, whatever the way. `factors` re-weigh attributes for this event: 0 drops them.
        """
        self._check_asked(k, mode, factors, by, decay, hops)
        if mode != EXACT:
            return self._relaxed().top(event, k, factors=factors)
        if self._graph is not None:
            return self._graph.top(event, k, by=by, decay=decay, hops=hops) if k else []
        if self._ranking is not None:
            return self._ranking.top(event, k)
        return [Best(identity, 0.0) for identity in self.index.match(event)[:k]]

    def explain_rank(
        self,
        event: Event,
        identity: Id,
        k: int,
        mode: str = EXACT,
        *,
        factors: Mapping[str, float] | None = None,
        by: str = MINUS,
        decay: float = DECAY,
        hops: bool = False,
    ) -> RankExplanation:
        """Say why a subscription has its rank, and what it lacked to enter the best k."""
        from headgate.ranking.filters.explain import explain_exact

        self._check_asked(k, mode, factors, by, decay, hops)
        if mode != EXACT:
            return self._relaxed().explain(event, identity, k, factors=factors)
        if self._ranking is not None:
            return self._ranking.explain_rank(event, identity, k)
        verdict = self.index.explain(event, identity)
        if self._graph is not None:
            graph = self._graph
            whole = graph.top(event, graph.view.subscriptions + 1, by=by, decay=decay, hops=hops)
            found = [Best(each.subscription, each.value) for each in whole]
            return explain_exact(found, Best(identity, graph.score(identity)), k, verdict)
        found = [Best(each, 0.0) for each in self.index.match(event)]
        return explain_exact(found, Best(identity, 0.0), k, verdict)

    def _check_asked(
        self, k: int, mode: str, factors: Mapping[str, float] | None, by: str, decay: float, hops: bool
    ) -> None:
        """Refuse a question that makes no sense here."""
        check_asked(k, mode, factors)
        way = (by, decay, hops) != (MINUS, DECAY, False)
        if way and (mode != EXACT or self._graph is None):
            raise GraphError(
                "`by`, `decay` and `hops` say what the way through a graph costs: leave them out without a "
                "graph, and in mode 'relaxed'"
            )

    def _relaxed(self) -> ReachedClauses | ClauseIndex:
        """Return the clauses; refuses if there are none."""
        if self._reached is not None:
            return self._reached
        if self._ranking is not None:
            return self._ranking.clauses
        raise SubscriptionError("clauses are not ranked here: build the engine with ranked=True")


def _room(
    filtered: Iterable[Subscription | Node | Edge], taxonomy: Taxonomy | None, options: Options | None
) -> ContentRoom:
    """Find the kind that the dialects of filters ask for; without any, what is given for RDF says."""
    dialects = {each.dialect for each in filtered if each.filter is not None}
    content = content_of(dialects, "the filters")
    wanted = Wanted(taxonomy=taxonomy, options=options)
    wrong = strange(kind_of(content), wanted)
    if wrong is None:
        return room_of_content(content, wanted)
    owner, settings = wrong
    if content is None:
        return owner.room(wanted)
    raise SubscriptionError(
        f"{settings} are for filters of {owner.title}, and these are {quoted(sorted(dialects))}: leave them "
        "out, or give the filters their dialect"
    )
