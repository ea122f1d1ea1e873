"""Texts that differ in their numbers only, and these numbers in columns.

    price BETWEEN 1.5 AND 20.0 AND size > 7
    price BETWEEN 0.9 AND 3.5 AND size > 12      one family, numbers (1.5, 20.0, 7) and (0.9, 3.5, 12)

A number is what `shapes` takes for one, with at most 15 digits, and written as it would be printed. Texts of
a family are the same, byte for byte, around their numbers; each number has the sign and the kind, whole or
with a point, that it has in the others. So whatever the parser makes of one text, it makes of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import inner, kernel
from headgate.records.programs.programs import starts
from headgate.records.programs.shapes import MAX_TEXT

if TYPE_CHECKING:
    from headgate.core.arrays import Bools, Bytes, Ints, Words
    from headgate.core.interning import TextPool


LEAST = 32
"""Texts that make a family: fewer are read one by one."""
DIGITS = 15
_QUOTE, _MINUS, _POINT, _ZERO, _NINE = (ord(sign) for sign in "'-.09")
_SPACE, _TAB, _LINE, _RETURN, _OPEN, _CLOSE, _COMMA, _LESS, _GREATER = (ord(sign) for sign in " \t\n\r(),<>")


class Numbers(NamedTuple):
    """The numbers in texts: those of text t are numbers start[t]:start[t + 1].

    Number i is mantissa[i] / 10**scale[i] and stands at data[at[i]:end[i]] of the texts.
    """

    start: Ints
    mantissa: Ints
    scale: Bytes
    at: Ints
    end: Ints


class Family(NamedTuple):
    """Texts that differ in numbers only: their places, rising, and by text and number what it is."""

    rows: Ints
    mantissa: Ints
    scale: Bytes
    at: Ints
    end: Ints


def find_families(texts: TextPool, least: int = LEAST) -> tuple[list[Family], Ints]:
    """Find all families of at least so many texts; returns them, and the texts that are in none.

    >>> from headgate.core.interning import TextPool
    >>> found, rest = find_families(TextPool.build(["a > 1", "a > 25", "b > 1", "a > 1.5"]), 2)
    >>> [family.rows.tolist() for family in found], found[0].mantissa.tolist(), rest.tolist()
    ([[0, 1]], [[1], [25]], [2, 3])
    """
    if texts.size < least:
        return [], np.arange(texts.size)
    digests, numbers = read_numbers(texts)
    taken = np.zeros(texts.size, np.bool_)
    order = np.argsort(digests, kind="stable")
    edges = np.flatnonzero(np.diff(digests[order], prepend=digests[order[:1]] + np.uint64(1)))
    families = []
    for first, last in zip(edges.tolist(), [*edges[1:].tolist(), len(order)], strict=True):
        if last - first < least or digests[order[first]] == 0:
            continue
        rows = order[first:last]
        alike = np.zeros(len(rows), np.bool_)
        _compare(*_as_read(texts), numbers, rows, alike)
        rows = rows[alike]
        width = int(numbers.start[rows[0] + 1] - numbers.start[rows[0]])
        places = numbers.start[rows][:, None] + np.arange(width)
        _, mantissa, scale, at, end = numbers
        families.append(Family(rows, mantissa[places], scale[places], at[places], end[places]))
        taken[rows] = True
    return families, np.flatnonzero(~taken)


def read_numbers(texts: TextPool) -> tuple[Words, Numbers]:
    """Read the numbers of texts, and sum up all else of each in 64 bits; 0 if one is not read here."""
    counts = np.zeros(texts.size, np.int64)
    digests = np.zeros(texts.size, np.uint64)
    given = (*_as_read(texts), MAX_TEXT, counts, digests)
    _scan(*given, _empty(np.zeros(1, np.int64)), 0)
    numbers = _empty(starts(counts))
    _scan(*given, numbers, 1)
    return digests, numbers


def _empty(start: Ints) -> Numbers:
    mantissa, at, end = (np.zeros(int(start[-1]), np.int64) for _ in range(3))
    return Numbers(start, mantissa, np.zeros(len(at), np.uint8), at, end)


def _as_read(texts: TextPool) -> tuple[Bytes, Ints]:
    """Return the arrays of texts as kernels know them, wherever they lie."""
    arrays = texts.data.view(), texts.offsets.view()
    for array in arrays:
        array.flags.writeable = False
    return arrays


@inner
def _blank(sign: int) -> bool:
    return sign in (_SPACE, _RETURN) or _TAB <= sign <= _LINE


@inner
def _opens(sign: int) -> bool:
    """Tell whether a minus may follow a sign: a blank, a parenthesis or a comma."""
    return _blank(sign) or sign in (_OPEN, _COMMA)


@inner
def _may_begin(sign: int) -> bool:
    """Tell whether a number may follow a sign: a blank, a parenthesis, a comma, or < = >."""
    return _opens(sign) or _LESS <= sign <= _GREATER


@inner
def _digits(data: Bytes, at: int, stop: int, mantissa: int, digits: int) -> tuple[int, int, int]:
    """Read digits: where they end, the mantissa with them, and how many it has without zeros before it."""
    i = at
    while i < stop and _ZERO <= data[i] <= _NINE:
        if digits or data[i] != _ZERO:
            digits += 1
        if digits <= DIGITS:
            mantissa = 10 * mantissa + (int(data[i]) - _ZERO)
        i += 1
    return i, mantissa, digits


@inner
def _number(data: Bytes, at: int, stop: int) -> tuple[int, int, int, bool]:
    """Read a number without its sign: where it ends, its mantissa and scale, and whether it may be taken.

    Where it ends is `at` if this is none: names, exponents and suffixes are left as they are.
    """
    i, mantissa, digits = _digits(data, at, stop, 0, 0)
    plain = i == at + 1 or data[at] != _ZERO
    scale = 0
    if i + 1 < stop and data[i] == _POINT and _ZERO <= data[i + 1] <= _NINE:
        point = i
        i, mantissa, digits = _digits(data, point + 1, stop, mantissa, digits)
        scale = i - point - 1
    if i < stop and not (_blank(data[i]) or data[i] in (_CLOSE, _COMMA)):
        return at, 0, 0, False
    return i, mantissa, scale, plain and digits <= DIGITS and scale <= DIGITS


@kernel
def _scan(
    data: Bytes, offsets: Ints, longest: int, counts: Ints, digests: Words, numbers: Numbers, fill: int
) -> None:
    """Count the numbers of each text and sum up the rest, or, with `fill`, write the numbers down."""
    for t in range(len(offsets) - 1):
        first, stop = offsets[t], offsets[t + 1]
        if stop - first > longest or (fill and digests[t] == 0):
            continue
        digest, count, quoted, taken = np.uint64(0x9E3779B97F4A7C15), 0, False, True
        i = first
        while i < stop:
            sign = data[i]
            if sign == _QUOTE:
                quoted = not quoted
            mark = np.uint64(sign)
            after = i + 1
            if not quoted and i > first and (_ZERO <= sign <= _NINE or sign == _MINUS):
                before = data[i - 1]
                negative = sign == _MINUS
                begin = i + 1 if negative else i
                fits = _opens(before) if negative else _may_begin(before)
                if fits and begin < stop and _ZERO <= data[begin] <= _NINE:
                    end, mantissa, scale, good = _number(data, begin, stop)
                    if end > begin:
                        # -0 is printed as 0.
                        taken = taken and good and not (negative and scale == 0 and mantissa == 0)
                        if fill:
                            place = numbers.start[t] + count
                            numbers.mantissa[place] = -mantissa if negative else mantissa
                            numbers.scale[place] = scale
                            numbers.at[place], numbers.end[place] = i, end
                        count += 1
                        after = end
                        mark = np.uint64(1 + int(negative) + 2 * int(scale > 0))
            digest = (digest ^ mark) * np.uint64(0x100000001B3)
            digest ^= digest >> np.uint64(29)
            i = after
        if not fill:
            if taken:
                digests[t] = digest or np.uint64(1)
                counts[t] = count
            else:
                digests[t] = np.uint64(0)


@kernel
def _compare(data: Bytes, offsets: Ints, numbers: Numbers, rows: Ints, alike: Bools) -> None:
    """Tell which texts are like the first: digests may be the same by chance."""
    model = rows[0]
    width = numbers.start[model + 1] - numbers.start[model]
    for r in range(len(rows)):
        own = rows[r]
        if numbers.start[own + 1] - numbers.start[own] != width:
            continue
        same = True
        i, j = offsets[model], offsets[own]
        for n in range(width + 1):
            a, b = numbers.start[model] + n, numbers.start[own] + n
            upto = numbers.at[a] if n < width else offsets[model + 1]
            until = numbers.at[b] if n < width else offsets[own + 1]
            if upto - i != until - j:
                same = False
                break
            while i < upto and data[i] == data[j]:
                i += 1
                j += 1
            if i < upto:
                same = False
                break
            if n < width:
                if (data[upto] == _MINUS) != (data[until] == _MINUS):
                    same = False
                    break
                if (numbers.scale[a] > 0) != (numbers.scale[b] > 0):
                    same = False
                    break
                i, j = numbers.end[a], numbers.end[b]
        alike[r] = same
