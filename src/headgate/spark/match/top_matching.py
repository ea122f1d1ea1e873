"""What workers do for ranked subscriptions: lines or columns in, the best k of each event out, or all.

Answers have row numbers for events. They get their ids, and where shards are merged their keys, when they are
handed on.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.registry import room_at
from headgate.core.event import Event
from headgate.core.omission import Omissions
from headgate.ranking.filters.index import RankedIndex
from headgate.records.index.index import EVENT_ID
from headgate.runtime.targets import opened_as
from headgate.spark.match.matching import (
    LINES,
    MATCHING,
    NAMING,
    PORTION,
    RECEIVING,
    WRITING,
    Notes,
    check_ids,
    lines_of,
    read_event,
    unpacked,
)
from headgate.spark.match.top import KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from headgate.errors import EventError
    from headgate.spark.match.matching import Task

    Column = pa.Array[Any]

EVENTS = 4096
"""Events asked for together, at most."""
PAIRS = 1 << 24
"""What holds, in memory, at most; fewer events are asked for together if each may have much."""

_compute: Any = pc


class Asked(Protocol):
    """What a worker asks; answers have row numbers for `event_id`, and the rows of an event together."""

    size: int
    """How much one event may find that is held in memory."""

    def of_events(self, events: Sequence[Event]) -> pa.RecordBatch:
        """Ask for events that come as Python values."""


class AskedOfBatches(Asked, Protocol):
    """The same where events may come as columns, too."""

    def of_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Ask for events that come as columns."""


@lru_cache(maxsize=2)
def opened_ranked(path: str, digest: str) -> RankedIndex:
    """Open ranked subscriptions once in a worker; the driver has verified them, and the pages are shared."""
    return opened_as(path, digest, lambda place: RankedIndex.open(place, room=room_at(place), verify=False))


def rank_columns(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Ask about events that come as columns, packed into one: `id` and the attributes."""
    return ask_columns(batches, task, Subscriptions(task))


def rank_lines(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Ask about events that come as lines of JSON; those that were refused are passed over here."""
    return ask_lines(batches, task, Subscriptions(task))


def ask_columns(
    batches: Iterable[pa.RecordBatch], task: Task, asked: AskedOfBatches
) -> Iterator[pa.RecordBatch]:
    """Ask about events that come as columns, packed into one."""
    size = _size(asked, EVENTS)
    with Notes(task) as notes:
        for packed in batches:
            batch = unpacked(packed)
            for begin in range(0, batch.num_rows, size):
                part = batch.slice(begin, size)
                named = {EVENT_ID: check_ids(part)}
                if task.keyed:
                    named[KEY] = packed.column(KEY).slice(begin, size)
                notes.lap(RECEIVING)
                found = asked.of_batch(part)
                notes.lap(MATCHING)
                yield from _portions(found, named, task, notes)
                notes.add(part.num_rows)


def ask_lines(batches: Iterable[pa.RecordBatch], task: Task, asked: Asked) -> Iterator[pa.RecordBatch]:
    """Ask about events that come as lines of JSON; those that were refused are passed over here."""
    return ask_rows(batches, task, asked, lambda batch: [read_event(line) for line in lines_of(batch)])


def ask_rows(
    batches: Iterable[pa.RecordBatch],
    task: Task,
    asked: Asked,
    read: Callable[[pa.RecordBatch], Sequence[Event | EventError | None]],
) -> Iterator[pa.RecordBatch]:
    """Ask about events that `read` makes of rows; rows of which it makes none are passed over."""
    size = _size(asked, LINES)
    with Notes(task) as notes:
        for batch in batches:
            for begin in range(0, batch.num_rows, size):
                part = batch.slice(begin, size)
                found = read(part)
                events = [event for event in found if isinstance(event, Event)]
                ids = [event.id if task.event_type == "long" else str(event.id) for event in events]
                named: dict[str, Column] = {EVENT_ID: pa.array(ids, task.output.types[0])}
                if task.keyed:
                    kept = pa.array([isinstance(event, Event) for event in found], pa.bool_())
                    named[KEY] = part.column(KEY).filter(kept)
                notes.lap(RECEIVING)
                with Omissions() as left_out:
                    answer = asked.of_events(events)
                if task.left_out is not None and len(left_out):
                    told = (each._replace(event=ids[int(each.event or 0)]) for each in left_out)
                    task.left_out.add(dict.fromkeys(told))
                notes.lap(MATCHING)
                yield from _portions(answer, named, task, notes)
                notes.add(len(events))


def _size(asked: Asked, most: int) -> int:
    return max(1, min(most, PAIRS // max(1, asked.size)))


def _portions(
    found: pa.RecordBatch, named: dict[str, Column], task: Task, notes: Notes
) -> Iterator[pa.RecordBatch]:
    """Give the rows of an answer what they are called, and hand them on."""
    for begin in range(0, found.num_rows, PORTION):
        part = found.slice(begin, PORTION)
        rows = part.column(EVENT_ID)
        columns: list[Column] = []
        for field in task.output:
            column = named[field.name].take(rows) if field.name in named else part.column(field.name)
            columns.append(column.cast(field.type))
        notes.lap(NAMING)
        yield pa.RecordBatch.from_arrays(columns, schema=task.output)
        notes.lap(WRITING)


class Subscriptions:
    """Ranked subscriptions without a graph."""

    def __init__(self, task: Task) -> None:
        self._index = opened_ranked(task.snapshot, task.digest)
        self._top = task.top
        self.size = len(self._index)

    def of_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Ask for events that come as columns; in runs, so that the ids in the answer tell them apart."""
        ids, found = check_ids(batch), []
        for begin, end in runs(ids):
            part = self._answer(batch.slice(begin, end - begin))
            rows = _compute.index_in(part.column(EVENT_ID), value_set=ids.slice(begin, end - begin))
            found.append(part.set_column(0, EVENT_ID, _compute.add(rows.cast(pa.int64()), begin)))
        columns = [pa.concat_arrays([part.column(name) for part in found]) for name in found[0].schema.names]
        return pa.RecordBatch.from_arrays(columns, names=found[0].schema.names)

    def _answer(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._top is None:
            return self._index.match_batch(batch)
        top = self._top
        return self._index.top_batch(batch, top.k, top.mode, factors=top.weighing)

    def of_events(self, events: Sequence[Event]) -> pa.RecordBatch:
        """Ask for events that come as Python values."""
        rows = numbers(len(events))
        if self._top is None:
            return self._index.match_events(events, identities=rows)
        top = self._top
        return self._index.top_events(events, top.k, top.mode, factors=top.weighing, identities=rows)


def runs(ids: Column) -> list[tuple[int, int]]:
    """Cut ids into runs in which none is repeated.

    >>> runs(pa.array(["a", "b", "a", "c", "c"]))
    [(0, 2), (2, 4), (4, 5)]
    """
    code = np.asarray(ids.dictionary_encode().indices)
    cuts = [0]
    if len(code) and code.max() + 1 < len(code):
        last = np.full(len(code), -1)
        for place, each in enumerate(code.tolist()):
            if last[each] >= cuts[-1]:
                cuts.append(place)
            last[each] = place
    return list(pairwise([*cuts, len(code)]))


def numbers(count: int) -> Column:
    """Number rows from 0."""
    return pa.array(np.arange(count, dtype=np.int64))
