"""Dictionaries that do not grow without end."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Bounded(dict[K, V]):
    """Answers worth remembering, at most `limit` of them; when it is full it starts anew.

    Reading is a plain dictionary's, and threads may share one: an answer that is lost is found again.

    >>> squares = Bounded[int, int](2)
    >>> for number in range(5):
    ...     squares[number] = number * number
    >>> squares
    {4: 16}
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        """Remember an answer."""
        if len(self) >= self.limit:
            self.clear()
        super().__setitem__(key, value)
