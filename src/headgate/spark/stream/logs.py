"""Logs of events for Spark: a data source in Python, for tables and for streams.

Offsets are made on the driver, spans of positions read by tasks. Spark's checkpoint alone says what was done.
"""

from __future__ import annotations

import uuid
from contextlib import closing
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from headgate.core.machine import cores
from headgate.stream.sources.logs import DDL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headgate.stream.sources.logs import End, Log, Span

    Opening = Callable[[], Log]


def read_log(session: SparkSession, opening: Opening) -> DataFrame:
    """Read a log as a source of `headgate stream`: `opening` opens it, in any process.

    What it holds is part of the source, and no option: options stand in plans, and it may hold a password.
    """
    # Spark looks for sources of a name in the session that is active, which may be another one.
    name = f"headgate-{uuid.uuid4().hex}"
    attributes = {"opening": staticmethod(opening), "called": name}
    session.dataSource.register(type("Lines", (LogSource,), attributes))
    return session.readStream.format(name).load()


class LogSource(DataSource):
    """What Spark knows the source of a stream by."""

    opening: ClassVar[Opening]
    called: ClassVar[str]
    columns: ClassVar[str] = DDL

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return cls.called

    def schema(self) -> str:
        """Return the columns, by default those that every source of a stream has."""
        return self.columns

    def streamReader(self, schema: StructType) -> LogStream:  # noqa: N802
        """Return what reads events as they come."""
        return LogStream(self.opens(schema))

    def opens(self, schema: StructType) -> Opening:  # noqa: ARG002
        """Return what opens the log, in any process; `schema` is what a query wants its columns to be."""
        return type(self).opening


class LogTable(DataSourceReader):
    """All that there is when the query is planned."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def partitions(self) -> Sequence[InputPartition]:
        """Cut what there is into spans."""
        with closing(self._opening()) as log:
            begin = log.begin()
            return parts(log, begin, log.end(begin, None))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one span."""
        return read_part(self._opening, partition)


class LogStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Events as they come: offsets on the driver, events on the workers."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._log: Log | None = None
        self._until: End | None = None

    def __getstate__(self) -> dict[str, object]:
        """Leave the connection behind when Spark sends the reader to a worker."""
        return {**self.__dict__, "_log": None}

    def initialOffset(self) -> End:  # noqa: N802
        """Begin where the settings say."""
        return self._open().begin()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Bound the batches."""
        return ReadMaxRows(self._open().max_rows)

    def latestOffset(self, start: End, limit: ReadLimit) -> End:  # noqa: N802
        """Say how far the next batch goes."""
        most: int | None = limit.max_rows if isinstance(limit, ReadMaxRows) else self._open().max_rows
        if isinstance(limit, ReadAllAvailable):
            most = None
        return self._open().end(start, most, self._until)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember the end of now, for a query that ends there."""
        self._until = self._open().now()

    def reportLatestOffset(self) -> End | None:  # noqa: N802
        """Say where the log ends, for reports of how far behind a query is."""
        return self._open().now()

    def partitions(self, start: End, end: End) -> Sequence[InputPartition]:
        """Cut a batch into spans."""
        return parts(self._open(), start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one span."""
        return read_part(self._opening, partition)

    def stop(self) -> None:
        """Hang up."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _open(self) -> Log:
        if self._log is None:
            self._log = self._opening()
        return self._log


def parts(log: Log, start: End, end: End) -> list[InputPartition]:
    """Cut what lies between two ends for tasks."""
    return [InputPartition(span) for span in log.span(start, end).cut(log.partitions or cores())]


def read_part(opening: Opening, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Read one span, in a task."""
    span: Span = partition.value
    with closing(opening()) as log:
        yield from log.read(span)
