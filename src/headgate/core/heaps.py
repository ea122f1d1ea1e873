"""Heaps in arrays, for hot loops: of whole numbers, the least on top."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.core.jit import bare_inner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Keys = NDArray[np.integer[Any]]
    Key = int | np.integer[Any]


@bare_inner
def push(keys: Keys, size: int, key: Key) -> int:
    """Put a key into a heap of so many; returns how many there are then."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] <= key:
            break
        keys[at] = keys[above]
        at = above
    keys[at] = key
    return size + 1


@bare_inner
def replace(keys: Keys, size: int, key: Key) -> None:
    """Put a key in the place of the least."""
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[at] = keys[below]
        at = below
    keys[at] = key


@bare_inner
def pop(keys: Keys, size: int) -> int:
    """Take the least key out; returns how many are left."""
    size -= 1
    if size > 0:
        replace(keys, size, keys[size])
    return size
