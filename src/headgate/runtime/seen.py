"""Ids that were seen within the window: as hashes in small files, which workers map.

Each batch leaves one file, sorted. Eight files of about one size become one, so there are few, however long
the window is. Beside each hash is the second in which its batch was pinned: what is older than the window
counts no more, and a file of which that is true of all is removed.

A hash has 64 bits. Among a hundred million ids the chance that one more is taken for another of them is one
in two hundred thousand million.
"""

from __future__ import annotations

import io
import re
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.machine import put_file
from headgate.core.snapshot import HEADS
from headgate.runtime.state import damaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from headgate.core.arrays import Bools, Words
    from headgate.core.event import Id

FAN = 8
"""How many files of one size become one."""
_ADVICE = (
    "restore the state from a copy, or remove the file; then events of the batches that its name tells are "
    "matched again if they come again"
)
_NAME = re.compile(r"(\d+)-(\d+)\.npy\Z")


def hash_ids(ids: Iterable[Id]) -> Words:
    """Hash ids; 7 and "7" are two.

    >>> len(set(hash_ids([7, "7", "a", 7]).tolist()))
    3
    """
    digests = b"".join(
        blake2b(f"{type(each).__name__[0]}{each}".encode(), digest_size=8).digest() for each in ids
    )
    return np.frombuffer(digests, np.uint64)


def found_in(hashes: Words, files: Sequence[str], oldest: int) -> Bools:
    """Tell which hashes are in files, with a second that is `oldest` or later. For workers."""
    seen = np.zeros(len(hashes), bool)
    for file in files:
        about = Path(file).stat()
        table = _mapped(file, about.st_ino, about.st_mtime_ns)
        if not table.shape[1]:
            continue
        column = np.searchsorted(table[0], hashes)
        column[column == table.shape[1]] = 0
        seen |= (table[0][column] == hashes) & (table[1][column] >= oldest)
    return seen


@lru_cache(maxsize=256)
def _mapped(file: str, _inode: int, _written: int) -> Words:
    # Another state may have had a file of this name here, in the life of the worker.
    return _load(Path(file), mapped=Path(file).stat().st_size > 1 << 16)


class _File(NamedTuple):
    first: int
    last: int
    newest: int
    """The last second in it."""
    path: Path


class SeenIds:
    """The files of committed batches; the driver's side."""

    def __init__(self, folder: Path, last: int) -> None:
        self._folder = folder
        self._files: list[_File] = []
        named = sorted(_place(path) for path in folder.glob("*.npy"))
        for first, end, path in sorted(named, key=lambda each: (each[0], -each[1])):
            if self._files and end <= self._files[-1].last:
                # A merged file was put in place, and its parts were not yet removed.
                path.unlink()
            elif end <= last:
                self._files.append(_File(first, end, _newest(_load(path)), path))

    def paths(self) -> tuple[str, ...]:
        """List the files for workers."""
        return tuple(str(file.path) for file in self._files)

    def note(self, batch: int, hashes: Words, second: int) -> None:
        """Write the ids of a batch that is not yet committed; again, if it is done again."""
        table = np.empty((2, len(hashes)), np.uint64)
        table[0], table[1] = np.sort(hashes), second
        _save(self._folder / f"{batch}-{batch}.npy", table)

    def add(self, batch: int, second: int, oldest: int) -> None:
        """Count a noted batch in, since it is committed; forget what is older than the window."""
        path = self._folder / f"{batch}-{batch}.npy"
        if not path.exists() or any(file.last >= batch for file in self._files):
            return
        self._files.append(_File(batch, batch, second, path))
        for file in [file for file in self._files if file.newest < oldest]:
            self._files.remove(file)
            file.path.unlink(missing_ok=True)
        while (width := self._mergeable()) is not None:
            self._merge(width, oldest)

    def _mergeable(self) -> int | None:
        """Find how many files at the end are of about one size, if they are enough to become one."""
        sizes = [file.last - file.first + 1 for file in self._files[-FAN:]]
        return FAN if len(sizes) == FAN and max(sizes) < FAN * min(sizes) else None

    def _merge(self, width: int, oldest: int) -> None:
        parts = self._files[-width:]
        table: NDArray[Any] = np.concatenate([_load(part.path) for part in parts], axis=1)
        table = table[:, table[1] >= oldest]
        # Of one id only the last time counts.
        table = table[:, np.lexsort((table[1], table[0]))]
        table = table[:, np.append(table[0][1:] != table[0][:-1], True)[: table.shape[1]]]
        first, last = parts[0].first, parts[-1].last
        path = self._folder / f"{first}-{last}.npy"
        _save(path, table)
        self._files[-width:] = [_File(first, last, max(part.newest for part in parts), path)]
        for part in parts:
            part.path.unlink()


def _place(path: Path) -> tuple[int, int, Path]:
    match_ = _NAME.search(path.name)
    assert match_ is not None, path
    return int(match_[1]), int(match_[2]), path


def _newest(table: Words) -> int:
    return int(table[1].max()) if table.shape[1] else 0


def _load(path: Path, *, mapped: bool = False) -> Words:
    try:
        with HEADS:
            table: Words = np.load(path, mmap_mode="r" if mapped else None)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, EOFError, TypeError, SyntaxError):
        raise damaged(path, _ADVICE) from None
    if table.ndim != 2 or table.shape[0] != 2 or table.dtype != np.uint64:
        raise damaged(path, _ADVICE)
    return table


def _save(path: Path, table: Words) -> None:
    data = io.BytesIO()
    np.save(data, table)
    put_file(path, data.getvalue())
