"""The what-if job: a set of changed subscriptions over historic events, before they go live.

changes -> try on a live engine -> rejected
                                `-> a snapshot of before, one of after
events  -> each against both (in parallel) -> what differs, by event; counts, by subscription

Without ranks and graph the two snapshots hold the changed subscriptions only (`trying`), and the rest is not
matched at all.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as sf

from headgate.engine.engine import Engine
from headgate.errors import TableError
from headgate.records.index.index import EVENT_ID, SUBSCRIPTION_ID
from headgate.runtime.operations import OPERATIONS, UNSUBSCRIBE
from headgate.runtime.progress import step
from headgate.spark.backtest.change_rows import read_rows
from headgate.spark.backtest.comparing import AFTER, BEFORE, NET, Pair, compare
from headgate.spark.backtest.trial import try_changes
from headgate.spark.backtest.what_if_cost import Cost, days_of, sampled, size_of, timed
from headgate.spark.match.reading import read_table
from headgate.spark.match.worker import Task
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors, worker_memory
from headgate.spark.tables.tables import to_frame, write_table
from headgate.tables.event_rows import REASON, ROW
from headgate.tables.places import is_remote, local

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from headgate.core.event import Id
    from headgate.runtime.targets import Target
    from headgate.spark.backtest.change_rows import Trial
    from headgate.spark.backtest.trial import TrialResult
    from headgate.spark.tables.events import EventTable
    from headgate.tables.requests import Question

CHANGE = "change"
GAINED, LOST = "gained", "lost"
NOTHING, NOISY = "matches nothing", "noisy"


@dataclass(frozen=True)
class Effect:
    """What the changes do to one subscription; `op` is empty for one that no row names."""

    id: Id
    op: str
    before: int
    after: int
    gained: int
    lost: int
    share: float
    """Matches after, by events."""
    flag: str
    filter: str


@dataclass(frozen=True)
class WhatIf:
    """What would change."""

    events: int
    rejected_events: int
    changes: dict[str, int]
    """Changed subscriptions, and changes of the graph, by what was done."""
    rejected: int
    """Rows of changes that were refused."""
    gained: int
    lost: int
    effects: tuple[Effect, ...]
    """Noisiest first."""
    days: float | None
    """From the first event to the last, if they have times."""
    cost: Cost | None
    seconds: float

    @property
    def deliveries_a_day(self) -> float | None:
        """Return how many more matches a day there would be; None if events have no times."""
        return (self.gained - self.lost) / self.days if self.days else None


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
    with spark_errors(), _workspace(output, question.snapshot) as folder:
        with watch(session, "reading changes", quiet=quiet):
            rows = read_rows(session, question.changes)
        with step("trying the changes", quiet=quiet):
            tried = try_changes(question.snapshot, question.changes, rows, folder, question.top)
        with watch(session, "reading events", quiet=quiet):
            sources = tried.sources(worker_memory(session))
            given = read_table(session, question.events, tried.target, sources, question.content_type)
            write_table(_refused(session, tried, given), rejected)
        count = given.judged.count
        with (
            watch(session, "matching before and after", rows=count, noun="events", quiet=quiet),
            _compared(session, question, tried, given) as (changed, counts),
        ):
            found = _effects(session, question, tried, given, changed, counts)
            if output is not None:
                write_table(changed.orderBy(EVENT_ID, SUBSCRIPTION_ID), output)
        if effects is not None:
            write_table(to_frame(session, _table(found, numbered=tried.numbered)), effects)
        with step("measuring the cost", quiet=quiet):
            cost = _cost(session, question, tried, given, folder) if question.cost else None
        days = days_of(session, question.events)
        given.judged.forget()
    return WhatIf(
        events=count,
        rejected_events=given.judged.rejected,
        changes=_by_operation(tried.trial),
        rejected=len(tried.trial.refused),
        gained=sum(each.gained for each in found),
        lost=sum(each.lost for each in found),
        effects=found,
        days=days,
        cost=cost,
        seconds=time.monotonic() - begun,
    )


def _refused(session: SparkSession, tried: TrialResult, given: EventTable) -> DataFrame:
    """Return the rows that were refused, of both tables."""
    rows = [(each.row, each.reason) for each in tried.trial.refused]
    changes = session.createDataFrame(rows, f"{ROW} string, {REASON} string")
    name = "table"
    return changes.select(sf.lit("changes").alias(name), ROW, REASON).union(
        given.judged.refused.select(sf.lit("events").alias(name), ROW, REASON)
    )


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

    ids: list[Any] = list(tried.trial.changes)
    wanted = None
    if question.top is None and not tried.trial.graph:
        wanted = pa.array(ids, pa.int64() if tried.numbered else pa.string())
    pair = Pair(task(tried.before), task(tried.after), wanted)
    if pair.before is None and pair.after is None:
        pair = pair._replace(before=task(tried.whole))
        rows = session.createDataFrame([], pair.ddl)
    else:
        rows = given.rows.mapInArrow(partial(compare, pair=pair), pair.ddl)
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
    concerned: list[Any] = list(dict.fromkeys([*tried.trial.changes, *moved]))
    kind = "long" if tried.numbered else "string"
    names = session.createDataFrame([(each,) for each in concerned], f"{SUBSCRIPTION_ID} {kind}")
    # Only those that are concerned come to the driver.
    matches = {
        row[SUBSCRIPTION_ID]: (row[BEFORE], row[AFTER])
        for row in counts.join(names, SUBSCRIPTION_ID).collect()
    }
    events = given.judged.count
    found = []
    for identity in concerned:
        before, after = matches.get(identity, (0, 0))
        change = tried.trial.changes.get(identity)
        op, text = (change.op, change.filter) if change else ("", "")
        share = after / events if events else 0.0
        flag = ""
        if change is not None and op != UNSUBSCRIBE:
            flag = NOTHING if not after else NOISY if share > question.noise else ""
        gained, lost = (moved.get(identity, {}).get(way, 0) for way in (GAINED, LOST))
        found.append(Effect(identity, op, before, after, gained, lost, share, flag, text))
    return tuple(sorted(found, key=lambda each: (-each.after, -each.before, each.id)))


def _table(effects: tuple[Effect, ...], *, numbered: bool) -> pa.Table:
    """Return the effects as a table."""
    kinds: dict[str, pa.DataType] = {
        SUBSCRIPTION_ID: pa.int64() if numbered else pa.string(),
        "op": pa.string(),
        BEFORE: pa.int64(),
        AFTER: pa.int64(),
        GAINED: pa.int64(),
        LOST: pa.int64(),
        "share": pa.float64(),
        "flag": pa.string(),
        "filter": pa.string(),
    }
    columns: list[Any] = [
        pa.array([getattr(each, "id" if name == SUBSCRIPTION_ID else name) for each in effects], kind)
        for name, kind in kinds.items()
    ]
    return pa.table(columns, names=list(kinds))


def _cost(
    session: SparkSession, question: Question, tried: TrialResult, given: EventTable, folder: Path
) -> Cost | None:
    """Measure both snapshots whole; None for one in shards, which is in no engine."""
    if len(tried.whole.shards) > 1:
        return None
    place = Path(tried.whole.shards[0].place)
    saved, seconds = tried.save(folder)
    events = sampled(session, question.events, tried.whole.content, given.rows)
    engines = Engine.open(place, verify=False), Engine.open(saved, verify=False)
    times = timed(*engines, events, question.top)
    before, after = times.micros if times else (None, None)
    return Cost(size_of(place), size_of(saved), before, after, times.events if times else 0, seconds)


def _by_operation(trial: Trial) -> dict[str, int]:
    found = Counter(change.op for change in trial.changes.values()) + trial.graph
    return {op: found[op] for op in OPERATIONS if found[op]}


@contextmanager
def _workspace(output: str | None, snapshot: str) -> Iterator[Path]:
    """Yield a folder for snapshots, where workers of a cluster see it: beside the output, or the snapshot.

    It is named after the process: a pipeline removes what one that was killed has left.
    """
    place = local(output if output is not None and not is_remote(output) else snapshot).absolute()
    folder = place.with_name(f".{place.name}.{os.getpid()}.what-if")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise TableError(
            f"{folder.parent} cannot be written, and snapshots to compare are put there: {error.strerror}; "
            "name an output where all machines see it"
        ) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
