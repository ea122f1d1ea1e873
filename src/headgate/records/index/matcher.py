"""A built index for threads to ask: encodes events, matches them, and keeps what each thread needs."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit.memory import EACH, row_of, table_of
from headgate.records.events.joint import JointEncoder, together
from headgate.records.events.rows import RowEncoder
from headgate.records.index import kernels
from headgate.records.index.arrays import Desk, Scratch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.core.event import Event
    from headgate.records.events.joint import JointRoom
    from headgate.records.index.arrays import BuiltIndex, Events


FEW, MOST_ROOM = 128, 1 << 20
"""Events that there is to be room for at once, and the matches that this is worth."""


NO_BOUND = 1 << 62
"""More matches than there are."""


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
        return self.match_some(events, 0, count, removed)[1]

    def match_some(
        self, events: Events, begin: int, count: int, removed: NDArray[np.uint8], most: int = NO_BOUND
    ) -> tuple[int, Pairs]:
        """Match encoded events from one on, until they are `count` or have `most` matches together.

        Returns the event behind the last that was matched, which is one at least.
        """
        scratch = self.scratch()
        counts = np.zeros(count, np.int64)
        parts: list[NDArray[np.int32]] = []
        done, total = begin, 0
        while done < count and total < most:
            stamp = scratch.stamps(count - done) - done
            # One event by itself may have more.
            room = scratch.out[: most - total] if total else scratch.out
            end = count if total or len(room) <= most else done + 1
            reached, more = kernels.match_events(
                self.built.arrays,
                events,
                done,
                end,
                scratch.desk,
                scratch.seen,
                stamp,
                removed,
                room,
                counts,
            )
            if reached > done:
                parts.append(room[: counts[done:reached].sum()].copy())
                total += len(parts[-1])
            # An event that does not fit is matched again, so there is to be room for many.
            tight = reached - done < min(FEW, end - done) and len(scratch.out) < MOST_ROOM
            bounded, stuck, done = len(room) < len(scratch.out), reached == done, reached
            if more:
                scratch.add_clusters()
            elif bounded:
                break
            elif tight or stuck:
                scratch.grow()
        filters = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int32), *parts])
        return done, Pairs(np.repeat(np.arange(begin, done), counts[begin:done]), filters)

    def match_one(self, event: Event, removed: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Match one event given as Python values; returns the filters, rising."""
        return self.match_encoded(self.encoder.encode_one(event, self.scratch().room), removed)

    def match_encoded(self, encoded: Events, removed: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Match one encoded event."""
        scratch = self.scratch()
        if encoded is not scratch.shown:
            scratch.show(encoded)
        if removed is not scratch.removed:
            scratch.remove(removed)
        while True:
            scratch.stamp[0] = scratch.stamps(1)
            found = kernels.match_one(scratch.tables, scratch.stamp, scratch.count)
            if found >= 0:
                return scratch.out[:found].copy()
            scratch.make_room(found)

    def encode_one(self, event: Event) -> Events:
        """Encode one event given as Python values, for this thread and until it encodes another."""
        return self.encoder.encode_one(event, self.scratch().room)

    def scratch(self) -> MatcherScratch:
        """Return this thread's scratch space."""
        found: MatcherScratch | None = getattr(self._local, "scratch", None)
        if found is None:
            found = self._local.scratch = MatcherScratch(self.built, self.encoder)
        return found


class JointMatcher:
    """Several indexes that are asked about the same events: these are encoded once for all of them."""

    def __init__(self, matchers: Sequence[Matcher]) -> None:
        self.matchers = matchers
        self._encoder = JointEncoder([each.encoder for each in matchers])
        self._local = threading.local()

    @classmethod
    def of(cls, matchers: Sequence[Matcher]) -> JointMatcher | None:
        """Put indexes together, if their events have nothing but codes."""
        several = len(matchers) > 1
        return cls(matchers) if several and together([each.encoder for each in matchers]) else None

    def match_one(self, event: Event, removed: Sequence[NDArray[np.uint8]]) -> list[NDArray[np.int32]]:
        """Match one event by each index; gives what each has found, until this thread asks again."""
        desk: JointDesk | None = getattr(self._local, "desk", None)
        if desk is None:
            desk = JointDesk([each.scratch() for each in self.matchers], self._encoder.rooms())
            self._local.desk = desk
        self._encoder.write_one(event, desk.room)
        return desk.match(removed)

    def match_events(self, events: Sequence[Event], removed: Sequence[NDArray[np.uint8]]) -> list[Pairs]:
        """Match many events by each index."""
        return [
            each.match(encoded, len(events), gone)
            for each, encoded, gone in zip(
                self.matchers, self._encoder.encode_all(events), removed, strict=True
            )
        ]


class JointDesk:
    """What one thread needs to match one event by several indexes with one call."""

    def __init__(self, scratches: list[MatcherScratch], room: JointRoom) -> None:
        self.room = room
        self._scratches = scratches
        self._tables = [each.table for each in scratches]
        self._table = table_of(self._tables)
        self._stamps, self._counts = (np.zeros(len(scratches), np.int64) for _ in range(2))

    def match(self, removed: Sequence[NDArray[np.uint8]]) -> list[NDArray[np.int32]]:
        """Match the event of the room; `removed` are those of each index."""
        while True:
            self._prepare(removed)
            if kernels.match_one(self._table, self._stamps, self._counts) >= 0:
                found = zip(self._scratches, self._counts.tolist(), strict=True)
                return [scratch.out[:count] for scratch, count in found]
            at = int(np.argmin(self._counts))
            self._scratches[at].make_room(int(self._counts[at]))
            self._counts[:] = 0

    def _prepare(self, removed: Sequence[NDArray[np.uint8]]) -> None:
        """Write down all that has changed since: others ask each index by itself, and make room."""
        for k, scratch in enumerate(self._scratches):
            if scratch.shown is not self.room.own[k]:
                scratch.show(self.room.own[k])
            if scratch.removed is not removed[k]:
                scratch.remove(removed[k])
            if scratch.table is not self._tables[k]:
                self._tables[k] = scratch.table
                self._table = table_of(self._tables)
            self._stamps[k] = scratch.stamps(1)


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
        self.stamp, self.count = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self._index = built.arrays
        self._lay_out()

    def _lay_out(self) -> None:
        self.table = table_of([*self._index, *self.shown, *self.desk, self.seen, self.out, self.removed])
        self.tables = table_of([self.table])

    def make_room(self, why: int) -> None:
        """Make room for an event that was not matched, for the reason that the kernel gave."""
        if why == kernels.NO_ROOM:
            self.grow()
        else:
            self.add_clusters()

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
