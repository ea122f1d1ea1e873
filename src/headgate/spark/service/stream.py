"""Offsets in the log of a service, for streams of Spark: made on the driver, read by tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from headgate.client.log import EventLog, LogSettings, LogState, Position
from headgate.spark.service.source import cut, read_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition

    from headgate.spark.service.source import Convert

Offset = dict[str, Any]


class LogStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Events as they come."""

    def __init__(self, settings: LogSettings, convert: Convert) -> None:
        self._settings = settings
        self._convert = convert
        self._log: EventLog | None = None
        self._target: int | None = None

    def __getstate__(self) -> dict[str, object]:
        """Leave the connection behind when Spark sends the reader to a worker."""
        return {**self.__dict__, "_log": None}

    def initialOffset(self) -> Offset:  # noqa: N802
        """Begin where the settings say."""
        return self._open().begin().noted()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Bound the batches."""
        return ReadMaxRows(self._settings.max_rows)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Say how far the next batch goes."""
        log = self._open()
        state = log.state()
        if self._target is not None:
            state = LogState(state.first, min(state.last, self._target), state.log)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._settings.max_rows
        begin = self._position(start)
        return log.end(begin, state, None if isinstance(limit, ReadAllAvailable) else most).noted()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember the end of now, for a query that ends there."""
        self._target = self._open().state().last

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """Say where the log ends, for reports of how far behind a query is."""
        state = self._open().state()
        return Position(state.last, state.log, state.last).noted()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Cut a batch into ranges of positions."""
        begin, last = self._position(start), self._position(end)
        # A first batch that is done again begins where it began, and not where a new query would.
        after = begin.after if begin.began == last.began else last.began
        self._open().check(last._replace(after=after), self._open().state())
        return cut(after, last, self._settings)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one range."""
        return read_part(self._settings, partition, self._convert)

    def stop(self) -> None:
        """Hang up."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _position(self, offset: Offset) -> Position:
        return Position.of(offset, self._settings.address)

    def _open(self) -> EventLog:
        if self._log is None:
            self._log = EventLog(self._settings)
        return self._log
