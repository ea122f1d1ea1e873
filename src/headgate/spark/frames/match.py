"""Match DataFrames of events: DataFrame in, DataFrame out.

Nothing runs until the result is asked for, nothing of the session is changed, and no answer depends on its
settings. The same functions take streaming DataFrames, and those of Spark Connect.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from headgate.contents.protocol import SUBSCRIPTION_ID
from headgate.contents.results import COMPLETE, RESULTS, read_limit
from headgate.core.event import CONTENT_TYPE, DATA, ID, SOURCE
from headgate.core.values import fold
from headgate.errors import TableError
from headgate.graph.path_cost import DECAY, MINUS, PathCost
from headgate.runtime.questions import EXACT, NOT_BY_EVENT, RANK, Top
from headgate.runtime.snapshots import VersionSources
from headgate.runtime.targets import open_target
from headgate.spark.frames.columns import EventColumns, GivenEvents, renamed
from headgate.spark.frames.writing import Answered, answered
from headgate.spark.session.memory import worker_memory
from headgate.spark.tables.groups import best_of, mapped, with_key
from headgate.tables.event_rows import KEY, REASON, ROW
from headgate.tables.frames.rows import MATCHES, VALUE, both_frame, match_frame
from headgate.tables.frames.task import ARRAYS, ROWS, SHAPES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from headgate.runtime.snapshots import Version
    from headgate.runtime.targets import Group, Target
    from headgate.tables.frames.task import FrameTask


def match(
    events: DataFrame,
    snapshot: str | PathLike[str],
    *,
    id: str = ID,  # noqa: A002 -- what people call it
    keep: Sequence[str] = (),
    shape: str = ROWS,
    source: str = SOURCE,
    data: str = DATA,
    content_type: str = CONTENT_TYPE,
    format: str | None = None,  # noqa: A002 -- as on the command line
    names: Mapping[str, str] | None = None,
    results: bool | int = False,
) -> DataFrame:
    """Say who gets each event: the columns `event_id` and `subscription_id`, a row a match.

    With `shape="arrays"` a row an event, also if it matches nothing: `event_id` and the array `matches`.

    `id` names the column of ids, and ids of events keep its type. `keep` names columns of the event that are
    wanted beside its matches. `source` is where an event enters a graph. Of RDF and XML `data` has the
    documents, `content_type` their formats, and `format` is that of documents that name none. `names` gives
    other names to columns of the result, such as `{"subscription_id": "alert"}`.

    With `results` there are two more columns: `results`, an array of maps, is what a match gives, bindings of
    RDF and tuples of XML; `complete` says whether that is all. It is True for 1,000 rows of a match at most,
    or their number. An array of matches has structs then. What is too much is NULL: `refused` with `exceeded`
    and `results` tells it.

    Rows that are no events match nothing: `refused` lists them.

    >>> matched = match(events, "snapshot", id="event_uuid", keep=["price"])  # doctest: +SKIP
    """
    columns = EventColumns(id, source, data, content_type)
    target = open_target(os.fspath(snapshot))
    limit = read_limit(results)
    return EventFrame(events, target, columns, format).matches(keep, shape, names, None, limit)


def top(
    events: DataFrame,
    snapshot: str | PathLike[str],
    k: int = 20,
    mode: str = EXACT,
    *,
    factors: Mapping[str, float] | None = None,
    by: str = MINUS,
    decay: float = DECAY,
    hops: bool = False,
    k_column: str | None = None,
    id: str = ID,  # noqa: A002 -- what people call it
    keep: Sequence[str] = (),
    shape: str = ROWS,
    source: str = SOURCE,
    data: str = DATA,
    content_type: str = CONTENT_TYPE,
    format: str | None = None,  # noqa: A002 -- as on the command line
    names: Mapping[str, str] | None = None,
    results: bool | int = False,
) -> DataFrame:
    """Say who comes first: the best k of each event, with the columns `rank` and `value` besides.

    `mode` is "exact", where all clauses of a filter must hold, or "relaxed"; `factors` multiply the weights
    of attributes then. In a graph `by`, `decay` and `hops` say what the way costs. `k_column` names a
    column by which each event says how many it wants, at most k. All else is as in `match`; an array
    has structs of the subscription, rank and value.

    >>> best = top(events, "snapshot", 20, "relaxed")  # doctest: +SKIP
    """
    columns = EventColumns(id, source, data, content_type)
    wanted = Top.of(k, mode, factors, PathCost.of(by, decay, hops=hops), k_column)
    target = open_target(os.fspath(snapshot), top=wanted)
    limit = read_limit(results)
    return EventFrame(events, target, columns, format).matches(keep, shape, names, wanted, limit)


def refused(
    events: DataFrame,
    snapshot: str | PathLike[str],
    *,
    id: str = ID,  # noqa: A002 -- what people call it
    source: str = SOURCE,
    data: str = DATA,
    content_type: str = CONTENT_TYPE,
    format: str | None = None,  # noqa: A002 -- as on the command line
    exceeded: bool = False,
    names: Mapping[str, str] | None = None,
    results: bool | int = False,
) -> DataFrame:
    """List the rows that are no events: `event_id`, `reason`, and the `row` as JSON.

    With `exceeded` also filters that were too expensive for an event and left out of it; events are matched
    for that, and with `results` also those whose results are too much. The other arguments are as in `match`.

    >>> bad = refused(events, "snapshot", id="event_uuid")  # doctest: +SKIP
    """
    columns = EventColumns(id, source, data, content_type)
    target = open_target(os.fspath(snapshot))
    limit = read_limit(results)
    return EventFrame(events, target, columns, format).refused(names, exceeded=exceeded, results=limit)


class EventFrame:
    """A DataFrame of events, and the snapshot that it meets."""

    def __init__(self, events: DataFrame, target: Target, columns: EventColumns, form: str | None) -> None:
        self._given = GivenEvents.of(events, columns, target, form)
        self._events = events
        self._target = target

    @property
    def _groups(self) -> tuple[Group, ...]:
        """Return the shards that a worker has in memory together."""
        return self._target.groups(worker_memory(self._events.sparkSession))

    def matches(
        self,
        keep: Sequence[str],
        shape: str,
        names: Mapping[str, str] | None,
        top: Top | None,
        results: int | None = None,
    ) -> DataFrame:
        """Return matches of all groups of shards."""
        kept = self._kept(keep, shape)
        groups = self._groups
        several = len(groups) > 1
        if several and shape == ARRAYS:
            raise TableError(
                f"{self._target.title} has shards that do not fit into one worker, which are asked one after "
                "another: use shape='rows', and group them"
            )
        if several and top is not None and self._events.isStreaming:
            raise TableError(
                f"{self._target.title} has shards that do not fit into one worker, and the best of all "
                "cannot be found in a stream: compile fewer shards, or give workers more memory"
            )
        keyed = several and top is not None
        if keyed and top is not None and top.column is not None:
            raise TableError(NOT_BY_EVENT.format(self._target.title))
        task = self._task(top)._replace(shape=shape, keyed=keyed, results=results)
        schema = self._schema(shape, kept, top, results, numbered=self._target.numbered)
        if keyed:
            schema = schema.add(KEY, LongType())
        rows = self._given.rows(kept)
        if keyed:
            rows = with_key(rows)
        works = [partial(match_frame, task=task._replace(group=group)) for group in groups]
        found = mapped(rows, works, schema)
        if keyed:
            assert top is not None
            found = best_of(found, top.k, VALUE)
            return renamed(found, names)
        return answered(renamed(found, names), Answered(rows, works, tuple(found.columns)))

    def both(
        self,
        version: Version,
        keep: Sequence[str],
        shape: str,
        top: Top | None,
        results: int | None,
        *,
        numbered: bool,
    ) -> DataFrame:
        """Return matches at a version of live subscriptions, and with them the rows that are no events.

        Those have a reason, and matches have none.
        """
        kept = self._kept(keep, shape)
        task = self._given.task(version, VersionSources(version) if self._target.graph else None, top)
        task = task._replace(numbered=numbered, shape=shape, keep=tuple(kept), results=results)
        schema = self._schema(shape, kept, top, results, numbered=numbered)
        for name in (REASON, ROW):
            if name in map(fold, kept):
                raise TableError(f"column {name} tells of refused rows: rename it in the events to keep it")
            schema = schema.add(name, StringType())
        rows = self._given.rows(self._events.columns, live=True)
        return rows.mapInArrow(partial(both_frame, task=task), schema)

    def _kept(self, keep: Sequence[str], shape: str) -> list[str]:
        """Check what is wanted of events, and how; returns columns as the frame has them."""
        if shape not in SHAPES:
            raise TableError(f"shape is {shape!r}: use {' or '.join(map(repr, SHAPES))}")
        return self._given.kept(keep)

    def refused(
        self, names: Mapping[str, str] | None, *, exceeded: bool, results: int | None = None
    ) -> DataFrame:
        """Return rows that are no events."""
        task = self._task(None)._replace(exceeded=exceeded, results=results)
        # Others are asked for the filters that they leave out, if that is wanted.
        others = self._groups[1:] if exceeded else ()
        tasks = [task, *(task._replace(group=group, tells=False) for group in others)]
        return renamed(self._given.refused(tasks), names)

    def _task(self, top: Top | None) -> FrameTask:
        sources = self._target.sources(worker_memory(self._events.sparkSession))
        return self._given.task(self._groups[0], sources, top)

    def _schema(
        self, shape: str, kept: Sequence[str], top: Top | None, results: int | None, *, numbered: bool
    ) -> StructType:
        """Return the columns of the result."""
        subscription: DataType = LongType() if numbered else StringType()
        told: list[tuple[str, DataType]] = [(SUBSCRIPTION_ID, subscription)]
        if top is not None:
            told += [(RANK, IntegerType()), (VALUE, DoubleType())]
        if results is not None:
            told += [(RESULTS, ArrayType(MapType(StringType(), StringType()))), (COMPLETE, BooleanType())]
        if shape == ARRAYS:
            each = subscription if len(told) == 1 else StructType([StructField(*field) for field in told])
            told = [(MATCHES, ArrayType(each))]
        return self._given.schema(told, kept)
