"""Record filters for asking one by one: as bit planes, and exactly where planes end."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headgate.core.jit import kernel
from headgate.core.plane_build import Conjunctions, build_planes
from headgate.core.planes import Cells, Planes
from headgate.records.index.arrays import HEAD_WORDS, LENGTH, TREE
from headgate.records.index.checking import other_checks, tree_holds
from headgate.records.index.entries import filters_of, full_entries, read_checks
from headgate.records.programs.programs import starts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.core.arrays import Bools, Ints
    from headgate.core.event import Event
    from headgate.records.index.arrays import Events, RecordArrays
    from headgate.records.index.live import Base


class RecordEvents:
    """Events, encoded for the base of one index."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.cells = Cells(events.codes, events.multi_start, events.multi_codes)


class RecordFilterPlanes:
    """The filters of a base whose ids are whole numbers: filter `first + p` is at position p.

    Those below `first` are left out.
    """

    def __init__(self, base: Base, first: int, size: int) -> None:
        self._base = base
        entries = full_entries(base.built.arrays)
        numbers = filters_of(base.built.arrays, entries)
        ids = np.asarray(base.ids.to_arrow().cast(pa.int64()))
        positions = ids[numbers] - first
        order = np.argsort(positions, kind="stable")
        order = order[positions[order] >= 0]
        self._entries = entries[order]
        self._start = starts(np.bincount(positions[order], minlength=size))
        self._size = size

    @cached_property
    def conjunctions(self) -> Conjunctions:
        """Return the conjunctions of all filters, by position."""
        arrays = self._base.built.arrays
        checks = read_checks(arrays, self._entries)
        # Patterns and trees are asked: planes know nothing of them.
        plain = checks.line >= 0
        entry = np.repeat(np.arange(len(self._entries)), checks.checks)
        asks = arrays.stream[self._entries] & TREE > 0
        asks[entry[~plain]] = True
        return Conjunctions(
            line_codes=np.diff(arrays.line_base).astype(np.int32),
            conjunction_start=self._start.astype(np.int32),
            asks=asks.astype(np.uint8),
            check_start=starts(np.bincount(entry[plain], minlength=len(asks))).astype(np.int32),
            check_line=checks.line[plain],
            check_kind=checks.kind[plain],
            set_start=starts(checks.ranges[plain]).astype(np.int32),
            set_low=checks.low,
            set_high=checks.high,
        )

    @cached_property
    def planes(self) -> Planes:
        """Return the filters as bit planes."""
        return build_planes(self.conjunctions)

    def encode(self, events: Iterable[Event]) -> RecordEvents:
        """Encode events."""
        return RecordEvents(self._base.encode(list(events)))

    def encode_batch(self, batch: pa.RecordBatch) -> RecordEvents:
        """Encode an Arrow batch of events."""
        return RecordEvents(self._base.encode(batch))

    def holds(self, encoded: RecordEvents, e: int, positions: Ints) -> Bools:
        """Tell of some filters whether they hold for event `e`."""
        out = np.zeros(len(positions), np.bool_)
        _hold(self._base.built.arrays, encoded.events, e, self._start, self._entries, positions, out)
        return out


@kernel
def _hold(
    index: RecordArrays, events: Events, e: int, start: Ints, entries: Ints, positions: Ints, out: Bools
) -> None:
    stream = index.stream
    for i in range(len(positions)):
        p = positions[i]
        for j in range(start[p], start[p + 1]):
            pc = entries[j] + HEAD_WORDS
            if stream[entries[j]] & TREE:
                out[i] = tree_holds(index, events, e, pc)
            else:
                out[i] = other_checks(index, events, e, pc, pc + stream[entries[j] + LENGTH], False)
            if out[i]:
                break
