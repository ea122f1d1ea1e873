"""Many events at once: Arrow in, Arrow out. Events are told apart by their places, since ids may repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from headgate.contents.protocol import FindsFirst
from headgate.core.event import ID, column_of
from headgate.core.omission import Omission, RenamedOmissions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.contents.protocol import Content, EventCoder
    from headgate.contents.scores import TermReader
    from headgate.core.event import Event
    from headgate.ranking.filters.keys import RankKeys

    Ints = NDArray[np.int64]
    Doubles = NDArray[np.float64]

EVENT_ID, SUBSCRIPTION_ID, SCORE, RANK = "event_id", "subscription_id", "score", "rank"


class EventBatch(Protocol):
    """Events that are asked about together."""

    @property
    def identities(self) -> pa.Array[Any]:
        """Return their ids."""

    def match(self, content: Content) -> pa.RecordBatch:
        """Match them, with their places for ids."""

    def codes(self, coder: EventCoder) -> NDArray[np.int32]:
        """Return their codes, one row each."""

    def terms(self, reader: TermReader) -> NDArray[np.float64]:
        """Return what scores ask of them, one column each."""

    def first(self, content: FindsFirst, k: int) -> tuple[Ints, Ints]:
        """Find the first k matches of each."""


class ArrowEvents:
    """Events in an Arrow batch, with a column `id`; `identities` stand for that."""

    def __init__(self, batch: pa.RecordBatch, identities: pa.Array[Any] | None) -> None:
        self._batch = batch
        self.identities: pa.Array[Any] = column_of(batch, ID) if identities is None else identities

    def match(self, content: Content) -> pa.RecordBatch:
        """Match them, with their places for ids."""
        return content.match_batch(self._batch, _places(self._batch.num_rows))

    def codes(self, coder: EventCoder) -> NDArray[np.int32]:
        """Return their codes, one row each."""
        return coder.many_codes(self._batch)

    def terms(self, reader: TermReader) -> NDArray[np.float64]:
        """Return what scores ask of them, one column each."""
        return reader.many(self._batch)

    def first(self, content: FindsFirst, k: int) -> tuple[Ints, Ints]:
        """Find the first k matches of each."""
        return content.first_numbers(self._batch, k)


class EventList:
    """Events as Python values; `identities` stand for their ids."""

    def __init__(self, events: Sequence[Event], identities: pa.Array[Any] | None) -> None:
        self._events = events
        self.identities: pa.Array[Any] = (
            pa.array([event.id for event in events]) if identities is None else identities
        )

    def match(self, content: Content) -> pa.RecordBatch:
        """Match them, with their places for ids."""
        return content.match_events(self._events, _places(len(self._events)))

    def codes(self, coder: EventCoder) -> NDArray[np.int32]:
        """Return their codes, one row each."""
        return coder.many_codes(self._events)

    def terms(self, reader: TermReader) -> NDArray[np.float64]:
        """Return what scores ask of them, one column each."""
        return reader.many(self._events)

    def first(self, content: FindsFirst, k: int) -> tuple[Ints, Ints]:
        """Find the first k matches of each."""
        return content.first_numbers(self._events, k)


def matched(asked: EventBatch, content: Content) -> pa.RecordBatch:
    """Match events, with their places for ids; what is left out of one is told with the event's id."""

    def named(found: Omission) -> Omission:
        return found._replace(event=asked.identities[int(found.event or 0)].as_py())

    with RenamedOmissions(named):
        return asked.match(content)


class Rows(NamedTuple):
    """Row rows[i] matches the event at place events[i]; by event, and for each the best first."""

    events: Ints
    rows: Ints


def ranked(pairs: pa.RecordBatch, keys: RankKeys) -> Rows:
    """Turn matches by key into rows."""
    events, found = (np.asarray(column, np.int64) for column in pairs.columns)
    # What was subscribed later comes last for each event.
    if bool(((np.diff(found) < 0) & (np.diff(events) == 0)).any()):
        order = np.lexsort((found, events))
        events, found = events[order], found[order]
    return Rows(events, keys.rows(found))


def first(asked: EventBatch, content: Content, keys: RankKeys, k: int) -> Rows:
    """Find the first k matches of each event by key, and turn them into rows."""
    if isinstance(content, FindsFirst):
        events, found = asked.first(content, k)
        return Rows(events, keys.rows(found))
    every = ranked(matched(asked, content), keys)
    kept = places_within(every.events) < k
    return Rows(every.events[kept], every.rows[kept])


def best(
    found: Rows, values: NDArray[np.float64], order: NDArray[np.float64], k: int
) -> tuple[Rows, Doubles]:
    """Sort the matches of each event by their values, equal ones by `order`, and cut them at k."""
    sorted_ = np.lexsort((order[found.rows], -values, found.events))
    sorted_ = sorted_[places_within(found.events[sorted_]) < k]
    return Rows(found.events[sorted_], found.rows[sorted_]), values[sorted_]


def places_within(events: Ints) -> Ints:
    """Number the matches of each event, from 0."""
    begins = np.ones(len(events), np.bool_)
    begins[1:] = events[1:] != events[:-1]
    at = np.arange(len(events))
    return at - np.maximum.accumulate(np.where(begins, at, 0))


def pairs(asked: EventBatch, events: Ints, ids: pa.Array[Any]) -> pa.RecordBatch:
    """Put matches into a batch."""
    columns = [asked.identities.take(events), ids]
    return pa.RecordBatch.from_arrays(columns, names=[EVENT_ID, SUBSCRIPTION_ID])


def ranking(
    asked: EventBatch, events: Ints, ids: pa.Array[Any], values: NDArray[np.float64]
) -> pa.RecordBatch:
    """Put the best of each event into a batch; ranks count from 1."""
    ranks = (places_within(events) + 1).astype(np.int32)
    columns = [asked.identities.take(events), ids, pa.array(values), pa.array(ranks)]
    return pa.RecordBatch.from_arrays(columns, names=[EVENT_ID, SUBSCRIPTION_ID, SCORE, RANK])


def _places(count: int) -> pa.Array[Any]:
    return pa.array(np.arange(count, dtype=np.int64))
