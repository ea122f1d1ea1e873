"""Hot loops of heaps whose items know their place, so that an item may move up or down while it is in one.

Items are numbers. The one with the lowest first key is on top; equal ones go by the second, then by number.
`where[item]` is its place in the heap; whoever takes an item out sets it to -1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.jit import bare_inner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@bare_inner
def before(first: NDArray[np.float64], second: NDArray[np.float64], a: int, b: int) -> bool:
    """Tell whether a comes before b: by two keys, then by number."""
    if first[a] != first[b]:
        return bool(first[a] < first[b])
    if second[a] != second[b]:
        return bool(second[a] < second[b])
    return a < b


@bare_inner
def rise(
    heap: NDArray[np.int32],
    where: NDArray[np.int32],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    at: int,
    item: int,
) -> None:
    """Put an item into a heap at a place, or further up."""
    while at > 0:
        above = (at - 1) >> 1
        other = heap[above]
        if not before(first, second, item, other):
            break
        heap[at] = other
        where[other] = at
        at = above
    heap[at] = item
    where[item] = at


@bare_inner
def sink(
    heap: NDArray[np.int32],
    where: NDArray[np.int32],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    size: int,
    at: int,
    item: int,
) -> None:
    """Put an item into a heap at a place, or further down."""
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and before(first, second, heap[below + 1], heap[below]):
            below += 1
        other = heap[below]
        if not before(first, second, other, item):
            break
        heap[at] = other
        where[other] = at
        at = below
    heap[at] = item
    where[item] = at
