"""Hot loops: which values pass tests. What floats cannot decide, and words, are left to the slow `values`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.core.searching import has_part
from headgate.xml.language.model import SIGNS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.xml.language.model import Pattern

FAILS = 0
PASSES = 1
UNDECIDED = 2

_EQUAL, _UNEQUAL, _LESS, _AT_MOST, _MORE, _AT_LEAST, _CONTAINS, _STARTS, _WORD = range(9)
_EXACT = 1 << 53
_POWERS = tuple(float(10**power) for power in range(23))
"""The powers of ten that are exact in floats: a whole number below 2^53 over one of these is rounded once."""


class Conditions(NamedTuple):
    """The tests of a pattern; those of node n are from offsets[n] to offsets[n + 1].

    `signs` are places in SIGNS. A test with a text has it in `texts`, from starts to stops; one with a number
    has a start of -1.
    """

    offsets: NDArray[np.int64]
    signs: NDArray[np.int64]
    numbers: NDArray[np.float64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    texts: NDArray[np.uint8]


def lay_tests(pattern: Pattern) -> Conditions:
    """Lay the tests of a pattern out."""
    offsets = np.zeros(len(pattern.nodes) + 1, np.int64)
    np.cumsum([len(node.tests) for node in pattern.nodes], out=offsets[1:])
    tests = [test for node in pattern.nodes for test in node.tests]
    pool = bytearray()
    starts, stops, numbers = [], [], []
    for test in tests:
        written = isinstance(test.value, str)
        starts.append(len(pool) if written else -1)
        if isinstance(test.value, str):
            pool += test.value.encode()
        stops.append(len(pool))
        numbers.append(0.0 if isinstance(test.value, str) else float(test.value))
    return Conditions(
        offsets,
        np.array([SIGNS.index(test.sign) for test in tests], np.int64),
        np.array(numbers, np.float64),
        np.array(starts, np.int64),
        np.array(stops, np.int64),
        np.frombuffer(bytes(pool), np.uint8).copy(),
    )


@bare
def sift(
    tests: Conditions,
    node: int,
    text: NDArray[np.uint8],
    begins: NDArray[np.int32],
    stops: NDArray[np.int32],
    found: NDArray[np.int32],
    start: int,
    end: int,
) -> tuple[int, bool]:
    """Move those that may pass the tests of a pattern's node to the front, of what is from start to end.

    Returns where they end now, and whether all is decided about them.
    """
    decided = True
    place = start
    for one in range(start, end):
        passes = _verdict(tests, node, text, begins[found[one]], stops[found[one]])
        if passes != FAILS:
            found[place] = found[one]
            place += 1
            decided &= passes == PASSES
    return place, decided


@bare_inner
def _verdict(tests: Conditions, node: int, text: NDArray[np.uint8], begin: int, stop: int) -> int:
    """Tell whether a value passes all tests of a pattern's node."""
    found = PASSES
    for test in range(tests.offsets[node], tests.offsets[node + 1]):
        if tests.starts[test] < 0:
            one = _number_passes(tests.signs[test], tests.numbers[test], text, begin, stop)
        else:
            start = tests.starts[test]
            one = _text_passes(tests.signs[test], tests.texts, start, tests.stops[test], text, begin, stop)
        if one == FAILS:
            return FAILS
        found = max(found, one)
    return found


@bare_inner
def _text_passes(
    sign: int,
    wanted: NDArray[np.uint8],
    start: int,
    end: int,
    text: NDArray[np.uint8],
    begin: int,
    stop: int,
) -> int:
    long, wide = stop - begin, end - start
    if sign == _CONTAINS:
        return PASSES if has_part(wanted, start, end, text, begin, stop) else FAILS
    if sign == _STARTS:
        return PASSES if long >= wide and _same(wanted, start, text, begin, wide) else FAILS
    if sign == _WORD:
        return UNDECIDED
    equal = long == wide and _same(wanted, start, text, begin, wide)
    return PASSES if equal == (sign == _EQUAL) else FAILS


@bare_inner
def _same(wanted: NDArray[np.uint8], start: int, text: NDArray[np.uint8], begin: int, wide: int) -> bool:
    for offset in range(wide):  # noqa: SIM110 -- compiled
        if wanted[start + offset] != text[begin + offset]:
            return False
    return True


@bare_inner
def _number_passes(sign: int, wanted: float, text: NDArray[np.uint8], begin: int, stop: int) -> int:
    found, exact = read_number(text, begin, stop)
    if not exact:
        return UNDECIDED
    if sign == _EQUAL:
        passes = found == wanted
    elif sign == _UNEQUAL:
        passes = found != wanted
    elif sign == _LESS:
        passes = found < wanted
    elif sign == _AT_MOST:
        passes = found <= wanted
    elif sign == _MORE:
        passes = found > wanted
    else:
        passes = found >= wanted
    return PASSES if passes else FAILS


@bare_inner
def read_number(text: NDArray[np.uint8], begin: int, stop: int) -> tuple[float, bool]:
    """Read a number as XPath does, NaN if it is none; false if it has more digits than are exact here."""
    while begin < stop and _is_blank(text[begin]):
        begin += 1
    while begin < stop and _is_blank(text[stop - 1]):
        stop -= 1
    negative = begin < stop and text[begin] == 45
    if negative:
        begin += 1
    digits = 0
    after = 0
    pointed = False
    whole = 0
    for place in range(begin, stop):
        digit = int(text[place]) - 48
        if 0 <= digit <= 9:
            digits += 1
            after += pointed
            if whole < _EXACT:
                whole = 10 * whole + digit
        elif digit == -2 and not pointed:
            pointed = True
        else:
            return np.nan, True
    if digits == 0:
        return np.nan, True
    if whole >= _EXACT or after >= len(_POWERS):
        return 0.0, False
    found = whole / _POWERS[after]
    return -found if negative else found, True


@bare_inner
def _is_blank(byte: int) -> bool:
    return byte == 32 or byte == 9 or byte == 10 or byte == 13  # noqa: PLR1714 -- compiled
