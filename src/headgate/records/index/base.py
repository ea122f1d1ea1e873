"""The frozen part of an index: filters in flat arrays, their ids and texts."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.living import Frozen
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.rooms import RECORDS
from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.errors import SnapshotError
from headgate.records.events.encode import SingleEncoder
from headgate.records.index import kernels, walking
from headgate.records.index.arrays import Events, RecordArrays
from headgate.records.index.build import Built
from headgate.records.index.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path as FilePath

    from numpy.typing import NDArray

    from headgate.core.event import Event

ROOM = RECORDS
LAYOUT = 2
"""The layout of the arrays in a snapshot; one that was written with another must be compiled again."""


WORTH = 8
"""A match that is found by itself takes as long as this many that are found together."""
LOOK_AGAIN = 64
"""One event in so many that are asked for their first matches is asked for all, to see how many it has."""


class Pairs(NamedTuple):
    """Matches as numbers: filter `filters[i]` holds for event `events[i]`; sorted by event, then filter."""

    events: NDArray[np.int64]
    filters: NDArray[np.int32]


class Scratch:
    """What one thread needs to match: marks of filters already found, and room for the answer.

    `matches` is how many an event had lately, `asked` how many were asked for their first ones.
    """

    def __init__(self, filters: int) -> None:
        self.seen = np.zeros(filters, np.int32)
        self.out = np.empty(1 << 16, np.int32)
        self.matches = 0
        self.asked = 0
        self._stamp = 1

    def stamps(self, count: int) -> int:
        """Take some stamps that `seen` does not hold; returns the first."""
        if self._stamp + count >= 2**31:
            self.seen[:] = 0
            self._stamp = 1
        self._stamp += count
        return self._stamp - count

    def grow(self) -> None:
        """Make more room."""
        self.out = np.empty(2 * len(self.out), np.int32)


class Base(Frozen):
    """Filters, numbered by the order of their ids. Only `removed` ever changes: from 0 to 1."""

    def __init__(self, ids: Ids, filters: TextPool, built: Built) -> None:
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
        built = Built(
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
    def encoder(self) -> SingleEncoder:
        """Return what encodes one event at a time."""
        return SingleEncoder(self.built)

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

    def first(self, event: Event, count: int, at_least: int = 0) -> NDArray[np.int64]:
        """List the first matches from `at_least` on, at most `count`, in rising order.

        One by one if events have had many more matches than are wanted lately, otherwise all and then cut.
        """
        scratch = self._scratch()
        scratch.asked += 1
        if at_least > 0 or (scratch.matches > WORTH * count and scratch.asked % LOOK_AGAIN):
            return self.cursor(event).take(at_least, count)
        found = self.match(self.encoder.encode(event.attributes), 1).filters
        scratch.matches = len(found)
        return found[:count].astype(np.int64)

    def _scratch(self) -> Scratch:
        """Return this thread's scratch space."""
        found = getattr(self._local, "scratch", None)
        if found is None:
            found = self._local.scratch = Scratch(len(self.ids))
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
        self._encoded = base.encoder.encode(event.attributes)
        self._fail = np.zeros((len(self._arrays.outcast_at) + 63) // 64, np.uint64)
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
        self._outcast = 0
        self._passed = 0

    def next(self, at_least: int) -> int:
        """Find the first match from `at_least` on, or -1."""
        if at_least < self._passed:
            self._rewind()
        number, self._outcast = walking.next_match(
            self._arrays,
            self._encoded,
            0,
            at_least,
            self._clusters,
            len(self._clusters),
            self._fail,
            self._outcast,
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
        found, self._outcast = walking.next_matches(
            self._arrays,
            self._encoded,
            0,
            at_least,
            self._clusters,
            len(self._clusters),
            self._fail,
            self._outcast,
            self._removed,
            out,
        )
        if found < len(out):
            self._passed = np.iinfo(np.int64).max
        elif found:
            self._passed = int(out[-1]) + 1
        return out[:found]
