"""Answers about many events: tables of them, found together or one event after the other."""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.contents.documents import DocumentIndex
from headgate.contents.portions import Portion, lists_of
from headgate.contents.protocol import EVENT_ID, RANK, SCORE, SUBSCRIPTION_ID
from headgate.contents.results import RESULT_COLUMNS, Gives, with_results
from headgate.core.event import CONTENT_TYPE, SOURCE, Event, column_of
from headgate.core.omission import RenamedOmissions
from headgate.core.values import fold, kind_of
from headgate.engine.backend import MOST
from headgate.engine.inputs import event_of
from headgate.engine.threads import ask
from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from headgate.core.event import Id
    from headgate.engine.backend import Backend, Column, Events
    from headgate.engine.question import Top
    from headgate.engine.statistics import Statistics


def one_by_one(best: Callable[[Event, Top], Iterable[Any]], events: Events, ids: Column, top: Top) -> Portion:
    """Ask for the best of one event after the other; they are told of by their `ids`."""
    rows: list[tuple[int, Any, float]] = []
    for row, (event, identity) in enumerate(zip(_each(events, ids), ids.to_pylist(), strict=True)):
        with RenamedOmissions(methodcaller("_replace", event=identity)):
            rows += [(row, each.subscription, each.value) for each in best(event, top)]
    at, found, values = ([row[place] for row in rows] for place in range(3))
    return Portion.of(np.array(at, np.int64), pa.array(found), np.array(values, np.float64))


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
        read = events if limit is None else read_events(backend, events, names)
        portions = asked_by(backend, read, names, top, statistics, threads)
        if limit is None:
            found += (batch for portion in portions for batch in portion.batches(names))
        else:
            found += with_results(portions, read, names, backend.homes, limit)
    schema = pa.schema({EVENT_ID: ids, **kinds})
    # One without rows does not know the types of its ids.
    return pa.Table.from_batches([_cast(each, schema) for each in found if each.num_rows], schema)


def asked_by(
    backend: Backend,
    events: Events,
    ids: Column,
    top: Top | None,
    statistics: Statistics | None = None,
    threads: int = 1,
) -> Iterator[Portion]:
    """Ask a backend, and count the answers where these are counted."""
    if statistics is None:
        return ask(backend, events, ids, top, MOST, threads)
    return statistics.ask(backend, events, ids, top, MOST, threads=threads)


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


def lists_by(
    backend: Backend, asked: Iterable[tuple[Events, Column]], statistics: Statistics | None = None
) -> list[list[Id]]:
    """List the matches of each event, sorted, and count them."""
    found: list[list[Id]] = []
    for events, ids in asked:
        backend.check_sources(events, ids)
        found += lists_of(asked_by(backend, events, ids, None, statistics), len(events))
    return found
