"""The room's public class: all record filters, ready to match."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.core.event import ID, Event
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.errors import EventError, SubscriptionError
from headgate.records import kernels
from headgate.records.arrays import Events, RecordArrays
from headgate.records.build import Built, build
from headgate.records.columns import find_column
from headgate.records.encode import encode_batch, encode_events
from headgate.records.explain import Explanation, explain
from headgate.records.parse import parse_filter
from headgate.records.program import compile_program
from headgate.records.rewrite import normalise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path as FilePath

    from numpy.typing import NDArray

    from headgate.core.event import Id
    from headgate.core.subscription import Subscription

ROOM = "records"
BLOCK = 256
"""Events evaluated together; four words of 64. Larger blocks leave the cache, smaller ones decode more."""
CHUNK = 4096
"""Events encoded together."""

EVENT_ID = "event_id"
SUBSCRIPTION_ID = "subscription_id"


class Pairs(NamedTuple):
    """Matches as numbers: filter `filters[i]` holds for event `events[i]`; sorted by event, then filter."""

    events: NDArray[np.int64]
    filters: NDArray[np.int32]


class RecordIndex:
    """Record filters, immutable, numbered by the order of their ids.

    >>> from headgate import Event, RecordIndex, Subscription
    >>> index = RecordIndex.build([Subscription("s1", "age > 30"), Subscription("s2", "topic = 'news'")])
    >>> index.match(Event("e1", {"age": 35, "topic": "news"}))
    ['s1', 's2']
    """

    def __init__(self, ids: Ids, filters: TextPool, built: Built) -> None:
        self.ids = ids
        self.filters = filters
        self.built = built

    @classmethod
    def build(cls, subscriptions: Iterable[Subscription]) -> RecordIndex:
        """Parse and index subscriptions; refuses bad filters and repeated ids."""
        given = list(subscriptions)
        ids = Ids.of(subscription.id for subscription in given)
        texts = {subscription.id: subscription.filter for subscription in given}
        ordered = [texts[identity] for identity in ids]
        built = build(compile_program(normalise(parse_filter(text))) for text in ordered)
        return cls(ids, TextPool.build(ordered), built)

    @classmethod
    def open(cls, path: FilePath, *, verify: bool = True) -> RecordIndex:
        """Open a snapshot, memory-mapped; see `headgate.core.snapshot` for what is refused."""
        snapshot = open_snapshot(path, ROOM, verify=verify)
        arrays = snapshot.arrays
        built = Built(
            RecordArrays(**{name: arrays[name] for name in RecordArrays._fields}),
            TextPool(arrays["text_offsets"], arrays["text_data"]),
            tuple(tuple(path) for path in snapshot.about["attributes"]),
        )
        return cls(Ids.from_arrays(arrays), TextPool(arrays["filter_offsets"], arrays["filter_data"]), built)

    def save(self, path: FilePath, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; `source` says what it was built from."""
        arrays: dict[str, NDArray[np.generic]] = {**self.built.arrays._asdict()}
        arrays["text_offsets"], arrays["text_data"] = self.built.texts
        arrays["filter_offsets"], arrays["filter_data"] = self.filters
        arrays.update(self.ids.to_arrays())
        counts = {
            "subscriptions": len(self),
            "leaves": self.built.arrays.leaves,
            "attributes": len(self.built.attributes),
        }
        about = {"attributes": self.built.attributes, "source": dict(source or {})}
        write_snapshot(path, ROOM, arrays, counts=counts, about=about)

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self.ids)

    @property
    def attributes(self) -> list[str]:
        """List the attributes that filters look at, by dotted name."""
        return [".".join(path) for path in self.built.attributes]

    def match(self, event: Event) -> list[Id]:
        """List the ids of the matching subscriptions, sorted. O(distinct predicates + filters)."""
        found = self.match_numbers(encode_events([event.attributes], self.built), 1)
        return [self.ids[number] for number in found.filters.tolist()]

    def next(self, event: Event, at_least: Id) -> Id | None:
        """Find the first matching id that is at least `at_least`; later subscriptions are not looked at."""
        encoded = encode_events([event.attributes], self.built)
        number = kernels.next_match(self.built.arrays, encoded, 0, self.ids.place(at_least))
        return None if number < 0 else self.ids[number]

    def match_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Match a batch of events: a column `id` and the attributes in, (event_id, subscription_id) out."""
        identities = find_column(batch, (ID,))
        if identities is None:
            raise EventError(
                f"the events have no column {ID!r}; the columns are {', '.join(batch.schema.names)}"
            )
        return self.pairs_to_arrow(self._match_chunks(batch), identities)

    def match_events(self, events: Sequence[Event]) -> Pairs:
        """Match events given as Python values, many at once; returns numbers, not ids."""
        parts = []
        for begin in range(0, len(events), CHUNK):
            chunk = [event.attributes for event in events[begin : begin + CHUNK]]
            found = self.match_numbers(encode_events(chunk, self.built), len(chunk))
            parts.append(Pairs(found.events + begin, found.filters))
        return _join(parts)

    def explain(self, event: Event, identity: Id) -> Explanation:
        """Say why an event matches a subscription or not, clause by clause."""
        number = self.ids.place(identity)
        if number == len(self.ids) or self.ids[number] != identity:
            raise SubscriptionError(f"there is no subscription {identity!r} here")
        return explain(parse_filter(self.filters.text(number)), event.attributes)

    def pairs_to_arrow(self, pairs: Pairs, identities: pa.Array[pa.Scalar[pa.DataType]]) -> pa.RecordBatch:
        """Turn numbers into ids."""
        events = identities.take(pairs.events)
        subscriptions = self._id_array.take(pairs.filters)
        return pa.RecordBatch.from_arrays([events, subscriptions], names=[EVENT_ID, SUBSCRIPTION_ID])

    def match_numbers(self, events: Events, count: int) -> Pairs:
        """Match encoded events, block by block."""
        arrays = self.built.arrays
        words = (min(BLOCK, count) + 63) // 64
        truth = np.zeros((arrays.leaves, words), np.uint64)
        bits = np.zeros((arrays.filters, words), np.uint64)
        parts = []
        for begin in range(0, count, BLOCK):
            size = min(BLOCK, count - begin)
            kernels.fill_truth(arrays, events, begin, size, truth)
            kernels.run_programs(arrays, truth, (size + 63) // 64, bits)
            counts = np.zeros(size, np.int64)
            kernels.count_matches(bits, size, counts)
            places = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
            filters = np.empty(int(counts.sum()), np.int32)
            kernels.list_matches(bits, size, places, filters)
            parts.append(Pairs(np.repeat(np.arange(begin, begin + size), counts), filters))
        return _join(parts)

    def _match_chunks(self, batch: pa.RecordBatch) -> Pairs:
        parts = []
        for begin in range(0, batch.num_rows, CHUNK):
            chunk = batch.slice(begin, CHUNK)
            found = self.match_numbers(encode_batch(chunk, self.built), chunk.num_rows)
            parts.append(Pairs(found.events + begin, found.filters))
        return _join(parts)

    @cached_property
    def _id_array(self) -> pa.Array[pa.Scalar[pa.DataType]]:
        return self.ids.to_arrow()


def _join(parts: Sequence[Pairs]) -> Pairs:
    if not parts:
        return Pairs(np.zeros(0, np.int64), np.zeros(0, np.int32))
    return Pairs(
        np.concatenate([part.events for part in parts]), np.concatenate([part.filters for part in parts])
    )
