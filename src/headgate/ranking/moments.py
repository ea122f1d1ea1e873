"""Answers about one moment, while others change what is asked.

A change of one subscription touches several structures: the ids, the keys, the filters. A writer holds the
lock and counts twice, before and after. A reader looks at the count before and after: if it is the same and
even, the answer is about one moment. Otherwise the reader asks again, and in the end waits for its turn.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Answer = TypeVar("_Answer")
TRIES = 3
"""How often a reader asks before it waits for the writers."""


class Moments:
    """The count of changes, and the lock of those who make them.

    >>> moments = Moments()
    >>> with moments.changing():
    ...     moments.count
    1
    >>> moments.reading(lambda: moments.count)
    2
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.count = 0

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold others off while something is changed. A change inside another is a part of it."""
        with self.lock:
            outermost = self.count % 2 == 0
            self.count += outermost
            try:
                yield
            finally:
                self.count += outermost

    def reading(self, ask: Callable[[], _Answer]) -> _Answer:
        """Ask until nothing was changed meanwhile."""
        for _ in range(TRIES):
            before = self.count
            if before % 2:
                break
            try:
                answer = ask()
            except Exception:
                # Half of a change may look like anything; what is wrong in itself is so the next time, too.
                if self.count == before:
                    raise
                continue
            if self.count == before:
                return answer
        with self.lock:
            return ask()
