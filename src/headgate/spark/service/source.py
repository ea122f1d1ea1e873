"""The log of a service for Spark: a data source in Python, for tables and for streams.

An offset is the last position that was read, with the log that it is of and where the query began. Events at
positions never change, so that Spark's checkpoint alone says what was done. Tasks read ranges of positions.

The key of a service is part of the source when it is registered, and no option: options stand in plans.
"""

from __future__ import annotations

import os
import uuid
from itertools import pairwise
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from headgate.client.asking import ADDRESS, KEY
from headgate.client.batches import LINES, TABLE, as_lines, as_table
from headgate.client.log import EventLog, LogSettings, Position
from headgate.core.machine import cores
from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headgate.client.model import KeptEvent
    from headgate.spark.service.stream import LogStream
    from headgate.stream.settings import StreamSettings

    Convert = Callable[[Sequence[KeptEvent]], pa.RecordBatch]

NAME = "headgate"
LEAST = 1_000
"""Positions that are worth a task."""


def register_source(session: SparkSession, *, key: str | None = None, name: str = NAME) -> None:
    """Make the events that services keep known to a session, as a format.

    Without a `key` it is that of HEADGATE_KEY as it is now. Services with other keys get formats of other
    names.

        hg.register_source(spark)
        events = spark.read.format("headgate").option("address", "http://127.0.0.1:8080").load()
    """
    said = {"key": key or os.environ.get(KEY), "address": os.environ.get(ADDRESS), "called": name}
    try:
        session.dataSource.register(type("Events", (ServiceSource,), said))
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        raise TableError(
            f"Spark, or another session of it, has a source {name!r} already: give another name"
        ) from None


def read_service(session: SparkSession, settings: LogSettings) -> DataFrame:
    """Read the log of a service as a source of `headgate stream`."""
    # Spark looks for sources of a name in the session that is active, which may be another one.
    name = f"{NAME}-{uuid.uuid4().hex}"
    session.dataSource.register(type("Lines", (ServiceLines,), {"settings": settings, "called": name}))
    return session.readStream.format(name).load()


def read_events(session: SparkSession, settings: StreamSettings) -> DataFrame:
    """Read the log that `settings.events` names."""
    from headgate.stream.service import events_of

    return read_service(session, events_of(settings))


class ServiceSource(DataSource):
    """What Spark knows the events of a service by; a row is an event with what is known of it."""

    key: str | None = None
    address: str | None = None
    called = NAME

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return cls.called

    def schema(self) -> str:
        """Return the columns."""
        return TABLE

    def reader(self, schema: StructType) -> LogReader:
        """Return what reads all that is kept now."""
        return LogReader(self._settings(schema), as_table)

    def streamReader(self, schema: StructType) -> LogStream:  # noqa: N802
        """Return what reads events as they come."""
        from headgate.spark.service.stream import LogStream

        return LogStream(self._settings(schema), as_table)

    def _settings(self, schema: StructType) -> LogSettings:
        # There is no Spark here that could read the text.
        if ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in schema) != TABLE:
            raise TableError(
                f"the source {self.called!r} has columns of its own: give no schema, and read attributes by "
                "from_json(data, schema)"
            )
        said = {name.lower(): str(value) for name, value in self.options.items()}
        if "key" in said:
            raise TableError(
                "the key of a service is no option, because options stand in plans: give it to "
                "register_source, or put it into HEADGATE_KEY before"
            )
        address = said.pop("address", self.address)
        return LogSettings.of(address or "http://127.0.0.1:8080", said, key=self.key)


class ServiceLines(DataSource):
    """What Spark knows the source of a stream by; a row is a line of JSON, as files have them."""

    settings: LogSettings
    called = NAME

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return cls.called

    def schema(self) -> str:
        """Return the columns that every source of events has."""
        return LINES

    def streamReader(self, schema: StructType) -> LogStream:  # noqa: ARG002, N802
        """Return what reads events as they come."""
        from headgate.spark.service.stream import LogStream

        return LogStream(self.settings, as_lines)


class Part(InputPartition):
    """The positions that one task reads: after one, up to another."""

    def __init__(self, after: int, last: int, log: str) -> None:
        super().__init__((after, last, log))
        self.after = after
        self.last = last
        self.log = log


class LogReader(DataSourceReader):
    """All that is kept when the query is planned."""

    def __init__(self, settings: LogSettings, convert: Convert) -> None:
        self._settings = settings
        self._convert = convert

    def partitions(self) -> Sequence[InputPartition]:
        """Cut what is kept into ranges of positions."""
        with EventLog(self._settings) as log:
            begin = log.begin()
            end = log.end(begin, log.state())
        return cut(begin.after, end, self._settings)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one range."""
        return read_part(self._settings, partition, self._convert)


def read_part(settings: LogSettings, partition: InputPartition, convert: Convert) -> Iterator[pa.RecordBatch]:
    """Read one range of positions, in a task."""
    assert isinstance(partition, Part)
    with EventLog(settings) as log:
        for events in log.read(partition.after, partition.last, partition.log):
            yield convert(events)


def cut(after: int, end: Position, settings: LogSettings) -> list[InputPartition]:
    """Cut a range into parts of about one size, none too small to be worth a task."""
    count = end.after - after
    parts = max(1, min(settings.partitions or cores(), count // LEAST))
    edges = [after + count * part // parts for part in range(parts + 1)]
    return [Part(begin, last, end.log) for begin, last in pairwise(edges) if begin < last]
