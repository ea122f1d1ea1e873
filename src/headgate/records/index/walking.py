"""Hot loops of `next`: the matches of one event in rising order, each found when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.bits import lowest, place_of
from headgate.core.jit import bare, kernel
from headgate.records.index.arrays import REFERENCE_WORDS
from headgate.records.index.checking import led_checks, scalar_checks, tree_holds
from headgate.records.index.kernels import find_clusters, spoil

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.records.index.arrays import Events, RecordArrays

STEADY = 16
"""Windows of equal length, before they grow."""


@kernel
def open_cursor(
    index: RecordArrays, events: Events, e: int, clusters: NDArray[np.int32], fail: NDArray[np.uint64]
) -> int:
    """Find all that `next_match` walks through; returns the clusters, or -1 if there is no room for them."""
    most = 2 * len(index.line_base)
    if len(fail):
        spoil(index, events, e, fail)
    return find_clusters(
        index,
        events,
        e,
        np.empty(most, np.int32),
        np.empty(most, np.uint64),
        np.empty(most, np.uint8),
        clusters,
    )


@kernel
def next_match(
    index: RecordArrays,
    events: Events,
    e: int,
    at_least: int,
    clusters: NDArray[np.int32],
    found: int,
    fail: NDArray[np.uint64],
    unkeyed: int,
    removed: NDArray[np.uint8],
) -> tuple[int, int]:
    """Find the first filter from `at_least` on that holds; returns it, or -1, and the next unkeyed entry.

    The first entries of all clusters are merged: the entry with the lowest filter is checked, and no other
    before it. Entries below `at_least` are passed over unchecked; clusters[c, 0] moves on for good.
    """
    stream = index.stream
    count = len(index.unkeyed_at)
    while True:
        best, where = np.int64(2**62), -1
        for c in range(found):
            at, last = clusters[c, 0], clusters[c, 1]
            while at < last and (stream[at] >> 3) < at_least:
                at += REFERENCE_WORDS if stream[at] & 2 else 2 + stream[at + 1]
            clusters[c, 0] = at
            if at < last and (stream[at] >> 3) < best:
                best, where = stream[at] >> 3, c
        while unkeyed < count:
            ruled_out = (fail[unkeyed >> 6] >> np.uint64(unkeyed & 63)) & np.uint64(1)
            if not ruled_out and (stream[index.unkeyed_at[unkeyed]] >> 3) >= at_least:
                break
            unkeyed += 1
        if unkeyed < count and (stream[index.unkeyed_at[unkeyed]] >> 3) < best:
            place, end_words = index.unkeyed_at[unkeyed], index.unkeyed_words[unkeyed]
            number = stream[place] >> 3
            unkeyed += 1
        elif where >= 0:
            place = clusters[where, 0]
            number = best
            clusters[where, 0] += REFERENCE_WORDS if stream[place] & 2 else 2 + stream[place + 1]
            if stream[place] & 2:
                place = stream[place + 1]
            end_words = stream[place + 1]
        else:
            return -1, unkeyed
        if removed[number]:
            continue
        if stream[place] & 4 and end_words:
            holds = tree_holds(index, events, e, place + 2)
        else:
            holds = led_checks(index, events, e, place + 2, place + 2 + end_words)
        if holds:
            return number, unkeyed


@bare
def walk_window(
    index: RecordArrays,
    events: Events,
    e: int,
    begin: int,
    limit: int,
    clusters: NDArray[np.int32],
    found: int,
    fail: NDArray[np.uint64],
    unkeyed: int,
    removed: NDArray[np.uint8],
    bits: NDArray[np.uint64],
) -> int:
    """Mark the filters from `begin` up to `limit` that hold, a bit each; returns the next unkeyed entry.

    Clusters and unkeyed entries are passed up to the limit for good.
    """
    stream, codes = index.stream, events.codes
    line_base, quantile = index.line_base, index.quantile
    for c in range(found):
        at, last = clusters[c, 0], clusters[c, 1]
        while at < last:
            head = stream[at]
            number = head >> 3
            if number >= limit:
                break
            place = at
            if head & 2:
                place = stream[at + 1]
                at += REFERENCE_WORDS
                # What is referred to is far away, and most of it fails its probe.
                line = stream[at - 2]
                bucket = np.int32(quantile[line_base[line] + codes[e, line]])
                if not (stream[at - 1] >> bucket) & 1:
                    continue
            else:
                at += 2 + stream[at + 1]
            if number < begin or removed[number]:
                continue
            spot = number - begin
            bit = np.uint64(1) << np.uint64(spot & 63)
            if bits[spot >> 6] & bit:
                continue
            pc, end = place + 2, place + 2 + stream[place + 1]
            if stream[place] & 4:
                if not tree_holds(index, events, e, pc):
                    continue
            else:
                pc = scalar_checks(stream, codes, e, pc, end)
                if pc != end and (pc < 0 or not led_checks(index, events, e, pc, end)):
                    continue
            bits[spot >> 6] |= bit
        clusters[c, 0] = at
    count = len(index.unkeyed_at)
    heads, places = index.unkeyed_head, index.unkeyed_at
    while unkeyed < count:
        head = heads[unkeyed]
        number = head >> 3
        if number >= limit:
            break
        ruled_out = fail[unkeyed >> 6] >> np.uint64(unkeyed & 63)
        unkeyed += 1
        if ruled_out & np.uint64(1) or number < begin or removed[number]:
            continue
        place, words = places[unkeyed - 1], index.unkeyed_words[unkeyed - 1]
        spot = number - begin
        bit = np.uint64(1) << np.uint64(spot & 63)
        if bits[spot >> 6] & bit:
            continue
        if head & 4 and words:
            if not tree_holds(index, events, e, place + 2):
                continue
        elif words and not led_checks(index, events, e, place + 2, place + 2 + words):
            continue
        bits[spot >> 6] |= bit
    return unkeyed


@bare
def next_matches(
    index: RecordArrays,
    events: Events,
    e: int,
    at_least: int,
    clusters: NDArray[np.int32],
    found: int,
    fail: NDArray[np.uint64],
    unkeyed: int,
    removed: NDArray[np.uint8],
    wanted: int,
    window: int,
    bits: NDArray[np.uint64],
    out: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Find the first filters from `at_least` on that hold: `wanted` and perhaps some more.

    Filters are looked at in windows of numbers, cluster after cluster, as `match_events` does it. Some are
    equally long, and if they were not enough, each is twice as long as the one before. Returns how many were
    found, the next unkeyed entry, and up to which number all were. All bits are zero before and after; out
    has room for a whole window behind what is wanted.
    """
    count, begin, longest = 0, at_least, 64 * len(bits)
    windows = 0
    while count < wanted and begin < len(removed):
        limit = min(begin + min(window, longest), len(removed))
        unkeyed = walk_window(index, events, e, begin, limit, clusters, found, fail, unkeyed, removed, bits)
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
    index: RecordArrays,
    events: Events,
    removed: NDArray[np.uint8],
    window: int,
    longest: int,
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> int:
    """Find the first filters that hold for each of some events: of e out[e, :counts[e]], as many as fit.

    Goes through windows as `next_matches` does, and returns how many matches there may be in all: as many in
    each window as in those that were gone through.
    """
    wanted = out.shape[1]
    fail = np.zeros((len(index.unkeyed_at) + 63) // 64, np.uint64)
    most = 2 * len(index.line_base)
    atoms, masks = np.empty(most, np.int32), np.empty(most, np.uint64)
    lines = np.empty(most, np.uint8)
    clusters = np.empty((max(256, most), 2), np.int32)
    bits = np.zeros((longest + 63) // 64, np.uint64)
    found = np.empty(wanted + longest, np.int64)
    matches = 0
    for e in range(len(out)):
        if len(fail):
            spoil(index, events, e, fail)
        reached = find_clusters(index, events, e, atoms, masks, lines, clusters)
        while reached < 0:
            clusters = np.empty((2 * len(clusters), 2), np.int32)
            reached = find_clusters(index, events, e, atoms, masks, lines, clusters)
        count, _, walked = next_matches(
            index, events, e, 0, clusters, reached, fail, 0, removed, wanted, window, bits, found
        )
        counts[e] = min(count, wanted)
        for i in range(counts[e]):
            out[e, i] = found[i]
        matches += count * len(removed) // max(1, walked)
    return matches
