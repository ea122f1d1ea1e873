"""Filters that are asked one after another: all that a kind of content without an index of its own needs.

A kind of documents says how a filter is checked and whether it holds for what was read of an event; the rest
is here: live changes, snapshots, batches, compiling on many workers. It takes as long as there are filters.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

from headgate.contents.kind import DocumentEvents, Kind
from headgate.contents.portions import Asks, Portion
from headgate.contents.protocol import PAIRS, Clause, SnapshotCounts
from headgate.contents.refusing import made_of
from headgate.core.event import CONTENT_TYPE, DATA, Event, column_of
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.errors import EventError, SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import Keys
    from headgate.core.event import Id
    from headgate.core.subscription import Subscription
    from headgate.core.values import Path as Attribute


class ScanKind(Kind):
    """A kind of documents whose filters are asked one after another."""

    always: str
    """A filter that holds for every event."""

    @abstractmethod
    def check(self, text: str, dialect: str) -> str:
        """Refuse a bad filter with a `FilterError`; returns it in the kind's own dialect."""

    @abstractmethod
    def parse(self, data: str | bytes) -> Any:
        """Read a document; refuses with an `EventError` what is none."""

    @abstractmethod
    def holds(self, text: str, document: Any) -> bool:
        """Tell whether a filter holds for a document."""

    def room(self, wanted: FilterSettings | None = None) -> ScanRoom:
        """Return what builds and opens indexes."""
        del wanted
        return ScanRoom(self)

    def compiler(self, wanted: FilterSettings, read_sample: Callable[[str], Any]) -> ScanContents:
        """Return what compiles tables of filters."""
        del wanted, read_sample
        return ScanContents(self)

    def document(self, event: Event) -> Any:
        """Return what was read of an event, once."""
        if event.content_type not in self.types.values():
            known = ", ".join(self.types.values())
            raise EventError(
                f"event {event.id!r} is {event.content_type}, and these filters look at {self.title}: "
                f"send {known}"
            )
        return event.once(self.name, lambda given: self.parse(given.data))

    def read(self, events: Sequence[Event | EventError]) -> list[DocumentEvents | EventError]:
        """Read documents."""
        found: list[DocumentEvents | EventError] = []
        for each in events:
            try:
                if isinstance(each, Event):
                    self.document(each)
                found.append(DocumentEvents((each,)) if isinstance(each, Event) else each)
            except EventError as error:
                found.append(error)
        return found

    def pack(self, event: Event) -> bytes:
        """Write an event as it came."""
        return event.data.encode() if isinstance(event.data, str) else bytes(event.data)

    def unpack(self, packed: bytes) -> tuple[Any, str]:
        """Return it."""
        return packed, next(iter(self.types.values()))

    def keys(self, data: Any) -> Iterable[str]:
        """List none: every filter is open."""
        del data
        return ()


@dataclass(frozen=True)
class ScanVerdict:
    """Whether a filter holds."""

    matches: bool
    filter: str

    def lines(self) -> list[str]:
        """Say it for people."""
        return [f"match: {self.filter}" if self.matches else f"no match: {self.filter} does not hold"]


@dataclass(frozen=True)
class ScanRoom:
    """What builds and opens indexes of a kind."""

    kind: ScanKind

    @property
    def room_name(self) -> str:
        """Name the kind."""
        return self.kind.name

    @property
    def dialect(self) -> str:
        """Return the kind's own dialect."""
        return self.kind.dialects[0]

    @property
    def always(self) -> str:
        """Return a filter that every event matches."""
        return self.kind.always

    def build(self, subscriptions: Iterable[Subscription]) -> ScanIndex:
        """Index subscriptions; refuses bad filters and repeated ids."""
        given = list(subscriptions)
        ids = Ids.of(each.id for each in given)
        checked = made_of(given, lambda row: self.kind.check(row.filter, row.dialect))
        texts = dict(zip([each.id for each in given], checked, strict=True))
        return ScanIndex(self.kind, {identity: texts[identity] for identity in ids[:]})

    def open(self, path: Path, *, verify: bool = True) -> ScanIndex:
        """Open a snapshot."""
        found = open_snapshot(path, self.kind.name, verify=verify).arrays
        texts = TextPool(found["filter_offsets"], found["filter_data"]).texts()
        return ScanIndex(self.kind, dict(zip(Ids.from_arrays(found)[:], texts, strict=True)))

    def clauses(self, text: str, dialect: str | None = None) -> tuple[Clause, ...]:
        """Take a filter for one clause; refuses a bad one."""
        return (Clause(self.kind.check(text, dialect or self.dialect), ()),)


class ScanIndex(Asks):
    """Filters by id, in the order of ids. Readers keep to the table they found; writers make a new one."""

    def __init__(self, kind: ScanKind, filters: dict[Id, str]) -> None:
        self._kind = kind
        self._filters = filters
        self._writing = threading.Lock()

    @property
    def room_name(self) -> str:
        """Name the kind."""
        return self._kind.name

    @property
    def ids(self) -> Ids:
        """Return the ids, in order."""
        return Ids.of(self._filters)

    @property
    def numbered(self) -> bool:
        """Tell whether ids are whole numbers rather than text."""
        return isinstance(next(iter(self._filters), None), int)

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self._filters)

    def __contains__(self, identity: Id) -> bool:
        """Tell whether there is a subscription of this id."""
        return identity in self._filters

    def match(self, event: Event) -> list[Id]:
        """List the ids of the matching subscriptions, sorted."""
        document = self._kind.document(event)
        return [each for each, text in self._filters.items() if self._kind.holds(text, document)]

    def next(self, event: Event, at_least: Id) -> Id | None:
        """Find the first matching id that is at least `at_least`."""
        found: list[Any] = self.match(event)
        place = bisect_left(found, at_least)
        return found[place] if place < len(found) else None

    def numbers(
        self, event: Event, count: int | None = None, at_least: int | None = None
    ) -> NDArray[np.int64]:
        """List the first `count` matches from `at_least` on, rising; for ids that are whole numbers."""
        found = np.array(self.match(event), np.int64)
        return found[0 if at_least is None else np.searchsorted(found, at_least) :][:count]

    def ask(
        self, events: pa.RecordBatch | Sequence[Event], ids: pa.Array[Any], most: int = PAIRS
    ) -> Iterator[Portion]:
        """Match events in order; a batch has the columns `data` and `datacontenttype`."""
        if isinstance(events, pa.RecordBatch):
            columns = [
                ids.to_pylist(),
                *(column_of(events, name).to_pylist() for name in (DATA, CONTENT_TYPE)),
            ]
            events = [Event(name, data, content_type=kind) for name, data, kind in zip(*columns, strict=True)]
        kind: pa.DataType = pa.int64() if self.numbered else pa.string()
        for begin, end in self._steps(len(events), most):
            found = [(row, each) for row in range(begin, end) for each in self.match(events[row])]
            rows = np.array([row for row, _ in found], np.int64)
            portion = Portion.of(rows, pa.array([each for _, each in found], kind))
            yield portion._replace(begin=begin, end=end)

    def explain(self, event: Event, identity: Id) -> ScanVerdict:
        """Say whether a filter holds."""
        text = self.filter(identity)
        return ScanVerdict(self._kind.holds(text, self._kind.document(event)), text)

    def filter(self, identity: Id) -> str:
        """Return the text of a subscription's filter; refuses an id that is not here."""
        if identity not in self._filters:
            raise SubscriptionError(f"there is no subscription {identity!r} here")
        return self._filters[identity]

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription; refuses a bad filter, and an id that is here."""
        text = self._kind.check(subscription.filter, subscription.dialect)
        with self._writing:
            if subscription.id in self._filters:
                raise SubscriptionError(f"id {subscription.id!r} is subscribed already: unsubscribe it first")
            ids = Ids.of([*self._filters, subscription.id])
            filters = {**self._filters, subscription.id: text}
            self._filters = {identity: filters[identity] for identity in ids[:]}

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription; refuses one that is not here."""
        with self._writing:
            self.filter(identity)
            self._filters = {each: text for each, text in self._filters.items() if each != identity}

    def compact(self) -> None:
        """Do nothing: changes leave no traces."""

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot."""
        filters = self._filters
        offsets, data = TextPool.build(filters.values())
        arrays = {**Ids.of(filters).to_arrays(), "filter_offsets": offsets, "filter_data": data}
        about = {"source": dict(source or {})}
        write_snapshot(path, self._kind.name, arrays, counts={"subscriptions": len(filters)}, about=about)

    def filter_planes(self, first: int, size: int) -> None:
        """Have none."""
        del first, size


class ScanWriter:
    """Checks filters one after another."""

    def __init__(self, kind: ScanKind) -> None:
        self._kind = kind
        self._texts: list[str] = []

    def add(self, text: str, dialect: str) -> str:
        """Check the next filter."""
        self._texts.append(self._kind.check(text, dialect))
        return self._texts[-1]

    def to_bytes(self) -> bytes:
        """Return all that was added."""
        return msgspec.msgpack.encode(self._texts)


@dataclass(frozen=True)
class ScanCompiledFilters:
    """Filters by number."""

    kind: ScanKind
    texts: tuple[str, ...]
    attributes: tuple[str, ...] = ()

    def take(self, order: NDArray[np.int64]) -> ScanCompiledFilters:
        """Pick filters."""
        return replace(self, texts=tuple(self.texts[place] for place in order.tolist()))

    def with_filter(self, text: str) -> ScanCompiledFilters:
        """Append a filter."""
        return replace(self, texts=(*self.texts, text))

    def index(self, ids: Ids, texts: TextPool) -> ScanIndex:
        """Index them, in the order of their ids."""
        del texts
        return ScanIndex(self.kind, dict(zip(ids[:], self.texts, strict=True)))


@dataclass(frozen=True)
class ScanContents(ScanRoom):
    """A kind while tables of its filters are compiled; the same object is what workers need."""

    demands: bool = False

    @property
    def writers(self) -> ScanContents:
        """Return what workers need."""
        return self

    def writer(self, *, checked: bool = True) -> ScanWriter:
        """Begin."""
        del checked
        return ScanWriter(self.kind)

    def file(self, parts: Sequence[memoryview]) -> tuple[ScanCompiledFilters, NDArray[np.int64]]:
        """Lay what writers made one behind another."""
        found = [msgspec.msgpack.decode(part, type=list[str]) for part in parts]
        counts = np.array([len(each) for each in found], np.int64)
        return ScanCompiledFilters(self.kind, tuple(text for each in found for text in each)), counts

    def finder(self, path: Attribute | None) -> ScanContents:
        """Return what finds the keys of filters: itself, and there are none."""
        del path
        return self

    def of_bytes(self, payload: bytes) -> list[Keys]:
        """Say that every filter is open."""
        return [None] * len(msgspec.msgpack.decode(payload, type=list[str]))

    def of_compiled(self, compiled_filters: ScanCompiledFilters) -> list[Keys]:
        """Say that every filter is open."""
        return [None] * len(compiled_filters.texts)

    def counts(self, snapshot: Path) -> SnapshotCounts:
        """Say that filters are asked one by one."""
        del snapshot
        return SnapshotCounts({}, f"of {self.kind.title}, which are asked one after another")
