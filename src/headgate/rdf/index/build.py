"""Columns of filters to the arrays of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.columns import picked, starts_of
from headgate.core.hashing import mix
from headgate.core.jit import kernel
from headgate.rdf.index import laying
from headgate.rdf.index.arrays import (
    BLOCK,
    BY_HIGH,
    BY_LOW,
    O_KNOWN,
    P_KNOWN,
    S_KNOWN,
    SELF,
    SLOTS,
    Checks,
    Dictionary,
    Edges,
    Entries,
    Groups,
    Patterns,
    RdfArrays,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Floats64, Ints, Ints32, Words
    from headgate.core.interning import TextPool
    from headgate.rdf.index.columns import Columns


ROUNDS = 3


@kernel
def canonicalise(edge_start: Ints, edges: Ints32, slot_of: NDArray[np.int8], key: Words) -> None:
    """Reorder the edges of each filter and rename its slots; `slot_of[f, s]` becomes the new name of slot s.

    `key` becomes a hash of the edges: equal for equal patterns.
    """
    colour = np.zeros(SLOTS, np.uint64)
    fresh = np.zeros(SLOTS, np.uint64)
    rank = np.zeros(256, np.uint64)
    named = np.zeros((256, 3), np.int32)
    for f in range(len(edge_start) - 1):
        begin, size = edge_start[f], edge_start[f + 1] - edge_start[f]
        for slot in range(SLOTS):
            colour[slot] = np.uint64(1)
            slot_of[f, slot] = -1
        for turn in range(ROUNDS + 1):
            for slot in range(SLOTS):
                fresh[slot] = np.uint64(0)
            for i in range(size):
                s, p, o = edges[begin + i, 0], edges[begin + i, 1], edges[begin + i, 2]
                a = np.uint64(2 * s + 1) if s >= 0 else mix(colour[-1 - s], np.uint64(2))
                b = np.uint64(2 * p + 1) if p >= 0 else mix(colour[-1 - p], np.uint64(3))
                c = np.uint64(2 * o + 1) if o >= 0 else mix(colour[-1 - o], np.uint64(5))
                whole = mix(mix(mix(a, b), c), np.uint64((s == o) + 2 * (s == p) + 4 * (p == o)))
                rank[i] = whole
                if s < 0:
                    fresh[-1 - s] += mix(whole, np.uint64(7))
                if p < 0:
                    fresh[-1 - p] += mix(whole, np.uint64(11))
                if o < 0:
                    fresh[-1 - o] += mix(whole, np.uint64(13))
            if turn < ROUNDS:
                for slot in range(SLOTS):
                    colour[slot] = mix(colour[slot], fresh[slot])
        for i in range(size):
            named[i, 0], named[i, 1], named[i, 2] = (
                edges[begin + i, 0],
                edges[begin + i, 1],
                edges[begin + i, 2],
            )
        # Insertion: patterns are small.
        for i in range(1, size):
            whole = rank[i]
            s, p, o = named[i, 0], named[i, 1], named[i, 2]
            j = i - 1
            while j >= 0 and rank[j] > whole:
                rank[j + 1] = rank[j]
                named[j + 1, 0], named[j + 1, 1], named[j + 1, 2] = named[j, 0], named[j, 1], named[j, 2]
                j -= 1
            rank[j + 1] = whole
            named[j + 1, 0], named[j + 1, 1], named[j + 1, 2] = s, p, o
        count = 0
        whole = np.uint64(size)
        for i in range(size):
            for side in range(3):
                term = named[i, side]
                if term < 0:
                    slot = -1 - term
                    if slot_of[f, slot] < 0:
                        slot_of[f, slot] = count
                        count += 1
                    term = -1 - slot_of[f, slot]
                edges[begin + i, side] = term
                whole = mix(whole, np.uint64(term + SLOTS))
        key[f] = whole


@kernel
def share(edge_start: Ints, edges: Ints32, order: Ints, key: Words, pattern: Ints32, leader: Ints) -> int:
    """Number the distinct patterns, given filters in the order of their keys; returns how many there are."""
    count = 0
    for i in range(len(order)):
        f = order[i]
        same = False
        if i > 0 and key[order[i - 1]] == key[f]:
            g = leader[count - 1]
            size = edge_start[f + 1] - edge_start[f]
            same = size == edge_start[g + 1] - edge_start[g]
            for j in range(size if same else 0):
                for side in range(3):
                    if edges[edge_start[f] + j, side] != edges[edge_start[g] + j, side]:
                        same = False
        if not same:
            leader[count] = f
            count += 1
        pattern[f] = count - 1
    return count


LEAST = 8
"""Ranges of one pattern that are worth a group."""


def build(columns: Columns) -> RdfArrays:
    """Lay the patterns of filters out; member m has the number m."""
    count = columns.members
    edges = columns.edges.copy()
    slot_of = np.full((count, SLOTS), -1, np.int8)
    key = np.zeros(count, np.uint64)
    canonicalise(columns.edge_start, edges, slot_of, key)
    words = columns.words.copy()
    used = np.zeros(count, np.uint64)
    slots = laying.roles_of(words) == laying.SLOT_WORD
    of_slot = np.repeat(np.arange(count), np.diff(columns.word_start))[slots]
    words[slots] = slot_of[of_slot, words[slots]]
    np.bitwise_or.at(used, of_slot, np.uint64(1) << words[slots].astype(np.uint64))
    ranges = columns.ranges.copy()
    of_range = np.repeat(np.arange(count), np.diff(columns.range_start))
    ranges[:, 0] = slot_of[of_range, ranges[:, 0]]
    np.bitwise_or.at(used, of_range, np.uint64(1) << ranges[:, 0].astype(np.uint64))
    del slot_of
    pattern = np.zeros(count, np.int32)
    leader = np.zeros(count, np.int64)
    distinct = share(columns.edge_start, edges, np.argsort(key, kind="stable"), key, pattern, leader)
    leader = leader[:distinct]
    wanted = np.zeros(distinct, np.uint64)
    np.bitwise_or.at(wanted, pattern, used)
    starts, places = picked(columns.edge_start, leader)
    start, mine = starts.astype(np.int32), edges[places]
    laid_edges, number = _edges(mine)
    cost = _costs(laid_edges, number)
    # Patterns that hang at one edge stand one behind another.
    steps = _steps(start, mine, number, cost, wanted)
    hook = steps.step_edge[start[:-1]] if distinct else np.zeros(0, np.int32)
    order = np.argsort(hook, kind="stable")
    steps = _reordered(steps, start, order)
    hook = hook[order]
    last = np.concatenate([hook[1:] != hook[:-1], np.ones(min(distinct, 1), np.bool_)])
    steps.next[:] = np.where(last, -1, np.arange(1, distinct + 1))
    begins = np.flatnonzero(np.concatenate([np.ones(min(distinct, 1), np.bool_), hook[1:] != hook[:-1]]))
    laid_edges.first[hook[begins]] = begins
    new_number = np.empty(distinct, np.int32)
    new_number[order] = np.arange(distinct, dtype=np.int32)
    patterns, entries, groups, checks = _entries(columns, new_number[pattern], ranges, words, steps)
    return RdfArrays(_dictionary(columns.terms), laid_edges, patterns, entries, groups, checks)


def table_size(count: int) -> int:
    """Choose the size of a table for so many: a power of two that leaves enough of it free."""
    size = 8
    while size * 7 < count * 10:
        size *= 2
    return size


def _starts(sizes: NDArray[Any]) -> Ints32:
    return starts_of(sizes).astype(np.int32)


def _dictionary(terms: TextPool) -> Dictionary:
    table = np.full(table_size(terms.size), -1, np.int32)
    laying.place_terms(terms.offsets, terms.data, 0, terms.size, table)
    return Dictionary(terms.offsets, terms.data, table)


def _edges(mine: Ints32) -> tuple[Edges, Ints32]:
    """Find the distinct edges; returns them and the number of each."""
    number = np.zeros(len(mine), np.int32)
    count = laying.number_edges(mine, np.full(table_size(2 * len(mine)), -1, np.int32), number)
    s, p, o = (np.zeros(count, np.int32) for _ in range(3))
    masks = np.zeros(1, np.int64)
    laying.fill_edges(mine, number, s, p, o, masks)
    table = np.full(table_size(count), -1, np.int32)
    laying.place_edges(s, p, o, 0, count, table)
    return Edges(s, p, o, np.full(count, -1, np.int32), table, masks), number


def guess_costs(s: Ints32, p: Ints32, o: Ints32) -> NDArray[np.float32]:
    """Guess how many triples of an event match an edge, by its constants."""
    constants = S_KNOWN * (s >= 0) + P_KNOWN * (p >= 0) + O_KNOWN * (o >= 0)
    guess = np.array([100, 10, 20, 0.3, 10, 1, 0.2, 0.05], np.float32)[constants]
    return np.where(s == SELF, np.float32(0.5), guess).astype(np.float32)


def _costs(edges: Edges, number: Ints32) -> NDArray[np.float32]:
    """Guess how much it costs to hang a pattern at an edge: what many filters name, many events have."""
    often = np.bincount(number, minlength=len(edges.s))
    return (guess_costs(edges.s, edges.p, edges.o) * np.log2(2 + often)).astype(np.float32)


def _steps(start: Ints32, mine: Ints32, number: Ints32, cost: NDArray[np.float32], used: Words) -> Patterns:
    count = len(start) - 1
    step_edge = np.zeros(len(mine), np.int32)
    step_code = np.zeros((len(mine), 4), np.int8)
    back = np.zeros(count, np.int8)
    laying.order_steps(start, mine, number, cost, used, step_edge, step_code, back)
    none = np.zeros(count + 1, np.int32)
    return Patterns(np.zeros(count, np.int32), start, none, none, back, step_edge, step_code)


def _reordered(patterns: Patterns, start: Ints32, order: Ints) -> Patterns:
    starts, at = picked(start, order)
    return patterns._replace(
        step_start=starts.astype(np.int32),
        back=patterns.back[order],
        step_edge=patterns.step_edge[at],
        step_code=patterns.step_code[at],
    )


def _entries(
    columns: Columns, pattern: Ints32, ranges: NDArray[np.int8], words: Ints32, patterns: Patterns
) -> tuple[Patterns, Entries, Groups, Checks]:
    """Lay the filters of each pattern out: free ones, then groups in the order of their ends."""
    count = columns.members
    access = _access(columns)
    low = np.full(count, -np.inf)
    high = np.full(count, np.inf)
    kind = np.full(count, -1, np.int64)
    has = np.flatnonzero(access >= 0)
    chosen = access[has]
    low[has], high[has] = columns.ends[chosen, 0], columns.ends[chosen, 1]
    order = np.where(low[has] == -np.inf, BY_HIGH, BY_LOW)
    kind[has] = (ranges[chosen, 0].astype(np.int64) * 8 + ranges[chosen, 1]) * 2 + order
    by_group = pattern.astype(np.int64) * 2048 + kind + 1
    _, group, often = np.unique(by_group, return_inverse=True, return_counts=True)
    few = often[group] < LEAST
    kind[few], access[few] = -1, -1
    by_group = pattern.astype(np.int64) * 2048 + kind + 1
    sort_key = np.where(kind % 2 == BY_HIGH, high, low)
    sort_key[kind < 0] = 0
    at = np.lexsort((np.arange(count), sort_key, by_group))
    out = np.zeros(1 + len(words) + 5 * len(ranges) + count, np.int32)
    checks = np.zeros(count, np.int32)
    kept = np.ones(len(ranges), np.bool_)
    kept[access[access >= 0]] = False
    end = laying.lay_checks(
        at,
        columns.range_start,
        ranges,
        np.where(kept, 2 * (np.cumsum(kept) - 1), -1),
        columns.word_start,
        words,
        out,
        checks,
    )
    starts = _starts(np.bincount(pattern, minlength=len(patterns.next)))
    groups, group_start = _groups(by_group[at], kind[at], low[at], high[at], ranges, access[at], patterns)
    return (
        patterns._replace(entry_start=starts, group_start=group_start),
        Entries(at.astype(np.int32), checks),
        groups,
        Checks(out[:end].copy(), columns.ends[kept].ravel(), columns.texts.offsets, columns.texts.data),
    )


def _access(columns: Columns) -> Ints:
    """Choose a range of each filter that its group looks at, -1 for none: one with two ends if there is."""
    sizes = np.diff(columns.range_start)
    access = np.where(sizes > 0, columns.range_start[:-1], -1)
    both = np.flatnonzero(np.isfinite(columns.ends).all(axis=1))
    owner = np.repeat(np.arange(columns.members), sizes)
    access[owner[both][::-1]] = both[::-1]
    return access


def _groups(
    by_group: Ints,
    kind: Ints,
    low: Floats64,
    high: Floats64,
    ranges: NDArray[np.int8],
    access: Ints,
    patterns: Patterns,
) -> tuple[Groups, Ints32]:
    """Cut sorted entries into groups; returns these, and where those of each pattern start."""
    inside = np.flatnonzero(kind >= 0)
    keys, first, sizes = np.unique(by_group[inside], return_index=True, return_counts=True)
    entry = inside[first]
    blocks = -(-sizes // BLOCK)
    block_at = _starts(blocks)
    range_at = _starts(sizes)
    top = np.full(int(block_at[-1]), -np.inf)
    block = (
        np.repeat(block_at[:-1], sizes) + (np.arange(len(inside)) - np.repeat(range_at[:-1], sizes)) // BLOCK
    )
    np.maximum.at(top, block, high[inside])
    what = keys % 2048 - 1
    owner = keys // 2048
    starts = _starts(np.bincount(owner, minlength=len(patterns.next)))
    return (
        Groups(
            (what // 16).astype(np.int8),
            (what // 2 % 8).astype(np.int8),
            (what % 2).astype(np.int8),
            entry.astype(np.int32),
            sizes.astype(np.int32),
            range_at[:-1],
            block_at[:-1],
            low[inside],
            high[inside],
            ranges[access[inside], 2].astype(np.uint8),
            top,
        ),
        starts,
    )
