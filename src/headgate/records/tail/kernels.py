"""The tail as flat arrays, an event for it, and the hot loop that matches it.

Compiled code knows fields by place: kernels that take them go through `headgate.core.jit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.records.index.checking import match_glob
from headgate.records.programs.leaves import TEXT_FACETS, Facet
from headgate.records.programs.programs import ALL, GLOB, TOP, VALUE
from headgate.records.programs.tokens import AND, OR, TRUE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bools, Bytes, Ints, Ints32


LEAF_WORDS, RANGE_WORDS, GUARD_WORDS = 4, 3, 4
KIND_MASK, ON_NULL = 7, 8
"""A leaf's first word: the bits of its kind, and the bit that says that it holds for NULL."""
RUN_BITS, RUN_MASK = 24, 0xFFFFFF
"""Bits of the number of ranges, below a column."""
COLUMNS, ELEMENTS, FACET_MASK = 32, 16, 15
"""Columns of an attribute, those of its elements among them, and the bits of a column that are its facet."""
SKIP_BITS, SKIP_MASK, LAST_BITS = 5, 31, 1
"""Below the column of a guard: how many guards on the next alternative begins, and if this one ends here."""
HAS, OTHER = 1, 2
"""What an event says of a column: its value has the facet, or has not and is not NULL."""
IS_TEXT = np.zeros(COLUMNS, np.uint8)
IS_TEXT[[int(facet) for facet in TEXT_FACETS]] = 1
_PRESENT, _TEXT = int(Facet.PRESENT), int(Facet.TEXT)


class TailArrays(NamedTuple):
    """Filters in the order in which they were added; all arrays have room at their ends.

        filter f      tokens[token_start[f]:token_start[f + 1]] as in `Programs`, for f < filters
        leaf l        leaves[LEAF_WORDS * l:]: [kind | ON_NULL, attribute, begin, end], the kind as in
                      `Programs`; a pattern is globs[begin:end], others have the ranges begin to end
        range r       ranges[RANGE_WORDS * r:]: [column << RUN_BITS | n, low, high] as in `Programs`; n says
                      in the first range of a column how many there are, rising and disjoint
        column        COLUMNS * attribute + facet, of elements with ELEMENTS besides
        text t        text_data[text_offsets[t]:text_offsets[t + 1]], UTF-8, in no order
        guard g       guards[GUARD_WORDS * g:]: [(column << SKIP_BITS | skip) << LAST_BITS | last, low, high,
                      bits], g in guard_start[f:f + 2]: fails if the value is NULL, or if its key, of a text
                      its hash, lies outside or has none of the bits

    A filter does not hold if a guard fails of each of its alternatives. Those lie one behind another: `last`
    is 1 for the last guard of one, and the next begins `skip` guards on; 0 if there is none.

    Guards are there for speed: most filters fail them, and their programs are not looked at. What lies below
    `filters`, and what these name, never changes.
    """

    token_start: Ints
    tokens: Ints
    leaves: Ints
    ranges: Ints
    globs: NDArray[np.int16]
    guard_start: Ints
    guards: Ints
    text_offsets: Ints
    text_data: Bytes
    filters: int


class TailEvent(NamedTuple):
    """An event as keys of the tail's columns.

    has[c]        HAS if the value has the facet of column c; of elements, if the value is an array; else 0 if
                  it is NULL, OTHER if not
    keys[c]       its key there; of a text its hash, for guards
    bits[c]       of a text a bit for its hash, of elements that are texts one for each; all for others
    places[c]     of a text its number in `offsets` and `data`; of elements where multi_keys holds how many
                  they are, and then their keys or the numbers of texts, multi_has likewise
    """

    has: Bytes
    keys: Ints
    bits: Ints
    places: Ints
    multi_has: Bytes
    multi_keys: Ints
    offsets: Ints
    data: Bytes


@bare_inner
def _passes(tail: TailArrays, event: TailEvent, f: int) -> bool:
    """Tell whether the guards of a filter let an event through."""
    guards, g = tail.guards, tail.guard_start[f]
    if g == tail.guard_start[f + 1]:
        return True
    while True:
        at = GUARD_WORDS * g
        head = guards[at]
        column = head >> (SKIP_BITS + LAST_BITS)
        has, key, bits = event.has[column], event.keys[column], event.bits[column]
        # Not one after the other: which of them fails cannot be foretold.
        inside = (key >= guards[at + 1]) & (key <= guards[at + 2]) & (bits & guards[at + 3] != 0)
        if (has == OTHER) | ((has == HAS) & inside):
            if head & LAST_BITS:
                return True
            g += 1
        else:
            skip = (head >> LAST_BITS) & SKIP_MASK
            if skip == 0:
                return False
            g += skip


@bare_inner
def _order(data: Bytes, start: int, stop: int, other: Bytes, begin: int, end: int) -> int:
    """Compare two texts: negative, 0 or positive."""
    while start < stop and begin < end:
        if data[start] != other[begin]:
            return -1 if data[start] < other[begin] else 1
        start += 1
        begin += 1
    return (1 if start < stop else 0) - (1 if begin < end else 0)


@bare_inner
def _beyond(tail: TailArrays, event: TailEvent, text: int, cut: int) -> bool:
    """Tell whether a text of an event lies behind a cut."""
    if cut == TOP:
        return False
    begin, end = tail.text_offsets[cut >> 1], tail.text_offsets[(cut >> 1) + 1]
    order = _order(event.data, event.offsets[text], event.offsets[text + 1], tail.text_data, begin, end)
    return order > 0 or (order == 0 and (cut & 1) == 0)


@bare_inner
def _in_ranges(tail: TailArrays, event: TailEvent, first: int, last: int, element: int) -> bool:
    """Tell whether a value, or one of its elements, lies in some ranges."""
    ranges, r = tail.ranges, first
    while r < last:
        head = ranges[RANGE_WORDS * r]
        column, n = head >> RUN_BITS, head & RUN_MASK
        is_text, there = IS_TEXT[column & FACET_MASK], event.has[column] == HAS
        key = event.places[column] if is_text else event.keys[column]
        if element >= 0:
            at = event.places[column] + 1 + element
            there, key = event.multi_has[at] != 0, event.multi_keys[at]
        r += n
        if not there:
            continue
        # The first range that does not end before the key is the only one that can hold it.
        low, high = r - n, r
        while low < high:
            middle = (low + high) >> 1
            bound = ranges[RANGE_WORDS * middle + 2]
            if _beyond(tail, event, key, bound) if is_text else bound < key:
                low = middle + 1
            else:
                high = middle
        if low < r:
            begin = ranges[RANGE_WORDS * low + 1]
            if _beyond(tail, event, key, begin) if is_text else begin <= key:
                return True
    return False


@bare_inner
def _leaf_holds(tail: TailArrays, event: TailEvent, leaf: int) -> bool:
    at = LEAF_WORDS * leaf
    kind, on_null = tail.leaves[at] & KIND_MASK, tail.leaves[at] & ON_NULL
    column, begin, end = COLUMNS * tail.leaves[at + 1], tail.leaves[at + 2], tail.leaves[at + 3]
    has, places = event.has, event.places
    if kind >= GLOB:
        if has[column + _TEXT] != HAS:
            return False
        text = places[column + _TEXT]
        fits = match_glob(event.data, event.offsets[text], event.offsets[text + 1], tail.globs, begin, end)
        return bool(fits == (kind == GLOB))
    elements = 1
    if kind == VALUE:
        if has[column + _PRESENT] != HAS:
            return bool(on_null != 0)
    else:
        column += ELEMENTS + _PRESENT
        if has[column] != HAS:
            return False
        elements = event.multi_keys[places[column]]
    for i in range(elements):
        if kind != VALUE and event.multi_has[places[column] + 1 + i] == 0:
            hit = on_null != 0
        else:
            hit = _in_ranges(tail, event, begin, end, -1 if kind == VALUE else i)
        if hit != (kind == ALL):
            return bool(hit)
    return bool(kind == ALL)


@bare_inner
def _holds(tail: TailArrays, event: TailEvent, f: int, stack: Bools) -> bool:
    tokens, t, last = tail.tokens, tail.token_start[f], tail.token_start[f + 1]
    top = 0
    while t < last:
        token = tokens[t]
        t += 1
        if token <= TRUE:
            stack[top] = token == TRUE
            top += 1
        elif token < 0:
            top -= 1
            left, right = stack[top - 1], stack[top]
            stack[top - 1] = (left and right) if token == AND else (left or right)
        elif top and t < last and tokens[t] == (OR if stack[top - 1] else AND):
            # The operand before decides.
            t += 1
        else:
            stack[top] = _leaf_holds(tail, event, token)
            top += 1
    return bool(stack[0])


@bare
def match_tail(tail: TailArrays, event: TailEvent, removed: Bytes, stack: Bools, out: Ints32) -> int:
    """List the filters that hold for an event in `out`, rising; returns how many."""
    n = 0
    for f in range(tail.filters):
        if not removed[f] and _passes(tail, event, f) and _holds(tail, event, f, stack):
            out[n] = f
            n += 1
    return n
