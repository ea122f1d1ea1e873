"""Which files belong to which batch of a stream, noted as Spark notes it: either may go on where one ended.

    spark/
      metadata            the id of the stream
      sources/0/K         files that were found together; now and then K.compact, all files until then
      offsets/N           batch N ends with the files of K, or at a position of a service's log
      commits/N           batch N is done

Files are noted in `sources` first, then as a batch in `offsets`. Those of a process that died between the two
are the next batch.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from headgate.core.machine import put_file
from headgate.runtime import state
from headgate.tables.places import is_hidden, local

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.stream.settings import StreamSettings
    from headgate.stream.sources.logs import End

COMPACT = 10
"""Every so many notes of files Spark writes all of them into one, and looks for it there."""
_SAFE = "/_-!.~'()*,;:$&+=@"
_VERSION = "v1"


@dataclass(frozen=True)
class FoundFile:
    """A file of events, and when it came, in milliseconds."""

    path: str
    at: int
    size: int


class Checkpoint:
    """The notes of a stream: where its batches end, and which are done."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._offsets = root / "offsets"
        self._commits = root / "commits"

    def open(self) -> str:
        """Make the folders, if they are not there; returns the id of the stream."""
        for folder in (self._root / "sources" / "0", self._offsets, self._commits):
            folder.mkdir(parents=True, exist_ok=True)
        metadata = self._root / "metadata"
        about = state.read_record(metadata)
        if about is None:
            about = {"id": str(uuid.uuid4())}
            state.write_record(metadata, about)
        return str(about["id"])

    def under_way(self) -> int | None:
        """Return the batch that was begun and is not done, if there is one."""
        last = state.last_number(self._offsets)
        return last if last > state.last_number(self._commits) else None

    def end(self, number: int | None = None) -> End | None:
        """Return where a batch ends, or the last one; None if there is no such batch."""
        number = state.last_number(self._offsets) if number is None else number
        note_file = self._offsets / str(number)
        if number < 0 or not note_file.exists():
            return None
        note = state.read_note(note_file)
        if len(note) < 2 or not isinstance(note[-1], dict):
            raise state.damaged(note_file)
        return note[-1]

    def begin(self, end: End) -> int:
        """Note where the next batch ends, and return its number."""
        number = state.last_number(self._offsets) + 1
        about = {"batchWatermarkMs": 0, "batchTimestampMs": int(time.time() * 1000), "conf": {}}
        _put(self._offsets / str(number), [_json(about), _json(end)])
        return number

    def commit(self, number: int) -> None:
        """Note that a batch is done."""
        _put(self._commits / str(number), [_json({"nextBatchWatermarkMs": 0})])


class FileCheckpoint(Checkpoint):
    """The notes of a stream that takes files from a folder."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._files = root / "sources" / "0"

    def under_way(self) -> int | None:
        """Return the batch that was begun and is not done, if there is one."""
        last, noted = state.last_number(self._offsets), state.last_number(self._files)
        if noted > state.offset_of(self._offsets / str(last)):
            # Files were noted, and no batch yet.
            self.begin({"logOffset": noted})
        return super().under_way()

    def known(self) -> set[str]:
        """Name all files that belong to a batch."""
        return state.paths_noted(self._files)

    def take(self, files: Sequence[FoundFile]) -> int:
        """Note files as the next batch, and return its number."""
        noted = state.last_number(self._files) + 1
        lines = [
            _json({"path": f"file://{encoded(file.path)}", "timestamp": file.at, "batchId": noted})
            for file in files
        ]
        name = str(noted)
        if (noted + 1) % COMPACT == 0:
            name += ".compact"
            entries = (
                entry for file_note in state.numbered(self._files) for entry in state.read_note(file_note)
            )
            before = {entry["path"]: _json(entry) for entry in entries}
            lines = [*before.values(), *lines]
        _put(self._files / name, lines)
        return self.begin({"logOffset": noted})


def _put(path: Path, lines: Sequence[str]) -> None:
    put_file(path, "\n".join((_VERSION, *lines)).encode())


def _json(value: object) -> str:
    """Write as Spark does: whoever reads notes looks for these very signs."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def encoded(path: str) -> str:
    """Write a path as Java writes that of a URI: signs that have a meaning there are numbers.

    >>> encoded("/in/a b#1%é.jsonl")
    '/in/a%20b%231%25é.jsonl'
    """
    return "".join(sign if ord(sign) > 127 else quote(sign, safe=_SAFE) for sign in path)


def new_files(settings: StreamSettings) -> list[FoundFile]:
    """List the files of a stream's folder that belong to no batch yet, the oldest first."""
    known = FileCheckpoint(Path(settings.state).absolute() / "spark").known()
    base = local(settings.events).absolute()
    files = []
    for folder, _, names in os.walk(base, followlinks=True):
        for name in names:
            path = Path(folder) / name
            if is_hidden(path.relative_to(base)) or str(path) in known:
                continue
            with suppress(FileNotFoundError):
                about = path.stat()
                files.append(FoundFile(str(path), about.st_mtime_ns // 1_000_000, about.st_size))
    return sorted(files, key=lambda file: (file.at, file.path))
