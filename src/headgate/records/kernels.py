"""Hot loops of the record room: arrays in, arrays out.

A block is up to 256 events. `truth[l, w]` holds leaf l for 64 events a word; the programs of all filters then
run on words, so one AND decides 64 events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.interning import TextPool
    from headgate.records.arrays import Events, RecordArrays

STACK = 256
"""More values than any program puts on the stack; `compile_program` refuses deeper ones."""
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_ALL_ONES = np.uint64(2**64 - 1)


@kernel
def leaf_holds(index: RecordArrays, events: Events, leaf: int, event: int) -> bool:
    """Evaluate one leaf for one event."""
    kind = index.leaf_kind[leaf]
    attribute = index.leaf_attribute[leaf]
    if kind >= 3:
        fits = events.globs[index.leaf_glob[leaf], event]
        return bool(fits == 1) if kind == 3 else bool(fits == 0)
    if events.is_null[attribute, event]:
        return bool(index.leaf_on_null[leaf])
    first, last = index.range_start[leaf], index.range_start[leaf + 1]
    if kind == 0:
        for r in range(first, last):
            column = index.range_column[r]
            if events.has[column, event]:
                key = events.keys[column, event]
                if index.range_low[r] <= key <= index.range_high[r]:
                    return True
        return False
    if not events.is_array[attribute, event]:
        return False
    for j in range(events.array_start[attribute, event], events.array_start[attribute, event + 1]):
        inside = False
        for r in range(first, last):
            base = events.element_base[index.range_column[r]]
            if base >= 0 and events.element_has[base + j]:
                key = events.element_keys[base + j]
                if index.range_low[r] <= key <= index.range_high[r]:
                    inside = True
                    break
        if inside and kind == 1:
            return True
        if not inside and kind == 2:
            return False
    return bool(kind == 2)


@kernel
def fill_truth(
    index: RecordArrays, events: Events, begin: int, count: int, truth: NDArray[np.uint64]
) -> None:
    """Evaluate every leaf for the events begin to begin + count, 64 to a word. Hot: leaves times events."""
    words = (count + 63) // 64
    for leaf in range(len(index.leaf_kind)):
        kind = index.leaf_kind[leaf]
        attribute = index.leaf_attribute[leaf]
        for w in range(words):
            start = begin + 64 * w
            stop = min(start + 64, begin + count)
            bits = np.uint64(0)
            if kind == 0:
                # Written out, as is the next case, so that what a range needs is fetched once for all events.
                for r in range(index.range_start[leaf], index.range_start[leaf + 1]):
                    column = index.range_column[r]
                    if not events.used[column]:
                        continue
                    keys, has = events.keys[column], events.has[column]
                    low, high = index.range_low[r], index.range_high[r]
                    for e in range(start, stop):
                        hit = (keys[e] >= low) & (keys[e] <= high) & (has[e] != 0)
                        bits |= np.uint64(hit) << np.uint64(e - start)
                if index.leaf_on_null[leaf]:
                    nulls = events.is_null[attribute]
                    for e in range(start, stop):
                        bits |= np.uint64(nulls[e]) << np.uint64(e - start)
            elif kind == 1:
                starts = events.array_start[attribute]
                for r in range(index.range_start[leaf], index.range_start[leaf + 1]):
                    base = events.element_base[index.range_column[r]]
                    if base < 0:
                        continue
                    low, high = index.range_low[r], index.range_high[r]
                    for e in range(start, stop):
                        for j in range(base + starts[e], base + starts[e + 1]):
                            key = events.element_keys[j]
                            hit = (key >= low) & (key <= high) & (events.element_has[j] != 0)
                            bits |= np.uint64(hit) << np.uint64(e - start)
            else:
                for e in range(start, stop):
                    bits |= np.uint64(leaf_holds(index, events, leaf, e)) << np.uint64(e - start)
            truth[leaf, w] = bits


@kernel
def run_programs(index: RecordArrays, truth: NDArray[np.uint64], words: int, out: NDArray[np.uint64]) -> None:
    """Run every filter's program over the words of a block: out[f, w]. Hot: tokens times words."""
    stack = np.empty(STACK, np.uint64)
    for f in range(len(index.token_start) - 1):
        first, last = index.token_start[f], index.token_start[f + 1]
        for w in range(words):
            top = 0
            for t in range(first, last):
                token = index.tokens[t]
                if token >= 0:
                    stack[top] = truth[token, w]
                    top += 1
                elif token == -1:
                    top -= 1
                    stack[top - 1] &= stack[top]
                elif token == -2:
                    top -= 1
                    stack[top - 1] |= stack[top]
                else:
                    stack[top] = _ALL_ONES if token == -3 else _ZERO
                    top += 1
            out[f, w] = stack[0]


@kernel
def count_matches(bits: NDArray[np.uint64], count: int, counts: NDArray[np.int64]) -> None:
    """Add to counts[e] how many filters hold for each event of a block."""
    for f in range(bits.shape[0]):
        for w in range((count + 63) // 64):
            word = bits[f, w]
            for e in range(64 * w, min(64 * w + 64, count)):
                if word == 0:
                    break
                counts[e] += np.int64(word & _ONE)
                word >>= _ONE


@kernel
def list_matches(
    bits: NDArray[np.uint64], count: int, places: NDArray[np.int64], out: NDArray[np.int32]
) -> None:
    """Write the filters of each event from places[e] on, in rising order; places move on."""
    for f in range(bits.shape[0]):
        for w in range((count + 63) // 64):
            word = bits[f, w]
            for e in range(64 * w, min(64 * w + 64, count)):
                if word == 0:
                    break
                if word & _ONE:
                    out[places[e]] = f
                    places[e] += 1
                word >>= _ONE


@kernel
def next_match(index: RecordArrays, events: Events, event: int, at_least: int) -> int:
    """Find the first filter from `at_least` on that holds for one event, or -1. Looks at no later filter."""
    stack = np.empty(STACK, np.uint8)
    for f in range(at_least, len(index.token_start) - 1):
        top = 0
        for t in range(index.token_start[f], index.token_start[f + 1]):
            token = index.tokens[t]
            if token >= 0:
                stack[top] = leaf_holds(index, events, token, event)
                top += 1
            elif token == -1:
                top -= 1
                stack[top - 1] &= stack[top]
            elif token == -2:
                top -= 1
                stack[top - 1] |= stack[top]
            else:
                stack[top] = token == -3
                top += 1
        if stack[0]:
            return f
    return -1


@kernel
def match_glob(texts: TextPool, i: int, tokens: NDArray[np.int16]) -> bool:
    """Match text i against a pattern: -1 is any text, -2 any character, other tokens a byte.

    Greedy with one way back, to the last `%`; a way back starts at the first byte of a character.
    """
    t, stop = texts.offsets[i], texts.offsets[i + 1]
    p, end = 0, len(tokens)
    star, again = -1, t
    while t < stop:
        if p < end and tokens[p] == -1:
            star, again = p, t
            p += 1
        elif p < end and (tokens[p] == -2 or tokens[p] == np.int16(texts.data[t])):
            t += 1
            if tokens[p] == -2:
                while t < stop and (texts.data[t] & 0xC0) == 0x80:
                    t += 1
            p += 1
        elif star >= 0:
            again += 1
            while again < stop and (texts.data[again] & 0xC0) == 0x80:
                again += 1
            t, p = again, star + 1
        else:
            return False
    while p < end and tokens[p] == -1:
        p += 1
    return p == end


@kernel
def match_globs(
    index: RecordArrays, globs: NDArray[np.int32], texts: TextPool, out: NDArray[np.uint8]
) -> None:
    """Match all texts against some patterns: out[g, i]."""
    for row in range(len(globs)):
        g = globs[row]
        tokens = index.glob_tokens[index.glob_start[g] : index.glob_start[g + 1]]
        for i in range(len(texts.offsets) - 1):
            out[row, i] = match_glob(texts, i, tokens)
