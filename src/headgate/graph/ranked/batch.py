"""The best k of many events at once, by score less the cost of the cheapest way: Arrow in, Arrow out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.sharing import slice_of
from headgate.core.omission import renaming
from headgate.graph.base import NO_CELLS, NO_PLANES
from headgate.graph.ranked import kernels
from headgate.graph.ranked.ranked import ranking_of
from headgate.graph.walk.batch import (
    CHUNK,
    EVENT_ID,
    SUBSCRIPTION_ID,
    by_row,
    entries,
    ids_of,
    subscription_ids,
)
from headgate.graph.walk.hits import BY_FILTERS, NO_HITS, find_hits
from headgate.graph.walk.leading import NOTHING_ABOVE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from headgate.core.event import Event
    from headgate.core.planes import Cells, Planes
    from headgate.graph.changes.view import View
    from headgate.graph.walk.hits import Hits
    from headgate.graph.walk.leading import Above

    Column = pa.Array[Any]
    Events = pa.RecordBatch | Sequence[Event]

VALUE, RANK = "value", "rank"
FEW = 1 << 22
"""Answers that there is room for at once: with a large k, fewer events are searched for together."""


class _Found(NamedTuple):
    """Answers of some events: the row of each, its subscription and value, the best of each event first."""

    row: NDArray[np.int64]
    place: NDArray[np.int64]
    value: NDArray[np.float64]


def top_all(view: View, events: Events, k: int, identities: Column | None = None) -> pa.RecordBatch:
    """Find the best k of events that all have a source; `identities` stand for their ids."""
    source, ids = entries(view, events), ids_of(events, identities)
    k = min(k, view.subscriptions)
    size = max(1, min(CHUNK, FEW // max(1, k)))
    found = [_Found(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    for begin in range(0, len(source) if k else 0, size):
        chunk, starts = slice_of(events, begin, begin + size), source[begin : begin + size]

        def some(
            way: int,
            first: int,
            last: int,
            *,
            begin: int = begin,
            chunk: Events = chunk,
            starts: NDArray[np.int32] = starts,
        ) -> Iterator[_Found]:
            parts = _chunk(view, slice_of(chunk, first, last), starts[first:last], k, way)
            for part in renaming(by_row(ids, begin + first), parts):
                yield part._replace(row=part.row + begin + first)

        found += view.ways.run(len(starts), some)
    row, place, value = (np.concatenate(each) for each in zip(*found, strict=True))
    begins = np.searchsorted(row, row, side="left")
    columns = {
        EVENT_ID: ids.take(pa.array(row)),
        SUBSCRIPTION_ID: subscription_ids(view, place),
        VALUE: pa.array(value),
        RANK: pa.array((np.arange(len(row)) - begins + 1).astype(np.int32)),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _chunk(view: View, events: Events, source: NDArray[np.int32], k: int, way: int) -> Iterator[_Found]:
    """Search for the best of events; some of them at a time."""
    sieve, ranking = view.base.sieve, ranking_of(view)
    room = ranking.room(len(view.base.planes.axis_line))
    if way == BY_FILTERS or sieve is None or view.later is not None:
        # As many rows as there are planes: none.
        room = room._replace(rows=np.zeros(0, np.int32))
        for begin, end, hits in find_hits(view, events):
            search = _Search(view, NO_PLANES, NO_CELLS, ranking.above, room, hits, source[begin:end], k)
            search.on(resume=False)
            found = search.found()
            yield found._replace(row=found.row + begin)
        return
    encoded = sieve.encode_batch(events) if isinstance(events, pa.RecordBatch) else sieve.encode(events)
    search = _Search(view, sieve.planes, encoded.cells, NOTHING_ABOVE, room, NO_HITS, source, k)
    resume = False
    while search.on(resume=resume):
        asked = room.asked[: room.counts[kernels.ASKED]]
        kernels.answer(room, sieve.holds(encoded, search.done, asked))
        resume = True
    yield search.found()


class _Search:
    """Searches for one event after another."""

    def __init__(
        self,
        view: View,
        planes: Planes,
        cells: Cells,
        up: Above,
        room: kernels.Room,
        hits: Hits,
        source: NDArray[np.int32],
        k: int,
    ) -> None:
        ranks = ranking_of(view).ranks
        self.done = 0
        self._k, self._count, self._order = k, len(source), ranks.order
        self._counts = np.zeros(len(source), np.int64)
        self._place, self._value = np.zeros(len(source) * k, np.int32), np.zeros(len(source) * k)
        given = np.zeros(view.words, np.uint64)
        self._args = (view.arrays, view.overlay, planes, cells, given, ranks, up, room, *hits, source)

    def on(self, *, resume: bool) -> bool:
        """Go on; tells whether filters must be asked for event `done` first."""
        self.done = kernels.search_events(
            *self._args, self.done, resume, self._k, self._place, self._value, self._counts
        )
        return self.done < self._count

    def found(self) -> _Found:
        """Return the answers, the best of each event first."""
        counts, starts = self._counts, np.arange(self._count) * self._k
        row = np.repeat(np.arange(self._count), counts)
        kept = np.arange(len(row)) + np.repeat(starts - np.cumsum(counts) + counts, counts)
        return _sorted(row, self._place[kept], self._value[kept], self._order)


def _sorted(
    row: NDArray[np.int64],
    place: NDArray[np.int32],
    value: NDArray[np.float64],
    order: NDArray[np.float64],
) -> _Found:
    """Put the best of each event first, equal ones by id."""
    by = np.lexsort((-order[place], -value, row))
    return _Found(row[by], place[by].astype(np.int64), value[by])
