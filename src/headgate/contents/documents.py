"""What indexes of documents share, those of RDF and of XML.

A document is read, then the base and the tail are asked which of their filters hold for it. A filter that is
too much for a document does not hold, and is told with the reason.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from bisect import bisect_left
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from headgate.contents.blocks import BlockTail
from headgate.contents.live import FrozenBase, LiveIndex, LiveState
from headgate.contents.portions import Portion
from headgate.contents.protocol import PAIRS, CheckCosts, slice_of
from headgate.core.event import CONTENT_TYPE, DATA, ID, Event, column_of
from headgate.core.ids import Ids, sorted_by_id
from headgate.core.interning import TextPool
from headgate.core.omission import tell_all
from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.errors import EventError, SnapshotError, SubscriptionError, made_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from numpy.typing import NDArray

    from headgate.contents.live import Moment
    from headgate.core.arrays import Bools, Floats64, Ints, Ints32
    from headgate.core.event import Id
    from headgate.core.snapshot import Snapshot
    from headgate.core.subscription import Subscription

TOGETHER = 32
"""Documents that are encoded before the first of them is matched."""
_PREPARED = 1 << 14
"""Filters that are kept ready to be asked what they give, some kilobytes each."""
FEW = 16
"""Ids that are looked up one by one; more of them by Arrow, all at once."""


class BaseMatcher(ABC):
    """Filters that can be asked together. Any number of threads may ask."""

    @property
    @abstractmethod
    def finds_words(self) -> bool:
        """Tell whether encoding a document looks words up: then several are encoded one after another."""

    @abstractmethod
    def encode(self, document: Any) -> Any:
        """Make of a document what filters are asked with."""

    @abstractmethod
    def match_encoded(self, document: Any, encoded: Any, left_out: dict[int, str]) -> NDArray[Any]:
        """List the filters that hold for a document that is encoded, rising."""

    @abstractmethod
    def costs(self, document: Any, candidates: Ints, work: Floats64) -> None:
        """Match a document once more, and add for each filter whether it is checked, and what that takes."""

    def asked(self, document: Any) -> Ints32:
        """List the filters that something slower decides for a document, rising: none."""
        del document
        return np.zeros(0, np.int32)

    def match(self, document: Any, left_out: dict[int, str] | None = None) -> NDArray[Any]:
        """List the filters that hold, rising; what is too much goes to `left_out`, with the reason."""
        return self.match_encoded(document, self.encode(document), {} if left_out is None else left_out)


class DecidingMatcher(BaseMatcher):
    """Filters of several patterns each: a pattern that holds decides, or has a slower judge be asked.

    Filter f has the patterns from first[f] on; `decides` tells of each pattern which of both it does.
    """

    def __init__(self, inner: Any, first: Ints, decides: Bools) -> None:
        self.inner = inner
        self._first = first
        self._decides = decides
        self._plain = len(decides) == len(first) - 1 and bool(decides.all())

    @cached_property
    def _owner(self) -> Ints32:
        return np.repeat(np.arange(len(self._first) - 1, dtype=np.int32), np.diff(self._first))

    @property
    def finds_words(self) -> bool:
        """Tell whether words are looked up to encode a document."""
        return bool(self.inner.finds_words)

    def encode(self, document: Any) -> Any:
        """Make of a document what patterns are asked with."""
        return self.inner.encode(document)

    def match_encoded(self, document: Any, encoded: Any, left_out: dict[int, str]) -> Ints32:
        """List the filters that hold for a document that is encoded, rising."""
        if self._plain:
            plain: Ints32 = self.inner.match_encoded(document, encoded, left_out)
            return plain
        sure, asked = self._decided(document, encoded, left_out)
        if len(asked):
            sure = np.union1d(sure, self._ask(document, asked, left_out))
        for number in sure.tolist() if left_out else ():
            # One of its patterns was too much, and another decided.
            left_out.pop(number, None)
        return sure.astype(np.int32)

    def asked(self, document: Any) -> Ints32:
        """List the filters that are not decided by patterns alone for a document, rising."""
        if self._plain:
            return super().asked(document)
        return self._decided(document, self.encode(document), {})[1]

    def _decided(self, document: Any, encoded: Any, left_out: dict[int, str]) -> tuple[Ints32, Ints32]:
        """List the filters that hold by their patterns, and those that are to be asked."""
        lost: dict[int, str] = {}
        patterns = self.inner.match_encoded(document, encoded, lost)
        decides, owner = self._decides[patterns], self._owner[patterns]
        sure = np.unique(owner[decides])
        asked = np.concatenate([owner[~decides], *self._asked_besides(document, lost)])
        left_out |= {int(self._owner[pattern]): why for pattern, why in lost.items()}
        return sure, np.setdiff1d(asked, sure) if len(asked) else asked

    def _asked_besides(self, document: Any, lost: dict[int, str]) -> Sequence[Ints32]:
        """List filters that are asked though no pattern holds; takes out of `lost` what is asked instead."""
        del document, lost
        return ()

    @abstractmethod
    def _ask(self, document: Any, numbers: Ints32, left_out: dict[int, str]) -> Ints32:
        """Ask about some filters: list those that hold."""

    @abstractmethod
    def _asking(self, document: Any, numbers: Ints32) -> Floats64 | float:
        """Estimate what it takes to ask about some filters."""

    def costs(self, document: Any, candidates: Ints, work: Floats64) -> None:
        """Match a document once more, and add for each filter whether it is checked, and what that takes.

        A filter of several patterns is checked if one of them is; what asking takes counts too.
        """
        if self._plain:
            self.inner.costs(document, candidates, work)
            return
        count = len(self._owner)
        checked, steps = np.zeros(count, np.int64), np.zeros(count)
        self.inner.costs(document, checked, steps)
        np.add.at(work, self._owner, steps)
        candidates[np.unique(self._owner[checked > 0])] += 1
        asked = self.asked(document)
        work[asked] += self._asking(document, asked)


class FilterWriter(Protocol):
    """Compiles filters one after another."""

    def add(self, filter_: Any, /) -> Any:
        """Append a filter."""

    def columns(self) -> Any:
        """Return all that was added."""


class DocumentBase(FrozenBase):
    """A base of filters of documents, and how others are compiled like them; `pattern` returns one."""

    matcher: BaseMatcher
    pattern: Callable[[int], Any]

    room: ClassVar[str]
    layout: ClassVar[int]
    """The layout of the arrays in a snapshot; one that was written with another must be compiled again."""
    take: ClassVar[staticmethod[[Any, Ints], Any]]
    concatenate: ClassVar[staticmethod[[Sequence[Any]], Any]]
    parse: ClassVar[staticmethod[[str], Any]]
    """Reads a filter that was taken before."""
    ready: ClassVar[staticmethod[[Any], Any]]
    """Prepares a filter to be asked what it gives."""

    def __init__(self, ids: Ids, filters: TextPool) -> None:
        super().__init__(ids, filters)
        self.prepared = lru_cache(_PREPARED)(self._prepared)

    @property
    def version(self) -> int:
        """Return what rises when something else changes that decides what holds."""
        return 0

    @abstractmethod
    def writer(self) -> FilterWriter:
        """Return what compiles filters to columns."""

    @abstractmethod
    def matcher_of(self, columns: Any, pattern: Callable[[int], Any]) -> BaseMatcher:
        """Return what asks filters in columns; `pattern` returns one by its number."""

    @abstractmethod
    def columns_of(self, numbers: Ints) -> Any:
        """Return some filters in columns."""

    @abstractmethod
    def with_filters(self, ids: Ids, filters: TextPool, columns: Any) -> Self:
        """Build a base of other filters, with the settings of this one."""

    def admit(self, filter_: Any, late: Sequence[Any]) -> None:
        """Refuse a filter that cannot be here, given those that came late."""

    def _prepared(self, number: int) -> Any:
        return self.ready(self.parse(self.filters.text(number)))

    def _write(
        self,
        path: Path,
        source: Mapping[str, object] | None,
        arrays: Mapping[str, NDArray[Any]],
        counts: Mapping[str, int],
        about: Mapping[str, object],
    ) -> None:
        """Write a snapshot, with ids and texts."""
        offsets, data = self.filters
        write_snapshot(
            path,
            self.room,
            {**arrays, "filter_offsets": offsets, "filter_data": data, **self.ids.to_arrays()},
            counts={"subscriptions": len(self.ids), **counts},
            about={"layout": self.layout, "source": dict(source or {}), **about},
        )


BaseT = TypeVar("BaseT", bound=DocumentBase)


class DocumentState(LiveState[BaseT, BlockTail], Generic[BaseT]):
    """Base and tail."""

    def __init__(self, base: BaseT) -> None:
        super().__init__(base, BlockTail(base))

    @property
    def version(self) -> int:
        """Return what rises when something else changes that decides what holds."""
        return self.base.version

    def prepared(self, number: int) -> Any:
        """Return a filter that is ready to be asked what it gives."""
        base = len(self.base.ids)
        if number < base:
            return self.base.prepared(number)
        return self.base.ready(self.tail.pattern(number - base))

    def pattern(self, number: int) -> Any:
        """Return a filter."""
        base = len(self.base.ids)
        return self.base.pattern(number) if number < base else self.tail.pattern(number - base)

    def match(self, document: Any, left_out: list[tuple[Id, str]], encoded: Any = None) -> Ints:
        """List the numbers of the filters that hold: those of the base rising, then those of the tail.

        What is too much goes to `left_out`, with the reason. `encoded` is what the base's matcher has made of
        the document, if it has.
        """
        # The tail as it is now, and what was removed last of all: an id that is taken away and given anew
        # meanwhile is not answered twice.
        view = self.tail.view()
        early: dict[int, str] = {}
        lately: dict[int, str] = {}
        matcher = self.base.matcher
        base = (
            matcher.match(document, early)
            if encoded is None
            else matcher.match_encoded(document, encoded, early)
        )
        early_numbers: Ints = base.astype(np.int64)
        late = view.match(document, lately).astype(np.int64) if view.size else np.zeros(0, np.int64)
        if early or lately:
            left_out += self.named(early, {n: why for n, why in lately.items() if n < view.size})
        if self._gone:
            early_numbers = early_numbers[self.base.removed[early_numbers] == 0]
            late = late[self.tail_removed[late] == 0]
        return np.concatenate([early_numbers, late + len(self.base.ids)]) if len(late) else early_numbers

    def find_all(self, ids: Sequence[Id]) -> list[int]:
        """Find the numbers of some subscriptions, -1 for none."""
        base = self.base
        if self._places or len(ids) < FEW or not len(base.ids):
            return [self.find(each) for each in ids]
        numbers = np.minimum(base.ids.places(ids), len(base.ids) - 1)
        rows = zip(ids, base.ids.some(numbers.astype(np.int32)), numbers.tolist(), strict=True)
        return [number if each == here and not base.removed[number] else -1 for each, here, number in rows]

    def id_of(self, number: int) -> Id:
        """Return the id of a number."""
        base = len(self.base.ids)
        return self.base.ids[number] if number < base else self.tail_ids[number - base]

    def match_one(self, document: Any, left_out: list[tuple[Id, str]]) -> list[Id]:
        """List the ids that match, sorted; what is too much goes to `left_out`, with the reason."""
        numbers = self.match(document, left_out)
        ids: list[Any] = self.listed(numbers)
        if not self.in_order(numbers):
            ids.sort()
        return ids


class _Answer(NamedTuple):
    """What an event matched, and when."""

    event: Event
    key: tuple[Any, int, int]
    ids: list[Id]
    left_out: list[tuple[Id, str]]


class DocumentIndex(LiveIndex[DocumentState[BaseT]], Generic[BaseT]):
    """Filters of documents. A room says how documents and filters are read."""

    dialect: ClassVar[str]
    """What `filter` and `clauses` write."""
    _document: ClassVar[staticmethod[[Event], Any]]
    """Reads the document of an event."""
    _parse: ClassVar[staticmethod[..., Any]]
    """Parses a filter of a dialect."""
    _print: ClassVar[staticmethod[[Any], str]]
    """Writes a filter in the room's own dialect."""

    def __init__(self, base: BaseT, *, compact_after: int | None = 4096) -> None:
        super().__init__(DocumentState(base), compact_after)
        self._local = threading.local()

    @abstractmethod
    def _documents(self, texts: Sequence[tuple[str, str]], identities: pa.Array[Any]) -> list[Any]:
        """Read documents, given by text and content type; refuses one with the id of its event."""

    @classmethod
    def read_filter(cls, text: str, dialect: str) -> tuple[str, Any]:
        """Parse a filter; of another dialect, the text becomes that of the room."""
        pattern = cls._parse(text, dialect)
        return text if dialect == cls.dialect else cls._print(pattern), pattern

    @classmethod
    def _read_all(
        cls,
        subscriptions: Iterable[Subscription],
        writer: Any,
        read: Callable[[str, str], tuple[str, Any]] | None = None,
    ) -> tuple[Ids, TextPool]:
        """Parse subscriptions and have their filters written in the order of their ids."""
        read = read or cls.read_filter
        ids, ordered = sorted_by_id(subscriptions)

        def added(row: Subscription) -> str:
            text, pattern = read(row.filter, row.dialect)
            writer.add(pattern)
            return text

        return ids, TextPool.build(made_of(ordered, added))

    def match(self, event: Event) -> list[Id]:
        """List the ids of the matching subscriptions, sorted.

        A filter that is too expensive for the event does not hold; `headgate.Omissions` collects which, else
        it is logged. That is so for all questions.
        """
        left_out: list[tuple[Id, str]] = []
        ids = self._state.match_one(self._document(event), left_out)
        tell_all(event.id, left_out)
        return ids

    def next(self, event: Event, at_least: Id) -> Id | None:
        """Find the first matching id that is at least `at_least`.

        The first question matches the event; those that follow, while nothing changes, look its answer up.
        """
        state = self._state
        state.check_type(at_least)
        ids: list[Any] = self._matches(state, event)
        position = bisect_left(ids, at_least)
        return ids[position] if position < len(ids) else None

    def numbers(self, event: Event, count: int | None = None, at_least: int | None = None) -> Ints:
        """List the first `count` matches from `at_least` on, rising; for ids that are whole numbers."""
        state = self._state
        if len(state) and not state.numbered:
            raise SubscriptionError("ids here are text: ask for `match`, which lists them")
        numbers = np.array(self._matches(state, event), np.int64)
        return numbers[0 if at_least is None else np.searchsorted(numbers, at_least) :][:count]

    def _matches(self, state: DocumentState[BaseT], event: Event) -> list[Id]:
        """Match an event, or remember what it matched when this thread asked last."""
        key = (state, state.changes, state.version)
        held: _Answer | None = getattr(self._local, "answer", None)
        if held is None or held.event is not event or held.key != key:
            left_out: list[tuple[Id, str]] = []
            ids = state.match_one(self._document(event), left_out)
            held = self._local.answer = _Answer(event, key, ids, left_out)
        tell_all(event.id, held.left_out)
        return held.ids

    def ask(
        self, events: pa.RecordBatch | Sequence[Event], ids: pa.Array[Any], most: int = PAIRS
    ) -> Iterator[Portion]:
        """Match events in order, so few at a time that no more than `most` pairs can come of them.

        A batch has the columns `data` and `datacontenttype`. An event that cannot be read is refused, with
        its id.
        """
        for begin, end in self._steps(len(events), most):
            some, own = slice_of(events, begin, end), ids.slice(begin, end - begin)
            if isinstance(some, pa.RecordBatch):
                documents = self.read_batch(some, own)
            else:
                documents = [self._document(event) for event in some]
            yield self._portion(documents, own).moved(begin)

    def read_batch(self, batch: pa.RecordBatch, identities: pa.Array[Any]) -> list[Any]:
        """Read the documents of a batch; one that cannot be read is refused, with its id."""
        texts = [_texts(column_of(batch, name), name) for name in (DATA, CONTENT_TYPE)]
        return self._documents(list(zip(*texts, strict=True)), identities)

    def _portion(self, documents: Sequence[Any], identities: pa.Array[Any]) -> Portion:
        """Match documents that are read, with their ids."""
        state = self._state
        late = state.late > 0
        events, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for row, (document, encoded) in enumerate(_encoded(state.base.matcher, documents)):
            left_out: list[tuple[Id, str]] = []
            matches = state.match(document, left_out, encoded)
            if left_out:
                tell_all(identities[row].as_py(), left_out)
            if late and len(matches) > 1:
                matches = np.array(sorted(matches.tolist(), key=state.id_of), np.int64)
            events.append(np.full(len(matches), row))
            numbers.append(matches)
        return Portion(0, len(documents), np.concatenate(events), np.concatenate(numbers), state)

    def verified(self, event: Event) -> list[Id]:
        """List the subscriptions of the base that patterns alone do not decide for an event."""
        base = self._state.base
        return base.listed(base.matcher.asked(self._document(event)))

    def check_costs(self, events: pa.RecordBatch | Sequence[Event]) -> CheckCosts:
        """Match some events again, and count what is checked; filters that came lately are left out."""
        base = self._state.base
        if isinstance(events, pa.RecordBatch):
            documents = self.read_batch(events, column_of(events, ID))
        else:
            documents = [self._document(event) for event in events]
        candidates, work = np.zeros(len(base.ids), np.int64), np.zeros(len(base.ids))
        for document in documents:
            base.matcher.costs(document, candidates, work)
        return CheckCosts(base.ids, np.where(base.removed, -1, candidates), np.ceil(work).astype(np.int64))

    def filter_planes(self, first: int, size: int) -> None:
        """Have none: patterns cannot be asked by planes."""
        del first, size

    def _read(self, text: str, dialect: str) -> tuple[str, Any]:
        return self.read_filter(text, dialect)

    def _rebuilt(self, moment: Moment[DocumentState[BaseT]]) -> DocumentState[BaseT]:
        state, kept, late = moment
        base = state.base
        ids, filters, order = state.merged(kept, late)
        left = base.columns_of(np.flatnonzero(kept))
        columns = base.concatenate([left, base.take(state.tail.columns(), np.flatnonzero(late))])
        return DocumentState(base.with_filters(ids, filters, base.take(columns, order)))


def _encoded(matcher: BaseMatcher, documents: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Go through documents, encoded a few at a time if words are looked up: these stay in the cache then."""
    if not matcher.finds_words:
        yield from ((each, None) for each in documents)
        return
    for begin in range(0, len(documents), TOGETHER):
        some = documents[begin : begin + TOGETHER]
        yield from zip(some, [matcher.encode(each) for each in some], strict=True)


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


def open_laid_out(path: Path, room: str, layout: int, *, verify: bool) -> Snapshot:
    """Open a snapshot, memory-mapped; refuses one of another layout of its arrays."""
    snapshot = open_snapshot(path, room, verify=verify)
    written = snapshot.about.get("layout")
    if written != layout:
        raise SnapshotError(
            f"snapshot {path} has layout {written} of this room, and this Headgate reads {layout}: "
            "compile it again (headgate compile), or use the Headgate that wrote it"
        )
    return snapshot


def stored_parts(parts: Iterable[Any], kinds: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Name the arrays of some groups of arrays as a snapshot does: by group and field."""
    return {
        f"{name}_{field}": array
        for name, part in zip(kinds, parts, strict=True)
        for field, array in part._asdict().items()
    }


def parts_of(arrays: Mapping[str, NDArray[Any]], kinds: Mapping[str, Any]) -> list[Any]:
    """Take groups of arrays out of a snapshot."""
    return [kind(*(arrays[f"{name}_{field}"] for field in kind._fields)) for name, kind in kinds.items()]
