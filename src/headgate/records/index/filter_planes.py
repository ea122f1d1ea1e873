"""Record filters for asking one by one: as bit planes, and exactly where planes end."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.core.jit import kernel
from headgate.core.plane_build import Conjunctions, build_planes
from headgate.core.planes import Cells, Planes
from headgate.records.index.arrays import FLAGS, GLOB_OP, TREE, TRUE_OP
from headgate.records.index.checking import other_checks, tree_holds
from headgate.records.index.restoring import full_entries
from headgate.records.programs.programs import starts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from headgate.core.event import Event
    from headgate.records.index.arrays import Events, RecordArrays
    from headgate.records.index.live import Base

    Ints = NDArray[np.int64]


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
        entries = full_entries(base.built)
        numbers = base.built.arrays.stream[entries] >> FLAGS
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
        arrays, stream = self._base.built.arrays, self._base.built.arrays.stream
        counted = np.zeros(2, np.int64)
        check_count, asks = np.zeros(len(self._entries), np.int64), np.zeros(len(self._entries), np.uint8)
        line_base = self._base.built.arrays.line_base
        _read_checks(stream, line_base, self._entries, check_count, asks, _NO_CHECKS, counted)
        checks = Checks(
            np.zeros(counted[0], np.int32),
            np.zeros(counted[0], np.uint8),
            np.zeros(counted[0], np.int64),
            np.zeros(counted[1], np.int32),
            np.zeros(counted[1], np.int32),
        )
        _read_checks(stream, line_base, self._entries, check_count, asks, checks, counted)
        return Conjunctions(
            line_codes=np.diff(arrays.line_base).astype(np.int32),
            conjunction_start=self._start.astype(np.int32),
            asks=asks,
            check_start=starts(check_count).astype(np.int32),
            check_line=checks.line,
            check_kind=checks.kind,
            set_start=starts(checks.ranges).astype(np.int32),
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

    def holds(self, encoded: RecordEvents, e: int, positions: Ints) -> NDArray[np.bool_]:
        """Tell of some filters whether they hold for event `e`."""
        out = np.zeros(len(positions), np.bool_)
        _hold(self._base.built.arrays, encoded.events, e, self._start, self._entries, positions, out)
        return out


class Checks(NamedTuple):
    """Checks one after the other: line, kind, how many ranges, and the ranges themselves."""

    line: NDArray[np.int32]
    kind: NDArray[np.uint8]
    ranges: Ints
    low: NDArray[np.int32]
    high: NDArray[np.int32]


_NO_CHECKS = Checks(
    np.zeros(0, np.int32),
    np.zeros(0, np.uint8),
    np.zeros(0, np.int64),
    np.zeros(0, np.int32),
    np.zeros(0, np.int32),
)


@kernel
def _read_checks(
    stream: NDArray[np.int32],
    line_base: NDArray[np.int32],
    entries: Ints,
    check_count: Ints,
    asks: NDArray[np.uint8],
    out: Checks,
    counted: Ints,
) -> None:
    """Read the checks of entries; with no room in `out`, count checks and ranges only."""
    fill = len(out.line) > 0
    k, r = 0, 0
    for i in range(len(entries)):
        at = entries[i]
        check_count[i] = 0
        if stream[at] & TREE:
            asks[i] = 1
            continue
        pc, end = at + 2, at + 2 + stream[at + 1]
        while pc < end:
            word = stream[pc]
            op = word & 15
            pc += 1
            if op >= GLOB_OP:
                if op != TRUE_OP:
                    asks[i] = 1
                continue
            shape = op & 3
            n = word >> 20
            if shape < 2:
                n = 1
            elif n == 0:
                n = stream[pc]
                pc += 1
            width = 1 + (shape & 1)
            line, left_out = (word >> 4) & 0x3FFF, word >> 18 & 1
            found = 0
            for j in range(n + left_out):
                if left_out:
                    low = stream[pc + width * j - 1] + 1 if j else 1
                    high = line_base[line + 1] - line_base[line] - 1 if j == n else stream[pc + width * j] - 1
                    if low > high:
                        continue
                else:
                    low, high = stream[pc + width * j], stream[pc + width * j + width - 1]
                if fill:
                    out.low[r + found], out.high[r + found] = low, high
                found += 1
            if fill:
                out.line[k] = line
                out.kind[k] = op >> 2
                out.ranges[k] = found
            pc += n * width
            check_count[i] += 1
            k += 1
            r += found
    counted[0], counted[1] = k, r


@kernel
def _hold(
    index: RecordArrays,
    events: Events,
    e: int,
    start: Ints,
    entries: Ints,
    positions: Ints,
    out: NDArray[np.bool_],
) -> None:
    stream = index.stream
    for i in range(len(positions)):
        p = positions[i]
        for j in range(start[p], start[p + 1]):
            at = entries[j]
            if stream[at] & TREE:
                out[i] = tree_holds(index, events, e, at + 2)
            else:
                out[i] = other_checks(index, events, e, at + 2, at + 2 + stream[at + 1])
            if out[i]:
                break
