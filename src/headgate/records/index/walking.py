"""Hot loops of `next`: the matches of one event in rising order, found when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.bits import lowest, place_of
from headgate.core.jit import bare, kernel
from headgate.records.index.arrays import FLAGS, HEAD_WORDS, LENGTH, REFERENCE, WHERE
from headgate.records.index.checking import checks_hold
from headgate.records.index.kernels import behind_entry, is_allowed, open_event

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes, Ints, Ints32, Words
    from headgate.records.index.arrays import Events, RecordArrays

STEADY = 16
"""Windows of equal length, before they grow."""


class Walk(NamedTuple):
    """What a walk over the filters that an event leads to goes through, and writes down.

    clusters         of the event; those of which entries were passed begin behind these
    fail, buckets    of the event: unkeyed entries that are ruled out, a bit each; its bucket on each line
    removed          filters that are passed over
    bits             of the filters of a window, all zero before and after one
    """

    clusters: Ints32
    fail: Words
    buckets: Bytes
    removed: Bytes
    bits: Words


@bare
def walk_window(
    index: RecordArrays,
    events: Events,
    e: int,
    begin: int,
    limit: int,
    walk: Walk,
    unkeyed: int,
) -> int:
    """Mark the filters from `begin` up to `limit` that hold, a bit each; returns the next unkeyed entry.

    Clusters and unkeyed entries are passed up to the limit for good.
    """
    stream, codes = index.stream, events.codes
    clusters, fail, buckets, removed, bits = walk
    for c in range(len(clusters)):
        at, last = clusters[c, 0], clusters[c, 1]
        while at < last:
            number = stream[at] >> FLAGS
            if number >= limit:
                break
            entry, here = at, at
            at = behind_entry(stream, at)
            if stream[here] & REFERENCE:
                # What is referred to is far away, and most of it fails its probe.
                entry = stream[here + WHERE]
                if not is_allowed(stream, buckets, here):
                    continue
            spot = number - begin
            if spot < 0 or removed[number]:
                continue
            bit = np.uint64(1) << np.uint64(spot & 63)
            if bits[spot >> 6] & bit:
                continue
            pc = entry + HEAD_WORDS
            if checks_hold(index, events, stream, codes, e, stream[entry], pc, pc + stream[entry + LENGTH]):
                bits[spot >> 6] |= bit
        clusters[c, 0] = at
    count = len(index.unkeyed_at)
    heads, places, words = index.unkeyed_head, index.unkeyed_at, index.unkeyed_words
    while unkeyed < count:
        head = heads[unkeyed]
        spot = (head >> FLAGS) - begin
        if begin + spot >= limit:
            break
        ruled_out = fail[unkeyed >> 6] >> np.uint64(unkeyed & 63)
        unkeyed += 1
        if ruled_out & np.uint64(1) or spot < 0 or removed[begin + spot]:
            continue
        bit = np.uint64(1) << np.uint64(spot & 63)
        if bits[spot >> 6] & bit:
            continue
        pc = places[unkeyed - 1] + HEAD_WORDS
        if checks_hold(index, events, stream, codes, e, head, pc, pc + words[unkeyed - 1]):
            bits[spot >> 6] |= bit
    return unkeyed


@bare
def next_matches(
    index: RecordArrays,
    events: Events,
    e: int,
    at_least: int,
    walk: Walk,
    unkeyed: int,
    wanted: int,
    window: int,
    out: Ints,
) -> tuple[int, int, int]:
    """Find the first filters from `at_least` on that hold: `wanted` and perhaps some more.

    Filters are looked at in windows of numbers, cluster after cluster, as `match_events` does it. Some are
    equally long, and if they were not enough, each is twice as long as the one before. Returns how many were
    found, the next unkeyed entry, and up to which number all were. There is room in `out` for a whole window
    behind what is wanted.
    """
    removed, bits = walk.removed, walk.bits
    count, begin, longest = 0, at_least, 64 * len(bits)
    windows = 0
    while count < wanted and begin < len(removed):
        limit = min(begin + min(window, longest), len(removed))
        unkeyed = walk_window(index, events, e, begin, limit, walk, unkeyed)
        for w in range((limit - begin + 63) >> 6):
            word = bits[w]
            bits[w] = 0
            while word:
                bit = lowest(word)
                word ^= bit
                out[count] = begin + 64 * w + place_of(bit)
                count += 1
        begin = limit
        # Not beyond all bounds: there may be hundreds of windows.
        windows += 1
        if windows >= STEADY:
            window = min(2 * window, longest)
    return count, unkeyed, begin


@kernel
def first_matches(
    index: RecordArrays, events: Events, removed: Bytes, window: int, longest: int, out: Ints, counts: Ints
) -> int:
    """Find the first filters that hold for each of some events: of e out[e, :counts[e]], as many as fit.

    Goes through windows as `next_matches` does, and returns how many matches there may be in all: as many in
    each window as in those that were gone through.
    """
    wanted = out.shape[1]
    fail = np.zeros((len(index.unkeyed_at) + 63) // 64, np.uint64)
    buckets = np.empty(len(index.line_base), np.uint8)
    bits = np.zeros((longest + 63) // 64, np.uint64)
    matches_of_event = np.empty(wanted + longest, np.int64)
    matches = 0
    for e in range(len(out)):
        clusters, reached = open_event(index, events, e, fail, buckets)
        walk = Walk(clusters[:reached], fail, buckets, removed, bits)
        count, _, walked = next_matches(index, events, e, 0, walk, 0, wanted, window, matches_of_event)
        counts[e] = min(count, wanted)
        for i in range(counts[e]):
            out[e, i] = matches_of_event[i]
        matches += count * len(removed) // max(1, walked)
    return matches
