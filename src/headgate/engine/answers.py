"""Answers about many events: tables of them, found together or one event after the other."""

from __future__ import annotations

from itertools import pairwise
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.contents.documents import DocumentIndex
from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.contents.results import RESULT_COLUMNS, Gives, with_results
from headgate.core.event import CONTENT_TYPE, SOURCE, Event, column_of
from headgate.core.omission import RenamedOmissions, by_row, renaming
from headgate.core.values import fold, kind_of
from headgate.engine.inputs import event_of
from headgate.engine.question import RANK, SCORE
from headgate.engine.threads import portions
from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from headgate.contents.results import Home
    from headgate.core.event import Id
    from headgate.engine.backend import Backend, Column, Events
    from headgate.engine.question import Top
    from headgate.engine.statistics import Statistics

MOST = 1 << 24
"""Answers that are found together, in memory, at most."""
_RANKED = [EVENT_ID, SUBSCRIPTION_ID, SCORE, RANK]


def one_by_one(
    best: Callable[[Event, Top], Iterable[Any]], events: Events, ids: Column, top: Top
) -> pa.RecordBatch:
    """Ask for the best of one event after the other; `ids` stand for theirs."""
    rows: list[tuple[Any, ...]] = []
    for event, identity in zip(_each(events, ids), ids.to_pylist(), strict=True):
        with RenamedOmissions(methodcaller("_replace", event=identity)):
            found = best(event, top)
        rows += [(identity, each.subscription, each.value, rank) for rank, each in enumerate(found, 1)]
    kinds = (None, None, pa.float64(), pa.int32())
    columns: list[Column] = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(kinds)]
    return pa.RecordBatch.from_arrays(columns, names=_RANKED)


def _each(events: Events, ids: Column) -> Iterable[Event]:
    """Make events of rows. Of values that filters cannot compare they see only that they are there."""
    if not isinstance(events, pa.RecordBatch):
        return events
    rows: Any = zip(events.to_pylist(), ids.to_pylist(), strict=True)
    return (
        event_of({name: visible(value) for name, value in row.items()}, identity) for row, identity in rows
    )


def visible(value: object) -> object:
    """Return what filters see of a value: of one that they cannot compare, that it is there."""
    if isinstance(value, dict):
        return {name: visible(each) for name, each in value.items()}
    if isinstance(value, list):
        return [visible(each) for each in value]
    try:
        kind_of(value)
    except EventError:
        return True
    return value


def cut(found: pa.RecordBatch, ids: Column, wanted: NDArray[np.int64]) -> pa.RecordBatch:
    """Keep as many as each event wants of answers that name events by their rows; gives them their ids."""
    # A batch without rows does not know its types.
    row, rank = (np.asarray(found.column(name)).astype(np.int64) for name in (EVENT_ID, RANK))
    kept = found.filter(pa.array(rank <= wanted[row]))
    return kept.set_column(0, EVENT_ID, ids.take(kept.column(EVENT_ID).cast(pa.int64())))


def table_of(
    backend: Backend,
    asked: Iterable[tuple[Events, Column]],
    top: Top | None,
    statistics: Statistics | None = None,
    threads: int = 1,
    limit: int | None = None,
) -> pa.Table:
    """Put answers about all events into one table, and count them; with a limit, results are among them."""
    kinds: dict[str, pa.DataType] = {SUBSCRIPTION_ID: pa.int64() if backend.numbered else pa.string()}
    if top is not None:
        kinds |= {SCORE: pa.float64(), RANK: pa.int32()}
    if limit is not None:
        kinds |= RESULT_COLUMNS
    found: list[pa.RecordBatch] = []
    ids: Any = pa.int64()
    for events, names in asked:
        ids = names.type
        backend.check_sources(events, names)
        if limit is not None:
            found += _with_results(backend, events, names, top, statistics, threads, limit)
            continue
        found += (
            portions(backend, events, names, top, MOST, threads)
            if statistics is None
            else statistics.portions(backend, events, names, top, MOST, threads=threads)
        )
    schema = pa.schema({EVENT_ID: ids, **kinds})
    # One without rows does not know the types of its ids.
    return pa.Table.from_batches([_cast(each, schema) for each in found if each.num_rows], schema)


def _with_results(
    backend: Backend,
    events: Events,
    names: Column,
    top: Top | None,
    statistics: Statistics | None,
    threads: int,
    limit: int,
) -> Iterator[pa.RecordBatch]:
    """Ask about events that are read once, with what matches give."""
    events = read_events(backend, events, names)
    rows: Column = pa.array(np.arange(len(events)))
    parts = (
        portions(backend, events, rows, top, MOST, threads)
        if statistics is None
        else statistics.portions(backend, events, rows, top, MOST, names, threads)
    )
    return giving(parts, events, names, backend.homes, limit)


def giving(
    parts: Iterable[pa.RecordBatch],
    events: Events,
    ids: Column,
    homes: Callable[[Sequence[Id]], Iterable[Home | None]],
    limit: int,
) -> Iterator[pa.RecordBatch]:
    """Add what matches give to answers that name events by their rows, and give these their ids."""
    given = (found for part in parts for found in with_results(part, events, homes, limit))
    for found in renaming(by_row(ids), given):
        yield found.set_column(0, EVENT_ID, ids.take(found.column(EVENT_ID).cast(pa.int64())))


def read_events(backend: Backend, events: Events, ids: Column) -> Events:
    """Have documents in columns read at once, so that none is read again; one that is bad is told by its id.

    What stays in columns has records only.
    """
    content = backend.contents[0]
    if not isinstance(events, pa.RecordBatch) or not isinstance(content, Gives):
        return events
    names = [*map(fold, events.schema.names)]
    if CONTENT_TYPE not in names:
        return events
    if not isinstance(content, DocumentIndex):
        return list(_each(events, ids))
    documents = content.read_batch(events, ids)
    types = column_of(events, CONTENT_TYPE).to_pylist()
    sources = column_of(events, SOURCE).to_pylist() if SOURCE in names else [None] * len(types)
    rows: Any = zip(ids.to_pylist(), documents, types, sources, strict=True)
    return [Event(name, data, content_type=kind, source=source) for name, data, kind, source in rows]


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def lists_of(
    backend: Backend, asked: Iterable[tuple[Events, Column]], statistics: Statistics | None = None
) -> list[list[Id]]:
    """List the matches of each event, sorted, and count them."""
    found: list[list[Any]] = []
    for events, ids in asked:
        by_place = lists_by_place(backend, events) if statistics is None else None
        if by_place is not None:
            found += by_place
            continue
        begin = len(found)
        found += [[] for _ in range(len(events))]
        rows = pa.array(range(len(events)), pa.int64())
        backend.check_sources(events, ids)
        with RenamedOmissions(by_row(ids)):
            parts = (
                backend.portions(events, rows, None, MOST)
                if statistics is None
                else statistics.portions(backend, events, rows, None, MOST, ids)
            )
            for part in parts:
                row, names = np.asarray(part.column(0)), part.column(1).to_pylist()
                for first, last in _runs(row):
                    found[begin + row[first]] += names[first:last]
        for each in found[begin:]:
            each.sort()
    return found


def lists_by_place(backend: Backend, events: Events) -> list[list[Id]] | None:
    """List the matches of each event, sorted; None where matches have no places among the ids of a base."""
    numbered = backend.match_numbers(events)
    if numbered is None:
        return None
    found: list[list[Id]] = [[] for _ in range(len(events))]
    for base, rows, numbers in numbered:
        if not len(rows):
            continue
        # In the order of the ids already.
        listed = base.listed(numbers)
        first, last = int(rows[0]), int(rows[-1]) + 1
        cuts = np.searchsorted(rows, np.arange(first, last + 1)).tolist()
        for row, begin, end in zip(range(first, last), cuts[:-1], cuts[1:], strict=True):
            found[row] += listed[begin:end]
    return found


def _runs(rows: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """List from where to where rows are the same."""
    edges = [0, *(np.flatnonzero(np.diff(rows)) + 1).tolist(), len(rows)]
    return pairwise(edges if len(rows) else ())
