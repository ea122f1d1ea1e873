"""A built index for threads to ask: encodes events, matches them, and keeps what each thread needs."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.records.events.encode import SingleEncoder
from headgate.records.index import kernels
from headgate.records.index.arrays import Scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.records.index.arrays import Events
    from headgate.records.index.build import BuiltIndex


class Pairs(NamedTuple):
    """Matches as numbers: filter `filters[i]` holds for event `events[i]`; sorted by event, then filter."""

    events: NDArray[np.int64]
    filters: NDArray[np.int32]


class Matcher:
    """Says which filters of an index hold. Which of them were removed is told by who asks."""

    def __init__(self, built: BuiltIndex) -> None:
        self.built = built
        self._local = threading.local()

    @cached_property
    def encoder(self) -> SingleEncoder:
        """Return what encodes one event at a time."""
        return SingleEncoder(self.built)

    def match(self, events: Events, count: int, removed: NDArray[np.uint8]) -> Pairs:
        """Match encoded events; removed[f] says that filter f is passed over."""
        scratch = self.scratch()
        counts = np.zeros(count, np.int64)
        parts: list[NDArray[np.int32]] = []
        done = 0
        while done < count:
            stamp = scratch.stamps(count) - done
            reached = kernels.match_events(
                self.built.arrays, events, done, count, scratch.seen, stamp, removed, scratch.out, counts
            )
            if reached == done:
                scratch.grow()
                continue
            parts.append(scratch.out[: counts[done:reached].sum()].copy())
            done = reached
        return Pairs(np.repeat(np.arange(count), counts), np.concatenate([np.zeros(0, np.int32), *parts]))

    def scratch(self) -> Scratch:
        """Return this thread's scratch space."""
        found: Scratch | None = getattr(self._local, "scratch", None)
        if found is None:
            found = self._local.scratch = Scratch(self.built.filters)
        return found
