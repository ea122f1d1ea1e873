"""Snapshots that a stream uses, and versions of them: a snapshot with the changes since, up to a number.

given     what `compile` wrote, where the settings say
base      what batches use: the given one, or that with many changes folded in
version   the base, and the segments of the log up to a number

Snapshots are kept in the stream's state by hard links: replacing or pruning the original harms nobody.
Changes are read by one function (`operations`), done by one (`live`) and in one order, so all answer alike.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from headgate.contents.registry import kind_at
from headgate.core.machine import force, force_all, naming
from headgate.core.snapshot import MANIFEST, digest_of
from headgate.core.versions.current import CURRENT
from headgate.core.versions.stores import Address, Store, is_stored, located
from headgate.errors import SnapshotError, TableError
from headgate.runtime.engines import Runtime
from headgate.runtime.operations import read_change
from headgate.runtime.state import RESTORE, damaged

_TRIES = 10
Stamp = tuple[object, ...]


def stamp_of(address: str) -> Stamp | None:
    """Return what changes when a snapshot is replaced, and costs little to ask for."""
    if is_stored(address):
        return tuple(Store(Address.of(address)).current())
    path = Path(address)
    for name in (CURRENT, MANIFEST):
        with suppress(OSError):
            about = (path / name).stat()
            return about.st_ino, about.st_mtime_ns
    return None


class Snapshots:
    """The directory of snapshots in use, each named by its digest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for unfinished in folder.glob(".*"):
            shutil.rmtree(unfinished, ignore_errors=True)

    def place(self, digest: str) -> Path:
        """Return where a snapshot lies."""
        return self._folder / digest

    def adopt(self, address: str) -> str:
        """Link a snapshot into the state, whole, though others may replace it meanwhile; verify it."""
        for _ in range(_TRIES):
            path = located(address)
            digest = digest_of(path)
            if self.place(digest).exists():
                return digest
            beside = self._folder / f".{digest}.new"
            shutil.rmtree(beside, ignore_errors=True)
            try:
                with naming(beside):
                    shutil.copytree(path, beside, copy_function=_linked)
                if digest_of(path) != digest:
                    continue
                Runtime.open(beside)
                force_all(beside)
            except OSError:
                # It was replaced, or removed, while we went through it.
                if digest_of(located(address)) == digest:
                    raise
                continue
            beside.rename(self.place(digest))
            force(self._folder)
            return digest
        raise SnapshotError(f"snapshot {address} is replaced again and again: wait until it is compiled")

    def save(self, engines: Runtime) -> str:
        """Write live subscriptions as a snapshot of their own."""
        beside = self._folder / ".folded"
        engines.save(beside, source={"folded": "changes of a stream"})
        digest = digest_of(beside)
        if self.place(digest).exists():
            shutil.rmtree(beside)
        else:
            force_all(beside)
            beside.rename(self.place(digest))
            force(self._folder)
        return digest

    def drop(self, digest: str) -> None:
        """Remove one, to be adopted anew."""
        shutil.rmtree(self.place(digest), ignore_errors=True)

    def forget(self, keep: set[str]) -> None:
        """Remove all but some; who has mapped one keeps its pages."""
        for path in self._folder.iterdir():
            if path.name not in keep and not path.name.startswith("."):
                shutil.rmtree(path, ignore_errors=True)


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copy2(source, target)


class Version(NamedTuple):
    """The subscriptions at one moment."""

    snapshot: str
    """A directory that does not change."""
    since: int
    """The version of the log that it holds already."""
    version: int
    """The version that is meant."""
    log: str
    """The directory of the log."""
    owner: str
    """The state that it is of: another one may have had the same place."""

    @property
    def place(self) -> str:
        """Return what it is called in messages."""
        return self.snapshot

    def open(self) -> Runtime:
        """Return the subscriptions: those of the last call, with what is new, if that will do."""
        # Taken out: of one that did not catch up it is not known how far it came.
        held = _held.pop(self.snapshot, None)
        if held is None or held.at.version > self.version or held.at.lineage != self.lineage:
            # At most one is kept. The driver has verified the snapshot.
            _held.clear()
            held = _Held(self._replace(version=self.since), Runtime.open(Path(self.snapshot), verify=False))
        catch_up(held.engines, Path(self.snapshot), Path(self.log), held.at.version, self.version)
        _held[self.snapshot] = _Held(self, held.engines)
        return held.engines

    @property
    def lineage(self) -> tuple[int, str]:
        """Return what versions share of which one goes on from the other."""
        return self.since, self.owner


class _Held(NamedTuple):
    at: Version
    engines: Runtime


_held: dict[str, _Held] = {}


def catch_up(engines: Runtime, snapshot: Path, log: Path, have: int, want: int) -> None:
    """Apply the versions of a log after one, up to another."""
    dialect = default_dialect(snapshot)
    for version in range(have + 1, want + 1):
        for change in read_segment(log, version):
            engines.apply(read_change(change, dialect))


def segment(log: Path, version: int) -> Path:
    """Name the file of a version."""
    return log / f"{version:010d}.jsonl"


def read_segment(log: Path, version: int) -> list[dict[str, Any]]:
    """Read the changes of a version."""
    return _segment_rows(segment(log, version))[1:]


def read_head(log: Path, version: int) -> dict[str, Any]:
    """Read what the first line of a version says about it."""
    return _segment_rows(segment(log, version))[0]


def _segment_rows(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_bytes().split(b"\n")
        rows: list[dict[str, Any]] = [json.loads(line) for line in lines[:-1]]
        if not lines[-1] and rows[0]["changes"] == len(rows) - 1:
            return rows
    except FileNotFoundError:
        raise TableError(f"{path} is missing: {RESTORE}") from None
    except (ValueError, LookupError, TypeError):
        raise damaged(path) from None
    raise damaged(path)


def default_dialect(snapshot: Path) -> str:
    """Return the dialect of filters that name none: the first of the snapshot's content room."""
    return kind_at(snapshot).dialects[0]
