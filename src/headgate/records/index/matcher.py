"""A built index for threads to ask, or several: encodes events, matches them, keeps what threads need.

An index and what came later to it look at the same attributes, mostly. What a value means to each of them is
kept together, and written by one look-up; it is put together from what each has kept for itself, so that a
new index among them costs the others nothing.
"""

from __future__ import annotations

import threading
from array import array
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.core.jit.memory import EACH, row_of, table_of
from headgate.records.events.columns import Columns, columns_of
from headgate.records.events.encode import encode
from headgate.records.events.rows import Attribute, Beside, RowEncoder
from headgate.records.index import kernels
from headgate.records.index.arrays import Desk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Ints, Ints32
    from headgate.core.event import Event
    from headgate.core.values import Kind, Path
    from headgate.records.events.encode import LineCodes
    from headgate.records.events.rows import Found
    from headgate.records.index.arrays import BuiltIndex, Events


class JointAttribute(Attribute):
    """An attribute, and what several indexes do with a value of it: their lines, index after index."""

    def __init__(self, own: Sequence[tuple[Attribute, int]], nowhere: int) -> None:
        """Put attributes together; each has the number of lines of the indexes before its own."""
        first = own[0][0]
        super().__init__(first.path, (), nowhere)
        self._own = [attribute for attribute, _ in own]
        self.lines = [line.moved(behind) for each, behind in own for line in _lines(each)]
        self.named = any(each.named for each in self._own)
        self.computes = any(each.computes for each in self._own)

    def find(self, value: object, kind: Kind) -> Found:
        """Return the codes of a value that was checked."""
        codes: list[int] = []
        for each in self._own:
            kept = each.codes.get(type(value))
            code = (each.find(value, kind) if kept is None else kept[value])[1]
            if isinstance(code, tuple):
                codes += code
            elif each.lines or each.made:
                codes.append(code)
        return self.found(tuple(codes))


def _lines(attribute: Attribute) -> list[LineCodes]:
    """List the lines of an attribute in the order of its codes."""
    return [*attribute.lines, *(line for _, lines in attribute.made for line in lines)]


def together(encoders: Sequence[RowEncoder]) -> bool:
    """Tell whether events have nothing but codes for all of some indexes, and names mean the same to them."""
    return len({each.mark for each in encoders}) == 1 and all(each.plain for each in encoders)


class JointEncoder(RowEncoder):
    """Encodes events for several indexes at once; only where `together` says that this can be done."""

    def __init__(self, encoders: Sequence[RowEncoder]) -> None:
        self._begin(encoders[0].mark)
        self._own = encoders
        self.starts = [0, *np.cumsum([each.size for each in encoders]).tolist()]
        """Where the lines of each index begin, and where the last ones end."""
        size = self.starts[-1]
        owned: dict[Path, list[tuple[Attribute, int]]] = {}
        for each, behind in zip(encoders, self.starts, strict=False):
            for path, attribute in each.attributes.items():
                owned.setdefault(path, []).append((attribute, behind))
        self.attributes = {path: JointAttribute(own, size) for path, own in owned.items()}
        self.plain = True
        self._nothing = Beside()
        nulls = [0] * (size + 1)
        for attribute in self.attributes.values():
            for line in attribute.lines:
                nulls[line.number] = line.null
        self._settle(size, 0, nulls)

    def encode_all(self, events: Sequence[Event]) -> list[Events]:
        """Encode events, for each of the indexes."""
        codes = self.encode(events).codes
        return [
            each.with_codes(np.ascontiguousarray(codes[:, first:last]))
            for each, first, last in zip(self._own, self.starts, self.starts[1:], strict=False)
        ]

    def joint_scratch(self) -> JointScratch:
        """Make scratch space for one event at a time; each thread needs its own."""
        codes = np.zeros((1, self.size), np.int32)
        own = [
            each.with_codes(codes[:, first:last])
            for each, first, last in zip(self._own, self.starts, self.starts[1:], strict=False)
        ]
        return JointScratch(memoryview(codes.data).cast("B").cast("i"), own)

    def write_one(self, event: Event, scratch: JointScratch) -> None:
        """Encode one event."""
        scratch.codes[:] = array("i", self._row(event, 0, self._nothing))


class JointScratch(NamedTuple):
    """Where one event at a time is encoded: `codes` are those of all, `own` what each index sees of them."""

    codes: memoryview
    own: list[Events]


FEW, MOST_ROOM = 128, 1 << 20
"""Events that there is to be room for at once, and the matches that this is worth."""


NO_BOUND = 1 << 62
"""More matches than there are."""


class Pairs(NamedTuple):
    """Matches as numbers: filter `filters[i]` holds for event `events[i]`; sorted by event, then filter."""

    events: Ints
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

    def encode(self, events: pa.RecordBatch | Columns | Sequence[Event]) -> Events:
        """Encode events: an Arrow batch by its columns, Python values event by event."""
        given = columns_of(events) if isinstance(events, pa.RecordBatch) else events
        return encode(given, self.built) if isinstance(given, Columns) else self.encoder.encode(given)

    def match(self, events: Events, removed: Bytes) -> Pairs:
        """Match encoded events; removed[f] says that filter f is passed over."""
        return self.match_some(events, 0, len(events.codes), removed)[1]

    def match_some(
        self, events: Events, begin: int, count: int, removed: Bytes, most: int = NO_BOUND
    ) -> tuple[int, Pairs]:
        """Match encoded events from one on, until they are `count` or have `most` matches together.

        Returns the event behind the last that was matched, which is one at least.
        """
        scratch = self.scratch()
        counts = np.zeros(count, np.int64)
        parts: list[Ints32] = []
        done, total = begin, 0
        while done < count and total < most:
            stamp = scratch.stamps(count - done) - done
            # One event by itself may have more.
            out = scratch.out[: most - total] if total else scratch.out
            end = count if total or len(out) <= most else done + 1
            reached, more = kernels.match_events(
                self.built.arrays,
                events,
                done,
                end,
                scratch.desk,
                scratch.seen,
                stamp,
                removed,
                out,
                counts,
            )
            if reached > done:
                parts.append(out[: counts[done:reached].sum()].copy())
                total += len(parts[-1])
            # An event that does not fit is matched again, so there is to be room for many.
            tight = reached - done < min(FEW, end - done) and len(scratch.out) < MOST_ROOM
            bounded, stuck, done = len(out) < len(scratch.out), reached == done, reached
            if more:
                scratch.add_clusters()
            elif bounded:
                break
            elif tight or stuck:
                scratch.grow()
        filters = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int32), *parts])
        return done, Pairs(np.repeat(np.arange(begin, done), counts[begin:done]), filters)

    def match_one(self, event: Event, removed: Bytes) -> Ints32:
        """Match one event given as Python values; returns the filters, rising."""
        scratch = self.scratch()
        encoded = self.encoder.encode_one(event, scratch.row)
        if encoded is not scratch.shown:
            scratch.show(encoded)
        if removed is not scratch.removed:
            scratch.remove(removed)
        while True:
            scratch.stamp[0] = scratch.stamps(1)
            count = kernels.match_one(scratch.tables, scratch.stamp, scratch.count)
            if count >= 0:
                return scratch.out[:count].copy()
            scratch.make_room(count)

    def encode_one(self, event: Event) -> Events:
        """Encode one event given as Python values, for this thread and until it encodes another."""
        return self.encoder.encode_one(event, self.scratch().row)

    def scratch(self) -> MatcherScratch:
        """Return this thread's scratch space."""
        scratch: MatcherScratch | None = getattr(self._local, "scratch", None)
        if scratch is None:
            scratch = self._local.scratch = MatcherScratch(self.built, self.encoder)
        return scratch


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

    def match_one(self, event: Event, removed: Sequence[Bytes]) -> list[Ints32]:
        """Match one event by each index; gives what each has found, until this thread asks again."""
        desk: JointDesk | None = getattr(self._local, "desk", None)
        if desk is None:
            desk = JointDesk([each.scratch() for each in self.matchers], self._encoder.joint_scratch())
            self._local.desk = desk
        self._encoder.write_one(event, desk.joint)
        return desk.match(removed)

    def match_many(self, events: Sequence[Event], removed: Sequence[Bytes]) -> list[Pairs]:
        """Match many events by each index."""
        return [
            each.match(encoded, gone)
            for each, encoded, gone in zip(
                self.matchers, self._encoder.encode_all(events), removed, strict=True
            )
        ]


class JointDesk:
    """What one thread needs to match one event by several indexes with one call."""

    def __init__(self, scratches: list[MatcherScratch], joint: JointScratch) -> None:
        self.joint = joint
        self._scratches = scratches
        self._tables = [each.table for each in scratches]
        self._table = table_of(self._tables)
        self._stamps, self._counts = (np.zeros(len(scratches), np.int64) for _ in range(2))

    def match(self, removed: Sequence[Bytes]) -> list[Ints32]:
        """Match the event that was encoded; `removed` are those of each index."""
        while True:
            self._prepare(removed)
            if kernels.match_one(self._table, self._stamps, self._counts) >= 0:
                counted = zip(self._scratches, self._counts.tolist(), strict=True)
                return [scratch.out[:count] for scratch, count in counted]
            at = int(np.argmin(self._counts))
            self._scratches[at].make_room(int(self._counts[at]))
            self._counts[:] = 0

    def _prepare(self, removed: Sequence[Bytes]) -> None:
        """Write down all that has changed since: others ask each index by itself, and make room."""
        for k, scratch in enumerate(self._scratches):
            if scratch.shown is not self.joint.own[k]:
                scratch.show(self.joint.own[k])
            if scratch.removed is not removed[k]:
                scratch.remove(removed[k])
            if scratch.table is not self._tables[k]:
                self._tables[k] = scratch.table
                self._table = table_of(self._tables)
            self._stamps[k] = scratch.stamps(1)


LATELY = 8
"""Events whose matches are averaged."""


class MatcherScratch:
    """What one thread needs to match events by an index, and the table by which one event is asked about.

    `seen` marks filters already found, `out` is room for the answer, and `matches` how many an event has had
    lately, on average; -1 if that is not known.

    `table` has the arrays of the index, of an event, and of all that is written to, in the order in which
    `kernels.match_one` reads them.
    """

    def __init__(self, built: BuiltIndex, encoder: RowEncoder) -> None:
        self.seen = np.zeros(built.filters, np.int32)
        self.out = np.empty(1 << 16, np.int32)
        self.matches = -1.0
        self._stamp = 1
        self.desk = Desk.of(built.arrays, built.filters)
        self.row = encoder.scratch()
        self.shown = self.row.events
        """The event that the table has; its codes are those of `row`."""
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
        self.out = np.empty(2 * len(self.out), np.int32)
        self._lay_out()

    def stamps(self, count: int) -> int:
        """Take some stamps that `seen` does not hold; returns the first."""
        if self._stamp + count >= 2**31:
            self.seen[:] = 0
            self._stamp = 1
        self._stamp += count
        return self._stamp - count

    def note(self, matches: float, events: int = 1) -> None:
        """Take note of how many matches some events had, together."""
        share = 1.0 if self.matches < 0 else min(1.0, events / LATELY)
        self.matches += share * (matches / events - self.matches)

    def add_clusters(self) -> None:
        """Make room for more clusters."""
        self.desk = self.desk._replace(clusters=np.empty((2 * len(self.desk.clusters), 2), np.int32))
        self._lay_out()

    def show(self, event: Events) -> None:
        """Write down where another event's arrays lie."""
        first = EACH * len(self._index)
        arrays: list[Any] = [*event]
        for position, (own, before) in enumerate(zip(arrays, self.shown, strict=True)):
            if own is not before:
                self.table[first + EACH * position : first + EACH * (position + 1)] = row_of(own)
        self.shown = event

    def remove(self, removed: Bytes) -> None:
        """Pass over some filters from now on."""
        self.removed = removed
        self.table[-EACH:] = row_of(removed)
