"""Batches of a stream whose events are files in a folder, in this process."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.local.checkpoint import FileCheckpoint, FoundFile, new_files
from headgate.stream.settings import ARCHIVE, DELETE
from headgate.stream.sources.columns import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headgate.runtime.state import State
    from headgate.stream.settings import StreamSettings


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
                    place = archive / path.lstrip("/")
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.move(path, place)

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
