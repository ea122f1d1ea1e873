"""Hot loops of matching: arrays in, arrays out."""

from __future__ import annotations

from itertools import count as count_up
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.core.bits import EACH, eight_bytes, lowest, place_of, zero_bytes
from headgate.core.jit import bare, bare_inner, kernel
from headgate.core.jit.memory import matrix, prefetch, vector
from headgate.records.index.arrays import (
    DUPLICATE,
    FLAGS,
    HEAD_WORDS,
    IDLE,
    LENGTH,
    PAIR_LENGTH,
    PAIR_WORDS,
    PROBE_BUCKETS,
    PROBE_LINE,
    REFERENCE,
    REFERENCE_WORDS,
    WHERE,
    Desk,
    Events,
    RecordArrays,
    pair_hash,
    pair_slot,
)
from headgate.records.index.checking import checks_hold

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes, Ints, Ints32, Words

AHEAD = 8
"""Words of unkeyed entries between one whose checks are asked for and one that is checked."""
PARTNER_BITS = 16
"""Bits of the number of an atom among those of an event that have partners."""
NO_ROOM, MORE_CLUSTERS = -1, -2
"""Why an event was not matched: `out` is too short, or the list of clusters is."""


@bare
def find_buckets(index: RecordArrays, events: Events, e: int, buckets: Bytes) -> None:
    """Write down the bucket of an event's code on each line."""
    line_base, quantile, codes = index.line_base, index.quantile, events.codes
    for line in range(len(line_base) - 1):
        # The codes of an array are many, and nothing is asked about their buckets.
        buckets[line] = quantile[line_base[line] + (0 if index.line_multi[line] else codes[e, line])]


@bare_inner
def is_allowed(stream: Ints32, buckets: Bytes, at: int) -> bool:
    """Tell whether an event's buckets allow what the reference at a place leads to."""
    return bool((stream[at + PROBE_BUCKETS] >> np.int32(buckets[stream[at + PROBE_LINE]])) & 1)


@bare_inner
def behind_entry(stream: Ints32, at: int) -> int:
    """Return the place behind the entry at a place, in full or a reference."""
    return at + (REFERENCE_WORDS if stream[at] & REFERENCE else HEAD_WORDS + stream[at + LENGTH])


@kernel
def open_event(
    index: RecordArrays, events: Events, e: int, fail: Words, buckets: Bytes
) -> tuple[Ints32, int]:
    """Find what leads to filters for an event: gives its clusters and how many, writes the rest down."""
    if len(fail):
        spoil(index, events, e, fail)
    find_buckets(index, events, e, buckets)
    most = 2 * len(index.line_base)
    atoms, masks, lines = np.empty(most, np.int32), np.empty(most, np.uint64), np.empty(most, np.uint8)
    clusters = np.empty((max(256, most), 2), np.int32)
    count = find_clusters(index, events, e, atoms, masks, lines, clusters)
    while count < 0:
        clusters = np.empty((2 * len(clusters), 2), np.int32)
        count = find_clusters(index, events, e, atoms, masks, lines, clusters)
    return clusters, count


@bare
def find_clusters(
    index: RecordArrays, events: Events, e: int, atoms: Ints32, masks: Words, lines: Bytes, clusters: Ints32
) -> int:
    """List the clusters that an event leads to: clusters[i] = (first word, end).

    Returns how many, or -1 if there is no room for them. Atoms with partners are collected first; then every
    two of them whose lines fit are looked up.
    """
    count = 0
    partners = 0
    lines_count = len(index.line_base) - 1
    single_start, line_base, pair_mask = index.single_start, index.line_base, index.pair_mask
    level_base, quantile, codes = index.level_base, index.quantile, events.codes
    for line in range(lines_count):
        if level_base[line] == IDLE:
            continue
        if index.line_multi[line]:
            first, last = events.multi_start[line, e], events.multi_start[line, e + 1]
            count = _find_elements(
                single_start, index.stream, events.multi_codes, line_base[line], first, last, clusters, count
            )
            if count < 0:
                return -1
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
                if count == len(clusters):
                    return -1
                clusters[count, 0], clusters[count, 1] = single_start[atom], single_start[atom + 1]
                count += 1
            if pair_mask[atom]:
                atoms[partners] = atom
                masks[partners] = pair_mask[atom]
                lines[partners] = (line + k * lines_count) & 63
                partners += 1
    return _find_pairs(
        index.slot_print, index.slot_at, index.stream, atoms, masks, lines, partners, clusters, count
    )


@bare
def _find_elements(
    single_start: Ints32,
    stream: Ints32,
    codes: Ints32,
    base: int,
    first: int,
    last: int,
    clusters: Ints32,
    count: int,
) -> int:
    """Add the clusters of some codes of one line; returns how many there are, or -1 if there is no room.

    A text has hundreds of words, and what they lead to is far apart: it is asked for ahead of time.
    """
    for i in range(first, last):
        prefetch(single_start, base + codes[i])
    for i in range(first, last):
        atom = base + codes[i]
        if single_start[atom] < single_start[atom + 1]:
            if count == len(clusters):
                return -1
            clusters[count, 0], clusters[count, 1] = single_start[atom], single_start[atom + 1]
            prefetch(stream, single_start[atom])
            count += 1
    return count


@bare_inner
def _find_pairs(
    slot_print: Bytes,
    slot_at: Ints32,
    stream: Ints32,
    atoms: Ints32,
    masks: Words,
    lines: Bytes,
    partners: int,
    clusters: Ints32,
    count: int,
) -> int:
    """Look up every two atoms whose lines fit. In passes, so that their misses of the cache overlap:

    all fingerprints first, then where the fitting ones point to, then whether they are the pair.
    """
    slots = len(slot_print)
    most = len(clusters)
    begin = count
    for i in range(partners):
        # Fitting atoms are listed from `rest` on, and one place more: those that do not fit are written too.
        rest = most - i - 1
        if count + i > rest:
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
                clusters[count, 0] = slot + (place_of(lowest(same)) >> 3)
                clusters[count, 1] = (i << PARTNER_BITS) | j
                count += int(same != 0)
                continue
            while slot_print[slot]:
                if slot_print[slot] == fingerprint:
                    if count + last - c > rest:
                        return -1
                    clusters[count, 0] = slot
                    clusters[count, 1] = (i << PARTNER_BITS) | j
                    count += 1
                slot = np.int64(slot + 1 if slot + 1 < slots else 0)
    for c in range(begin, count):
        at = slot_at[clusters[c, 0]]
        clusters[c, 0] = at
        prefetch(stream, at)
    kept = begin
    for c in range(begin, count):
        at = clusters[c, 0]
        i, j = clusters[c, 1] >> PARTNER_BITS, clusters[c, 1] & ((1 << PARTNER_BITS) - 1)
        if stream[at] == min(atoms[i], atoms[j]) and stream[at + 1] == max(atoms[i], atoms[j]):
            clusters[kept, 0] = at + PAIR_WORDS
            clusters[kept, 1] = at + PAIR_WORDS + stream[at + PAIR_LENGTH]
            kept += 1
    return kept


@bare
def fetch_clusters(stream: Ints32, clusters: Ints32, count: int) -> None:
    """Ask for the words of clusters behind those that were looked at, a line of the cache at a time.

    Not for all of a long one: what is read in a row is fetched ahead by the machine.
    """
    for c in range(count):
        last = clusters[c, 1]
        at = clusters[c, 0] + 13
        end = min(last, at + 64)
        while at < end:
            prefetch(stream, at)
            at += 16


@bare
def spoil(index: RecordArrays, events: Events, e: int, fail: Words) -> None:
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
def look_at_buckets(index: RecordArrays, events: Events, e: int, fail: Words, doubt: Words) -> None:
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
def _fetch_open(stream: Ints32, places: Ints32, some: np.uint64, first: int) -> None:
    """Ask for the checks of some unkeyed entries, a bit each from one on."""
    while some:
        bit = lowest(some)
        some ^= bit
        prefetch(stream, places[first + place_of(bit)] + HEAD_WORDS)


@bare
def run_unkeyed(
    index: RecordArrays,
    events: Events,
    e: int,
    fail: Words,
    doubt: Words,
    seen: Ints32,
    stamp: int,
    removed: Bytes,
    out: Ints32,
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
        if w + AHEAD < len(fail):
            _fetch_open(stream, places, ~fail[w + AHEAD] & doubt[w + AHEAD], 64 * (w + AHEAD))
        some = ~fail[w]
        unsure = doubt[w]
        while some:
            bit = lowest(some)
            some ^= bit
            m = 64 * w + place_of(bit)
            head = heads[m]
            number = head >> FLAGS
            if (head & DUPLICATE and seen[number] == stamp) or removed[number]:
                continue
            if unsure & bit:
                at = places[m] + HEAD_WORDS
                if not checks_hold(index, events, stream, codes, e, head, at, at + words[m]):
                    continue
            if n >= len(out):
                return -1
            out[n] = number
            n += 1
            if head & DUPLICATE:
                seen[number] = stamp
    return n


@bare_inner
def _add_entry(
    index: RecordArrays,
    events: Events,
    e: int,
    at: int,
    seen: Ints32,
    stamp: int,
    removed: Bytes,
    out: Ints32,
    n: int,
) -> int:
    """Add the filter of an entry to out[n:] if it holds; returns the new n, even if out is too short."""
    stream = index.stream
    head, pc = stream[at], at + HEAD_WORDS
    number = head >> FLAGS
    if head & DUPLICATE and seen[number] == stamp:
        return n
    if not checks_hold(index, events, stream, events.codes, e, head, pc, pc + stream[at + LENGTH]):
        return n
    if removed[number]:
        return n
    if n < len(out):
        out[n] = number
    if head & DUPLICATE:
        seen[number] = stamp
    return n + 1


@bare
def run_clusters(
    index: RecordArrays,
    events: Events,
    e: int,
    buckets: Bytes,
    clusters: Ints32,
    count: int,
    late: Ints32,
    seen: Ints32,
    stamp: int,
    removed: Bytes,
    out: Ints32,
    n: int,
) -> int:
    """Add the filters of clusters that hold to out[n:]; returns the new n, -1 if out is too short.

    What references lead to is far away. Those that the event's buckets allow wait in `late`, while it is
    fetched.
    """
    stream = index.stream
    c, at, last = -1, 0, 0
    while True:
        kept = 0
        while kept < len(late):
            if at >= last:
                c += 1
                if c >= count:
                    break
                at, last = clusters[c, 0], clusters[c, 1]
                continue
            here = at
            at = behind_entry(stream, at)
            if not stream[here] & REFERENCE:
                n = _add_entry(index, events, e, here, seen, stamp, removed, out, n)
            elif is_allowed(stream, buckets, here):
                late[kept] = stream[here + WHERE]
                kept += 1
                prefetch(stream, stream[here + WHERE])
        for i in range(kept):
            n = _add_entry(index, events, e, late[i], seen, stamp, removed, out, n)
        if c >= count:
            return n if n <= len(out) else -1


@bare
def sort_by_bits(out: Ints32, first: int, last: int, bits: Words, words: Words) -> None:
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
def merge_behind(out: Ints32, first: int, middle: int, last: int) -> None:
    """Merge out[middle:last] into out[first:middle], both rising; behind `last` is room for the former.

    From the end on: what stays in front is not touched.
    """
    count = last - middle
    for i in range(count):
        out[last + i] = out[middle + i]
    i, j, n = middle - 1, last + count - 1, last - 1
    while j >= last:
        if i >= first and out[i] > out[j]:
            out[n] = out[i]
            i -= 1
        else:
            out[n] = out[j]
            j -= 1
        n -= 1


@bare
def match_event(
    index: RecordArrays,
    events: Events,
    e: int,
    desk: Desk,
    seen: Ints32,
    stamp: int,
    removed: Bytes,
    out: Ints32,
    n: int,
) -> int:
    """Add the filters that hold for an event to out[n:], rising.

    Returns the new n, NO_ROOM if out is too short, or MORE_CLUSTERS if those of the desk are too few.
    """
    before = n
    fail, doubt, clusters = desk.fail, desk.doubt, desk.clusters
    if len(fail):
        n = run_unkeyed(index, events, e, fail, doubt, seen, stamp, removed, out, n)
        if n < 0:
            return NO_ROOM
    unkeyed = n
    count = find_clusters(index, events, e, desk.atoms, desk.masks, desk.lines, clusters)
    if count < 0:
        return MORE_CLUSTERS
    fetch_clusters(index.stream, clusters, count)
    find_buckets(index, events, e, desk.buckets)
    n = run_clusters(index, events, e, desk.buckets, clusters, count, desk.late, seen, stamp, removed, out, n)
    if n < 0:
        return NO_ROOM
    # Unkeyed entries are in the order of their filters.
    sort_by_bits(out, unkeyed, n, desk.bits, desk.words)
    if before < unkeyed < n:
        if 2 * n - unkeyed > len(out):
            return NO_ROOM
        merge_behind(out, before, unkeyed, n)
    return n


@kernel
def match_events(
    index: RecordArrays,
    events: Events,
    begin: int,
    end: int,
    desk: Desk,
    seen: Ints32,
    stamp: int,
    removed: Bytes,
    out: Ints32,
    counts: Ints,
) -> tuple[int, bool]:
    """Match events begin to end; the filters of each follow those of the one before in `out`, rising.

    Returns the event that did not fit into `out` any more, or end; and whether the desk needs more clusters
    to go on. Event e uses the stamp `stamp + e`.
    """
    n = 0
    for e in range(begin, end):
        after = match_event(index, events, e, desk, seen, stamp + e, removed, out, n)
        if after < 0:
            return e, after == MORE_CLUSTERS
        counts[e] = after - n
        n = after
    return end, False


_PLACES = count_up()
_INDEX: Any = RecordArrays._make(islice(_PLACES, len(RecordArrays._fields)))
_EVENT: Any = Events._make(islice(_PLACES, len(Events._fields)))
_DESK: Any = Desk._make(islice(_PLACES, len(Desk._fields)))
_SEEN, _OUT, _REMOVED = islice(_PLACES, 3)
"""Where the arrays stand in the tables that `MatcherScratch` lays out."""


@kernel
def match_one(tables: Ints, stamps: Ints, counts: Ints) -> int:
    """Match one event by each of some indexes, whose tables `MatcherScratch` lays out.

    counts[k] becomes what `match_event` says of index k; after one that failed, none is asked. Returns that
    of the last that was asked.
    """
    for k in range(len(counts)):
        table = vector(tables, k, np.int64)
        index = RecordArrays(
            line_base=vector(table, _INDEX.line_base, np.int32),
            line_multi=vector(table, _INDEX.line_multi, np.uint8),
            level_base=vector(table, _INDEX.level_base, np.int32),
            quantile=vector(table, _INDEX.quantile, np.uint8),
            single_start=vector(table, _INDEX.single_start, np.int32),
            pair_mask=vector(table, _INDEX.pair_mask, np.uint64),
            slot_print=vector(table, _INDEX.slot_print, np.uint8),
            slot_at=vector(table, _INDEX.slot_at, np.int32),
            stream=vector(table, _INDEX.stream, np.int32),
            marks=vector(table, _INDEX.marks, np.int64),
            spoil_start=vector(table, _INDEX.spoil_start, np.int32),
            spoiled=vector(table, _INDEX.spoiled, np.int32),
            spoil_row=vector(table, _INDEX.spoil_row, np.int32),
            spoil_bits=matrix(table, _INDEX.spoil_bits, np.uint64),
            unkeyed_at=vector(table, _INDEX.unkeyed_at, np.int32),
            unkeyed_words=vector(table, _INDEX.unkeyed_words, np.int32),
            unkeyed_head=vector(table, _INDEX.unkeyed_head, np.int32),
            unkeyed_open=vector(table, _INDEX.unkeyed_open, np.uint64),
            bucket_row=vector(table, _INDEX.bucket_row, np.int32),
            bucket_out=matrix(table, _INDEX.bucket_out, np.uint64),
            bucket_open=matrix(table, _INDEX.bucket_open, np.uint64),
            glob_start=vector(table, _INDEX.glob_start, np.int64),
            glob_tokens=vector(table, _INDEX.glob_tokens, np.int16),
            glob_side=vector(table, _INDEX.glob_side, np.int32),
            glob_attribute=vector(table, _INDEX.glob_attribute, np.int32),
        )
        events = Events(
            codes=matrix(table, _EVENT.codes, np.int32),
            multi_start=matrix(table, _EVENT.multi_start, np.int64),
            multi_codes=vector(table, _EVENT.multi_codes, np.int32),
            text_of=matrix(table, _EVENT.text_of, np.int32),
            text_offsets=vector(table, _EVENT.text_offsets, np.int64),
            text_data=vector(table, _EVENT.text_data, np.uint8),
        )
        desk = Desk(
            atoms=vector(table, _DESK.atoms, np.int32),
            masks=vector(table, _DESK.masks, np.uint64),
            lines=vector(table, _DESK.lines, np.uint8),
            buckets=vector(table, _DESK.buckets, np.uint8),
            clusters=matrix(table, _DESK.clusters, np.int32),
            late=vector(table, _DESK.late, np.int32),
            fail=vector(table, _DESK.fail, np.uint64),
            doubt=vector(table, _DESK.doubt, np.uint64),
            bits=vector(table, _DESK.bits, np.uint64),
            words=vector(table, _DESK.words, np.uint64),
        )
        seen, out = vector(table, _SEEN, np.int32), vector(table, _OUT, np.int32)
        removed = vector(table, _REMOVED, np.uint8)
        counts[k] = match_event(index, events, 0, desk, seen, stamps[k], removed, out, 0)
        if counts[k] < 0:
            return int(counts[k])
    return int(counts[len(counts) - 1])
