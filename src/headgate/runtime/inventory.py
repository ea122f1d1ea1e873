"""Snapshots on disk: what they hold, who uses them, and which of them may go.

A place is a snapshot, of which there are several versions, a directory of snapshots, or the state of a
stream, which has snapshots in use. A version is in use if it is the current one, while a process has mapped
it, while the state says that the stream goes on with it, or while a link beside it leads to it. Who reads a
version in an object store is not known here.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.contents.registry import content_at
from headgate.core.snapshot import MANIFEST, is_snapshot, manifest_of
from headgate.core.versions.current import (
    CURRENT,
    is_versioned,
    number_of,
    read_current,
    resolved,
    version_names,
)
from headgate.core.versions.stores import Address, Store, is_stored
from headgate.errors import SnapshotError
from headgate.runtime.state import COMMITTED, STAGE, read_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.core.versions.current import Named


_PROCESSES = Path("/proc")
_MAPPED = re.compile(rb"^\S+ \S+ \S+ (\w+):(\w+) ([1-9]\d*) +(.*)$", re.MULTILINE)
"""A line of a process's maps: the device and the number of the file, and its path when it was opened."""
_LEFT = re.compile(r"\.(.+)\.(\d+)\.(new|old|parts)")
"""What a process writes beside its place, by its number."""
Mapped = dict[tuple[int, int] | bytes, set[int]]
"""The processes that have mapped a file, by its device and number, and by its path: not every file system
gives both the same device, and links have other paths."""


@dataclass(frozen=True)
class SnapshotInfo:
    """What is known of a snapshot without opening it."""

    path: str
    digest: str
    room: str
    content: str | None
    counts: dict[str, int]
    shards: int
    files: int
    bytes: int
    made: str
    """When, in UTC."""
    headgate: str | None
    """The version that wrote it; None if it does not say."""
    source: dict[str, Any]
    used_by: tuple[str, ...]
    damaged: str | None = None


@dataclass(frozen=True)
class Pruned:
    """What was removed, or would be, and what is kept with the reason."""

    removed: tuple[tuple[str, int], ...]
    """Places and their bytes."""
    kept: tuple[tuple[str, str], ...]

    @property
    def bytes(self) -> int:
        """Count the bytes that were removed."""
        return sum(size for _, size in self.removed)


def look_at(address: str | Path) -> list[SnapshotInfo]:
    """Describe the versions of a snapshot, those of a directory, or of a stream's state; newest first.

    Of those in a store only the manifests are fetched.
    """
    if is_stored(address):
        store = Store(Address.of(str(address)))
        current = store.current()
        return [_stored(store, name, current) for name in reversed(store.names())]
    path = Path(address)
    places = _snapshots(path)
    pinned = _pinned(path)
    mapped = _mapped()
    infos = [info_of(each, _users(each, pinned, mapped)) for each in places]
    if is_versioned(path):
        return infos
    return sorted(infos, key=lambda each: (each.made, each.path), reverse=True)


def prune(given: str | Path, keep: int, *, dry: bool = False) -> Pruned:
    """Remove snapshots that nothing uses, all but the newest `keep`; and what dead processes left there.

    A state is refused while its stream runs: that removes what it needs no longer by itself.
    """
    if is_stored(given):
        return _prune_stored(Store(Address.of(str(given))), keep, dry=dry)
    path = Path(given)
    if is_snapshot(path) and not is_versioned(path):
        return _removed(list(_leftovers(path.parent, path.name)), (), dry=dry)
    if not _is_state(path):
        return _prune(path, path, keep, dry=dry)
    from headgate.runtime.state import State

    with State(path).held():
        return _prune(path, path / "snapshots", keep, dry=dry)


def _prune(path: Path, folder: Path, keep: int, *, dry: bool) -> Pruned:
    kept: list[tuple[str, str]] = []
    gone: list[Path] = []
    for position, each in enumerate(look_at(path)):
        if each.used_by:
            kept.append((each.path, ", ".join(each.used_by)))
        elif position < keep:
            kept.append((each.path, "among the newest"))
        else:
            gone.append(Path(each.path))
    return _removed([*gone, *_leftovers(folder)], tuple(kept), dry=dry)


def _removed(places: list[Path], kept: tuple[tuple[str, str], ...], *, dry: bool) -> Pruned:
    sizes = [_size(each)[1] for each in places]
    for path in [] if dry else places:
        shutil.rmtree(path)
    return Pruned(tuple(zip(map(str, places), sizes, strict=True)), kept)


def _is_state(path: Path) -> bool:
    return (path / "stream.json").is_file() and (path / "snapshots").is_dir()


def _snapshots(path: Path) -> list[Path]:
    """List the snapshots of a place; refuses one without any."""
    if is_versioned(path):
        return [path / name for name in reversed(version_names(path))]
    if is_snapshot(path):
        return [path]
    if not path.is_dir():
        what = "is a file" if path.exists() else "does not exist"
        raise SnapshotError(f"{path} {what}: give a snapshot, a directory of some, or a stream's state")
    folder = path / "snapshots" if _is_state(path) else path
    places = [
        each for each in sorted(folder.iterdir()) if not each.name.startswith(".") and not each.is_symlink()
    ]
    places = [each for each in places if is_snapshot(each)]
    if not places and not _is_state(path):
        raise SnapshotError(
            f"{path} has no snapshot in it: give a snapshot, a directory of some, or a stream's state"
        )
    return places


def _pinned(path: Path) -> dict[Path, list[str]]:
    """List who uses snapshots by what the files say: a stream's state, or links beside them."""
    users: dict[Path, list[str]] = {}
    if is_versioned(path):
        named = read_current(path)
        if named is not None:
            users[(path / named.name).resolve()] = [CURRENT]
        return users
    if not _is_state(path):
        for link in path.iterdir() if not is_snapshot(path) else ():
            if link.is_symlink() and link.is_dir():
                users.setdefault(link.resolve(), []).append(f"link {link.name}")
        return users
    folder = path.resolve() / "snapshots"
    base = read_record(path / "base.json")
    if base is not None:
        users.setdefault(folder / base["snapshot"], []).append("the stream")
    for file in sorted((path / "batches").glob("[0-9]*.json")):
        record = read_record(file)
        if record is not None and record[STAGE] != COMMITTED and "snapshot" in record:
            users.setdefault(folder / record["snapshot"], []).append(f"batch {int(file.stem)}")
    return users


def _mapped() -> Mapped:
    """List the files that processes have mapped; none where that cannot be seen."""
    mapped: Mapped = {}
    for folder in _PROCESSES.glob("[0-9]*"):
        try:
            text = (folder / "maps").read_bytes()
        except OSError:
            # It ended, or is another user's.
            continue
        for major, minor, number, path in _MAPPED.findall(text):
            node = os.makedev(int(major, 16), int(minor, 16)), int(number)
            for key in (node, path):
                mapped.setdefault(key, set()).add(int(folder.name))
    return mapped


def _users(path: Path, pinned: dict[Path, list[str]], mapped: Mapped) -> tuple[str, ...]:
    users = list(pinned.get(path.resolve(), ()))
    processes: set[int] = set()
    for file in path.resolve().rglob("*"):
        about = file.stat()
        for key in ((about.st_dev, about.st_ino), os.fsencode(file)):
            processes |= mapped.get(key, set())
    return (*users, *(f"process {number}" for number in sorted(processes - {os.getpid()})))


def info_of(path: Path, users: tuple[str, ...]) -> SnapshotInfo:
    """Describe a snapshot; its arrays are not looked at."""
    files, size = _size(path)
    try:
        version = resolved(path)
        made = datetime.fromtimestamp((version / MANIFEST).stat().st_mtime, UTC).isoformat(timespec="seconds")
    except (OSError, SnapshotError):
        version, made = path, ""
    try:
        manifest = manifest_of(version)
    except SnapshotError as error:
        return SnapshotInfo(
            str(path), "", "", None, {}, 0, files, size, made, None, {}, users, damaged=str(error)
        )
    try:
        content: str | None = content_at(version)
    except SnapshotError:
        # A network of views, or boxes of intervals.
        content = None
    counts = dict(manifest["counts"])
    return SnapshotInfo(
        path=str(path),
        digest=manifest["sha256"],
        room=manifest["room"],
        content=content,
        shards=counts.pop("shards", 1),
        counts=counts,
        files=files,
        bytes=size,
        made=made,
        headgate=manifest.get("headgate"),
        source=dict(manifest["about"].get("source", {})),
        used_by=users,
    )


def _size(folder: Path) -> tuple[int, int]:
    """Count the files of a directory, and their bytes."""
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    return len(sizes), sum(sizes)


def _leftovers(folder: Path, name: str | None = None) -> Iterator[Path]:
    """List what processes that are gone have left half written beside snapshots."""
    for each in sorted(folder.glob(".*")):
        match_ = _LEFT.fullmatch(each.name)
        if match_ is None or not each.is_dir() or (name is not None and match_[1] != name):
            continue
        if not (_PROCESSES / match_[2]).exists() and _PROCESSES.exists():
            yield each


def _stored(store: Store, name: str, current: Named) -> SnapshotInfo:
    files = store.files(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.mkdir()
        store.fetch(name, path, only=MANIFEST)
        info = info_of(path, (CURRENT,) if name == current.name else ())
        damaged = None if info.damaged is None else info.damaged.replace(str(path), f"{store.shown}/{name}")
    made = files[MANIFEST].mtime if MANIFEST in files else None
    return replace(
        info,
        path=f"{store.shown}/{name}",
        files=len(files),
        bytes=sum(each.size for each in files.values()),
        made="" if made is None else made.astimezone(UTC).isoformat(timespec="seconds"),
        damaged=damaged,
    )


def _prune_stored(store: Store, keep: int, *, dry: bool) -> Pruned:
    """Remove versions in a store: the current one stays, and what is newer, which somebody may be sending."""
    current = store.current()
    kept: list[tuple[str, str]] = []
    gone: list[tuple[str, int]] = []
    for position, name in enumerate(reversed(store.names())):
        path = f"{store.shown}/{name}"
        if name == current.name:
            kept.append((path, CURRENT))
        elif number_of(name) > number_of(current.name):
            kept.append((path, "newer than the current one"))
        elif position < keep:
            kept.append((path, "among the newest"))
        else:
            gone.append((path, sum(store.sizes(name).values())))
            if not dry:
                store.remove(name)
    return Pruned(tuple(gone), tuple(kept))
