"""What workers do to match events: lines or columns in, matches out."""

from __future__ import annotations

import json
import os
import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark import TaskContext

from headgate.core.event import Event
from headgate.errors import EventError
from headgate.records.index import EVENT_ID, SUBSCRIPTION_ID, RecordIndex
from headgate.spark.tables import VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

REASON = "reason"
ROW = "row"
NUMBERS = "numbers"
TEXTS = "texts"
PACKED = "event"

SLICE = 2048
"""Events matched before their matches are handed on, at most."""
PAIRS = 1 << 26
"""Matches in memory at a time, at most: if every filter holds, a slice has fewer events."""


class Task(NamedTuple):
    """What a worker must know: the snapshot, and how ids are typed."""

    snapshot: str
    digest: str
    event_type: str
    subscription_type: str
    notes: str | None
    """A directory for measurements, or None."""

    @property
    def output(self) -> pa.Schema:
        """Return the columns of a match."""
        kinds: dict[str, pa.DataType] = {"long": pa.int64(), "string": pa.string()}
        return pa.schema(
            [(EVENT_ID, kinds[self.event_type]), (SUBSCRIPTION_ID, kinds[self.subscription_type])]
        )

    @property
    def ddl(self) -> str:
        """Return the same for Spark."""
        return f"{EVENT_ID} {self.event_type}, {SUBSCRIPTION_ID} {self.subscription_type}"


@lru_cache(maxsize=2)
def opened(path: str, digest: str) -> RecordIndex:  # noqa: ARG001 -- the digest tells a replaced snapshot apart
    """Open a snapshot once in a worker; the driver has verified it, and the pages are shared."""
    return RecordIndex.open(Path(path), verify=False)


def match_columns(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Match events that come as columns, packed into one: `id` and the attributes."""
    index = opened(task.snapshot, task.digest)
    size = _slice(index)
    with _Notes(task) as notes:
        for packed in batches:
            batch = _unpacked(packed)
            for begin in range(0, batch.num_rows, size):
                part = batch.slice(begin, size)
                yield index.match_batch(part).cast(task.output)
                notes.add(part.num_rows)


def match_lines(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Match events that come as lines of JSON; those that `survey_lines` refuses are passed over here."""
    index = opened(task.snapshot, task.digest)
    size = _slice(index)
    with _Notes(task) as notes:
        for batch in batches:
            for begin in range(0, batch.num_rows, size):
                lines = _lines(batch.slice(begin, size))
                events = [event for event in map(read_event, lines) if isinstance(event, Event)]
                identities = [event.id if task.event_type == "long" else str(event.id) for event in events]
                pairs = index.match_events(events)
                found = index.pairs_to_arrow(pairs, pa.array(identities, task.output.field(0).type))
                yield found.cast(task.output)
                notes.add(len(events))


def keep_events(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Drop the lines that `survey_lines` refuses, and blank ones."""
    for batch in batches:
        kept = [isinstance(read_event(line), Event) for line in _lines(batch)]
        yield batch.filter(pa.array(kept, pa.bool_()))


def _unpacked(batch: pa.RecordBatch) -> pa.RecordBatch:
    struct = batch.column(PACKED)
    assert isinstance(struct, pa.StructArray)
    return pa.RecordBatch.from_struct_array(struct)


def _slice(index: RecordIndex) -> int:
    return max(1, min(SLICE, PAIRS // max(1, len(index))))


def _lines(batch: pa.RecordBatch) -> list[Any]:
    return batch[VALUE].to_pylist()


def read_event(line: bytes) -> Event | EventError | None:
    """Read one line: an event, the reason why it is none, or None for a blank line."""
    if not line.strip():
        return None
    try:
        event = Event.from_json(line)
        event.attributes  # noqa: B018 -- checks the values
    except EventError as error:
        return error
    return event


SURVEY_DDL = f"{ROW} string, {REASON} string, {NUMBERS} long, {TEXTS} long"
_TYPES: dict[str, pa.DataType] = {
    ROW: pa.string(),
    REASON: pa.string(),
    NUMBERS: pa.int64(),
    TEXTS: pa.int64(),
}
_SURVEY = pa.schema(_TYPES)


def survey_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """List the lines that are no events, with the reason, and count the ids by type."""
    for batch in batches:
        refused = []
        numbers = texts = 0
        for line in _lines(batch):
            event = read_event(line)
            if isinstance(event, EventError):
                refused.append({ROW: line.decode(errors="replace"), REASON: str(event)})
            elif event is not None:
                numbers += isinstance(event.id, int)
                texts += isinstance(event.id, str)
        yield pa.RecordBatch.from_pylist([*refused, {NUMBERS: numbers, TEXTS: texts}], schema=_SURVEY)


class _Notes:
    """Measurements of one task, left as a small file where the driver asked for them."""

    def __init__(self, task: Task) -> None:
        self._directory = task.notes
        self._begun = time.time()
        self._batches: list[tuple[float, float, int]] = []

    def __enter__(self) -> _Notes:
        return self

    def add(self, events: int) -> None:
        """Note a batch that is done."""
        now = time.time()
        self._batches.append((self._begun, now - self._begun, events))
        self._begun = now

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        context = TaskContext.get()
        if self._directory is None or kind is not None or context is None:
            return
        # A repeated task replaces the file of the first try.
        place = Path(self._directory) / f"task-{context.partitionId()}.json"
        beside = place.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps(self._batches), "utf-8")
        beside.replace(place)
