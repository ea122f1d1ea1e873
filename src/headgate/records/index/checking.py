"""Parts of filters as words of the stream, and hot loops: whether they hold for an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import bare, bare_inner, kernel
from headgate.records.index.arrays import (
    ACCEPT,
    ALL_OPS,
    ANY_OPS,
    ANY_POINT,
    COUNT_SHIFT,
    GLOB_OP,
    KIND_SHIFT,
    LED,
    LEFT_OUT,
    LINE_MASK,
    LINE_SHIFT,
    MOST_COUNTED,
    NOT_GLOB_OP,
    NOT_LINE,
    OP_MASK,
    POINT,
    POINTS,
    RANGE,
    RANGES,
    SHAPE_MASK,
    TREE,
    TRUE_OP,
)
from headgate.records.language.patterns import ANY_CHARACTER, ANY_TEXT
from headgate.records.programs.programs import GLOB, VALUE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Ints, Ints32
    from headgate.records.index.arrays import Events, RecordArrays
    from headgate.records.index.lines import Parts


@kernel
def _points(parts: Parts, p: int) -> int:
    """Count the codes of a part, or -1 if pairs of ends are shorter."""
    first, last = parts.set_start[p], parts.set_start[p + 1]
    total = 0
    for i in range(first, last):
        total += parts.set_high[i] - parts.set_low[i] + 1
    return total if 0 < total < 2 * (last - first) else -1


@kernel
def _size(count: int, total: int) -> int:
    """Count the words of a set of so many intervals, with so many codes."""
    points = total if 0 < total < 2 * count else -1
    if points == 1:
        return 2
    if count == 1 and points < 0:
        return 3
    n, each = (points, 1) if points > 0 else (count, 2)
    return 1 + n * each + (1 if n == 0 or n > MOST_COUNTED else 0)


@kernel
def name_left_out(
    parts: Parts, line_base: Ints32, line_multi: Bytes, start: Ints, line: Ints32, low: Ints32, high: Ints32
) -> int:
    """Write the sets of parts, or what they leave out, if that is shorter; returns the intervals.

    With no room in `low`, only counts. A part that is written by what it leaves out has NOT_LINE in its line.
    """
    fill = len(low) > 0
    n = 0
    for p in range(len(parts.part_line)):
        first, last = parts.set_start[p], parts.set_start[p + 1]
        own = parts.part_line[p]
        line[p] = own
        if own >= 0 and not line_multi[own] and parts.part_kind[p] == VALUE and last > first:
            codes = line_base[own + 1] - line_base[own]
            total, gaps = 0, 0
            before = 0
            for i in range(first, last):
                total += parts.set_high[i] - parts.set_low[i] + 1
                gaps += parts.set_low[i] > before + 1
                before = parts.set_high[i]
            gaps += before < codes - 1
            outside = codes - 1 - total
            if parts.set_low[first] > 0 and gaps and _size(gaps, outside) < _size(last - first, total):
                line[p] = own | (1 << NOT_LINE)
                before = 0
                for i in range(first, last + 1):
                    until = parts.set_low[i] if i < last else codes
                    if until > before + 1:
                        if fill:
                            low[n], high[n] = before + 1, until - 1
                        n += 1
                    if i < last:
                        before = parts.set_high[i]
                start[p + 1] = n
                continue
        if fill:
            for i in range(first, last):
                low[n + i - first], high[n + i - first] = parts.set_low[i], parts.set_high[i]
        n += last - first
        start[p + 1] = n
    return n


@kernel
def check_words(parts: Parts, words: Ints) -> None:
    """Count the words of each part."""
    for p in range(len(words)):
        total = 0
        for i in range(parts.set_start[p], parts.set_start[p + 1]):
            total += parts.set_high[i] - parts.set_low[i] + 1
        words[p] = 1 if parts.part_line[p] < 0 else _size(parts.set_start[p + 1] - parts.set_start[p], total)


@kernel
def write_check(parts: Parts, p: int, out: Ints32) -> int:
    """Write a part; returns its words."""
    kind = parts.part_kind[p]
    if parts.part_line[p] < 0:
        out[0] = (GLOB_OP if kind == GLOB else NOT_GLOB_OP) | (parts.part_glob[p] << LINE_SHIFT)
        return 1
    first, last = parts.set_start[p], parts.set_start[p + 1]
    head = (np.int32(kind) << KIND_SHIFT) | (parts.part_line[p] << LINE_SHIFT)
    points = _points(parts, p)
    if points == 1:
        out[0], out[1] = head | POINT, parts.set_low[first]
        return 2
    if last - first == 1 and points < 0:
        out[0], out[1], out[2] = head | RANGE, parts.set_low[first], parts.set_high[first]
        return 3
    n = points if points > 0 else last - first
    head |= POINTS if points > 0 else RANGES
    at = 1
    if n == 0 or n > MOST_COUNTED:
        out[1] = n
        at = 2
    else:
        head |= n << COUNT_SHIFT
    out[0] = head
    for i in range(first, last):
        if points > 0:
            for code in range(parts.set_low[i], parts.set_high[i] + 1):
                out[at] = code
                at += 1
        else:
            out[at], out[at + 1] = parts.set_low[i], parts.set_high[i]
            at += 2
    return at


@bare
def match_glob(data: Bytes, start: int, stop: int, tokens: NDArray[np.int16], first: int, last: int) -> bool:
    """Match a text against a pattern: other tokens than ANY_TEXT and ANY_CHARACTER are a byte each.

    Greedy with one way back, to the last `%`; a way back starts at the first byte of a character.
    """
    t = start
    p, end = first, last
    star, again = -1, t
    while t < stop:
        if p < end and tokens[p] == ANY_TEXT:
            star, again = p, t
            p += 1
        elif p < end and (tokens[p] == ANY_CHARACTER or tokens[p] == np.int16(data[t])):
            t += 1
            if tokens[p] == ANY_CHARACTER:
                while t < stop and (data[t] & 0xC0) == 0x80:
                    t += 1
            p += 1
        elif star >= 0:
            again += 1
            while again < stop and (data[again] & 0xC0) == 0x80:
                again += 1
            t, p = again, star + 1
        else:
            return False
    while p < end and tokens[p] == ANY_TEXT:
        p += 1
    return p == end


@bare_inner
def _inside(stream: Ints32, shape: int, n: int, at: int, code: int) -> bool:
    """Tell whether a code is one of the operands at `at`."""
    if shape == POINT:
        return bool(stream[at] == code)
    if shape == RANGE:
        return bool(stream[at] <= code <= stream[at + 1])
    if shape == POINTS:
        if n <= 16:
            hit = False
            for i in range(at, at + n):
                hit |= stream[i] == code
            return bool(hit)
        low, high = at, at + n
        while low < high:
            middle = (low + high) >> 1
            if stream[middle] < code:
                low = middle + 1
            else:
                high = middle
        return bool(low < at + n and stream[low] == code)
    if n <= 8:
        hit = False
        for i in range(at, at + 2 * n, 2):
            hit |= (stream[i] <= code) & (code <= stream[i + 1])
        return bool(hit)
    low, high = 0, n
    while low < high:
        middle = (low + high) >> 1
        if stream[at + 2 * middle + 1] < code:
            low = middle + 1
        else:
            high = middle
    return bool(low < n and stream[at + 2 * low] <= code)


@bare_inner
def operands(stream: Ints32, pc: int) -> tuple[int, int, int]:
    """Return how many operands the check of a line at a place has, where they begin, and where it ends."""
    shape = stream[pc] & SHAPE_MASK
    n, at = int(stream[pc] >> COUNT_SHIFT), pc + 1
    if shape <= RANGE:
        return 1, at, at + 1 + int(shape)
    if n == 0:
        n = int(stream[at])
        at += 1
    return n, at, at + (n if shape == POINTS else 2 * n)


@bare
def check_at(index: RecordArrays, events: Events, e: int, pc: int) -> tuple[bool, int]:
    """Make the check at a place of the stream; returns whether it holds, and the place behind it."""
    stream = index.stream
    word = stream[pc]
    op = word & OP_MASK
    if op < GLOB_OP:
        shape, line = op & SHAPE_MASK, (word >> LINE_SHIFT) & LINE_MASK
        n, at, end = operands(stream, pc)
        code = events.codes[e, line]
        if op < ANY_OPS:
            inside = _inside(stream, shape, n, at, code)
            return (not inside and code != 0 if word & LEFT_OUT else inside), end
        if op >= ALL_OPS and code == 0:
            return False, end
        for i in range(events.multi_start[line, e], events.multi_start[line, e + 1]):
            if _inside(stream, shape, n, at, events.multi_codes[i]) == (op < ALL_OPS):
                return op < ALL_OPS, end
        return op >= ALL_OPS, end
    if op >= TRUE_OP:
        return op == TRUE_OP, pc + 1
    glob = word >> LINE_SHIFT
    text = events.text_of[index.glob_side[glob], e]
    if text < 0:
        return False, pc + 1
    fits = match_glob(
        events.text_data,
        events.text_offsets[text],
        events.text_offsets[text + 1],
        index.glob_tokens,
        index.glob_start[glob],
        index.glob_start[glob + 1],
    )
    return fits == (op == GLOB_OP), pc + 1


@bare_inner
def scalar_checks(stream: Ints32, codes: Ints32, e: int, pc: int, end: int) -> int:
    """Make checks of scalar lines; returns -1 if one fails, else `end` or the first check of another kind.

    Takes two arrays rather than the index, and keeps to one: passing a tuple counts references to all of it.
    """
    while pc < end:
        word = stream[pc]
        op = word & OP_MASK
        if op >= ANY_OPS:
            return pc
        code = codes[e, (word >> LINE_SHIFT) & LINE_MASK]
        if word & LEFT_OUT:
            # Operands are what is left out, as code 0 always is.
            n, at, pc = operands(stream, pc)
            if code == 0 or _inside(stream, op, n, at, code):
                return -1
        elif op == POINT:
            if code != stream[pc + 1]:
                return -1
            pc += 2
        elif op == RANGE:
            if code < stream[pc + 1] or code > stream[pc + 2]:
                return -1
            pc += 3
        else:
            n, at, pc = operands(stream, pc)
            if not _inside(stream, op, n, at, code):
                return -1
    return end


@bare
def other_checks(index: RecordArrays, events: Events, e: int, pc: int, end: int, led: bool) -> bool:
    """Make checks of any kind until one fails.

    In an entry that an atom led to, what led there is not checked again: an event may have hundreds of codes
    on a line of words.
    """
    while pc < end:
        word = index.stream[pc]
        if led and (word & OP_MASK) == ANY_POINT and word >= LED:
            pc += 2
            continue
        holds, pc = check_at(index, events, e, pc)
        if not holds:
            return False
    return True


@bare
def tree_holds(index: RecordArrays, events: Events, e: int, base: int) -> bool:
    """Evaluate a tree whose first check stands at `base`."""
    jump = 0
    while jump >= 0:
        holds, after = check_at(index, events, e, base + jump)
        jump = index.stream[after] if holds else index.stream[after + 1]
    return jump == ACCEPT


@bare_inner
def checks_hold(
    index: RecordArrays, events: Events, stream: Ints32, codes: Ints32, e: int, head: int, pc: int, end: int
) -> bool:
    """Tell whether checks of an entry hold, which begins with `head`, and which an atom led to."""
    if head & TREE:
        return bool(pc == end or tree_holds(index, events, e, pc))
    pc = scalar_checks(stream, codes, e, pc, end)
    return bool(pc == end or (pc >= 0 and other_checks(index, events, e, pc, end, True)))
