"""A disk that loses power: writes that were not synced are dropped, torn, or there in another order.

What SQLite writes goes to real files, so that it runs as ever. Beside that, the image of each file as a
disk would have it is kept: what was synced, and what came since. `lose_power` writes such images to another
directory, with a random part of what was not synced.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

if TYPE_CHECKING:
    import random

SECTOR = 512
"""Bytes that a disk writes whole or not at all."""


class _Image:
    """One file: what is on disk for sure, and what was written since."""

    def __init__(self) -> None:
        self.synced = bytearray()
        self.pending: list[tuple[int, bytes]] = []
        """Writes, by offset; an offset of -1 is a new length."""

    def write(self, offset: int, data: bytes) -> None:
        self.pending.append((offset, data))

    def sync(self) -> None:
        for offset, data in self.pending:
            _apply(self.synced, offset, data)
        self.pending.clear()

    def after_loss(self, chance: random.Random) -> bytes:
        found = bytearray(self.synced)
        survived = [each for each in self.pending if chance.random() < 0.5]
        chance.shuffle(survived)
        for offset, data in survived:
            if offset >= 0 and len(data) > SECTOR and chance.random() < 0.5:
                # Torn: some sectors of it are there.
                for begin in range(0, len(data), SECTOR):
                    if chance.random() < 0.5:
                        _apply(found, offset + begin, data[begin : begin + SECTOR])
                continue
            _apply(found, offset, data)
        return bytes(found)


def _apply(image: bytearray, offset: int, data: bytes) -> None:
    if offset < 0:
        length = int.from_bytes(data, "little")
        del image[length:]
        image.extend(bytes(length - len(image)))
        return
    if len(image) < offset + len(data):
        image.extend(bytes(offset + len(data) - len(image)))
    image[offset : offset + len(data)] = data


class _File(apsw.VFSFile):
    """A file whose writes are noted."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._disk = disk
        self._image = disk.image(Path(path).name)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 -- its name in SQLite
        with self._disk.guard:
            self._image.write(offset, bytes(data))
        super().xWrite(data, offset)
        self._disk.tick()

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        with self._disk.guard:
            self._image.write(-1, newsize.to_bytes(8, "little"))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        # Power may go before the sync is done, and after it.
        self._disk.tick()
        super().xSync(flags)
        with self._disk.guard:
            self._image.sync()


class Disk(apsw.VFS):
    """A virtual file system, by the name of which a database is opened."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.guard = threading.RLock()
        self._images: dict[str, _Image] = {}
        self.on_write: Any = lambda: None
        """Is called at each write and sync: where power may be lost."""
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> _File:  # noqa: N802
        return _File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        with self.guard:
            self._images.pop(Path(filename).name, None)
        super().xDelete(filename, syncdir)

    def image(self, name: str) -> _Image:
        """Return the image of a file."""
        with self.guard:
            return self._images.setdefault(name, _Image())

    def tick(self) -> None:
        """Let whoever tests lose power here."""
        self.on_write()

    def lose_power(self, target: Path, chance: random.Random) -> None:
        """Write what a disk might have if power were lost now."""
        target.mkdir(parents=True, exist_ok=True)
        with self.guard:
            for name, image in self._images.items():
                if not name.endswith("-shm"):
                    (target / name).write_bytes(image.after_loss(chance))
