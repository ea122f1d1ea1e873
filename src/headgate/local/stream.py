"""The stream job in this process: what is there is matched, each match once.

files, or a log of events ──► checkpoint.py: what is batch N ──► stream/batch.py: pin, match, stage, commit
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from headgate.local.checkpoint import Checkpoint
from headgate.local.files import FileBatches
from headgate.local.small_streams import log_of, unable_to_stream
from headgate.stream.request import check_request
from headgate.stream.running import run
from headgate.stream.worker import match_part
from headgate.tables.places import UnsureError

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from headgate.runtime.state import State
    from headgate.stream.opening import OpenStream
    from headgate.stream.reporting import History, StreamReporter, StreamResult
    from headgate.stream.rows import PartReport
    from headgate.stream.running import Ending
    from headgate.stream.settings import StreamSettings
    from headgate.stream.sources.logs import End, Log
    from headgate.stream.worker import Task


def run_stream(
    settings: StreamSettings,
    *,
    stop: threading.Event | None = None,
    quiet: bool = False,
    history: History | None = None,
) -> StreamResult:
    """Match what is there, as the job on Spark does with `once`; either goes on where one ended."""

    def feed(stream: OpenStream, ending: Ending) -> str:
        return _feed(stream, settings, ending)

    check_request(settings)
    unable = unable_to_stream(settings)
    if unable is not None:
        raise UnsureError(unable)
    return run(settings, _no_sink, feed, stop=stop, quiet=quiet, history=history)


def _no_sink(_: StreamReporter) -> None:
    """Open none: matches go to a folder."""


def _feed(stream: OpenStream, settings: StreamSettings, ending: Ending) -> str:
    """Do a batch that was begun, then those of what is new."""
    log = log_of(settings)
    batches = FileBatches(stream.state, settings) if log is None else LogBatches(stream.state, log)
    checkpoint = batches.checkpoint
    with closing(batches):
        stream.state.fixed("query", checkpoint.open())
        for number in _numbers(batches):

            def match(task: Task, _: Sequence[str], number: int = number) -> list[PartReport]:
                return [match_part(batches.rows(number), task)]

            stream.batches.do(match, number)
            # First, so that what a process that dies here has left is removed by the next.
            batches.done(number)
            checkpoint.commit(number)
            why = ending.why()
            if why is not None:
                return why
    return "once"


def _numbers(batches: FileBatches | LogBatches) -> Iterator[int]:
    begun = batches.checkpoint.under_way()
    if begun is not None:
        yield begun
    yield from batches.new()


class LogBatches:
    """Batches of what is in a log and belongs to no batch yet."""

    def __init__(self, state: State, log: Log) -> None:
        self.checkpoint = Checkpoint(state.spark)
        self._log = log

    def new(self) -> Iterator[int]:
        """Note batches one after the other, and give their numbers."""
        # What comes meanwhile is for the next run.
        until = self._log.now()
        while True:
            start = self._start()
            end = self._log.end(start, self._log.max_rows, until)
            if end == start:
                return
            yield self.checkpoint.begin(end)

    def rows(self, number: int) -> Iterator[pa.RecordBatch]:
        """Read the events between two ends."""
        end = self.checkpoint.end(number)
        assert end is not None
        return self._log.read(self._log.span(self._start(number - 1), end))

    def done(self, number: int) -> None:
        """Leave the log as it is."""

    def close(self) -> None:
        """Hang up."""
        self._log.close()

    def _start(self, before: int | None = None) -> End:
        """Return where the batch after another one begins; without one, where the next does."""
        return self.checkpoint.end(before) or self._log.begin()
