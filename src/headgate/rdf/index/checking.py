"""Hot loops: whether the checks of a filter hold for a row of bound slots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import bare_inner
from headgate.core.searching import has_part
from headgate.rdf.index.arrays import (
    AMONG,
    AS_TEXT,
    AT_LEAST,
    AT_MOST,
    DAYS,
    END,
    ENDS,
    EQUAL,
    EXACT,
    HIGH_MARKS,
    HIGH_OPEN,
    IRI,
    KIND,
    LESS,
    LITERAL,
    LOCAL_DAYS,
    LOCAL_TIMES,
    LOW_MARKS,
    LOW_OPEN,
    MORE,
    NOWHERE,
    OPAQUE,
    PAIR,
    RANGE,
    SHORT,
    STARTS,
    SUFFIX,
    TIMES,
    UNEQUAL,
    WORDS,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.rdf.index.arrays import Checks, Encoded

FALSE = 0
TRUE = 1
ASK_EXPRESSION = 2
"""All that arrays can tell holds; the opaque expressions of the filter decide."""
ASK_REFERENCE = 3
"""Arrays cannot tell."""

WIDEST = 14 * 3600.0
"""How far timezones reach, in seconds: closer times, of which one has none, cannot be compared."""
CLOSE = 1e-3
"""Differences that keys of times may not show."""


@bare_inner
def _far_inside(key: float, low: float, high: float) -> int:
    """Tell whether a time lies in a range whatever the timezone is that one of them lacks."""
    least = np.inf
    if low > -np.inf:
        least = key - low - WIDEST
    if high < np.inf:
        least = min(least, high - key - WIDEST)
    # Keys of years far off are rounded to seconds, and to hours.
    if abs(least) < CLOSE + abs(key) * 2.0**-50:
        return ASK_REFERENCE
    return TRUE if least > 0 else FALSE


@bare_inner
def range_holds(event: Encoded, term: int, line: int, low: float, high: float, flags: int) -> int:
    """Tell whether a term lies in a range; not where its key is too coarse to tell."""
    where = event.line[term]
    if where != line:
        times = (where == TIMES and line == LOCAL_TIMES) or (where == LOCAL_TIMES and line == TIMES)
        days = (where == DAYS and line == LOCAL_DAYS) or (where == LOCAL_DAYS and line == DAYS)
        return _far_inside(event.key[term], low, high) if times or days else FALSE
    key, slack, marks = event.key[term], event.slack[term], event.marks[term]
    if slack > 0:
        # What a float is compared with becomes a float first, or both doubles: what is both stays as it is.
        low_same = low == -np.inf or (flags & (LOW_MARKS * EXACT) and np.float64(np.float32(low)) == low)
        high_same = high == np.inf or (flags & (HIGH_MARKS * EXACT) and np.float64(np.float32(high)) == high)
        if low_same and high_same:
            slack = 0.0
    if key < low - slack or key > high + slack:
        return FALSE
    answer = TRUE
    if key <= low + slack and low > -np.inf:
        if slack > 0 or not marks & (flags // LOW_MARKS) & (EXACT | SHORT):
            answer = ASK_REFERENCE
        elif flags & LOW_OPEN:
            return FALSE
    if key >= high - slack and high < np.inf:
        if slack > 0 or not marks & (flags // HIGH_MARKS) & (EXACT | SHORT):
            answer = ASK_REFERENCE
        elif flags & HIGH_OPEN:
            return FALSE
    return answer


@bare_inner
def _same(a: NDArray[np.uint8], i: int, b: NDArray[np.uint8], j: int, size: int) -> bool:
    k = 0
    while k < size and a[i + k] == b[j + k]:
        k += 1
    return k == size


@bare_inner
def _text_holds(
    event: Encoded, term: int, mode: int, checks: Checks, text: int, blame: NDArray[np.uint64]
) -> int:
    """Tell whether a term's text starts or ends with some text, or contains it; counts what is searched."""
    kind = event.kind[term]
    if mode & AS_TEXT:
        if kind & (IRI | LITERAL) == 0:
            return FALSE
    elif kind != LITERAL or event.marks[term] & WORDS == 0:
        # Of literals only those with a language, and strings, are texts.
        return FALSE
    first, last = event.begin[term], event.end[term]
    begin, end = checks.text_offsets[text], checks.text_offsets[text + 1]
    size = end - begin
    if size > last - first:
        return FALSE
    how = mode & 3
    if how == STARTS:
        return TRUE if _same(event.text, first, checks.text_data, begin, size) else FALSE
    if how == ENDS:
        return TRUE if _same(event.text, last - size, checks.text_data, begin, size) else FALSE
    blame[1] += np.uint64(last - first)
    if blame[1] > blame[2]:
        # The join ends behind this row and says so: this answer is not used.
        return FALSE
    return TRUE if has_part(checks.text_data, begin, end, event.text, first, last) else FALSE


@bare_inner
def _pair_holds(event: Encoded, one: int, other: int, sign: int) -> int:
    """Compare two terms by kinds and keys."""
    if event.kind[one] != LITERAL or event.kind[other] != LITERAL:
        if sign == EQUAL:
            return TRUE if one == other else FALSE
        # Only literals have an order: the rest is an error.
        return TRUE if sign == UNEQUAL and one != other else FALSE
    if one == other:
        return ASK_EXPRESSION
    if event.line[one] != NOWHERE and event.line[one] == event.line[other]:
        left, right = event.key[one], event.key[other]
        exact = event.marks[one] & event.marks[other] & (EXACT | SHORT)
        if event.slack[one] + event.slack[other] == 0 and (left != right or exact):
            holds = left == right
            if sign == UNEQUAL:
                holds = left != right
            elif sign == LESS:
                holds = left < right
            elif sign == AT_MOST:
                holds = left <= right
            elif sign == MORE:
                holds = left > right
            elif sign == AT_LEAST:
                holds = left >= right
            return TRUE if holds else FALSE
    if sign == EQUAL and event.marks[one] & event.marks[other] & WORDS:
        # Texts that are different terms are not equal, or cannot be compared.
        return FALSE
    return ASK_EXPRESSION


@bare_inner
def checks_hold(
    event: Encoded, checks: Checks, at: int, row: NDArray[np.int32], blame: NDArray[np.uint64]
) -> int:
    """Go through checks up to their end; the slots of the one that failed, a bit each, go to `blame[0]`."""
    words = checks.words
    answer = TRUE
    while True:
        kind = words[at]
        if kind == END:
            return answer
        if kind == OPAQUE:
            answer = max(answer, ASK_EXPRESSION)
            at += 3 + words[at + 2]
            continue
        slot = words[at + 1]
        term = row[slot]
        bit = np.uint64(1) << np.uint64(slot)
        if kind == PAIR:
            found = _pair_holds(event, term, row[words[at + 2]], words[at + 3])
            if found == FALSE:
                blame[0] |= bit | np.uint64(1) << np.uint64(words[at + 2])
                return FALSE
            answer = max(answer, found)
            at += 5
        elif kind == RANGE:
            end = words[at + 3]
            found = range_holds(
                event, term, words[at + 2], checks.ends[end], checks.ends[end + 1], words[at + 4]
            )
            if found == FALSE:
                blame[0] |= bit
                return FALSE
            answer = max(answer, found)
            at += 5
        elif kind == AMONG:
            code, size = event.code[term], words[at + 2]
            low, high = at + 3, at + 3 + size
            while low < high:
                middle = (low + high) >> 1
                if words[middle] < code:
                    low = middle + 1
                else:
                    high = middle
            if low == at + 3 + size or words[low] != code:
                blame[0] |= bit
                return FALSE
            at += 3 + size
        elif kind == KIND:
            if event.kind[term] & words[at + 2] == 0:
                blame[0] |= bit
                return FALSE
            at += 3
        elif kind == SUFFIX:
            if event.kind[term] != LITERAL or event.suffix[term] != words[at + 2]:
                blame[0] |= bit
                return FALSE
            at += 3
        else:
            found = _text_holds(event, term, words[at + 2], checks, words[at + 3], blame)
            if found == FALSE:
                blame[0] |= bit
                return FALSE
            answer = max(answer, found)
            at += 4
