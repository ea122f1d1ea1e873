"""How an engine is asked: about one event, and about many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from headgate.contents.registry import kind_of
from headgate.core.arguments import likeliest
from headgate.core.event import EVENT_TIME, ID, JSON, SOURCE, TIME
from headgate.core.ranks import EXACT, check_k
from headgate.core.values import dotted
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
from headgate.engine.question import Question, Top
from headgate.errors import SubscriptionError
from headgate.graph.path_cost import DECAY, MINUS, PathCost

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from headgate.contents.kind import Kind
    from headgate.contents.protocol import Answers, Binds, Verdict
    from headgate.contents.results import Home
    from headgate.core.event import Event, Id
    from headgate.core.ranks import Best
    from headgate.core.values import Path
    from headgate.engine.backend import Backend
    from headgate.engine.statistics import Statistics
    from headgate.graph.ranked.ranked import RankedMatch
    from headgate.ranking.filters.explain import RankExplanation
    from headgate.rdf.index.bindings import Bindings
    from headgate.xml.answers.answers import Answer

    AnyEvent = Event | Mapping[str, Any] | str | bytes


class Unknown(NamedTuple):
    """Names that one side has and the other has not, each with the one that was likeliest meant, if any.

    `attributes` are those of events that no filter names, `names` those of filters that no event has.
    """

    attributes: dict[str, str | None]
    names: dict[str, str | None]


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
        read = event_of(event)
        if read.content_type in FEEDS and isinstance(read.data, str | bytes):
            ids: set[Any] = {each for item in self.read(read) for each in self._match(item)}
            return sorted(ids)
        return self._match(read)

    def _match(self, event: Event) -> list[Id]:
        if self._statistics is None:
            return self.backend.match(event)
        return self._statistics.match(self.backend, event, lambda: self.backend.match(event))

    def explain(self, event: AnyEvent, identity: Id) -> Verdict:
        """Say why a subscription gets an event or not."""
        return self.backend.explain(event_of(event), id_of(identity))

    def bindings(self, event: AnyEvent, identity: Id, limit: int = 1000) -> Bindings:
        """List the bindings under which a subscription's filter holds for an RDF event, at most `limit`.

        There is none if no way through the graph leads the event to the subscription.
        """
        read, identity = event_of(event), id_of(identity)
        check_k(limit)
        content, own = self._home(identity, "bindings", "binds no variables: those of RDF do")
        bindings = cast("Bindings", cast("Binds", content).bindings(read, own, limit))
        if self.backend.comes_to(read, identity):
            return bindings
        return bindings._replace(rows=(), complete=True)

    def answer(self, event: AnyEvent, identity: Id) -> Answer | None:
        """Return what a subscription's pattern gives for an XML event; None if it does not match.

        None too if no way through the graph leads the event to the subscription.
        """
        read, identity = event_of(event), id_of(identity)
        content, own = self._home(identity, "tuples", "returns no nodes: those of XML do")
        if not self.backend.comes_to(read, identity):
            return None
        return cast("Answer | None", cast("Answers", content).answer(read, own))

    def _home(self, identity: Id, results: str, reason: str) -> Home:
        """Find the filter of a subscription; refuses one that is not here, or of a kind without results."""
        self.backend.filter(identity)
        (home,) = self.backend.homes([identity])
        assert home is not None
        # Under its key in a ranked index, or in a graph, the content cannot name the subscription.
        if not kind_of(self.backend.room.room_name).of_filter(home[0].filter(home[1])).gives(results):
            raise SubscriptionError(f"the filter of {identity!r} {reason}")
        return home

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
        top = self._asked(k, mode, factors, PathCost(by, decay, hops))
        read = event_of(event)
        if self._statistics is None:
            return self.backend.top(read, top)
        return self._statistics.match(self.backend, read, lambda: self.backend.top(read, top), ranked=True)

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
        top = self._asked(k, mode, factors, PathCost(by, decay, hops))
        return self.backend.explain_rank(event_of(event), id_of(identity), top)

    def _asked(
        self,
        k: int,
        mode: str,
        factors: Mapping[str, float] | None,
        path: PathCost,
        column: str | None = None,
    ) -> Top:
        top = Top.of(k, mode, factors, path, column)
        top.check_way(routed=self.backend.routed)
        return top._replace(path=PathCost.of(path.by, path.decay, hops=path.hops))

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
        kind = self._kind
        if not kind.rows:
            raise SubscriptionError(
                f"these filters look at {kind.title}, where names are part of a pattern: those over records "
                "name attributes"
            )
        contents = self.backend.contents
        in_filters = {name for content in contents for name in getattr(content, "attributes", ())}
        mark = next(filter(None, map(_mark, contents)), "")
        in_events = {dotted(path) for some, _ in asked_of(events) for path in _paths(some, mark)}
        if dotted(EVENT_TIME) in in_events:
            # The time of an event stands for its attribute `time` in `:event_time`.
            in_events = in_events - {dotted(EVENT_TIME)} | in_filters & {TIME}
        seen = {around for name in in_filters for around in _uppers(name)} | {ID, SOURCE}
        return Unknown(
            {name: likeliest(name, in_filters) for name in sorted(in_events - seen)},
            {name: likeliest(name, in_events) for name in sorted(in_filters - in_events - {ID, SOURCE})},
        )

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
        return self._table(events, Question.of(results=results), threads)

    def _table(self, events: Any, question: Question, threads: int) -> pa.Table:
        from headgate.engine.answers import check_threads, table_of

        batches = with_items(asked_of(events), self._kind)
        return table_of(self.backend, batches, question, self._statistics, check_threads(threads))

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
        lists = iter(lists_by(self.backend, asked_of(items), self._statistics))
        joined: list[set[Any]] = [{each for _ in own for each in next(lists)} for own in several]
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
        top = self._asked(k, mode, factors, PathCost(by, decay, hops), k_column)
        return self._table(events if k else (), Question.of(top, results), threads)


def _mark(content: Any) -> str:
    """Return what stands before names to filters, see `core/values.py`."""
    several = (member.content for member in getattr(content, "members", ()))
    settings = (getattr(each, "settings", None) for each in (content, *several))
    return next(filter(None, (getattr(each, "mark", "") for each in settings)), "")


def _paths(events: Any, mark: str) -> Iterable[Path]:
    from headgate.core.schema import Schema

    if hasattr(events, "schema"):
        return Schema.from_arrow(events.schema, mark).types
    return {path for event in events if event.content_type == JSON for path in event.attributes_as(mark)}


def _uppers(name: str) -> Iterable[str]:
    """List a dotted name and the objects around it."""
    parts = name.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts) + 1))
