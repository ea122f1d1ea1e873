"""Put a new version of a snapshot in place: written beside the others, then made the current one.

Versions from object stores are kept on this machine: fetched once, verified, then mapped by all.

    cache/
      c3b8e0f2d94a6157/          a version, by the beginning of its digest
      c3b8e0f2d94a6157.lock      held by the process that fetches it; the others wait

It lies in HEADGATE_CACHE, or in ~/.cache/headgate/snapshots, and may be removed when nothing runs. Versions
that were not used for an hour go when it grows above HEADGATE_CACHE_GB, the longest unused first.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.core.arguments import place_of
from headgate.core.machine import cache_home, force
from headgate.core.snapshot import MANIFEST, add_to_manifest, check_place, check_whole, digest_of
from headgate.core.versions.current import (
    CURRENT,
    Named,
    named_after,
    number_of,
    put_current,
    read_current,
    version_names,
)
from headgate.core.versions.stores import MOST, PLACE, Address, Store, is_stored, shown
from headgate.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_MOST_GB = 50.0
_RECENT = 3600.0


def cache_place() -> Path:
    """Return the directory of the cache, which is this user's alone."""
    chosen = os.environ.get(PLACE)
    wanted = Path(chosen) if chosen else cache_home() / "snapshots"
    for path in (wanted, Path(tempfile.gettempdir()) / f"headgate-{os.getuid()}" / "snapshots"):
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            # Workers often have no home.
            continue
        if os.access(path, os.W_OK):
            return path
    raise SnapshotError(f"{wanted} cannot be written: set {PLACE} to a directory for fetched snapshots")


def fetched(address: Address) -> Path:
    """Return the directory on this machine of the version that an address names."""
    name = str(address.name)
    path = kept_as(name)
    if not (path / MANIFEST).is_file():
        with holding(path):
            if not (path / MANIFEST).is_file():
                _fetch(Store(address), name, path)
                make_room(path.parent, path)
    with suppress(OSError):
        os.utime(path)
    return path


def kept_as(name: str) -> Path:
    """Return where a version is kept."""
    return cache_place() / name.rpartition("-")[2]


def _fetch(store: Store, name: str, path: Path) -> None:
    """Copy a version beside its place, verify every byte, and rename it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        beside.mkdir()
        store.fetch(name, beside)
        check_whole(beside)
        take(beside, path)
    except SnapshotError as error:
        why = str(error).replace(str(beside), f"{store.shown}/{name}")
        advice = " as it arrived; try again, or compile it again"
        raise SnapshotError(why.replace("; compile it again", advice)) from None
    except OSError as error:
        raise SnapshotError(
            f"snapshot {store.shown} cannot be kept in {path.parent}: {error.strerror}; make room there, or "
            f"set {PLACE} to another directory"
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def take(beside: Path, path: Path) -> None:
    """Have a directory in the cache under its name; refuses one that has another digest than its name."""
    digest = digest_of(beside)
    if not digest.startswith(path.name):
        raise SnapshotError(
            f"snapshot {beside} is damaged: its digest is {digest[:16]}, not {path.name}; compile it again"
        )
    # What is there without a manifest is being removed.
    shutil.rmtree(path, ignore_errors=True)
    beside.rename(path)


@contextmanager
def holding(path: Path) -> Iterator[None]:
    """Keep other processes from putting something there; the system lets go if the process dies."""
    with path.with_name(f"{path.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make_room(cache: Path, keep: Path) -> None:
    """Remove versions that were not used lately, if all together are too large."""
    most = _most() * 2**30
    sizes: list[tuple[float, int, Path]] = []
    for each in cache.iterdir():
        with suppress(OSError):
            if each.is_dir() and not each.name.startswith("."):
                size = sum(file.stat().st_size for file in each.rglob("*") if file.is_file())
                sizes.append((each.stat().st_mtime, size, each))
    total = sum(size for _, size, _ in sizes)
    for used, size, each in sorted(sizes):
        if total <= most:
            return
        if each != keep and used < time.time() - _RECENT:
            # The manifest first: what has none is fetched again.
            (each / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(each, ignore_errors=True)
            total -= size


def _most() -> float:
    limit = os.environ.get(MOST)
    try:
        return _MOST_GB if limit is None else float(limit)
    except ValueError:
        raise SnapshotError(f"{MOST} is {limit!r}: give a number of gigabytes") from None


def check_output(path: str | os.PathLike[str]) -> None:
    """Refuse a place for a snapshot where something else is, and a store that cannot be reached."""
    if is_stored(path):
        Store(_address(path)).check_place()
    else:
        check_place(place_of(path))


def _address(path: str | os.PathLike[str]) -> Address:
    address = Address.of(os.fspath(path))
    if address.name is not None:
        raise SnapshotError(
            f"{shown(str(address))} is a version of a snapshot, which never changes: give "
            f"{shown(address.base)}"
        )
    return address


@contextmanager
def new_version(path: str | os.PathLike[str], changes: Mapping[str, Any] | None = None) -> Iterator[Path]:
    """Give a place to write a snapshot to; at the end of the body it is the version that counts.

    `changes` is the position of the log of changes that it contains. Older versions stay, for those who read
    them. One that has the content of the current one is not kept twice. If the body fails, nothing changes.
    """
    if is_stored(path):
        store = Store(_address(path))
        store.check_place()
        folder, put = cache_place(), partial(_send, store)
        what, advice = f"{store.shown} cannot be written by way of {folder}", "make room there"
    else:
        folder = Path(os.path.abspath(place_of(path)))  # noqa: PTH100 -- resolve() would not name what people gave
        check_place(folder)
        put = partial(_put, folder)
        what, advice = f"{folder} cannot be written", "choose another place"
    staged = folder / f".version-{threading.get_ident()}.{os.getpid()}.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(staged, ignore_errors=True)
        yield staged
        if changes is not None:
            add_to_manifest(staged, {"changes": dict(changes)})
        put(staged)
    except OSError as error:
        raise SnapshotError(f"snapshot {what}: {error}; {advice}") from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        with suppress(OSError):
            # Only if nothing was ever written here.
            folder.rmdir()


def _send(store: Store, staged: Path) -> None:
    """Send a version to a store, and keep it as if it had been fetched."""
    digest = digest_of(staged)
    named = store.find_current()
    if named is None or named.digest != digest or store.sizes(named.name) != _sizes(staged):
        named = named_after(digest, store.names())
        store.send(staged, named.name)
        store.put_current(named)
    path = kept_as(named.name)
    with holding(path):
        if not (path / MANIFEST).is_file():
            take(staged, path)
            make_room(path.parent, path)


def _sizes(path: Path) -> dict[str, int]:
    files = (file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path)): file.stat().st_size for file in files}


def _put(path: Path, staged: Path) -> None:
    digest = digest_of(staged)
    if _has(path, digest):
        return
    named = named_after(digest, version_names(path))
    staged.rename(path / named.name)
    force(path)
    put_current(path, named)
    if (path / MANIFEST).is_file():
        _remove_unversioned(path)


def _has(path: Path, digest: str) -> bool:
    """Tell whether the current version has a digest, and every byte of it."""
    try:
        named: Named | None = read_current(path)
        if named is None or named.digest != digest:
            return False
        check_whole(path / named.name, digest)
    except SnapshotError:
        return False
    return True


def _remove_unversioned(path: Path) -> None:
    """Remove a snapshot that lay here before there were versions; who has mapped it keeps its pages."""
    for each in path.iterdir():
        if each.name == CURRENT or number_of(each.name) or each.name.startswith("."):
            continue
        if each.is_dir():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)
