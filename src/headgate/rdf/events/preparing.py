"""Hot loops: from the text and triples of a graph to an encoded event."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.hashing import hash_bytes
from headgate.core.jit import bare, bare_inner
from headgate.core.searching import same_bytes
from headgate.rdf.index.arrays import (
    BLANK,
    EXACT,
    IRI,
    LITERAL,
    NUMBERS,
    SHORT,
    WORDS,
)

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes, Ints, Ints32
    from headgate.core.interning import TextPool
    from headgate.rdf.index.arrays import Dictionary, Encoded
    from headgate.rdf.taxonomy.extending import Mapped

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


TERMS, TRIPLES, BYTES = range(3)
"""What a draft counts; the bytes are those of texts."""


class Draft(NamedTuple):
    """Room beside an encoded event; `local` finds terms by their text."""

    local: Ints32
    counts: Ints


@bare_inner
def find_text(dictionary: Dictionary | Mapped, data: Bytes, begin: int, end: int) -> int:
    """Find the number of a text in a dictionary, -1 for none."""
    mask = np.uint64(len(dictionary.table) - 1)
    at = hash_bytes(data, begin, end) & mask
    while True:
        code = dictionary.table[at]
        if code < 0:
            return -1
        first = dictionary.offsets[code]
        size = dictionary.offsets[code + 1] - first
        if size == end - begin and same_bytes(dictionary.data, first, data, begin, size):
            return int(code)
        at = (at + np.uint64(1)) & mask


@bare_inner
def _simple_number(text: Bytes, begin: int, end: int, decimal: bool) -> tuple[float, int]:
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
def _is(text: Bytes, begin: int, end: int, known: Bytes) -> bool:
    if end - begin != len(known):
        return False
    i = 0
    while i < len(known) and text[begin + i] == known[i]:
        i += 1
    return i == len(known)


@bare_inner
def unescape(text: Bytes, begin: int, end: int, out: Bytes, at: int) -> int:
    """Write the text of a literal without escapes, from a place on; returns where it ends."""
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
                    out[at], out[at + 1] = 0xEF, 0xBF
                    at += 2
                    sign = 0x80 | (point & 63)
                else:
                    sign = point
        out[at] = sign
        at += 1
    return at


@bare_inner
def _write_anew(event: Encoded, draft: Draft, t: int, begin: int, end: int) -> None:
    """Write the text of a literal anew without escapes, behind all others; there is room for that."""
    at = draft.counts[BYTES]
    event.begin[t] = at
    at = unescape(event.text, begin, end, event.text, at)
    event.end[t] = at
    draft.counts[BYTES] = at


@bare_inner
def literal_at(
    event: Encoded,
    draft: Draft,
    t: int,
    begin: int,
    end: int,
    dictionary: Dictionary,
    wanted: Wanted,
    integer: Bytes,
    decimal: Bytes,
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
            _write_anew(event, draft, t, begin + 1, close)
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


@bare
def read_terms(
    event: Encoded,
    draft: Draft,
    dictionary: Dictionary,
    wanted: Wanted,
    size: int,
    integer: Bytes,
    decimal: Bytes,
    local: bool,
) -> None:
    """Find the terms in the text, and what is to be known of each."""
    count, begin = 0, 0
    text = event.text
    draft.counts[BYTES] = size
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
            literal_at(event, draft, t, begin, i, dictionary, wanted, integer, decimal)
        else:
            event.kind[t] = IRI if text[begin] == _LESS else BLANK
        if local:
            at = hash_bytes(text, begin, i) & mask
            while draft.local[at] >= 0:
                at = (at + np.uint64(1)) & mask
            draft.local[at] = t
        begin = i + 1
    draft.counts[TERMS] = count


@bare_inner
def _sort(of: Ints32, count: int, start: Ints32, by: Ints32) -> None:
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
def find_all(dictionary: Dictionary, texts: TextPool, out: Ints32) -> None:
    """Find the numbers of many texts in a dictionary, -1 for none."""
    for i in range(len(out)):
        out[i] = find_text(dictionary, texts.data, texts.offsets[i], texts.offsets[i + 1])
