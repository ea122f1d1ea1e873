"""Snapshots that a stream uses, kept in its state by hard links: replacing the original harms nobody.

given     what `compile` wrote, where the settings say
base      what batches use: the given one, or that with many changes folded in
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from headgate.core.snapshot import MANIFEST, open_snapshot, room_of
from headgate.errors import SnapshotError
from headgate.runtime.pieces import Pieces

if TYPE_CHECKING:
    from pathlib import Path

_TRIES = 10
Stamp = tuple[int, int]


def digest_of(place: Path) -> str:
    """Return the checksum that tells a snapshot from others."""
    return open_snapshot(place, room_of(place), verify=False).digest


def stamp_of(place: Path) -> Stamp | None:
    """Return what changes when a snapshot is replaced, and costs nothing to ask for."""
    try:
        found = (place / MANIFEST).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


class Snapshots:
    """The directory of snapshots in use, each named by its digest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for unfinished in folder.glob(".*"):
            shutil.rmtree(unfinished, ignore_errors=True)

    def place(self, digest: str) -> Path:
        """Return where a snapshot lies."""
        return self._folder / digest

    def adopt(self, given: Path) -> str:
        """Link a snapshot into the state, whole, though others may replace it meanwhile; verify it."""
        for _ in range(_TRIES):
            digest = digest_of(given)
            if self.place(digest).exists():
                return digest
            beside = self._folder / f".{digest}.new"
            shutil.rmtree(beside, ignore_errors=True)
            try:
                shutil.copytree(given, beside, copy_function=_linked)
                if digest_of(given) != digest:
                    continue
                Pieces.open(beside)
            except (OSError, shutil.Error):
                # It was replaced while we went through it.
                if digest_of(given) == digest:
                    raise
                continue
            beside.rename(self.place(digest))
            return digest
        raise SnapshotError(f"snapshot {given} is replaced again and again: wait until it is compiled")

    def save(self, pieces: Pieces) -> str:
        """Write live subscriptions as a snapshot of their own."""
        beside = self._folder / ".folded"
        pieces.save(beside, source={"folded": "changes of a stream"})
        digest = digest_of(beside)
        if self.place(digest).exists():
            shutil.rmtree(beside)
        else:
            beside.rename(self.place(digest))
        return digest

    def forget(self, keep: set[str]) -> None:
        """Remove all but some; who has mapped one keeps its pages."""
        for place in self._folder.iterdir():
            if place.name not in keep and not place.name.startswith("."):
                shutil.rmtree(place, ignore_errors=True)


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copy2(source, target)
