"""Hot loops: the entries of a pattern, asked for a row of bound slots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import bare_inner
from headgate.rdf.index.arrays import BLOCK, BY_HIGH
from headgate.rdf.index.checking import ASK_REFERENCE, FALSE, TRUE, checks_hold, range_holds
from headgate.rdf.index.scratch import DOUBT, EVERYTHING, FULL

if TYPE_CHECKING:
    from headgate.rdf.index.arrays import Encoded, RdfArrays
    from headgate.rdf.index.scratch import Scratch


@bare_inner
def _emit(arrays: RdfArrays, event: Encoded, scratch: Scratch, entry: int, epoch: int, answer: int) -> int:
    """Check an entry for the row, and note the answer; returns 1 if it is settled, else 0."""
    number = arrays.entries.number[entry]
    if scratch.seen[number] == epoch:
        return 0
    at = arrays.entries.checks[entry]
    if at:
        found = checks_hold(event, arrays.checks, at, scratch.row, scratch.blame)
        answer = found if found == FALSE else max(found, answer)
    if answer == FALSE:
        return 0
    if answer == TRUE:
        scratch.seen[number] = epoch
        scratch.out[scratch.counts[2]] = number
        scratch.counts[2] += 1
        return 1
    doubts, rows = scratch.counts[3], scratch.counts[4]
    if answer == ASK_REFERENCE:
        # Once is enough: the reference looks at the whole event.
        scratch.seen[number] = epoch
    else:
        scratch.blame[0] = EVERYTHING
    if scratch.counts[5] == 0:
        scratch.counts[5] = 1
        scratch.counts[4] = rows + 64
        scratch.counts[7] += DOUBT
        for slot in range(64):
            scratch.rows[rows + slot] = scratch.row[slot]
    scratch.doubts[4 * doubts] = number
    scratch.doubts[4 * doubts + 1] = scratch.counts[4] - 64
    scratch.doubts[4 * doubts + 2] = answer
    scratch.doubts[4 * doubts + 3] = at
    scratch.counts[3] = doubts + 1
    return 1 if answer == ASK_REFERENCE else 0


@bare_inner
def _all_seen(arrays: RdfArrays, scratch: Scratch, begin: int, end: int, epoch: int) -> bool:
    """Tell whether all is known of some entries."""
    entry = begin
    while entry < end and scratch.seen[arrays.entries.number[entry]] == epoch:
        entry += 1
    return entry == end


@bare_inner
def enter(arrays: RdfArrays, event: Encoded, scratch: Scratch, pattern: int, epoch: int, some: bool) -> int:
    """Ask the entries of a pattern for the row; returns how many were settled, or FULL and asks none.

    With `some`, groups of which all is known are not to blame for anything.
    """
    patterns, groups = arrays.patterns, arrays.groups
    begin, end = patterns.entry_start[pattern], patterns.entry_start[pattern + 1]
    first, last = patterns.group_start[pattern], patterns.group_start[pattern + 1]
    free = groups.entry[first] if first < last else end
    if 4 * (scratch.counts[3] + end - begin) > len(scratch.doubts) or scratch.counts[4] + 64 > len(
        scratch.rows
    ):
        return FULL
    settled = 0
    scratch.counts[5] = 0
    scratch.blame[0] = np.uint64(0)
    asked = free - begin
    for entry in range(begin, free):
        settled += _emit(arrays, event, scratch, entry, epoch, TRUE)
    for g in range(first, last):
        term = scratch.row[groups.slot[g]]
        line = groups.line[g]
        if some and _all_seen(arrays, scratch, groups.entry[g], groups.entry[g] + groups.size[g], epoch):
            continue
        scratch.blame[0] |= np.uint64(1) << np.uint64(groups.slot[g])
        if event.line[term] == 0:
            continue
        low, high = 0, groups.size[g]
        at, entry = groups.range_at[g], groups.entry[g]
        if event.line[term] == line:
            # Ranges that begin above the value, or end below it, are cut off.
            size = high
            key = event.key[term]
            slack = event.slack[term]
            if groups.order[g] == BY_HIGH:
                least = key - slack
                while low < high:
                    middle = (low + high) >> 1
                    if groups.high[at + middle] < least:
                        low = middle + 1
                    else:
                        high = middle
                high = size
            else:
                most = key + slack
                while low < high:
                    middle = (low + high) >> 1
                    if groups.low[at + middle] <= most:
                        low = middle + 1
                    else:
                        high = middle
                low = 0
        asked += high - low
        block = -1
        i = low
        while i < high:
            if i // BLOCK != block and event.line[term] == line:
                block = i // BLOCK
                if groups.top[groups.block_at[g] + block] < event.key[term] - event.slack[term]:
                    i = (block + 1) * BLOCK
                    continue
            answer = range_holds(
                event, term, line, groups.low[at + i], groups.high[at + i], groups.flags[at + i]
            )
            if answer != FALSE:
                settled += _emit(arrays, event, scratch, entry + i, epoch, answer)
            i += 1
    scratch.blame[1] += np.uint64(asked)
    return settled
