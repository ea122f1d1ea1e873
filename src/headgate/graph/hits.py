"""What the filters of a graph say of many events: which of them hold, asked once for all events together.

The other way round from `sieve`, which asks the filters that a walk comes to. Where few of many filters hold,
their own index finds them sooner than a walk can ask those on its way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.core.content import Content
    from headgate.core.event import Event
    from headgate.graph.view import View

    Ints = NDArray[np.int64]


class Hits(NamedTuple):
    """Positions whose filter holds: those of event e are `position[start[e] : start[e + 1]]`."""

    start: Ints
    position: Ints


NO_HITS = Hits(np.zeros(0, np.int64), np.zeros(0, np.int64))
"""Nothing was asked: not even the events have a place there."""


def find_hits(view: View, events: pa.RecordBatch | Sequence[Event]) -> Hits:
    """Ask the filters of a view about events."""
    row, vertex = _ask(view.base.content, events)
    position = vertex - view.arrays.roots
    kept = position >= 0
    row, position = row[kept], position[kept]
    later = view.later
    if later is not None:
        dirty = view.overlay.dirty[position >> 6] >> (position & 63).astype(np.uint64) & np.uint64(1)
        row, position = row[dirty == 0], position[dirty == 0]
        if later.filters is not None:
            new_row, number = _ask(later.filters, events)
            # Filters that came after this view was taken are not of it.
            known = number < len(later.filter_vertex)
            new_position = later.filter_vertex[number[known]] - view.arrays.roots
            new_row = new_row[known][new_position >= 0]
            row = np.concatenate([row, new_row])
            position = np.concatenate([position, new_position[new_position >= 0]])
            order = np.argsort(row, kind="stable")
            row, position = row[order], position[order]
    count = events.num_rows if isinstance(events, pa.RecordBatch) else len(events)
    return Hits(np.searchsorted(row, np.arange(count + 1)), position)


def _ask(content: Content, events: pa.RecordBatch | Sequence[Event]) -> tuple[Ints, Ints]:
    """Return the rows of events, rising, and the numbers of the filters that hold for them."""
    if isinstance(events, pa.RecordBatch):
        found = content.match_batch(events, pa.array(np.arange(events.num_rows)))
    else:
        found = content.match_events(events, pa.array(np.arange(len(events))))
    row, number = (np.asarray(column.cast(pa.int64())) for column in found.columns)
    return row, number
