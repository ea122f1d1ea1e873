"""The log of a service as a log of events: lines for streams, or columns for tables.

An end is the last position that was read, with the log that it is of and where the stream began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.client.log import EventLog, Position
from headgate.client.rows import line_of, row_of
from headgate.stream.sources.columns import SCHEMA
from headgate.stream.sources.logs import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headgate.client.log import LogSettings
    from headgate.client.model import KeptEvent
    from headgate.stream.sources.logs import End

    Convert = Callable[[Sequence[KeptEvent]], pa.RecordBatch]

TABLE = (
    "cursor bigint, committed timestamp, id string, source string, type string, time string, "
    "datacontenttype string, data string, matches array<string>, event string"
)
"""The columns of a table of events."""
_MICROS = 1_000_000
_TIME = pa.timestamp("us", "UTC")


def as_lines(events: Sequence[KeptEvent]) -> pa.RecordBatch:
    """Make rows of a stream's source."""
    arrays: list[pa.Array[Any]] = [
        pa.array([line_of(bytes(each.event)) for each in events], pa.binary()),
        pa.nulls(len(events), pa.string()),
        pa.array([f"/v1/events/{each.cursor}" for each in events], pa.string()),
        _times(events),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def as_table(events: Sequence[KeptEvent]) -> pa.RecordBatch:
    """Make rows of a DataFrame."""
    texts = [bytes(each.event) for each in events]
    rows = [row_of(text) for text in texts]
    told: list[pa.Array[Any]] = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    arrays: list[pa.Array[Any]] = [
        pa.array([each.cursor for each in events], pa.int64()),
        _times(events),
        *told,
        pa.array([each.matches for each in events], pa.list_(pa.string())),
        pa.array([text.decode() for text in texts], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[column.split()[0] for column in TABLE.split(", ")])


def _times(events: Sequence[KeptEvent]) -> pa.Array[Any]:
    return pa.array([round(each.time * _MICROS) for each in events], pa.int64()).cast(_TIME)


class ServiceLog:
    """The events that a service keeps."""

    def __init__(self, settings: LogSettings, convert: Convert = as_lines) -> None:
        self.max_rows, self.partitions = settings.max_rows, settings.partitions
        self._place = settings.address
        self._log = EventLog(settings)
        self._convert = convert

    def begin(self) -> End:
        """Begin where the settings say."""
        return self._log.begin().noted()

    def now(self) -> End:
        """Return the end of the log."""
        state = self._log.state()
        return Position(state.last, state.log, state.last).noted()

    def end(self, start: End, most: int | None, until: End | None = None) -> End:
        """Return how far the next batch goes."""
        state = self._log.state()
        if until is not None:
            state = state._replace(last=min(state.last, self._position(until).after))
        return self._log.end(self._position(start), state, most).noted()

    def span(self, start: End, end: End) -> Span:
        """Return the positions of a batch, but for those that were forgotten."""
        begin, last = self._position(start), self._position(end)
        # A first batch that is done again begins where it began, and not where a new stream would.
        after = begin.after if begin.began == last.began else last.began
        state = self._log.state()
        self._log.check(last._replace(after=after), state)
        return Span(max(after + 1, state.first), last.after + 1, last.log)

    def read(self, span: Span) -> Iterator[pa.RecordBatch]:
        """Read the events at some positions."""
        yield from map(self._convert, self._log.read(span.start - 1, span.stop - 1, span.log))

    def close(self) -> None:
        """Hang up."""
        self._log.close()

    def _position(self, end: End) -> Position:
        return Position.of(end, self._place)
