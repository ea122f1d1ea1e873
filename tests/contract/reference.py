"""What every surface must answer, by the slow definitions of the rooms alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from headgate import Edge, Event, Node, Subscription
from headgate.contents.mixed.kind import ALWAYS, read_dialect
from headgate.core.event import JSON
from headgate.core.event import XML as XML_TYPE
from headgate.core.ranks import EXACT, Best, read_factors
from headgate.core.rooms import RDF, RECORDS, XML
from headgate.core.subscription import MIXED
from headgate.graph.path_cost import TIMES
from headgate.ranking.filters.clauses import weigh
from headgate.rdf.events.reading import graph_of
from headgate.rdf.language.parse import parse_filter as parse_pattern
from headgate.records import reference as records
from headgate.records.language.parse import parse_filter
from headgate.xml.events.reading import document_of
from headgate.xml.language.parse import parse_filter as parse_tree
from tests.contract.telling import CONTENTS, DIALECTS, taxonomy
from tests.contract.world import ROOM_OF
from tests.graph.reference import best_paths, reach_subscriptions
from tests.ranking.filters_reference import in_order
from tests.rdf import reference as rdf
from tests.xml import reference as xml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.event import Id
    from headgate.engine.question import Top
    from tests.contract.world import Question, World
    from tests.spark.files import Row


class Reference:
    """Answers for one world. What a filter says of an event is worked out once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._nodes = [Node(**row) for row in world.nodes]
        self._edges = [Edge(**row) for row in world.edges]
        self._held: dict[tuple[int, str, str], bool] = {}
        self._events: dict[int, Event] = {}

    def rows(self, event: Row, question: Question) -> list[tuple[Any, ...]]:
        """List the rows of an event: subscriptions, or the best of them with value and rank."""
        given = [Subscription(**row) for row in self._world.at(question)]
        if question.top is None:
            return [(each,) for each in sorted(self.matches(event, given))]
        best = self._best(event, given, question.top)
        return [(each.subscription, each.value, rank) for rank, each in enumerate(best, 1)]

    def matches(self, event: Row, given: Sequence[Subscription]) -> set[Id]:
        """Find the subscriptions that get an event."""

        def holds(text: str, dialect: str) -> bool:
            return self._holds(event, text, dialect)

        if self._world.graph:
            return reach_subscriptions(self._nodes, self._edges, given, event["source"], holds)
        return {each.id for each in given if self._holds(event, each.filter, each.dialect)}

    def _best(self, event: Row, given: Sequence[Subscription], top: Top) -> list[Best]:
        if top.mode != EXACT:
            return self._relaxed(event, given, top)
        if not self._world.graph:
            found = [
                Best(each.id, float(each.score))
                for each in given
                if self._holds(event, each.filter, each.dialect)
            ]
            return in_order(found)[: top.k]
        paths = best_paths(
            self._nodes,
            self._edges,
            given,
            event["source"],
            lambda text, dialect: self._holds(event, text, dialect),
            top.k,
            times=top.path.decay if top.path.by == TIMES else None,
            hops=top.path.hops,
        )
        return [Best(identity, value) for identity, value, _, _ in paths]

    def _relaxed(self, event: Row, given: Sequence[Subscription], top: Top) -> list[Best]:
        """Add up what holds of the clauses of each that the event comes to, whatever its own filter says."""
        room, factors = ROOM_OF[self._world.content].index, read_factors(top.weighing)
        by_id = {each.id: each for each in given}
        come: set[Id] = set(by_id)
        if self._world.graph:
            come = self.matches(
                event, [replace(each, filter=room.always, dialect=room.dialect) for each in given]
            )
        found = []
        for identity in come:
            # What only a node names has no filter of its own: one clause, which always holds.
            each = by_id.get(identity) or Subscription(identity, room.always, room.dialect)
            clauses = room.clauses(each.filter, each.dialect)
            value, any_holds = 0.0, False
            for clause, weight in zip(clauses, weigh(clauses, each.weights, repr(identity)), strict=True):
                factor = 1.0
                for name in clause.names:
                    factor *= factors.get(name, 1.0)
                if factor > 0 and self._holds(event, clause.filter, room.dialect):
                    value, any_holds = value + weight * factor, True
            if any_holds:
                found.append(Best(identity, value))
        return in_order(found)[: top.k]

    def _holds(self, event: Row, text: str, dialect: str) -> bool:
        key = (id(event), text, dialect)
        if key not in self._held:
            made = self._events.setdefault(id(event), Event.from_row(event))
            self._held[key] = holds_as_written(made, text, dialect)
        return self._held[key]


def holds_as_written(event: Event, text: str, dialect: str) -> bool:
    """Tell whether a filter holds: if it looks at what the event is, by the definition of that content."""
    if (text, dialect) == (ALWAYS, MIXED):
        return True
    plain, spoken = read_dialect(text, dialect)
    content = next(each for each in CONTENTS if spoken == DIALECTS[each])
    return content == content_of(event) and holds(content, event, plain)


def content_of(event: Event) -> str:
    """Say what an event is."""
    if event.content_type == JSON:
        return RECORDS
    return XML if event.content_type == XML_TYPE else RDF


def holds(content: str, event: Event, text: str) -> bool:
    """Tell by the room's own definition whether a filter holds for an event."""
    pattern = _parsed(content, text)
    if content == RECORDS:
        return records.matches(pattern, event.attributes)
    if content == RDF:
        return rdf.matches(pattern, graph_of(event), taxonomy(content))
    return xml.matches(pattern, document_of(event))


@cache
def _parsed(content: str, text: str) -> Any:
    """Read a filter."""
    if content == RECORDS:
        return parse_filter(text)
    return parse_pattern(text) if content == RDF else parse_tree(text)
