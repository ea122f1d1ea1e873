"""Hot loops: whether the checks of a filter hold for a row of bound slots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import bare_inner
from headgate.core.searching import has_part, same_bytes
from headgate.rdf.index.arrays import (
    AMONG,
    AS_TEXT,
    ASKED,
    AT_COUNT,
    AT_FLAGS,
    AT_LEAST,
    AT_LINE,
    AT_MODE,
    AT_MOST,
    AT_OTHER,
    AT_RANGE_ENDS,
    AT_SIGN,
    AT_SLOT,
    AT_TEXT,
    AT_VALUE,
    BLOCK,
    BY_HIGH,
    DAYS,
    DOUBT,
    DOUBT_WORDS,
    DOUBTS,
    END,
    ENDS,
    EQUAL,
    EVERYTHING,
    EXACT,
    FAILED,
    FOUND,
    FULL,
    HIGH_MARKS,
    HIGH_OPEN,
    HOW,
    IRI,
    KIND,
    LESS,
    LITERAL,
    LOCAL_DAYS,
    LOCAL_TIMES,
    LOW_MARKS,
    LOW_OPEN,
    MORE,
    MOST_ASKED,
    NOWHERE,
    OF_ANSWER,
    OF_CHECKS,
    OF_FILTER,
    OF_ROW,
    OPAQUE,
    PAIR,
    RANGE,
    ROW_KEPT,
    ROW_WORDS,
    SHORT,
    SIZES,
    SLOTS,
    STARTS,
    STEPS_TAKEN,
    SUFFIX,
    TEXT,
    TIMES,
    UNEQUAL,
    WORDS,
)

if TYPE_CHECKING:
    from headgate.core.arrays import Ints32, Words
    from headgate.rdf.index.arrays import Checks, Encoded, JoinScratch, RdfArrays


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
def _text_holds(event: Encoded, term: int, mode: int, checks: Checks, text: int, blame: Words) -> int:
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
    how = mode & HOW
    if how == STARTS:
        return TRUE if same_bytes(event.text, first, checks.text_data, begin, size) else FALSE
    if how == ENDS:
        return TRUE if same_bytes(event.text, last - size, checks.text_data, begin, size) else FALSE
    blame[ASKED] += np.uint64(last - first)
    if blame[ASKED] > blame[MOST_ASKED]:
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
def checks_hold(event: Encoded, checks: Checks, at: int, row: Ints32, blame: Words) -> int:
    """Go through checks up to their end; those of the one that failed go to `blame[FAILED]`, a bit a slot."""
    words = checks.words
    answer = TRUE
    while True:
        kind = words[at]
        if kind == END:
            return answer
        if kind == OPAQUE:
            answer = max(answer, ASK_EXPRESSION)
            at += SIZES[OPAQUE] + words[at + AT_COUNT]
            continue
        slot = words[at + AT_SLOT]
        term = row[slot]
        bit = np.uint64(1) << np.uint64(slot)
        verdict, size = TRUE, SIZES[KIND]
        if kind == PAIR:
            size = SIZES[PAIR]
            other = words[at + AT_OTHER]
            verdict = _pair_holds(event, term, row[other], words[at + AT_SIGN])
            bit |= np.uint64(1) << np.uint64(other)
        elif kind == RANGE:
            size = SIZES[RANGE]
            end = words[at + AT_RANGE_ENDS]
            low_end, high_end = checks.ends[end], checks.ends[end + 1]
            verdict = range_holds(event, term, words[at + AT_LINE], low_end, high_end, words[at + AT_FLAGS])
        elif kind == AMONG:
            code, low = event.code[term], at + SIZES[AMONG]
            size = SIZES[AMONG] + words[at + AT_COUNT]
            high = at + size
            while low < high:
                middle = (low + high) >> 1
                if words[middle] < code:
                    low = middle + 1
                else:
                    high = middle
            if low == at + size or words[low] != code:
                verdict = FALSE
        elif kind == KIND:
            if event.kind[term] & words[at + AT_VALUE] == 0:
                verdict = FALSE
        elif kind == SUFFIX:
            if event.kind[term] != LITERAL or event.suffix[term] != words[at + AT_VALUE]:
                verdict = FALSE
        else:
            size = SIZES[TEXT]
            verdict = _text_holds(event, term, words[at + AT_MODE], checks, words[at + AT_TEXT], blame)
        if verdict == FALSE:
            blame[FAILED] |= bit
            return FALSE
        answer = max(answer, verdict)
        at += size


@bare_inner
def _emit(
    arrays: RdfArrays, event: Encoded, scratch: JoinScratch, entry: int, epoch: int, answer: int
) -> int:
    """Check an entry for the row, and note the answer; returns 1 if it is settled, else 0."""
    number = arrays.entries.number[entry]
    if scratch.seen[number] == epoch:
        return 0
    at = arrays.entries.checks[entry]
    if at:
        verdict = checks_hold(event, arrays.checks, at, scratch.row, scratch.blame)
        answer = verdict if verdict == FALSE else max(verdict, answer)
    if answer == FALSE:
        return 0
    if answer == TRUE:
        scratch.seen[number] = epoch
        scratch.out[scratch.counts[FOUND]] = number
        scratch.counts[FOUND] += 1
        return 1
    doubts, rows = scratch.counts[DOUBTS], scratch.counts[ROW_WORDS]
    if answer == ASK_REFERENCE:
        # Once is enough: the reference looks at the whole event.
        scratch.seen[number] = epoch
    else:
        scratch.blame[FAILED] = EVERYTHING
    if scratch.counts[ROW_KEPT] == 0:
        scratch.counts[ROW_KEPT] = 1
        scratch.counts[ROW_WORDS] = rows + SLOTS
        scratch.counts[STEPS_TAKEN] += DOUBT
        for slot in range(SLOTS):
            scratch.rows[rows + slot] = scratch.row[slot]
    doubt = scratch.doubts[DOUBT_WORDS * doubts : DOUBT_WORDS * (doubts + 1)]
    doubt[OF_FILTER], doubt[OF_ROW] = number, scratch.counts[ROW_WORDS] - SLOTS
    doubt[OF_ANSWER], doubt[OF_CHECKS] = answer, at
    scratch.counts[DOUBTS] = doubts + 1
    return 1 if answer == ASK_REFERENCE else 0


@bare_inner
def _all_seen(arrays: RdfArrays, scratch: JoinScratch, begin: int, end: int, epoch: int) -> bool:
    """Tell whether all is known of some entries."""
    entry = begin
    while entry < end and scratch.seen[arrays.entries.number[entry]] == epoch:
        entry += 1
    return entry == end


@bare_inner
def enter(
    arrays: RdfArrays, event: Encoded, scratch: JoinScratch, pattern: int, epoch: int, some: bool
) -> int:
    """Ask the entries of a pattern for the row; returns how many were settled, or FULL and asks none.

    With `some`, groups of which all is known are not to blame for anything.
    """
    patterns, groups = arrays.patterns, arrays.groups
    begin, end = patterns.entry_start[pattern], patterns.entry_start[pattern + 1]
    first, last = patterns.group_start[pattern], patterns.group_start[pattern + 1]
    free = groups.entry[first] if first < last else end
    doubts, rows = scratch.counts[DOUBTS] + end - begin, scratch.counts[ROW_WORDS] + SLOTS
    if DOUBT_WORDS * doubts > len(scratch.doubts) or rows > len(scratch.rows):
        return FULL
    settled = 0
    scratch.counts[ROW_KEPT] = 0
    scratch.blame[FAILED] = np.uint64(0)
    asked = free - begin
    for entry in range(begin, free):
        settled += _emit(arrays, event, scratch, entry, epoch, TRUE)
    for g in range(first, last):
        term = scratch.row[groups.slot[g]]
        line = groups.line[g]
        if some and _all_seen(arrays, scratch, groups.entry[g], groups.entry[g] + groups.size[g], epoch):
            continue
        scratch.blame[FAILED] |= np.uint64(1) << np.uint64(groups.slot[g])
        if event.line[term] == 0:
            continue
        low, high = 0, groups.size[g]
        at, entry = groups.range_at[g], groups.entry[g]
        if event.line[term] == line:
            # Ranges that begin above the value, or end below it, are cut off.
            size = high
            key = event.key[term]
            slack = event.slack[term]
            if groups.order[g] == BY_HIGH:
                least = key - slack
                while low < high:
                    middle = (low + high) >> 1
                    if groups.high[at + middle] < least:
                        low = middle + 1
                    else:
                        high = middle
                high = size
            else:
                most = key + slack
                while low < high:
                    middle = (low + high) >> 1
                    if groups.low[at + middle] <= most:
                        low = middle + 1
                    else:
                        high = middle
                low = 0
        asked += high - low
        block = -1
        i = low
        while i < high:
            if i // BLOCK != block and event.line[term] == line:
                block = i // BLOCK
                if groups.top[groups.block_at[g] + block] < event.key[term] - event.slack[term]:
                    i = (block + 1) * BLOCK
                    continue
            answer = range_holds(
                event, term, line, groups.low[at + i], groups.high[at + i], groups.flags[at + i]
            )
            if answer != FALSE:
                settled += _emit(arrays, event, scratch, entry + i, epoch, answer)
            i += 1
    scratch.blame[ASKED] += np.uint64(asked)
    return settled
