"""Hot loops: from the text and triples of a graph to an encoded event.

The taxonomy is looked up here, on the event's side: a node that it lists gets its types, and each type gives
virtual triples to all classes above it, each property to all above it that filters name. So a filter is one
edge whatever the taxonomy is, and the taxonomy can change without the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.rdf.arrays import (
    ALWAYS_CODE,
    BLANK,
    EXACT,
    IRI,
    ISA_CODE,
    LITERAL,
    NUMBERS,
    SHORT,
    TYPE_CODE,
    WORDS,
)
from headgate.rdf.hashing import hash_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.interning import TextPool
    from headgate.rdf.arrays import Dictionary, Encoded

ASK = -1
"""A line that Python must find out."""

_QUOTE, _BACKSLASH, _LESS, _AT, _COLON = 34, 92, 60, 64, 58
_N, _R, _T, _B, _F, _U, _TEN = 110, 114, 116, 98, 102, 117, 55
_NEWLINE, _PLUS, _MINUS, _DOT, _ZERO, _NINE = 10, 43, 45, 46, 48, 57


class Wanted(NamedTuple):
    """What filters look at, so that nothing else is found out."""

    lines: bool
    coerce: bool
    suffixes: bool
    classes: bool
    class_variables: bool
    hats: bool
    types: bool
    always: bool


class Mapped(NamedTuple):
    """A taxonomy in terms of a dictionary: `code[t]` and `hat[t]` are those of term t and of ^t, or -1."""

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]
    table: NDArray[np.int32]
    code: NDArray[np.int32]
    hat: NDArray[np.int32]
    class_start: NDArray[np.int64]
    class_up: NDArray[np.int32]
    property_start: NDArray[np.int64]
    property_up: NDArray[np.int32]
    type_start: NDArray[np.int64]
    type_of: NDArray[np.int32]


class Draft(NamedTuple):
    """Room beside an encoded event.

    `local` finds terms by their text. `counts`: terms, triples, bytes of text.
    """

    local: NDArray[np.int32]
    counts: NDArray[np.int64]


@bare_inner
def find_text(dictionary: Dictionary | Mapped, data: NDArray[np.uint8], begin: int, end: int) -> int:
    """Find the number of a text in a dictionary, -1 for none."""
    mask = np.uint64(len(dictionary.table) - 1)
    at = hash_bytes(data, begin, end) & mask
    while True:
        code = dictionary.table[at]
        if code < 0:
            return -1
        first = dictionary.offsets[code]
        if dictionary.offsets[code + 1] - first == end - begin:
            same = True
            for i in range(end - begin):
                if dictionary.data[first + i] != data[begin + i]:
                    same = False
                    break
            if same:
                return int(code)
        at = (at + np.uint64(1)) & mask


@bare_inner
def _simple_number(text: NDArray[np.uint8], begin: int, end: int, decimal: bool) -> tuple[float, int]:
    """Read a short number without exponent; returns the nearest float, and marks: -1 if Python must do it."""
    at, sign = begin, 1.0
    if at < end and text[at] in (_PLUS, _MINUS):
        sign = -1.0 if text[at] == _MINUS else 1.0
        at += 1
    if end - at < 1 or end - at > 15:
        return 0.0, -1
    whole, behind, point = np.int64(0), 0, False
    for i in range(at, end):
        if text[i] == _DOT:
            if point or not decimal or end - at == 1:
                return 0.0, -1
            point = True
        elif _ZERO <= text[i] <= _NINE:
            whole = whole * 10 + (text[i] - _ZERO)
            behind += point
        else:
            return 0.0, -1
    ten, five = 1.0, np.int64(1)
    for _ in range(behind):
        ten *= 10.0
        five *= 5
    # Both are exact below 2**53, so the quotient is the nearest float.
    return sign * (np.float64(whole) / ten), SHORT | EXACT if whole % five == 0 else SHORT


@bare_inner
def _is(text: NDArray[np.uint8], begin: int, end: int, known: NDArray[np.uint8]) -> bool:
    if end - begin != len(known):
        return False
    i = 0
    while i < len(known) and text[begin + i] == known[i]:
        i += 1
    return i == len(known)


@bare_inner
def _unescape(event: Encoded, draft: Draft, t: int, begin: int, end: int) -> None:
    """Write the text of a literal anew without escapes, behind all others; there is room for that."""
    text = event.text
    at = draft.counts[2]
    event.begin[t] = at
    i = begin
    while i < end:
        sign = text[i]
        i += 1
        if sign == _BACKSLASH:
            sign = text[i]
            i += 1
            if sign == _N:
                sign = 10
            elif sign == _R:
                sign = 13
            elif sign == _T:
                sign = 9
            elif sign == _B:
                sign = 8
            elif sign == _F:
                sign = 12
            elif sign == _U:
                point = 0
                for k in range(i, i + 4):
                    digit = text[k]
                    point = point * 16 + (digit - _ZERO if digit <= _NINE else digit - _TEN)
                i += 4
                if point >= 128:
                    # Only U+FFFE and U+FFFF are written like this: three bytes.
                    text[at], text[at + 1] = 0xEF, 0xBF
                    at += 2
                    sign = 0x80 | (point & 63)
                else:
                    sign = point
        text[at] = sign
        at += 1
    event.end[t] = at
    draft.counts[2] = at


@bare_inner
def _literal(
    event: Encoded,
    draft: Draft,
    t: int,
    begin: int,
    end: int,
    dictionary: Dictionary,
    wanted: Wanted,
    integer: NDArray[np.uint8],
    decimal: NDArray[np.uint8],
) -> None:
    """Take a literal apart."""
    text = event.text
    close = end - 1
    while text[close] != _QUOTE:
        close -= 1
    marks = 0
    event.begin[t], event.end[t] = begin + 1, close
    for i in range(begin + 1, close):
        if text[i] == _BACKSLASH:
            _unescape(event, draft, t, begin + 1, close)
            break
    plain = close == end - 1
    if plain or text[close + 1] == _AT:
        marks |= WORDS
    if wanted.lines:
        if not plain and text[close + 1] != _AT:
            is_decimal = _is(text, close + 1, end, decimal)
            if is_decimal or _is(text, close + 1, end, integer):
                key, exact = _simple_number(text, begin + 1, close, is_decimal)
                event.line[t] = ASK
                if exact >= 0:
                    event.line[t], event.key[t] = NUMBERS, key
                    marks |= exact
            else:
                event.line[t] = ASK
        elif plain and wanted.coerce:
            event.line[t] = ASK
    if wanted.suffixes:
        event.suffix[t] = find_text(dictionary, text, close + 1, end)
    event.marks[t] = marks


@bare_inner
def _find_local(event: Encoded, draft: Draft, data: NDArray[np.uint8], begin: int, end: int) -> int:
    """Find a term of the event by its text; -1 less the free place in the table for none."""
    mask = np.uint64(len(draft.local) - 1)
    at = hash_bytes(data, begin, end) & mask
    while True:
        t = draft.local[at]
        if t < 0:
            return -1 - int(at)
        first = event.start[t]
        if event.stop[t] - first == end - begin:
            same = True
            for i in range(end - begin):
                if event.text[first + i] != data[begin + i]:
                    same = False
                    break
            if same:
                return int(t)
        at = (at + np.uint64(1)) & mask


@bare_inner
def _add_term(
    event: Encoded, draft: Draft, data: NDArray[np.uint8], begin: int, end: int, code: int, kind: int
) -> int:
    """Add a term that the event does not hold; returns -1 if there is no room."""
    t, size = draft.counts[0], draft.counts[2]
    if t >= len(event.code) or size + end - begin > len(event.text):
        return -1
    for i in range(end - begin):
        event.text[size + i] = data[begin + i]
    event.start[t], event.stop[t] = size, size + end - begin
    event.code[t], event.kind[t] = code, kind
    event.begin[t], event.end[t] = size + 1, size + end - begin - 1
    event.marks[t], event.line[t], event.suffix[t] = 0, 0, -1
    draft.counts[0] = t + 1
    draft.counts[2] = size + end - begin
    return int(t)


@bare_inner
def _local(event: Encoded, draft: Draft, mapped: Mapped, place: int) -> int:
    """Find or add the term of the taxonomy at a place; returns -1 if there is no room."""
    begin, end = mapped.offsets[place], mapped.offsets[place + 1]
    t = _find_local(event, draft, mapped.data, begin, end)
    if t >= 0:
        return t
    free = -1 - t
    t = _add_term(event, draft, mapped.data, begin, end, mapped.code[place], IRI)
    if t >= 0:
        draft.local[free] = t
    return t


@bare_inner
def _add_triple(event: Encoded, draft: Draft, s: int, p: int, o: int, virtual: int) -> bool:
    t = draft.counts[1]
    if t >= len(event.s):
        return False
    event.s[t], event.p[t], event.o[t], event.virtual[t] = s, p, o, virtual
    draft.counts[1] = t + 1
    return True


@bare
def read_terms(
    event: Encoded,
    draft: Draft,
    dictionary: Dictionary,
    wanted: Wanted,
    size: int,
    integer: NDArray[np.uint8],
    decimal: NDArray[np.uint8],
    local: bool,
) -> None:
    """Find the terms in the text, and what is to be known of each."""
    count, begin = 0, 0
    text = event.text
    draft.counts[2] = size
    mask = np.uint64(len(draft.local) - 1)
    for i in range(size + 1):
        if i < size and text[i] != _NEWLINE:
            continue
        if size == 0:
            break
        t = count
        count += 1
        event.start[t], event.stop[t] = begin, i
        event.begin[t], event.end[t] = begin + 1, i - 1
        event.marks[t], event.line[t], event.suffix[t] = 0, 0, -1
        event.key[t], event.slack[t] = 0.0, 0.0
        event.code[t] = find_text(dictionary, text, begin, i)
        if text[begin] == _QUOTE:
            event.kind[t] = LITERAL
            _literal(event, draft, t, begin, i, dictionary, wanted, integer, decimal)
        else:
            event.kind[t] = IRI if text[begin] == _LESS else BLANK
        if local:
            at = hash_bytes(text, begin, i) & mask
            while draft.local[at] >= 0:
                at = (at + np.uint64(1)) & mask
            draft.local[at] = t
        begin = i + 1
    draft.counts[0] = count


@bare
def add_types(event: Encoded, draft: Draft, mapped: Mapped, type_place: int) -> bool:
    """Add the types that the taxonomy lists for nodes; returns whether there was room."""
    triples, terms = draft.counts[1], draft.counts[0]
    # Triples by subject as lists, and marks of objects, in arrays that are filled later.
    first, following, is_object = event.s_start, event.by_s, event.o_start
    for t in range(terms):
        first[t], is_object[t] = -1, 0
    for i in range(triples):
        following[i] = first[event.s[i]]
        first[event.s[i]] = i
        is_object[event.o[i]] = 1
    for t in range(terms):
        if event.kind[t] != IRI or (first[t] < 0 and not is_object[t]):
            continue
        place = find_text(mapped, event.text, event.start[t], event.stop[t])
        if place < 0 or mapped.type_start[place] == mapped.type_start[place + 1]:
            continue
        p = _local(event, draft, mapped, type_place)
        if p < 0:
            return False
        for k in range(mapped.type_start[place], mapped.type_start[place + 1]):
            o = _local(event, draft, mapped, mapped.type_of[k])
            if o < 0:
                return False
            i = first[t]
            while i >= 0 and (event.p[i] != p or event.o[i] != o):
                i = following[i]
            if i < 0 and not _add_triple(event, draft, t, p, o, 0):
                return False
    return True


@bare
def add_classes(event: Encoded, draft: Draft, mapped: Mapped, wanted: Wanted) -> bool:
    """Add virtual triples to the classes above the types of each node; returns whether there was room."""
    isa = -1
    for i in range(draft.counts[1]):
        o = event.o[i]
        if event.code[event.p[i]] != TYPE_CODE or event.virtual[i]:
            continue
        if isa < 0:
            isa = _add_term(event, draft, mapped.data, 0, 0, ISA_CODE, 0)
            if isa < 0:
                return False
        place = find_text(mapped, event.text, event.start[o], event.stop[o])
        if place < 0:
            known = event.code[o] >= 0 or wanted.class_variables
            if known and not _add_triple(event, draft, event.s[i], isa, o, 1):
                return False
            continue
        for k in range(mapped.class_start[place], mapped.class_start[place + 1]):
            above = mapped.class_up[k]
            if mapped.code[above] < 0 and not wanted.class_variables:
                continue
            t = _local(event, draft, mapped, above)
            if t < 0 or not _add_triple(event, draft, event.s[i], isa, t, 1):
                return False
    return True


@bare
def add_hats(event: Encoded, draft: Draft, mapped: Mapped, triples: int) -> bool:
    """Add virtual triples of the properties above each property; returns whether there was room."""
    first = draft.counts[0]
    for i in range(triples):
        p = event.p[i]
        place = find_text(mapped, event.text, event.start[p], event.stop[p])
        if place < 0:
            continue
        for k in range(mapped.property_start[place], mapped.property_start[place + 1]):
            code = mapped.hat[mapped.property_up[k]]
            if code < 0:
                continue
            hat = -1
            for t in range(first, draft.counts[0]):
                if event.code[t] == code:
                    hat = t
            if hat < 0:
                hat = _add_term(event, draft, mapped.data, 0, 0, code, 0)
            if hat < 0 or not _add_triple(event, draft, event.s[i], hat, event.o[i], 1):
                return False
    return True


@bare
def add_always(event: Encoded, draft: Draft) -> bool:
    """Add the virtual triple that a pattern without edges asks for; returns whether there was room."""
    t = _add_term(event, draft, event.text, 0, 0, ALWAYS_CODE, 0)
    return t >= 0 and _add_triple(event, draft, t, t, t, 1)


@bare_inner
def _sort(of: NDArray[np.int32], count: int, start: NDArray[np.int32], by: NDArray[np.int32]) -> None:
    """List triples by one of their ends."""
    for t in range(len(start)):
        start[t] = 0
    for i in range(count):
        start[of[i] + 1] += 1
    for t in range(1, len(start)):
        start[t] += start[t - 1]
    for i in range(count - 1, -1, -1):
        start[of[i] + 1] -= 1
        by[start[of[i] + 1]] = i
    # Each start has moved down to its neighbour's place.
    for t in range(len(start) - 1):
        start[t] = start[t + 1]
    start[len(start) - 1] = count


@bare
def sort_triples(event: Encoded, count: int) -> None:
    """List the triples by subject and by object."""
    _sort(event.s, count, event.s_start, event.by_s)
    _sort(event.o, count, event.o_start, event.by_o)


@bare
def find_all(dictionary: Dictionary, texts: TextPool, out: NDArray[np.int32]) -> None:
    """Find the numbers of many texts in a dictionary, -1 for none."""
    for i in range(len(out)):
        out[i] = find_text(dictionary, texts.data, texts.offsets[i], texts.offsets[i + 1])
