"""Batches of a stream whose events are in the log of a service, in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.client.batches import as_lines
from headgate.client.log import EventLog, Position
from headgate.local.checkpoint import PositionNotes
from headgate.stream.service import events_of
from headgate.stream.worker import match_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from headgate.stream.opening import OpenStream
    from headgate.stream.settings import StreamSettings
    from headgate.stream.worker import Task


class LogBatches:
    """What is in the log now and belongs to no batch yet, batch by batch."""

    def __init__(self, stream: OpenStream, settings: StreamSettings) -> None:
        self._stream = stream
        self._notes = PositionNotes(stream.state.spark)
        self._settings = events_of(settings)

    def done(self) -> Iterator[int]:
        """Do a batch that was begun, then those of what is new; gives their numbers."""
        stream, notes = self._stream, self._notes
        stream.state.fixed("query", notes.open())
        with EventLog(self._settings) as log:
            begun = notes.under_way()
            if begun is not None:
                self._do(log, begun)
                yield begun
            state = log.state()
            while True:
                noted = notes.end()
                begin = log.begin() if noted is None else self._position(noted)
                # What comes meanwhile is for the next run.
                end = log.end(begin, state, self._settings.max_rows)
                if end.after <= begin.after:
                    return
                number = notes.begin(end.noted())
                self._do(log, number)
                yield number

    def _do(self, log: EventLog, number: int) -> None:
        noted, before = self._notes.end(number), self._notes.end(number - 1)
        assert noted is not None
        end = self._position(noted)
        after = end.began if before is None else self._position(before).after
        self._stream.batches.do(_Events(log, after, end), number)
        self._notes.commit(number)

    def _position(self, noted: Mapping[str, Any]) -> Position:
        return Position.of(noted, self._settings.address)


class _Events:
    """The rows of a batch: events between two positions."""

    def __init__(self, log: EventLog, after: int, end: Position) -> None:
        self._log = log
        self._after = after
        self._end = end

    def match(self, task: Task, files: Sequence[str]) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002
        """Match them one after the other."""
        rows = map(as_lines, self._log.read(self._after, self._end.after, self._end.log))
        return [row for part in match_part(rows, task) for row in part.to_pylist()]

    def staged(self, files: Sequence[Path], ddl: str) -> Any:
        """Have none for a broker."""
        raise NotImplementedError
