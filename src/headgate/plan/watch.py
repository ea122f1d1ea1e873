"""How much time is left, and a word now and then about where we are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY = 2.0
"""Seconds between two words about the same step."""


class Watch:
    """Counts the seconds of one solve, and reports to whoever asked for progress."""

    def __init__(self, limit: float, progress: Callable[[str], None] | None = None) -> None:
        self._begun = time.monotonic()
        self._limit = limit
        self._progress = progress
        self._said = self._begun

    def seconds(self) -> float:
        """Return how long it took until now."""
        return time.monotonic() - self._begun

    def left(self) -> float:
        """Return how many seconds are left, at least 0."""
        return max(0.0, self._limit - self.seconds())

    def say(self, text: str) -> None:
        """Report the end of a step, if the whole takes long enough for anybody to wonder."""
        if self._progress is not None and self.seconds() >= EVERY:
            self._said = time.monotonic()
            self._progress(text)

    def tick(self, text: Callable[[], str]) -> None:
        """Report from within a step, at most every two seconds; the text is made only then."""
        if self._progress is not None and time.monotonic() - self._said >= EVERY:
            self._said = time.monotonic()
            self._progress(text())
