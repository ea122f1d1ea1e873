"""Match DataFrames of events: DataFrame in, DataFrame out.

Nothing runs until the result is asked for, nothing of the session is changed, and no answer depends on its
settings. The same functions take streaming DataFrames, and those of Spark Connect.
"""

from __future__ import annotations

import os
from functools import partial, reduce
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.contents.registry import kind_of
from headgate.core.event import CONTENT_TYPE, DATA, ID, SOURCE
from headgate.core.likeliest import likeliest
from headgate.core.values import fold
from headgate.errors import TableError
from headgate.runtime.questions import EXACT, RANK, Top
from headgate.runtime.targets import open_target
from headgate.spark.frames.columns import WHAT, EventColumns, find, kind_of_id, packed
from headgate.spark.session.memory import worker_memory
from headgate.spark.tables.tables import column
from headgate.tables.event_rows import KEY, REASON, ROW
from headgate.tables.frame_rows import (
    ARRAYS,
    MATCHES,
    ROWS,
    SHAPES,
    VALUE,
    FrameTask,
    match_frame,
    refused_frame,
)
from headgate.tables.requests import check_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from headgate.runtime.targets import Group, Target


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
) -> DataFrame:
    """Say who gets each event: the columns `event_id` and `subscription_id`, a row a match.

    With `shape="arrays"` a row an event, also if it matches nothing: `event_id` and the array `matches`.

    `id` names the column of ids, and ids of events keep its type. `keep` names columns of the event that are
    wanted beside its matches. `source` is where an event enters a graph. Of RDF and XML `data` has the
    documents, `content_type` their formats, and `format` is that of documents that name none. `names` gives
    other names to columns of the result, such as `{"subscription_id": "alert"}`.

    Rows that are no events match nothing: `refused` lists them.

    >>> matched = match(events, "snapshot", id="event_uuid", keep=["price"])  # doctest: +SKIP
    """
    columns = EventColumns(id, source, data, content_type)
    return _Frame(events, snapshot, columns, format).matches(keep, shape, names, None)


def top(
    events: DataFrame,
    snapshot: str | PathLike[str],
    k: int = 20,
    mode: str = EXACT,
    *,
    factors: Mapping[str, float] | None = None,
    id: str = ID,  # noqa: A002 -- what people call it
    keep: Sequence[str] = (),
    shape: str = ROWS,
    source: str = SOURCE,
    data: str = DATA,
    content_type: str = CONTENT_TYPE,
    format: str | None = None,  # noqa: A002 -- as on the command line
    names: Mapping[str, str] | None = None,
) -> DataFrame:
    """Say who comes first: the best k of each event, with the columns `rank` and `value` besides.

    `mode` is "exact", where all clauses of a filter must hold, or "relaxed"; `factors` multiply the weights
    of attributes then. All else is as in `match`; an array has structs of the subscription, rank and value.

    >>> best = top(events, "snapshot", 20, "relaxed")  # doctest: +SKIP
    """
    columns = EventColumns(id, source, data, content_type)
    wanted = Top.of(k, mode, factors)
    return _Frame(events, snapshot, columns, format, wanted).matches(keep, shape, names, wanted)


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
) -> DataFrame:
    """List the rows that are no events: `event_id`, `reason`, and the `row` as JSON.

    With `exceeded` also filters that were too expensive for an event and left out of it; events are matched
    for that. The other arguments are as in `match`.

    >>> bad = refused(events, "snapshot", id="event_uuid")  # doctest: +SKIP
    """
    columns = EventColumns(id, source, data, content_type)
    return _Frame(events, snapshot, columns, format).refused(names, exceeded=exceeded)


class _Frame:
    """A DataFrame of events, and the snapshot that it meets."""

    def __init__(
        self,
        events: DataFrame,
        snapshot: str | PathLike[str],
        columns: EventColumns,
        form: str | None,
        top: Top | None = None,
    ) -> None:
        if not hasattr(events, "mapInArrow"):
            raise TableError(f"{WHAT} are {type(events).__name__}: give a DataFrame of Spark")
        self._events = events
        self._columns = columns
        self._target = open_target(os.fspath(snapshot), top=top)
        kind = kind_of(self._target.content)
        named = fold(columns.content_type) in map(fold, events.columns)
        # Columns are all records, or all documents.
        self._documents = kind.documents and (not kind.rows or named or form is not None)
        if form is not None and not kind.documents:
            raise TableError(f"format is {form!r}, and events of {kind.title} have none: leave it out")
        self._form = check_type(form, kind) if form is not None else None

    @property
    def _groups(self) -> tuple[Group, ...]:
        """Return the shards that a worker has in memory together."""
        return self._target.groups(worker_memory(self._events.sparkSession))

    @property
    def _id_type(self) -> DataType:
        return kind_of_id(self._events, find(self._events, self._columns.id, "the id"))

    def matches(
        self, keep: Sequence[str], shape: str, names: Mapping[str, str] | None, top: Top | None
    ) -> DataFrame:
        """Return matches of all groups of shards."""
        if shape not in SHAPES:
            raise TableError(f"shape is {shape!r}: use {' or '.join(map(repr, SHAPES))}")
        if isinstance(keep, str):
            raise TableError(f"keep is {keep!r}: give a list of names of columns")
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
        kept = [find(self._events, name, "what is kept") for name in keep]
        keyed = several and top is not None
        task = self._task(top)._replace(shape=shape, keyed=keyed)
        schema = self._schema(shape, kept, top, keyed=keyed)
        rows = packed(self._events, self._target, self._columns, kept, documents=self._documents)
        if keyed:
            rows = rows.withColumn(KEY, sf.monotonically_increasing_id())
        works = [partial(match_frame, task=task._replace(group=group)) for group in groups]
        found = _mapped(rows, works, schema)
        if keyed:
            assert top is not None
            found = _best(found, top.k)
        return _renamed(found, names)

    def refused(self, names: Mapping[str, str] | None, *, exceeded: bool) -> DataFrame:
        """Return rows that are no events."""
        task = self._task(None)._replace(exceeded=exceeded)
        rows = packed(
            self._events, self._target, self._columns, self._events.columns, documents=self._documents
        )
        fields = [(EVENT_ID, self._id_type), (REASON, StringType()), (ROW, StringType())]
        schema = StructType([StructField(name, kind) for name, kind in fields])
        # Others are asked for the filters that they leave out, if that is wanted.
        others = self._groups[1:] if exceeded else ()
        tasks = [task, *(task._replace(group=group, tells=False) for group in others)]
        works = [partial(refused_frame, task=each) for each in tasks]
        return _renamed(_mapped(rows, works, schema), names)

    def _task(self, top: Top | None) -> FrameTask:
        target: Target = self._target
        memory = worker_memory(self._events.sparkSession)
        return FrameTask(
            self._groups[0],
            target.content,
            self._documents,
            target.numbered,
            self._form,
            target.sources(memory),
            top,
        )

    def _schema(self, shape: str, kept: Sequence[str], top: Top | None, *, keyed: bool) -> StructType:
        """Return the columns of the result."""
        subscription: DataType = LongType() if self._target.numbered else StringType()
        told: list[tuple[str, DataType]] = [(SUBSCRIPTION_ID, subscription)]
        if top is not None:
            told += [(RANK, IntegerType()), (VALUE, DoubleType())]
        if shape == ARRAYS:
            each = subscription if top is None else StructType([StructField(*field) for field in told])
            told = [(MATCHES, ArrayType(each))]
        fields = [(EVENT_ID, self._id_type), *told]
        fields += [(name, self._events.schema[name].dataType) for name in kept]
        if keyed:
            fields.append((KEY, LongType()))
        names = [fold(name) for name, _ in fields]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise TableError(
                f"column {twice} would be there twice: rename it in the events, or do not keep it"
            )
        return StructType([StructField(name, kind) for name, kind in fields])


def _mapped(
    rows: DataFrame, works: Sequence[Callable[..., Iterator[pa.RecordBatch]]], schema: StructType
) -> DataFrame:
    """Have workers go through all rows once for each of some works. No shuffle."""
    return reduce(lambda one, more: one.union(more), [rows.mapInArrow(work, schema) for work in works])


def _best(found: DataFrame, k: int) -> DataFrame:
    """Take the best k of each event from what groups of shards found; equal values go by id."""
    best = Window.partitionBy(KEY).orderBy(sf.col(VALUE).desc(), sf.col(SUBSCRIPTION_ID))
    ranked = found.withColumn(RANK, sf.row_number().over(best)).where(sf.col(RANK) <= k)
    return ranked.drop(KEY)


def _renamed(found: DataFrame, names: Mapping[str, str] | None) -> DataFrame:
    for name in names or {}:
        if name not in found.columns:
            meant = likeliest(name, found.columns)
            hint = f"did you mean {meant!r}?" if meant else f"there are {', '.join(found.columns)}"
            raise TableError(f"names: the result has no column {name!r}: {hint}")
    given = names or {}
    return found.select(*(column(name).alias(given.get(name, name)) for name in found.columns))
