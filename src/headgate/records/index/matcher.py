"""A built index for threads to ask: encodes events, matches them, and keeps what each thread needs."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit.memory import EACH, row_of, table_of
from headgate.records.events.rows import RowEncoder
from headgate.records.index import kernels
from headgate.records.index.arrays import Desk, Scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.event import Event
    from headgate.records.index.arrays import Events
    from headgate.records.index.build import BuiltIndex


FEW, MOST_ROOM = 128, 1 << 20
"""Events that there is to be room for at once, and the matches that this is worth."""


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

    def __init__(self, built: BuiltIndex, mark: str | None = None) -> None:
        self.built = built
        self._mark = mark
        self._local = threading.local()

    @cached_property
    def encoder(self) -> RowEncoder:
        """Return what encodes events given as Python values."""
        return RowEncoder(self.built, self._mark)

    def match(self, events: Events, count: int, removed: NDArray[np.uint8]) -> Pairs:
        """Match encoded events; removed[f] says that filter f is passed over."""
        scratch = self.scratch()
        counts = np.zeros(count, np.int64)
        parts: list[NDArray[np.int32]] = []
        done = 0
        while done < count:
            stamp = scratch.stamps(count) - done
            reached, more = kernels.match_events(
                self.built.arrays,
                events,
                done,
                count,
                scratch.desk,
                scratch.seen,
                stamp,
                removed,
                scratch.out,
                counts,
            )
            if reached > done:
                parts.append(scratch.out[: counts[done:reached].sum()].copy())
            # An event that does not fit is matched again, so there is to be room for many.
            tight = reached - done < min(FEW, count - done) and len(scratch.out) < MOST_ROOM
            if not more and (tight or reached == done):
                scratch.grow()
            if more:
                scratch.add_clusters()
            done = reached
        filters = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int32), *parts])
        return Pairs(np.repeat(np.arange(count), counts), filters)

    def match_one(self, event: Event, removed: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Match one event given as Python values; returns the filters, rising."""
        scratch = self.scratch()
        encoded = self.encoder.encode_one(event, scratch.room)
        if encoded is not scratch.shown:
            scratch.show(encoded)
        if removed is not scratch.removed:
            scratch.remove(removed)
        while True:
            found = kernels.match_one(scratch.table, scratch.stamps(1))
            if found >= 0:
                return scratch.out[:found].copy()
            if found == kernels.NO_ROOM:
                scratch.grow()
            else:
                scratch.add_clusters()

    def encode_one(self, event: Event) -> Events:
        """Encode one event given as Python values, for this thread and until it encodes another."""
        return self.encoder.encode_one(event, self.scratch().room)

    def scratch(self) -> MatcherScratch:
        """Return this thread's scratch space."""
        found: MatcherScratch | None = getattr(self._local, "scratch", None)
        if found is None:
            found = self._local.scratch = MatcherScratch(self.built, self.encoder)
        return found


class MatcherScratch(Scratch):
    """What one thread needs to match events by an index, and the table by which one event is asked about.

    `table` has the arrays of the index, of an event, and of all that is written to, in the order in which
    `kernels.match_one` reads them.
    """

    def __init__(self, built: BuiltIndex, encoder: RowEncoder) -> None:
        super().__init__(built.filters)
        self.desk = Desk.of(built.arrays, built.filters)
        self.room = encoder.room()
        self.shown = self.room.events
        """The event that the table has; its codes are those of the room."""
        self.removed = np.zeros(0, np.uint8)
        self._index = built.arrays
        self._lay_out()

    def _lay_out(self) -> None:
        self.table = table_of([*self._index, *self.shown, *self.desk, self.seen, self.out, self.removed])

    def grow(self) -> None:
        """Make more room."""
        super().grow()
        self._lay_out()

    def add_clusters(self) -> None:
        """Make room for more clusters."""
        self.desk = self.desk._replace(clusters=np.empty((2 * len(self.desk.clusters), 2), np.int32))
        self._lay_out()

    def show(self, event: Events) -> None:
        """Write down where another event's arrays lie."""
        first = EACH * len(self._index)
        arrays: list[Any] = [*event]
        for place, (own, before) in enumerate(zip(arrays, self.shown, strict=True)):
            if own is not before:
                self.table[first + EACH * place : first + EACH * (place + 1)] = row_of(own)
        self.shown = event

    def remove(self, removed: NDArray[np.uint8]) -> None:
        """Pass over some filters from now on."""
        self.removed = removed
        self.table[-EACH:] = row_of(removed)
