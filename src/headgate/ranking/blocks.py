"""Hot loops over blocks of intervals, without branches, so that the compiler makes them parallel.

Indexes are unsigned there: a signed one might be below 0, the guard against that stands in the way, and the
loops take five times as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.core.jit import bare_inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    Ranks = NDArray[np.int32]

BLOCK = 64
_LENGTH = np.uint64(BLOCK)


@bare_inner
def any_holds(low: Floats, high: Floats, at: int, x: float, y: float) -> bool:
    """Tell whether any interval of a whole block holds."""
    found = False
    first = np.uint64(at)
    for j in range(_LENGTH):
        found |= (low[first + j] <= x) & (high[first + j] >= y)
    return found


@bare_inner
def gather(low: Floats, high: Floats, at: int, end: int, x: float, y: float, hits: Ranks) -> int:
    """List the places of the intervals from `at` to `end` that hold; returns how many.

    `hits` has room for all of them: places are written before it is known whether they stay.
    """
    count = np.uint64(0)
    for j in range(np.uint64(at), np.uint64(end)):
        hits[count] = j
        count += np.uint64((low[j] <= x) & (high[j] >= y))
    return int(count)
