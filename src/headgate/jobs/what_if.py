"""The what-if job: a set of changed subscriptions over historic events, before they go live.

changes -> try on a live engine -> rejected
                                `-> an engine of before, one of after
events  -> each against both (in parallel) -> what differs, by event; counts, by subscription

Without ranks and graph the two engines hold the changed subscriptions only (`backtest/trial.py`), and the
rest is not matched at all.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.backtest.changes import in_order
from headgate.backtest.cost import SAMPLE, measure, span
from headgate.backtest.difference import (
    AFTER,
    BEFORE,
    CHANGE,
    COUNT,
    NET,
    Differ,
    count_changed,
    count_matches,
    tell_changed,
)
from headgate.backtest.effects import (
    WhatIf,
    by_operation,
    concerned,
    effects_of,
    effects_table,
    wanted_ids,
)
from headgate.backtest.trial import try_changes
from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.core.casts import to_timestamp
from headgate.core.event import ID, TIME, Event, read_object
from headgate.core.values import fold, micros
from headgate.engine.question import Question
from headgate.errors import EventError
from headgate.jobs.events import first_read, read_events
from headgate.jobs.runner import job
from headgate.tables import event_rows
from headgate.tables.event_rows import PARSED_BEFORE, REASON, ROW
from headgate.tables.frames.task import FrameTask
from headgate.tables.lines import VALUE
from headgate.tables.places import is_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from headgate.backtest.changes import Row, Trial
    from headgate.backtest.effects import Effect
    from headgate.backtest.trial import TrialResult
    from headgate.core.event import Id
    from headgate.jobs.events import EventTable
    from headgate.jobs.runner import Rows, Runner, Table
    from headgate.runtime.targets import Openable
    from headgate.tables.requests import WhatIfRequest


@job
def what_if(
    runner: Runner,
    question: WhatIfRequest,
    *,
    rejected: str,
    output: str | None = None,
    effects: str | None = None,
) -> WhatIf:
    """Say what a set of changes would do.

    `output` gets a row for each match that would come or go (`event_id`, `subscription_id`, `change`), with
    `top` for each that would enter or leave the best; `effects` a row for each subscription; `rejected` the
    rows that were refused, of changes and of events.
    """
    question.check(output, effects, rejected)
    begun = time.monotonic()
    with (
        runner.changing([rejected, output, effects]) as changes,
        tempfile.TemporaryDirectory(prefix="headgate-") as name,
        ExitStack() as kept,
    ):
        folder = Path(name)
        with runner.step("reading changes"):
            table = runner.table(question.changes)
            rows = read_rows(table)
        with runner.step("trying the changes"):
            tried = try_changes(question.snapshot, table.form, rows, folder, question.top)
        with runner.step("reading events"):
            given = read_events(runner, question.events, tried.target, tried.sources, question.content_type)
            kept.callback(given.forget)
            events = given.refused.map(partial(_labelled, table="events"), REFUSED)
            runner.rows(refused_changes(tried.trial)).then(events).write(changes.staged(rejected))
        task = FrameTask.of(tried.whole, any_engine(tried), given.form)
        task = task._replace(numbered=tried.numbered, question=Question(question.top))
        differ = differ_of(tried, task, pa.int64() if given.id_type == "long" else pa.string())
        with (
            runner.step("matching before and after", rows=given.count, noun="events"),
            given.rows.map(differ.of_batches, differ.schema).kept() as compared,
        ):
            differences = Differences(compared, differ)
            effects_found = differences.effects(tried, given.count, question.noise)
            if output is not None:
                differences.changed.sorted(EVENT_ID, SUBSCRIPTION_ID).write(changes.staged(output))
        if effects is not None:
            runner.rows(effects_table(effects_found, numbered=tried.numbered)).write(changes.staged(effects))
        cost = None
        if question.cost:
            with runner.step("measuring the cost"):
                cost = measure(tried, _sampled(runner, question.events, given, task), folder, question.top)
        days = _days(runner, question.events)
    return WhatIf(
        events=given.count,
        rejected_events=given.rejected,
        changes=by_operation(tried.trial),
        rejected=len(tried.trial.refused),
        gained=sum(each.gained for each in effects_found),
        lost=sum(each.lost for each in effects_found),
        effects=effects_found,
        days=days,
        cost=cost,
        seconds=time.monotonic() - begun,
    )


def read_rows(table: Table) -> list[Row]:
    """Read a table of changes, in its order. They come to the driver: a set of changes is small."""
    return in_order(table.lines(ID).collect().to_pylist())


def any_engine(tried: TrialResult) -> Openable:
    """Return one of the engines, or what was given if neither has subscriptions."""
    return tried.before or tried.after or tried.whole.groups(0)[0]


def differ_of(tried: TrialResult, task: FrameTask, event_type: pa.DataType) -> Differ:
    """Say what workers do to tell what the changes that were tried make of events."""
    wanted = wanted_ids(tried, ranked=task.question.top is not None)
    return Differ(task, tried.before, tried.after, event_type, wanted)


_REFUSED: dict[str, pa.DataType] = dict.fromkeys(("table", ROW, REASON), pa.string())
REFUSED = pa.schema(_REFUSED)


def refused_changes(trial: Trial) -> pa.Table:
    """Return the rows of changes that were refused: `table`, `row`, `reason`."""
    rows = [{"table": "changes", ROW: each.row, REASON: each.reason} for each in trial.refused]
    return pa.Table.from_pylist(rows, REFUSED)


def _labelled(batches: Iterable[pa.RecordBatch], table: str) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns: list[Any] = [pa.array([table] * batch.num_rows), batch.column(ROW), batch.column(REASON)]
        yield pa.RecordBatch.from_arrays(columns, schema=REFUSED)


@dataclass(frozen=True)
class Differences:
    """What a `Differ` tells of all events; whoever asks for several things keeps the rows."""

    rows: Rows
    differ: Differ

    @property
    def changed(self) -> Rows:
        """Return who would come and go: `event_id`, `subscription_id`, `change`. Shuffles what differs.

        Events may share an id, and lie in any two parts of the table: what differs is known of all of them.
        """
        together = self.rows.having(EVENT_ID).gathered(EVENT_ID, SUBSCRIPTION_ID)
        return together.map(tell_changed, self.differ.changed)

    @property
    def events(self) -> int:
        """Count the events."""
        counts: list[Any] = self.rows.lacking(SUBSCRIPTION_ID).collect()[NET].to_pylist()
        return sum(counts)

    def effects(self, tried: TrialResult, events: int, noise: float) -> tuple[Effect, ...]:
        """Say what the changes do to each subscription, noisiest first."""
        identity = self.differ.schema.field(SUBSCRIPTION_ID)
        counted = pa.schema([identity, pa.field(CHANGE, pa.string()), pa.field(COUNT, pa.int64())])
        moved: dict[Id, dict[str, int]] = {}
        for row in self.changed.map(count_changed, counted).collect().to_pylist():
            ways = moved.setdefault(row[SUBSCRIPTION_ID], {})
            ways[row[CHANGE]] = ways.get(row[CHANGE], 0) + row[COUNT]
        # Only those that are concerned come to the driver.
        work = partial(count_matches, wanted=pa.array(concerned(tried.trial, moved), identity.type))
        summed = pa.schema([identity, pa.field(BEFORE, pa.int64()), pa.field(AFTER, pa.int64())])
        by_subscription = self.rows.lacking(EVENT_ID).having(SUBSCRIPTION_ID).gathered(SUBSCRIPTION_ID)
        matches = {
            row[SUBSCRIPTION_ID]: (row[BEFORE] or 0, row[AFTER] or 0)
            for row in by_subscription.map(work, summed).collect().to_pylist()
        }
        return effects_of(tried.trial, moved, matches, events, noise)


# What it costs


def _sampled(runner: Runner, path: str, given: EventTable[Rows], task: FrameTask) -> list[Event]:
    """Read the first events of a table; all that filters may look at, not only what the changed ones do."""
    if given.form == PARSED_BEFORE:
        read = given.rows.head(SAMPLE).combine_chunks().to_batches()
        return [event for batch in read for event in event_rows.read_events(batch, task.content)]
    rows = first_read(runner.table(path), SAMPLE)
    return [event for event in rows if isinstance(event, Event)]


_SPAN = pa.schema([pa.field("first", pa.int64()), pa.field("last", pa.int64())])


def _days(runner: Runner, path: str) -> float | None:
    """Measure the days from the first event of a table to the last; None if no two times differ."""
    if not is_table(path):
        # A folder of documents: files have no times of events.
        return None
    table = runner.table(path)
    names = table.columns()
    if names is None:
        spans = table.lines().map(partial(_spans, name=VALUE, read=_time_of), _SPAN)
    else:
        name = next((name for name in names if fold(name) == TIME), None)
        if name is None:
            return None
        spans = table.typed().select(name).map(partial(_spans, name=name, read=_micros), _SPAN)
    times = spans.collect()
    firsts, lasts = (np.asarray(times[name]) / 1e6 for name in ("first", "last"))
    return span(float(firsts.min()), float(lasts.max())) if len(firsts) else None


def _spans(
    batches: Iterable[pa.RecordBatch], name: str, read: Callable[[Any], int | None]
) -> Iterator[pa.RecordBatch]:
    """Tell the first and the last time of batches."""
    for batch in batches:
        times = [time for value in batch[name].to_pylist() if (time := read(value)) is not None]
        if times:
            yield pa.RecordBatch.from_pylist([{"first": min(times), "last": max(times)}], _SPAN)


def _time_of(line: bytes) -> int | None:
    try:
        return _micros(read_object(line).get(TIME))
    except EventError:
        return None


def _micros(value: object) -> int | None:
    """Return a time in microseconds; texts are read as Spark reads them."""
    if isinstance(value, date):
        return micros(value)
    return to_timestamp(value) if isinstance(value, str) else None
