"""How an engine is asked: about one event, and about many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from headgate.contents.protocol import Answers, Binds
from headgate.contents.registry import kind_of
from headgate.core.ranks import EXACT, check_asked, check_k, read_factors
from headgate.engine.inputs import (
    FEEDS,
    asked_of,
    event_of,
    events_of,
    has_feeds,
    id_of,
    items_of,
    with_items,
)
from headgate.engine.question import Top, checked_column
from headgate.engine.threads import check_threads
from headgate.errors import SubscriptionError
from headgate.graph.path_cost import DECAY, MINUS, PathCost

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from headgate.contents.kind import Kind
    from headgate.contents.protocol import Verdict
    from headgate.core.event import Event, Id
    from headgate.core.ranks import Best
    from headgate.engine.backend import Backend
    from headgate.engine.statistics import Statistics
    from headgate.engine.unknown import Unknown
    from headgate.graph.ranked.ranked import RankedMatch
    from headgate.ranking.filters.explain import RankExplanation
    from headgate.rdf.index.bindings import Bindings
    from headgate.xml.answers.answers import Answer

    AnyEvent = Event | Mapping[str, Any] | str | bytes


class Queries:
    """The calls of an engine that leave it as it is."""

    backend: Backend
    _statistics: Statistics | None = None

    def statistics(self) -> Statistics:
        """Return the statistics of subscriptions, which are kept from the first call of this on.

        Whatever `match`, `match_batch`, `match_events`, `top` and `top_batch` answer is counted: of the best
        k, only these. A subscription that is replaced is counted anew.

        >>> from headgate import Engine
        >>> engine = Engine.build([{"id": "s1", "filter": "age > 30"}, {"id": "s2", "filter": "age > 20"}])
        >>> statistics = engine.statistics()
        >>> engine.match_events([{"age": 35}, {"age": 25}])
        [['s1', 's2'], ['s2']]
        >>> statistics.table()["matches"].to_pylist()
        [1, 2]
        """
        if self._statistics is None:
            from headgate.engine.statistics import Statistics

            self._statistics = Statistics([self.backend.built])
        return self._statistics

    # Asking about one event

    def read(self, event: AnyEvent) -> list[Event]:
        """Read a document into the events that it holds: one for each item of a feed, else itself.

        >>> from headgate import Engine, Event
        >>> engine = Engine.build([{"id": "s1", "filter": "//item[title = 'A']", "dialect": "xpath"}])
        >>> feed = "<rss><channel><item><title>A</title></item><item><title>B</title></item></channel></rss>"
        >>> items = engine.read(Event("news", feed, content_type="rss"))
        >>> [item.id for item in items], engine.match_events(items)
        (['news#1', 'news#2'], [['s1'], []])
        """
        return items_of(event_of(event), self._kind)

    @property
    def _kind(self) -> Kind:
        return kind_of(self.backend.room.room_name)

    def match(self, event: AnyEvent) -> list[Id]:
        """List the subscriptions that get an event, sorted; JSON is as good as a mapping.

        A feed goes to those that get one of its items; `match_batch` and `read` tell which.

        >>> from headgate import Engine
        >>> engine = Engine.build([{"id": "s1", "filter": "age > 30"}, {"id": "s2", "filter": "age > 20"}])
        >>> engine.match({"age": 35}), engine.match(b'{"age": 25}')
        (['s1', 's2'], ['s2'])
        """
        given = event_of(event)
        if given.content_type in FEEDS and isinstance(given.data, str | bytes):
            found: set[Any] = {each for item in self.read(given) for each in self._match(item)}
            return sorted(found)
        return self._match(given)

    def _match(self, given: Event) -> list[Id]:
        if self._statistics is None:
            return self.backend.match(given)
        return self._statistics.match(self.backend, given, lambda: self.backend.match(given))

    def explain(self, event: AnyEvent, identity: Id) -> Verdict:
        """Say why a subscription gets an event or not."""
        return self.backend.explain(event_of(event), id_of(identity))

    def bindings(self, event: AnyEvent, identity: Id, limit: int = 1000) -> Bindings:
        """List the bindings under which a subscription's filter holds for an RDF event, at most `limit`.

        There is none if no way through the graph leads the event to the subscription.
        """
        given, identity = event_of(event), id_of(identity)
        check_k(limit)
        self._check_given("bindings", Binds, "these filters bind no variables: those of RDF do")
        content, own = self.backend.alone(identity)
        found = cast("Bindings", cast("Binds", content).bindings(given, own, limit))
        if self.backend.comes_to(given, identity):
            return found
        return found._replace(rows=(), complete=True)

    def answer(self, event: AnyEvent, identity: Id) -> Answer | None:
        """Return what a subscription's pattern gives for an XML event; None if it does not match.

        None too if no way through the graph leads the event to the subscription.
        """
        given, identity = event_of(event), id_of(identity)
        self._check_given("tuples", Answers, "these filters return no nodes: those of XML do")
        if not self.backend.comes_to(given, identity):
            return None
        content, own = self.backend.alone(identity)
        return cast("Answer | None", cast("Answers", content).answer(given, own))

    def _check_given(self, results: str, able: type, reason: str) -> None:
        if not isinstance(self.backend.index, able) and not kind_of(self.backend.room.room_name).gives(
            results
        ):
            raise SubscriptionError(reason)

    def top(
        self,
        event: AnyEvent,
        k: int,
        mode: str = EXACT,
        *,
        factors: Mapping[str, float] | None = None,
        by: str = MINUS,
        decay: float = DECAY,
        hops: bool = False,
    ) -> list[RankedMatch] | list[Best]:
        """List the best k of the subscriptions that get an event, or in mode "relaxed" nearly do.

        Exact: by score, which in a graph falls with the way there (`by`, `decay` and `hops` say how).
        Relaxed: by the weights of the clauses that hold, at least one; in a graph, of the subscriptions at
        nodes that are reached, whatever the way. `factors` re-weigh attributes for this event: 0 drops them.
        """
        asked = self._asked(k, mode, factors, PathCost(by, decay, hops))
        given = event_of(event)
        if self._statistics is None:
            return self.backend.top(given, asked)
        return self._statistics.match(
            self.backend, given, lambda: self.backend.top(given, asked), ranked=True
        )

    def explain_rank(
        self,
        event: AnyEvent,
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
        asked = self._asked(k, mode, factors, PathCost(by, decay, hops))
        return self.backend.explain_rank(event_of(event), id_of(identity), asked)

    def _asked(
        self,
        k: int,
        mode: str,
        factors: Mapping[str, float] | None,
        path: PathCost,
        column: str | None = None,
    ) -> Top:
        check_asked(k, mode, factors)
        asked = Top(k, mode, tuple(read_factors(factors).items()), path, checked_column(column))
        asked.check_way(routed=self.backend.routed and mode == EXACT)
        return asked._replace(path=PathCost.of(path.by, path.decay, hops=path.hops))

    # Asking about many

    def unknown(self, events: Any) -> Unknown:
        """Name attributes of events that no filter names, and names in filters that no event has.

        With each goes the one that was likeliest meant, if there is one like it. For filters over records;
        what was unsubscribed may count until it is compacted.

        >>> from headgate import Engine
        >>> engine = Engine.build([{"id": "s1", "filter": "contry = 'CH' AND age > 30"}])
        >>> engine.unknown([{"country": "CH", "age": 35, "lang": "de"}])
        Unknown(attributes={'country': 'contry', 'lang': None}, names={'contry': 'country'})
        """
        from headgate.engine.unknown import find_unknown

        return find_unknown(self.backend, asked_of(events))

    def match_batch(self, events: Any, *, threads: int = 1, results: bool | int = False) -> pa.Table:
        """Match a table of events, or a list: (event_id, subscription_id), in the order of the events.

        Rows without an `id` have the number of their row; the n-th item of a feed has the id of the feed with
        `#n` behind it. In a graph the column `source` names nodes. Several `threads` share the index, and
        give the same table.

        With `results` there are also the columns `results`, what each match gives (a list of maps: the
        bindings of RDF, the tuples of XML, nothing of records), and `complete`, whether that is all. It is
        True for 1,000 rows of a match at most, or their number. Results that are too much are NULL, and told
        as filters that are left out.

        >>> import pyarrow as pa
        >>> from headgate import Engine
        >>> engine = Engine.build([{"id": "s1", "filter": "age > 30"}, {"id": "s2", "filter": "age > 20"}])
        >>> engine.match_batch(pa.table({"age": [35, 25, 15]})).to_pydict()
        {'event_id': [0, 0, 1], 'subscription_id': ['s1', 's2', 's2']}
        """
        from headgate.contents.results import read_limit
        from headgate.engine.answers import table_of

        limit = read_limit(results)
        given = with_items(asked_of(events), self._kind)
        return table_of(self.backend, given, None, self._statistics, check_threads(threads), limit)

    def match_events(self, events: Any) -> list[list[Id]]:
        """List for each of some events the subscriptions that get it, sorted; many at once.

        A feed goes to those that get one of its items.

        >>> from headgate import Engine
        >>> engine = Engine.build([{"id": "s1", "filter": "age > 30"}, {"id": "s2", "filter": "age > 20"}])
        >>> engine.match_events([{"age": 35}, {"age": 15}])
        [['s1', 's2'], []]
        """
        from headgate.engine.answers import lists_by

        kind = self._kind
        parts = [*asked_of(events)]
        if not any(has_feeds(part, kind) for part, _ in parts):
            return lists_by(self.backend, parts, self._statistics)
        several = [items_of(event, kind) for event in events_of(events)]
        items: list[Event] = [item for each in several for item in each]
        found = iter(lists_by(self.backend, asked_of(items), self._statistics))
        joined: list[set[Any]] = [{each for _ in own for each in next(found)} for own in several]
        return [sorted(each) for each in joined]

    def top_batch(
        self,
        events: Any,
        k: int,
        mode: str = EXACT,
        *,
        factors: Mapping[str, float] | None = None,
        by: str = MINUS,
        decay: float = DECAY,
        hops: bool = False,
        k_column: str | None = None,
        threads: int = 1,
        results: bool | int = False,
    ) -> pa.Table:
        """Find the best k for each event of a table or a list: (event_id, subscription_id, score, rank).

        `score` is what the subscription is ranked by, and ranks count from 1. Where nothing is ranked, the
        first matches are the best, with the score 0. `k_column` names an attribute by which each event says
        how many it wants, at most k: one that has no whole number there wants k. `threads` and `results` are
        as for `match_batch`, and all else is as in `top`.

        >>> from headgate import Engine, Subscription
        >>> engine = Engine.build(
        ...     [Subscription("s1", "age > 30", score=1), Subscription("s2", "age > 20", score=2)]
        ... )
        >>> engine.top_batch([{"id": "e1", "age": 35}], 1).to_pylist()
        [{'event_id': 'e1', 'subscription_id': 's2', 'score': 2.0, 'rank': 1}]
        """
        from headgate.contents.results import read_limit
        from headgate.engine.answers import table_of

        asked = self._asked(k, mode, factors, PathCost(by, decay, hops), k_column)
        given = with_items(asked_of(events), self._kind) if k else ()
        limit = read_limit(results)
        return table_of(self.backend, given, asked, self._statistics, check_threads(threads), limit)
