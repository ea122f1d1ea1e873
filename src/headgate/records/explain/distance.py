"""How near each filter is to matching an event, from below: one walk over the stream.

The *bound* of a filter is the fewest checks that fail among its conjunctions, so it is 0 exactly for filters
that match. A check that fails means that a clause of the text fails, so there are at least as many of those:
checks are clauses that were merged. Only one kind of clause may be two checks: `a BETWEEN 1 AND 2.5`, where
texts meet the two literals on different lines of the attribute. Where an attribute has several lines, two of
its failed checks therefore count as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import kernel
from headgate.records.index.arrays import REFERENCE_WORDS
from headgate.records.index.checking import check_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.records.index.arrays import BuiltIndex, Events, RecordArrays

NEVER = 32767
"""The bound of filters that no event can match, of removed ones, and of those beyond what was asked for."""


def lower_bounds(
    built: BuiltIndex, events: Events, removed: NDArray[np.uint8], most: int = NEVER
) -> NDArray[np.int16]:
    """Bound the clauses that fail of each filter, for the one event that is encoded.

    Bounds of `most` and more are NEVER.
    """
    owner, several = _owners(built)
    bounds = np.full(len(removed), NEVER, np.int16)
    count_failures(built.arrays, events, owner, several, removed, min(most, NEVER), bounds)
    return bounds


def _owners(built: BuiltIndex) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """List the attribute of each line, and whether values of that attribute are seen on several lines."""
    # A copy, so that kernels see arrays of one type whether the index was built here or opened.
    owner = np.array(built.lines.line_attribute)
    scalar = built.lines.line_multi == 0
    counts = np.bincount(owner[scalar], minlength=len(built.attributes))
    return owner, ((counts[owner] > 1) & scalar).astype(np.uint8)


@kernel
def count_failures(
    index: RecordArrays,
    events: Events,
    owner: NDArray[np.int32],
    several: NDArray[np.uint8],
    removed: NDArray[np.uint8],
    most: int,
    bounds: NDArray[np.int16],
) -> None:
    """Walk all entries that are stored in full, and keep the lowest count of each filter, below `most`."""
    stream, codes = index.stream, events.codes
    pairs, apart, end = int(index.single_start[-1]), int(index.marks[0]), len(stream)
    # The entry that last left half a clause open on an attribute.
    half = np.full(owner.max() + 1 if len(owner) else 1, -1, np.int64)
    reach = np.empty(0, np.int32)
    at, border = 0, pairs
    while at < end:
        if at == border and at < apart:
            border = at + 3 + int(stream[at + 2])
            at += 3
            continue
        head = stream[at]
        if head & 2:
            at += REFERENCE_WORDS
            continue
        entry, pc = at, at + 2
        at = pc + int(stream[entry + 1])
        number = head >> 3
        limit = min(most, int(bounds[number]))
        if removed[number] or limit == 0:
            continue
        if head & 4:
            if len(reach) < at - pc:
                reach = np.empty(2 * (at - pc), np.int32)
            failed = tree_failures(index, events, several, pc, at, reach)
            if failed < limit:
                bounds[number] = failed
            continue
        failed = 0
        while pc < at and failed < limit:
            word = stream[pc]
            op = word & 15
            line = (word >> 4) & 0x3FFF
            if op < 4 and word >> 18 & 1:
                holds, pc = check_at(index, events, 0, pc)
            elif op == 0:
                holds = codes[0, line] == stream[pc + 1]
                pc += 2
            elif op == 1:
                holds = stream[pc + 1] <= codes[0, line] <= stream[pc + 2]
                pc += 3
            else:
                holds, pc = check_at(index, events, 0, pc)
            if holds:
                continue
            if op < 4 and several[line]:
                if half[owner[line]] == entry:
                    half[owner[line]] = -1
                    continue
                half[owner[line]] = entry
            failed += 1
        if failed < limit:
            bounds[number] = failed


@kernel
def tree_failures(
    index: RecordArrays,
    events: Events,
    several: NDArray[np.uint8],
    begin: int,
    end: int,
    reach: NDArray[np.int32],
) -> int:
    """Find the cheapest way through a tree that is accepted, where a check that fails may be passed for 1.

    Jumps lead forward only, so one pass in order finds it: reach[i] is the cost up to the check at word i, in
    half clauses. NEVER if there is no such way.
    """
    far = 4 * NEVER
    reach[: end - begin] = far
    reach[0] = 0
    best = far
    pc = begin
    while pc < end:
        word = index.stream[pc]
        op = word & 15
        cost = reach[pc - begin]
        holds, after = check_at(index, events, 0, pc)
        pc = after + 2
        if cost >= best:
            continue
        for way in range(2):
            to = index.stream[after + way]
            price = int(cost)
            if way == 0 and not holds:
                # A constant stays what it is.
                if op >= 14:
                    continue
                price += 1 if op < 4 and several[(word >> 4) & 0x3FFF] else 2
            elif way == 1 and holds:
                continue
            if to == -1:
                best = min(best, price)
            elif to >= 0 and price < reach[to]:
                reach[to] = price
    return min((best + 1) // 2, NEVER)
