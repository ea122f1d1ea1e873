"""Messages of a NATS stream as a streaming table: a data source for Spark, in Python.

An offset is the sequence number of the next message, with the time when the NATS stream was made: one that
was made anew has other messages under the same numbers. Within one they never change, so the batch between
two offsets can be read again and again, and Spark's checkpoint alone says what was done: nothing is
acknowledged at the server. Numbers whose messages are gone are gaps; the offset counts them, so they stand
in every progress report of the query.
"""

from __future__ import annotations

import logging
import uuid
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from headgate.brokers.nats.reading import Range, as_row
from headgate.brokers.nats.settings import FAIL, FIRST, NEW, NatsSettings
from headgate.brokers.nats.stream import Loss, State, Stream
from headgate.core.machine import cores
from headgate.errors import TableError
from headgate.stream.columns import DDL, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headgate.brokers.nats.reading import Message
    from headgate.brokers.nats.stream import State
    from headgate.stream.settings import StreamSettings


NAME = "headgate-nats"
URL = "url"
"""The one option; Spark hides options of this name from plans and logs."""

NEXT, MISSING, CREATED = "sequence", "missing", "created"
"""The fields of an offset: the next sequence number, how many before it were gone, and when the stream was
made; the last is not in offsets of earlier versions."""
Offset = dict[str, Any]

LEAST = 1_000
"""Sequence numbers that are worth a task."""
LISTED = 100_000
"""Gaps of a stream that the server is asked to list; more are only counted."""

_LOG = logging.getLogger(__name__)


def read_nats(session: SparkSession, settings: StreamSettings) -> DataFrame:
    """Read the stream that `settings.events` names."""
    from headgate.stream.nats import events_of

    return read_stream(session, events_of(settings))


def read_stream(session: SparkSession, settings: NatsSettings) -> DataFrame:
    """Read one stream."""
    return session.readStream.format(_register(session)).option(URL, settings.url).load()


def _register(session: SparkSession) -> str:
    """Make the source known, and return its name.

    Spark looks for sources of that name in the session that is active, which may be another than this one and
    know it already. Then this one gets it under another name.
    """
    try:
        session.dataSource.register(NatsSource)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        name = f"{NAME}-{uuid.uuid4().hex}"
        session.dataSource.register(type("Renamed", (NatsSource,), {"name": classmethod(lambda _: name)}))
        return name
    return NAME


class NatsSource(DataSource):
    """What Spark knows the source by."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return NAME

    def schema(self) -> str:
        """Return the columns that every source of events has."""
        return DDL

    def streamReader(self, schema: StructType) -> NatsReader:  # noqa: ARG002, N802
        """Return the reader."""
        return NatsReader(NatsSettings.of(self.options[URL]))


class Part(InputPartition):
    """The sequence numbers that one task reads."""

    def __init__(self, start: int, stop: int, created: str) -> None:
        super().__init__((start, stop, created))
        self.start = start
        self.stop = stop
        self.created = created


class NatsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets on the driver, messages on the workers."""

    def __init__(self, settings: NatsSettings) -> None:
        self._settings = settings
        self._stream: Stream | None = None
        self._target: int | None = None

    def __getstate__(self) -> dict[str, object]:
        """Leave the connection behind when Spark sends the reader to a worker."""
        return {**self.__dict__, "_stream": None}

    def initialOffset(self) -> Offset:  # noqa: N802
        """Begin where the settings say."""
        state, start = self._open().state(), self._settings.start
        first = {FIRST: state.first, NEW: state.end}.get(start)
        return {NEXT: int(start) if first is None else first, MISSING: 0, CREATED: state.created}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Bound the batches."""
        return ReadMaxRows(self._settings.max_rows)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Say how far the next batch goes."""
        state = self._open().state()
        end = state.end if self._target is None else min(state.end, self._target)
        at = start[NEXT]
        self._check(state, start)
        if end <= at:
            return start
        lost = max(0, min(state.first, end) - at)
        stop = end
        if not isinstance(limit, ReadAllAvailable):
            most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._settings.max_rows
            # What is gone before the stream begins takes no room in a batch.
            stop = min(end, at + lost + most)
        missing = start[MISSING] + lost + self._gaps(state, at + lost, stop)
        return {NEXT: stop, MISSING: missing, CREATED: state.created}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember the end of now, for a query that ends there."""
        self._target = self._open().state().end

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """Say where the stream ends, for reports of how far behind a query is."""
        state = self._open().state()
        return {NEXT: state.end, MISSING: 0, CREATED: state.created}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Cut a batch into ranges of sequence numbers."""
        state = self._open().state()
        # One of the two may be of an earlier version and not say when the stream was made.
        self._check(state, {**end, **start})
        first = max(start[NEXT], state.first)
        return cut(first, end[NEXT], self._settings.partitions or cores(), state.created)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one range."""
        assert isinstance(partition, Part)
        wanted = Range(partition.start, partition.stop, self._settings.subject)
        with Stream(self._settings) as stream:
            for found in stream.watched(wanted, partition.created, self._lost):
                yield as_batch(found)

    def stop(self) -> None:
        """Hang up."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _open(self) -> Stream:
        if self._stream is None:
            self._stream = Stream(self._settings)
        return self._stream

    def _check(self, state: State, start: Offset) -> None:
        """Refuse a stream that no longer has what is to be read next."""
        place, at, created = self._settings.place, start[NEXT], start.get(CREATED, state.created)
        if created != state.created:
            raise TableError(
                f"{place}: the stream was made at {state.created}, and {at} is the next to be read of one "
                f"made at {created}: it was deleted and created again, so start again with another "
                "state directory"
            )
        if at > state.end and self._settings.start != str(at):
            raise TableError(
                f"{place}: the stream ends before {state.end}, and {at} is the next to be read: it was "
                "deleted and created again, so start again with another state directory"
            )
        if state.first > at and self._settings.on_loss == FAIL:
            raise TableError(self._gone(Loss(at, state.first, state.first - at)))

    def _lost(self, loss: Loss) -> None:
        """Refuse to go on without what went between planning and reading, or say it in the task's log."""
        if self._settings.on_loss == FAIL:
            raise TableError(self._gone(loss))
        _LOG.warning("%s", self._gone(loss))

    def _gone(self, loss: Loss) -> str:
        place = self._settings.place
        return (
            f"{place}: the stream begins at {loss.first}, and {loss.at} is the next to be read: "
            f"{loss.most:,} were purged or expired unread; on_loss=go-on goes on without them"
        )

    def _gaps(self, state: State, at: int, stop: int) -> int:
        """Count the sequence numbers in a range whose messages are gone."""
        if not state.deleted or at >= stop:
            return 0
        stream = self._open()
        if state.deleted <= LISTED:
            return sum(at <= number < stop for number in stream.deleted())
        # Messages that come between the two counts are taken for ones that are there: about right.
        after = stream.count(stop)
        return max(0, (stop - at) - (stream.count(at) - after))


def cut(start: int, stop: int, parts: int, created: str) -> list[InputPartition]:
    """Cut a range into parts of about one size, none too small to be worth a task."""
    count = stop - start
    parts = max(1, min(parts, count // LEAST))
    edges = [start + count * part // parts for part in range(parts + 1)]
    return [Part(a, b, created) for a, b in pairwise(edges) if a < b]


def as_batch(messages: Sequence[Message]) -> pa.RecordBatch:
    """Make rows of messages."""
    values, types, origins = zip(*map(as_row, messages), strict=True)
    times = pa.array([message.time // 1_000 for message in messages], pa.int64())
    arrays: list[pa.Array[Any]] = [
        pa.array(values, pa.binary()),
        pa.array(types, pa.string()),
        pa.array(origins, pa.string()),
        times.cast(pa.timestamp("us", "UTC")),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
