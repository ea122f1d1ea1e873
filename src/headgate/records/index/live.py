"""A running index of records: the frozen base, the tail, and how they become a new base."""

from __future__ import annotations

import threading
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.live import FrozenBase, LiveState
from headgate.contents.protocol import PAIRS
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.rooms import RECORDS
from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.errors import SnapshotError
from headgate.records.events.columns import columns_of
from headgate.records.index import walking
from headgate.records.index.arrays import BuiltIndex, RecordArrays
from headgate.records.index.kernels import open_event
from headgate.records.index.lines import Lines
from headgate.records.index.matcher import JointMatcher, Matcher, Pairs
from headgate.records.names import USUAL, NameSettings
from headgate.records.tail.layers import ALONE, Layer, Layers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path as FilePath

    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Ints
    from headgate.core.event import Event, Id
    from headgate.records.events.columns import Columns
    from headgate.records.index.arrays import Events
    from headgate.records.index.build import Weigh
    from headgate.records.tail.layers import LateView, Loose


ROOM = RECORDS
LAYOUT = 6
"""The layout of the arrays in a snapshot; one that was written with another must be compiled again."""
MEANING = "names"
"""What names mean to the filters of a snapshot, where that is not as usual."""


WORTH = 3
"""A match that is found in a window takes as long as this many that are found together."""
TRIED = 16
"""Events of a batch that are asked for all their matches, to see how many they have."""


WINDOWS = 4
"""Windows in which the first matches are expected; what is beyond the last of them is looked at in vain."""
WINDOW, LONGEST = 1024, 16_384
"""Filters that are looked at together for the first matches: at least, and at most."""


class Base(FrozenBase):
    """Filters, numbered by the order of their ids. Only `removed` ever changes: from 0 to 1."""

    def __init__(
        self, ids: Ids, filters: TextPool, built: BuiltIndex, settings: NameSettings = USUAL
    ) -> None:
        super().__init__(ids, filters)
        self.built = built
        self.settings = settings
        self.matcher = Matcher(built, settings.mark)
        self._local = threading.local()

    @classmethod
    def open(cls, path: FilePath, *, verify: bool) -> Base:
        """Open a snapshot, memory-mapped."""
        snapshot = open_snapshot(path, ROOM, verify=verify)
        arrays = snapshot.arrays
        if snapshot.about.get("layout") != LAYOUT:
            raise SnapshotError(
                f"snapshot {path} has another layout of the record index than this Headgate reads: compile "
                "it again (headgate compile), or use the Headgate that wrote it"
            )
        built = BuiltIndex(
            RecordArrays(**{name: arrays[name] for name in RecordArrays._fields}),
            Lines(**{name: arrays[f"lines_{name}"] for name in Lines._fields}),
            TextPool(arrays["text_offsets"], arrays["text_data"]),
            tuple(tuple(path) for path in snapshot.about["attributes"]),
            snapshot.counts["subscriptions"],
        )
        filters = TextPool(arrays["filter_offsets"], arrays["filter_data"])
        return cls(Ids.from_arrays(arrays), filters, built, NameSettings.of(snapshot.about.get(MEANING)))

    def save(self, path: FilePath, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; `source` says what it was built from."""
        arrays: dict[str, NDArray[np.generic]] = {**self.built.arrays._asdict()}
        arrays.update({f"lines_{name}": array for name, array in self.built.lines._asdict().items()})
        arrays["text_offsets"], arrays["text_data"] = self.built.texts
        arrays["filter_offsets"], arrays["filter_data"] = self.filters
        arrays.update(self.ids.to_arrays())
        counts = {"subscriptions": len(self.ids), "attributes": len(self.built.attributes)}
        about = {"attributes": self.built.attributes, "layout": LAYOUT, "source": dict(source or {})}
        if not self.settings.usual:
            about[MEANING] = self.settings.plain
        write_snapshot(path, ROOM, arrays, counts=counts, about=about)

    def encode(self, events: pa.RecordBatch | Columns | Sequence[Event]) -> Events:
        """Encode events."""
        return self.matcher.encode(events)

    def match(self, events: Events) -> Pairs:
        """Match encoded events."""
        return self.matcher.match(events, self.removed)

    def first(self, event: Event, count: int, at_least: int = 0) -> Ints:
        """List the first matches from `at_least` on, at most `count`, in rising order.

        In windows if events have had many more matches than are wanted lately, otherwise all and then cut.
        """
        scratch = self.matcher.scratch()
        if at_least > 0:
            return self.cursor(event).take(at_least, count)
        if scratch.matches > WORTH * count:
            out, counts = self._first(self.matcher.encode_one(event), 1, count)
            return out[0, : counts[0]]
        matches = self.matcher.match_one(event, self.removed)
        scratch.note(len(matches))
        return matches[:count].astype(np.int64)

    def _first(self, encoded: Events, events: int, count: int) -> tuple[Ints, Ints]:
        """List the first matches of some events, as many as are expected to have many more."""
        filters, scratch = len(self.ids), self.matcher.scratch()
        expected = count * filters / max(1.0, scratch.matches)
        window = min(max(WINDOW, int(expected / WINDOWS)), LONGEST)
        longest = min(LONGEST, filters)
        out, counts = np.empty((events, min(count, filters)), np.int64), np.empty(events, np.int64)
        scratch.note(
            walking.first_matches(self.built.arrays, encoded, self.removed, window, longest, out, counts),
            events,
        )
        return out, counts

    def first_of_each(self, encoded: Events, events: int, count: int) -> Pairs:
        """List the first matches of each of some encoded events, at most `count`; see `first`."""
        scratch = self.matcher.scratch()
        parts, begin = [_NO_PAIRS], 0
        while begin < events:
            many = scratch.matches > WORTH * count and count < len(self.ids)
            # Not all at once: those that are behind may have more matches.
            size = (
                events
                if many
                else TRIED
                if scratch.matches < 0
                else max(TRIED, PAIRS // max(1, len(self.ids)))
            )
            end = min(begin + size, events)
            some = encoded if end - begin == events else encoded.some(begin, end)
            if many:
                out, counts = self._first(some, end - begin, count)
                pairs = Pairs(
                    np.repeat(np.arange(end - begin), counts),
                    out[np.arange(out.shape[1]) < counts[:, None]].astype(np.int32),
                )
            else:
                pairs = self.match(some)
                scratch.note(len(pairs.events), end - begin)
                pairs = pairs.first(count)
            parts.append(Pairs(pairs.events + begin, pairs.filters))
            begin = end
        return Pairs(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def cursor(self, event: Event) -> Cursor:
        """Return this thread's cursor over the matches of an event; asked again, it goes on where it was."""
        cursor: Cursor | None = getattr(self._local, "cursor", None)
        if cursor is None or cursor.event is not event:
            cursor = self._local.cursor = Cursor(self, event)
        return cursor


class Cursor:
    """The matches of one event in rising order, found as they are asked for."""

    def __init__(self, base: Base, event: Event) -> None:
        self.event = event
        self._arrays = base.built.arrays
        self._removed = base.removed
        self._encoded = base.encode((event,))
        self._fail = np.zeros((len(self._arrays.unkeyed_at) + 63) // 64, np.uint64)
        self._buckets = np.empty(len(self._arrays.line_base), np.uint8)
        clusters, count = open_event(self._arrays, self._encoded, 0, self._fail, self._buckets)
        self._begin = clusters[:count]
        self._rewind()

    def _rewind(self) -> None:
        self._clusters = self._begin.copy()
        self._unkeyed = 0
        self._passed = 0
        self._walked = 0
        self._ahead = np.zeros(0, np.int64)

    def next(self, at_least: int) -> int:
        """Find the first match from `at_least` on, or -1."""
        return int(next(iter(self.take(at_least, 1)), -1))

    def take(self, at_least: int, count: int, window: int = WINDOW) -> Ints:
        """List the first matches from `at_least` on, at most `count`; `window`: how far to look at first."""
        if at_least < self._passed:
            self._rewind()
        known = self._ahead[np.searchsorted(self._ahead, at_least) :]
        known = known[self._removed[known] == 0]
        wanted = min(count, len(self._removed)) - len(known)
        if wanted > 0 and self._walked < len(self._removed):
            longest = min(LONGEST, max(4 * window, WINDOW), len(self._removed))
            out = np.empty(wanted + longest, np.int64)
            bits = np.zeros((longest + 63) // 64, np.uint64)
            walk = walking.Walk(self._clusters, self._fail, self._buckets, self._removed, bits)
            begin = max(at_least, self._walked)
            count_ahead, self._unkeyed, self._walked = walking.next_matches(
                self._arrays, self._encoded, 0, begin, walk, self._unkeyed, wanted, window, out
            )
            known = np.concatenate([known, out[:count_ahead]])
        self._ahead = known[count:]
        if len(known) < count:
            self._passed = np.iinfo(np.int64).max
        elif count:
            self._passed = int(known[count - 1]) + 1
        return known[:count]


_NO_PAIRS = Pairs(np.zeros(0, np.int64), np.zeros(0, np.int32))


class LateMatches(NamedTuple):
    """The late filters that hold for an event in one view, in the order of their ids."""

    event: Event
    view: LateView
    ids: list[Id]
    places: list[int]


class Together(NamedTuple):
    """What is asked about an event in one view: base and layers at once if they can be, and the rest."""

    view: LateView
    layers: tuple[Layer, ...]
    joint: JointMatcher | None
    rest: list[Layer | Loose]

    def removed(self, base: Base, removed: Bytes) -> list[Bytes]:
        """Return what was removed of the base and of each layer."""
        return [base.removed, *(layer.removed(removed) for layer in self.layers)]


class State(LiveState[Base, Layers]):
    """Base and late filters. A writer publishes a filter by the view of these, put in place last."""

    def __init__(self, base: Base, weigh: Weigh | None) -> None:
        super().__init__(base, Layers(weigh, base.settings.mark))
        self._local = threading.local()
        self._together: Together | None = None

    def together(self, view: LateView) -> Together:
        """Return what is asked about an event; layers that were put together before are kept so."""
        known = self._together
        if known is None or known.view is not view:
            layers = tuple(part for part in view.parts if isinstance(part, Layer))
            matchers = [self.base.matcher, *(layer.matcher for layer in layers)]
            if (
                known is not None
                and len(known.layers) == len(layers)
                and all(old is new for old, new in zip(known.layers, layers, strict=True))
            ):
                joint = known.joint
            else:
                joint = JointMatcher.of(matchers) if layers and len(self.base.ids) else None
            rest = [part for part in view.parts if part.filters and not (joint and isinstance(part, Layer))]
            known = self._together = Together(view, layers, joint, rest)
        return known

    def match(self, events: pa.RecordBatch | Sequence[Event]) -> Pairs:
        """Match a batch of events."""
        view, removed = self.tail.view(), self.tail_removed
        if not view.filters:
            return self.base.match(self.base.encode(events))
        joint = self.together(view).joint
        if joint is None or isinstance(events, pa.RecordBatch):
            given = columns_of(events) if isinstance(events, pa.RecordBatch) else events
            pairs, late = self.base.match(self.base.encode(given)), view.match_many(given, removed)
        else:
            together = self.together(view)
            pairs, *more = joint.match_many(events, together.removed(self.base, removed))
            late = [part.match_many(events, removed) for part in together.rest]
            for layer, own in zip(together.layers, more, strict=True):
                late.append(Pairs(own.events, own.filters + np.int32(layer.first)))
        self.tail.note(len(events))
        rows = np.concatenate([pairs.events, *(part.events for part in late)])
        behind = np.int32(len(self.base.ids))
        numbers = np.concatenate([pairs.filters, *(part.filters + behind for part in late)])
        # Rows of a batch fit into 16 bits as a rule, and numbers so small are sorted by their digits.
        small = rows.astype(np.uint16) if len(events) < 1 << 16 else rows
        order = np.argsort(small, kind="stable")
        return Pairs(rows[order], numbers[order])

    def match_one(self, event: Event) -> list[Id]:
        """List the ids that match one event, sorted."""
        base = self.base
        view, removed = self.tail.view(), self.tail_removed
        if not view.filters:
            return base.listed(base.matcher.match_one(event, base.removed))
        together, late = self.together(view), self.tail_ids
        if together.joint is None:
            ids = base.listed(base.matcher.match_one(event, base.removed)) if len(base.ids) else []
        else:
            matches, *more = together.joint.match_one(event, together.removed(base, removed))
            ids = base.listed(matches)
            for layer, own in zip(together.layers, more, strict=True):
                first = layer.first
                ids += [late[first + position] for position in own.tolist()]
        for part in together.rest:
            ids += [late[position] for position in part.match_one(event, removed).tolist()]
        self.tail.note(ALONE)
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
            late = self._late(view, event, removed)
            for at in range(bisect_left(late.ids, at_least), len(late.ids)):
                if not removed[late.places[at]]:
                    return late.ids[at] if first is None else min(first, late.ids[at])
        return first

    def numbers(self, event: Event, count: int | None, at_least: int | None) -> Ints:
        """List the first matches from `at_least` on, if ids are whole numbers, in rising order."""
        base = self.base
        view, removed = self.tail.view(), self.tail_removed
        first = 0 if at_least is None or not len(base.ids) else base.ids.place(at_least)
        filters = base.first(event, len(base.ids) if count is None else count, first)
        ids: Ints = base.numbers[filters]
        if view.filters:
            matches = self._late(view, event, removed)
            late = np.array(matches.ids, np.int64)[removed[matches.places] == 0]
            ids = np.sort(np.concatenate([ids, late if at_least is None else late[late >= at_least]]))
        return ids[:count]

    def first_numbers(self, events: pa.RecordBatch | Sequence[Event], count: int) -> tuple[Ints, Ints]:
        """List the first matches of each of some events: their places, and ids, which are whole numbers."""
        base = self.base
        view, removed = self.tail.view(), self.tail_removed
        given = columns_of(events) if view.filters and isinstance(events, pa.RecordBatch) else events
        pairs = base.first_of_each(base.encode(given), len(events), count)
        rows, ids = pairs.events, base.numbers[pairs.filters]
        if view.filters:
            assert not isinstance(given, pa.RecordBatch)
            late = view.match_many(given, removed)
            names = np.array(self.tail_ids[: view.filters], np.int64)
            rows = np.concatenate([rows, *(part.events for part in late)])
            ids = np.concatenate([ids, *(names[part.filters] for part in late)])
            order = np.lexsort((ids, rows))
            both = Pairs(rows[order], ids[order]).first(count)
            return both.events, both.filters
        return rows, ids

    def _late(self, view: LateView, event: Event, removed: Bytes) -> LateMatches:
        """Return the late filters that hold; this thread keeps them for when it asks about the event again.

        What is removed after that is still among them.
        """
        known: LateMatches | None = getattr(self._local, "late", None)
        if known is None or known.event is not event or known.view is not view:
            places = view.match_one(event, removed).tolist()
            rows: list[tuple[Id, int]] = sorted((self.tail_ids[position], position) for position in places)
            known = LateMatches(event, view, [each for each, _ in rows], [position for _, position in rows])
            self._local.late = known
        return known
