"""The stream job in this process: files that are there are matched, each match once.

files, or a service's log ──► checkpoint.py: what is batch N ──► batch.py: pin, match, stage, commit ──► files
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.local.checkpoint import Checkpoint, FoundFile
from headgate.local.log_stream import LogBatches
from headgate.local.small import new_files, unable_to_stream
from headgate.stream.columns import SCHEMA
from headgate.stream.failing import one_line
from headgate.stream.opening import opened
from headgate.stream.request import check_request
from headgate.stream.settings import ARCHIVE, DELETE, SERVICE
from headgate.stream.sinks import FileSink
from headgate.stream.worker import match_part
from headgate.tables.places import UnsureError

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from headgate.stream.opening import OpenStream
    from headgate.stream.reporting import History, StreamReporter, StreamResult
    from headgate.stream.settings import StreamSettings
    from headgate.stream.worker import Task


def run_stream(
    settings: StreamSettings,
    *,
    stop: threading.Event | None = None,
    quiet: bool = False,
    history: History | None = None,
) -> StreamResult:
    """Match the files that are there, as that of Spark does with `once`.

    Run again with the same state, it goes on where it ended, also if the process was killed; so does Spark.
    """
    check_request(settings)
    unable = unable_to_stream(settings)
    if unable is not None:
        raise UnsureError(unable)
    until = None if settings.seconds is None else time.monotonic() + settings.seconds

    def sink(schema: pa.Schema, _: StreamReporter) -> FileSink:
        return FileSink(settings.output, settings.format, schema)

    with one_line(settings), opened(settings, sink, quiet=quiet, history=history) as stream:
        for _ in _done(stream, settings):
            if stop is not None and stop.is_set():
                return stream.end("asked")
            if until is not None and time.monotonic() >= until:
                return stream.end("seconds")
        return stream.end("once")


def _done(stream: OpenStream, settings: StreamSettings) -> Iterator[int]:
    """Do batches, one after the other; gives their numbers."""
    if settings.events.startswith(SERVICE):
        yield from LogBatches(stream, settings).done()
        return
    checkpoint = Checkpoint(stream.state.spark)
    stream.state.fixed("query", checkpoint.open())
    for number in _batches(checkpoint, settings):
        _do(stream, checkpoint, number, settings)
        yield number


def _batches(checkpoint: Checkpoint, settings: StreamSettings) -> Iterator[int]:
    """Number the batches that are to be done: one that was begun, then those of the files that are new."""
    begun = checkpoint.under_way()
    if begun is not None:
        yield begun
    for files in _cut(new_files(settings), settings):
        yield checkpoint.begin(files)


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


def _do(stream: OpenStream, checkpoint: Checkpoint, number: int, settings: StreamSettings) -> None:
    files = stream.state.files(number)
    stream.batches.do(_Files(), number)
    # Before the batch is done for good: what a process that dies here has left is removed by the next.
    _remove(files, settings)
    checkpoint.commit(number)


class _Files:
    """The rows of a batch: files, which are read here."""

    def match(self, task: Task, files: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Match them one after the other."""
        return [row for part in match_part(_rows(files), task) for row in part.to_pylist()]

    def staged(self, files: Sequence[Path], ddl: str) -> Any:
        """Have none for a broker."""
        raise NotImplementedError


def _rows(files: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """Name files, as a source does; what is gone meanwhile is passed over, as Spark does."""
    for path in files:
        try:
            arrived = dt.datetime.fromtimestamp(Path(path).stat().st_mtime, dt.UTC)
        except FileNotFoundError:
            continue
        columns = zip((None, None, path, arrived), SCHEMA, strict=True)
        arrays = [pa.array([value], field.type) for value, field in columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _remove(files: Iterable[str], settings: StreamSettings) -> None:
    """Do with files whose batch is committed what was asked for."""
    if settings.finished == DELETE:
        for path in files:
            Path(path).unlink(missing_ok=True)
    elif settings.finished.startswith(ARCHIVE):
        archive = Path(settings.finished.removeprefix(ARCHIVE)).absolute()
        for path in files:
            if os.path.lexists(path):
                place = archive / path.lstrip("/")
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(path, place)
