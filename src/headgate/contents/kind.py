"""A kind of content: one object that knows all that the others ask about its filters and its events.

A kind is loaded when its filters or events are met. Its module must load nothing large: what does is imported
inside methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar, cast

from headgate.contents.settings import PLAIN, PlainSettings
from headgate.core.event import FEED_TYPES
from headgate.core.subscription import SQL
from headgate.errors import EventError, PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from headgate.contents.protocol import Access, CompiledFilters, ContentRoom, Contents
    from headgate.contents.views import Views
    from headgate.core.event import Event, Id
    from headgate.core.ids import Ids
    from headgate.core.subscription import Subscription


_T = TypeVar("_T")


REFUSE, ALLOW = PLAIN["unindexed"].choices
"""What becomes of filters that no index leads to."""


@dataclass(frozen=True)
class FilterSettings(PlainSettings):
    """Settings of filters. Each kind of content knows some of them (`Kind.settings`)."""

    dialect: str = SQL
    """That of rows that name none."""
    schema: str | None = None
    """The attributes' types, as JSON."""
    sample: str | None = None
    """A table of events."""
    taxonomy: Any = None
    """A `Taxonomy`."""
    options: Any = None
    """What departs from the standard of the language."""

    @property
    def said(self) -> tuple[str, ...]:
        """Name the settings that are made.

        >>> FilterSettings(sample="events.jsonl").said
        ('sample',)
        """
        return tuple(name for name in SETTINGS if getattr(self, name) is not None)

    def of(self, kind: Kind) -> FilterSettings:
        """Return those that are about a kind."""
        return FilterSettings(
            self.dialect, **{name: getattr(self, name) for name in self.said if name in kind.settings}
        )


SETTINGS = {
    "schema": "a schema",
    "sample": "a sample",
    "taxonomy": "a taxonomy",
    "options": "options",
    **{name: each.called for name, each in PLAIN.items()},
}
"""The settings that are about some kinds only, as messages name them."""


class Feeds(NamedTuple):
    """What was read of feeds."""

    feeds: int
    lenient: int
    """How many were not as they should be, and read as best we can."""
    notes: int
    """How much was forgiven them."""


class DocumentEvents(NamedTuple):
    """The events of a document that was read: one, or those of a feed with what was forgiven it."""

    events: Sequence[Event]
    feed: bool = False
    notes: int = 0


class Results(NamedTuple):
    """What a filter gives for an event besides that it holds: for machines, and as lines for people."""

    plain: dict[str, Any]
    lines: list[str]


class Kind(ABC):
    """A kind of content. Events of most are documents; those of one without content types are rows."""

    name: ClassVar[str]
    """As snapshots carry it."""
    title: ClassVar[str]
    """What people call its events."""
    dialects: ClassVar[tuple[str, ...]]
    """The languages of its filters; the first is its own."""
    types: ClassVar[Mapping[str, str]] = {}
    """The content types of its documents, by their short names. Kinds may share some."""
    suffixes: ClassVar[Mapping[str, str]] = {}
    """The content types of files, by the endings of their names."""
    markup: ClassVar[str | None] = None
    """The content type of a document that begins with <, if it can be told."""
    most: ClassVar[int] = 16 << 20
    """How many bytes a document may have."""
    settings: ClassVar[frozenset[str]] = frozenset()
    """The fields of `FilterSettings` that are about its filters."""
    options: ClassVar[Iterable[str]] = ()
    """Other options of commands that are about its filters alone."""
    results: ClassVar[str | None] = None
    """The option that asks for what filters give besides that they hold, if they give something."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """List the kinds that it is: itself, or those that are asked as one."""
        return (self,)

    @property
    def documents(self) -> bool:
        """Tell whether events are documents, which are read by the kind, and not rows with attributes."""
        return bool(self.types)

    @property
    def rows(self) -> bool:
        """Tell whether rows with attributes are events of it."""
        return not self.documents

    @property
    def tabular(self) -> frozenset[str]:
        """Name the endings of documents that are those of tables, if no other files are with them."""
        return frozenset()

    @property
    def flags(self) -> tuple[str, ...]:
        """List all options of commands that are about its filters alone."""
        return (*self.options, *(each.flag for name, each in PLAIN.items() if name in self.settings))

    def gives(self, results: str) -> bool:
        """Tell whether filters give such results."""
        return self.results == results

    # Filters

    def plain(self, text: str) -> str:
        """Return a filter, as an index keeps it, as people would write it."""
        return text

    def of_filter(self, text: str) -> Kind:
        """Return the kind of a filter, as an index keeps it."""
        del text
        return self

    @abstractmethod
    def room(self, wanted: FilterSettings | None = None) -> ContentRoom:
        """Return what builds and opens indexes of filters, with their settings."""

    def room_at(self, path: Path) -> ContentRoom:
        """Return what opens a snapshot, and reads filters that come later as those in it were read."""
        del path
        return self.room()

    def mark_at(self, path: Path) -> str:
        """Return what stands before names to the filters of a snapshot, see `core/values.py`."""
        del path
        return ""

    def compiler(self, wanted: FilterSettings, read_sample: Callable[[str], Any]) -> Contents:
        """Return what compiles tables of filters; `read_sample` reads a table of events, if one is named."""
        del read_sample
        return cast("Contents", self.room(wanted))

    def check_filter(self, text: str, dialect: str, wanted: FilterSettings | None = None) -> None:
        """Refuse a bad filter, with its settings."""
        self.room(wanted).clauses(text, dialect)

    def looked_at(self, indexes: Sequence[Any]) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
        """List what filters look at, and what of it they compare, if events are rows."""
        del indexes
        return set(), set()

    def access(self, contents: Contents, filed: CompiledFilters, events: Sequence[Event]) -> list[Access]:
        """Say by what events come to filters, and how many of some events do: those that have all keys."""
        from headgate.contents.protocol import EVERY_EVENT, Access

        finder = contents.finder(None)
        seen = [frozenset(self.keys(event)) for event in events] if self.documents else []
        accesses = []
        for keys in finder.of_compiled(filed):
            if not keys:
                accesses.append(Access(EVERY_EVENT, len(events)))
                continue
            test = keys.issubset if finder.demands else lambda each, keys=keys: not keys.isdisjoint(each)
            joined = " and " if finder.demands else " or "
            accesses.append(Access(joined.join(sorted(keys)), sum(map(test, seen))))
        return accesses

    def verified_note(self, text: str, events: Sequence[Event]) -> str | None:
        """Say of a filter that is not decided by the index alone what is, and what the rest costs."""
        del text, events
        return None

    # Events that are documents

    def read(self, events: Sequence[Event | EventError]) -> list[DocumentEvents | EventError]:
        """Read documents, each in its place; what could not be read, or is none, as the reason."""
        read: list[DocumentEvents | EventError] = []
        for each in events:
            try:
                read.append(each if isinstance(each, EventError) else self.read_one(each))
            except EventError as error:
                read.append(error)
        return read

    def read_one(self, event: Event) -> DocumentEvents:
        """Read a document, for kinds that read one after the other; refuses what cannot be read."""
        raise NotImplementedError

    def pack(self, event: Event) -> bytes:
        """Write what was read of an event, to be carried to another process."""
        raise NotImplementedError

    def unpack(self, packed: bytes) -> tuple[Any, str]:
        """Return the data of such an event, and its content type."""
        raise NotImplementedError

    def kept(self, given: Event, event: Event) -> tuple[str | bytes, str]:
        """Return the text of an event and its content type; `given` is the document that it was in."""
        del event
        return given.data, given.content_type

    def one(self, event: Event, item: int | None) -> Event:
        """Choose the event of a document that may hold several, a feed; `item` is counted from 1."""
        if event.content_type not in FEED_TYPES.values() or not isinstance(event.data, str | bytes):
            return event
        (read,) = self.read([event])
        if isinstance(read, EventError):
            raise read
        which = 1 if item is None and len(read.events) == 1 else item
        if which is None or which > len(read.events):
            raise EventError(
                f"the feed has {len(read.events):,} items: say with --item which of them is the event"
            )
        return read.events[which - 1]

    def shown(self, event: Event) -> Event:
        """Return an event with its data as text that can be shown."""
        data = event.data
        return event if isinstance(data, str) else replace(event, data=data.decode(errors="replace"))

    def close(self) -> None:  # noqa: B027 -- most have started nothing
        """End what reading started: Spark keeps its workers, and they would keep theirs."""

    def keys(self, event: Event) -> Iterable[str]:
        """List what filters may demand of a document (`Finder`); nothing if all are open."""
        del event
        return ()

    # What filters give

    def given(self, index: Any, event: Event, identity: Id, limit: int) -> Results:
        """Return what a filter gives for an event, `limit` rows at most; nothing if it does not hold."""
        raise NotImplementedError

    def no_result(self) -> Any:
        """Return what a program gets of a filter that does not hold."""
        return None

    def views(
        self,
        subscriptions: Sequence[Subscription],
        *,
        carries: str | None = None,
        wanted: FilterSettings | None = None,
    ) -> Views:
        """Make views of subscriptions, in their order, with the settings of their filters."""
        del subscriptions, carries, wanted
        raise PlanError(f"filters of {self.title} have no views: they cannot be planned")

    def views_at(
        self, path: Path, *, carries: str | None = None, order: Sequence[int] | None = None
    ) -> tuple[Ids, Views]:
        """Make views of the subscriptions in a snapshot, in the order of their ids, or in another one."""
        del path, carries, order
        raise PlanError(f"filters of {self.title} have no views: they cannot be planned")


def listed(words: Iterable[str]) -> str:
    """List words with an "and" before the last.

    >>> listed(["records", "RDF", "XML"])
    'records, RDF and XML'
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def in_order(texts: Sequence[_T], order: Sequence[int] | None) -> Sequence[_T]:
    """Return texts in another order, if there is one.

    >>> in_order(["a", "b", "c"], [2, 0, 1]), in_order(["a"], None)
    (['c', 'a', 'b'], ['a'])
    """
    return texts if order is None else [texts[position] for position in order]


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Show rows of texts as a table.

    >>> table_lines([("x", "name"), ("1", "Ann")])
    ['  x   name', '  1   Ann']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["   ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
    return [f"  {line}".rstrip() for line in lines]


def check_size(data: str | bytes, most: int) -> None:
    """Refuse a document that has too many bytes; of a text these are counted only if it may have too many."""
    size = len(data)
    if isinstance(data, str) and size <= most < 3 * size and not data.isascii():
        size = len(data.encode(errors="surrogatepass"))
    if size > most:
        raise EventError(f"the document has {size:,} bytes: {most:,} are allowed")


def bad_length(length: int, kind: Kind) -> EventError | None:
    """Say that a file holds nothing, or more than a document may; None if it does neither."""
    if not length:
        return EventError("the document is empty: its file has no bytes")
    if length > kind.most:
        return EventError(f"the document has {length:,} bytes: {kind.most:,} are allowed")
    return None
