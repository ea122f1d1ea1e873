"""One run of the match job: how workers get the events, and what becomes of what they find.

Lines of JSON are judged and matched in one pass. Where all workers see the driver's files they write the
matches to files themselves; else they hand rows to Spark.
"""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.accumulators import AccumulatorParam
from pyspark.sql import Observation
from pyspark.sql import functions as sf

from headgate.contents.registry import kind_of
from headgate.core.omission import Omission
from headgate.errors import TableError
from headgate.records.index.index import EVENT_ID, SUBSCRIPTION_ID
from headgate.runtime.questions import NOT_BY_EVENT, SCORE
from headgate.spark.jobs.match.reading import read_table
from headgate.spark.jobs.match.worker import (
    CODECS,
    COUNT,
    FILE,
    FILE_DDL,
    KIND,
    Task,
    match_and_tell,
    match_rows,
    retype,
    write_matches,
)
from headgate.spark.session.memory import worker_memory
from headgate.spark.session.session import discard
from headgate.spark.tables.events import read_json_lines
from headgate.spark.tables.groups import best_of, mapped, with_key
from headgate.spark.tables.tables import write_table
from headgate.tables.event_rows import LINES, NUMBERS, REASON, ROW, TEXTS
from headgate.tables.places import Format, check_input, format_of, is_remote
from headgate.tables.results import Batch
from headgate.tables.writing import replacing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.accumulators import Accumulator
    from pyspark.sql import DataFrame, SparkSession

    from headgate.runtime.questions import Top
    from headgate.runtime.targets import Target
    from headgate.spark.tables.events import EventTable
    from headgate.spark.tables.groups import Work


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


class FoundMatches(NamedTuple):
    """What was found; the matches are written, or about to be."""

    id_type: str
    events: int
    matches: int
    rejected: int
    refused: DataFrame


class MatchRun:
    """One run: how workers get the events, and what becomes of what they find."""

    def __init__(
        self,
        session: SparkSession,
        target: Target,
        top: Top | None,
        folder: Path,
        results: int | None = None,
        *,
        counts: bool,
    ) -> None:
        self._session = session
        self._target = target
        self._top = top
        self._results = results
        self._folder = folder
        self._here = (session.sparkContext.master or "").startswith("local")
        self._memory = worker_memory(session)
        self._groups = target.groups(self._memory)
        if counts and top is not None and len(self._groups) > 1:
            raise TableError(
                f"{target.title} has shards that do not fit into one worker, and which subscriptions are the "
                "best of all is not known to those who count: leave out --stats, or --top"
            )
        if top is not None and top.column is not None and len(self._groups) > 1:
            raise TableError(NOT_BY_EVENT.format(target.title))
        self.met = session.sparkContext.accumulator(0)
        self.left_out = session.sparkContext.accumulator(dict[Omission, None](), _Gathered())
        self.statistics: Accumulator[dict[int, bytes]] | None = None
        if counts:
            self.statistics = session.sparkContext.accumulator(dict[int, bytes](), _Gathered())
        self.given: EventTable | None = None
        """Events that were judged before; None for lines of JSON, which workers judge when they match."""
        self.rows: DataFrame
        self._cached: DataFrame | None = None

    def forget(self) -> None:
        """Free what was kept in memory; the job is done."""
        if self.given is not None:
            self.given.judged.forget()
        if self._cached is not None:
            self._cached.unpersist()

    def read(self, events: str, content_type: str | None, *, texts: bool) -> None:
        """Make the events ready for workers; with `texts`, rows with texts that are not UTF-8 are refused."""
        documents = kind_of(self._target.content).documents
        if not documents and check_input(events) is Format.JSONL:
            self.rows = read_json_lines(self._session, events)
        else:
            sources = self._target.sources(self._memory)
            self.given = read_table(self._session, events, self._target, sources, content_type, texts=texts)
            self.rows = self.given.rows

    def _tasks(self) -> list[Task]:
        """Say what workers do; the first of the groups tells of what is no event."""
        given = self.given
        first = Task(
            self._groups[0],
            self._target.content,
            LINES if given is None else given.form,
            "" if given is None else given.judged.id_type,
            "long" if self._target.numbered else "string",
            sources=self._target.sources(self._memory) if given is None else None,
            mark=self._target.mark,
            tells=given is None,
            notes=str(self._folder) if self._here else None,
            top=self._top,
            results=self._results,
            keyed=self._top is not None and len(self._groups) > 1,
            met=self.met,
            left_out=self.left_out,
            statistics=self.statistics,
        )
        others = [first._replace(group=group, sources=None, tells=False) for group in self._groups[1:]]
        return [first, *others]

    @contextmanager
    def matched(self, output: str) -> Iterator[FoundMatches]:
        """Match, and write the matches; rows that were refused can be read inside the block."""
        tasks = self._tasks()
        if not self._here:
            yield self._handed(tasks, output)
            return
        codec = (self._session.conf.get("spark.sql.parquet.compression.codec") or "").lower()
        plain = format_of(output) is Format.PARQUET and not is_remote(output) and codec in CODECS
        if not plain or tasks[0].keyed:
            parts = self._folder / "parts"
            parts.mkdir()
            written = self._written(tasks, parts, codec if codec in CODECS else "snappy")
            yield written.found._replace(matches=self._stored(written, tasks[0], output))
            return
        with replacing(output, discard) as folder:
            # The name is one that readers of tables pass over, too. A task that Spark gave up and that
            # writes on does so into a folder that is gone.
            parts = folder / "_temporary"
            parts.mkdir(parents=True)
            written = self._written(tasks, parts, codec)
            for file in written.files:
                file.rename(folder / file.name)
            if not written.files:
                # Else the table would have no columns.
                written.task.writer(folder / f"part-00000.{codec}.parquet").close()
            yield written.found
            shutil.rmtree(parts)
            (folder / "_SUCCESS").touch()

    def _written(self, tasks: Sequence[Task], parts: Path, codec: str) -> _Written:
        """Have the workers write files. No shuffle. Only those of tasks that came to their end count."""
        tasks = [task._replace(parts=str(parts), codec=codec) for task in tasks]
        done = self._mapped(write_matches, tasks, FILE_DDL).collect()
        matches = [row for row in done if row[KIND] in {"long", "string"}]
        count = sum(row[COUNT] for row in matches)
        found = None if self.given is None else _of_given(self.given)
        if found is None:
            numbers, texts = (sum(row[name] or 0 for row in done) for name in (NUMBERS, TEXTS))
            refused = [row for row in done if row[KIND] == REASON]
            frame = self._parquet([parts / row[FILE] for row in refused], f"{ROW} string, {REASON} string")
            id_type = "string" if texts else "long"
            found = FoundMatches(id_type, numbers + texts, 0, sum(row[COUNT] for row in refused), frame)
        task = tasks[0]._replace(event_type=found.id_type)
        files = [parts / row[FILE] for row in matches]
        for row, file in zip(matches, files, strict=True):
            if row[KIND] != found.id_type:
                retype(file, task)
        return _Written(task, files, found._replace(matches=count))

    def _stored(self, written: _Written, task: Task, output: str) -> int:
        """Have Spark write what workers have written elsewhere: of several groups the best of all."""
        frame = self._parquet(written.files, written.task.ddl)
        if task.keyed:
            assert self._top is not None
            frame = best_of(frame, self._top.k, SCORE)
        return _counted(frame, output)

    def _parquet(self, files: Sequence[Path], ddl: str) -> DataFrame:
        if not files:
            return self._session.createDataFrame([], ddl)
        return self._session.read.schema(ddl).parquet(*(f"file://{file}" for file in files))

    def _handed(self, tasks: Sequence[Task], output: str) -> FoundMatches:
        """Have the workers hand rows to Spark."""
        task, work = tasks[0], match_and_tell if tasks[0].tells else match_rows
        frame = self._mapped(work, tasks, task.told_ddl if task.tells else task.ddl)
        if self.given is not None:
            return self._merged(frame, _of_given(self.given), output)
        # Kept, because it is asked three times, and lines are to be parsed once.
        frame = self._cached = frame.persist()
        sums = [sf.sum(name).alias(name) for name in (NUMBERS, TEXTS)]
        totals = frame.agg(*sums, sf.count(REASON).alias(REASON)).collect()[0]
        numbers, texts = totals[NUMBERS] or 0, totals[TEXTS] or 0
        id_type = "string" if texts else "long"
        refused = frame.where(sf.col(REASON).isNotNull()).select(ROW, REASON)
        matches = frame.where(sf.col(SUBSCRIPTION_ID).isNotNull())
        matches = matches.withColumn(EVENT_ID, sf.col(EVENT_ID).cast(id_type)).select(*task.columns)
        found = FoundMatches(id_type, numbers + texts, 0, totals[REASON], refused)
        return self._merged(matches, found, output)

    def _merged(self, frame: DataFrame, found: FoundMatches, output: str) -> FoundMatches:
        if self._top is not None and len(self._groups) > 1:
            frame = best_of(frame, self._top.k, SCORE)
        return found._replace(matches=_counted(frame, output))

    def _mapped(self, work: Work, tasks: Sequence[Task], ddl: str) -> DataFrame:
        """Have workers go through all events once for each group of shards."""
        rows = with_key(self.rows) if tasks[0].keyed else self.rows
        return mapped(rows, [partial(work, task=task) for task in tasks], ddl)


class _Written(NamedTuple):
    """Files of matches, with ids of one type."""

    task: Task
    files: list[Path]
    found: FoundMatches


def _of_given(given: EventTable) -> FoundMatches:
    judged = given.judged
    return FoundMatches(judged.id_type, judged.count, 0, judged.rejected, judged.refused)


def _counted(frame: DataFrame, output: str) -> int:
    """Write a table, and count its rows on the way."""
    counting = Observation()
    write_table(frame.observe(counting, sf.count(sf.lit(1)).alias(COUNT)), output)
    return int(counting.get[COUNT])


def read_notes(directory: Path) -> tuple[Batch, ...]:
    """Read the measurements that tasks have left."""
    found: list[Batch] = []
    for file in sorted(directory.glob("task-*.json")):
        number = int(file.stem.removeprefix("task-"))
        for start, seconds, events, spent in json.loads(file.read_text("utf-8")):
            found.append(Batch(number, start, seconds, events, tuple(spent)))
    return tuple(sorted(found, key=lambda batch: batch.start))
