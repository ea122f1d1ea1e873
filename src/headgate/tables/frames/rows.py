"""What workers do with a DataFrame of events: batches of Arrow in, matches or refused rows out.

    id, kept: struct<…>  and  event: struct<source?, attributes>            records
                         or   source, data, datacontenttype                 documents

    batch -> events, and rows that are none with their reasons
          -> asked of the shards that lie in one memory, or of a version of live subscriptions
          -> a row a match, or a row an event with an array

Nothing here depends on a session: values come and go as Arrow has them.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.contents.registry import kind_of
from headgate.contents.results import RESULT_COLUMNS
from headgate.core.event import CONTENT_TYPE, DATA, ID, SOURCE, Event
from headgate.core.omission import Omissions
from headgate.core.stepping import within
from headgate.errors import EventError
from headgate.runtime.questions import RANK, SCORE
from headgate.runtime.rows import NOT_UTF8
from headgate.runtime.snapshots import Version, engines_at
from headgate.runtime.targets import in_memory, opened
from headgate.tables.document_rows import document_of
from headgate.tables.event_rows import KEY, NO_ID, PACKED, REASON, ROW
from headgate.tables.utf8 import as_bytes, bad_rows, is_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from headgate.core.event import Id
    from headgate.runtime.batch_queries import Events
    from headgate.runtime.engines import ShardEngines
    from headgate.runtime.questions import Top
    from headgate.runtime.snapshots import VersionSources
    from headgate.runtime.targets import Openable, Sources

    Column = pa.Array[Any]
    Rows = NDArray[np.int64]

COUNTED = ("events", "matches", "refused")
ROWS, ARRAYS = SHAPES = ("rows", "arrays")
"""One row a match, or one row an event with all of its matches."""
KEPT, VALUE, MATCHES = "kept", "value", "matches"
TOGETHER, GIVING = 10_000, 256
"""Events asked about together, at most; and where what their matches give must fit into memory, too."""
PORTION = 1 << 18
"""Matches handed on together: texts of 8 KB each would still fit into an Arrow array."""
FEED_IDS = "items of a feed have ids that are text: cast the id to string"


class FrameTask(NamedTuple):
    """What workers must know."""

    group: Openable | Version
    content: str
    documents: bool
    """Whether rows hold documents; else their columns are attributes."""
    numbered: bool
    """Whether ids of subscriptions are whole numbers."""
    content_type: str | None = None
    """The format of documents that name none."""
    sources: Sources | VersionSources | None = None
    """Where events may enter a graph, if there is one."""
    top: Top | None = None
    shape: str = ROWS
    keyed: bool = False
    """Whether events come with a number of their own, which goes with their matches."""
    exceeded: bool = False
    """Whether filters that are too expensive for an event are told among refused rows."""
    tells: bool = True
    """Whether rows that are no events are told: of several groups of shards, by one."""
    results: int | None = None
    """How many rows of what a match gives are wanted, if any."""
    keep: tuple[str, ...] | None = None
    """What is wanted of `kept` beside matches: all of it, unless said."""


class Given(NamedTuple):
    """The events of a batch: each is of a row, and a row may hold several."""

    events: Events
    ids: Column
    rows: Rows
    refused: list[tuple[int, str]]
    """Rows that are none, with the reasons."""


def match_frame(batches: Iterable[pa.RecordBatch], task: FrameTask) -> Iterator[pa.RecordBatch]:
    """Match events; rows that are none are passed over."""
    shaped = _as_arrays if task.shape == ARRAYS else _as_rows
    for batch, given in read_frame(batches, task):
        yield from shaped(batch, given, task)


def refused_frame(batches: Iterable[pa.RecordBatch], task: FrameTask) -> Iterator[pa.RecordBatch]:
    """List the rows that are no events, with the reasons: id, reason, and what is kept of the row as JSON."""
    for batch, given in read_frame(batches, task):
        refused = list(given.refused) if task.tells else []
        if task.exceeded:
            left_out = Omissions()
            for _ in _asked(given, task, left_out):
                pass
            refused += _exceeded(given, left_out)
        yield pa.RecordBatch.from_pydict(_reasons(batch, refused))


def both_frame(batches: Iterable[pa.RecordBatch], task: FrameTask) -> Iterator[pa.RecordBatch]:
    """Match events and list the rows that are none, in one pass: the columns of both.

    A match has no reason. A row that is no event, or a filter that is too expensive for one, has a reason and
    nothing of a match.
    """
    shaped = _as_arrays if task.shape == ARRAYS else _as_rows
    for batch, given in read_frame(batches, task):
        left_out = Omissions()
        for found in shaped(batch, given, task, left_out):
            none = pa.nulls(found.num_rows, pa.string())
            yield pa.RecordBatch.from_arrays(
                [*found.columns, none, none], names=[*found.schema.names, REASON, ROW]
            )
        refused = [*given.refused, *_exceeded(given, left_out)]
        if refused:
            types: dict[str, Any] = _types(batch, task)
            empty = {name: pa.nulls(len(refused), kind) for name, kind in types.items()}
            yield pa.RecordBatch.from_pydict(empty | _reasons(batch, refused))


def _reasons(batch: pa.RecordBatch, refused: Sequence[tuple[int, str]]) -> dict[str, Column]:
    """Return refused rows as columns: id, reason, and what is kept of the row as JSON."""
    rows = pa.array([row for row, _ in refused], pa.int64())
    whole: Any = batch.column(KEPT).take(rows)
    # Texts that are not UTF-8 are shown as far as they are.
    kept = (whole if is_text(whole) else as_bytes(whole)).to_pylist()
    written = [json.dumps(row, ensure_ascii=False, default=_text) for row in kept]
    ids = batch.column(ID).take(rows)
    reasons = pa.array([why for _, why in refused], pa.string())
    return {EVENT_ID: ids, REASON: reasons, ROW: pa.array(written, pa.string())}


def _types(batch: pa.RecordBatch, task: FrameTask) -> dict[str, pa.DataType]:
    """Return the columns of matches."""
    told: dict[str, pa.DataType] = {SUBSCRIPTION_ID: _type(task)}
    if task.top is not None:
        told |= {RANK: pa.int32(), VALUE: pa.float64()}
    if task.results is not None:
        told |= RESULT_COLUMNS
    if task.shape == ARRAYS:
        each = told[SUBSCRIPTION_ID] if len(told) == 1 else pa.struct(list(told.items()))
        told = {MATCHES: pa.list_(each)}
    kept = batch.schema.field(KEPT).type
    named = [kept.field(name) for name in (task.keep or ())]
    return {EVENT_ID: batch.schema.field(ID).type, **told, **{field.name: field.type for field in named}}


def keep_frame(batches: Iterable[pa.RecordBatch], task: FrameTask) -> Iterator[pa.RecordBatch]:
    """Keep the rows that have an event which matches."""
    for batch, given in read_frame(batches, task):
        at = [np.asarray(found.column(EVENT_ID)) for found in _asked(given, task)]
        rows = np.unique(given.rows[np.concatenate(at)]) if at else np.zeros(0, np.int64)
        yield pa.RecordBatch.from_pydict(kept_columns(batch, pa.array(rows), task))


def count_frame(batches: Iterable[pa.RecordBatch], task: FrameTask) -> Iterator[pa.RecordBatch]:
    """Count events, matches, and rows that are no events."""
    for _, given in read_frame(batches, task):
        matches = sum(found.num_rows for found in _asked(given, task))
        counts = zip(COUNTED, (len(given.events), matches, len(given.refused)), strict=True)
        yield pa.RecordBatch.from_pydict({name: pa.array([count], pa.int64()) for name, count in counts})


class Differ(Protocol):
    """Tells what differs between two answers about some events."""

    def __call__(
        self, before: Iterable[pa.RecordBatch], after: Iterable[pa.RecordBatch]
    ) -> Iterable[pa.RecordBatch]: ...
    def tally(self, events: int, refused: int) -> Iterable[pa.RecordBatch]: ...


def compare_frame(
    batches: Iterable[pa.RecordBatch],
    task: FrameTask,
    both: tuple[Openable | None, Openable | None],
    differ: Differ,
) -> Iterator[pa.RecordBatch]:
    """Match events against both of two sets of subscriptions, and tell the difference. They are read once."""
    for batch, given in read_frame(batches, task):
        yield from differ.tally(len(given.events), len(given.refused))
        before, after = (
            () if group is None else _as_rows(batch, given, task._replace(group=group)) for group in both
        )
        yield from differ(before, after)


def _text(value: object) -> str:
    """Write what JSON has no form for."""
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


# Reading


def read_frame(batches: Iterable[pa.RecordBatch], task: FrameTask) -> Iterator[tuple[pa.RecordBatch, Given]]:
    """Read the events of batches, some at a time."""
    kind = kind_of(task.content)
    try:
        for whole in batches:
            size = TOGETHER if task.results is None else GIVING
            for begin in range(0, whole.num_rows, size):
                batch = whole.slice(begin, size)
                yield batch, _given(batch, task)
    finally:
        kind.close()


def _given(batch: pa.RecordBatch, task: FrameTask) -> Given:
    """Read the events of a batch; rows with texts that are not UTF-8 are none."""
    read = _documents if task.documents else _records
    strange = bad_rows([batch.column(name) for name in batch.schema.names if name != KEPT])
    if strange is None:
        return read(batch, task)
    sound = np.flatnonzero(~strange)
    found = read(batch.take(sound), task)
    refused = [(int(sound[row]), why) for row, why in found.refused]
    refused += [(row, NOT_UTF8) for row in np.flatnonzero(strange).tolist()]
    return found._replace(rows=sound[found.rows], refused=sorted(refused))


def _records(batch: pa.RecordBatch, task: FrameTask) -> Given:
    """Tell events from rows without an id, or from nowhere; all stay columns."""
    ids, packed = batch.column(ID), batch.column(PACKED)
    assert isinstance(packed, pa.StructArray)
    refused = dict.fromkeys(np.flatnonzero(np.asarray(ids.is_null())).tolist(), NO_ID)
    if task.sources is not None:
        reasons = task.sources.refusals(packed.field(SOURCE))
        refused = {row: why for row, why in enumerate(reasons) if why is not None} | refused
    events = pa.RecordBatch.from_struct_array(packed)
    rows = np.arange(batch.num_rows)
    if refused:
        rows = np.delete(rows, list(refused))
        events, ids = events.take(rows), ids.take(rows)
    return Given(events, ids, rows, sorted(refused.items()))


def _documents(batch: pa.RecordBatch, task: FrameTask) -> Given:
    """Parse documents, in this process or in one of their kind."""
    kind = kind_of(task.content)
    names = (ID, SOURCE, DATA, CONTENT_TYPE)
    given = (
        dict(zip(names, row, strict=True))
        for row in zip(*(batch[name].to_pylist() for name in names), strict=True)
    )
    read = [document_of(row, kind, task.content_type) for row in given]
    if task.sources is not None:
        sound = [row for row, event in enumerate(read) if isinstance(event, Event)]
        reasons = task.sources.of_events([event for event in read if isinstance(event, Event)])
        for row, why in zip(sound, reasons, strict=True):
            if why is not None:
                read[row] = EventError(why)
    events: list[Event] = []
    rows: list[int] = []
    refused: list[tuple[int, str]] = []
    text = not pa.types.is_integer(batch.schema.field(ID).type)
    for row, found in enumerate(kind.read(read)):
        if isinstance(found, EventError):
            refused.append((row, str(found)))
        elif text or all(isinstance(event.id, int) for event in found.events):
            events += found.events
            rows += [row] * len(found.events)
        else:
            refused.append((row, FEED_IDS))
    ids: list[Id] = [event.id for event in events]
    return Given(events, pa.array(ids, batch.schema.field(ID).type), np.array(rows, np.int64), refused)


# Asking


def _asked(given: Given, task: FrameTask, left_out: Omissions | None = None) -> Iterator[pa.RecordBatch]:
    """Give matches in portions; events are named by their place in `given`.

    Filters that are too expensive for an event are told to `left_out`, else logged by the worker.
    """
    engines, place = _engines(task)
    numbers = pa.array(np.arange(len(given.events)))
    found = engines.ask(given.events, numbers, task.top, results=task.results)
    if left_out is not None:
        found = within(lambda: left_out, found)
    return within(partial(in_memory, place), found)


def _engines(task: FrameTask) -> tuple[ShardEngines, str]:
    """Return what is asked, and its place."""
    if isinstance(task.group, Version):
        return engines_at(task.group), task.group.snapshot
    return opened(task.group), task.group.place


def _as_rows(
    batch: pa.RecordBatch, given: Given, task: FrameTask, left_out: Omissions | None = None
) -> Iterator[pa.RecordBatch]:
    for whole in _asked(given, task, left_out):
        for begin in range(0, whole.num_rows, PORTION):
            found = whole.slice(begin, PORTION)
            at = found.column(EVENT_ID)
            rows = pa.array(given.rows).take(at)
            columns = {EVENT_ID: given.ids.take(at), **_told(found, task), **kept_columns(batch, rows, task)}
            yield pa.RecordBatch.from_pydict(columns)


def _as_arrays(
    batch: pa.RecordBatch, given: Given, task: FrameTask, left_out: Omissions | None = None
) -> Iterator[pa.RecordBatch]:
    schema = _schema(task)
    parts = [_cast(each, schema) for each in _asked(given, task, left_out)]
    found = pa.Table.from_batches(parts, schema).combine_chunks()
    at = np.asarray(found[EVENT_ID])
    # Shards answer one after the other; of one event each has its own in order.
    order = np.argsort(at, kind="stable")
    starts = np.searchsorted(at[order], np.arange(len(given.events) + 1))
    told = _told(found.take(order), task)
    values: Any = told[SUBSCRIPTION_ID]
    if len(told) > 1:
        values = pa.StructArray.from_arrays(list(told.values()), names=list(told))
    matches = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values)
    kept = kept_columns(batch, pa.array(given.rows), task)
    yield pa.RecordBatch.from_pydict({EVENT_ID: given.ids, MATCHES: matches, **kept})


def _cast(found: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [found.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _schema(task: FrameTask) -> pa.Schema:
    fields: dict[str, pa.DataType] = {EVENT_ID: pa.int64(), SUBSCRIPTION_ID: _type(task)}
    if task.top is not None:
        fields |= {SCORE: pa.float64(), RANK: pa.int32()}
    if task.results is not None:
        fields |= RESULT_COLUMNS
    return pa.schema(fields)


def _type(task: FrameTask) -> pa.DataType:
    return pa.int64() if task.numbered else pa.string()


def _told(found: Any, task: FrameTask) -> dict[str, Column]:
    """Return the columns of matches without those of their events."""
    columns = {SUBSCRIPTION_ID: _whole(found.column(SUBSCRIPTION_ID)).cast(_type(task))}
    if task.top is not None:
        columns[RANK] = _whole(found.column(RANK)).cast(pa.int32())
        columns[VALUE] = _whole(found.column(SCORE)).cast(pa.float64())
    if task.results is not None:
        columns |= {name: _whole(found.column(name)) for name in RESULT_COLUMNS}
    return columns


def _whole(column: Any) -> Column:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def kept_columns(batch: pa.RecordBatch, rows: Column, task: FrameTask) -> dict[str, Column]:
    """Return what is kept of events, for some rows."""
    columns: dict[str, Column] = {}
    if KEPT in batch.schema.names:
        kept: Any = batch.column(KEPT)
        if task.keep is None:
            columns = dict(zip((field.name for field in kept.type), kept.take(rows).flatten(), strict=True))
        else:
            columns = {name: kept.field(name).take(rows) for name in task.keep}
    return columns | ({KEY: batch.column(KEY).take(rows)} if task.keyed else {})


def _exceeded(given: Given, left_out: Omissions) -> Iterator[tuple[int, str]]:
    """List filters that are too expensive for an event, each once."""
    for event, subscription, why in dict.fromkeys(left_out):
        assert isinstance(event, int), "events are named by their place"
        whose = "a filter" if subscription is None else f"subscription {subscription!r}"
        yield int(given.rows[event]), f"{whose} is left out: {why}"
