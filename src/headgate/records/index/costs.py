"""What it takes to match: which filters are checked for an event, and how many words and letters are read.

A twin of the loops in `kernels`, for some of the events only: counting there would cost every match.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import bare, kernel
from headgate.records.index.arrays import (
    ACCEPT,
    FLAGS,
    GLOB_OP,
    HEAD_WORDS,
    LENGTH,
    LINE_SHIFT,
    NOT_GLOB_OP,
    OP_MASK,
    REFERENCE,
    REFERENCE_WORDS,
    TREE,
    WHERE,
)
from headgate.records.index.checking import check_at
from headgate.records.index.kernels import behind_entry, is_allowed, open_event

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes, Ints
    from headgate.records.index.arrays import Events, RecordArrays


@bare
def _letters(index: RecordArrays, events: Events, e: int, pc: int) -> int:
    """Count the letters that the check at a place searches: those of the text, if it is a pattern."""
    word = index.stream[pc]
    if not GLOB_OP <= word & OP_MASK <= NOT_GLOB_OP:
        return 0
    text = events.text_of[index.glob_side[word >> LINE_SHIFT], e]
    return 0 if text < 0 else int(events.text_offsets[text + 1] - events.text_offsets[text])


@bare
def _run(index: RecordArrays, events: Events, e: int, entry: int, words: int) -> tuple[bool, int]:
    """Make the checks of the entry at a place; returns whether they hold, and what was read."""
    stream = index.stream
    tree = bool(stream[entry] & TREE)
    begin, spent = entry + HEAD_WORDS, HEAD_WORDS
    pc = begin
    while pc < begin + words:
        holds, after = check_at(index, events, e, pc)
        spent += after - pc + _letters(index, events, e, pc)
        if tree:
            spent += 2
            jump = stream[after] if holds else stream[after + 1]
            if jump < 0:
                return jump == ACCEPT, spent
            after = begin + jump
        elif not holds:
            return False, spent
        pc = after
    return True, spent


@kernel
def count_checks(
    index: RecordArrays, events: Events, count: int, removed: Bytes, candidates: Ints, work: Ints
) -> None:
    """Count for each filter the events for which it is checked, and the words and letters read for that."""
    fail = np.zeros((len(index.unkeyed_at) + 63) // 64, np.uint64)
    buckets = np.empty(len(index.line_base), np.uint8)
    asked = np.full(len(removed), -1, np.int64)
    held = np.full(len(removed), -1, np.int64)
    stream = index.stream
    for e in range(count):
        clusters, cluster_count = open_event(index, events, e, fail, buckets)
        for m in range(len(index.unkeyed_at)):
            entry = index.unkeyed_at[m]
            number = stream[entry] >> FLAGS
            if (fail[m >> 6] >> np.uint64(m & 63)) & np.uint64(1) or removed[number] or held[number] == e:
                continue
            holds, spent = _run(index, events, e, entry, index.unkeyed_words[m])
            candidates[number] += asked[number] != e
            asked[number] = e
            work[number] += spent
            if holds:
                held[number] = e
        for c in range(cluster_count):
            at = clusters[c, 0]
            while at < clusters[c, 1]:
                number = stream[at] >> FLAGS
                entry, allowed = at, True
                if stream[at] & REFERENCE:
                    entry, allowed = stream[at + WHERE], is_allowed(stream, buckets, at)
                at = behind_entry(stream, at)
                if removed[number] or held[number] == e:
                    continue
                holds, spent = False, REFERENCE_WORDS
                if allowed:
                    holds, spent = _run(index, events, e, entry, stream[entry + LENGTH])
                candidates[number] += asked[number] != e
                asked[number] = e
                work[number] += spent
                if holds:
                    held[number] = e
