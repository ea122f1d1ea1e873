"""Loops that lay filters out in arrays, and read them back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.hashing import hash_bytes, hash_edge
from headgate.core.jit import inner, kernel
from headgate.rdf.index.arrays import (
    AMONG,
    AT_COUNT,
    AT_EXPRESSION,
    AT_FLAGS,
    AT_LINE,
    AT_OTHER,
    AT_PAIR_EXPRESSION,
    AT_RANGE_ENDS,
    AT_SLOT,
    AT_TEXT,
    AT_VALUE,
    BY_HITS,
    BY_OBJECT,
    BY_SUBJECT,
    CONSTANT,
    END,
    LOOPS,
    MODE,
    O_KNOWN,
    OPAQUE,
    P_KNOWN,
    PAIR,
    RANGE,
    S_KNOWN,
    SELF,
    SETS,
    SIZES,
    SUFFIX,
    TEXT,
    VARIABLE,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]


@inner
def size_of(words: NDArray[np.int32], at: int) -> int:
    """Count the words of a check."""
    kind = words[at]
    size = SIZES[kind]
    if kind in (AMONG, OPAQUE):
        size += int(words[at + AT_COUNT])
    return size


HEAD, SLOT_WORD, TERM_WORD, TEXT_WORD, EXPRESSION_WORD = range(1, 6)
"""What a word of checks is: the first of one, or one that names a slot, a term and so on; 0 for others."""


@kernel
def roles_of(words: NDArray[np.int32]) -> NDArray[np.int8]:
    """Tell what each word of some checks is."""
    roles = np.zeros(len(words), np.int8)
    at = 0
    while at < len(words):
        kind, size = words[at], size_of(words, at)
        roles[at] = HEAD
        if kind == OPAQUE:
            roles[at + AT_EXPRESSION] = EXPRESSION_WORD
            roles[at + SIZES[kind] : at + size] = SLOT_WORD
        elif kind != END:
            roles[at + AT_SLOT] = SLOT_WORD
        if kind == PAIR:
            roles[at + AT_OTHER], roles[at + AT_PAIR_EXPRESSION] = SLOT_WORD, EXPRESSION_WORD
        elif kind == TEXT:
            roles[at + AT_TEXT] = TEXT_WORD
        elif kind == SUFFIX:
            roles[at + AT_VALUE] = TERM_WORD
        elif kind == AMONG:
            roles[at + SIZES[kind] : at + size] = TERM_WORD
        at += size
    return roles


def recode(words: Ints, terms: Ints, texts: Ints, expressions: Ints) -> None:
    """Give what checks name other places, where they stand; those of one check rise again."""
    roles = roles_of(words)
    for role, places in ((TERM_WORD, terms), (TEXT_WORD, texts), (EXPRESSION_WORD, expressions)):
        words[roles == role] = places[words[roles == role]]
    at = np.flatnonzero(roles == TERM_WORD)
    check = np.cumsum(roles == HEAD)[at]
    words[at] = words[at][np.lexsort((words[at], check))]


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
            masks[0] |= LOOPS
        else:
            masks[0] |= 1 << (S_KNOWN * (s[e] >= 0) + P_KNOWN * (p[e] >= 0) + O_KNOWN * (o[e] >= 0))


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
            step_code[at, MODE] = mode


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
            out[at], out[at + AT_SLOT], out[at + AT_LINE] = RANGE, ranges[r, 0], ranges[r, 1]
            out[at + AT_RANGE_ENDS], out[at + AT_FLAGS] = end_at[r], ranges[r, 2]
            at += SIZES[RANGE]
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
