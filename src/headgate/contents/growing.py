"""An array that grows at its end, for one writer and any number of readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Growing:
    """An array with room at its end. What is in it stays; growing makes another array.

    >>> numbers = Growing(np.int64)
    >>> numbers.extend([3, 4])
    >>> numbers.append(5)
    >>> numbers.used.tolist()
    [3, 4, 5]
    """

    def __init__(self, kind: type[np.generic]) -> None:
        self.array: NDArray[Any] = np.zeros(64, kind)
        self.size = 0

    @property
    def used(self) -> NDArray[Any]:
        """Return what is in it, not copied."""
        return self.array[: self.size]

    def copy(self) -> Growing:
        """Return another one with the same in it, and no room."""
        made = Growing(self.array.dtype.type)
        made.array, made.size = self.used.copy(), self.size
        return made

    def reserve(self, more: int) -> None:
        """Make room for some more items."""
        room = len(self.array)
        if self.size + more > room:
            grown = np.zeros(max(self.size + more, 2 * room), self.array.dtype)
            grown[: self.size] = self.array[: self.size]
            self.array = grown

    def extend(self, items: Sequence[int] | NDArray[Any]) -> None:
        """Append items."""
        self.reserve(len(items))
        self.array[self.size : self.size + len(items)] = items
        self.size += len(items)

    def append(self, item: float) -> None:
        """Append one item."""
        self.reserve(1)
        self.array[self.size] = item
        self.size += 1
