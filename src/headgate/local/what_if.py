"""The what-if job in this process: a set of changed subscriptions over historic events."""

from __future__ import annotations

import time
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.backtest.changes import in_order
from headgate.backtest.cost import SAMPLE, measure, span
from headgate.backtest.difference import (
    CHANGE,
    Differ,
    changed_of,
    counts_of,
)
from headgate.backtest.effects import (
    WhatIf,
    by_operation,
    effects_of,
    effects_table,
    wanted_ids,
    workspace,
)
from headgate.backtest.trial import try_changes
from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.contents.registry import kind_of
from headgate.core.casts import to_timestamp
from headgate.core.event import ID, TIME, read_object
from headgate.core.machine import memory
from headgate.core.omission import Omissions
from headgate.core.values import fold, micros
from headgate.errors import EventError
from headgate.local.events import first_events, json_lines_of, read_columns, read_events
from headgate.local.match import whole
from headgate.local.runner import SHARE
from headgate.runtime.progress import step
from headgate.tables.change_set import changing
from headgate.tables.event_rows import REASON, ROW
from headgate.tables.event_rows import read_events as event_rows
from headgate.tables.frames.rows import as_rows
from headgate.tables.frames.task import FrameTask
from headgate.tables.lines import read_lines
from headgate.tables.places import Format, check_input, is_table
from headgate.tables.writing import write_table

if TYPE_CHECKING:
    from headgate.backtest.trial import TrialResult
    from headgate.core.event import Event, Id
    from headgate.local.events import EventTable
    from headgate.tables.requests import Question


def what_if(
    question: Question,
    *,
    rejected: str,
    output: str | None = None,
    effects: str | None = None,
    quiet: bool = False,
) -> WhatIf:
    """Say what a set of changes would do, as `spark.backtest.what_if` does."""
    question.check(output, effects, rejected)
    begun = time.monotonic()
    room = memory() // SHARE
    with (
        changing([rejected, output, effects]) as changes,
        workspace(output, question.snapshot) as folder,
    ):
        with step("trying the changes", quiet=quiet):
            lines = (row for batch in read_lines(question.changes, ID) for row in batch.to_pylist())
            form = check_input(question.changes)
            tried = try_changes(question.snapshot, form, in_order(lines), folder, question.top)
        with step("reading events", quiet=quiet):
            given = read_events(question.events, tried.target, tried.sources(room), question.content_type)
            write_table(_refused(tried, given), changes.staged(rejected))
        with step("matching before and after", quiet=quiet):
            rows = _compared(question, tried, given, room)
        changed = changed_of(rows)
        moved: dict[Id, dict[str, int]] = {}
        for identity, change in zip(*(changed[name].to_pylist() for name in _MOVED), strict=True):
            ways = moved.setdefault(identity, {})
            ways[change] = ways.get(change, 0) + 1
        found = effects_of(tried.trial, moved, counts_of(rows), given.count, question.noise)
        if output is not None:
            write_table(changed, changes.staged(output))
        if effects is not None:
            write_table(effects_table(found, numbered=tried.numbered), changes.staged(effects))
        cost = None
        if question.cost:
            with step("measuring the cost", quiet=quiet):
                sample = _sampled(question.events, tried.whole.content, given)
                cost = measure(tried, sample, folder, question.top)
        days = _days(question.events)
    return WhatIf(
        events=given.count,
        rejected_events=len(given.refused),
        changes=by_operation(tried.trial),
        rejected=len(tried.trial.refused),
        gained=sum(each.gained for each in found),
        lost=sum(each.lost for each in found),
        effects=found,
        days=days,
        cost=cost,
        seconds=time.monotonic() - begun,
    )


_MOVED = (SUBSCRIPTION_ID, CHANGE)


def _refused(tried: TrialResult, given: EventTable) -> pa.Table:
    """Return the rows that were refused, of both tables."""
    told = [("changes", each.row, each.reason) for each in tried.trial.refused]
    told += [("events", row, reason) for row, reason in given.refused]
    schema = pa.schema(dict.fromkeys(("table", ROW, REASON), pa.string()))
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in told], schema=schema)


def _compared(question: Question, tried: TrialResult, given: EventTable, room: int) -> pa.Table:
    """Match all events against both snapshots, and tell the difference."""
    wanted = wanted_ids(tried, ranked=question.top is not None)
    types = (given.id_type == "long", tried.numbered)
    kinds = [pa.int64() if numbers else pa.string() for numbers in types]
    differ = Differ(pa.schema(dict(zip((EVENT_ID, SUBSCRIPTION_ID), kinds, strict=True))), wanted)
    both = [
        None
        if each is None
        else FrameTask(
            whole(each, room), each.content, given.form, tried.numbered, top=question.top, mark=each.mark
        )
        for each in (tried.before, tried.after)
    ]
    found: list[pa.RecordBatch] = []
    for rows in given.rows if any(each is not None for each in both) else ():
        before, after = (() if task is None else as_rows(rows, task, Omissions()) for task in both)
        found += differ(before, after)
    return pa.Table.from_batches(found, differ.output)


def _sampled(path: str, content: str, given: EventTable) -> list[Event]:
    """Take the first events of a table; all that filters may look at, not only what the changed ones do."""
    if kind_of(content).documents:
        return [event for batch in given.documents for event in event_rows(batch, content)][:SAMPLE]
    return first_events(path, content, None, SAMPLE)[0]


def _days(path: str) -> float | None:
    """Measure the days from the first event of a table to the last; None if no two times differ."""
    if not is_table(path):
        # A folder of documents: files have no times of events.
        return None
    values: list[Any]
    if check_input(path) is Format.JSONL:
        values = [_time(line) for line in json_lines_of(path)]
    else:
        table = read_columns(path)
        name = next((name for name in table.column_names if fold(name) == TIME), None)
        values = [] if name is None else table[name].to_pylist()
    found = [time for time in map(_micros, values) if time is not None]
    return span(min(found) / 1e6, max(found) / 1e6) if found else None


def _time(line: bytes) -> object:
    try:
        return read_object(line).get(TIME)
    except EventError:
        return None


def _micros(value: object) -> int | None:
    """Return a time in microseconds; texts are read as Spark reads them."""
    if isinstance(value, date):
        return micros(value)
    return to_timestamp(value) if isinstance(value, str) else None
