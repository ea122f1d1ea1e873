"""The rows of a batch as Spark gives them."""

from __future__ import annotations

import datetime as dt
import pickle
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from headgate.core import machine
from headgate.spark.session.session import spark_errors
from headgate.spark.tables.rows import mapped
from headgate.stream.sources.logs import DDL
from headgate.stream.worker import match_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from headgate.stream.rows import PartReport
    from headgate.stream.worker import PartTask


def match_rows(task: PartTask, files: Sequence[str], rows: DataFrame) -> list[PartReport]:
    """Match them in parallel."""
    rows = with_empty(rows, files) if files else rows
    with spark_errors():
        reports = mapped(rows, [partial(_match, task=task)], "report binary").collect()
    return [pickle.loads(row.report) for row in reports]


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


def _match(batches: Iterable[pa.RecordBatch], task: PartTask) -> Iterator[pa.RecordBatch]:
    """Do the part that a task of Spark has."""
    context = TaskContext.get()
    assert context is not None
    try:
        report = match_part(batches, task, context.partitionId(), context.taskAttemptId())
    except OSError as error:
        # The driver gets the text of it, and knows errors of ours there.
        raise machine.disk_error(error) from error
    yield pa.RecordBatch.from_pydict({"report": pa.array([pickle.dumps(report)], pa.binary())})
