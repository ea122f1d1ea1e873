"""Hot loops: whether values pass tests, of all filters at the nodes of a path, and of one pattern.

What floats cannot decide, and words, are left to the slow `values`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.core.searching import has_part, same_bytes
from headgate.xml.index.arrays import AT_LEAST, AT_MOST, CONTAINING, EQUAL, LESS, MORE, STARTING, UNEQUAL
from headgate.xml.index.scratch import ALL, HARD, LETTERS, MOST, NO, SETS, SOME, TRUTHS
from headgate.xml.language.model import SIGNS, WORD

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes, Floats64, Ints, Ints32
    from headgate.xml.events.document import Document
    from headgate.xml.index.arrays import Tests
    from headgate.xml.index.scratch import DocumentScratch, IndexScratch, Lists
    from headgate.xml.language.model import Pattern

NONE, NO_ROOM, NO_PAIRS, NO_TIME = -1, -2, -3, -4
FAILS = 0
PASSES = 1
UNDECIDED = 2

_WORD = SIGNS.index(WORD)
_MINUS, _POINT, _ZERO, _BLANK, _TAB, _NEWLINE, _RETURN = b"-.0 \t\n\r"
_EXACT = 1 << 53
_POWERS = tuple(float(10**power) for power in range(23))
"""The powers of ten that are exact in floats: a whole number below 2^53 over one of these is rounded once."""


@bare_inner
def read_number(text: Bytes, begin: int, stop: int) -> tuple[float, bool]:
    """Read a number as XPath does, NaN if it is none; false if it has more digits than are exact here."""
    while begin < stop and _is_blank(text[begin]):
        begin += 1
    while begin < stop and _is_blank(text[stop - 1]):
        stop -= 1
    negative = begin < stop and text[begin] == _MINUS
    if negative:
        begin += 1
    digits = 0
    after = 0
    pointed = False
    whole = 0
    for at in range(begin, stop):
        digit = int(text[at]) - _ZERO
        if 0 <= digit <= 9:
            digits += 1
            after += pointed
            if whole < _EXACT:
                whole = 10 * whole + digit
        elif text[at] == _POINT and not pointed:
            pointed = True
        else:
            return np.nan, True
    if digits == 0:
        return np.nan, True
    if whole >= _EXACT or after >= len(_POWERS):
        return np.nan, False
    value = whole / _POWERS[after]
    return -value if negative else value, True


@bare_inner
def _is_blank(byte: int) -> bool:
    return byte == _BLANK or byte == _TAB or byte == _NEWLINE or byte == _RETURN  # noqa: PLR1714 -- compiled


@bare_inner
def _text_holds(sign: int, wanted: Bytes, first: int, last: int, text: Bytes, begin: int, end: int) -> bool:
    size = last - first
    if sign == CONTAINING:
        return has_part(wanted, first, last, text, begin, end)
    if end - begin < size or (sign != STARTING and end - begin != size):
        return bool(sign == UNEQUAL)
    return same_bytes(text, begin, wanted, first, size) != (sign == UNEQUAL)


@bare_inner
def _number_holds(sign: int, value: float, wanted: float) -> bool:
    if sign == EQUAL:
        return value == wanted
    if sign == UNEQUAL:
        return value != wanted
    if sign == LESS:
        return value < wanted
    if sign == AT_MOST:
        return value <= wanted
    if sign == MORE:
        return value > wanted
    return sign == AT_LEAST and value >= wanted


@bare_inner
def _number_of(document: Document, sized: DocumentScratch, fixed: IndexScratch, n: int) -> float:
    """Return the number that a node reads as; one that only Python reads is noted, and NaN for now."""
    if sized.known[n] == 0:
        value, exact = read_number(document.text, document.begins[n], document.stops[n])
        sized.known[n], sized.value[n] = 1 if exact else 2, value
        if not exact:
            sized.hard[fixed.counts[HARD]] = n
            fixed.counts[HARD] += 1
    return float(sized.value[n])


@bare_inner
def ask_tests(
    tests: Tests,
    document: Document,
    sized: DocumentScratch,
    fixed: IndexScratch,
    lists: Lists,
    s: int,
    p: int,
) -> tuple[int, int]:
    """Ask a set of tests about all nodes of a path, once.

    Returns where the answers begin in `truths`, NONE if they are all the same, or NO_ROOM, NO_PAIRS or
    NO_TIME; and what is known by that: NO, SOME or ALL.
    """
    if fixed.skip[s]:
        return NONE, NO
    slot, count = fixed.set_place[s], fixed.counts[SETS]
    if slot < count and lists.set_of[slot] == s and lists.set_path[slot] == p:
        return int(lists.set_truth[slot]), int(lists.set_known[slot])
    begin, nodes = sized.node_start[p], sized.node_start[p + 1] - sized.node_start[p]
    at = fixed.counts[TRUTHS]
    if count >= len(lists.set_of):
        return NO_PAIRS, NO
    if at + nodes > len(lists.truths):
        return NO_ROOM, NO
    held, letters = 0, 0
    left = fixed.counts[MOST] - fixed.counts[LETTERS]
    text = document.text
    for i in range(nodes):
        n = sized.node[begin + i]
        holds = True
        for m in range(tests.set_start[s], tests.set_start[s + 1]):
            k = tests.member[m]
            if tests.text[k] >= 0:
                if tests.sign[k] == CONTAINING:
                    letters += document.stops[n] - document.begins[n]
                    if letters > left:
                        lists.set_of[count], lists.set_letters[count] = s, letters
                        fixed.counts[SETS] = count + 1
                        return NO_TIME, NO
                text = tests.text[k]
                first, end = tests.text_offsets[text], tests.text_offsets[text + 1]
                holds = _text_holds(
                    tests.sign[k],
                    tests.text_data,
                    first,
                    end,
                    document.text,
                    document.begins[n],
                    document.stops[n],
                )
            else:
                value = _number_of(document, sized, fixed, n)
                holds = _number_holds(tests.sign[k], value, tests.number[k])
            if not holds:
                break
        lists.truths[at + i] = holds
        held += holds
    known = NO if held == 0 else ALL if held == nodes else SOME
    if known == SOME:
        fixed.counts[TRUTHS] = at + nodes
    else:
        at = NONE
    lists.set_of[count], lists.set_path[count] = s, p
    lists.set_truth[count], lists.set_known[count], lists.set_letters[count] = at, known, letters
    fixed.counts[LETTERS] += letters
    fixed.set_place[s] = count
    fixed.counts[SETS] = count + 1
    return int(at), known


class Conditions(NamedTuple):
    """The tests of a pattern; those of node n are from offsets[n] to offsets[n + 1].

    `signs` are places in SIGNS. A test with a text has it in `texts`, from starts to stops; one with a number
    has a start of -1.
    """

    offsets: Ints
    signs: Ints
    numbers: Floats64
    starts: Ints
    stops: Ints
    texts: Bytes


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
    text: Bytes,
    begins: Ints32,
    stops: Ints32,
    nodes: Ints32,
    start: int,
    end: int,
) -> tuple[int, bool]:
    """Move those that may pass the tests of a pattern's node to the front, of what is from start to end.

    Returns where they end now, and whether all is decided about them.
    """
    decided = True
    count = start
    for one in range(start, end):
        passes = _verdict(tests, node, text, begins[nodes[one]], stops[nodes[one]])
        if passes != FAILS:
            nodes[count] = nodes[one]
            count += 1
            decided &= passes == PASSES
    return count, decided


@bare_inner
def _verdict(tests: Conditions, node: int, text: Bytes, begin: int, stop: int) -> int:
    """Tell whether a value passes all tests of a pattern's node."""
    verdict = PASSES
    for test in range(tests.offsets[node], tests.offsets[node + 1]):
        sign, start = tests.signs[test], tests.starts[test]
        if sign == _WORD:
            verdict = UNDECIDED
            continue
        if start < 0:
            value, exact = read_number(text, begin, stop)
            if not exact:
                verdict = UNDECIDED
                continue
            holds = _number_holds(sign, value, tests.numbers[test])
        else:
            holds = _text_holds(sign, tests.texts, start, tests.stops[test], text, begin, stop)
        if not holds:
            return FAILS
    return verdict
