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

from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.backtest.changes import Row, in_order
from headgate.backtest.cost import measure
from headgate.backtest.difference import (
    AFTER,
    BEFORE,
    CHANGE,
    GAINED,
    LOST,
    NET,
    compare,
    matches_of,
    rows_schema,
)
from headgate.backtest.effects import (
    WhatIf,
    by_operation,
    concerned,
    effects_of,
    effects_table,
    wanted_ids,
    workspace,
)
from headgate.backtest.trial import try_changes
from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.core.event import ID
from headgate.runtime.progress import step
from headgate.spark.jobs.backtest.what_if_cost import days_of, sampled
from headgate.spark.jobs.match.reading import read_table
from headgate.spark.jobs.match.worker import Task, match_rows
from headgate.spark.session.memory import worker_memory
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.tables.elsewhere import changing_together
from headgate.spark.tables.tables import read_lines, to_frame, write_table
from headgate.tables.event_rows import REASON, ROW

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from headgate.backtest.effects import Effect
    from headgate.backtest.trial import TrialResult
    from headgate.core.event import Id
    from headgate.runtime.targets import Target
    from headgate.spark.tables.events import EventTable
    from headgate.tables.requests import Question


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
            tried = try_changes(question.snapshot, question.changes, rows, folder, question.top)
        with watch(session, "reading events", quiet=quiet):
            sources = tried.sources(worker_memory(session))
            given = read_table(session, question.events, tried.target, sources, question.content_type)
            write_table(_refused(session, tried, given), changes.staged(rejected))
        count = given.judged.count
        with (
            watch(session, "matching before and after", rows=count, noun="events", quiet=quiet),
            _compared(session, question, tried, given) as (changed, counts),
        ):
            found = _effects(session, question, tried, given, changed, counts)
            if output is not None:
                write_table(changed.orderBy(EVENT_ID, SUBSCRIPTION_ID), changes.staged(output))
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


def _refused(session: SparkSession, tried: TrialResult, given: EventTable) -> DataFrame:
    """Return the rows that were refused, of both tables."""
    rows = [(each.row, each.reason) for each in tried.trial.refused]
    changes = session.createDataFrame(rows, f"{ROW} string, {REASON} string")
    name = "table"
    return changes.select(sf.lit("changes").alias(name), ROW, REASON).union(
        given.judged.refused.select(sf.lit("events").alias(name), ROW, REASON)
    )


class Pair(NamedTuple):
    """Two snapshots to be compared; None is one without subscriptions."""

    before: Task | None
    after: Task | None
    wanted: pa.Array[Any] | None = None
    """The subscriptions that are asked for; None for all."""

    @property
    def matches(self) -> pa.Schema:
        """Return the columns of matches, which both have."""
        task = self.before or self.after
        assert task is not None
        return task.output

    @property
    def output(self) -> pa.Schema:
        """Return the columns of what comes out."""
        return rows_schema(self.matches)


def _compare(batches: Iterable[pa.RecordBatch], pair: Pair) -> Iterator[pa.RecordBatch]:
    """Match events against both snapshots and tell the difference, batch by batch."""
    for batch in batches:
        before, after = (
            matches_of(() if task is None else match_rows([batch], task), pair.matches, pair.wanted)
            for task in (pair.before, pair.after)
        )
        yield from compare(before, after)


@contextmanager
def _compared(
    session: SparkSession, question: Question, tried: TrialResult, given: EventTable
) -> Iterator[tuple[DataFrame, DataFrame]]:
    """Yield what would come and go, and the matches of subscriptions: both to be asked more than once."""
    subscription_type = "long" if tried.numbered else "string"
    event_type = given.judged.id_type

    def task(target: Target | None) -> Task | None:
        if target is None:
            return None
        groups = target.groups(worker_memory(session))
        return Task(
            groups[0], target.content, given.form, event_type, subscription_type, top=question.top
        )  # fmt: skip

    wanted = wanted_ids(tried, ranked=question.top is not None)
    pair = Pair(task(tried.before), task(tried.after), wanted)
    if pair.before is None and pair.after is None:
        pair = pair._replace(before=task(tried.whole))
        rows = session.createDataFrame([], from_arrow_schema(pair.output))
    else:
        rows = given.rows.mapInArrow(partial(_compare, pair=pair), from_arrow_schema(pair.output))
    rows = rows.persist()
    try:
        # Events may share an id, and lie in any two parts of the table: what differs is known of all of them.
        sums = (
            rows.where(sf.col(EVENT_ID).isNotNull())
            .groupBy(EVENT_ID, SUBSCRIPTION_ID)
            .agg(sf.sum(NET).alias(NET))
        )
        times = sf.explode(sf.sequence(sf.lit(1), sf.abs(NET).cast("int")))
        change = sf.when(sf.col(NET) > 0, GAINED).otherwise(LOST).alias(CHANGE)
        changed = (
            sums.where(sf.col(NET) != 0).select(EVENT_ID, SUBSCRIPTION_ID, change, times.alias(NET)).drop(NET)
        )
        counts = (
            rows.where(sf.col(EVENT_ID).isNull())
            .groupBy(SUBSCRIPTION_ID)
            .agg(*(sf.coalesce(sf.sum(name), sf.lit(0)).alias(name) for name in (BEFORE, AFTER)))
        )
        yield changed, counts
    finally:
        rows.unpersist()


def _effects(
    session: SparkSession,
    question: Question,
    tried: TrialResult,
    given: EventTable,
    changed: DataFrame,
    counts: DataFrame,
) -> tuple[Effect, ...]:
    """Say what the changes do to each subscription, noisiest first."""
    moved: dict[Id, dict[str, int]] = {}
    for row in changed.groupBy(SUBSCRIPTION_ID, CHANGE).count().collect():
        moved.setdefault(row[SUBSCRIPTION_ID], {})[row[CHANGE]] = row["count"]
    kind = "long" if tried.numbered else "string"
    told = [(each,) for each in concerned(tried.trial, moved)]
    names = session.createDataFrame(told, f"{SUBSCRIPTION_ID} {kind}")
    # Only those that are concerned come to the driver.
    matches = {
        row[SUBSCRIPTION_ID]: (row[BEFORE], row[AFTER])
        for row in counts.join(names, SUBSCRIPTION_ID).collect()
    }
    return effects_of(tried.trial, moved, matches, given.judged.count, question.noise)
