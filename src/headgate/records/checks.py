"""Parts as words of the stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import kernel
from headgate.records.arrays import GLOB_OP, NOT_GLOB_OP, POINT, POINTS, RANGE, RANGES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.records.lines import Parts

SHORT = 2047
"""More operands than fit beside the operator are counted by a word of their own."""


@kernel
def _points(parts: Parts, p: int) -> int:
    """Count the codes of a part, or -1 if pairs of ends are shorter."""
    first, last = parts.set_start[p], parts.set_start[p + 1]
    total = 0
    for i in range(first, last):
        total += parts.set_high[i] - parts.set_low[i] + 1
    return total if 0 < total < 2 * (last - first) else -1


@kernel
def check_words(parts: Parts, p: int) -> int:
    """Count the words of a part."""
    if parts.part_line[p] < 0:
        return 1
    count = parts.set_start[p + 1] - parts.set_start[p]
    points = _points(parts, p)
    if points == 1:
        return 2
    if count == 1 and points < 0:
        return 3
    n, each = (points, 1) if points > 0 else (count, 2)
    return 1 + n * each + (1 if n == 0 or n > SHORT else 0)


@kernel
def write_check(
    parts: Parts, kind: NDArray[np.uint8], globs: NDArray[np.int32], p: int, out: NDArray[np.int32]
) -> int:
    """Write a part; returns its words."""
    leaf = parts.part_leaf[p]
    if parts.part_line[p] < 0:
        out[0] = (GLOB_OP if kind[leaf] == 3 else NOT_GLOB_OP) | (globs[leaf] << 4)
        return 1
    first, last = parts.set_start[p], parts.set_start[p + 1]
    head = (4 * np.int32(kind[leaf])) | (parts.part_line[p] << 4)
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
    if n == 0 or n > SHORT:
        out[1] = n
        at = 2
    else:
        head |= n << 20
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
