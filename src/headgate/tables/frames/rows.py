"""What workers do with batches of events: Arrow in, matches or refused rows out.

    batch -> events, and rows that are none with their reasons (`reading.py`)
          -> asked of the shards that lie in one memory, or of a version of live subscriptions
          -> a row a match, or a row an event with an array

Jobs over tables, in this process and on Spark, and DataFrames all match here. Nothing depends on a session:
values come and go as Arrow has them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.contents.protocol import EVENT_ID, RANK, SCORE, SUBSCRIPTION_ID
from headgate.core.event import ID
from headgate.core.omission import Omissions, within
from headgate.runtime.targets import in_memory
from headgate.tables.event_rows import KEY, REASON, ROW
from headgate.tables.frames.reading import KEPT, read_frame
from headgate.tables.frames.report import MATCHING, NAMING, RECEIVING, WRITING
from headgate.tables.frames.task import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headgate.tables.frames.reading import Given
    from headgate.tables.frames.report import Reporter
    from headgate.tables.frames.task import FrameTask

    Column = pa.Array[Any]

COUNTED = ("events", "matches", "refused")
VALUE, MATCHES = "value", "matches"
PORTION = 1 << 18
"""Matches handed on together: texts of 8 KB each would still fit into an Arrow array."""


def match_frame(batches: Iterable[pa.RecordBatch], task: FrameTask) -> Iterator[pa.RecordBatch]:
    """Match events; rows that are none are passed over."""
    for given in read_frame(batches, task):
        yield from _shaped(given, task)


def refused_frame(batches: Iterable[pa.RecordBatch], task: FrameTask) -> Iterator[pa.RecordBatch]:
    """List the rows that are no events, with the reasons: id, reason, and what is kept of the row as JSON."""
    for given in read_frame(batches, task):
        refused = list(given.refused) if task.tells else []
        if task.exceeded:
            left_out = Omissions()
            for _ in _asked(given, task, left_out):
                pass
            refused += _exceeded(given, left_out)
        yield pa.RecordBatch.from_pydict(_reasons(given, refused))


def both_frame(
    batches: Iterable[pa.RecordBatch], task: FrameTask, report: Reporter | None = None
) -> Iterator[pa.RecordBatch]:
    """Match events and list the rows that are none, in one pass: the columns of both.

    A match has no reason. A row that is no event has one, and nothing of a match. So has a filter that is too
    expensive for an event, unless there is a report, which then has it.
    """
    return match_given(read_frame(batches, task), task, report)


def match_given(
    read: Iterable[Given], task: FrameTask, report: Reporter | None = None
) -> Iterator[pa.RecordBatch]:
    """Do the same with events that were read."""
    for given in read:
        if report is not None:
            report.lap(RECEIVING)
        left_out = Omissions()
        for matches in _shaped(given, task, left_out, report):
            none = pa.nulls(matches.num_rows, pa.string())
            yield pa.RecordBatch.from_arrays(
                [*matches.columns, none, none], names=[*matches.schema.names, REASON, ROW]
            )
        refused = list(given.refused) if task.tells else []
        if report is None:
            refused += _exceeded(given, left_out)
        else:
            report.add(given, left_out)
        if refused:
            types: dict[str, Any] = _types(given, task)
            empty = {name: pa.nulls(len(refused), kind) for name, kind in types.items()}
            yield pa.RecordBatch.from_pydict(empty | _reasons(given, refused))


def keep_frame(batches: Iterable[pa.RecordBatch], task: FrameTask) -> Iterator[pa.RecordBatch]:
    """Keep the rows that have an event which matches."""
    for given in read_frame(batches, task):
        at = [np.asarray(matches.column(EVENT_ID)) for matches in _asked(given, task)]
        rows = np.unique(given.rows[np.concatenate(at)]) if at else np.zeros(0, np.int64)
        yield pa.RecordBatch.from_pydict(kept_columns(given, pa.array(rows), task))


def count_frame(batches: Iterable[pa.RecordBatch], task: FrameTask) -> Iterator[pa.RecordBatch]:
    """Count events, matches, and rows that are no events."""
    for given in read_frame(batches, task):
        matches = sum(portion.num_rows for portion in _asked(given, task))
        counts = zip(COUNTED, (len(given.events), matches, len(given.refused)), strict=True)
        yield pa.RecordBatch.from_pydict({name: pa.array([count], pa.int64()) for name, count in counts})


# Asking


def _asked(
    given: Given, task: FrameTask, left_out: Omissions | None = None, report: Reporter | None = None
) -> Iterator[pa.RecordBatch]:
    """Give matches in portions; events are named by their place in `given`.

    Filters that are too expensive for an event are told to `left_out`, else logged by the worker.
    """
    engines = task.engines()
    numbers = pa.array(np.arange(len(given.events)))
    counting = None if report is None else report.counting(engines, given)
    portions = engines.ask(given.events, numbers, task.question, counting)
    if left_out is not None:
        portions = within(lambda: left_out, portions)
    return within(partial(in_memory, task.place), portions)


def _shaped(
    given: Given, task: FrameTask, left_out: Omissions | None = None, report: Reporter | None = None
) -> Iterator[pa.RecordBatch]:
    shaped = _as_arrays if task.shape == ARRAYS else as_rows
    return shaped(given, task, left_out, report)


def as_rows(
    given: Given, task: FrameTask, left_out: Omissions | None = None, report: Reporter | None = None
) -> Iterator[pa.RecordBatch]:
    """Match events that were read: a row a match, in portions."""
    lap = _lap if report is None else report.lap
    for whole in _asked(given, task, left_out, report):
        lap(MATCHING)
        for begin in range(0, whole.num_rows, PORTION):
            portion = whole.slice(begin, PORTION)
            at = portion.column(EVENT_ID)
            columns = {EVENT_ID: given.ids.take(at), **_told(portion, task), **_beside(given, at, task)}
            rows = pa.RecordBatch.from_pydict(columns)
            lap(NAMING)
            yield rows
            lap(WRITING)
    lap(MATCHING)


def _lap(stage: str) -> None:
    """Note nothing."""


def _as_arrays(
    given: Given, task: FrameTask, left_out: Omissions | None = None, report: Reporter | None = None
) -> Iterator[pa.RecordBatch]:
    schema = _schema(task)
    parts = [_cast(each, schema) for each in _asked(given, task, left_out, report)]
    answers = pa.Table.from_batches(parts, schema).combine_chunks()
    at = np.asarray(answers[EVENT_ID])
    # Shards answer one after the other; of one event each has its own in order.
    order = np.argsort(at, kind="stable")
    starts = np.searchsorted(at[order], np.arange(len(given.events) + 1))
    columns = _told(answers.take(order), task)
    values: Any = columns[SUBSCRIPTION_ID]
    if len(columns) > 1:
        values = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    matches = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values)
    kept = kept_columns(given, pa.array(given.rows), task)
    yield pa.RecordBatch.from_pydict({EVENT_ID: given.ids, MATCHES: matches, **kept})


def _cast(matches: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [matches.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


# Columns


def match_types(task: FrameTask) -> dict[str, pa.DataType]:
    """Return the columns of matches beside the event's id, a row each."""
    columns = task.question.columns(numbered=task.numbered)
    types = {name: columns[name] for name in (SUBSCRIPTION_ID, RANK) if name in columns} | columns
    return {VALUE if name == SCORE else name: kind for name, kind in types.items()}


def _schema(task: FrameTask) -> pa.Schema:
    return pa.schema({EVENT_ID: pa.int64(), **task.question.columns(numbered=task.numbered)})


def answer_types(task: FrameTask) -> dict[str, pa.DataType]:
    """Return the columns of answers beside those of the event, in the shape that is wanted."""
    types = match_types(task)
    if task.shape != ARRAYS:
        return types
    each = types[SUBSCRIPTION_ID] if len(types) == 1 else pa.struct(list(types.items()))
    return {MATCHES: pa.list_(each)}


def _types(given: Given, task: FrameTask) -> dict[str, pa.DataType]:
    nothing = kept_columns(given, pa.array([], pa.int64()), task)
    kept = {name: each.type for name, each in nothing.items()}
    return {EVENT_ID: given.ids.type, **answer_types(task), **kept}


def _told(matches: Any, task: FrameTask) -> dict[str, Column]:
    """Return the columns of matches without those of their events."""
    return {
        name: _whole(matches.column(SCORE if name == VALUE else name)).cast(kind)
        for name, kind in match_types(task).items()
    }


def _whole(column: Any) -> Column:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _beside(given: Given, at: Column, task: FrameTask) -> dict[str, Column]:
    """Return what is kept of the events of matches, if anything is."""
    if KEPT not in given.batch.schema.names and not task.keyed:
        return {}
    return kept_columns(given, pa.array(given.rows).take(at), task)


def kept_columns(given: Given, rows: Column, task: FrameTask) -> dict[str, Column]:
    """Return what is kept of events, for some rows."""
    batch = given.batch
    columns: dict[str, Column] = {}
    if KEPT in batch.schema.names:
        kept: Any = batch.column(KEPT)
        if task.keep is None:
            columns = dict(zip((field.name for field in kept.type), kept.take(rows).flatten(), strict=True))
        else:
            columns = {name: kept.field(name).take(rows) for name in task.keep}
    return columns | ({KEY: batch.column(KEY).take(rows)} if task.keyed else {})


# Refusing


def _reasons(given: Given, refused: Sequence[tuple[int, str]]) -> dict[str, Column]:
    """Return refused rows as columns: id, reason, and the row as it came, or what is kept of it as JSON."""
    rows, batch = [row for row, _ in refused], given.batch
    known = ID in batch.schema.names
    ids = batch.column(ID).take(pa.array(rows, pa.int64())) if known else pa.nulls(len(rows), given.ids.type)
    reasons = pa.array([why for _, why in refused], pa.string())
    return {EVENT_ID: ids, REASON: reasons, ROW: pa.array(given.written(rows), pa.string())}


def _exceeded(given: Given, left_out: Omissions) -> Iterator[tuple[int, str]]:
    """List filters that are too expensive for an event, each once."""
    for event, subscription, why in dict.fromkeys(left_out):
        assert isinstance(event, int), "events are named by their place"
        whose = "a filter" if subscription is None else f"subscription {subscription!r}"
        yield int(given.rows[event]), f"{whose} is left out: {why}"
