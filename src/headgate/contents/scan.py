"""Filters that are asked one after another: all that a kind of content without an index of its own needs.

A kind of documents says how a filter is checked and whether it holds for what was read of an event; the rest
is here, and shared with kinds that have an index. It takes as long as there are filters.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.columns import ColumnContents, ColumnFinder, ColumnWriters
from headgate.contents.documents import BaseMatcher, DocumentBase, DocumentIndex
from headgate.contents.kind import DocumentEvents, Kind
from headgate.contents.protocol import Clause, SnapshotCounts
from headgate.core.event import Event
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.core.text.wording import Worded
from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    import pyarrow as pa

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import Keys
    from headgate.core.arrays import Floats64, Ints
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

    def read_filter(self, text: str, dialect: str) -> tuple[str, str]:
        """Check a filter; what it is compiled to is its text."""
        checked = self.check(text, dialect)
        return checked, checked

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

    def document(self, event: Event) -> Any:
        """Return what was read of an event, once."""
        if event.content_type not in self.types.values():
            known = ", ".join(self.types.values())
            raise EventError(
                f"event {event.id!r} is {event.content_type}, and these filters look at {self.title}: "
                f"send {known}"
            )
        return event.once(self.name, lambda given: self.parse(given.data))

    def read_one(self, event: Event) -> DocumentEvents:
        """Read a document."""
        self.document(event)
        return DocumentEvents((event,))

    def pack(self, event: Event) -> bytes:
        """Write an event as it came."""
        return event.data.encode() if isinstance(event.data, str) else bytes(event.data)

    def unpack(self, packed: bytes) -> tuple[Any, str]:
        """Return it."""
        return packed, next(iter(self.types.values()))


@dataclass(frozen=True)
class ScanVerdict(Worded):
    """Whether a filter holds."""

    matches: bool
    filter: str

    def lines(self) -> list[str]:
        """Say it for people."""
        return [f"match: {self.filter}" if self.matches else f"no match: {self.filter} does not hold"]


class ScanMatcher(BaseMatcher):
    """Filters that are asked."""

    finds_words = False

    def __init__(self, kind: ScanKind, texts: list[str]) -> None:
        self._kind = kind
        self._texts = texts

    def encode(self, document: Any) -> Any:
        """Take a document as it was read."""
        return document

    def match_encoded(self, document: Any, encoded: Any, left_out: dict[int, str]) -> Ints:
        """List the filters that hold."""
        del encoded, left_out
        return np.flatnonzero([self._kind.holds(text, document) for text in self._texts])

    def costs(self, document: Any, candidates: Ints, work: Floats64) -> None:
        """Count that each is asked."""
        del document
        candidates += 1
        work += 1


def _concatenate(parts: Sequence[TextPool]) -> TextPool:
    return TextPool.build(text for part in parts for text in part.texts())


class ScanBase(DocumentBase):
    """Filters in the order of their ids."""

    take = staticmethod(TextPool.take)
    concatenate = staticmethod(_concatenate)
    parse = ready = staticmethod(str)

    def __init__(self, kind: ScanKind, ids: Ids, filters: TextPool) -> None:
        super().__init__(ids, filters)
        self.kind = kind
        self.matcher = ScanMatcher(kind, filters.texts())
        self.pattern = filters.text

    def writer(self) -> ScanWriter:
        """Return what lays filters one behind another."""
        return ScanWriter()

    def matcher_of(self, columns: TextPool, pattern: object) -> ScanMatcher:
        """Return what asks some filters."""
        del pattern
        return ScanMatcher(self.kind, columns.texts())

    def columns_of(self, numbers: Ints) -> TextPool:
        """Return the texts of some filters."""
        return self.filters.take(numbers)

    def with_filters(self, ids: Ids, filters: TextPool, columns: TextPool) -> Self:
        """Take other filters."""
        del columns
        return type(self)(self.kind, ids, filters)

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot."""
        offsets, data = self.filters
        arrays = {**self.ids.to_arrays(), "filter_offsets": offsets, "filter_data": data}
        about, counts = {"source": dict(source or {})}, {"subscriptions": len(self.ids)}
        write_snapshot(path, self.kind.name, arrays, counts=counts, about=about)


class ScanIndex(DocumentIndex[ScanBase]):
    """Filters of a kind, which are asked one after another."""

    def __init__(self, base: ScanBase, *, compact_after: int | None = 4096) -> None:
        self.kind = base.kind
        # Other indexes have it from their classes.
        vars(self)["_document"] = base.kind.document
        super().__init__(base, compact_after=compact_after)

    @classmethod
    def build(cls, kind: ScanKind, subscriptions: Iterable[Subscription]) -> ScanIndex:
        """Index subscriptions; refuses bad filters and repeated ids."""
        ids, texts = cls._read_all(subscriptions, ScanWriter(), kind.read_filter)
        return cls(ScanBase(kind, ids, texts))

    @property
    def room_name(self) -> str:
        """Name the kind."""
        return self.kind.name

    def _documents(self, texts: Sequence[tuple[str, str]], identities: pa.Array[Any]) -> list[Any]:
        names: list[Any] = identities.to_pylist()
        rows = zip(texts, names, strict=True)
        return [self.kind.document(Event(name, data, content_type=kind)) for (data, kind), name in rows]

    def explain(self, event: Event, identity: Id) -> ScanVerdict:
        """Say whether a filter holds."""
        text = self.filter(identity)
        return ScanVerdict(self.kind.holds(text, self.kind.document(event)), text)

    def _read(self, text: str, dialect: str) -> tuple[str, str]:
        return self.kind.read_filter(text, dialect)


class ScanWriter:
    """Lays texts one behind another."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        """Append a filter."""
        self._texts.append(text)

    def columns(self) -> TextPool:
        """Return all that was added."""
        return TextPool.build(self._texts)


def _open(texts: TextPool) -> list[Keys]:
    """Say that every filter is open."""
    return [None] * texts.size


@dataclass(frozen=True)
class ScanRoom(ColumnContents):
    """What builds and opens indexes of a kind, and compiles tables of filters: texts are all columns."""

    columns = TextPool
    take = staticmethod(TextPool.take)
    concatenate = staticmethod(_concatenate)

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
        return ScanIndex.build(self.kind, subscriptions)

    def open(self, path: Path, *, verify: bool = True) -> ScanIndex:
        """Open a snapshot."""
        arrays = open_snapshot(path, self.kind.name, verify=verify).arrays
        texts = TextPool(arrays["filter_offsets"], arrays["filter_data"])
        return ScanIndex(ScanBase(self.kind, Ids.from_arrays(arrays), texts))

    def clauses(self, text: str, dialect: str | None = None) -> tuple[Clause, ...]:
        """Take a filter for one clause; refuses a bad one."""
        return (Clause(self.kind.check(text, dialect or self.dialect), ()),)

    @property
    def writers(self) -> ColumnWriters:
        """Return what workers need."""
        return ColumnWriters(self.dialect, self.kind.read_filter, ScanWriter, self.clauses)

    def compiled(self, texts: Sequence[str]) -> TextPool:
        """Take filters that were checked."""
        return TextPool.build(texts)

    def indexed(self, ids: Ids, texts: TextPool, columns: TextPool) -> ScanIndex:
        """Index them, in the order of their ids."""
        del texts
        return ScanIndex(ScanBase(self.kind, ids, columns))

    def finder(self, path: Attribute | None) -> ColumnFinder:
        """Return what finds the keys of filters: there are none."""
        del path
        return ColumnFinder(TextPool, _open, demands=False)

    def counts(self, snapshot: Path) -> SnapshotCounts:
        """Say that filters are asked one by one."""
        del snapshot
        return SnapshotCounts({}, f"of {self.kind.title}, which are asked one after another")
