"""Hot loops of `next`: the matches of one event in rising order, each found when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import kernel
from headgate.records.index.checking import led_checks, tree_holds
from headgate.records.index.kernels import find_clusters, spoil

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.records.index.arrays import Events, RecordArrays


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
                at += 2 if stream[at] & 2 else 2 + stream[at + 1]
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
            clusters[where, 0] += 2 if stream[place] & 2 else 2 + stream[place + 1]
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


@kernel
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
    out: NDArray[np.int64],
) -> tuple[int, int]:
    """Find the first filters from `at_least` on that hold, as many as there is room; returns how many."""
    count = 0
    while count < len(out):
        number, unkeyed = next_match(index, events, e, at_least, clusters, found, fail, unkeyed, removed)
        if number < 0:
            break
        out[count] = number
        count += 1
        at_least = number + 1
    return count, unkeyed
