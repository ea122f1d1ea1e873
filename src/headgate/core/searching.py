"""Hot loops: whether a text has a part, in linear time. Filters over RDF and over XML search with it.

Most searches end early wherever they begin, so each place is tried in turn, as far as the letters agree.
Texts of strangers can be made such that they agree for long, at every place. When that has cost some times
what the text is long, the rest is searched by the two-way method of Crochemore and Perrin (Journal of the ACM
38, 1991), which needs no memory. It cuts what is wanted in two, such that no shift that is shorter than its
period agrees with both halves at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import bare, bare_inner

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes

_PATIENCE = 8
"""Letters that are looked at for each place, on average, before the other method is taken."""
_AT_FIRST = 256
"""Letters beyond these: to cut a short part in two costs as much."""


@bare_inner
def same_bytes(a: Bytes, i: int, b: Bytes, j: int, size: int) -> bool:
    """Tell whether a[i:i + size] and b[j:j + size] are equal."""
    k = 0
    while k < size and a[i + k] == b[j + k]:
        k += 1
    return k == size


@bare_inner
def has_part(wanted: Bytes, start: int, end: int, text: Bytes, begin: int, stop: int) -> bool:
    """Tell whether wanted[start:end] is somewhere in text[begin:stop]."""
    wide = end - start
    if wide == 0:
        return True
    if stop - begin < wide:
        return False
    first, long = wanted[start], 0
    # Without a sign, for places are looked at without asking whether they count from the end.
    at, behind = np.uint64(begin), np.uint64(stop - wide + 1)
    while True:
        while at < behind and text[at] != first:
            at += np.uint64(1)
        if at >= behind:
            return False
        place = 1
        while place < wide and text[at + np.uint64(place)] == wanted[start + place]:
            place += 1
        if place == wide:
            return True
        if place > _PATIENCE:
            long += place
            here = int(at)
            if long > _AT_FIRST + _PATIENCE * (here - begin):
                return two_way(wanted, start, wide, text, here + 1, stop)
        at += np.uint64(1)


@bare
def two_way(wanted: Bytes, start: int, wide: int, text: Bytes, at: int, stop: int) -> bool:
    """Search from `at` on; `half` is the last place of the left half, -1 if that is empty."""
    half, period = _greatest_suffix(wanted, start, wide, False)
    other, other_period = _greatest_suffix(wanted, start, wide, True)
    if other > half:
        half, period = other, other_period
    repeats = True
    for place in range(half + 1):
        if wanted[start + place] != wanted[start + period + place]:
            repeats = False
            break
    if not repeats:
        # Any shift up to here is shorter than the period of the whole.
        period = max(half + 1, wide - half - 1) + 1
    seen = -1  # up to this place it is known to agree, for it did before the shift
    while at <= stop - wide:
        place = max(half, seen) + 1
        while place < wide and wanted[start + place] == text[at + place]:
            place += 1
        if place < wide:
            at += place - half
            seen = -1
            continue
        place = half
        while place > seen and wanted[start + place] == text[at + place]:
            place -= 1
        if place <= seen:
            return True
        at += period
        seen = wide - period - 1 if repeats else -1
    return False


@bare_inner
def _greatest_suffix(wanted: Bytes, start: int, wide: int, upwards: bool) -> tuple[int, int]:
    """Find the suffix that comes last in the alphabet, or in its reverse.

    Returns the place before it, and its period.
    """
    before, place, along, period = -1, 0, 1, 1
    while place + along < wide:
        one, other = wanted[start + place + along], wanted[start + before + along]
        if one == other:
            if along == period:
                place += period
                along = 1
            else:
                along += 1
        elif (one < other) != upwards:
            place += along
            along = 1
            period = place - before
        else:
            before = place
            place = before + 1
            along, period = 1, 1
    return before, period
