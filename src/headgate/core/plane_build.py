"""Conjunctions over codes to bit planes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.core.planes import Planes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Ints, Ints32

BUDGET = 128 << 20
"""Bytes for the rows of all axes, unless the filters themselves are larger."""
SLOTS = 4
"""Conjunctions of a filter that have planes; filters with more are decided one by one."""
REPEATS = 8
"""Checks of a conjunction on one line that have planes; conjunctions with more are decided one by one."""
MOST_BUCKETS, FEWEST_BUCKETS = 256, 16


class Conjunctions(NamedTuple):
    """Filters by position, as `Planes` keeps them; line_codes[l] is how many codes line l has."""

    line_codes: Ints32
    conjunction_start: Ints32
    asks: Bytes
    check_start: Ints32
    check_line: Ints32
    check_kind: Bytes
    set_start: Ints32
    set_low: Ints32
    set_high: Ints32


def build_planes(filters: Conjunctions, budget: int = BUDGET) -> Planes:
    """Lay out planes in about `budget` bytes: coarser buckets first, then fewer slots."""
    positions = len(filters.conjunction_start) - 1
    words = (positions + 63) // 64
    check_count = np.diff(filters.check_start)
    owner = np.repeat(np.arange(len(filters.asks), dtype=np.int64), check_count)
    slot = _slots(filters.conjunction_start, len(filters.asks))
    repeat = np.zeros(len(filters.check_line), np.int32)
    _count_repeats(filters.check_start, filters.check_line, filters.check_kind, repeat)
    lines = max(1, len(filters.line_codes))
    key = ((slot[owner] * lines + filters.check_line) * 3 + filters.check_kind) * REPEATS + repeat
    slots, most, axes = _fit(filters.line_codes, key, repeat, words, max(budget, filters.set_low.nbytes))
    planed = (slot[owner] < slots) & (repeat < REPEATS)
    axis_of = np.where(planed, np.searchsorted(axes, key), -1).astype(np.int32)
    axis_line = (axes // (3 * REPEATS) % lines).astype(np.int32)
    sizes = np.minimum(filters.line_codes, most).astype(np.int64)
    bucket, bucket_start = _buckets(filters.line_codes, sizes)
    coarse = filters.line_codes[axis_line] > most
    rows, parts = _starts(sizes[axis_line]), _starts(np.where(coarse, sizes[axis_line], 0))
    planes = Planes(
        slot_start=np.searchsorted(axes, np.arange(slots + 1) * lines * 3 * REPEATS).astype(np.int32),
        present=np.zeros((slots, words), np.uint64),
        unsure=np.zeros((slots, words), np.uint64),
        over=np.zeros(words, np.uint64),
        axis_line=axis_line,
        axis_kind=(axes // REPEATS % 3).astype(np.uint8),
        axis_row=rows[:-1].astype(np.int32),
        axis_part=np.where(coarse, parts[:-1], -1).astype(np.int32),
        axis_bucket=bucket_start[axis_line].astype(np.int32),
        free=np.zeros((len(axes), words), np.uint64),
        some=np.zeros((int(rows[-1]), words), np.uint64),
        part=np.zeros((int(parts[-1]), words), np.uint64),
        bucket=bucket,
        conjunction_start=filters.conjunction_start,
        asks=filters.asks,
        check_start=filters.check_start,
        check_line=filters.check_line,
        check_kind=filters.check_kind,
        set_start=filters.set_start,
        set_low=filters.set_low,
        set_high=filters.set_high,
    )
    _fill(planes, axis_of, filters.line_codes, sizes)
    return planes


def _fit(line_codes: Ints32, key: Ints, repeat: Ints32, words: int, budget: int) -> tuple[int, int, Ints]:
    """Choose how many slots and how many buckets a line may have; returns them and the keys of the axes."""
    lines = max(1, len(line_codes))
    most_slots = int(key.max(initial=0) // (lines * 3 * REPEATS)) + 1
    for slots in range(min(SLOTS, most_slots), 0, -1):
        axes = np.unique(key[(key < slots * lines * 3 * REPEATS) & (repeat < REPEATS)])
        codes = line_codes[axes // (3 * REPEATS) % lines].astype(np.int64)
        buckets = MOST_BUCKETS
        while buckets >= FEWEST_BUCKETS:
            rows = np.where(codes > buckets, 2 * buckets, codes).sum() + len(axes)
            if rows * words * 8 <= budget or (slots == 1 and buckets == FEWEST_BUCKETS):
                return slots, buckets, axes
            buckets //= 2
    raise AssertionError("one slot with the fewest buckets is always taken")


def _slots(conjunction_start: Ints32, count: int) -> Ints:
    """Number the conjunctions of each filter from 0."""
    first = np.repeat(conjunction_start[:-1].astype(np.int64), np.diff(conjunction_start))
    return np.arange(count) - first


def _starts(sizes: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


def _buckets(line_codes: Ints32, sizes: Ints) -> tuple[NDArray[np.uint16], Ints]:
    """Divide the codes of each line evenly; returns the buckets of its codes, and where they begin."""
    start = _starts(line_codes.astype(np.int64))
    bucket = np.zeros(int(start[-1]), np.uint16)
    for line, (codes, size) in enumerate(zip(line_codes.tolist(), sizes.tolist(), strict=True)):
        bucket[start[line] : start[line + 1]] = np.arange(codes, dtype=np.int64) * size // max(1, codes)
    return bucket, start


@kernel
def _count_repeats(check_start: Ints32, check_line: Ints32, check_kind: Bytes, repeat: Ints32) -> None:
    for c in range(len(check_start) - 1):
        for k in range(check_start[c], check_start[c + 1]):
            for j in range(check_start[c], k):
                if check_line[j] == check_line[k] and check_kind[j] == check_kind[k]:
                    repeat[k] += 1


@kernel
def _fill(planes: Planes, axis_of: Ints32, line_codes: Ints32, sizes: Ints) -> None:
    """Set the bits. Bucket b of a line begins at the first code c with c * size // codes = b."""
    # How many codes of each bucket a check accepts.
    covered = np.zeros(sizes.max() if len(sizes) else 0, np.int64)
    slots = len(planes.slot_start) - 1
    some, part, free, bucket = planes.some, planes.part, planes.free, planes.bucket
    demanding = np.zeros(len(planes.axis_line), np.uint8)
    for p in range(len(planes.conjunction_start) - 1):
        w = p >> 6
        bit = np.uint64(1) << np.uint64(p & 63)
        first = planes.conjunction_start[p]
        if planes.conjunction_start[p + 1] - first > slots:
            planes.over[w] |= bit
        for s in range(min(slots, planes.conjunction_start[p + 1] - first)):
            c = first + s
            planes.present[s, w] |= bit
            if planes.asks[c]:
                planes.unsure[s, w] |= bit
            for k in range(planes.check_start[c], planes.check_start[c + 1]):
                a = axis_of[k]
                if a < 0:
                    planes.unsure[s, w] |= bit
                    continue
                demanding[a] = 1
                line = planes.axis_line[a]
                base = planes.axis_bucket[a]
                codes, size = line_codes[line], sizes[line]
                lowest, highest = size, np.int64(-1)
                for i in range(planes.set_start[k], planes.set_start[k + 1]):
                    low, high = planes.set_low[i], planes.set_high[i]
                    before, behind = np.int64(bucket[base + low]), np.int64(bucket[base + high])
                    for b in range(before, behind + 1):
                        begin, end = -(-b * codes // size), -(-(b + 1) * codes // size) - 1
                        covered[b] += min(high, end) - max(low, begin) + 1
                    lowest, highest = min(lowest, before), max(highest, behind)
                for b in range(lowest, highest + 1):
                    if covered[b]:
                        some[planes.axis_row[a] + b, w] |= bit
                        if covered[b] < -(-(b + 1) * codes // size) - (-(-b * codes // size)):
                            part[planes.axis_part[a] + b, w] |= bit
                        covered[b] = 0
            for a in range(planes.slot_start[s], planes.slot_start[s + 1]):
                if demanding[a]:
                    demanding[a] = 0
                else:
                    free[a, w] |= bit
    for a in range(len(planes.axis_line)):
        last = planes.axis_row[a + 1] if a + 1 < len(planes.axis_line) else len(some)
        for r in range(planes.axis_row[a], last):
            for w in range(free.shape[1]):
                some[r, w] |= free[a, w]
