"""How often subscriptions matched since the service runs, and when last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.service.storage.block import Block


class MatchCounts:
    """Counts by the number of a subscription. They are kept by the event loop's thread."""

    def __init__(self) -> None:
        self._count = np.zeros(1_024, np.int64)
        self._last = np.zeros(1_024, np.int64)

    def note(self, block: Block) -> None:
        """Count what a block has."""
        for numbers in (block.subscriptions, block.held):
            if len(numbers):
                self._grow(int(numbers.max()))
                np.add.at(self._count, numbers, 1)
                self._last[numbers] = block.time

    def _grow(self, number: int) -> None:
        if number >= len(self._count):
            size = max(number + 1, 2 * len(self._count))
            self._count, self._last = _grown(self._count, size), _grown(self._last, size)

    def of(self, number: int) -> tuple[int, int | None]:
        """Return how often a subscription matched, and when last, in microseconds; None if never."""
        if number >= len(self._count) or not self._count[number]:
            return 0, None
        return int(self._count[number]), int(self._last[number])

    def counts(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how often each of some subscriptions matched."""
        known = self._count
        return np.where(numbers < len(known), known[np.minimum(numbers, len(known) - 1)], 0)


def _grown(values: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    found = np.zeros(size, np.int64)
    found[: len(values)] = values
    return found
