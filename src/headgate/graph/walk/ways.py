"""Two ways to the same answer, and which of them is quicker: found by trying both, now and then.

Which it is depends on the filters, the graph and the events together, and no count of ours foretells it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Found = TypeVar("Found")

BY_GRAPH, BY_FILTERS = range(2)
"""The graph asks the filters that it comes to; the filters say which of them hold, and the graph follows."""

TRIAL = 64
"""Events of a trial."""
AGAIN = 1 << 20
"""Events until the next trial."""


class Ways:
    """Remembers which way was quicker. Threads may share it: at worst one of them tries once more."""

    def __init__(self) -> None:
        self.best = BY_GRAPH
        self._left = 0

    def run(self, count: int, work: Callable[[int, int, int], Iterable[Found]]) -> Iterator[Found]:
        """Do `work(way, begin, end)` for all of `count` events, in order, by the quicker way."""
        begin = 0
        if self._left <= 0 and count >= 2 * (TRIAL + 1):
            seconds = []
            for way in (BY_GRAPH, BY_FILTERS):
                # One event first, which pays for what is made once.
                yield from work(way, begin, begin + 1)
                begun = time.thread_time()
                found = [*work(way, begin + 1, begin + 1 + TRIAL)]
                seconds.append(time.thread_time() - begun)
                yield from found
                begin += 1 + TRIAL
            self.best = BY_GRAPH if seconds[BY_GRAPH] <= seconds[BY_FILTERS] else BY_FILTERS
            self._left = AGAIN
        self._left -= count
        if begin < count:
            yield from work(self.best, begin, count)
