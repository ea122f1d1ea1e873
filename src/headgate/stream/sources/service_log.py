"""The log of a service as a log of events: lines for streams, or columns for tables.

No consumer is needed. Positions rise and are never given again within one log, so that what is between two of
them can be read again and again, until it is forgotten. A log that was made again, or restored from a backup,
is another one. An end is the last position that was read, with the log and where the stream began.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from headgate.client.asking import Retries
from headgate.client.client import Client
from headgate.client.log import BEYOND, FAIL, FIRST, NEW, line_of, row_of
from headgate.errors import TableError
from headgate.stream.sources.logs import SCHEMA, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headgate.client.asking import KeptEvent, KeptEvents
    from headgate.client.log import LogSettings
    from headgate.stream.sources.logs import End

    Convert = Callable[[Sequence[KeptEvent]], pa.RecordBatch]

TABLE = (
    "cursor bigint, committed timestamp, id string, source string, type string, time string, "
    "datacontenttype string, data string, matches array<string>, event string"
)
"""The columns of a table of events."""
PAGE = 1_000
"""Events of one request, at most."""
_MICROS = 1_000_000
_TIME = pa.timestamp("us", "UTC")
_LOG = logging.getLogger(__name__)
_AGAIN = "start again with another state directory"


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
    texts_of: list[pa.Array[Any]] = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    arrays: list[pa.Array[Any]] = [
        pa.array([each.cursor for each in events], pa.int64()),
        _times(events),
        *texts_of,
        pa.array([each.matches for each in events], pa.list_(pa.string())),
        pa.array([text.decode() for text in texts], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[column.split()[0] for column in TABLE.split(", ")])


def _times(events: Sequence[KeptEvent]) -> pa.Array[Any]:
    return pa.array([round(each.time * _MICROS) for each in events], pa.int64()).cast(_TIME)


class Position(NamedTuple):
    """How far a reader came: the last position that it read, in which log, and where it began."""

    after: int
    log: str
    began: int


class ServiceLog:
    """The events that a service keeps."""

    def __init__(self, settings: LogSettings, convert: Convert = as_lines, *, patient: bool = True) -> None:
        self.max_rows, self.partitions = settings.max_rows, settings.partitions
        self._settings = settings
        self._place = settings.address
        self._convert = convert
        # About half a minute: a service that is started again is waited for.
        retries = Retries(attempts=10 if patient else 1)
        self._client = Client(settings.address, key=settings.key, retries=retries)

    def begin(self) -> End:
        """Begin where the settings say."""
        state, start = self.state(), self._settings.start
        after = {FIRST: state.first - 1, NEW: state.last}.get(start)
        if after is None:
            after = int(start) - 1
        return Position(after, state.log, after)._asdict()

    def now(self) -> End:
        """Return the end of the log."""
        state = self.state()
        return Position(state.last, state.log, state.last)._asdict()

    def end(self, start: End, most: int | None, until: End | None = None) -> End:
        """Return how far the next batch goes."""
        state, position = self.state(), self._position(start)
        self._check(position, state)
        last = state.last if until is None else min(state.last, self._position(until).after)
        # What is forgotten takes no room in a batch.
        if most is not None:
            last = min(last, max(position.after, state.first - 1) + most)
        return start if last <= position.after else position._replace(after=last)._asdict()

    def span(self, start: End, end: End) -> Span:
        """Return the positions of a batch, but for those that were forgotten."""
        begin, last = self._position(start), self._position(end)
        # A first batch that is done again begins where it began, and not where a new stream would.
        after = begin.after if begin.began == last.began else last.began
        state = self.state()
        self._check(last._replace(after=after), state)
        return Span(max(after + 1, state.first), last.after + 1, last.log)

    def read(self, span: Span) -> Iterator[pa.RecordBatch]:
        """Read the events at some positions."""
        after, last = span.start - 1, span.stop - 1
        while after < last:
            page = self._client.kept(after=after, limit=min(PAGE, last - after))
            self._check(Position(after, span.log, after), page)
            events = [each for each in page.items if each.cursor <= last]
            if events:
                yield self._convert(events)
            if page.next is None:
                return
            after = page.items[-1].cursor

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def state(self) -> KeptEvents:
        """Ask what there is now: all before `first` is forgotten, `last` is the last position."""
        return self._client.kept(after=BEYOND, limit=1)

    def _position(self, end: End) -> Position:
        try:
            return Position(int(end["after"]), str(end["log"]), int(end["began"]))
        except (KeyError, TypeError, ValueError):
            raise TableError(
                f"{self._place}: the state is of a stream that reads from another kind of source: name that "
                "one, or start with a new state and new outputs"
            ) from None

    def _check(self, position: Position, state: KeptEvents) -> None:
        """Refuse a log that no longer has what is to be read next."""
        after = position.after
        if position.log != state.log:
            raise TableError(
                f"{self._place}: cursor {after} was read of another log: this one was made again or restored "
                f"from a backup, and its cursors mean other events; {_AGAIN}"
            )
        if after > state.last and after != position.began:
            raise TableError(
                f"{self._place}: the log ends at cursor {state.last}, and {after} was read already: {_AGAIN}"
            )
        if after + 1 < state.first:
            message = (
                f"{self._place}: the log begins at cursor {state.first}, and {after + 1} is the next to be "
                f"read: up to {state.first - after - 1:,} events were forgotten unread, by the service's "
                "retention"
            )
            if self._settings.on_loss == FAIL:
                raise TableError(f"{message}; on_loss=go-on goes on without them")
            _LOG.warning("%s", message)
