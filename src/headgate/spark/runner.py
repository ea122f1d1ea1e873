"""Jobs on a session of Spark."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from headgate.core.event import ID
from headgate.spark.session.memory import building_memory, worker_memory
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.session.settings import borrowed
from headgate.spark.tables.elsewhere import changing_together
from headgate.spark.tables.events import judge, read_files, read_rows
from headgate.spark.tables.given import FileTable
from headgate.spark.tables.rows import SparkRows
from headgate.spark.tables.tables import to_frame
from headgate.tables.places import check_input

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from pyspark.core.broadcast import Broadcast
    from pyspark.sql import SparkSession

    from headgate.contents.kind import Kind
    from headgate.jobs.events import EventTable
    from headgate.jobs.match import MatchTask
    from headgate.runtime.progress import Timing
    from headgate.runtime.targets import Sources, Target
    from headgate.spark.jobs.match import SparkMatching
    from headgate.tables.change_set import ChangeSet
    from headgate.tables.places import Format

_Value = TypeVar("_Value")
TASK_NUMBERS = 10_000
"""Numbers of a task, at least."""


@dataclass(frozen=True)
class SparkRunner:
    """A session of Spark, and its workers."""

    session: SparkSession
    quiet: bool = False

    @property
    def apart(self) -> bool:
        """Tell whether workers are not in this process's Spark."""
        return not (self.session.sparkContext.master or "").startswith("local")

    @property
    def parts(self) -> int:
        """Return into how many parts work is cut."""
        return 4 * self.session.sparkContext.defaultParallelism

    @property
    def memory(self) -> int:
        """Return how many bytes of snapshots a worker should have in memory at once."""
        return worker_memory(self.session)

    @property
    def building_memory(self) -> int:
        """Return how many bytes a worker may take to build a shard."""
        return building_memory(self.session)

    @contextmanager
    def working(self) -> Iterator[SparkRunner]:
        """Yield a runner on a session that has the settings which answers depend on."""
        with borrowed(self.session) as own, spark_errors():
            yield replace(self, session=own)

    def step(
        self, title: str, *, rows: int | None = None, noun: str = "rows"
    ) -> AbstractContextManager[Timing]:
        """Show the tasks of Spark while the body runs."""
        return watch(self.session, title, rows=rows, noun=noun, quiet=self.quiet)

    def table(self, path: str) -> FileTable:
        """Return a table in files."""
        return FileTable(self.session, path)

    def rows(self, table: pa.Table) -> SparkRows:
        """Return the rows of a table in memory."""
        return SparkRows(to_frame(self.session, table))

    def numbers(self, count: int, parts: int | None = None) -> SparkRows:
        """Return the numbers from 0 on."""
        usual = min(self.parts, count // TASK_NUMBERS)
        return SparkRows(self.session.range(0, count, 1, parts or max(1, usual)).toDF(ID))

    @contextmanager
    def shared(self, value: _Value) -> Iterator[Broadcast[_Value]]:
        """Send a value to every worker once."""
        sent = self.session.sparkContext.broadcast(value)
        try:
            yield sent
        finally:
            sent.destroy()

    def changing(self, paths: Iterable[str | None]) -> AbstractContextManager[ChangeSet]:
        """Have tables that are written take their places together after the block."""
        return changing_together(self.session, paths)

    def matching(self, asked: MatchTask) -> AbstractContextManager[SparkMatching]:
        """Yield what the match job does here."""
        from headgate.spark.jobs.match import matching

        return matching(self, asked)

    def records(self, path: str, mark: str) -> EventTable[SparkRows]:
        """Judge a table of records."""
        return judge(self.session, path, check_input(path), texts=None, mark=mark)

    def documents(self, path: str, kind: Kind, form: Format | None) -> SparkRows:
        """Read documents as they came. Shuffles a table that lies in too few parts."""
        read = read_files(self.session, path, kind) if form is None else read_rows(self.session, path)
        return SparkRows(read)

    def past(
        self, path: str, target: Target, sources: Sources | None, content_type: str | None
    ) -> EventTable[SparkRows]:
        """Judge a table of events, or a folder of documents."""
        from headgate.spark.jobs.events import read_table

        return read_table(self, path, target, sources, content_type)
