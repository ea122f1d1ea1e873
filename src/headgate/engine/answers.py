"""Answers about many events: tables of them, found together or one event after the other.

Several threads read one index, and each has scratch of its own: kernels run without the GIL, and so do many
loops of NumPy and Arrow. Events are cut into runs that threads take one after another; answers, and filters
that are left out, come in the order of the events. A run is answered as if it had been asked about alone: of
subscriptions that change meanwhile, it sees those of some moment of the call.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from headgate.contents.documents import DocumentIndex
from headgate.contents.portions import Portion, lists_of
from headgate.contents.protocol import EVENT_ID
from headgate.contents.results import Gives
from headgate.core.arguments import told
from headgate.core.event import CONTENT_TYPE, SOURCE, Event, column_of
from headgate.core.omission import Omissions, RenamedOmissions, tell
from headgate.core.values import fold, kind_of
from headgate.engine.backend import MOST, in_slices
from headgate.engine.inputs import event_of
from headgate.engine.question import ALL
from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from headgate.core.event import Id
    from headgate.engine.backend import Backend, Column, Events
    from headgate.engine.question import Question, Top
    from headgate.engine.statistics import Statistics


def one_by_one(best: Callable[[Event, Top], Iterable[Any]], events: Events, ids: Column, top: Top) -> Portion:
    """Ask for the best of one event after the other; they are told of by their `ids`."""
    rows: list[tuple[int, Any, float]] = []
    for row, (event, identity) in enumerate(zip(_each(events, ids), ids.to_pylist(), strict=True)):
        with RenamedOmissions(methodcaller("_replace", event=identity)):
            rows += [(row, each.subscription, each.value) for each in best(event, top)]
    at, subscriptions, values = ([row[field] for row in rows] for field in range(3))
    return Portion.of(np.array(at, np.int64), pa.array(subscriptions), np.array(values, np.float64))


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
    parts: Iterable[tuple[Events, Column]],
    question: Question,
    statistics: Statistics | None = None,
    threads: int = 1,
) -> pa.Table:
    """Put answers about all events into one table, and count them."""
    batches: list[pa.RecordBatch] = []
    ids: Any = pa.int64()
    asking = ask if statistics is None else statistics.ask
    for events, names in parts:
        ids = names.type
        backend.check_sources(events, names)
        find = partial(asking, backend, ids=names, question=question, most=MOST, threads=threads)
        batches += question.batches(find, events, names, backend, backend.homes)
    schema = pa.schema({EVENT_ID: ids, **question.columns(numbered=backend.numbered)})
    # One without rows does not know the types of its ids.
    return pa.Table.from_batches([_cast(each, schema) for each in batches if each.num_rows], schema)


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
    backend: Backend, batches: Iterable[tuple[Events, Column]], statistics: Statistics | None = None
) -> list[list[Id]]:
    """List the matches of each event, sorted, and count them."""
    lists: list[list[Id]] = []
    asking = ask if statistics is None else statistics.ask
    for events, ids in batches:
        backend.check_sources(events, ids)
        lists += lists_of(asking(backend, events, ids, ALL, MOST, 1), len(events))
    return lists


_T = TypeVar("_T")
_S = TypeVar("_S")

LEAST_RUN, MOST_RUN = 512, 8_192
"""Events of a run: with fewer, what a question costs by itself counts; with more, threads wait at the end."""
MOST_THREADS = 256


def check_threads(threads: object) -> int:
    """Take how many threads are wanted."""
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
        shown = threads if isinstance(threads, int | float | str) else told(threads)
        raise EventError(f"threads is {shown!r}: give how many, a whole number from 1 to {MOST_THREADS}")
    return threads


def ask(
    backend: Backend, events: Events, ids: Column, question: Question, most: int, threads: int
) -> Iterator[Portion]:
    """Do as `Backend.ask`, by several threads."""
    size = max(LEAST_RUN, min(MOST_RUN, -(-len(events) // threads)))
    if threads == 1 or len(events) <= size:
        yield from backend.ask(events, ids, question, most)
        return

    def run(asked: tuple[int, Events, Column]) -> tuple[list[Portion], Omissions]:
        begin, some, own = asked
        with Omissions() as left_out:
            return [each.moved(begin) for each in backend.ask(some, own, question, most)], left_out

    for portions, left_out in spread(run, list(in_slices(events, ids, size)), threads):
        for each in left_out:
            tell(*each)
        yield from portions


def spread(work: Callable[[_T], _S], items: Sequence[_T], threads: int) -> list[_S]:
    """Do some work for each of some items, by this thread and others; if it fails, for the first that does.

    >>> spread(str, [1, 2, 3], 2)
    ['1', '2', '3']
    """
    results: dict[int, _S] = {}
    failures: dict[int, BaseException] = {}
    left = iter(range(len(items)))

    def run() -> None:
        # Items are taken in order, so all before the first failure are done whatever comes behind it.
        for number in left:
            if failures:
                return
            try:
                results[number] = work(items[number])
            except BaseException as error:  # noqa: BLE001 -- raised below, in the thread of who asked
                failures[number] = error

    others = min(threads, len(items)) - 1
    pool = _pool(os.getpid(), others) if others > 0 else None
    waiting = [pool.submit(copy_context().run, run) for _ in range(others)] if pool is not None else []
    run()
    for each in waiting:
        # One that has not begun has nothing left to do.
        if not each.cancel():
            each.result()
    if failures:
        raise failures[min(failures)]
    return [results[number] for number in range(len(items))]


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Return threads that stay, with their scratch; those of a process do not outlive a fork."""
    del process
    return ThreadPoolExecutor(threads, "headgate-matching")
