"""Hot loops: names and references in the bytes of a document, for `scanning`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.core.searching import same_bytes

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes, Ints32, Words

_LESS, _EQUALS, _GREATER, _SLASH, _COLON = b"<=>/:"
_AND, _NUMBER_SIGN, _SEMICOLON, _QUOTE, _APOSTROPHE = b"&#;\"'"
_ZERO, _NINE, _A, _F, _X = b"09afx"
_BLANK = 32
"""What is not above is a blank; as a bit, it makes letters small."""
_XMLNS, _LT, _GT, _AMP, _APOS, _QUOT = map(tuple, (b"xmlns", b"lt", b"gt", b"amp", b"apos", b"quot"))
_FIRST_HASH = np.uint64(14695981039346656037)
_PRIME = np.uint64(1099511628211)
_MOST_TRIED = 256
"""At least half of the slots are free: a few are tried, unless names were chosen for their hashes."""


@bare_inner
def _stands(data: Bytes, at: int, name: tuple[int, ...]) -> bool:
    """Tell whether a name stands at a place, before which the data do not end."""
    for offset in range(len(name)):  # noqa: SIM110 -- compiled
        if data[at + offset] != name[offset]:
            return False
    return True


@bare_inner
def name_end(data: Bytes, at: int) -> int:
    """Find where a name ends: before a blank, a slash, a > or a =."""
    size = len(data)
    while at < size:
        byte = data[at]
        if byte <= _BLANK or byte in (_SLASH, _GREATER, _EQUALS):
            break
        at += 1
    return at


@bare_inner
def blank_end(data: Bytes, at: int) -> int:
    """Find where blanks end."""
    size = len(data)
    while at < size and data[at] <= _BLANK:
        at += 1
    return at


@bare_inner
def behind(data: Bytes, at: int, first: int, second: int) -> int:
    """Find what is behind the next `first second >`; a negative `first` is any byte."""
    size = len(data)
    while at < size:
        if data[at] == _GREATER and data[at - 1] == second and (first < 0 or data[at - 2] == first):
            return at + 1
        at += 1
    return size


@bare_inner
def declares(data: Bytes, start: int, stop: int) -> bool:
    """Tell whether a name is xmlns, or begins with xmlns and a colon."""
    size = len(_XMLNS)
    if stop - start < size or (stop - start > size and data[start + size] != _COLON):
        return False
    return _stands(data, start, _XMLNS)


class NameTable(NamedTuple):
    """Names by number: where each is in the document, and its kind; `slots` finds one by its hash."""

    slots: Ints32
    hashes: Words
    starts: Ints32
    stops: Ints32
    kinds: Bytes


@bare
def intern(data: Bytes, start: int, stop: int, kind: int, names: NameTable, named: int) -> int:
    """Number a name; a new one gets the number `named`, or -1 if there are as many as may be.

    Names that are made to collide are refused too: each time that one comes, all others would be tried.
    """
    hashed = _FIRST_HASH ^ np.uint64(kind)
    for at in range(start, stop):
        hashed = (hashed ^ np.uint64(data[at])) * _PRIME
    slots = names.slots
    last = np.uint64(len(slots) - 1)
    slot = np.int64((hashed ^ (hashed >> np.uint64(32))) & last)
    tried = 0
    while slots[slot] > 0:
        name = slots[slot] - 1
        first, size = names.starts[name], names.stops[name] - names.starts[name]
        alike = names.hashes[name] == hashed and names.kinds[name] == kind and size == stop - start
        if alike and same_bytes(data, first, data, start, size):
            return int(name)
        slot = (slot + 1) & (len(slots) - 1)
        tried += 1
        if tried == _MOST_TRIED:
            return -1
    if named == len(names.hashes):
        return -1
    slots[slot] = named + 1
    names.hashes[named] = hashed
    names.starts[named], names.stops[named], names.kinds[named] = start, stop, kind
    return named


@bare
def reference(data: Bytes, offset: int, out: Bytes, length: int) -> tuple[int, int]:
    """Write what a reference at a place stands for; return what is behind both, or minus the place.

    What is written is never longer than the reference: &#9; is one byte, &#x10FFFF; is four.
    """
    size = len(data)
    stop = offset + 1
    while stop < size and data[stop] != _SEMICOLON and stop - offset < 40:
        stop += 1
    if stop >= size or data[stop] != _SEMICOLON:
        return -offset, length
    wide = stop - offset - 1
    name = offset + 1
    code = -1
    if data[name] == _NUMBER_SIGN:
        code = 0
        hexadecimal = wide > 1 and data[offset + 2] == _X
        for at in range(offset + 3 if hexadecimal else offset + 2, stop):
            digit = int(data[at])
            if _ZERO <= digit <= _NINE:
                digit -= _ZERO
            elif hexadecimal and _A <= (digit | _BLANK) <= _F:
                digit = (digit | _BLANK) - _A + 10
            else:
                return -offset, length
            code = min(code * (16 if hexadecimal else 10) + digit, 1 << 24)
        if code > 0x10FFFF:
            return -offset, length
    elif wide == len(_LT) and _stands(data, name, _LT):
        code = _LESS
    elif wide == len(_GT) and _stands(data, name, _GT):
        code = _GREATER
    elif wide == len(_AMP) and _stands(data, name, _AMP):
        code = _AND
    elif wide == len(_APOS) and _stands(data, name, _APOS):
        code = _APOSTROPHE
    elif wide == len(_QUOT) and _stands(data, name, _QUOT):
        code = _QUOTE
    if code < 0:
        return -offset, length
    if code < 0x80:
        out[length] = code
        length += 1
    elif code < 0x800:
        out[length] = 0xC0 | (code >> 6)
        out[length + 1] = 0x80 | (code & 63)
        length += 2
    elif code < 0x10000:
        out[length] = 0xE0 | (code >> 12)
        out[length + 1] = 0x80 | ((code >> 6) & 63)
        out[length + 2] = 0x80 | (code & 63)
        length += 3
    else:
        out[length] = 0xF0 | (code >> 18)
        out[length + 1] = 0x80 | ((code >> 12) & 63)
        out[length + 2] = 0x80 | ((code >> 6) & 63)
        out[length + 3] = 0x80 | (code & 63)
        length += 4
    return stop + 1, length
