"""Hot loops: whether tests hold for the nodes of a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import bare_inner
from headgate.core.searching import has_part
from headgate.xml.index.arrays import AT_LEAST, AT_MOST, CONTAINING, EQUAL, LESS, MORE, STARTING, UNEQUAL
from headgate.xml.index.scratch import ALL, HARD, LETTERS, MOST, NO, SETS, SOME, TRUTHS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.xml.events.document import Document
    from headgate.xml.index.arrays import Tests
    from headgate.xml.index.scratch import DocumentScratch, IndexScratch, Lists

NONE, NO_ROOM, NO_PAIRS, NO_TIME = -1, -2, -3, -4
_DIGITS = 15
"""So many digits are a whole number that floats hold, and so is the power of ten: their quotient is exact."""
_EXACT, _HARD = 1, 2


@bare_inner
def read_number(text: NDArray[np.uint8], begin: int, end: int) -> tuple[int, float]:
    """Read a number as XPath does, NaN for none; _HARD if it has too many digits for that."""
    while begin < end and (text[begin] == 32 or 9 <= text[begin] <= 10 or text[begin] == 13):
        begin += 1
    while end > begin and (text[end - 1] == 32 or 9 <= text[end - 1] <= 10 or text[end - 1] == 13):
        end -= 1
    negative = begin < end and text[begin] == 45
    if negative:
        begin += 1
    whole, digits, behind, points = 0, 0, 0, 0
    for i in range(begin, end):
        sign = text[i]
        if sign == 46:
            points += 1
        elif 48 <= sign <= 57:
            digits += 1
            behind += points
            if digits <= _DIGITS:
                whole = 10 * whole + int(sign) - 48
        else:
            return _EXACT, np.nan
    if digits == 0 or points > 1:
        return _EXACT, np.nan
    if digits > _DIGITS:
        return _HARD, np.nan
    power = 1.0
    for _ in range(behind):
        power *= 10.0
    found = whole / power
    return _EXACT, -found if negative else found


@bare_inner
def _number_of(document: Document, sized: DocumentScratch, fixed: IndexScratch, n: int) -> float:
    """Return the number that a node reads as; one that only Python reads is noted, and NaN for now."""
    if sized.known[n] == 0:
        known, value = read_number(document.text, document.begins[n], document.stops[n])
        sized.known[n], sized.value[n] = known, value
        if known == _HARD:
            sized.hard[fixed.counts[HARD]] = n
            fixed.counts[HARD] += 1
    return float(sized.value[n])


@bare_inner
def _text_holds(tests: Tests, k: int, text: NDArray[np.uint8], begin: int, end: int) -> bool:
    first = tests.text_offsets[tests.text[k]]
    size = tests.text_offsets[tests.text[k] + 1] - first
    sign = tests.sign[k]
    if sign == CONTAINING:
        return has_part(tests.text_data, first, first + size, text, begin, end)
    if end - begin < size or (sign != STARTING and end - begin != size):
        return bool(sign == UNEQUAL)
    i = 0
    while i < size and text[begin + i] == tests.text_data[first + i]:
        i += 1
    return bool((i == size) != (sign == UNEQUAL))


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
    place, count = fixed.set_place[s], fixed.counts[SETS]
    if place < count and lists.set_of[place] == s and lists.set_path[place] == p:
        return int(lists.set_truth[place]), int(lists.set_known[place])
    begin, nodes = sized.node_start[p], sized.node_start[p + 1] - sized.node_start[p]
    at = fixed.counts[TRUTHS]
    if count >= len(lists.set_of):
        return NO_PAIRS, NO
    if at + nodes > len(lists.truths):
        return NO_ROOM, NO
    held, letters = 0, 0
    left = fixed.counts[MOST] - fixed.counts[LETTERS]
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
                holds = _text_holds(tests, k, document.text, document.begins[n], document.stops[n])
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
