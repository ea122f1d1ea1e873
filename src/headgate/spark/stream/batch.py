"""The rows of a batch as Spark gives them."""

from __future__ import annotations

import datetime as dt
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.core import machine
from headgate.spark.session.session import spark_errors
from headgate.stream.rows import SUMMARY
from headgate.stream.sources.columns import DDL
from headgate.stream.worker import match_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from headgate.stream.worker import Task


def match_rows(task: Task, files: Sequence[str], rows: DataFrame) -> Sequence[Mapping[str, Any]]:
    """Match them in parallel."""
    rows = with_empty(rows, files) if files else rows
    with spark_errors():
        found = rows.mapInArrow(partial(_match, task=task), from_arrow_schema(SUMMARY)).collect()
    return [row.asDict() for row in found]


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
