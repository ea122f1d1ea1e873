"""Several kinds of content as one: what jobs, streams and commands ask about their filters and events.

It is named by its kinds, `records+rdf`, in the order in which they are registered. Snapshots carry that name,
and workers are told it.

Events that are documents are read by the kind of their content type. Rows without one are records, and are
carried along with the documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.contents.kind import DocumentEvents, Kind
from headgate.core.event import JSON, Event, read_object
from headgate.core.rooms import MIXED_SIGN
from headgate.core.subscription import MIXED, check_dialect
from headgate.errors import EventError, SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from headgate.contents.kind import FilterSettings
    from headgate.contents.mixed.compiling import MixedContents
    from headgate.contents.mixed.room import MixedRoom
    from headgate.contents.protocol import Access
    from headgate.core.event import Id

_RECORD, _SEVERAL = 254, 255
"""What stands before a packed event in place of its kind's number."""


class MixedKind(Kind):
    """Some kinds as one."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._kinds = tuple(kinds)
        # Other kinds have these from their classes.
        about: Any = self
        about.name = MIXED_SIGN.join(kind.name for kind in kinds)
        *most, last = (kind.title for kind in kinds)
        about.title = f"{', '.join(most)} and {last}"
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
        self._places = {dialect: place for place, kind in enumerate(kinds) for dialect in kind.dialects}
        self._taken: dict[str, tuple[int, ...]] = {}
        for place, kind in enumerate(kinds):
            for name in dict.fromkeys(kind.types.values() if kind.documents else (JSON,)):
                self._taken[name] = (*self._taken.get(name, ()), place)

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
        place = self._places.get(dialect)
        if place is None:
            check_dialect(dialect)
            raise SubscriptionError(
                f"dialect {dialect!r} is of another kind: filters here look at {self.title}, in "
                f"{', '.join(map(repr, self.dialects))}",
                names_it=False,
            )
        return place

    def places_of(self, content_type: str, identity: Id) -> tuple[int, ...]:
        """Find the kinds that an event of a content type is of; refuses one that is of none of these."""
        found = self._taken.get(content_type)
        if found is None:
            raise EventError(
                f"event {identity!r} is {content_type} and these filters look at {self.title}: send "
                f"{', '.join(self._taken)}"
            )
        return found

    def plain(self, text: str) -> str:
        """Return a filter without the dialect before it."""
        from headgate.contents.mixed.texts import ALWAYS, read_dialect

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

    def compiler(self, wanted: FilterSettings, read_sample: Callable[[str], Any]) -> MixedContents:
        """Return what compiles tables of filters."""
        from headgate.contents.mixed.compiling import MixedContents

        return MixedContents(self, [kind.compiler(wanted.of(kind), read_sample) for kind in self.kinds])

    def attributes(self, snapshots: Sequence[Path]) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
        """List what verified filters look at, and what of it they compare, if events are rows."""
        named: set[tuple[str, ...]] = set()
        compared: set[tuple[str, ...]] = set()
        for kind in self.kinds:
            found = kind.attributes([place / kind.name for place in snapshots])
            named |= found[0]
            compared |= found[1]
        return named, compared

    def looked_at(self, indexes: Sequence[Any]) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
        """List the same of filters that are indexed."""
        named: set[tuple[str, ...]] = set()
        compared: set[tuple[str, ...]] = set()
        for kind in self.kinds:
            own = [each.content for index in indexes for each in index.members if each.kind.name == kind.name]
            found = kind.looked_at(own)
            named |= found[0]
            compared |= found[1]
        return named, compared

    def access(self, contents: Any, filed: Any, events: Sequence[Event]) -> list[Access]:
        """Say by what events come to filters, and how many of some events do: those of their kind."""
        found: dict[int, Access] = {}
        for place, kind in enumerate(self.kinds):
            own = [event for event in events if place in self.places_of(event.content_type, event.id)]
            rows, part = filed.of_kind(place)
            found |= zip(rows, kind.access(contents.rooms[place], part, own) if rows else (), strict=True)
        return [found[row] for row in sorted(found)]

    # Events

    def read(self, events: Sequence[Event | EventError]) -> list[DocumentEvents | EventError]:
        """Read documents, those of each kind together; what is a record is checked."""
        found: list[DocumentEvents | EventError | None] = [
            each if isinstance(each, EventError) else self._start(each) for each in events
        ]
        by_type: dict[tuple[int, ...], list[int]] = {}
        for place, (each, read) in enumerate(zip(events, found, strict=True)):
            if read is None and isinstance(each, Event):
                by_type.setdefault(self._taken[each.content_type], []).append(place)
        for kinds, places in by_type.items():
            given = [events[place] for place in places]
            by_kind = [self.kinds[kind].read(given) for kind in kinds]
            read_by_all = by_kind[0] if len(kinds) == 1 else self._joined(kinds, given, by_kind)
            for place, each_read in zip(places, read_by_all, strict=True):
                found[place] = each_read
        return [each for each in found if each is not None]

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
        given: Sequence[Any],
        by_kind: Sequence[Sequence[DocumentEvents | EventError]],
    ) -> list[DocumentEvents | EventError]:
        """Put together what several kinds have read of the same documents: all of them must have."""
        from headgate.contents.mixed.index import Readings

        found: list[DocumentEvents | EventError] = []
        for document, *each in zip(given, *by_kind, strict=True):
            wrong = next((read for read in each if isinstance(read, EventError)), None)
            reads = [read for read in each if isinstance(read, DocumentEvents)]
            if wrong is not None or len({len(read.events) for read in reads}) > 1:
                counts = " and ".join(
                    f"{len(read.events):,} for {self.kinds[kind].title}"
                    for kind, read in zip(kinds, reads, strict=False)
                )
                reason = f"the document is not as many events for each kind, but {counts}: ask them apart"
                found.append(wrong or EventError(reason))
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
            found.append(
                DocumentEvents(events, any(read.feed for read in reads), max(read.notes for read in reads))
            )
        return found

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
        from headgate.contents.mixed.index import Readings

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
        return first.kept(given, _seen_by(first, event))

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
        return first.shown(_seen_by(first, event))

    def close(self) -> None:
        """End what reading started."""
        for kind in self.kinds:
            kind.close()

    def keys(self, data: Any) -> Iterable[str]:
        """List none: every filter is open."""
        del data
        return ()

    def of_filter(self, text: str) -> Kind:
        """Return the kind of a filter that says its dialect; one for every event is of all of them."""
        from headgate.contents.mixed.texts import ALWAYS, read_dialect

        return self if text == ALWAYS else self.kinds[self.place_of(read_dialect(text, MIXED)[1])]


def _seen_by(kind: Kind, event: Event) -> Event:
    """Return an event as one of the kinds that have read it sees it."""
    from headgate.contents.mixed.index import Readings

    return replace(event, data=event.data.data[kind.name]) if isinstance(event.data, Readings) else event


def _record(event: Event) -> DocumentEvents:
    """Check a record; one that came in a file is read first."""
    if isinstance(event.data, str | bytes):
        event = Event(event.id, read_object(event.data), event.time, event.source)
    event.attributes  # noqa: B018 -- checks the values
    return DocumentEvents((event,))
