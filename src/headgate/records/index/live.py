"""A running index of records: the frozen base, the tail, and how they become a new base."""

from __future__ import annotations

import threading
from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.live import FrozenBase, LiveState
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.rooms import RECORDS
from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.errors import SnapshotError
from headgate.records.events.columns import columns_of
from headgate.records.events.encode import encode
from headgate.records.events.rows import RowEncoder
from headgate.records.index import kernels, walking
from headgate.records.index.arrays import Events, RecordArrays, Scratch
from headgate.records.index.build import BuiltIndex, build
from headgate.records.index.lines import Lines
from headgate.records.index.restoring import read_programs
from headgate.records.programs.binding import compile_filter
from headgate.records.programs.programs import concatenate, in_columns, take
from headgate.records.tail.tail import Tail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path as FilePath

    from numpy.typing import NDArray

    from headgate.contents.live import Moment
    from headgate.core.event import Event, Id
    from headgate.records.events.rows import Room
    from headgate.records.index.build import Weigh
    from headgate.records.tail.tail import TailView


ROOM = RECORDS
LAYOUT = 4
"""The layout of the arrays in a snapshot; one that was written with another must be compiled again."""


WORTH = 8
"""A match that is found by itself takes as long as this many that are found together."""
LOOK_AGAIN = 64
"""One event in so many that are asked for their first matches is asked for all, to see how many it has."""


class Pairs(NamedTuple):
    """Matches as numbers: filter `filters[i]` holds for event `events[i]`; sorted by event, then filter."""

    events: NDArray[np.int64]
    filters: NDArray[np.int32]


class Base(FrozenBase):
    """Filters, numbered by the order of their ids. Only `removed` ever changes: from 0 to 1."""

    def __init__(self, ids: Ids, filters: TextPool, built: BuiltIndex) -> None:
        super().__init__(ids, filters)
        self.built = built
        self._local = threading.local()

    @classmethod
    def open(cls, path: FilePath, *, verify: bool) -> Base:
        """Open a snapshot, memory-mapped."""
        snapshot = open_snapshot(path, ROOM, verify=verify)
        arrays = snapshot.arrays
        if snapshot.about.get("layout") != LAYOUT:
            raise SnapshotError(
                f"snapshot {path} has an older layout of the record index than this Headgate reads: "
                "compile it again"
            )
        built = BuiltIndex(
            RecordArrays(**{name: arrays[name] for name in RecordArrays._fields}),
            Lines(**{name: arrays[f"lines_{name}"] for name in Lines._fields}),
            TextPool(arrays["text_offsets"], arrays["text_data"]),
            tuple(tuple(path) for path in snapshot.about["attributes"]),
            snapshot.counts["subscriptions"],
        )
        return cls(Ids.from_arrays(arrays), TextPool(arrays["filter_offsets"], arrays["filter_data"]), built)

    def save(self, path: FilePath, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; `source` says what it was built from."""
        arrays: dict[str, NDArray[np.generic]] = {**self.built.arrays._asdict()}
        arrays.update({f"lines_{name}": array for name, array in self.built.lines._asdict().items()})
        arrays["text_offsets"], arrays["text_data"] = self.built.texts
        arrays["filter_offsets"], arrays["filter_data"] = self.filters
        arrays.update(self.ids.to_arrays())
        counts = {"subscriptions": len(self.ids), "attributes": len(self.built.attributes)}
        about = {"attributes": self.built.attributes, "layout": LAYOUT, "source": dict(source or {})}
        write_snapshot(path, ROOM, arrays, counts=counts, about=about)

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """Return the ids, which must be whole numbers, as an array."""
        return np.asarray(self.id_array.cast(pa.int64()))

    @cached_property
    def encoder(self) -> RowEncoder:
        """Return what encodes events given as Python values."""
        return RowEncoder(self.built)

    def encode(self, events: pa.RecordBatch | Sequence[Event]) -> Events:
        """Encode events: an Arrow batch by its columns, Python values event by event."""
        if isinstance(events, pa.RecordBatch):
            return encode(columns_of(events), self.built)
        return self.encoder.encode(events)

    def match(self, events: Events, count: int) -> Pairs:
        """Match encoded events."""
        scratch = self._scratch()
        counts = np.zeros(count, np.int64)
        parts: list[NDArray[np.int32]] = []
        done = 0
        while done < count:
            stamp = scratch.stamps(count) - done
            reached = kernels.match_events(
                self.built.arrays, events, done, count, scratch.seen, stamp, self.removed, scratch.out, counts
            )
            if reached == done:
                scratch.grow()
                continue
            parts.append(scratch.out[: counts[done:reached].sum()].copy())
            done = reached
        return Pairs(np.repeat(np.arange(count), counts), np.concatenate([np.zeros(0, np.int32), *parts]))

    def match_one(self, event: Event) -> NDArray[np.int32]:
        """Match one event given as Python values; returns the filters, rising."""
        scratch = self._scratch()
        encoded = self.encoder.encode_one(event, self._room())
        while True:
            reached = kernels.match_events(
                self.built.arrays,
                encoded,
                0,
                1,
                scratch.seen,
                scratch.stamps(1),
                self.removed,
                scratch.out,
                scratch.count,
            )
            if reached:
                return scratch.out[: scratch.count[0]].copy()
            scratch.grow()

    def first(self, event: Event, count: int, at_least: int = 0) -> NDArray[np.int64]:
        """List the first matches from `at_least` on, at most `count`, in rising order.

        One by one if events have had many more matches than are wanted lately, otherwise all and then cut.
        """
        scratch = self._scratch()
        scratch.asked += 1
        if at_least > 0 or (scratch.matches > WORTH * count and scratch.asked % LOOK_AGAIN):
            return self.cursor(event).take(at_least, count)
        found = self.match_one(event)
        scratch.matches = len(found)
        return found[:count].astype(np.int64)

    def _scratch(self) -> Scratch:
        """Return this thread's scratch space."""
        found = getattr(self._local, "scratch", None)
        if found is None:
            found = self._local.scratch = Scratch(len(self.ids))
        return found

    def _room(self) -> Room:
        """Return this thread's room for one event."""
        found: Room | None = getattr(self._local, "room", None)
        if found is None:
            found = self._local.room = self.encoder.room()
        return found

    def cursor(self, event: Event) -> Cursor:
        """Return this thread's cursor over the matches of an event; asked again, it goes on where it was."""
        found: Cursor | None = getattr(self._local, "cursor", None)
        if found is None or found.event is not event:
            found = self._local.cursor = Cursor(self, event)
        return found


class Cursor:
    """The matches of one event in rising order, found one at a time."""

    def __init__(self, base: Base, event: Event) -> None:
        self.event = event
        self._arrays = base.built.arrays
        self._removed = base.removed
        self._encoded = base.encoder.encode((event,))
        self._fail = np.zeros((len(self._arrays.unkeyed_at) + 63) // 64, np.uint64)
        room = 256
        while True:
            self._begin = np.empty((room, 2), np.int32)
            found = walking.open_cursor(self._arrays, self._encoded, 0, self._begin, self._fail)
            if found >= 0:
                break
            room *= 2
        self._begin = self._begin[:found]
        self._rewind()

    def _rewind(self) -> None:
        self._clusters = self._begin.copy()
        self._unkeyed = 0
        self._passed = 0

    def next(self, at_least: int) -> int:
        """Find the first match from `at_least` on, or -1."""
        if at_least < self._passed:
            self._rewind()
        number, self._unkeyed = walking.next_match(
            self._arrays,
            self._encoded,
            0,
            at_least,
            self._clusters,
            len(self._clusters),
            self._fail,
            self._unkeyed,
            self._removed,
        )
        # The match itself has been passed: asking for it again starts anew.
        self._passed = number + 1 if number >= 0 else np.iinfo(np.int64).max
        return int(number)

    def take(self, at_least: int, count: int) -> NDArray[np.int64]:
        """List the first matches from `at_least` on, at most `count`."""
        if at_least < self._passed:
            self._rewind()
        out = np.empty(min(count, len(self._removed)), np.int64)
        found, self._unkeyed = walking.next_matches(
            self._arrays,
            self._encoded,
            0,
            at_least,
            self._clusters,
            len(self._clusters),
            self._fail,
            self._unkeyed,
            self._removed,
            out,
        )
        if found < len(out):
            self._passed = np.iinfo(np.int64).max
        elif found:
            self._passed = int(out[-1]) + 1
        return out[:found]


class State(LiveState[Base, Tail]):
    """Base and tail. A writer publishes a filter by the tail's count, raised last."""

    def __init__(self, base: Base) -> None:
        super().__init__(base, Tail())

    def match(self, events: pa.RecordBatch | Sequence[Event]) -> Pairs:
        """Match a batch of events."""
        view, removed = self.tail.view(), self.tail_removed
        found = self.base.match(self.base.encode(events), len(events))
        if not view.filters:
            return found
        columns = columns_of(events)
        for path in view.compared:
            columns.refuse_foreign(path)
        counts, places = self.tail.match_columns(view, columns, columns.count, removed)
        rows = np.concatenate([found.events, np.repeat(np.arange(columns.count), counts)])
        numbers = np.concatenate([found.filters, places + np.int32(len(self.base.ids))])
        order = np.argsort(rows, kind="stable")
        return Pairs(rows[order], numbers[order])

    def match_one(self, event: Event) -> list[Id]:
        """List the ids that match one event, sorted."""
        base = self.base
        view, removed = self.tail.view(), self.tail_removed
        ids = base.listed(base.match_one(event))
        if view.filters:
            ids.extend(self._of_tail(view, event, removed))
            ids.sort()
        return ids

    def next(self, event: Event, at_least: Id) -> Id | None:
        """Find the first match whose id is at least the given one."""
        base = self.base
        self.check_type(at_least)
        view, removed = self.tail.view(), self.tail_removed
        first = None
        if len(base.ids):
            number = base.cursor(event).next(base.ids.place(at_least))
            first = None if number < 0 else base.ids[number]
        if view.filters:
            found = sorted(self._of_tail(view, event, removed))
            later = found[bisect_left(found, at_least) :][:1]
            return min([*later, *([] if first is None else [first])], default=None)
        return first

    def numbers(self, event: Event, count: int | None, at_least: int | None) -> NDArray[np.int64]:
        """List the first matches from `at_least` on, if ids are whole numbers, in rising order."""
        base = self.base
        view, removed = self.tail.view(), self.tail_removed
        first = 0 if at_least is None or not len(base.ids) else base.ids.place(at_least)
        found = base.first(event, len(base.ids) if count is None else count, first)
        ids: NDArray[np.int64] = base.numbers[found]
        if view.filters:
            late = np.array(self._of_tail(view, event, removed), np.int64)
            ids = np.sort(np.concatenate([ids, late if at_least is None else late[late >= at_least]]))
        return ids[:count]

    def _of_tail(self, view: TailView, event: Event, removed: NDArray[np.uint8]) -> list[Id]:
        found = self.tail.match_one(view, event.attributes, removed)
        return [self.tail_ids[place] for place in found.tolist()]


def compact(moment: Moment[State], weigh: Weigh) -> State:
    """Build a state whose base holds all that was left; the given one is not changed.

    The base is read back from its arrays. Only filters that it keeps as trees are compiled again.
    """
    state, keep, late = moment
    base = state.base
    left = read_programs(base.built, keep, lambda f: in_columns([compile_filter(base.filters.text(f))]))
    programs = concatenate([left, state.tail.programs(late)])
    ids, filters, order = state.merged(keep, late)
    return State(Base(ids, filters, build(take(programs, order), weigh)))
