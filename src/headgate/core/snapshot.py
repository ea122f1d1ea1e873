"""Snapshots: an index as a directory of flat arrays, written once, mapped by all.

What people name is a place with versions of such a directory (`core/versions`): whatever opens one here finds
the version that counts.

    snapshot/
      manifest.json     format, version, room, what it was built from, counts, size and sha256 of each file,
                        and the version of Headgate that wrote it
      NAME.npy          one array each
      NAME.parquet      a table for others to read, perhaps
      NAME/             a snapshot that belongs to this one, with a manifest of its own

The manifest's first line carries the checksum of the rest of it, so every byte of every file is
covered. A snapshot is written beside its place and renamed, so a reader sees the old one or the new
one. Arrays are opened with mmap: opening costs a millisecond after the checksums, and processes on one
machine share the pages.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import threading
import time
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from headgate.core import __version__
from headgate.core.machine import force, full_at, is_full, naming
from headgate.core.rooms import FILTER_SHARDS, GRAPH_SHARDS, RANKING_SHARDS
from headgate.core.versions.current import called, is_versioned, resolved
from headgate.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

FORMAT = "headgate-snapshot"
VERSION = 2
MANIFEST = "manifest.json"
_TRIES = 10
"""How often a snapshot is read that others replace at the same time."""
_HEAD = '{"sha256": "'
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Snapshot:
    """An opened snapshot: what the manifest says, and the arrays, read-only."""

    path: Path
    room: str
    counts: Mapping[str, int]
    about: Mapping[str, Any]
    digest: str
    arrays: Mapping[str, NDArray[Any]]


def write_snapshot(
    path: Path,
    room: str,
    arrays: Mapping[str, NDArray[Any]],
    *,
    counts: Mapping[str, int],
    about: Mapping[str, Any],
    inside: Mapping[str, Callable[[Path], None]] | None = None,
    tables: Mapping[str, Callable[[Path], None]] | None = None,
) -> None:
    """Write a snapshot beside `path` and rename it into place; an older snapshot there is replaced.

    `inside` holds snapshots that belong to this one: each is called with the place where it is to be written.
    So is what writes each of the `tables`, which are files by their names.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 -- resolve() would write through a symbolic link
    check_place(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        beside.mkdir(parents=True)
        files = {f"{name}.npy": _write_array(beside / f"{name}.npy", array) for name, array in arrays.items()}
        for name, save in (*(inside or {}).items(), *(tables or {}).items()):
            save(beside / name)
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "headgate": __version__,
            "room": room,
            "counts": dict(counts),
            "about": dict(about),
            "files": files,
            "inside": {name: _read_manifest(beside / name)[1] for name in inside or {}},
            "tables": {name: _noted(beside / name) for name in tables or {}},
        }
        _write_manifest(beside / MANIFEST, manifest)
        force(beside)
        _swap(beside, path)
    except OSError as error:
        if is_full(error, path):
            raise full_at(path) from error
        raise SnapshotError(f"snapshot {path} cannot be written: {error}; choose another place") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def open_snapshot(path: Path, room: str, *, verify: bool = True) -> Snapshot:
    """Open a snapshot of a room; refuse one that is damaged, foreign or newer.

    `verify=False` skips the checksums of the arrays (their sizes are still compared): for workers that
    open what the driver has just verified.
    """
    path = resolved(path)
    return _patiently(path, lambda: _open(path, room, verify=verify))


def open_with_inside(path: Path, opened: Callable[[Path], _Read]) -> _Read:
    """Open a snapshot and those inside it, again if it was replaced meanwhile; refuses a mixture.

    `opened` opens them at the place that it is given. Afterwards the manifests inside must still be those
    that the outer one names.
    """
    path = resolved(path)

    def read() -> _Read:
        manifest, _ = _read_manifest(path)
        result = opened(path)
        if _read_manifest(path)[0] != manifest:
            raise SnapshotError(f"snapshot {path} was replaced while it was opened: open it again")
        for name, digest in manifest["inside"].items():
            if _read_manifest(path / name)[1] != digest:
                raise SnapshotError(
                    f"snapshot {path} is damaged: {name} does not belong to it; compile it again"
                )
        return result

    return _patiently(path, read)


def shard_name(number: int) -> str:
    """Return the name of a shard's directory."""
    return f"shard-{number:03}"


def shard_places(path: Path) -> list[Path]:
    """List the directories of the shards of a snapshot; one that is not cut is its own.

    Refuses shards that do not belong to it.
    """
    path = resolved(path)
    room = room_of(path)
    if room not in {GRAPH_SHARDS, RANKING_SHARDS, FILTER_SHARDS}:
        return [path]
    count = open_with_inside(path, lambda place: open_snapshot(place, room)).counts["shards"]
    return [path / shard_name(number) for number in range(count)]


def room_of(path: Path) -> str:
    """Return the room that a snapshot belongs to."""
    path = resolved(path)
    return str(_patiently(path, lambda: _read_manifest(path))[0]["room"])


def manifest_of(path: Path) -> dict[str, Any]:
    """Return what the manifest of a snapshot says; its arrays are not looked at."""
    path = resolved(path)
    return _patiently(path, lambda: _read_manifest(path))[0]


def digest_of(path: Path) -> str:
    """Return the checksum of a snapshot's manifest, which tells it from any other."""
    path = resolved(path)
    return _patiently(path, lambda: _read_manifest(path))[1]


def _patiently(path: Path, read: Callable[[], _Read]) -> _Read:
    """Read something of a snapshot, again if it was replaced meanwhile."""
    for _ in range(_TRIES):
        before = _stamp(path)
        try:
            return read()
        except SnapshotError:
            # Another process may be putting a new snapshot into place while we read the old one.
            if before is None:
                time.sleep(0.01)
            if _stamp(path) == before:
                raise
    return read()


def _open(path: Path, room: str, *, verify: bool) -> Snapshot:
    manifest, digest = _read_manifest(path)
    if manifest["room"] != room:
        raise SnapshotError(
            f"snapshot {called(path)} is a snapshot of {manifest['room']!r}, not of {room!r}: give one of "
            f"{room!r}"
        )
    arrays = {}
    for name, entry in manifest["files"].items():
        _check_file(path / name, entry, verify=verify)
        arrays[name.removesuffix(".npy")] = _map_array(path / name)
    for name, entry in manifest.get("tables", {}).items():
        _check_file(path / name, entry, verify=verify)
    return Snapshot(path, room, manifest["counts"], manifest["about"], digest, arrays)


def add_to_manifest(path: Path, more: Mapping[str, Any]) -> None:
    """Say more in the manifest of a snapshot that nobody reads yet."""
    manifest = {name: value for name, value in _read_manifest(path)[0].items() if name != "sha256"}
    _write_manifest(path / MANIFEST, {**manifest, **more})


def check_whole(path: Path, digest: str | None = None) -> None:
    """Verify every byte of a snapshot and of those inside it; `digest` is the one that it must have."""
    manifest, own_digest = _read_manifest(path)
    if digest not in {None, own_digest}:
        raise SnapshotError(
            f"snapshot {path} is damaged: its digest is {own_digest[:16]}, not {str(digest)[:16]}"
        )
    for name, entry in (manifest["files"] | manifest.get("tables", {})).items():
        _check_file(path / name, entry, verify=True)
    for name, own in manifest["inside"].items():
        check_whole(path / name, own)


def is_snapshot(path: Path) -> bool:
    """Tell whether a directory holds a snapshot, sound or not, or versions of one."""
    return (path / MANIFEST).is_file() or is_versioned(path)


def check_place(path: Path) -> None:
    """Refuse to bury something that is not a snapshot."""
    if not path.exists() or is_snapshot(path):
        return
    if path.is_dir() and all(each.name.startswith(".") for each in path.iterdir()):
        # What begins with a dot was left half written.
        return
    raise SnapshotError(f"{path} exists and is not a snapshot: choose another place, or remove it first")


def _write_array(path: Path, array: NDArray[Any]) -> dict[str, Any]:
    with naming(path), path.open("wb") as file:
        np.save(file, np.ascontiguousarray(array), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    return _noted(path)


def _noted(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": _sha256(path)}


def _write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    rest = ",\n" + json.dumps(manifest, indent=1)[1:] + "\n"
    text = f'{_HEAD}{hashlib.sha256(rest.encode()).hexdigest()}"{rest}'
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _stamp(path: Path) -> tuple[int, int] | None:
    """Tell one manifest from another that is put in its place, even with the same content."""
    try:
        about = (path / MANIFEST).stat()
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns


class _Known(NamedTuple):
    stamp: tuple[int, int]
    manifest: dict[str, Any]
    digest: str


_known: dict[Path, _Known] = {}
KNOWN, SETTLED = 64, 100_000_000
"""Manifests that are kept, and nanoseconds after which a file that is written again has another time."""


def _read_manifest(path: Path) -> tuple[dict[str, Any], str]:
    """Read a manifest, once as long as it is the same file; whoever asks must not change it."""
    place = path.absolute()
    stamp, known = _stamp(path), _known.get(place)
    if known is not None and known.stamp == stamp:
        return known.manifest, known.digest
    manifest, digest = _parse_manifest(path)
    if stamp is not None and time.time_ns() - stamp[1] > SETTLED:
        _known[place] = _Known(stamp, manifest, digest)
        while len(_known) > KNOWN:
            _known.pop(next(iter(_known)), None)
    return manifest, digest


def _parse_manifest(path: Path) -> tuple[dict[str, Any], str]:
    try:
        text = (path / MANIFEST).read_bytes()
    except OSError:
        what = f"it has no {MANIFEST}" if path.is_dir() else "it is a file"
        if not path.exists():
            what = "there is no such directory"
        raise SnapshotError(
            f"{path} is not a snapshot: {what}; give a directory that Headgate compiled"
        ) from None
    head, mark = _HEAD.encode(), len(_HEAD) + 64
    if not text.startswith(head) or text[mark : mark + 1] != b'"':
        raise SnapshotError(
            f"{path} is not a snapshot of Headgate, or its {MANIFEST} is damaged: compile it again"
        )
    digest = text[len(head) : mark].decode(errors="replace")
    if hashlib.sha256(text[mark + 1 :]).hexdigest() != digest:
        raise SnapshotError(
            f"snapshot {path} is damaged: {MANIFEST} does not have its checksum; compile it again"
        )
    manifest = json.loads(text)
    if manifest.get("format") != FORMAT:
        raise SnapshotError(
            f"{path} is not a snapshot of Headgate but of {manifest.get('format')!r}: compile it again"
        )
    if manifest["version"] != VERSION:
        raise SnapshotError(
            f"snapshot {path} has format version {manifest['version']}, and this Headgate reads {VERSION}: "
            "compile it again (headgate compile), or use the Headgate that wrote it"
        )
    return manifest, digest


def _check_file(path: Path, entry: Mapping[str, Any], *, verify: bool) -> None:
    try:
        size = path.stat().st_size
        digest = _sha256(path) if verify and size == entry["bytes"] else entry["sha256"]
    except OSError:
        raise SnapshotError(
            f"snapshot {path.parent} is damaged: {path.name} is missing; compile it again"
        ) from None
    if size != entry["bytes"]:
        raise SnapshotError(
            f"snapshot {path.parent} is damaged: {path.name} has {size} bytes instead of {entry['bytes']}; "
            "compile it again"
        )
    if digest != entry["sha256"]:
        raise SnapshotError(
            f"snapshot {path.parent} is damaged: {path.name} does not have its checksum; compile it again"
        )


HEADS = threading.Lock()
"""NumPy has Python parse the head of a file, and Python 3.11 stumbles if two threads do that at once."""


def _map_array(path: Path) -> NDArray[Any]:
    try:
        with HEADS:
            # mmap refuses to map nothing; an empty array is read instead.
            array = np.load(path, mmap_mode="r" if _has_data(path) else None, allow_pickle=False)
    except (OSError, ValueError, TypeError, SyntaxError, OverflowError, tokenize.TokenError) as error:
        raise SnapshotError(
            f"snapshot {path.parent} is damaged: {path.name} cannot be read ({error}); compile it again"
        ) from None
    array.flags.writeable = False
    return np.asarray(array)


def _has_data(path: Path) -> bool:
    with path.open("rb") as file:
        np.lib.format.read_magic(file)
        shape, _, _ = np.lib.format.read_array_header_1_0(file)
    return 0 not in shape


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _swap(beside: Path, path: Path) -> None:
    """Put the new directory in place; readers of the old one keep their mapped pages."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.old")
    shutil.rmtree(aside, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        path.rename(aside)
    try:
        beside.rename(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            aside.rename(path)
        raise
    force(path.parent)
    shutil.rmtree(aside, ignore_errors=True)
