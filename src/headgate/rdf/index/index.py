"""The room's public class: all graph patterns, ready to match and to change."""

from __future__ import annotations

import threading
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.living import Living
from headgate.core.event import CONTENT_TYPE, DATA, ID, Event, column_of
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.omission import tell_all
from headgate.core.rooms import RDF
from headgate.core.subscription import SPARQL
from headgate.errors import EventError, SubscriptionError
from headgate.rdf.events.reading import graph_of, read_graphs
from headgate.rdf.explain.explain import Explanation, explain
from headgate.rdf.index.base import ROOM, Base
from headgate.rdf.index.bindings import Bindings, bindings
from headgate.rdf.index.build import build
from headgate.rdf.index.columns import Writer
from headgate.rdf.index.live import State, compact, freeze
from headgate.rdf.language.model import Options
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.language.printing import print_pattern
from headgate.rdf.language.splitting import split
from headgate.rdf.taxonomy.taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.protocol import Clause
    from headgate.core.event import Id
    from headgate.core.subscription import Subscription
    from headgate.rdf.index.arrays import Encoded
    from headgate.rdf.index.columns import Columns
    from headgate.rdf.index.live import Moment
    from headgate.rdf.language.model import Graph, Pattern

CHUNK = 256
"""Events whose text is read together."""
EVENT_ID = "event_id"
SUBSCRIPTION_ID = "subscription_id"

__all__ = ["ROOM", "RdfIndex", "RdfRoom"]


class _Answer(NamedTuple):
    """What an event matched, and when."""

    event: Event
    key: tuple[State, int, int]
    found: list[Id]
    left_out: list[tuple[Id, str]]


class RdfIndex(Living[State]):
    """Graph patterns: match, and subscribe and unsubscribe while others match.

    Any number of threads may read while one or more write. What a reader sees is the state at some moment of
    its call. New filters go into a tail, which `compact` folds into the base; that happens by itself, in a
    thread of its own, once the tail is a quarter of the base (`compact_after` is the least tail for it, None
    turns it off). The taxonomy may be changed at any time: `index.taxonomy.add(…)`.

    >>> from headgate import Event, RdfIndex, Subscription
    >>> text = "PREFIX : <http://example.org/> ASK { ?x :topic :Art ; :year ?y FILTER(?y > 2000) }"
    >>> index = RdfIndex.build([Subscription("s1", text, "sparql")])
    >>> data = "@prefix : <http://example.org/> . :a :topic :Art ; :year 2001 ."
    >>> index.match(Event("e1", data, content_type="text/turtle"))
    ['s1']
    >>> index.bindings(Event("e1", data, content_type="text/turtle"), "s1").plain()
    [{'x': 'http://example.org/a', 'y': '2001'}]
    """

    room_name: ClassVar[Literal["rdf"]] = RDF
    dialect = SPARQL
    """What `filter` and `clauses` write."""
    always = "ASK {}"
    """The filter that every event matches."""

    def __init__(self, base: Base, *, compact_after: int | None = 4096) -> None:
        super().__init__(State(base), compact_after)
        self._local = threading.local()

    @classmethod
    def build(
        cls,
        subscriptions: Iterable[Subscription],
        *,
        taxonomy: Taxonomy | None = None,
        options: Options | None = None,
    ) -> RdfIndex:
        """Parse and index subscriptions; refuses bad filters and repeated ids."""
        given = list(subscriptions)
        ids = Ids.of(subscription.id for subscription in given)
        by_id = {each.id: each for each in given}
        texts = []
        options = options or Options()
        writer = Writer(options)
        for identity in ids:
            text, pattern = _read(by_id[identity])
            texts.append(text)
            writer.add(pattern)
        return cls.from_columns(
            ids, TextPool.build(texts), writer.columns(), taxonomy=taxonomy, options=options
        )

    @classmethod
    def from_columns(
        cls,
        ids: Ids,
        filters: TextPool,
        columns: Columns,
        *,
        taxonomy: Taxonomy | None = None,
        options: Options | None = None,
    ) -> RdfIndex:
        """Index filters that are compiled, with these options, in the order of their ids."""
        taxonomy = Taxonomy() if taxonomy is None else taxonomy
        return cls(Base(ids, filters, build(columns), columns.expressions, options or Options(), taxonomy))

    @staticmethod
    def clauses(text: str, dialect: str = SPARQL) -> tuple[Clause, ...]:
        """Take a filter apart into its edges and the conjuncts of its filters; refuses a bad filter."""
        return split(text, dialect)

    @classmethod
    def open(cls, path: Path, *, verify: bool = True, taxonomy: Taxonomy | None = None) -> RdfIndex:
        """Open a snapshot, memory-mapped; a taxonomy that is given takes the place of the one in it."""
        return cls(Base.open(path, taxonomy=taxonomy, verify=verify))

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot, compacted if need be; `source` says what it was built from."""
        # Without the lock: a compaction that runs already needs it to end.
        if self._state.changed:
            self.compact()
        self._state.base.save(path, source=source)

    @property
    def taxonomy(self) -> Taxonomy:
        """Return the taxonomy; what is changed there counts for the next event."""
        return self._state.base.taxonomy

    @property
    def options(self) -> Options:
        """Return what departs from SPARQL."""
        return self._state.base.options

    @property
    def nbytes(self) -> int:
        """Count the bytes of the base's arrays, without the texts of the filters."""
        base = self._state.base
        return base.arrays.nbytes + sum(array.nbytes for array in base.expressions)

    @property
    def text_nbytes(self) -> int:
        """Count the bytes of the base's texts."""
        return sum(array.nbytes for array in self._state.base.filters)

    def filter(self, identity: Id) -> str:
        """Return the text of a subscription's filter; of another dialect it is the translation to SPARQL."""
        state = self._state
        return state.text(state.number_of(identity))

    def encode(self, graph: Graph) -> Encoded:
        """Encode a graph for the base."""
        return self._state.base.matcher.encoder.encode(graph)

    def match_encoded(self, graph: Graph, encoded: Encoded) -> NDArray[np.int32]:
        """List the numbers of the matches in the base, given what `encode` gave: places among the ids."""
        return self._state.base.matcher.match_encoded(graph, encoded)

    def match(self, event: Event) -> list[Id]:
        """List the ids of the matching subscriptions, sorted.

        A filter that is too much for the event does not hold; `headgate.Omissions` collects which, else it is
        logged. That is so for all questions.
        """
        left_out: list[tuple[Id, str]] = []
        found = self._state.match_one(graph_of(event), left_out)
        tell_all(event.id, left_out)
        return found

    def next(self, event: Event, at_least: Id) -> Id | None:
        """Find the first matching id that is at least `at_least`.

        The first question matches the event; those that follow, while nothing changes, look its answer up.
        """
        state = self._state
        state.check_type(at_least)
        found = self._matches(state, event)
        place = bisect_left(found, at_least)
        return found[place] if place < len(found) else None

    def numbers(
        self, event: Event, count: int | None = None, at_least: int | None = None
    ) -> NDArray[np.int64]:
        """List the first `count` matches from `at_least` on, rising; for ids that are whole numbers."""
        state = self._state
        if len(state) and not state.numbered:
            raise SubscriptionError("ids here are text: ask for `match`, which lists them")
        found = np.array(self._matches(state, event), np.int64)
        return found[0 if at_least is None else np.searchsorted(found, at_least) :][:count]

    def _matches(self, state: State, event: Event) -> list[Id]:
        """Match an event, or remember what it matched when this thread asked last."""
        key = (state, state.changes, state.base.taxonomy.version)
        held: _Answer | None = getattr(self._local, "answer", None)
        if held is None or held.event is not event or held.key != key:
            left_out: list[tuple[Id, str]] = []
            found = state.match_one(graph_of(event), left_out)
            held = self._local.answer = _Answer(event, key, found, left_out)
        tell_all(event.id, held.left_out)
        return held.found

    def match_batch(self, batch: pa.RecordBatch, identities: pa.Array[Any] | None = None) -> pa.RecordBatch:
        """Match a batch of events: (event_id, subscription_id) out.

        In come the columns `id`, `data` and `datacontenttype`. `identities` stand for the ids. An event that
        cannot be read is refused, with its id.
        """
        texts = [_texts(column_of(batch, name), name) for name in (DATA, CONTENT_TYPE)]
        if identities is None:
            identities = column_of(batch, ID)
        documents = list(zip(*texts, strict=True))
        return self._match_documents(documents, identities)

    def match_events(
        self, events: Sequence[Event], identities: pa.Array[Any] | None = None
    ) -> pa.RecordBatch:
        """Match events, many at once; `identities` stand for their ids."""
        if identities is None:
            identities = pa.array([event.id for event in events])
        return self.match_graphs([graph_of(event) for event in events], identities)

    def _match_documents(
        self, documents: Sequence[tuple[str, str]], identities: pa.Array[Any]
    ) -> pa.RecordBatch:
        graphs: list[Graph] = []
        for begin in range(0, len(documents), CHUNK):
            for found in read_graphs(documents[begin : begin + CHUNK]):
                if isinstance(found, EventError):
                    raise EventError(f"event {identities[len(graphs)].as_py()!r}: {found}")
                graphs.append(found)
        return self.match_graphs(graphs, identities)

    def match_graphs(self, graphs: Sequence[Graph], identities: pa.Array[Any]) -> pa.RecordBatch:
        """Match graphs that are read, with their ids."""
        state = self._state
        late = state.late > 0
        events, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for place, graph in enumerate(graphs):
            left_out: list[tuple[Id, str]] = []
            found = state.match(graph, left_out)
            if left_out:
                tell_all(identities[place].as_py(), left_out)
            if late and len(found) > 1:
                found = np.array(sorted(found.tolist(), key=state.id_of), np.int64)
            events.append(np.full(len(found), place))
            numbers.append(found)
        columns = [identities.take(np.concatenate(events)), state.id_array(np.concatenate(numbers))]
        return pa.RecordBatch.from_arrays(columns, names=[EVENT_ID, SUBSCRIPTION_ID])

    def bindings(self, event: Event, identity: Id, limit: int = 1000) -> Bindings:
        """List the bindings under which a subscription matches an event, at most `limit`."""
        if limit < 0:
            raise SubscriptionError(f"limit {limit} is below 0: give how many bindings are wanted at most")
        state = self._state
        pattern = state.pattern(state.number_of(identity))
        return bindings(pattern, graph_of(event), state.base.taxonomy, state.base.options, limit)

    def explain(self, event: Event, identity: Id) -> Explanation:
        """Say why an event matches a subscription or not, edge by edge and filter by filter."""
        state = self._state
        pattern = state.pattern(state.number_of(identity))
        return explain(pattern, graph_of(event), state.base.taxonomy, state.base.options)

    def sieve(self, first: int, size: int) -> None:
        """Have none: a pattern is joined, and cannot be asked by planes."""
        del first, size

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription; it matches from now on. Refuses a bad filter, and an id that is here."""
        text, pattern = _read(subscription)
        self._add(subscription.id, text, pattern)

    @staticmethod
    def _compiled(text: str) -> Pattern:
        return parse_filter(text)

    def _frozen(self) -> Moment:
        return freeze(self._state)

    def _rebuilt(self, moment: Moment) -> State:
        return compact(moment)


@dataclass
class RdfRoom:
    """The room with settings, for what is built over any content: a graph, a ranking.

    All that is built or opened through one room shares one taxonomy; if none is given, that of the first
    snapshot that is opened.
    """

    room_name: ClassVar[Literal["rdf"]] = RDF

    taxonomy: Taxonomy | None = None
    options: Options | None = None
    dialect: str = SPARQL
    always: str = RdfIndex.always

    def build(self, subscriptions: Iterable[Subscription]) -> RdfIndex:
        """Index subscriptions."""
        if self.taxonomy is None:
            self.taxonomy = Taxonomy()
        return RdfIndex.build(subscriptions, taxonomy=self.taxonomy, options=self.options)

    def open(self, path: Path, *, verify: bool = True) -> RdfIndex:
        """Open a snapshot, with its own options."""
        index = RdfIndex.open(path, verify=verify, taxonomy=self.taxonomy)
        self.taxonomy = index.taxonomy
        self.options = index.options
        return index

    @staticmethod
    def clauses(text: str, dialect: str) -> tuple[Clause, ...]:
        """Take a filter apart."""
        return split(text, dialect)


def _read(subscription: Subscription) -> tuple[str, Pattern]:
    """Parse a subscription's filter; of another dialect, the text becomes SPARQL."""
    pattern = parse_filter(subscription.filter, subscription.dialect)
    text = subscription.filter if subscription.dialect == SPARQL else print_pattern(pattern)
    return text, pattern


def _texts(column: pa.Array[Any], name: str) -> list[str]:
    """Return a column of texts; refuses nulls, and what is no text."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise EventError(f"the column {name!r} of the events is {column.type}: give text")
    if column.null_count:
        raise EventError(
            f"the events have no {name!r} in {column.null_count} of {len(column)} rows: fill it in"
        )
    texts: list[str] = column.to_pylist()  # type: ignore[assignment]
    return texts
