"""Loops that lay filters out in arrays, and read them back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.hashing import hash_bytes, hash_edge
from headgate.core.jit import inner, kernel
from headgate.rdf.index.arrays import (
    AMONG,
    BY_HITS,
    BY_OBJECT,
    BY_SUBJECT,
    CONSTANT,
    END,
    KIND,
    OPAQUE,
    PAIR,
    RANGE,
    SELF,
    SETS,
    SUFFIX,
    TEXT,
    VARIABLE,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.rdf.index.arrays import Checks

    Ints = NDArray[np.int32]


@inner
def size_of(words: NDArray[np.int32], at: int) -> int:
    """Count the words of a check."""
    kind = words[at]
    if kind in (AMONG, OPAQUE):
        return 3 + int(words[at + 2])
    if kind == PAIR:
        return 5
    if kind in (KIND, SUFFIX):
        return 3
    if kind == TEXT:
        return 4
    return 5 if kind == RANGE else 1


@kernel
def recode(
    words: NDArray[np.int32],
    terms: NDArray[np.int32],
    texts: NDArray[np.int32],
    expressions: NDArray[np.int32],
) -> None:
    """Give what checks name other places, where they stand."""
    at = 0
    while at < len(words):
        kind = words[at]
        size = size_of(words, at)
        if kind == TEXT:
            words[at + 3] = texts[words[at + 3]]
        elif kind == OPAQUE:
            words[at + 1] = expressions[words[at + 1]]
        elif kind == PAIR:
            words[at + 4] = expressions[words[at + 4]]
        elif kind == SUFFIX:
            words[at + 2] = terms[words[at + 2]]
        elif kind == AMONG:
            for i in range(at + 3, at + size):
                words[i] = terms[words[i]]
            for i in range(at + 4, at + size):
                code = words[i]
                j = i - 1
                while j >= at + 3 and words[j] > code:
                    words[j + 1] = words[j]
                    j -= 1
                words[j + 1] = code
        at += size


@kernel
def mark_used(
    words: NDArray[np.int32],
    terms: NDArray[np.bool_],
    texts: NDArray[np.bool_],
    expressions: NDArray[np.bool_],
) -> None:
    """Mark what checks name."""
    at = 0
    while at < len(words):
        kind = words[at]
        size = size_of(words, at)
        if kind == TEXT:
            texts[words[at + 3]] = True
        elif kind == OPAQUE:
            expressions[words[at + 1]] = True
        elif kind == PAIR:
            expressions[words[at + 4]] = True
        elif kind == SUFFIX:
            terms[words[at + 2]] = True
        elif kind == AMONG:
            for i in range(at + 3, at + size):
                terms[words[i]] = True
        at += size


@kernel
def rename_slots(
    word_start: NDArray[np.int64],
    words: NDArray[np.int32],
    slot_of: NDArray[np.int8],
    used: NDArray[np.uint64],
) -> None:
    """Rename the slots that checks look at, and note them in `used`, a bit each."""
    for f in range(len(word_start) - 1):
        at = word_start[f]
        while at < word_start[f + 1]:
            first, last = at + 1, at + 2
            if words[at] == OPAQUE:
                first, last = at + 3, at + 3 + words[at + 2]
            elif words[at] == PAIR:
                last = at + 3
            for i in range(first, last):
                slot = slot_of[f, words[i]]
                words[i] = slot
                used[f] |= np.uint64(1) << np.uint64(slot)
            at += size_of(words, at)


@inner
def edge_key(s: int, p: int, o: int) -> tuple[int, int, int]:
    """Tell what an edge is called in the table."""
    if s < 0 and s == o:
        return SELF, max(p, VARIABLE), SELF
    return max(s, VARIABLE), max(p, VARIABLE), max(o, VARIABLE)


@kernel
def number_edges(edges: NDArray[np.int32], table: NDArray[np.int32], number: NDArray[np.int32]) -> int:
    """Give equal edges one number each; returns how many there are."""
    mask = np.uint64(len(table) - 1)
    where = np.empty(len(edges), np.int32)
    count = 0
    for i in range(len(edges)):
        s, p, o = edge_key(edges[i, 0], edges[i, 1], edges[i, 2])
        at = hash_edge(s, p, o) & mask
        while True:
            e = table[at]
            if e < 0:
                table[at] = count
                where[count] = i
                number[i] = count
                count += 1
                break
            j = where[e]
            a, b, c = edge_key(edges[j, 0], edges[j, 1], edges[j, 2])
            if a == s and b == p and c == o:
                number[i] = e
                break
            at = (at + np.uint64(1)) & mask
    return count


@kernel
def fill_edges(
    edges: NDArray[np.int32], number: NDArray[np.int32], s: Ints, p: Ints, o: Ints, masks: NDArray[np.int64]
) -> None:
    """Write the constants of distinct edges, and which combinations of them there are."""
    for i in range(len(edges)):
        e = number[i]
        s[e], p[e], o[e] = edge_key(edges[i, 0], edges[i, 1], edges[i, 2])
        if s[e] == SELF:
            masks[0] |= 256
        else:
            masks[0] |= 1 << (4 * (s[e] >= 0) + 2 * (p[e] >= 0) + (o[e] >= 0))


@kernel
def place_edges(s: Ints, p: Ints, o: Ints, first: int, last: int, table: NDArray[np.int32]) -> None:
    """Put edges into a table."""
    mask = np.uint64(len(table) - 1)
    for e in range(first, last):
        at = hash_edge(s[e], p[e], o[e]) & mask
        while table[at] >= 0:
            at = (at + np.uint64(1)) & mask
        table[at] = e


@kernel
def place_terms(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], first: int, last: int, table: NDArray[np.int32]
) -> None:
    """Put terms into a table."""
    mask = np.uint64(len(table) - 1)
    for code in range(first, last):
        at = hash_bytes(data, offsets[code], offsets[code + 1]) & mask
        while table[at] >= 0:
            at = (at + np.uint64(1)) & mask
        table[at] = code


@kernel
def order_steps(
    start: NDArray[np.int32],
    edges: NDArray[np.int32],
    number: NDArray[np.int32],
    cost: NDArray[np.float32],
    used: NDArray[np.uint64],
    step_edge: NDArray[np.int32],
    step_code: NDArray[np.int8],
    back: NDArray[np.int8],
) -> None:
    """Find the order of the join for each pattern: the cheapest edge, then what it leads to.

    An edge with all ends known comes before one with a new variable, and that before one that nothing leads
    to.
    """
    for pattern in range(len(start) - 1):
        begin, size = start[pattern], start[pattern + 1] - start[pattern]
        bound = np.uint64(0)
        done = np.zeros(size, np.bool_)
        back[pattern] = -1
        for step in range(size):
            best, worth = -1, np.inf
            for i in range(size):
                if done[i]:
                    continue
                here = np.float64(cost[number[begin + i]])
                if step > 0:
                    loose, tied = 0, False
                    for side in range(3):
                        term = edges[begin + i, side]
                        if term < 0:
                            if bound >> np.uint64(-1 - term) & np.uint64(1):
                                tied = tied or side != 1
                            else:
                                loose += 1
                    if loose and not tied:
                        here += 3e9
                    elif loose:
                        here += 1e9 * (loose + (edges[begin + i, 1] < 0))
                if here < worth:
                    best, worth = i, here
            done[best] = True
            at = begin + step
            step_edge[at] = number[begin + best]
            mode = BY_HITS
            s, o = edges[begin + best, 0], edges[begin + best, 2]
            if step > 0:
                if s < 0 and bound >> np.uint64(-1 - s) & np.uint64(1):
                    mode = BY_SUBJECT
                elif o < 0 and bound >> np.uint64(-1 - o) & np.uint64(1):
                    mode = BY_OBJECT
            for side in range(3):
                term = edges[begin + best, side]
                if term >= 0:
                    step_code[at, side] = CONSTANT
                    continue
                bit = np.uint64(1) << np.uint64(-1 - term)
                if bound & bit:
                    step_code[at, side] = -1 - term
                else:
                    step_code[at, side] = (-1 - term) | SETS
                    bound |= bit
                    if used[pattern] & bit:
                        back[pattern] = step
            step_code[at, 3] = mode


@kernel
def lay_checks(
    entry: NDArray[np.int64],
    range_start: NDArray[np.int64],
    ranges: NDArray[np.int8],
    end_at: NDArray[np.int64],
    word_start: NDArray[np.int64],
    words: NDArray[np.int32],
    out: NDArray[np.int32],
    checks: NDArray[np.int32],
) -> int:
    """Write the checks of entries one behind another, from the second word on; returns where they end.

    `end_at` is where the ends of a range stand, -1 for one that a group looks at.
    """
    at = 1
    for n in range(len(entry)):
        f = entry[n]
        first = at
        for r in range(range_start[f], range_start[f + 1]):
            if end_at[r] < 0:
                continue
            out[at], out[at + 1], out[at + 2] = RANGE, ranges[r, 0], ranges[r, 1]
            out[at + 3], out[at + 4] = end_at[r], ranges[r, 2]
            at += 5
        for i in range(word_start[f], word_start[f + 1]):
            out[at] = words[i]
            at += 1
        if at == first:
            checks[n] = 0
        else:
            checks[n] = first
            out[at] = END
            at += 1
    return at


@kernel
def count_read(
    checks: Checks, entry_checks: NDArray[np.int32], sizes: NDArray[np.int64], ranges: NDArray[np.int64]
) -> None:
    """Count the words and the ranges that entries have."""
    words = checks.words
    for n in range(len(entry_checks)):
        at = entry_checks[n]
        if at == 0:
            continue
        while words[at] != END:
            size = size_of(words, at)
            if words[at] == RANGE:
                ranges[n] += 1
            else:
                sizes[n] += size
            at += size


@kernel
def read_checks(
    checks: Checks,
    entry_checks: NDArray[np.int32],
    word_start: NDArray[np.int64],
    out: NDArray[np.int32],
    range_start: NDArray[np.int64],
    ranges: NDArray[np.int8],
    ends: NDArray[np.float64],
) -> None:
    """Read the checks of entries back into columns; a range already there stays the first of its filter."""
    words = checks.words
    for n in range(len(entry_checks)):
        at = entry_checks[n]
        if at == 0:
            continue
        to, r = word_start[n], range_start[n + 1]
        while words[at] != END:
            size = size_of(words, at)
            if words[at] == RANGE:
                r -= 1
                ranges[r, 0], ranges[r, 1], ranges[r, 2] = words[at + 1], words[at + 2], words[at + 4]
                ends[r, 0], ends[r, 1] = checks.ends[words[at + 3]], checks.ends[words[at + 3] + 1]
            else:
                for i in range(size):
                    out[to + i] = words[at + i]
                to += size
            at += size


@kernel
def has_check(words: NDArray[np.int32], kind: int) -> bool:
    """Tell whether there is a check of a kind; the first word belongs to none."""
    at = 1
    while at < len(words):
        if words[at] == kind:
            return True
        at += size_of(words, at)
    return False


@kernel
def slots_of(words: NDArray[np.int32], at: int) -> NDArray[np.int32]:
    """List the slots that a check looks at."""
    if words[at] == OPAQUE:
        return words[at + 3 : at + 3 + words[at + 2]].copy()
    if words[at] == PAIR:
        return words[at + 1 : at + 3].copy()
    return words[at + 1 : at + 2].copy()
