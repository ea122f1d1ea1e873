"""Which of many filters hold, 64 at a time: bit planes that know nothing of what the filters are about.

A content room that can put its filters into this form lets others ask about a few of them only, in their own
order: the graph asks about the nodes that it has reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Ints, Ints32, Words

SCALAR, ANY, ALL = range(3)
"""What an axis looks at: the event's code; one of its codes; each of its codes, if it has a list at all."""

NO, YES, ASK = range(3)
"""What a filter's conjunctions say; ASK: the content room must be asked."""


class Planes(NamedTuple):
    """Filters at positions; position p is bit p & 63 of word p >> 6.

    A filter is one or more conjunctions, and a conjunction is one or more checks; an event has a code on each
    line, or a list of codes. The first conjunctions of all filters make up slot 0, the second ones slot 1…

        slot s          the axes slot_start[s] to slot_start[s + 1]
          present[s]    positions that have a conjunction there; those of slot s + 1 are some of these
          unsure[s]     where more than the checks must hold, or the checks did not fit
        axis a          what some conjunctions of a slot demand of line axis_line[a], by axis_kind[a]
          free[a]       positions that demand nothing
          row           of a bucket b of codes: some[axis_row[a] + b] are the positions that accept a code of
                        it, those of free[a] among them; part[axis_part[a] + b] those that do not accept all
                        of them; axis_part -1: none is in parts
          bucket        of code c: bucket[axis_bucket[a] + c]
        over            positions with more conjunctions than slots

    What is in parts, or over, is decided by the checks themselves:

        conjunctions    of position p: conjunction_start[p] to conjunction_start[p + 1]; asks[c] says that
                        the checks of c are not all that it demands
        check k         of check_start[c] to check_start[c + 1]: line check_line[k], kind check_kind[k],
                        ranges of codes set_low, set_high from set_start[k] to set_start[k + 1]
    """

    slot_start: Ints32
    present: Words
    unsure: Words
    over: Words
    axis_line: Ints32
    axis_kind: Bytes
    axis_row: Ints32
    axis_part: Ints32
    axis_bucket: Ints32
    free: Words
    some: Words
    part: Words
    bucket: NDArray[np.uint16]
    conjunction_start: Ints32
    asks: Bytes
    check_start: Ints32
    check_line: Ints32
    check_kind: Bytes
    set_start: Ints32
    set_low: Ints32
    set_high: Ints32

    @property
    def positions(self) -> int:
        """Count the positions."""
        return len(self.conjunction_start) - 1

    @property
    def exact(self) -> bool:
        """Tell whether the content room need never be asked."""
        return not self.asks.any()

    def check(self) -> None:
        """Assert the invariants that the kernels rely on."""
        slots, words = self.present.shape
        assert len(self.slot_start) == slots + 1
        assert words == (self.positions + 63) // 64
        for s in range(1, slots):
            assert not (self.present[s] & ~self.present[s - 1]).any()
        for a in range(len(self.axis_line)):
            first = int(self.axis_row[a])
            last = int(self.axis_row[a + 1]) if a + 1 < len(self.axis_line) else len(self.some)
            assert not (self.free[a] & ~self.some[first:last]).any()
            if self.axis_part[a] >= 0:
                part = self.part[self.axis_part[a] : self.axis_part[a] + last - first]
                assert not (part & ~self.some[first:last]).any()
                assert not (part & self.free[a]).any()
        for start in (self.conjunction_start, self.check_start, self.set_start):
            assert start[0] == 0
            assert bool((np.diff(start) >= 0).all())
        assert self.conjunction_start[-1] == len(self.asks)
        assert self.check_start[-1] == len(self.check_line) == len(self.set_start) - 1
        assert bool((self.set_low <= self.set_high).all())


class Cells(NamedTuple):
    """Events as codes: codes[e, l] is the code of event e on line l.

    On a line of lists it is 1 if the value is a list, else 0, and the codes of the list are
    multi_codes[multi_start[l, e]:multi_start[l, e + 1]].
    """

    codes: Ints32
    multi_start: Ints
    multi_codes: Ints32


@bare_inner
def find_rows(planes: Planes, cells: Cells, e: int, rows: Ints32) -> None:
    """Note the bucket of an event on each axis that looks at one code; lists are looked up every time."""
    for a in range(len(rows)):
        if planes.axis_kind[a] == SCALAR:
            code = cells.codes[e, planes.axis_line[a]]
            rows[a] = planes.bucket[planes.axis_bucket[a] + code]


@bare_inner
def plane_word(
    planes: Planes, cells: Cells, e: int, rows: Ints32, w: int, asked: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Return which of some positions of a word pass for sure, and which must be decided one by one."""
    slot_start, present, unsure, some, part = (
        planes.slot_start,
        planes.present,
        planes.unsure,
        planes.some,
        planes.part,
    )
    axis_kind, axis_row, axis_part = planes.axis_kind, planes.axis_row, planes.axis_part
    sure = np.uint64(0)
    maybe = planes.over[w] & asked
    for s in range(len(slot_start) - 1):
        word = present[s, w] & asked & ~sure
        if word == 0:
            break
        parts = unsure[s, w]
        for a in range(slot_start[s], slot_start[s + 1]):
            if word == 0:
                break
            if axis_kind[a] == SCALAR:
                word &= some[axis_row[a] + rows[a], w]
                if axis_part[a] >= 0:
                    parts |= part[axis_part[a] + rows[a], w]
            else:
                good, half = _list_word(planes, cells, e, a, w)
                word &= good
                parts |= half
        sure |= word & ~parts
        maybe |= word & parts
    return sure, maybe & ~sure


@bare
def _list_word(planes: Planes, cells: Cells, e: int, a: int, w: int) -> tuple[np.uint64, np.uint64]:
    """Do the same for one axis over a list of codes."""
    line = planes.axis_line[a]
    first, last = cells.multi_start[line, e], cells.multi_start[line, e + 1]
    everyone = planes.axis_kind[a] == ALL
    good, full = planes.free[a, w], planes.free[a, w]
    half = np.uint64(0)
    if everyone and cells.codes[e, line]:
        good = ~np.uint64(0)
    for i in range(first, last):
        b = planes.bucket[planes.axis_bucket[a] + cells.multi_codes[i]]
        accepting = planes.some[planes.axis_row[a] + b, w]
        broken = np.uint64(0)
        if planes.axis_part[a] >= 0:
            broken = planes.part[planes.axis_part[a] + b, w]
        if everyone:
            good &= accepting
            half |= broken
        else:
            good |= accepting
            full |= accepting & ~broken
    return good, half & good if everyone else good & ~full


@bare_inner
def decide(planes: Planes, cells: Cells, e: int, p: int) -> int:
    """Say by its checks whether the filter at a position holds."""
    check_line, check_kind, set_start = planes.check_line, planes.check_kind, planes.set_start
    answer = NO
    for c in range(planes.conjunction_start[p], planes.conjunction_start[p + 1]):
        holds = True
        for k in range(planes.check_start[c], planes.check_start[c + 1]):
            line = check_line[k]
            first, last = set_start[k], set_start[k + 1]
            if check_kind[k] == SCALAR:
                holds = _accepts(planes.set_low, planes.set_high, first, last, cells.codes[e, line])
            else:
                everyone = check_kind[k] == ALL
                holds = everyone and cells.codes[e, line] != 0
                for i in range(cells.multi_start[line, e], cells.multi_start[line, e + 1]):
                    code = cells.multi_codes[i]
                    if _accepts(planes.set_low, planes.set_high, first, last, code) != everyone:
                        holds = not everyone
                        break
            if not holds:
                break
        if holds:
            if not planes.asks[c]:
                return YES
            answer = ASK
    return answer


@bare_inner
def _accepts(low: Ints32, high: Ints32, first: int, last: int, code: int) -> bool:
    """Search sorted ranges for a code."""
    while first < last:
        middle = (first + last) >> 1
        if high[middle] < code:
            first = middle + 1
        elif low[middle] > code:
            last = middle
        else:
            return True
    return False
