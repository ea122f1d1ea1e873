"""What workers do to match events: lines or columns in, matches out, or a Parquet file of them.

batch of events -> encoded, all at once -> pairs of numbers, some events at a time -> ids, in portions
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from headgate.core.event import ID, Event
from headgate.errors import EventError, TableError
from headgate.records.events.columns import BatchColumns, EventColumns, find_column
from headgate.records.events.encode import encode
from headgate.records.index.base import Base, Pairs
from headgate.records.index.index import EVENT_ID, SUBSCRIPTION_ID
from headgate.runtime.questions import RANK, SCORE
from headgate.runtime.targets import opened_as
from headgate.spark.match.top import KEY
from headgate.spark.tables.tables import VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.accumulators import Accumulator

    from headgate.core.omission import Omission
    from headgate.records.events.columns import Columns
    from headgate.records.index.arrays import Events
    from headgate.runtime.questions import Top

REASON = "reason"
ROW = "row"
NUMBERS = "numbers"
TEXTS = "texts"
PACKED = "event"

EVENTS = 10_000
"""Events encoded together, at most: what it costs to go through the columns is shared by them."""
LINES = 2048
"""The same for lines, whose Python values take more room."""
PAIRS = 1 << 26
"""Matches as numbers in memory, at most: if every filter holds, fewer events are matched together."""
PORTION = 1 << 18
"""Matches handed on together, with their ids: texts of 8 KB each would still fit into an Arrow array."""

RECEIVING, ENCODING, MATCHING, NAMING, WRITING = STAGES = (
    "receiving",
    "encoding",
    "matching",
    "naming",
    "writing",
)
"""What a worker spends its time on; naming is to give matches their ids."""

CODECS: dict[str, Any] = {
    "snappy": "snappy",
    "zstd": "zstd",
    "gzip": "gzip",
    "lz4_raw": "lz4",
    "uncompressed": "none",
}
"""How workers can compress Parquet: Spark's names and Arrow's."""
FILE = "file"
FILE_DDL = f"{FILE} string"
_KINDS: dict[str, pa.DataType] = {
    "long": pa.int64(),
    "string": pa.string(),
    "double": pa.float64(),
    "int": pa.int32(),
}


class Task(NamedTuple):
    """What a worker must know: the snapshot, and how ids are typed."""

    snapshot: str
    digest: str
    event_type: str
    subscription_type: str
    notes: str | None
    """A directory for measurements, or None."""
    parts: str = ""
    """A directory for the files of `write_matches`."""
    codec: str = ""
    """How those are compressed, by Spark's name."""
    numbered_nodes: bool = False
    """Whether the nodes of a graph have whole numbers for ids."""
    top: Top | None = None
    """The best of each event, with scores and ranks, or None for all matches without."""
    keyed: bool = False
    """Whether events come with a number of their own, which goes with their matches."""
    met: Accumulator[int] | None = None
    """Counts the events that were matched, on all shards."""
    left_out: Accumulator[dict[Omission, None]] | None = None
    """Lists the filters that were too much for an event, each once, however often a task is tried."""

    @property
    def columns(self) -> dict[str, str]:
        """Return the columns of a match, with Spark's names for their types."""
        found = {EVENT_ID: self.event_type, SUBSCRIPTION_ID: self.subscription_type}
        if self.top is not None:
            found |= {SCORE: "double", RANK: "int"}
        return found | {KEY: "long"} if self.keyed else found

    @property
    def output(self) -> pa.Schema:
        """Return the same for Arrow."""
        return pa.schema({name: _KINDS[kind] for name, kind in self.columns.items()})

    @property
    def ddl(self) -> str:
        """Return the same for Spark."""
        return ", ".join(f"{name} {kind}" for name, kind in self.columns.items())

    def writer(self, place: Path) -> pq.ParquetWriter:
        """Open a file for matches."""
        return pq.ParquetWriter(place, self.output, compression=CODECS[self.codec])


@lru_cache(maxsize=2)
def opened(path: str, digest: str) -> Base:
    """Open a snapshot once in a worker; the driver has verified it, and the pages are shared."""
    base = opened_as(path, digest, lambda place: Base.open(place, verify=False))
    # An event without attributes loads the kernels here: that is no part of the time of matching.
    base.match(encode(EventColumns([{}]), base.built), 1)
    return base


def match_columns(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Match events that come as columns, packed into one: `id` and the attributes."""
    base = opened(task.snapshot, task.digest)
    with Notes(task) as notes:
        for packed in batches:
            batch = unpacked(packed)
            for begin in range(0, batch.num_rows, EVENTS):
                part = batch.slice(begin, EVENTS)
                identities = check_ids(part)
                notes.lap(RECEIVING)
                yield from _match(base, BatchColumns(part), identities, task, notes)
                notes.add(part.num_rows)


def match_lines(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Match events that come as lines of JSON; those that `survey_lines` refuses are passed over here."""
    base = opened(task.snapshot, task.digest)
    with Notes(task) as notes:
        for batch in batches:
            for begin in range(0, batch.num_rows, LINES):
                lines = lines_of(batch.slice(begin, LINES))
                events = [event for event in map(read_event, lines) if isinstance(event, Event)]
                identities = [event.id if task.event_type == "long" else str(event.id) for event in events]
                columns = EventColumns([event.attributes for event in events])
                notes.lap(RECEIVING)
                yield from _match(base, columns, pa.array(identities, task.output.types[0]), task, notes)
                notes.add(len(events))


def write_matches(
    batches: Iterable[pa.RecordBatch],
    match: Callable[..., Iterator[pa.RecordBatch]],
    task: Task,
) -> Iterator[pa.RecordBatch]:
    """Match events, and write the matches of this task to a file of its own, if there are any; tell its name.

    Spark takes rows out of Arrow and writes them one by one, ten times as slowly. Files are named by task and
    attempt, so that one which was cut short is never taken for a whole one.
    """
    context = TaskContext.get()
    assert context is not None
    name = f"part-{context.partitionId():05}-{context.taskAttemptId()}.{task.codec}.parquet"
    writer = None
    for found in match(batches, task=task):
        with _writing():
            if writer is None:
                writer = task.writer(Path(task.parts) / name)
            writer.write_batch(found)
    if writer is not None:
        with _writing():
            writer.close()
    yield pa.RecordBatch.from_pydict({FILE: pa.array([] if writer is None else [name], pa.string())})


@contextmanager
def _writing() -> Iterator[None]:
    """Turn what the machine refuses into an error that says so."""
    try:
        yield
    except OSError as error:
        raise TableError(f"matches cannot be written: {error}") from error


def _match(
    base: Base, columns: Columns, identities: pa.Array[Any], task: Task, notes: Notes
) -> Iterator[pa.RecordBatch]:
    """Match a batch of events; `identities` are their ids."""
    identities = identities.cast(task.output.types[0])
    encoded = encode(columns, base.built)
    notes.lap(ENCODING)
    for found in _pairs(base, encoded, columns.count):
        notes.lap(MATCHING)
        for begin in range(0, len(found.filters), PORTION):
            events, filters = found.events[begin : begin + PORTION], found.filters[begin : begin + PORTION]
            ids = [identities.take(events), base.id_array.take(filters)]
            portion = pa.RecordBatch.from_arrays(ids, schema=task.output)
            notes.lap(NAMING)
            yield portion
            notes.lap(WRITING)
    notes.lap(MATCHING)


def _pairs(base: Base, encoded: Events, count: int) -> Iterator[Pairs]:
    """Match encoded events, so many at a time that their matches fit into memory, a `PORTION` at least."""
    size = max(1, PAIRS // max(1, len(base.ids)))
    if size >= count:
        yield base.match(encoded, count)
        return
    held: list[Pairs] = []
    for begin in range(0, count, size):
        end = min(count, begin + size)
        found = base.match(encoded.some(begin, end), end - begin)
        held.append(Pairs(found.events + begin, found.filters))
        if end == count or sum(len(pairs.filters) for pairs in held) >= PORTION:
            yield Pairs(*map(np.concatenate, zip(*held, strict=True)))
            held.clear()


def check_ids(batch: pa.RecordBatch) -> pa.Array[Any]:
    """Return the ids of events that come as columns: each has one."""
    identities = find_column(batch, (ID,))
    assert identities is not None
    if identities.null_count:
        raise TableError("an event has no id, though the footer of its Parquet file says otherwise")
    return identities


def keep_events(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Drop the lines that `survey_lines` refuses, and blank ones."""
    for batch in batches:
        kept = [isinstance(read_event(line), Event) for line in lines_of(batch)]
        yield batch.filter(pa.array(kept, pa.bool_()))


def unpacked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns of events that were packed into one."""
    struct = batch.column(PACKED)
    assert isinstance(struct, pa.StructArray)
    return pa.RecordBatch.from_struct_array(struct)


def lines_of(batch: pa.RecordBatch) -> list[Any]:
    """Return the lines of a batch."""
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


def survey_lines(
    batches: Iterable[pa.RecordBatch], judge: Callable[[Sequence[Event]], list[str | None]] | None = None
) -> Iterator[pa.RecordBatch]:
    """List the lines that are no events, with the reason, and count the ids by type.

    With `judge`, events for which it gives a reason are refused as well.
    """
    for batch in batches:
        refused = []
        numbers = texts = 0
        lines = lines_of(batch)
        read = [read_event(line) for line in lines]
        events = [event for event in read if isinstance(event, Event)]
        reasons = iter([None] * len(events) if judge is None else judge(events))
        for line, event in zip(lines, read, strict=True):
            reason = next(reasons) if isinstance(event, Event) else event and str(event)
            if reason is not None:
                refused.append({ROW: line.decode(errors="replace"), REASON: reason})
            elif isinstance(event, Event):
                numbers += isinstance(event.id, int)
                texts += isinstance(event.id, str)
        yield pa.RecordBatch.from_pylist([*refused, {NUMBERS: numbers, TEXTS: texts}], schema=_SURVEY)


class Notes:
    """Measurements of one task, left as a small file where the driver asked for them.

    For each batch: when it began, the seconds that it took, its events, and for each of `STAGES` the seconds
    of this thread's CPU.
    """

    def __init__(self, task: Task) -> None:
        self._directory = task.notes
        self._met = task.met
        self._batches: list[tuple[float, float, int, list[float]]] = []
        self._begin()

    def __enter__(self) -> Notes:
        return self

    def _begin(self) -> None:
        self._begun = time.time()
        self._clock = time.thread_time()
        self._spent = dict.fromkeys(STAGES, 0.0)

    def lap(self, stage: str) -> None:
        """Note that the time since the last lap went into a stage."""
        now = time.thread_time()
        self._spent[stage] += now - self._clock
        self._clock = now

    def add(self, events: int) -> None:
        """Note a batch that is done."""
        seconds = time.time() - self._begun
        self._batches.append((self._begun, seconds, events, list(self._spent.values())))
        if self._met is not None:
            self._met.add(events)
        self._begin()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        context = TaskContext.get()
        if self._directory is None or kind is not None or context is None:
            return
        # A repeated task replaces the file of the first try.
        place = Path(self._directory) / f"task-{context.partitionId()}.json"
        beside = place.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps(self._batches), "utf-8")
        beside.replace(place)
