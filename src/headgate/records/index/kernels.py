"""Hot loops of matching: arrays in, arrays out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.bits import EACH, eight_bytes, lowest, place_of, zero_bytes
from headgate.core.jit import bare, bare_inner, kernel
from headgate.records.index.arrays import pair_hash, pair_slot
from headgate.records.index.checking import led_checks, scalar_checks, tree_holds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.records.index.arrays import Events, RecordArrays


@bare
def find_clusters(
    index: RecordArrays,
    events: Events,
    e: int,
    atoms: NDArray[np.int32],
    masks: NDArray[np.uint64],
    lines: NDArray[np.uint8],
    clusters: NDArray[np.int32],
) -> int:
    """List the clusters that an event leads to: clusters[i] = (first word, end).

    Returns how many, or -1 if there is no room for them. Atoms with partners are collected first; then every
    two of them whose lines fit are looked up.
    """
    found = 0
    partners = 0
    lines_count = len(index.line_base) - 1
    single_start, line_base, pair_mask = index.single_start, index.line_base, index.pair_mask
    level_base, quantile, codes = index.level_base, index.quantile, events.codes
    for line in range(lines_count):
        if index.line_multi[line]:
            for i in range(events.multi_start[line, e], events.multi_start[line, e + 1]):
                atom = index.line_base[line] + events.multi_codes[i]
                if single_start[atom] < single_start[atom + 1]:
                    if found == len(clusters):
                        return -1
                    clusters[found, 0], clusters[found, 1] = single_start[atom], single_start[atom + 1]
                    found += 1
            continue
        code = codes[e, line]
        if code == 0:
            continue
        exact = line_base[line] + code
        for k in range(2):
            atom = exact
            if k:
                if level_base[line] < 0:
                    break
                atom = level_base[line] + np.int64(quantile[exact])
            if single_start[atom] < single_start[atom + 1]:
                if found == len(clusters):
                    return -1
                clusters[found, 0], clusters[found, 1] = single_start[atom], single_start[atom + 1]
                found += 1
            if pair_mask[atom]:
                atoms[partners] = atom
                masks[partners] = pair_mask[atom]
                lines[partners] = (line + k * lines_count) & 63
                partners += 1
    return _find_pairs(
        index.slot_print, index.slot_at, index.stream, atoms, masks, lines, partners, clusters, found
    )


@bare_inner
def _find_pairs(
    slot_print: NDArray[np.uint8],
    slot_at: NDArray[np.int32],
    stream: NDArray[np.int32],
    atoms: NDArray[np.int32],
    masks: NDArray[np.uint64],
    lines: NDArray[np.uint8],
    partners: int,
    clusters: NDArray[np.int32],
    found: int,
) -> int:
    """Look up every two atoms whose lines fit. In passes, so that their misses of the cache overlap:

    all fingerprints first, then where the fitting ones point to, then whether they are the pair.
    """
    slots = len(slot_print)
    room = len(clusters)
    begin = found
    for i in range(partners):
        # Fitting atoms are listed from `rest` on, and one place more: those that do not fit are written too.
        rest = room - i - 1
        if found + i > rest:
            return -1
        mask = masks[i]
        line = np.uint64(lines[i])
        last = rest
        for j in range(i):
            clusters[last, 0] = j
            last += int((mask >> np.uint64(lines[j])) & (masks[j] >> line) & np.uint64(1))
        for c in range(rest, last):
            j = clusters[c, 0]
            code = pair_hash(min(atoms[i], atoms[j]), max(atoms[i], atoms[j]))
            slot = pair_slot(code, slots)
            fingerprint = (code & np.uint64(0xFF)) | np.uint64(1)
            same, free = np.uint64(0), np.uint64(0)
            if slot + 8 <= slots:
                prints = eight_bytes(slot_print, int(slot))
                free = zero_bytes(prints)
                same = zero_bytes(prints ^ (fingerprint * EACH)) & (lowest(free) - np.uint64(1))
            if free and not same & (same - np.uint64(1)):
                clusters[found, 0] = slot + (place_of(lowest(same)) >> 3)
                clusters[found, 1] = (i << 16) | j
                found += int(same != 0)
                continue
            while slot_print[slot]:
                if slot_print[slot] == fingerprint:
                    if found + last - c > rest:
                        return -1
                    clusters[found, 0] = slot
                    clusters[found, 1] = (i << 16) | j
                    found += 1
                slot = np.int64(slot + 1 if slot + 1 < slots else 0)
    for c in range(begin, found):
        clusters[c, 0] = slot_at[clusters[c, 0]]
    kept = begin
    for c in range(begin, found):
        at = clusters[c, 0]
        i, j = clusters[c, 1] >> 16, clusters[c, 1] & 0xFFFF
        if stream[at] == min(atoms[i], atoms[j]) and stream[at + 1] == max(atoms[i], atoms[j]):
            clusters[kept, 0], clusters[kept, 1] = at + 3, at + 3 + stream[at + 2]
            kept += 1
    return kept


@bare
def spoil(index: RecordArrays, events: Events, e: int, fail: NDArray[np.uint64]) -> None:
    """Mark the unkeyed entries that the event's values rule out, one bit each."""
    for w in range(len(fail)):
        fail[w] = 0
    codes, line_base, spoil_row = events.codes, index.line_base, index.spoil_row
    spoil_bits, spoil_start, spoiled = index.spoil_bits, index.spoil_start, index.spoiled
    for line in range(len(line_base) - 1):
        if index.line_multi[line]:
            continue
        atom = line_base[line] + codes[e, line]
        row = spoil_row[atom]
        if row >= 0:
            for w in range(len(fail)):
                fail[w] |= spoil_bits[row, w]
        for i in range(spoil_start[atom], spoil_start[atom + 1]):
            m = spoiled[i]
            fail[m >> 6] |= np.uint64(1) << np.uint64(m & 63)


@bare
def look_at_buckets(
    index: RecordArrays, events: Events, e: int, fail: NDArray[np.uint64], doubt: NDArray[np.uint64]
) -> None:
    """Mark the unkeyed entries that the event's buckets rule out, and those that must be checked."""
    for w in range(len(doubt)):
        doubt[w] = index.unkeyed_open[w]
    codes, line_base, level_base = events.codes, index.line_base, index.level_base
    bucket_row, bucket_out, bucket_open = index.bucket_row, index.bucket_out, index.bucket_open
    behind = line_base[len(line_base) - 1]
    for line in range(len(line_base) - 1):
        code = codes[e, line]
        if level_base[line] < 0 or code == 0:
            continue
        row = bucket_row[level_base[line] + np.int64(index.quantile[line_base[line] + code]) - behind]
        if row >= 0:
            for w in range(len(fail)):
                fail[w] |= bucket_out[row, w]
                doubt[w] |= bucket_open[row, w]


@bare
def run_unkeyed(
    index: RecordArrays,
    events: Events,
    e: int,
    fail: NDArray[np.uint64],
    doubt: NDArray[np.uint64],
    seen: NDArray[np.int32],
    stamp: int,
    removed: NDArray[np.uint8],
    out: NDArray[np.int32],
    n: int,
) -> int:
    """Add the filters of unkeyed entries that hold to out[n:]; returns the new n, -1 if out is too short.

    Most that are not ruled out hold, and are not looked at any further.
    """
    spoil(index, events, e, fail)
    look_at_buckets(index, events, e, fail, doubt)
    stream, codes = index.stream, events.codes
    places, words, heads = index.unkeyed_at, index.unkeyed_words, index.unkeyed_head
    count = len(places)
    if count & 63:
        fail[len(fail) - 1] |= ~np.uint64(0) << np.uint64(count & 63)
    for w in range(len(fail)):
        some = ~fail[w]
        unsure = doubt[w]
        while some:
            bit = lowest(some)
            some ^= bit
            m = 64 * w + place_of(bit)
            head = heads[m]
            number = head >> 3
            if (head & 1 and seen[number] == stamp) or removed[number]:
                continue
            if unsure & bit and words[m]:
                at = places[m]
                end = at + 2 + words[m]
                if head & 4:
                    if not tree_holds(index, events, e, at + 2):
                        continue
                else:
                    pc = scalar_checks(stream, codes, e, at + 2, end)
                    if pc != end and (pc < 0 or not led_checks(index, events, e, pc, end)):
                        continue
            if n >= len(out):
                return -1
            out[n] = number
            n += 1
            if head & 1:
                seen[number] = stamp
    return n


@bare
def run_clusters(
    index: RecordArrays,
    events: Events,
    e: int,
    clusters: NDArray[np.int32],
    found: int,
    seen: NDArray[np.int32],
    stamp: int,
    removed: NDArray[np.uint8],
    out: NDArray[np.int32],
    n: int,
) -> int:
    """Add the filters of clusters that hold to out[n:]; returns the new n, -1 if out is too short."""
    stream, codes = index.stream, events.codes
    for c in range(found):
        at, last = clusters[c, 0], clusters[c, 1]
        while at < last:
            head = stream[at]
            place = at
            step = 2
            if head & 2:
                place = stream[at + 1]
            else:
                step = 2 + stream[at + 1]
            at += step
            number = head >> 3
            if head & 1 and seen[number] == stamp:
                continue
            end_word = place + 2 + stream[place + 1]
            pc = place + 2
            if stream[place] & 4:
                if not tree_holds(index, events, e, pc):
                    continue
            else:
                pc = scalar_checks(stream, codes, e, pc, end_word)
                if pc != end_word and (pc < 0 or not led_checks(index, events, e, pc, end_word)):
                    continue
            if removed[number]:
                continue
            if n >= len(out):
                return -1
            out[n] = number
            n += 1
            if head & 1:
                seen[number] = stamp
    return n


@bare
def sort_by_bits(
    out: NDArray[np.int32], first: int, last: int, bits: NDArray[np.uint64], words: NDArray[np.uint64]
) -> None:
    """Sort distinct numbers: set a bit for each, and one for its word, and read them off.

    All bits are zero before and after.
    """
    for i in range(first, last):
        w = out[i] >> 6
        bits[w] |= np.uint64(1) << np.uint64(out[i] & 63)
        words[w >> 6] |= np.uint64(1) << np.uint64(w & 63)
    n = first
    for v in range(len(words)):
        some = words[v]
        words[v] = 0
        while some:
            lone = lowest(some)
            some ^= lone
            w = 64 * v + place_of(lone)
            word = bits[w]
            bits[w] = 0
            while word:
                bit = lowest(word)
                word ^= bit
                out[n] = 64 * w + place_of(bit)
                n += 1


@bare
def merge_behind(
    out: NDArray[np.int32], first: int, middle: int, last: int, aside: NDArray[np.int32]
) -> None:
    """Merge out[middle:last] into out[first:middle], both rising; `aside` has room for the former.

    From the end on: what stays in front is not touched.
    """
    count = last - middle
    for i in range(count):
        aside[i] = out[middle + i]
    i, j, n = middle - 1, count - 1, last - 1
    while j >= 0:
        if i >= first and out[i] > aside[j]:
            out[n] = out[i]
            i -= 1
        else:
            out[n] = aside[j]
            j -= 1
        n -= 1


@kernel
def match_events(
    index: RecordArrays,
    events: Events,
    begin: int,
    end: int,
    seen: NDArray[np.int32],
    stamp: int,
    removed: NDArray[np.uint8],
    out: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> int:
    """Match events begin to end; the filters of each follow those of the one before in `out`, rising.

    Returns the event that did not fit into `out` any more, or end. Event e uses the stamp `stamp + e`.
    """
    most = 2 * len(index.line_base)
    atoms = np.empty(most, np.int32)
    masks = np.empty(most, np.uint64)
    lines = np.empty(most, np.uint8)
    clusters = np.empty((max(256, most), 2), np.int32)
    fail = np.zeros((len(index.unkeyed_at) + 63) // 64, np.uint64)
    bits = np.zeros((len(removed) + 63) // 64, np.uint64)
    words = np.zeros((len(bits) + 63) // 64, np.uint64)
    doubt = np.zeros(len(fail), np.uint64)
    aside = np.empty(0, np.int32)
    n = 0
    for e in range(begin, end):
        before = n
        if len(fail):
            n = run_unkeyed(index, events, e, fail, doubt, seen, stamp + e, removed, out, n)
            if n < 0:
                return e
        unkeyed = n
        found = find_clusters(index, events, e, atoms, masks, lines, clusters)
        while found < 0:
            clusters = np.empty((2 * len(clusters), 2), np.int32)
            found = find_clusters(index, events, e, atoms, masks, lines, clusters)
        n = run_clusters(index, events, e, clusters, found, seen, stamp + e, removed, out, n)
        if n < 0:
            return e
        counts[e] = n - before
        # Unkeyed entries are in the order of their filters.
        sort_by_bits(out, unkeyed, n, bits, words)
        if before < unkeyed < n:
            if len(aside) < n - unkeyed:
                aside = np.empty(2 * (n - unkeyed), np.int32)
            merge_behind(out, before, unkeyed, n, aside)
    return end
