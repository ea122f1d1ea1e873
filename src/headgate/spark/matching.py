"""What Spark does of the match job: how workers get the events, and what becomes of what they find.

Lines of JSON are judged and matched in one pass. Where all workers see the driver's files they write the
matches to files themselves; else they hand rows to Spark.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.contents.protocol import SCORE
from headgate.contents.registry import kind_of
from headgate.errors import TableError
from headgate.jobs.events import read_events
from headgate.jobs.match import FoundMatches, columns_of, matches_schema
from headgate.spark.tables.events import read_json_lines
from headgate.spark.tables.groups import Grouped
from headgate.spark.tables.parts import (
    COUNT,
    PartsTask,
    codec_of,
    open_part,
    parts_of,
    retype,
    sees_files,
    write_parts,
)
from headgate.spark.tables.rows import SparkRows, mapped
from headgate.spark.tables.tables import write_table
from headgate.tables.event_rows import LINES, REASON, ROW
from headgate.tables.frames.report import Reporter
from headgate.tables.frames.rows import both_frame
from headgate.tables.places import Format, check_input, format_of, is_remote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.accumulators import Accumulator

    from headgate.jobs.events import EventTable
    from headgate.jobs.match import MatchTask
    from headgate.spark.runner import SparkRunner
    from headgate.spark.tables.parts import Part
    from headgate.tables.frames.report import Report
    from headgate.tables.frames.task import FrameTask

    Reports = dict[tuple[int, int], Report]
    """By group of shards and task, however often that is tried."""

_REFUSED = pa.schema({ROW: pa.string(), REASON: pa.string()})


class _Gathered(AccumulatorParam[dict[Any, Any]]):
    """Gathers what workers tell."""

    def zero(self, value: dict[Any, Any]) -> dict[Any, Any]:
        """Begin with nothing."""
        del value
        return {}

    def addInPlace(  # noqa: N802 -- Spark's name
        self, value1: dict[Any, Any], value2: dict[Any, Any]
    ) -> dict[Any, Any]:
        """Put two together."""
        return value1 | value2


@contextmanager
def matching(runner: SparkRunner, asked: MatchTask) -> Iterator[SparkMatching]:
    """Yield a run of the match job; afterwards what it kept in memory is freed."""
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
        run = SparkMatching(runner, asked, Path(folder))
        try:
            yield run
        finally:
            run.forget()


class SparkMatching:
    """One run."""

    def __init__(self, runner: SparkRunner, asked: MatchTask, folder: Path) -> None:
        self._runner = runner
        self._session = session = runner.session
        self._asked = asked
        self._folder = folder
        target = asked.target
        self._grouped = Grouped.of(target, runner.memory, LINES, asked.question)
        if asked.counts and self._grouped.keyed:
            raise TableError(
                f"{target.title} has shards that do not fit into one worker, and which subscriptions are the "
                "best of all is not known to those who count: leave out --stats, or --top"
            )
        self._told: Accumulator[Reports] = session.sparkContext.accumulator({}, _Gathered())
        self.given: EventTable[SparkRows] | None = None
        """Events that were judged before; None for lines of JSON, which workers judge when they match."""
        self._id_type = ""
        self._rows: DataFrame
        self.refused: SparkRows
        """The rows that are no events."""
        self._cached: DataFrame | None = None

    def forget(self) -> None:
        """Free what was kept in memory; the job is done."""
        if self.given is not None:
            self.given.forget()
        if self._cached is not None:
            self._cached.unpersist()

    def read(self, events: str) -> None:
        """Make the events ready for workers."""
        self._events = events
        if not kind_of(self._asked.target.content).documents and check_input(events) is Format.JSONL:
            self._rows = read_json_lines(self._session, events)
        else:
            self._read(texts=False)

    def _read(self, *, texts: bool) -> None:
        target = self._asked.target
        if self.given is not None:
            self.given.forget()
        sources = self._grouped.tasks[0].sources
        self.given = read_events(
            self._runner, self._events, target, sources, self._asked.content_type, texts=texts
        )
        self._rows = self.given.rows.frame

    def match(self, output: str) -> FoundMatches:
        """Match, and write the matches."""
        form = LINES if self.given is None else self.given.form
        grouped = self._grouped
        tasks = [each._replace(form=form) for each in grouped.tasks]
        rows = grouped.rows(self._rows)
        works = [
            partial(_reported, task=task, group=group, told=self._told, counts=self._asked.counts)
            for group, task in enumerate(tasks)
        ]
        codec = codec_of(self._session)
        if not sees_files(self._session):
            count = self._handed(rows, works, tasks[0], output)
        elif format_of(output) is not Format.PARQUET or is_remote(output) or codec is None or grouped.keyed:
            parts = self._folder / "parts"
            parts.mkdir()
            files = self._written(rows, works, tasks[0], parts, codec or "snappy")
            schema = matches_schema(tasks[0], self._id_type)
            count = self._stored(self._parquet(files, schema), output)
        else:
            with parts_of(output) as (folder, files):
                files.extend(self._written(rows, works, tasks[0], folder, codec))
                if not files:
                    # Else the table would have no columns.
                    files.append(folder / f"part-00000.{codec}.parquet")
                    open_part(files[0], matches_schema(tasks[0], self._id_type), codec).close()
                count = self._count
        return self._found(count)

    def _found(self, matches: int) -> FoundMatches:
        reports = [report for _, report in sorted(self._told.value.items())]
        if self.given is None:
            events, refused = (sum(getattr(each, name) for each in reports) for name in ("events", "refused"))
            return FoundMatches(events, matches, refused, reports)
        if any(report.refused for report in reports):
            # It is rare, and to say which rows they are takes another pass over the table.
            self._read(texts=True)
        self.refused = self.given.refused
        return FoundMatches(self.given.count, matches, self.given.rejected, reports)

    def _settled(self) -> None:
        """Learn of which type the ids of all events are, once workers have told it."""
        texts = any(report.texts for report in self._told.value.values())
        self._id_type = "string" if texts else "long"
        if self.given is not None:
            self._id_type = self.given.id_type

    def _written(
        self, rows: DataFrame, works: Sequence[Any], task: FrameTask, folder: Path, codec: str
    ) -> list[Path]:
        """Have workers write files; returns those of matches, with ids of one type."""
        done = write_parts(rows, works, PartsTask(str(folder), codec, columns_of(task)))
        self._settled()
        schema = matches_schema(task, self._id_type)
        refused: list[Part] = [part for part in done if part.kind == REASON]
        matches = [part for part in done if part.kind != REASON]
        aside = self._folder / "refused"
        aside.mkdir()
        for part in refused:
            shutil.move(part.file, aside / part.file.name)
        self.refused = SparkRows(self._parquet([aside / part.file.name for part in refused], _REFUSED))
        for part in matches:
            if part.kind != self._id_type:
                retype(part.file, schema, codec)
        self._count = sum(part.rows for part in matches)
        return [part.file for part in matches]

    def _parquet(self, files: Sequence[Path], schema: pa.Schema) -> DataFrame:
        columns = from_arrow_schema(schema)
        if not files:
            return self._session.createDataFrame([], columns)
        return self._session.read.schema(columns).parquet(*(f"file://{file}" for file in files))

    def _handed(self, rows: DataFrame, works: Sequence[Any], task: FrameTask, output: str) -> int:
        """Have the workers hand rows to Spark."""
        names = columns_of(task)
        lines = self.given is None
        schema = matches_schema(task, "string" if lines else self.given.id_type if self.given else "")
        whole = pa.schema([*schema, *_REFUSED])
        handing = [partial(_hand, work=work, called=names, schema=whole) for work in works]
        frame = mapped(rows, handing, from_arrow_schema(whole))
        if lines:
            # Kept, because it is asked several times, and lines are to be parsed once.
            frame = self._cached = frame.persist()
            self.refused = SparkRows(frame.where(sf.col(REASON).isNotNull()).select(ROW, REASON))
            self.refused.count()
        self._settled()
        matches = frame.where(sf.col(REASON).isNull()).select(*schema.names)
        first = schema.names[0]
        return self._stored(matches.withColumn(first, sf.col(first).cast(_DDL[self._id_type])), output)

    def _stored(self, frame: DataFrame, output: str) -> int:
        """Have Spark write matches, and count them on the way: of several groups the best of all."""
        counting = Observation()
        write_table(
            self._grouped.best(frame, SCORE).observe(counting, sf.count(sf.lit(1)).alias(COUNT)), output
        )
        return int(counting.get[COUNT])


_DDL = {"long": "bigint", "string": "string"}


def _reported(
    batches: Iterable[pa.RecordBatch], task: FrameTask, group: int, told: Accumulator[Reports], counts: bool
) -> Iterator[pa.RecordBatch]:
    """Match events, list rows that are none, and tell the driver what was done."""
    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    report = Reporter(number, tells=task.tells, counts=counts)
    yield from both_frame(batches, task, report)
    told.add({(group, number): report.done()})


def _hand(
    batches: Iterable[pa.RecordBatch], work: Any, called: dict[str, str], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Give answers the columns that Spark is told of."""
    names = {**called, ROW: ROW, REASON: REASON}
    for answers in work(batches):
        renamed = answers.select(list(names)).rename_columns(list(names.values()))
        yield renamed.select(schema.names).cast(schema)
