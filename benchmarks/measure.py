"""Timing on a noisy machine, and what is measured of an index."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.records.events.encode import encode_batch
from headgate.records.index.build import build
from headgate.records.index.live import Base

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from headgate.records.index.arrays import BuiltIndex
    from headgate.records.index.build import Weigh
    from headgate.records.programs.programs import Programs


def best(work: Callable[[], object], times: int = 3, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of the quickest of some runs, after one that is not counted."""
    work()
    return min(once(work, clock) for _ in range(times))


def once(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of one run."""
    begun = clock()
    work()
    return clock() - begun


def make_base(programs: Programs, weigh: Weigh) -> tuple[Base, float]:
    """Build an index of numbered filters without texts; returns the seconds that building took too."""
    begun = time.perf_counter()
    built = build(programs, weigh)
    seconds = time.perf_counter() - begun
    return Base(Ids.from_arrow(pa.array(np.arange(built.filters))), TextPool.build(()), built), seconds


def held_bytes(built: BuiltIndex) -> int:
    """Count the bytes of all arrays of a snapshot but ids and the texts of filters."""
    return sum(array.nbytes for part in (built.arrays, built.lines, built.texts) for array in part)


def match_encoded(
    base: Base, events: pa.RecordBatch, wanted: Sequence[NDArray[np.int32]]
) -> tuple[float, float]:
    """Return the microseconds and the matches of an event; `wanted` are those of the first ones."""
    encoded = encode_batch(events, base.built)
    found = base.match(encoded, events.num_rows)
    for event, filters in enumerate(wanted):
        first, last = np.searchsorted(found.events, [event, event + 1])
        if not np.array_equal(found.filters[first:last], filters):
            raise AssertionError(f"the index and the scan differ on event {event}")
    seconds = best(lambda: base.match(encoded, events.num_rows), 5)
    return seconds / events.num_rows * 1e6, len(found.filters) / events.num_rows
