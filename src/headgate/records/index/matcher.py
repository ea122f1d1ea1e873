"""A built index for threads to ask: encodes events, matches them, and keeps what each thread needs."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.records.events.rows import RowEncoder
from headgate.records.index import kernels
from headgate.records.index.arrays import Scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.event import Event
    from headgate.records.events.rows import Room
    from headgate.records.index.arrays import Events
    from headgate.records.index.build import BuiltIndex


class Pairs(NamedTuple):
    """Matches as numbers: filter `filters[i]` holds for event `events[i]`; sorted by event, then filter."""

    events: NDArray[np.int64]
    filters: NDArray[Any]

    def first(self, count: int) -> Pairs:
        """Keep the first matches of each event."""
        at = np.arange(len(self.events))
        begins = np.append(True, self.events[1:] != self.events[:-1])[: len(at)]
        kept = at - np.maximum.accumulate(np.where(begins, at, 0)) < count
        return Pairs(self.events[kept], self.filters[kept])


class Matcher:
    """Says which filters of an index hold. Which of them were removed is told by who asks."""

    def __init__(self, built: BuiltIndex) -> None:
        self.built = built
        self._local = threading.local()

    @cached_property
    def encoder(self) -> RowEncoder:
        """Return what encodes events given as Python values."""
        return RowEncoder(self.built)

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

    def match_one(self, event: Event, removed: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Match one event given as Python values; returns the filters, rising."""
        scratch = self.scratch()
        encoded = self.encode_one(event)
        arrays, out, count = self.built.arrays, scratch.out, scratch.count
        while not kernels.match_events(
            arrays, encoded, 0, 1, scratch.seen, scratch.stamps(1), removed, out, count
        ):
            scratch.grow()
            out = scratch.out
        return out[: count[0]].copy()

    def encode_one(self, event: Event) -> Events:
        """Encode one event given as Python values, for this thread and until it encodes another."""
        return self.encoder.encode_one(event, self._room())

    def _room(self) -> Room:
        """Return this thread's room for one event."""
        found: Room | None = getattr(self._local, "room", None)
        if found is None:
            found = self._local.room = self.encoder.room()
        return found

    def scratch(self) -> Scratch:
        """Return this thread's scratch space."""
        found: Scratch | None = getattr(self._local, "scratch", None)
        if found is None:
            found = self._local.scratch = Scratch(self.built.filters)
        return found
