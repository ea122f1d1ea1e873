"""What indexes of documents share, those of RDF and of XML.

A document is read, then the base and the tail are asked which of their filters hold for it. A filter that is
too much for a document does not hold, and is told with the reason.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from headgate.contents.live import FrozenBase, LiveIndex, LiveState, Tail
from headgate.contents.portions import Portion
from headgate.contents.protocol import PAIRS, CheckCosts
from headgate.contents.refusing import made_of
from headgate.contents.sharing import slice_of
from headgate.core.event import CONTENT_TYPE, DATA, ID, Event, column_of
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.omission import tell_all
from headgate.core.snapshot import open_snapshot
from headgate.errors import EventError, SnapshotError, SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.core.event import Id
    from headgate.core.snapshot import Snapshot
    from headgate.core.subscription import Subscription

TOGETHER = 32
"""Documents that are encoded before the first of them is matched."""
FEW = 16
"""Ids that are looked up one by one; more of them by Arrow, all at once."""


class Matcher(Protocol):
    """Filters that can be asked together."""

    def match(self, document: Any, left_out: dict[int, str], /) -> NDArray[Any]:
        """List the filters that hold, rising; what is too much goes to `left_out`, with the reason."""


class BaseMatcher(Matcher, Protocol):
    """The same in two steps, and what it takes to ask them."""

    @property
    def finds_words(self) -> bool:
        """Tell whether encoding a document looks words up: then several are encoded one after another."""

    def encode(self, document: Any, /) -> Any:
        """Make of a document what filters are asked with."""

    def match_encoded(self, document: Any, encoded: Any, left_out: dict[int, str], /) -> NDArray[Any]:
        """List the filters that hold for a document that is encoded."""

    def costs(self, document: Any, candidates: NDArray[np.int64], work: NDArray[np.float64], /) -> None:
        """Match a document once more, and add for each filter whether it is checked, and what that takes."""


class DocumentBase(FrozenBase):
    """A base that asks documents; `pattern` returns a filter by its number."""

    matcher: BaseMatcher
    pattern: Callable[[int], Any]

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Count the bytes of the arrays."""


class TailView(Matcher, Protocol):
    """The filters of a tail at one moment."""

    @property
    def size(self) -> int:
        """Count them."""


class DocumentTail(Tail, Protocol):
    """A tail that asks documents."""

    def view(self) -> TailView:
        """Return the filters as they are now."""

    def pattern(self, place: int) -> Any:
        """Return a filter."""


BaseT = TypeVar("BaseT", bound=DocumentBase)
TailT = TypeVar("TailT", bound=DocumentTail)
StateT = TypeVar("StateT", bound="DocumentState[Any, Any]")


class DocumentState(LiveState[BaseT, TailT]):
    """Base and tail."""

    @property
    def version(self) -> int:
        """Return what rises when something else changes that decides what holds."""
        return 0

    def pattern(self, number: int) -> Any:
        """Return a filter."""
        base = len(self.base.ids)
        return self.base.pattern(number) if number < base else self.tail.pattern(number - base)

    def match(self, document: Any, left_out: list[tuple[Id, str]], encoded: Any = None) -> NDArray[np.int64]:
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
        found: NDArray[np.int64] = base.astype(np.int64)
        late = view.match(document, lately).astype(np.int64) if view.size else np.zeros(0, np.int64)
        if early or lately:
            left_out += self.named(early, {n: why for n, why in lately.items() if n < view.size})
        if self._gone:
            found = found[self.base.removed[found] == 0]
            late = late[self.tail_removed[late] == 0]
        return np.concatenate([found, late + len(self.base.ids)]) if len(late) else found

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
        found = self.match(document, left_out)
        ids: list[Any] = (
            [self.id_of(number) for number in found.tolist()]
            if len(found) < FEW
            else self.id_array(found).to_pylist()
        )
        if len(found) and found[-1] >= len(self.base.ids):
            ids.sort()
        return ids


class _Answer(NamedTuple):
    """What an event matched, and when."""

    event: Event
    key: tuple[Any, int, int]
    found: list[Id]
    left_out: list[tuple[Id, str]]


class DocumentIndex(LiveIndex[StateT], Generic[StateT]):
    """Filters of documents. A room says how documents and filters are read."""

    dialect: ClassVar[str]
    """What `filter` and `clauses` write."""
    _document: ClassVar[staticmethod[[Event], Any]]
    """Reads the document of an event."""
    _parse: ClassVar[staticmethod[..., Any]]
    """Parses a filter of a dialect."""
    _print: ClassVar[staticmethod[[Any], str]]
    """Writes a filter in the room's own dialect."""

    def __init__(self, state: StateT, compact_after: int | None) -> None:
        super().__init__(state, compact_after)
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
        given = list(subscriptions)
        ids = Ids.of(subscription.id for subscription in given)
        by_id = {each.id: each for each in given}

        def added(row: Subscription) -> str:
            text, pattern = read(row.filter, row.dialect)
            writer.add(pattern)
            return text

        return ids, TextPool.build(made_of([by_id[identity] for identity in ids], added))

    @property
    def nbytes(self) -> int:
        """Count the bytes of the base's arrays, without the texts of the filters."""
        nbytes: int = self._state.base.nbytes
        return nbytes

    @property
    def text_nbytes(self) -> int:
        """Count the bytes of the base's texts."""
        return sum(array.nbytes for array in self._state.base.filters)

    def match(self, event: Event) -> list[Id]:
        """List the ids of the matching subscriptions, sorted.

        A filter that is too expensive for the event does not hold; `headgate.Omissions` collects which, else
        it is logged. That is so for all questions.
        """
        left_out: list[tuple[Id, str]] = []
        found = self._state.match_one(self._document(event), left_out)
        tell_all(event.id, left_out)
        return found

    def next(self, event: Event, at_least: Id) -> Id | None:
        """Find the first matching id that is at least `at_least`.

        The first question matches the event; those that follow, while nothing changes, look its answer up.
        """
        state = self._state
        state.check_type(at_least)
        found: list[Any] = self._matches(state, event)
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

    def _matches(self, state: StateT, event: Event) -> list[Id]:
        """Match an event, or remember what it matched when this thread asked last."""
        key = (state, state.changes, state.version)
        held: _Answer | None = getattr(self._local, "answer", None)
        if held is None or held.event is not event or held.key != key:
            left_out: list[tuple[Id, str]] = []
            found = state.match_one(self._document(event), left_out)
            held = self._local.answer = _Answer(event, key, found, left_out)
        tell_all(event.id, held.left_out)
        return held.found

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
        for place, (document, encoded) in enumerate(_encoded(state.base.matcher, documents)):
            left_out: list[tuple[Id, str]] = []
            found = state.match(document, left_out, encoded)
            if left_out:
                tell_all(identities[place].as_py(), left_out)
            if late and len(found) > 1:
                found = np.array(sorted(found.tolist(), key=state.id_of), np.int64)
            events.append(np.full(len(found), place))
            numbers.append(found)
        return Portion(0, len(documents), np.concatenate(events), np.concatenate(numbers), state)

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

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription; it matches from now on. Refuses a bad filter, and an id that is here."""
        text, pattern = self.read_filter(subscription.filter, subscription.dialect)
        self._add(subscription.id, text, pattern)

    def _compiled(self, text: str) -> Any:
        return self._parse(text)


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
    found = snapshot.about.get("layout")
    if found != layout:
        raise SnapshotError(
            f"snapshot {path} has layout {found} of this room, and this Headgate reads {layout}: "
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


def parts_of(found: Mapping[str, NDArray[Any]], kinds: Mapping[str, Any]) -> list[Any]:
    """Take groups of arrays out of a snapshot."""
    return [kind(*(found[f"{name}_{field}"] for field in kind._fields)) for name, kind in kinds.items()]
