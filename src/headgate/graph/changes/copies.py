"""What a writer changes and views keep: copied for a view, and only if it changed since the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]


class Copyable(Protocol):
    """A container that can be copied."""

    def copy(self: T) -> T:
        """Return another one that has the same in it."""


T = TypeVar("T", bound=Copyable)


class Copied(Generic[T]):
    """A container and the copy that views share until it is changed.

    >>> names = Copied(["a"])
    >>> before = names.copy()
    >>> names.copy() is before
    True
    >>> names.changing().append("b")
    >>> before, names.copy()
    (['a'], ['a', 'b'])
    """

    def __init__(self, value: T) -> None:
        self.value = value
        self._copy: T | None = None

    def changing(self) -> T:
        """Return the container to be changed."""
        self._copy = None
        return self.value

    def copy(self) -> T:
        """Return a copy that nobody changes."""
        if self._copy is None:
            self._copy = self.value.copy()
        return self._copy


class GrowingBits:
    """Bits by position, with room behind them.

    >>> bits = GrowingBits(np.array([1], np.uint64))
    >>> bits.set(64)
    >>> bits.clear(0)
    >>> bits.copy(2).tolist()
    [0, 1]
    """

    def __init__(self, words: Words) -> None:
        self._words = words.copy()
        self._copy: Words | None = None

    def set(self, position: int) -> None:
        """Set a bit."""
        word = position >> 6
        if word >= len(self._words):
            self._words = np.concatenate([self._words, np.zeros(word + 1, np.uint64)])
        self._words[word] |= np.uint64(1) << np.uint64(position & 63)
        self._copy = None

    def clear(self, position: int) -> None:
        """Clear a bit."""
        word = position >> 6
        if word < len(self._words):
            self._words[word] &= ~(np.uint64(1) << np.uint64(position & 63))
            self._copy = None

    def copy(self, words: int) -> Words:
        """Return the first words; bits that were never set are 0."""
        if self._copy is None or len(self._copy) != words:
            made = np.zeros(words, np.uint64)
            there = min(words, len(self._words))
            made[:there] = self._words[:there]
            self._copy = made
        return self._copy
