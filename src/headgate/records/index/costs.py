"""What it takes to match: which filters are checked for an event, and how many words and letters are read.

A twin of the loops in `kernels`, for some of the events only: counting there would cost every match.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import bare, kernel
from headgate.records.index.arrays import REFERENCE_WORDS
from headgate.records.index.checking import check_at
from headgate.records.index.kernels import find_buckets, find_clusters, spoil

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.records.index.arrays import Events, RecordArrays


@bare
def _letters(index: RecordArrays, events: Events, e: int, pc: int) -> int:
    """Count the letters that the check at a place searches: those of the text, if it is a pattern."""
    word = index.stream[pc]
    if not 12 <= word & 15 < 14:
        return 0
    text = events.text_of[index.glob_side[word >> 4], e]
    return 0 if text < 0 else int(events.text_offsets[text + 1] - events.text_offsets[text])


@bare
def _run(index: RecordArrays, events: Events, e: int, place: int, words: int) -> tuple[bool, int]:
    """Make the checks of the entry at a place; returns whether they hold, and what was read."""
    stream = index.stream
    begin, spent = place + 2, 2
    if stream[place] & 4 and words:
        jump = 0
        while jump >= 0:
            pc = begin + jump
            holds, after = check_at(index, events, e, pc)
            spent += after - pc + 2 + _letters(index, events, e, pc)
            jump = stream[after] if holds else stream[after + 1]
        return jump == -1, spent
    pc = begin
    while pc < begin + words:
        holds, after = check_at(index, events, e, pc)
        spent += after - pc + _letters(index, events, e, pc)
        if not holds:
            return False, spent
        pc = after
    return True, spent


@kernel
def count_checks(
    index: RecordArrays,
    events: Events,
    count: int,
    removed: NDArray[np.uint8],
    candidates: NDArray[np.int64],
    work: NDArray[np.int64],
) -> None:
    """Count for each filter the events for which it is checked, and the words and letters read for that."""
    most = 2 * len(index.line_base)
    atoms = np.empty(most, np.int32)
    masks = np.empty(most, np.uint64)
    lines = np.empty(most, np.uint8)
    clusters = np.empty((max(256, most), 2), np.int32)
    buckets = np.empty(len(index.line_base), np.uint8)
    fail = np.zeros((len(index.unkeyed_at) + 63) // 64, np.uint64)
    asked = np.full(len(removed), -1, np.int64)
    held = np.full(len(removed), -1, np.int64)
    stream = index.stream
    for e in range(count):
        if len(fail):
            spoil(index, events, e, fail)
        for m in range(len(index.unkeyed_at)):
            place = index.unkeyed_at[m]
            number = stream[place] >> 3
            if (fail[m >> 6] >> np.uint64(m & 63)) & np.uint64(1) or removed[number] or held[number] == e:
                continue
            holds, spent = _run(index, events, e, place, index.unkeyed_words[m])
            candidates[number] += asked[number] != e
            asked[number] = e
            work[number] += spent
            if holds:
                held[number] = e
        found = find_clusters(index, events, e, atoms, masks, lines, clusters)
        while found < 0:
            clusters = np.empty((2 * len(clusters), 2), np.int32)
            found = find_clusters(index, events, e, atoms, masks, lines, clusters)
        find_buckets(index, events, e, buckets)
        for c in range(found):
            at = clusters[c, 0]
            while at < clusters[c, 1]:
                number = stream[at] >> 3
                place, allowed = at, True
                if stream[at] & 2:
                    place = stream[at + 1]
                    allowed = ((stream[at + 3] >> np.int32(buckets[stream[at + 2]])) & 1) != 0
                at += REFERENCE_WORDS if stream[at] & 2 else 2 + stream[at + 1]
                if removed[number] or held[number] == e:
                    continue
                holds, spent = False, REFERENCE_WORDS
                if allowed:
                    holds, spent = _run(index, events, e, place, stream[place + 1])
                candidates[number] += asked[number] != e
                asked[number] = e
                work[number] += spent
                if holds:
                    held[number] = e
