"""What workers do to match events: rows in, matches out, or Parquet files of them.

rows -> read -> asked of the shards that lie in one memory -> matches, in portions
          └───► rows that are no events, with the reason
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from headgate.contents.results import COMPLETE, RESULTS, RESULTS_TYPE
from headgate.core.omission import Omissions
from headgate.core.stepping import within
from headgate.errors import TableError
from headgate.records.index.index import EVENT_ID, SUBSCRIPTION_ID
from headgate.runtime.batch_queries import Counting
from headgate.runtime.questions import RANK, SCORE
from headgate.runtime.statistics import pack_statistics
from headgate.runtime.targets import in_memory, opened
from headgate.tables.event_rows import (
    KEY,
    NUMBERS,
    REASON,
    ROW,
    TEXTS,
    Rows,
    read_rows,
    tally,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.accumulators import Accumulator

    from headgate.core.omission import Omission
    from headgate.engine.statistics import Statistics
    from headgate.runtime.engines import ShardEngines
    from headgate.runtime.questions import Top
    from headgate.runtime.targets import Group, Sources

    Column = pa.Array[Any]

PORTION = 1 << 18
"""Matches handed on together, with their ids: texts of 8 KB each would still fit into an Arrow array."""

RECEIVING, MATCHING, NAMING, WRITING = STAGES = ("receiving", "matching", "naming", "writing")
"""What a worker spends its time on; naming is to give matches the ids of their events."""

CODECS: dict[str, Any] = {
    "snappy": "snappy",
    "zstd": "zstd",
    "gzip": "gzip",
    "lz4_raw": "lz4",
    "uncompressed": "none",
}
"""How workers can compress Parquet: Spark's names and Arrow's."""
_KINDS: dict[str, pa.DataType] = {
    "long": pa.int64(),
    "string": pa.string(),
    "double": pa.float64(),
    "int": pa.int32(),
    "array<map<string, string>>": RESULTS_TYPE,
    "boolean": pa.bool_(),
}
FILE, KIND, COUNT = "file", "kind", "count"
FILE_DDL = f"{FILE} string, {KIND} string, {COUNT} long, {NUMBERS} long, {TEXTS} long"
"""A file that a task has written: the type of its events' ids, or `REASON` for rows that are no events."""
_TYPES: dict[str, pa.DataType] = {
    FILE: pa.string(),
    KIND: pa.string(),
    COUNT: pa.int64(),
    NUMBERS: pa.int64(),
    TEXTS: pa.int64(),
}
_FILES = pa.schema(_TYPES)
_REFUSED = pa.schema({ROW: pa.string(), REASON: pa.string()})


class Task(NamedTuple):
    """What a worker must know: the snapshot, how events come, and how ids are typed."""

    group: Group
    content: str
    form: str
    """How events come: one of the forms of `event_rows`."""
    event_type: str
    """Of the ids of events: `long`, `string`, or empty if workers are to find out."""
    subscription_type: str
    sources: Sources | None = None
    """Where events may enter a graph, if they were not yet asked."""
    mark: str = ""
    """What names mean to the filters, see `core/values.py`."""
    tells: bool = False
    """Whether rows that are no events are told, and the types of ids counted."""
    notes: str | None = None
    """A directory for measurements, or None."""
    parts: str = ""
    """A directory for the files of `write_matches`."""
    codec: str = ""
    """How those are compressed, by Spark's name."""
    top: Top | None = None
    """The best of each event, with scores and ranks, or None for all matches without."""
    results: int | None = None
    """How many rows of what a match gives are wanted, if any."""
    keyed: bool = False
    """Whether events come with a number of their own, which goes with their matches."""
    met: Accumulator[int] | None = None
    """Counts the events that were matched, on all shards."""
    left_out: Accumulator[dict[Omission, None]] | None = None
    """Lists the filters that were too much for an event, each once, however often a task is tried."""
    statistics: Accumulator[dict[int, bytes]] | None = None
    """Gathers statistics of subscriptions, by task, however often that is tried; None if nobody asks."""

    @property
    def columns(self) -> dict[str, str]:
        """Return the columns of a match, with Spark's names for their types."""
        found = {EVENT_ID: self.event_type or "string", SUBSCRIPTION_ID: self.subscription_type}
        if self.top is not None:
            found |= {SCORE: "double", RANK: "int"}
        if self.results is not None:
            found |= {RESULTS: "array<map<string, string>>", COMPLETE: "boolean"}
        return found | {KEY: "long"} if self.keyed else found

    @property
    def output(self) -> pa.Schema:
        """Return the same for Arrow."""
        return pa.schema({name: _KINDS[kind] for name, kind in self.columns.items()})

    @property
    def ddl(self) -> str:
        """Return the same for Spark."""
        return ", ".join(f"{name} {kind}" for name, kind in self.columns.items())

    @property
    def told_ddl(self) -> str:
        """Return the columns of `match_and_tell`, for Spark."""
        return f"{self.ddl}, {ROW} string, {REASON} string, {NUMBERS} long, {TEXTS} long"

    def writer(self, place: Path) -> pq.ParquetWriter:
        """Open a file for matches."""
        return pq.ParquetWriter(place, self.output, compression=CODECS[self.codec])


def match_rows(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Match events; rows that are none are passed over."""
    for _, found in _match(batches, task):
        if found is not None:
            yield found


def match_and_tell(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Match events; rows that are none come between the matches, and so do counts of the ids by type."""
    schema = pa.schema([*task.output, *_REFUSED, pa.field(NUMBERS, pa.int64()), pa.field(TEXTS, pa.int64())])
    for rows, found in _match(batches, task):
        if found is None and not task.tells:
            continue
        some = tally(rows) if found is None else found
        there = some.schema.names
        columns = [
            some.column(field.name).cast(field.type)
            if field.name in there
            else pa.nulls(some.num_rows, field.type)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def write_matches(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Match events, and write the matches of this task to files of its own, if there are any; tell of them.

    Spark takes rows out of Arrow and writes them one by one, ten times as slowly. Files are named by task and
    attempt, so that one which was cut short is never taken for a whole one. Where the type of the ids is not
    known, whole numbers and text go to files of their own.
    """
    context = TaskContext.get()
    assert context is not None
    name = f"part-{context.partitionId():05}-{context.taskAttemptId()}"
    files = _Files(task, name)
    numbers = texts = 0
    for rows, found in _match(batches, task):
        if found is not None:
            files.write(found)
        elif task.tells:
            counts = tally(rows)
            numbers += counts[NUMBERS][-1].as_py()
            texts += counts[TEXTS][-1].as_py()
            files.refuse(rows.refused)
    yield files.close(numbers, texts)


class _Files:
    """The files of a task, each begun with its first row."""

    def __init__(self, task: Task, name: str) -> None:
        self._task = task
        self._name = name
        self._open: dict[str, tuple[str, pq.ParquetWriter]] = {}
        self._rows: dict[str, int] = {}

    def write(self, found: pa.RecordBatch) -> None:
        kind = self._task.event_type or (
            "long" if pa.types.is_integer(found.column(EVENT_ID).type) else "string"
        )
        self._append(kind, found)

    def refuse(self, refused: tuple[tuple[str, str], ...]) -> None:
        if refused:
            columns = [pa.array(column, pa.string()) for column in zip(*refused, strict=True)]
            self._append(REASON, pa.RecordBatch.from_arrays(columns, schema=_REFUSED))

    def _append(self, kind: str, rows: pa.RecordBatch) -> None:
        with writing_errors():
            if kind not in self._open:
                mark = "" if kind == self._task.event_type else f"-{kind}"
                name = f"{self._name}{mark}.{self._task.codec}.parquet"
                codec = CODECS[self._task.codec]
                place = Path(self._task.parts) / name
                self._open[kind] = name, pq.ParquetWriter(place, rows.schema, compression=codec)
                self._rows[kind] = 0
            self._open[kind][1].write_batch(rows)
            self._rows[kind] += rows.num_rows

    def close(self, numbers: int, texts: int) -> pa.RecordBatch:
        """End the files, and tell of them; and of the ids of all events."""
        told: list[dict[str, Any]] = [{COUNT: 0, NUMBERS: numbers, TEXTS: texts}]
        for kind, (name, writer) in self._open.items():
            with writing_errors():
                writer.close()
            told.append({FILE: name, KIND: kind, COUNT: self._rows[kind]})
        return pa.RecordBatch.from_pylist(told, schema=_FILES)


def retype(file: Path, task: Task) -> None:
    """Write a file of matches with the ids of a type that its task did not know of: other tasks had text."""
    beside = file.with_suffix(".new")
    with task.writer(beside) as writer, pq.ParquetFile(file) as given:
        for batch in given.iter_batches():
            writer.write_batch(batch.cast(task.output))
    beside.replace(file)


@contextmanager
def writing_errors() -> Iterator[None]:
    """Turn what the machine refuses into an error that says so."""
    try:
        yield
    except OSError as error:
        raise TableError(f"matches cannot be written: {error}") from error


def _match(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[tuple[Rows, pa.RecordBatch | None]]:
    """Give the matches of some rows after the other, in portions, and None when these are done."""
    with Notes(task) as notes:
        engines = opened(task.group)
        statistics = None if task.statistics is None else engines.statistics()
        judge = None if task.sources is None else task.sources.of_events
        for rows in read_rows(batches, task.form, task.content, judge, task.mark):
            notes.lap(RECEIVING)
            before = engines.met
            for found in within(
                partial(in_memory, task.group.place), _answers(engines, rows, task, statistics)
            ):
                notes.lap(MATCHING)
                for begin in range(0, found.num_rows, PORTION):
                    portion = _named(found.slice(begin, PORTION), rows, task)
                    notes.lap(NAMING)
                    yield rows, portion
                    notes.lap(WRITING)
            notes.lap(MATCHING)
            yield rows, None
            notes.add(len(rows.events), engines.met - before)
        context = TaskContext.get()
        if task.statistics is not None and statistics is not None and context is not None:
            task.statistics.add({context.partitionId(): pack_statistics(statistics.table())})


def _answers(
    engines: ShardEngines, rows: Rows, task: Task, statistics: Statistics | None
) -> Iterator[pa.RecordBatch]:
    """Ask about events; filters that are left out of one are told.

    Keys are looked up by the number of an event. Without keys, matches get the ids of their events at once.
    """
    ids = pa.array(np.arange(len(rows.events), dtype=np.int64)) if task.keyed else rows.ids
    left_out = Omissions()
    counting = None if statistics is None else Counting(statistics, rows.ids if task.keyed else None)
    yield from within(lambda: left_out, engines.ask(rows.events, ids, task.top, counting, task.results))
    if statistics is not None:
        statistics.exceed(left_out)
    if task.left_out is not None and len(left_out):
        told: Iterable[Omission] = left_out
        if task.keyed:
            told = (each._replace(event=rows.ids[int(each.event or 0)].as_py()) for each in left_out)
        task.left_out.add(dict.fromkeys(told))


def _named(found: pa.RecordBatch, rows: Rows, task: Task) -> pa.RecordBatch:
    """Give matches the columns of the task: ids of its types, and keys if events have any."""
    fields = list(task.output)
    if not task.event_type:
        fields[0] = pa.field(EVENT_ID, rows.ids.type)
    columns: dict[str, Column] = dict(zip(found.schema.names, found.columns, strict=True))
    if task.keyed:
        assert rows.keys is not None
        numbers = found.column(EVENT_ID)
        columns |= {EVENT_ID: rows.ids.take(numbers), KEY: rows.keys.take(numbers)}
    named = [columns[field.name].cast(field.type) for field in fields]
    return pa.RecordBatch.from_arrays(named, schema=pa.schema(fields))


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

    def add(self, events: int, met: int) -> None:
        """Note a batch that is done, and how often its events met a shard."""
        seconds = time.time() - self._begun
        self._batches.append((self._begun, seconds, events, list(self._spent.values())))
        if self._met is not None:
            self._met.add(met)
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
