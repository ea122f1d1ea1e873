"""The facade that joins the rooms: one object, whatever there is between publishers and subscribers.

Rooms are loaded when filters, a graph or ranks ask for them. So indexes are told apart by the names of their
rooms: a class to compare with would have to be loaded first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.contents.registry import content_of, quoted, room_at, room_of_content
from headgate.core.rooms import CLAUSES, GRAPH, RANKING, RDF, RECORDS, XML
from headgate.core.snapshot import is_snapshot, open_with_inside, room_of
from headgate.core.subscription import SPARQL, XPATH, Subscription
from headgate.errors import GraphError, SnapshotError, SubscriptionError, TaxonomyError
from headgate.graph.model import DECAY, MINUS
from headgate.ranking.model import EXACT, Best, check_asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from headgate.contents.protocol import Verdict
    from headgate.contents.registry import Room
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
    from headgate.rdf.index.index import RdfIndex
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.records.index.index import RecordIndex
    from headgate.xml.answers.answers import Answer
    from headgate.xml.index.index import XmlIndex

__all__ = ["Engine"]


class Engine:
    """Subscriptions, with a graph between them and the publishers or without, ranked or not.

    All filters of one engine look at records, or all of them look at RDF, or all of them look at XML.

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
        index: RecordIndex | RdfIndex | XmlIndex | GraphIndex | RankedIndex,
        clauses: ClauseIndex | None = None,
        *,
        room: Room | None = None,
    ) -> None:
        self.index = index
        self._room = room_of_content(None) if room is None else room
        self._reached: ReachedClauses | None = None
        if index.room_name == GRAPH and clauses is not None:
            from headgate.engine.reached import ReachedClauses

            self._reached = ReachedClauses(index, clauses, self._room)

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
        """Open a snapshot, with a graph or without, ranked or not, of records, RDF or XML."""
        kind = room_of(path)
        if kind not in {GRAPH, RANKING, RECORDS, RDF, XML}:
            raise SnapshotError(
                f"snapshot {path} belongs to the room {kind!r}: give one of records, of RDF, of XML, of a "
                "ranking, or of a graph in one piece"
            )
        room = room_at(path)
        if kind == GRAPH:
            return open_with_inside(path, lambda: cls._open_graph(path, room, verify=verify))
        if kind == RANKING:
            from headgate.ranking.filters.index import RankedIndex

            return cls(RankedIndex.open(path, room=room, verify=verify), room=room)
        return cls(room.open(path, verify=verify), room=room)

    @classmethod
    def _open_graph(cls, path: Path, room: Room, *, verify: bool) -> Engine:
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
        if self.index.room_name == GRAPH:
            return self.index
        raise GraphError("there is no graph here: build the engine with nodes and edges")

    @property
    def taxonomy(self) -> Taxonomy:
        """Return the taxonomy, which may be changed; refuses if there is none."""
        if self.index.room_name == RDF:
            return self.index.taxonomy
        if self._room.room_name == RDF and self._room.taxonomy is not None:
            return self._room.taxonomy
        raise TaxonomyError("there is no taxonomy here: only filters of RDF have one")

    def publish(self, event: Event) -> list[Id]:
        """List the subscriptions that get an event, sorted."""
        return self.index.match(event)

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription; it matches from now on."""
        if self._reached is not None:
            self._reached.subscribe(subscription)
            return
        if subscription.weights is not None and self.index.room_name != RANKING:
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
        if self.index.room_name not in {GRAPH, RANKING}:
            raise SubscriptionError("nothing is ranked here: build the engine with ranked=True")
        self.index.set_score(identity, score)

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
        if self.index.room_name == RDF:
            return self.index.bindings(event, identity, limit)
        if self._room.room_name != RDF:
            raise SubscriptionError("these filters bind no variables: those of RDF do")
        if self.index.room_name == GRAPH:
            from headgate.engine.reached import own_filter

            text = own_filter(self.index.view, identity) or self._room.always
        else:
            text = self.index.filter(identity)
        # Built from the text alone: what is asked for rarely need not be kept.
        alone = self._room.build([Subscription(0, text, SPARQL)])
        found = alone.bindings(event, 0, limit)
        if self.index.room_name == GRAPH:
            from headgate.engine.reached import comes_to

            if not comes_to(self.index.view, event, identity):
                return found._replace(rows=(), complete=True)
        return found

    def answer(self, event: Event, identity: Id) -> Answer | None:
        """Return what a subscription's pattern gives for an XML event; None if it does not match.

        None too if no way through the graph leads the event to the subscription.
        """
        if self.index.room_name == XML:
            return self.index.answer(event, identity)
        if self._room.room_name != XML:
            raise SubscriptionError("these filters return no nodes: those of XML do")
        if self.index.room_name == GRAPH:
            from headgate.engine.reached import comes_to, own_filter

            text = own_filter(self.index.view, identity) or self._room.always
            if not comes_to(self.index.view, event, identity):
                return None
        else:
            text = self.index.filter(identity)
        return self._room.build([Subscription(0, text, XPATH)]).answer(event, 0)

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
        if self.index.room_name == GRAPH:
            return self.index.top(event, k, by=by, decay=decay, hops=hops) if k else []
        if self.index.room_name == RANKING:
            return self.index.top(event, k)
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
        if self.index.room_name == RANKING:
            return self.index.explain_rank(event, identity, k)
        verdict = self.index.explain(event, identity)
        if self.index.room_name == GRAPH:
            whole = self.index.top(event, self.index.view.subscriptions + 1, by=by, decay=decay, hops=hops)
            found = [Best(each.subscription, each.value) for each in whole]
            return explain_exact(found, Best(identity, self.index.score(identity)), k, verdict)
        found = [Best(each, 0.0) for each in self.index.match(event)]
        return explain_exact(found, Best(identity, 0.0), k, verdict)

    def _check_asked(
        self, k: int, mode: str, factors: Mapping[str, float] | None, by: str, decay: float, hops: bool
    ) -> None:
        """Refuse a question that makes no sense here."""
        check_asked(k, mode, factors)
        way = (by, decay, hops) != (MINUS, DECAY, False)
        if way and (mode != EXACT or self.index.room_name != GRAPH):
            raise GraphError(
                "`by`, `decay` and `hops` say what the way through a graph costs: leave them out without a "
                "graph, and in mode 'relaxed'"
            )

    def _relaxed(self) -> ReachedClauses | ClauseIndex:
        """Return the clauses; refuses if there are none."""
        if self._reached is not None:
            return self._reached
        if self.index.room_name == RANKING:
            return self.index.clauses
        raise SubscriptionError("clauses are not ranked here: build the engine with ranked=True")


def _room(
    filtered: Iterable[Subscription | Node | Edge], taxonomy: Taxonomy | None, options: Options | None
) -> Room:
    """Find the content room that the dialects of filters ask for; without any, what is given for RDF says."""
    dialects = {each.dialect for each in filtered if each.filter is not None}
    content = content_of(dialects, "the filters")
    if taxonomy is None and options is None:
        return room_of_content(content)
    if content not in {None, RDF}:
        raise SubscriptionError(
            f"a taxonomy and options are for filters of RDF, and these are {quoted(sorted(dialects))}: "
            "leave them out, or give the filters their dialect"
        )
    from headgate.rdf.index.index import RdfRoom

    return RdfRoom(taxonomy, options)
