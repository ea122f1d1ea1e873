"""Whom events matched: numbers of subscriptions, those of one event after those of another."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.uint32]

NONE = np.zeros(0, np.uint32)


class Matches(NamedTuple):
    """What some events matched."""

    counts: NDArray[np.int64]
    """How many subscriptions each event matched; none of one that was refused."""
    numbers: Numbers
    """The numbers of these, for each event in the order of their ids."""
    refused: dict[int, EventError]
    """Why events were refused, by their rows."""

    @classmethod
    def of(cls, found: Sequence[Sequence[int] | EventError]) -> Matches:
        """Put the numbers of each event together.

        >>> Matches.of([[3, 1], [], [7]]).numbers
        array([3, 1, 7], dtype=uint32)
        """
        refused = {row: each for row, each in enumerate(found) if isinstance(each, EventError)}
        lists = [() if isinstance(each, EventError) else each for each in found]
        counts = np.fromiter(map(len, lists), np.int64, len(lists))
        numbers = np.fromiter(chain.from_iterable(lists), np.uint32, int(counts.sum()))
        return cls(counts, numbers, refused)

    def some(self, rows: Sequence[int]) -> Matches:
        """Return those of some events, in rising order."""
        if len(rows) == len(self.counts):
            return self
        kept = np.zeros(len(self.counts), np.bool_)
        kept[rows] = True
        refused = {place: self.refused[row] for place, row in enumerate(rows) if row in self.refused}
        return Matches(self.counts[kept], self.numbers[np.repeat(kept, self.counts)], refused)

    def lists(self) -> list[list[int]]:
        """List the numbers of each event."""
        numbers, ends = self.numbers.tolist(), np.cumsum(self.counts).tolist()
        return [numbers[end - count : end] for count, end in zip(self.counts.tolist(), ends, strict=True)]

    @property
    def ends(self) -> Numbers:
        """Return where the numbers of each event end."""
        return np.cumsum(self.counts).astype(np.uint32)
