"""Hot loops over the tail: match events, and read the programs back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import inner, kernel
from headgate.records.index.checking import match_glob

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.records.tail.arrays import TailArrays, TailEvents

_TOP = 2**63 - 1


@inner
def mix(column: int, key: int) -> int:
    """Hash a key of a column, in numbers below 2**63, which are the same with and without the JIT."""
    low, high, sign = key & 0x7FFFFFFF, (key >> 31) & 0x7FFFFFFF, (key >> 62) & 3
    code = low * 0x1E3779B1 + high * 0x2545F491 + sign * 0x1B873593 + column * 0x0D2C9B5F
    code ^= code >> 29
    code = (code & 0x7FFFFFFF) * 0x19D699A5 + (code >> 31) * 0x165667B1
    return code ^ (code >> 32)


@kernel
def hash_texts(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], table: NDArray[np.int64], out: NDArray[np.int64]
) -> None:
    """Compute the CRC-32 of each text, as zlib does."""
    for t in range(len(out)):
        code = 0xFFFFFFFF
        for i in range(offsets[t], offsets[t + 1]):
            code = (code >> 8) ^ table[(code ^ np.int64(data[i])) & 0xFF]
        out[t] = code ^ 0xFFFFFFFF


@inner
def _order(
    data: NDArray[np.uint8], start: int, stop: int, other: NDArray[np.uint8], begin: int, end: int
) -> int:
    """Compare two texts: negative, 0 or positive."""
    while start < stop and begin < end:
        if data[start] != other[begin]:
            return -1 if data[start] < other[begin] else 1
        start += 1
        begin += 1
    return (1 if start < stop else 0) - (1 if begin < end else 0)


@inner
def _beyond(
    cut: int,
    offsets: NDArray[np.int64],
    pool: NDArray[np.uint8],
    data: NDArray[np.uint8],
    start: int,
    stop: int,
) -> bool:
    """Tell whether a text lies behind a cut."""
    if cut == _TOP:
        return False
    text = cut >> 1
    order = _order(data, start, stop, pool, offsets[text], offsets[text + 1])
    return order > 0 or (order == 0 and (cut & 1) == 0)


@inner
def _hit(
    code: NDArray[np.int64],
    place: int,
    groups: int,
    columns: NDArray[np.uint8],
    text_offsets: NDArray[np.int64],
    text_data: NDArray[np.uint8],
    keys: NDArray[np.int64],
    has: NDArray[np.uint8],
    multi_keys: NDArray[np.int64],
    multi_has: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    row: int,
    element: int,
) -> bool:
    """Tell whether a value, or one of its elements, lies in one of the groups at a place of the code."""
    for _ in range(groups):
        word = code[place]
        column = word >> 24
        n = word & 0xFFFFFF
        place += 1
        if element < 0:
            there, key = has[row + column] == 1, keys[row + column]
        else:
            where = keys[row + column] + 1 + element
            there, key = multi_has[where] == 1, multi_keys[where]
        if n == 0:
            if not there:
                return True
        elif there:
            # The first range that does not end before the key is the only one that can hold it.
            low, high = 0, n
            if columns[column] & 2:
                start, stop = offsets[key], offsets[key + 1]
                while low < high:
                    middle = (low + high) >> 1
                    if _beyond(code[place + 2 * middle + 1], text_offsets, text_data, data, start, stop):
                        low = middle + 1
                    else:
                        high = middle
                if low < n and _beyond(code[place + 2 * low], text_offsets, text_data, data, start, stop):
                    return True
            else:
                while low < high:
                    middle = (low + high) >> 1
                    if code[place + 2 * middle + 1] < key:
                        low = middle + 1
                    else:
                        high = middle
                if low < n and code[place + 2 * low] <= key:
                    return True
        place += 2 * n
    return False


@inner
def _passes(
    guards: NDArray[np.int64],
    place: int,
    columns: NDArray[np.uint8],
    keys: NDArray[np.int64],
    has: NDArray[np.uint8],
    hashes: NDArray[np.int64],
    row: int,
) -> bool:
    """Tell whether the guard at a place lets an event through."""
    column = guards[place] >> 32
    if column < 0:
        return True
    if has[row + column] != 1:
        return bool(has[row + column] == 2)
    key = keys[row + column]
    if columns[column] & 2:
        key = hashes[key]
    return bool(guards[place + 1] <= key <= guards[place + 2])


@kernel
def match_tail(
    tail: TailArrays,
    events: TailEvents,
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
    Candidates are collected first, so that the evaluation of programs is compiled in one place; all arrays
    are taken out of their tuples, because passing a tuple counts references to all of it.
    """
    code, at, globs = tail.code, tail.at, tail.globs
    heads, entries, scan = tail.heads, tail.entries, tail.scan
    probes, columns = tail.probes, tail.columns
    text_offsets, text_data = tail.text_offsets, tail.text_data
    keys, has, multi_keys, multi_has = events.keys, events.has, events.multi_keys, events.multi_has
    offsets, data, hashes = events.offsets, events.data, events.hashes
    n = 0
    for e in range(begin, end):
        row = e * tail.width
        found = n
        for i in range(0, 3 * tail.scanned, 3):
            if _passes(scan, i, columns, keys, has, hashes, row):
                number = scan[i] & 0xFFFFFFFF
                if not removed[number]:
                    if found >= len(out):
                        return e
                    out[found] = number
                    found += 1
        for i in range(tail.probed):
            column = int(probes[i])
            if has[row + column] != 1:
                continue
            element = columns[column] & 1
            at_key = keys[row + column]
            # Once for a value, once for each element.
            for j in range(multi_keys[at_key] if element else 1):
                key = at_key
                if element:
                    key = multi_keys[at_key + 1 + j]
                    if not multi_has[at_key + 1 + j]:
                        continue
                if columns[column] & 2:
                    key = hashes[key]
                wanted = mix(column, key)
                entry = int(heads[wanted & (len(heads) - 1)])
                while 0 <= entry < tail.posted:
                    here = 5 * entry
                    if entries[here] == wanted and _passes(
                        entries, here + 1, columns, keys, has, hashes, row
                    ):
                        number = entries[here + 1] & 0xFFFFFFFF
                        if seen[number] != stamp + e:
                            seen[number] = stamp + e
                            if not removed[number]:
                                if found >= len(out):
                                    return e
                                out[found] = number
                                found += 1
                    entry = entries[here + 4]
        before = n
        for i in range(n, found):
            place, last = at[out[i]], at[out[i] + 1]
            holds = False
            while place < last:
                word = code[place]
                op = word & 15
                words = word >> 4
                if op <= 2:
                    groups = code[place + 1] >> 32
                    first = place + 2
                    element, elements = -1, 0
                    holds = op == 2
                    if op:
                        where = row + code[first]
                        first += 1
                        element = 0
                        if has[where] == 1:
                            elements = multi_keys[keys[where]]
                        else:
                            holds = False
                    while element < elements:
                        hit = _hit(
                            code,
                            first,
                            groups,
                            columns,
                            text_offsets,
                            text_data,
                            keys,
                            has,
                            multi_keys,
                            multi_has,
                            offsets,
                            data,
                            row,
                            element,
                        )
                        if hit != (op == 2):
                            holds = hit
                            break
                        element += 1
                elif op <= 4:
                    where = row + code[place + 2]
                    holds = False
                    if has[where] == 1:
                        text = keys[where]
                        begin, stop = offsets[text], offsets[text + 1]
                        fits = match_glob(data, begin, stop, globs, code[place + 3], code[place + 4])
                        holds = fits == (op == 3)
                elif op <= 6:
                    holds = op == 5
                elif holds == (op == 7):
                    # The left operand leaves it open.
                    words = 0
                place += 1 + words
            if holds:
                out[n] = out[i]
                n += 1
        counts[e] = n - before
        out[before:n].sort()
    return end


@kernel
def read_back(
    tail: TailArrays,
    filters: int,
    fill: bool,
    token_start: NDArray[np.int64],
    tokens: NDArray[np.int32],
    leaf_kind: NDArray[np.uint8],
    leaf_attribute: NDArray[np.int32],
    leaf_on_null: NDArray[np.uint8],
    range_start: NDArray[np.int64],
    range_facet: NDArray[np.uint8],
    range_low: NDArray[np.int64],
    range_high: NDArray[np.int64],
    glob_start: NDArray[np.int64],
    glob_tokens: NDArray[np.int16],
) -> tuple[int, int, int, int]:
    """Write the first filters as columns of `Programs`; returns tokens, leaves, ranges and words of patterns.

    Without `fill` only counts. Every push has a leaf of its own. Joins stand where their right operands end.
    """
    code, columns, globs = tail.code, tail.columns, tail.globs
    ends = np.empty(256, np.int64)
    joins = np.empty(256, np.int32)
    token = leaf = ranges = words_of_globs = 0
    for f in range(filters):
        place, last = tail.at[f], tail.at[f + 1]
        waiting = 0
        while place < last:
            op, words = code[place] & 15, code[place] >> 4
            if op >= 7:
                ends[waiting] = place + 1 + words
                joins[waiting] = 6 - op
                waiting += 1
                place += 1
                continue
            if fill:
                tokens[token] = leaf if op <= 4 else 2 - op
            token += 1
            if op <= 4:
                if fill:
                    leaf_kind[leaf] = op
                    leaf_attribute[leaf] = code[place + 1] & 0xFFFFFFFF
                group = place + (2 if op == 0 else 3)
                for _ in range(code[place + 1] >> 32):
                    column, n = code[group] >> 24, code[group] & 0xFFFFFF
                    if fill:
                        if n == 0:
                            leaf_on_null[leaf] = 1
                        for i in range(n):
                            range_facet[ranges + i] = columns[column] >> 2
                            range_low[ranges + i] = code[group + 1 + 2 * i]
                            range_high[ranges + i] = code[group + 2 + 2 * i]
                    ranges += n
                    group += 1 + 2 * n
                if op >= 3:
                    begin, end = code[place + 3], code[place + 4]
                    if fill:
                        glob_tokens[words_of_globs : words_of_globs + end - begin] = globs[begin:end]
                    words_of_globs += end - begin
                leaf += 1
                if fill:
                    range_start[leaf] = ranges
                    glob_start[leaf] = words_of_globs
            place += 1 + words
            while waiting and ends[waiting - 1] == place:
                waiting -= 1
                if fill:
                    tokens[token] = joins[waiting]
                token += 1
        if fill:
            token_start[f + 1] = token
    return token, leaf, ranges, words_of_globs
