"""A NATS stream as a log of events, or of changes of subscriptions: a message is a change.

An end is the sequence number of the next message, with the time when the NATS stream was made. Numbers
whose messages are gone are gaps; the end counts them, so they stand in every progress report of a query. A
position of changes is such a number and such a time; those of earlier versions lack the time.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.brokers.nats.reading import Range, as_row
from headgate.brokers.nats.settings import FAIL, FIRST, NEW
from headgate.brokers.nats.stream import Loss, Stream, StreamState
from headgate.errors import TableError
from headgate.runtime.changes import Change
from headgate.stream.sources.logs import SCHEMA, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headgate.brokers.nats.reading import Message
    from headgate.brokers.nats.settings import NatsSettings
    from headgate.brokers.nats.stream import StreamState
    from headgate.stream.sources.logs import End


_START_AGAIN = "compile all subscriptions again and start again with another state directory"


class NatsChanges:
    """A source of changes after the protocol of `headgate.runtime.changes`."""

    source = "nats"

    def __init__(self, settings: NatsSettings) -> None:
        self._settings = settings
        self._stream = Stream(settings)
        self._losses: list[Change] = []

    def since(self, position: str | None) -> tuple[list[Change], str | None]:
        """List the changes after a position, at most `max_rows`, and the position after them.

        In place of those that are lost comes a line that says so, which is no change and will be refused.
        """
        self._losses = []
        state = self._stream.state()
        number, _, created = (position or "").partition(" ")
        at = int(number) if number else first_of(self._settings, state)
        self._check(state, at, created or state.created)
        stop = min(state.end, max(at, state.first) + self._settings.max_rows)
        if stop <= at:
            return [], position or f"{at} {state.created}"
        wanted = Range(max(at, state.first), stop, self._settings.subject)
        changes = [
            Change(one.data, f"{one.subject} {one.sequence}")
            for part in self._stream.watched(wanted, state.created, self._lost)
            for one in part
        ]
        return self._losses + changes, f"{stop} {state.created}"

    def close(self) -> None:
        """Hang up."""
        self._stream.close()

    def _check(self, state: StreamState, at: int, created: str) -> None:
        where = self._settings.place
        if created != state.created:
            raise TableError(
                f"{where}: the stream of changes was created again at {state.created}, and {at} is the next "
                f"of the one made at {created}: {_START_AGAIN}"
            )
        if at > state.end and self._settings.start != str(at):
            raise TableError(
                f"{where}: the stream of changes ends before {state.end}, and {at} is the next: it was "
                f"created again, so {_START_AGAIN}"
            )
        if at < state.first:
            self._lost(Loss(at, state.first, state.first - at))

    def _lost(self, loss: Loss) -> None:
        if self._settings.on_loss == FAIL:
            raise TableError(
                f"{self._settings.place}: the stream of changes begins at {loss.first}, and {loss.at} is the "
                f"next: {loss.most:,} changes were purged or expired unread; compile all subscriptions "
                "again, or set on_loss=go-on"
            )
        # Numbers, not changes: some of them may have been of other subjects.
        line = f"sequence numbers {loss.at:,} to {loss.first - 1:,} were purged or expired unread"
        self._losses.append(Change(line.encode(), f"{self._settings.stream} {loss.at}"))


NEXT, MISSING, CREATED = "sequence", "missing", "created"
"""The fields of an end: the next sequence number, how many before it were gone, and when the stream was made;
the last is not in ends of earlier versions."""
LISTED = 100_000
"""Gaps of a stream that the server is asked to list; more are only counted."""
_LOG = logging.getLogger(__name__)


class NatsLog:
    """The messages of a stream."""

    def __init__(self, settings: NatsSettings) -> None:
        self.max_rows, self.partitions = settings.max_rows, settings.partitions
        self._settings = settings
        self._stream = Stream(settings)

    def begin(self) -> End:
        """Begin where the settings say."""
        state = self._stream.state()
        return _end(first_of(self._settings, state), 0, state)

    def now(self) -> End:
        """Return the end of the stream."""
        state = self._stream.state()
        return _end(state.end, 0, state)

    def end(self, start: End, most: int | None, until: End | None = None) -> End:
        """Return how far the next batch goes."""
        state, at = self._stream.state(), start[NEXT]
        end = state.end if until is None else min(state.end, until[NEXT])
        self._check(state, start)
        if end <= at:
            return start
        lost = max(0, min(state.first, end) - at)
        # What is gone before the stream begins takes no room in a batch.
        stop = end if most is None else min(end, at + lost + most)
        return _end(stop, start[MISSING] + lost + self._gaps(state, at + lost, stop), state)

    def span(self, start: End, end: End) -> Span:
        """Return the sequence numbers of a batch."""
        state = self._stream.state()
        # One of the two may be of an earlier version and not say when the stream was made.
        self._check(state, {**end, **start})
        return Span(max(start[NEXT], state.first), end[NEXT], state.created)

    def read(self, span: Span) -> Iterator[pa.RecordBatch]:
        """Read the messages with some sequence numbers."""
        wanted = Range(span.start, span.stop, self._settings.subject)
        yield from map(as_batch, self._stream.watched(wanted, span.log, self._lost))

    def close(self) -> None:
        """Hang up."""
        self._stream.close()

    def _check(self, state: StreamState, start: End) -> None:
        """Refuse a stream that no longer has what is to be read next."""
        address, at, created = self._settings.place, start[NEXT], start.get(CREATED, state.created)
        if created != state.created:
            raise TableError(
                f"{address}: the stream was made at {state.created}, and {at} is the next to be read of one "
                f"made at {created}: it was deleted and created again, so start again with another "
                "state directory"
            )
        if at > state.end and self._settings.start != str(at):
            raise TableError(
                f"{address}: the stream ends before {state.end}, and {at} is the next to be read: it was "
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
        address = self._settings.place
        return (
            f"{address}: the stream begins at {loss.first}, and {loss.at} is the next to be read: "
            f"{loss.most:,} were purged or expired unread; on_loss=go-on goes on without them"
        )

    def _gaps(self, state: StreamState, at: int, stop: int) -> int:
        """Count the sequence numbers in a range whose messages are gone."""
        if not state.deleted or at >= stop:
            return 0
        stream = self._stream
        if state.deleted <= LISTED:
            return sum(at <= number < stop for number in stream.deleted())
        # Messages that come between the two counts are taken for ones that are there: about right.
        after = stream.count(stop)
        return max(0, (stop - at) - (stream.count(at) - after))


def first_of(settings: NatsSettings, state: StreamState) -> int:
    """Return the sequence number that a new reader begins with."""
    return {FIRST: state.first, NEW: state.end}.get(settings.start) or int(settings.start)


def _end(number: int, missing: int, state: StreamState) -> End:
    return {NEXT: number, MISSING: missing, CREATED: state.created}


def as_batch(messages: Sequence[Message]) -> pa.RecordBatch:
    """Make rows of messages."""
    values, types, origins = zip(*map(as_row, messages), strict=True)
    times = [message.time // 1_000 for message in messages]
    columns: tuple[Sequence[Any], ...] = (values, types, origins, times)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
