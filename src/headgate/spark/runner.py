"""Jobs on a session of Spark."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from headgate.core.event import ID
from headgate.errors import TableError
from headgate.spark.frames.columns import EventColumns, packed
from headgate.spark.session.progress import watch
from headgate.spark.session.session import discard, spark_errors
from headgate.spark.session.settings import borrowed, building_memory, worker_memory
from headgate.spark.tables.comparing import check_types
from headgate.spark.tables.events import judge, read_files, read_rows
from headgate.spark.tables.given import FileTable
from headgate.spark.tables.rows import SparkRows
from headgate.spark.tables.tables import to_frame
from headgate.tables.change_set import changing
from headgate.tables.event_rows import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from pyspark.core.broadcast import Broadcast
    from pyspark.sql import SparkSession

    from headgate.contents.kind import Kind
    from headgate.jobs.events import EventTable, JudgeTask
    from headgate.jobs.match import MatchTask
    from headgate.runtime.progress import Timing
    from headgate.runtime.targets import Target
    from headgate.spark.matching import SparkMatching
    from headgate.tables.change_set import ChangeSet
    from headgate.tables.places import Format


_JVM, _JAVA_CONTEXT = "_jvm", "_jsc"


class HadoopFiles:
    """The file systems that Spark can reach.

    To rename is one step in HDFS. In most object stores it is a copy, and readers may find it half done.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def staged(self, path: str) -> str:
        """Name a place beside a table, which readers of tables pass over."""
        above, _, name = path.rstrip("/").rpartition("/")
        staged = f"{above}/_{os.getpid()}.{name}"
        self.discard(staged)
        return staged

    def swap(self, staged: str, path: str) -> None:
        """Have a table and what was written beside it change places; what is not there leaves no trace."""
        files, one = self._open(staged)
        _, other = self._open(path)
        _, between = self._open(f"{staged}.old")
        existed = files.exists(other)
        if existed:
            _rename(files, other, between)
        if files.exists(one):
            _rename(files, one, other)
        if existed:
            _rename(files, between, one)

    def discard(self, staged: str) -> None:
        """Remove what is there, if anything is."""
        files, path = self._open(staged)
        files.delete(path, True)

    def _open(self, path: str) -> tuple[Any, Any]:
        context = self._session.sparkContext
        hadoop_path = getattr(context, _JVM).org.apache.hadoop.fs.Path(path)
        return hadoop_path.getFileSystem(getattr(context, _JAVA_CONTEXT).hadoopConfiguration()), hadoop_path


def _rename(files: Any, one: Any, other: Any) -> None:
    if not files.rename(one, other):
        raise TableError(f"{one.toString()} cannot be renamed to {other.toString()}")


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
        """Have tables that are written take their places together after the block, here and elsewhere."""
        return changing(paths, discard, HadoopFiles(self.session))

    def matching(self, asked: MatchTask) -> AbstractContextManager[SparkMatching]:
        """Yield what the match job does here."""
        from headgate.spark.matching import matching

        return matching(self, asked)

    def documents(self, path: str, kind: Kind, form: Format | None) -> SparkRows:
        """Read documents as they came. Shuffles a table that lies in too few parts."""
        read = read_files(self.session, path, kind) if form is None else read_rows(self.session, path)
        return SparkRows(read)

    def judged(self, asked: JudgeTask) -> EventTable[SparkRows]:
        """Tell the events of a table with columns from rows that are none."""
        return judge(self.session, asked)

    def packed(self, rows: SparkRows, target: Target, title: str) -> tuple[SparkRows, tuple[str, ...]]:
        """Return what workers get of events in columns, and the attributes that these lack."""
        unknown = check_types(rows.frame, title, target)
        made = packed(rows.frame, target, EventColumns(), (), form=COLUMNS, title=title)
        return SparkRows(made), unknown
