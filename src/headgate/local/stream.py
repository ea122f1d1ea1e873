"""The stream job in this process: what is there is matched, each match once.

files, or a log of events ──► checkpoint.py: what is batch N ──► stream/batch.py: pin, match, stage, commit
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.local.checkpoint import Checkpoint, FileCheckpoint, FoundFile, new_files
from headgate.local.small_streams import log_of, unable_to_stream
from headgate.stream.request import check_request
from headgate.stream.running import run
from headgate.stream.settings import ARCHIVE, DELETE
from headgate.stream.sources.logs import SCHEMA
from headgate.stream.worker import match_part
from headgate.tables.places import UnsureError

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Sequence

    from headgate.runtime.state import State
    from headgate.stream.reporting import History, StreamReporter, StreamResult
    from headgate.stream.rows import PartReport
    from headgate.stream.running import Ending, OpenStream
    from headgate.stream.settings import StreamSettings
    from headgate.stream.sources.logs import End, Log
    from headgate.stream.worker import PartTask


class FileBatches:
    """Batches of the files that are there and belong to no batch yet."""

    def __init__(self, state: State, settings: StreamSettings) -> None:
        self.checkpoint = FileCheckpoint(state.spark)
        self._state = state
        self._settings = settings

    def new(self) -> Iterator[int]:
        """Note batches one after the other, and give their numbers; of the files that are there now."""
        for files in _cut(new_files(self._settings), self._settings):
            yield self.checkpoint.take(files)

    def rows(self, number: int) -> Iterator[pa.RecordBatch]:
        """Name files, as a source does; what is gone meanwhile is passed over, as Spark does."""
        for path in self._state.files(number):
            try:
                arrived = dt.datetime.fromtimestamp(Path(path).stat().st_mtime, dt.UTC)
            except FileNotFoundError:
                continue
            columns = zip((None, None, path, arrived), SCHEMA, strict=True)
            arrays = [pa.array([value], field.type) for value, field in columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    def done(self, number: int) -> None:
        """Do with files whose batch is committed what was asked for."""
        finished = self._settings.finished
        if finished == DELETE:
            for path in self._state.files(number):
                Path(path).unlink(missing_ok=True)
        elif finished.startswith(ARCHIVE):
            archive = Path(finished.removeprefix(ARCHIVE)).absolute()
            for path in self._state.files(number):
                if os.path.lexists(path):
                    target = archive / path.lstrip("/")
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.move(path, target)

    def close(self) -> None:
        """Have nothing open."""


def _cut(files: Sequence[FoundFile], settings: StreamSettings) -> Iterator[list[FoundFile]]:
    """Take as many files together as one batch may have, the oldest first."""
    held: list[FoundFile] = []
    size = 0
    for file in files:
        full = settings.max_files is not None and len(held) >= settings.max_files
        large = settings.max_bytes is not None and size + file.size > settings.max_bytes
        if held and (full or large):
            yield held
            held, size = [], 0
        held.append(file)
        size += file.size
    if held:
        yield held


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

            def match(task: PartTask, _: Sequence[str], number: int = number) -> list[PartReport]:
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
