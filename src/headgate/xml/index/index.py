"""The room's public class: all patterns over XML documents, ready to match and to change."""

from __future__ import annotations

import threading
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.living import Living
from headgate.core.event import CONTENT_TYPE, DATA, ID, Event, column_of
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.omission import tell_all
from headgate.core.rooms import XML
from headgate.core.subscription import XPATH
from headgate.errors import EventError, SubscriptionError
from headgate.xml.events.reading import document_of
from headgate.xml.events.subject import Subject
from headgate.xml.explain.explain import Explanation, explain
from headgate.xml.index.base import ROOM, Base
from headgate.xml.index.columns import Writer
from headgate.xml.index.live import State, compact, freeze
from headgate.xml.language.parse import parse_filter
from headgate.xml.language.printing import print_pattern
from headgate.xml.language.splitting import split

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.protocol import Clause
    from headgate.core.event import Id
    from headgate.core.subscription import Subscription
    from headgate.xml.answers.answers import Answer
    from headgate.xml.events.document import Document
    from headgate.xml.index.columns import Columns
    from headgate.xml.index.live import Moment
    from headgate.xml.language.model import Pattern

EVENT_ID = "event_id"
SUBSCRIPTION_ID = "subscription_id"

__all__ = ["ROOM", "XmlIndex"]


class _Matched(NamedTuple):
    """What an event matched, and when."""

    event: Event
    key: tuple[State, int]
    found: list[Id]
    left_out: list[tuple[Id, str]]


class XmlIndex(Living[State]):
    """Patterns over XML: match, and subscribe and unsubscribe while others match.

    Any number of threads may read while one or more write. What a reader sees is the state at some moment of
    its call. New filters go into a tail, which `compact` folds into the base; that happens by itself, in a
    thread of its own, once the tail is a quarter of the base (`compact_after` is the least tail for it, None
    turns it off).

    >>> from headgate import Event, Subscription, XmlIndex
    >>> index = XmlIndex.build([Subscription("s1", "//item[price > 10]/name{val}", "xpath")])
    >>> event = Event("e1", "<shop><item><name>pen</name><price>12</price></item></shop>", content_type="xml")
    >>> index.match(event)
    ['s1']
    >>> index.answers(event)["s1"].values[-1]
    ('pen',)
    """

    room_name: ClassVar[Literal["xml"]] = XML
    dialect = XPATH
    """What `filter` and `clauses` write."""
    always = "/*{}"
    """The filter that every event matches."""

    def __init__(self, base: Base, *, compact_after: int | None = 4096) -> None:
        super().__init__(State(base), compact_after)
        self._local = threading.local()

    @classmethod
    def build(cls, subscriptions: Iterable[Subscription]) -> XmlIndex:
        """Parse and index subscriptions; refuses bad filters and repeated ids."""
        given = list(subscriptions)
        ids = Ids.of(subscription.id for subscription in given)
        by_id = {each.id: each for each in given}
        texts = []
        writer = Writer()
        for identity in ids:
            text, pattern = _read(by_id[identity])
            texts.append(text)
            writer.add(pattern)
        return cls.from_columns(ids, TextPool.build(texts), writer.columns())

    @classmethod
    def from_columns(cls, ids: Ids, filters: TextPool, columns: Columns) -> XmlIndex:
        """Index filters that are in columns, in the order of their ids."""
        return cls(Base(ids, filters, columns))

    @staticmethod
    def clauses(text: str, dialect: str = XPATH) -> tuple[Clause, ...]:
        """Take a filter apart into its paths, from root to leaf; refuses a bad filter."""
        return split(text, dialect)

    @classmethod
    def open(cls, path: Path, *, verify: bool = True) -> XmlIndex:
        """Open a snapshot, memory-mapped."""
        return cls(Base.open(path, verify=verify))

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot, compacted if need be; `source` says what it was built from."""
        # Without the lock: a compaction that runs already needs it to end.
        if self._state.changed:
            self.compact()
        self._state.base.save(path, source=source)

    @property
    def nbytes(self) -> int:
        """Count the bytes of the base's arrays, without the texts of the filters."""
        return self._state.base.nbytes

    @property
    def text_nbytes(self) -> int:
        """Count the bytes of the base's texts."""
        return sum(array.nbytes for array in self._state.base.filters)

    def filter(self, identity: Id) -> str:
        """Return the text of a subscription's filter; of another dialect it is the translation to XPath."""
        state = self._state
        return state.text(state.number_of(identity))

    def match_document(self, document: Document) -> NDArray[np.int64]:
        """List the numbers of the matches: places among the ids, if nothing changed since it was built."""
        return self._state.match(document, [])

    def match(self, event: Event) -> list[Id]:
        """List the ids of the matching subscriptions, sorted.

        A filter that is too much for the event does not hold; `headgate.Omissions` collects which, else it is
        logged. That is so for all questions.
        """
        left_out: list[tuple[Id, str]] = []
        found = self._state.match_one(document_of(event), left_out)
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
        key = (state, state.changes)
        held: _Matched | None = getattr(self._local, "matched", None)
        if held is None or held.event is not event or held.key != key:
            left_out: list[tuple[Id, str]] = []
            found = state.match_one(document_of(event), left_out)
            held = self._local.matched = _Matched(event, key, found, left_out)
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
        rows = zip(*texts, identities, strict=True)
        return self.match_documents([_document(*row) for row in rows], identities)

    def match_events(
        self, events: Sequence[Event], identities: pa.Array[Any] | None = None
    ) -> pa.RecordBatch:
        """Match events, many at once; `identities` stand for their ids."""
        if identities is None:
            identities = pa.array([event.id for event in events])
        return self.match_documents([document_of(event) for event in events], identities)

    def match_documents(self, documents: Sequence[Document], identities: pa.Array[Any]) -> pa.RecordBatch:
        """Match documents that are read, with their ids."""
        state = self._state
        late = state.late > 0
        events, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for place, document in enumerate(documents):
            left_out: list[tuple[Id, str]] = []
            found = state.match(document, left_out)
            if left_out:
                tell_all(identities[place].as_py(), left_out)
            if late and len(found) > 1:
                found = np.array(sorted(found.tolist(), key=state.id_of), np.int64)
            events.append(np.full(len(found), place))
            numbers.append(found)
        columns = [identities.take(np.concatenate(events)), state.id_array(np.concatenate(numbers))]
        return pa.RecordBatch.from_arrays(columns, names=[EVENT_ID, SUBSCRIPTION_ID])

    def answer(self, event: Event, identity: Id) -> Answer | None:
        """Return what a subscription gives for an event, None if it does not match."""
        state = self._state
        return state.prepared(state.number_of(identity)).answer(document_of(event))

    def answers(self, event: Event, refused: dict[Id, str] | None = None) -> dict[Id, Answer]:
        """Return what each subscription gives that matches an event and returns anything, by id.

        One that would return too much of the document is put into `refused`, with the reason, and the others
        are answered; without that, the event is refused, with the id.
        """
        state, document = self._state, document_of(event)
        subject = Subject(document)
        found: dict[Id, Answer] = {}
        left_out: list[tuple[Id, str]] = []
        numbers = state.match(document, left_out).tolist()
        tell_all(event.id, left_out)
        for number in numbers:
            prepared = state.prepared(number)
            if not prepared.returns:
                continue
            identity = state.id_of(number)
            try:
                given = prepared.ask(subject)
            except EventError as error:
                if refused is None:
                    raise EventError(f"subscription {identity!r}: {error}") from None
                refused[identity] = str(error)
                continue
            if given is not None:
                found[identity] = given
        return found

    def explain(self, event: Event, identity: Id) -> Explanation:
        """Say why an event matches a subscription or not, node by node."""
        state = self._state
        return explain(state.pattern(state.number_of(identity)), document_of(event))

    def sieve(self, first: int, size: int) -> None:
        """Have none: a pattern is embedded, and cannot be asked by planes."""
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


def _read(subscription: Subscription) -> tuple[str, Pattern]:
    """Parse a subscription's filter; of another dialect, the text becomes XPath."""
    pattern = parse_filter(subscription.filter, subscription.dialect)
    text = subscription.filter if subscription.dialect == XPATH else print_pattern(pattern)
    return text, pattern


def _document(data: str, content_type: str, identity: pa.Scalar[Any]) -> Document:
    """Read a document; refuses one that cannot be read with the id of its event."""
    try:
        return document_of(Event(identity.as_py(), data, content_type=content_type))
    except EventError as error:
        raise EventError(f"event {identity.as_py()!r}: {error}") from None


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
