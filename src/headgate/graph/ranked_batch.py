"""The best k of many events at once, by score less the cost of the cheapest way: Arrow in, Arrow out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.core.event import ID, Event
from headgate.errors import EventError
from headgate.graph import ranked_kernels as kernels
from headgate.graph.base import NO_CELLS, NO_PLANES
from headgate.graph.batch import (
    CHUNK,
    EVENT_ID,
    SUBSCRIPTION_ID,
    column,
    find_all,
    refusals,
    sources,
    subscription_ids,
)
from headgate.graph.hits import NO_HITS, find_hits
from headgate.graph.leading import NOTHING_ABOVE
from headgate.graph.ranked import ranking_of
from headgate.graph.ways import BY_FILTERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.graph.view import View

    Column = pa.Array[Any]

VALUE, RANK = "value", "rank"
FEW = 1 << 22
"""Answers that there is room for at once: with a large k, fewer events are searched for together."""


class _Found(NamedTuple):
    """Answers of some events: the row of each, its subscription and value, the best of each event first."""

    row: NDArray[np.int64]
    place: NDArray[np.int64]
    value: NDArray[np.float64]


def top_batch(view: View, events: pa.RecordBatch, k: int) -> pa.RecordBatch:
    """Find the best k of a batch of events that all have a source; `event_id` is the id of the event."""
    identities, source = column(events, ID), sources(view, events)
    for row in np.flatnonzero(source < 0)[:1].tolist():
        raise EventError(f"event {identities[row].as_py()!r}: {refusals(view, events)[row]}")
    return _top(view, events, source, k, identities)


def top_events(
    view: View, events: Sequence[Event], k: int, identities: Column | None = None
) -> pa.RecordBatch:
    """Do the same for events given as Python values; `identities` stand for their ids."""
    source = np.array(find_all(view, [event.source for event in events]), np.int32)
    for row in np.flatnonzero(source < 0)[:1].tolist():
        view.source(events[row])
    if identities is None:
        identities = pa.array([event.id for event in events])
    return _top(view, events, source, k, identities)


def _top(
    view: View,
    events: pa.RecordBatch | Sequence[Event],
    source: NDArray[np.int32],
    k: int,
    identities: Column,
) -> pa.RecordBatch:
    k = min(k, view.subscriptions)
    size = max(1, min(CHUNK, FEW // max(1, k)))
    found = [_Found(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    for begin in range(0, len(source) if k else 0, size):
        chunk, entries = events[begin : begin + size], source[begin : begin + size]

        def some(
            way: int,
            first: int,
            last: int,
            *,
            begin: int = begin,
            chunk: pa.RecordBatch | Sequence[Event] = chunk,
            entries: NDArray[np.int32] = entries,
        ) -> _Found:
            part = _chunk(view, chunk[first:last], entries[first:last], k, way)
            return part._replace(row=part.row + begin + first)

        found += view.ways.run(len(entries), some)
    row, place, value = (np.concatenate(each) for each in zip(*found, strict=True))
    begins = np.searchsorted(row, row, side="left")
    columns = {
        EVENT_ID: identities.take(pa.array(row)),
        SUBSCRIPTION_ID: subscription_ids(view, place),
        VALUE: pa.array(value),
        RANK: pa.array((np.arange(len(row)) - begins + 1).astype(np.int32)),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _chunk(
    view: View, events: pa.RecordBatch | Sequence[Event], source: NDArray[np.int32], k: int, way: int
) -> _Found:
    sieve, ranking = view.base.sieve, ranking_of(view)
    planes, cells, hits, encoded, up = NO_PLANES, NO_CELLS, NO_HITS, None, NOTHING_ABOVE
    room = ranking.room(len(view.base.planes.axis_line))
    if way == BY_FILTERS or sieve is None or view.later is not None:
        hits, up = find_hits(view, events), ranking.above
        # As many rows as there are planes: none.
        room = room._replace(rows=np.zeros(0, np.int32))
    else:
        encoded = sieve.encode_batch(events) if isinstance(events, pa.RecordBatch) else sieve.encode(events)
        planes, cells = sieve.planes, encoded.cells
    given = np.zeros(view.words, np.uint64)
    counts = np.zeros(len(source), np.int64)
    out_place, out_value = np.zeros(len(source) * k, np.int32), np.zeros(len(source) * k)
    done, resume = 0, False
    args = (view.arrays, view.overlay, planes, cells, given, ranking.ranks, up, room, *hits, source)
    while done < len(source):
        done = kernels.search_events(*args, done, resume, k, out_place, out_value, counts)
        resume = done < len(source)
        if resume:
            assert sieve is not None
            assert encoded is not None
            asked = room.asked[: room.counts[kernels.ASKED]]
            kernels.answer(room, sieve.holds(encoded, done, asked))
    row = np.repeat(np.arange(len(source)), counts)
    kept = np.arange(len(row)) + np.repeat(np.arange(len(source)) * k - np.cumsum(counts) + counts, counts)
    return _sorted(row, out_place[kept], out_value[kept], ranking.ranks.order)


def _sorted(
    row: NDArray[np.int64],
    place: NDArray[np.int32],
    value: NDArray[np.float64],
    order: NDArray[np.float64],
) -> _Found:
    """Put the best of each event first, equal ones by id."""
    by = np.lexsort((-order[place], -value, row))
    return _Found(row[by], place[by].astype(np.int64), value[by])
