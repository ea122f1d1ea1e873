"""Several kinds of content as one: what jobs, streams and commands ask about their filters and events.

It is named by its kinds, `records+rdf`, in the order in which they are registered. Snapshots carry that name,
and workers are told it.

What stands above the contents, a graph or a ranking, keeps the texts of filters and hands them back later. It
does so in the one dialect of the content; here that is `MIXED`, whose texts say which dialect they are in:

    sql: age > 30
    sparql: ASK { ?x a <urn:Art> }
    *                                   every event of every kind

Events that are documents are read by the kind of their content type. Rows without one are records, and are
carried along with the documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headgate.contents.kind import DocumentEvents, Kind, listed
from headgate.core.event import JSON, Event, read_object
from headgate.core.rooms import MIXED_SIGN
from headgate.core.subscription import MIXED, check_dialect
from headgate.errors import EventError, SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from headgate.contents.kind import FilterSettings
    from headgate.contents.mixed.room import MixedRoom
    from headgate.contents.protocol import Access
    from headgate.core.event import Id


_RECORD, _SEVERAL = 254, 255
"""What stands before a packed event in place of its kind's number."""


class Readings(NamedTuple):
    """The data of an event that several kinds have read: what each made of it, by the kind's name."""

    data: Mapping[str, Any]


class MixedKind(Kind):
    """Some kinds as one."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._kinds = tuple(kinds)
        # Other kinds have these from their classes.
        about: Any = self
        about.name = MIXED_SIGN.join(kind.name for kind in kinds)
        about.title = listed(kind.title for kind in kinds)
        about.dialects = tuple(dialect for kind in kinds for dialect in kind.dialects)
        about.types = {short: name for kind in kinds for short, name in kind.types.items()}
        # An ending of several kinds is that of the last: `.xml` is XML rather than RDF/XML.
        about.suffixes = {end: name for kind in kinds for end, name in kind.suffixes.items()}
        if self.rows:
            about.suffixes[".json"] = JSON
        documents = [kind for kind in kinds if kind.documents]
        about.markup = documents[0].markup if len(documents) == 1 else None
        about.most = max(kind.most for kind in kinds)
        about.settings = frozenset[str]().union(*(kind.settings for kind in kinds))
        about.options = tuple(option for kind in kinds for option in kind.options)
        self._places = {dialect: number for number, kind in enumerate(kinds) for dialect in kind.dialects}
        self._taken: dict[str, tuple[int, ...]] = {}
        for number, kind in enumerate(kinds):
            for name in dict.fromkeys(kind.types.values() if kind.documents else (JSON,)):
                self._taken[name] = (*self._taken.get(name, ()), number)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """List them."""
        return self._kinds

    @property
    def rows(self) -> bool:
        """Tell whether rows with attributes are events of one of the kinds."""
        return any(kind.rows for kind in self.kinds)

    @property
    def tabular(self) -> frozenset[str]:
        """Name the endings of documents that are those of tables as well."""
        return frozenset({".json"} if self.rows else ())

    def gives(self, results: str) -> bool:
        """Tell whether filters of one of the kinds give such results."""
        return any(kind.gives(results) for kind in self.kinds)

    # Which kinds

    def place_of(self, dialect: str) -> int:
        """Find the kind that speaks a dialect; refuses that of a kind that is not one of these."""
        number = self._places.get(dialect)
        if number is None:
            check_dialect(dialect)
            raise SubscriptionError(
                f"dialect {dialect!r} is of another kind: filters here look at {self.title}, in "
                f"{', '.join(map(repr, self.dialects))}",
                names_it=False,
            )
        return number

    def places_of(self, content_type: str, identity: Id) -> tuple[int, ...]:
        """Find the kinds that an event of a content type is of; refuses one that is of none of these."""
        places = self._taken.get(content_type)
        if places is None:
            raise EventError(
                f"event {identity!r} is {content_type} and these filters look at {self.title}: send "
                f"{', '.join(self._taken)}"
            )
        return places

    def plain(self, text: str) -> str:
        """Return a filter without the dialect before it."""
        if text == ALWAYS:
            return text
        written, spoken = read_dialect(text, MIXED)
        return self.kinds[self.place_of(spoken)].plain(written)

    # Filters

    def room(self, wanted: FilterSettings | None = None) -> MixedRoom:
        """Return what builds and opens indexes, each with the settings of its kind."""
        from headgate.contents.mixed.room import MixedRoom

        return MixedRoom(self, [kind.room(wanted and wanted.of(kind)) for kind in self.kinds])

    def room_at(self, path: Path) -> MixedRoom:
        """Return what opens a snapshot."""
        from headgate.contents.mixed.room import MixedRoom

        return MixedRoom(self, [kind.room_at(path) for kind in self.kinds])

    def mark_at(self, path: Path) -> str:
        """Return the mark of the kind that has one."""
        return next(filter(None, (kind.mark_at(path) for kind in self.kinds)), "")

    def compiler(self, wanted: FilterSettings, read_sample: Callable[[str], Any]) -> MixedRoom:
        """Return what compiles tables of filters."""
        from headgate.contents.mixed.room import MixedRoom

        return MixedRoom(self, [kind.compiler(wanted.of(kind), read_sample) for kind in self.kinds])

    def looked_at(self, indexes: Sequence[Any]) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
        """List what filters look at, and what of it they compare, if events are rows."""
        named: set[tuple[str, ...]] = set()
        compared: set[tuple[str, ...]] = set()
        for kind in self.kinds:
            own = [each.content for index in indexes for each in index.members if each.kind.name == kind.name]
            own_names = kind.looked_at(own)
            named |= own_names[0]
            compared |= own_names[1]
        return named, compared

    def access(self, contents: Any, filed: Any, events: Sequence[Event]) -> list[Access]:
        """Say by what events come to filters, and how many of some events do: those of their kind."""
        accesses: dict[int, Access] = {}
        for number, kind in enumerate(self.kinds):
            own = [event for event in events if number in self.places_of(event.content_type, event.id)]
            rows, part = filed.of_kind(number)
            accesses |= zip(rows, kind.access(contents.rooms[number], part, own) if rows else (), strict=True)
        return [accesses[row] for row in sorted(accesses)]

    # Events

    def read(self, events: Sequence[Event | EventError]) -> list[DocumentEvents | EventError]:
        """Read documents, those of each kind together; what is a record is checked."""
        reads: list[DocumentEvents | EventError | None] = [
            each if isinstance(each, EventError) else self._start(each) for each in events
        ]
        by_type: dict[tuple[int, ...], list[int]] = {}
        for row, (each, read) in enumerate(zip(events, reads, strict=True)):
            if read is None and isinstance(each, Event):
                by_type.setdefault(self._taken[each.content_type], []).append(row)
        for kinds, places in by_type.items():
            documents = [events[row] for row in places]
            by_kind = [self.kinds[kind].read(documents) for kind in kinds]
            read_by_all = by_kind[0] if len(kinds) == 1 else self._joined(kinds, documents, by_kind)
            for row, each_read in zip(places, read_by_all, strict=True):
                reads[row] = each_read
        return [each for each in reads if each is not None]

    def _start(self, event: Event) -> DocumentEvents | EventError | None:
        """Read a record, and refuse what is of no kind; None for documents."""
        try:
            self.places_of(event.content_type, event.id)
            return _record(event) if event.content_type == JSON else None
        except EventError as error:
            return error

    def _joined(
        self,
        kinds: Sequence[int],
        documents: Sequence[Any],
        by_kind: Sequence[Sequence[DocumentEvents | EventError]],
    ) -> list[DocumentEvents | EventError]:
        """Put together what several kinds have read of the same documents: all of them must have."""
        joined: list[DocumentEvents | EventError] = []
        for document, *each in zip(documents, *by_kind, strict=True):
            wrong = next((read for read in each if isinstance(read, EventError)), None)
            reads = [read for read in each if isinstance(read, DocumentEvents)]
            if wrong is not None or len({len(read.events) for read in reads}) > 1:
                counts = " and ".join(
                    f"{len(read.events):,} for {self.kinds[kind].title}"
                    for kind, read in zip(kinds, reads, strict=False)
                )
                reason = f"the document is not as many events for each kind, but {counts}: ask them apart"
                joined.append(wrong or EventError(reason))
                continue
            names = [self.kinds[kind].name for kind in kinds]
            events = tuple(
                # The type is that of the document: by it all of the kinds are asked.
                replace(
                    same[0],
                    data=Readings(dict(zip(names, (event.data for event in same), strict=True))),
                    content_type=document.content_type,
                )
                for same in zip(*(read.events for read in reads), strict=True)
            )
            joined.append(
                DocumentEvents(events, any(read.feed for read in reads), max(read.notes for read in reads))
            )
        return joined

    def pack(self, event: Event) -> bytes:
        """Write what was read of an event, after the number of its kind."""
        if event.content_type == JSON:
            return bytes([_RECORD]) + msgspec.json.encode(event.data)
        kinds = self.places_of(event.content_type, event.id)
        if len(kinds) == 1:
            return bytes(kinds) + self.kinds[kinds[0]].pack(event)
        parts = {
            kind: self.kinds[kind].pack(replace(event, data=event.data.data[self.kinds[kind].name]))
            for kind in kinds
        }
        return bytes([_SEVERAL]) + msgspec.msgpack.encode((event.content_type, parts))

    def unpack(self, packed: bytes) -> tuple[Any, str]:
        """Return the data of such an event, and its content type."""
        number, rest = packed[0], packed[1:]
        if number == _RECORD:
            return msgspec.json.decode(rest), JSON
        if number != _SEVERAL:
            return self.kinds[number].unpack(rest)
        written, parts = msgspec.msgpack.decode(rest, type=tuple[str, dict[int, bytes]])
        data = {self.kinds[kind].name: self.kinds[kind].unpack(part)[0] for kind, part in parts.items()}
        return Readings(data), written

    def _first(self, event: Event) -> Kind:
        return self.kinds[self.places_of(event.content_type, event.id)[0]]

    def kept(self, given: Event, event: Event) -> tuple[str | bytes, str]:
        """Return the text of an event and its content type."""
        if isinstance(given.data, Mapping):
            return msgspec.json.encode(given.data), JSON
        first = self._first(given)
        return first.kept(given, seen_by(first, event))

    def one(self, event: Event, item: int | None) -> Event:
        """Choose the event of a document that may hold several; a record is read."""
        if event.content_type == JSON:
            return _record(event).events[0]
        self.places_of(event.content_type, event.id)
        return super().one(event, item)

    def shown(self, event: Event) -> Event:
        """Return an event with its data as text that can be shown."""
        if isinstance(event.data, Mapping):
            return event
        first = self._first(event)
        return first.shown(seen_by(first, event))

    def close(self) -> None:
        """End what reading started."""
        for kind in self.kinds:
            kind.close()

    def of_filter(self, text: str) -> Kind:
        """Return the kind of a filter that says its dialect; one for every event is of all of them."""
        return self if text == ALWAYS else self.kinds[self.place_of(read_dialect(text, MIXED)[1])]


def seen_by(kind: Kind, event: Event) -> Event:
    """Return an event as one of the kinds that have read it sees it."""
    return replace(event, data=event.data.data[kind.name]) if isinstance(event.data, Readings) else event


def _record(event: Event) -> DocumentEvents:
    """Check a record; one that came in a file is read first."""
    if isinstance(event.data, str | bytes):
        event = Event(event.id, read_object(event.data), event.time, event.source)
    event.check()
    return DocumentEvents((event,))


ALWAYS = "*"
"""The filter that every event matches, whatever its kind."""
_MARK = ": "


def with_dialect(text: str, dialect: str) -> str:
    """Write a filter with its dialect.

    >>> with_dialect("age > 30", "sql")
    'sql: age > 30'
    """
    return f"{dialect}{_MARK}{text}"


def read_dialect(text: str, dialect: str) -> tuple[str, str]:
    """Return a filter in its own dialect, and that; refuses a text that does not say it.

    >>> read_dialect("sql: age > 30", "mixed"), read_dialect("age > 30", "sql")
    (('age > 30', 'sql'), ('age > 30', 'sql'))
    """
    if dialect != MIXED:
        return text, dialect
    spoken, mark, rest = text.partition(_MARK)
    if not mark:
        raise SubscriptionError(
            f"the filter {text!r} does not say its dialect: write it as 'sql: age > 30'", names_it=False
        )
    check_dialect(spoken)
    return rest, spoken
