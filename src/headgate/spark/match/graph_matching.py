"""What workers do to match events through a graph: lines or columns in, matches out.

A worker has one shard at a time. Its events are those whose source is a node there: the others were refused
by all shards, or come from a node that leads nowhere and is on another shard.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.registry import room_at
from headgate.core.event import SOURCE, Event
from headgate.core.values import fold
from headgate.graph.index import GraphIndex
from headgate.runtime.asking import known, refused_by_all
from headgate.runtime.targets import opened_as
from headgate.spark.match.matching import (
    LINES,
    MATCHING,
    NAMING,
    PORTION,
    REASON,
    RECEIVING,
    ROW,
    WRITING,
    Notes,
    check_ids,
    lines_of,
    read_event,
    unpacked,
)
from headgate.spark.shards.matching import in_memory
from headgate.spark.tables.id_types import fit_id, fit_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headgate.core.event import Id
    from headgate.runtime.targets import Shard
    from headgate.spark.match.matching import Task

    Column = pa.Array[Any]

EVENTS = 4096
"""Events matched together, at most."""

_compute: Any = pc


@lru_cache(maxsize=2)
def opened_graph(path: str, digest: str) -> GraphIndex:
    """Open a graph once in a worker; the driver has verified it, and the pages are shared.

    Spark hands out one shard after the other, so two are enough.
    """
    return opened_as(path, digest, lambda place: GraphIndex.open(place, room=room_at(place), verify=False))


def _refused(place: str, digest: str, events: pa.RecordBatch) -> list[str | None]:
    with in_memory(place):
        return opened_graph(place, digest).sources(events)


class Sources(NamedTuple):
    """The nodes where events may enter a graph, on all of its shards."""

    shards: tuple[Shard, ...]
    numbered: bool

    def refusals(self, given: Column) -> list[str | None]:
        """Say of sources as they were given why they are refused; None for those that are nodes."""
        batch = pa.RecordBatch.from_arrays([fit_ids(given, numbered=self.numbered)], names=[SOURCE])
        found = refused_by_all(batch, (partial(_refused, *shard) for shard in self.shards))
        misfits = given.is_valid().to_pylist() if batch.column(0).null_count > given.null_count else []
        for row, (there, reason) in enumerate(zip(misfits, found, strict=False)):
            if there and reason is not None:
                found[row] = f"source {given[row].as_py()!r} is no node of the graph: give the id of one"
        return found

    def of_events(self, events: Sequence[Event]) -> list[str | None]:
        """Say the same of events."""
        numbers, texts = _split([event.source for event in events])
        if texts.null_count == len(texts):
            return self.refusals(numbers)
        return self.refusals(_compute.coalesce(texts, numbers.cast(pa.string())))


def _split(sources: list[Id | None]) -> tuple[Column, Column]:
    numbers = [value if isinstance(value, int) else None for value in sources]
    texts = [value if isinstance(value, str) else None for value in sources]
    return pa.array(numbers, pa.int64()), pa.array(texts, pa.string())


def count_refused(batches: Iterable[pa.RecordBatch], sources: Sources) -> Iterator[pa.RecordBatch]:
    """Count the sources that are refused."""
    for batch in batches:
        refused = sum(reason is not None for reason in sources.refusals(batch.column(SOURCE)))
        yield pa.RecordBatch.from_pydict({ROW: pa.array([refused], pa.int64())})


def list_refused(batches: Iterable[pa.RecordBatch], sources: Sources) -> Iterator[pa.RecordBatch]:
    """List the rows whose source is refused, with the reason."""
    for batch in batches:
        reasons = pa.array(sources.refusals(batch.column(SOURCE)), pa.string())
        found = pa.RecordBatch.from_arrays([batch.column(ROW), reasons], names=[ROW, REASON])
        yield found.filter(reasons.is_valid())


def match_graph_columns(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Match events that come as columns, packed into one: `id`, `source` and the attributes."""
    graph = opened_graph(task.snapshot, task.digest)
    with Notes(task) as notes:
        for packed in batches:
            batch = fit_source(unpacked(packed), task)
            check_ids(batch)
            for begin in range(0, batch.num_rows, EVENTS):
                part = batch.slice(begin, EVENTS)
                part = part.filter(pa.array([reason is None for reason in graph.sources(part)], pa.bool_()))
                notes.lap(RECEIVING)
                for found in graph.match_portions(part):
                    notes.lap(MATCHING)
                    yield from _portions(found, task, notes)
                notes.add(part.num_rows)


def match_graph_lines(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Match events that come as lines of JSON; those that were refused are passed over here."""
    graph = opened_graph(task.snapshot, task.digest)
    with Notes(task) as notes:
        for batch in batches:
            for begin in range(0, batch.num_rows, LINES):
                lines = lines_of(batch.slice(begin, LINES))
                read = [event for event in map(read_event, lines) if isinstance(event, Event)]
                fitted = [fit_event(event, task) for event in read]
                events = list(compress(fitted, known(graph, fitted)))
                ids = [event.id if task.event_type == "long" else str(event.id) for event in events]
                notes.lap(RECEIVING)
                for found in graph.match_portions(events, pa.array(ids, task.output.types[0])):
                    notes.lap(MATCHING)
                    yield from _portions(found, task, notes)
                notes.add(len(events))


def fit_source(batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
    """Give the sources of events the type that ids of nodes have."""
    place = [fold(name) for name in batch.schema.names].index(SOURCE)
    source = fit_ids(batch.column(place), numbered=task.numbered_nodes)
    return batch.set_column(place, SOURCE, source)


def fit_event(event: Event, task: Task) -> Event:
    """Do the same to one event."""
    if event.source is None or isinstance(event.source, int) is task.numbered_nodes:
        return event
    return replace(event, source=fit_id(event.source, numbered=task.numbered_nodes))


def _portions(found: pa.RecordBatch, task: Task, notes: Notes) -> Iterator[pa.RecordBatch]:
    for begin in range(0, found.num_rows, PORTION):
        part = found.slice(begin, PORTION)
        columns = [column.cast(kind) for column, kind in zip(part.columns, task.output.types, strict=True)]
        notes.lap(NAMING)
        yield pa.RecordBatch.from_arrays(columns, schema=task.output)
        notes.lap(WRITING)
