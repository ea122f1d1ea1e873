"""Match DataFrames of events: DataFrame in, DataFrame out.

Nothing runs until the result is asked for, nothing of the session is changed, and no answer depends on its
settings. The same functions take streaming DataFrames, and those of Spark Connect. Answers can be written to
Parquet by the workers that found them, as long as nothing was done to them since.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import LongType, StringType

from headgate.core.event import CONTENT_TYPE, DATA, ID, SOURCE
from headgate.core.ranks import EXACT
from headgate.core.values import fold
from headgate.engine.question import Question, Top
from headgate.errors import TableError
from headgate.graph.path_cost import DECAY, MINUS, PathCost
from headgate.runtime.targets import Sources, open_target
from headgate.spark.frames.columns import EventColumns, GivenEvents, check_frame, renamed
from headgate.spark.session.settings import worker_memory
from headgate.spark.tables.groups import Grouped
from headgate.spark.tables.parts import PartsTask, codec_of, parts_of, sees_files, write_parts
from headgate.spark.tables.rows import mapped
from headgate.tables.event_rows import KEY, REASON, ROW
from headgate.tables.frames.rows import VALUE, answer_types, both_frame, match_frame
from headgate.tables.frames.task import ARRAYS, ROWS, SHAPES
from headgate.tables.places import is_remote, local

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headgate.jobs.runner import Work
    from headgate.runtime.snapshots import Version
    from headgate.tables.frames.task import FrameTask


ERROR, OVERWRITE = MODES = ("error", "overwrite")
"""What becomes of a table that is there: it is kept, and refused; or it is replaced."""


class Answered(NamedTuple):
    """How an answer is found: what workers do with which rows."""

    rows: DataFrame
    works: Sequence[Work]
    columns: tuple[str, ...]
    """What workers call the columns of the answer, in their order."""


_ANSWERS: WeakKeyDictionary[DataFrame, Answered] = WeakKeyDictionary()


def answered(frame: DataFrame, how: Answered) -> DataFrame:
    """Note how an answer is found; returns it."""
    _ANSWERS[frame] = how
    return frame


def write_parquet(found: DataFrame, path: str | PathLike[str], *, mode: str = ERROR) -> None:
    """Write what `match` and `top` return to Parquet, as `found.write.parquet(path)` does.

    The workers write it, which takes less CPU. Where they may not see this machine's files, or if something
    was done to the DataFrame since, Spark writes it. A table that is there is an error, unless `mode` is
    "overwrite"; then it stays as it is until the new one is whole.

    >>> write_parquet(match(events, "snapshot"), "matches.parquet")  # doctest: +SKIP
    """
    check_frame(found, "matches")
    target = os.fspath(path)
    if mode not in MODES:
        raise TableError(f"mode is {mode!r}: use {' or '.join(map(repr, MODES))}")
    if found.isStreaming:
        raise TableError("this DataFrame is a stream: use its writeStream")
    how = _ANSWERS.get(found)
    codec = codec_of(found.sparkSession)
    if how is None or codec is None or is_remote(target) or not sees_files(found.sparkSession):
        found.write.mode(mode).parquet(target)
        return
    if mode == ERROR and local(target).exists():
        raise TableError(f"{target} is there already: remove it, or give mode='overwrite'")
    called = dict(zip(how.columns, found.columns, strict=True))
    with parts_of(target) as (folder, files):
        files += [
            part.file for part in write_parts(how.rows, how.works, PartsTask(str(folder), codec, called))
        ]
        if not files:
            # Else the table would have no columns.
            none = found.sparkSession.createDataFrame([], found.schema)
            none.write.mode("append").parquet(f"file://{folder.parent}")


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
    frame = EventFrame.of(events, columns, open_target(os.fspath(snapshot)), format)
    return frame.matches(keep, shape, names, Question.of(results=results))


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
    frame = EventFrame.of(events, columns, open_target(os.fspath(snapshot), top=wanted), format)
    return frame.matches(keep, shape, names, Question.of(wanted, results))


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
    frame = EventFrame.of(events, columns, open_target(os.fspath(snapshot)), format)
    return frame.refusals(names, Question.of(results=results), exceeded=exceeded)


class EventFrame(GivenEvents):
    """A DataFrame of events, and the snapshot that it meets."""

    def matches(
        self, keep: Sequence[str], shape: str, names: Mapping[str, str] | None, question: Question
    ) -> DataFrame:
        """Return matches of all groups of shards."""
        kept = self._wanted(keep, shape)
        grouped = self._grouped(question, shape=shape)
        task, *others = grouped.tasks
        if others and shape == ARRAYS:
            raise TableError(
                f"{self.target.title} has shards that do not fit into one worker, which are asked one after "
                "another: use shape='rows', and group them"
            )
        if grouped.keyed and self.table.isStreaming:
            raise TableError(
                f"{self.target.title} has shards that do not fit into one worker, and the best of all "
                "cannot be found in a stream: compile fewer shards, or give workers more memory"
            )
        schema = self._answers(task, kept)
        if grouped.keyed:
            schema = schema.add(KEY, LongType())
        rows = grouped.rows(self.rows(kept))
        works = [partial(match_frame, task=each) for each in grouped.tasks]
        matches = grouped.best(mapped(rows, works, schema), VALUE)
        if grouped.keyed:
            return renamed(matches, names)
        return answered(renamed(matches, names), Answered(rows, works, tuple(matches.columns)))

    def both(
        self, version: Version, keep: Sequence[str], shape: str, question: Question, *, numbered: bool
    ) -> DataFrame:
        """Return matches at a version of live subscriptions, and with them the rows that are no events.

        Those have a reason, and matches have none.
        """
        kept = self._wanted(keep, shape)
        task = self.task(version, Sources((version,)) if self.target.graph else None, question)
        task = task._replace(numbered=numbered, shape=shape, keep=tuple(kept))
        schema = self._answers(task, kept)
        for name in (REASON, ROW):
            if name in map(fold, kept):
                raise TableError(f"column {name} tells of refused rows: rename it in the events to keep it")
            schema = schema.add(name, StringType())
        rows = self.rows(self.table.columns, live=True)
        return rows.mapInArrow(partial(both_frame, task=task), schema)

    def _wanted(self, keep: Sequence[str], shape: str) -> list[str]:
        """Check what is wanted of events, and how; returns columns as the frame has them."""
        if shape not in SHAPES:
            raise TableError(f"shape is {shape!r}: use {' or '.join(map(repr, SHAPES))}")
        return self.kept(keep)

    def refusals(self, names: Mapping[str, str] | None, question: Question, *, exceeded: bool) -> DataFrame:
        """Return rows that are no events."""
        tasks = self._grouped(question, exceeded=exceeded).tasks
        # Others are asked for the filters that they leave out, if that is wanted.
        return renamed(self.refused(tasks if exceeded else tasks[:1]), names)

    def _grouped(self, question: Question, **more: Any) -> Grouped:
        memory = worker_memory(self.table.sparkSession)
        return Grouped.of(self.target, memory, self.form, question, content_type=self.content_type, **more)

    def _answers(self, task: FrameTask, kept: Sequence[str]) -> StructType:
        """Return the columns of the result."""
        types = answer_types(task).items()
        return self.schema([(name, from_arrow_type(kind)) for name, kind in types], kept)
