"""The what-if job: a set of changed subscriptions over historic events, before they go live.

changes -> try on a live engine -> rejected
                                `-> a snapshot of before, one of after
events  -> each against both (in parallel) -> what differs, by event; counts, by subscription

Without ranks and graph the two snapshots hold the changed subscriptions only (`backtest/trial.py`), and the
rest is not matched at all.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.backtest.changes import Row, in_order
from headgate.backtest.cost import measure
from headgate.backtest.difference import Differ
from headgate.backtest.effects import WhatIf, by_operation, effects_table, wanted_ids, workspace
from headgate.backtest.trial import try_changes
from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.core.event import ID
from headgate.runtime.progress import step
from headgate.spark.jobs.backtest.what_if_cost import days_of, sampled
from headgate.spark.jobs.events import read_table
from headgate.spark.session.memory import worker_memory
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.session.settings import in_own_session
from headgate.spark.tables.differences import Differences, refused_rows
from headgate.spark.tables.elsewhere import changing_together
from headgate.spark.tables.tables import read_lines, to_frame, write_table
from headgate.tables.frames.rows import match_frame
from headgate.tables.frames.task import FrameTask
from headgate.tables.places import check_input

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

    from headgate.backtest.trial import TrialResult
    from headgate.runtime.targets import Target
    from headgate.spark.jobs.events import EventTable
    from headgate.tables.requests import Question


@in_own_session
def what_if(
    session: SparkSession,
    question: Question,
    *,
    rejected: str,
    output: str | None = None,
    effects: str | None = None,
    quiet: bool = False,
) -> WhatIf:
    """Say what a set of changes would do.

    `output` gets a row for each match that would come or go (`event_id`, `subscription_id`, `change`), with
    `top` for each that would enter or leave the best; `effects` a row for each subscription; `rejected` the
    rows that were refused, of changes and of events.
    """
    question.check(output, effects, rejected)
    begun = time.monotonic()
    with (
        spark_errors(),
        changing_together(session, [rejected, output, effects]) as changes,
        workspace(output, question.snapshot) as folder,
    ):
        with watch(session, "reading changes", quiet=quiet):
            rows = read_rows(session, question.changes)
        with step("trying the changes", quiet=quiet):
            form = check_input(question.changes)
            tried = try_changes(question.snapshot, form, rows, folder, question.top)
        with watch(session, "reading events", quiet=quiet):
            sources = tried.sources(worker_memory(session))
            given = read_table(session, question.events, tried.target, sources, question.content_type)
            write_table(refused_rows(session, tried.trial, given.judged.refused), changes.staged(rejected))
        count = given.judged.count
        with (
            watch(session, "matching before and after", rows=count, noun="events", quiet=quiet),
            _compared(session, question, tried, given) as differences,
        ):
            found = differences.effects(tried, count, question.noise)
            if output is not None:
                write_table(differences.changed.orderBy(EVENT_ID, SUBSCRIPTION_ID), changes.staged(output))
        if effects is not None:
            table = to_frame(session, effects_table(found, numbered=tried.numbered))
            write_table(table, changes.staged(effects))
        cost = None
        if question.cost:
            with step("measuring the cost", quiet=quiet):
                sample = sampled(session, question.events, tried.whole.content, given.rows)
                cost = measure(tried, sample, folder, question.top)
        days = days_of(session, question.events)
        given.judged.forget()
    return WhatIf(
        events=count,
        rejected_events=given.judged.rejected,
        changes=by_operation(tried.trial),
        rejected=len(tried.trial.refused),
        gained=sum(each.gained for each in found),
        lost=sum(each.lost for each in found),
        effects=found,
        days=days,
        cost=cost,
        seconds=time.monotonic() - begun,
    )


def read_rows(session: SparkSession, path: str) -> list[Row]:
    """Read a table of changes, in its order. They come to the driver: a set of changes is small."""
    return in_order(row.asDict() for row in read_lines(session, path, ID).collect())


class _Both(NamedTuple):
    """Two snapshots to be compared; None is one without subscriptions."""

    before: FrameTask | None
    after: FrameTask | None
    differ: Differ


def _compare(batches: Iterable[pa.RecordBatch], both: _Both) -> Iterator[pa.RecordBatch]:
    """Match events against both snapshots and tell the difference, batch by batch."""
    for batch in batches:
        before, after = (
            () if task is None else match_frame([batch], task) for task in (both.before, both.after)
        )
        yield from both.differ(before, after)


@contextmanager
def _compared(
    session: SparkSession, question: Question, tried: TrialResult, given: EventTable
) -> Iterator[Differences]:
    """Yield what differs, to be asked more than once."""

    def task(target: Target) -> FrameTask:
        group = target.groups(worker_memory(session))[0]
        return FrameTask(
            group, target.content, given.form, tried.numbered, top=question.top, mark=target.mark
        )

    types = (given.judged.id_type == "long", tried.numbered)
    kinds = [pa.int64() if numbers else pa.string() for numbers in types]
    matches = pa.schema(dict(zip((EVENT_ID, SUBSCRIPTION_ID), kinds, strict=True)))
    differ = Differ(matches, wanted_ids(tried, ranked=question.top is not None))
    before, after = (None if each is None else task(each) for each in (tried.before, tried.after))
    if before is None and after is None:
        rows = session.createDataFrame([], from_arrow_schema(differ.output))
    else:
        work = partial(_compare, both=_Both(before, after, differ))
        rows = given.rows.mapInArrow(work, from_arrow_schema(differ.output))
    rows = rows.persist()
    try:
        yield Differences(rows)
    finally:
        rows.unpersist()
