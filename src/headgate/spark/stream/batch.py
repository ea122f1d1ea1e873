"""The rows of a batch as Spark gives them."""

from __future__ import annotations

import datetime as dt
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext

from headgate.core import machine
from headgate.spark.session.session import spark_errors
from headgate.stream.columns import DDL
from headgate.stream.rows import SUMMARY_DDL
from headgate.stream.worker import match_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from headgate.stream.worker import Task


class SparkRows:
    """The rows of a batch, matched by tasks."""

    def __init__(self, rows: DataFrame) -> None:
        self._rows = rows

    def match(self, task: Task, files: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Match them in parallel."""
        rows = with_empty(self._rows, files) if files else self._rows
        with spark_errors():
            found = rows.mapInArrow(partial(_match, task=task), SUMMARY_DDL).collect()
        return [row.asDict() for row in found]

    def staged(self, files: Sequence[Path], ddl: str) -> DataFrame:
        """Return the matches in staged files, for a broker."""
        session = self._rows.sparkSession
        if files:
            return session.read.parquet(*(f"file://{file}" for file in files))
        return session.createDataFrame([], ddl)


def with_empty(rows: DataFrame, paths: Iterable[str]) -> DataFrame:
    """Add the files of a batch without a byte: Spark leaves them out, and workers say what each is."""
    empty = []
    for path in paths:
        try:
            about = Path(path).stat()
        except FileNotFoundError:
            # As Spark does with what is gone.
            continue
        if not about.st_size:
            empty.append((None, None, path, dt.datetime.fromtimestamp(about.st_mtime, dt.UTC)))
    return rows.union(rows.sparkSession.createDataFrame(empty, DDL)) if empty else rows


def _match(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Do the part that a task of Spark has."""
    context = TaskContext.get()
    assert context is not None
    try:
        yield from match_part(batches, task, context.partitionId(), context.taskAttemptId())
    except OSError as error:
        # The driver gets the text of it, and knows errors of ours there.
        raise machine.disk_error(error) from error
