"""Answers about many events: portions, each of places in a state; and what is made of these, once for all.

ask ──► Portion: rows of events, and places of filters ──┬── ids       for Arrow
             what they are places of: a live state,      ├── listed    as Python has them
             or ids that are listed                      ├── numbers   if ids are whole numbers
                                                         └── batches   a table, by the ids of events

Indexes of one kind, such as the shards of a snapshot in one memory, begin alike: they read columns, or parse.
Who asks several of them about the same events opens a `Sharing` around it; what a kind makes `once` is then
kept until the block ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextvars import ContextVar
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from headgate.contents.protocol import EVENT_ID, PAIRS, RANK, SCORE, SUBSCRIPTION_ID
from headgate.core.event import ID, column_of
from headgate.core.omission import within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray

    from headgate.core.event import Event, Id

    Column = pa.Array[Any]
    Events = pa.RecordBatch | Sequence[Event]
    Places = NDArray[np.integer[Any]]


_T = TypeVar("_T")
_KEPT: ContextVar[dict[tuple[int, object], tuple[object, Any]] | None] = ContextVar(
    "headgate-sharing", default=None
)


class Sharing:
    """Keeps what is made of events while it is open, in this thread; may be opened again and again.

    >>> rows, made = [1, 2], []
    >>> with Sharing():
    ...     once(rows, made.append), once(rows, made.append)
    (None, None)
    >>> made
    [[1, 2]]
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[int, object], tuple[object, Any]] = {}

    def __enter__(self) -> Self:
        self._before = _KEPT.set(self._kept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _KEPT.reset(self._before)

    def each(self, items: Iterable[_T]) -> Iterator[_T]:
        """Go through items; it is open while one is made, and not between."""
        return within(lambda: self, items)


def once(events: Any, make: Callable[[Any], _T]) -> _T:
    """Make something of events, or return what was made of the same ones before.

    The events are kept with it, so that no others are taken for them.
    """
    kept = _KEPT.get()
    if kept is None:
        return make(events)
    key = id(events), make
    entry = kept.get(key)
    if entry is None:
        entry = kept[key] = (events, make(events))
    made: _T = entry[1]
    return made


NAMED = 1 << 18
"""Matches handed on together, with their ids: texts of 8 KB each would still fit into an Arrow array."""


class Named(Protocol):
    """What places are of."""

    def id_array(self, places: Places, /) -> Column:
        """Return the ids of some places for Arrow."""

    def listed(self, places: Places, /) -> list[Id]:
        """Return them as Python has them."""

    def numbers_at(self, places: Places, /) -> NDArray[np.int64]:
        """Return them as an array; for ids that are whole numbers."""

    def in_order(self, places: Places, /) -> bool:
        """Tell whether ids of an event are in order, as places are."""


class Listed(NamedTuple):
    """Ids, listed as they were found: places rise. `ordered` tells whether those of an event are in order."""

    ids: Column
    ordered: bool = True

    def id_array(self, places: Places) -> Column:
        """Return the ids of some places for Arrow."""
        return self.ids if len(places) == len(self.ids) else self.ids.take(places)

    def listed(self, places: Places) -> list[Id]:
        """Return them as Python has them."""
        ids: list[Any] = self.id_array(places).to_pylist()
        return ids

    def numbers_at(self, places: Places) -> NDArray[np.int64]:
        """Return them as an array."""
        return np.asarray(self.id_array(places).cast(pa.int64()))

    def in_order(self, places: Places) -> bool:
        """Tell whether ids of an event are in order."""
        del places
        return self.ordered


class Portion(NamedTuple):
    """What holds for some events: their rows, rising, and for each the places of filters, or the best first.

    Of what a content room answers, all events from `begin` to `end` are in it, also those without matches.
    """

    begin: int
    end: int
    rows: NDArray[np.int64]
    places: Places
    state: Named
    values: NDArray[np.float64] | None = None
    """What the best are ranked by."""

    @classmethod
    def of(
        cls, rows: NDArray[np.int64], ids: Column, values: NDArray[np.float64] | None = None, **more: Any
    ) -> Portion:
        """Make one of ids."""
        begin, end = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        return cls(begin, end, rows, np.arange(len(ids)), Listed(ids, **more), values)

    @property
    def ids(self) -> Column:
        """Return the ids of the filters for Arrow."""
        return self.state.id_array(self.places)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Return the ids, if they are whole numbers."""
        return self.state.numbers_at(self.places)

    @property
    def ranks(self) -> NDArray[np.int32]:
        """Number the answers of each event, from 1."""
        return (places_within(self.rows) + 1).astype(np.int32)

    def moved(self, by: int) -> Portion:
        """Count rows of events from further ahead."""
        if not by:
            return self
        return self._replace(begin=self.begin + by, end=self.end + by, rows=self.rows + by)

    def among(self, rows: NDArray[np.int64]) -> Portion:
        """Count rows of events among others: `rows` are where these are."""
        if not len(rows) or rows[-1] == len(rows) - 1:
            return self
        begin, end = (int(rows[self.begin]), int(rows[self.end - 1]) + 1) if self.end > self.begin else (0, 0)
        return self._replace(begin=begin, end=end, rows=rows[self.rows])

    def some(self, kept: Any) -> Portion:
        """Pick answers."""
        values = None if self.values is None else self.values[kept]
        return self._replace(rows=self.rows[kept], places=self.places[kept], values=values)

    def by_event(self) -> Iterator[tuple[int, list[Id]]]:
        """List the ids of each event that has some, sorted."""
        if not len(self.rows):
            return
        ids, ordered = self.state.listed(self.places), self.state.in_order(self.places)
        cuts = [0, *(np.flatnonzero(np.diff(self.rows)) + 1).tolist(), len(ids)]
        for row, (begin, end) in zip(self.rows[cuts[:-1]].tolist(), pairwise(cuts), strict=True):
            some: list[Any] = ids[begin:end]
            if not ordered:
                some.sort()
            yield row, some

    def batches(self, identities: Column) -> Iterator[pa.RecordBatch]:
        """Make tables of it, in which events have their ids: the best are all in one."""
        size = NAMED if self.values is None else max(1, len(self.rows))
        for begin in range(0, len(self.rows), size):
            yield self.some(slice(begin, begin + size)).batch(identities)

    def batch(self, identities: Column) -> pa.RecordBatch:
        """Make one table of it: (event_id, subscription_id), and of the best score and rank."""
        columns, names = [identities.take(self.rows), self.ids], [EVENT_ID, SUBSCRIPTION_ID]
        if self.values is not None:
            columns += [pa.array(self.values), pa.array(self.ranks)]
            names += [SCORE, RANK]
        return pa.RecordBatch.from_arrays(columns, names=names)


def joined(portions: Iterable[Portion], kind: pa.DataType) -> Portion:
    """Put portions together; `kind` is the type of ids if there are none."""
    every = [*portions]
    filled = [each for each in every if len(each.rows)]
    if len(filled) == 1:
        return filled[0]
    ids = pa.concat_arrays([each.ids for each in filled]) if filled else pa.array([], kind)
    rows = np.concatenate([np.zeros(0, np.int64), *(each.rows for each in filled)])
    values = [each.values for each in every if each.values is not None]
    return Portion.of(rows, ids, np.concatenate(values) if values else None)


def lists_of(portions: Iterable[Portion], count: int) -> list[list[Id]]:
    """List the ids of each of `count` events, sorted."""
    lists: list[list[Any]] = [[] for _ in range(count)]
    for portion in portions:
        for row, ids in portion.by_event():
            lists[row] = sorted(lists[row] + ids) if lists[row] else ids
    return lists


def places_within(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the answers of each event, from 0."""
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = rows[1:] != rows[:-1]
    at = np.arange(len(rows))
    return at - np.maximum.accumulate(np.where(begins, at, 0))


def ids_of(events: Events) -> Column:
    """Return the ids of events."""
    if isinstance(events, pa.RecordBatch):
        return column_of(events, ID)
    return pa.array([event.id for event in events])


class Asks(ABC):
    """What is asked about many events at once, and can do it with few at a time."""

    @abstractmethod
    def __len__(self) -> int:
        """Count the subscriptions."""

    @property
    @abstractmethod
    def numbered(self) -> bool:
        """Tell whether ids are whole numbers rather than text."""

    @abstractmethod
    def ask(self, events: Events, ids: Column, most: int = PAIRS) -> Iterator[Portion]:
        """Match events in order, so few at a time that no more than `most` pairs can come of them.

        Events are an Arrow batch or Python values, and are told of by their `ids`.
        """

    def match_batch(self, events: Events, identities: Column | None = None) -> pa.RecordBatch:
        """Match events: (event_id, subscription_id) out, in their order; `identities` stand for their ids."""
        ids = ids_of(events) if identities is None else identities
        kind: pa.DataType = pa.int64() if self.numbered else pa.string()
        return joined(self.ask(events, ids), kind).batch(ids)

    def _steps(self, count: int, most: int, largest: int = PAIRS) -> Iterator[tuple[int, int]]:
        size = min(largest, max(1, most // max(1, len(self))))
        for begin in range(0, count, size):
            yield begin, min(count, begin + size)
