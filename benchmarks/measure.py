"""Timing on a noisy machine, and what is measured of an index."""

from __future__ import annotations

import time
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.records.index.build import build
from headgate.records.index.live import Base

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from headgate.rdf.index.index import RdfIndex
    from headgate.records.index.build import Weigh
    from headgate.records.programs.programs import Programs
    from headgate.xml.index.index import XmlIndex


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


_MEMORY = {
    "BuiltIndex": ("arrays", "lines", "texts"),
    "XmlIndex": ("_state.base.arrays", "_state.base.columns"),
    "RdfIndex": tuple(f"_state.base.{part}" for part in ("arrays", "expressions", "members")),
    "Members": ("start", "roles", "asks"),
    "Auto": ("grid", "tree", "_scored.low", "_scored.high"),
    "SoptTree": ("tree",),
    "RTree": ("tree",),
    "IntervalTree": ("nodes", "extents"),
    "IrTree": ("nodes", "extents"),
    "SegmentTree": ("segments",),
    "Line": ("_index", "_scored.score", "_scored.row"),
    "DenseExact": ("dense", "_sketch", "_line"),
    "DenseRelaxed": ("dense", "_sketch", "_line"),
    "DenseRows": ("_exact", "_relaxed"),
    "Many": ("_exact", "_relaxed"),
    "Sparse": ("_tiers", "_lists"),
    "SparseRows": ("_sparse",),
    "Sums": ("_tiers", "_postings"),
    "Threshold": ("_indexes",),
    "Intersecting": ("_indexes",),
    "RowScan": ("_boxes", "_bound", "_row"),
}
"""What of an index counts as its memory: without ids, texts of filters, and tables that others have too."""


def memory_of(held: object) -> int:
    """Count the bytes of the arrays of an index, each once."""
    return sum(_sizes(held).values())


def _sizes(held: object) -> dict[int, int]:
    """List arrays by their address."""
    if isinstance(held, np.ndarray):
        return {held.ctypes.data: held.nbytes} if held.nbytes else {}
    name = type(held).__name__
    if name in _MEMORY:
        parts = [attrgetter(part)(held) for part in _MEMORY[name]]
    else:
        assert held is None or isinstance(held, tuple | list | int | float), name
        parts = list(held) if isinstance(held, tuple | list) else []
    return {address: size for part in parts for address, size in _sizes(part).items()}


def text_memory_of(index: XmlIndex | RdfIndex) -> int:
    """Count the bytes of the texts of filters."""
    return memory_of(attrgetter("_state.base.filters")(index))


def match_encoded(
    base: Base, events: pa.RecordBatch, wanted: Sequence[NDArray[np.int32]]
) -> tuple[float, float]:
    """Return the microseconds and the matches of an event; `wanted` are those of the first ones."""
    encoded = base.encode(events)
    found = base.match(encoded)
    for event, filters in enumerate(wanted):
        first, last = np.searchsorted(found.events, [event, event + 1])
        if not np.array_equal(found.filters[first:last], filters):
            raise AssertionError(f"the index and the scan differ on event {event}")
    seconds = best(lambda: base.match(encoded), 5)
    return seconds / events.num_rows * 1e6, len(found.filters) / events.num_rows
