"""Put a new version of a snapshot in place: written beside the others, then made the current one."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.core.arguments import place_of
from headgate.core.machine import force
from headgate.core.snapshot import MANIFEST, add_to_manifest, check_place, check_whole, digest_of
from headgate.core.versions.cache import cache_place, holding, kept_as, make_room, take
from headgate.core.versions.current import (
    CURRENT,
    Named,
    named_after,
    number_of,
    put_current,
    read_current,
    version_names,
)
from headgate.core.versions.stores import Address, Store, is_stored, shown
from headgate.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def check_output(path: str | os.PathLike[str]) -> None:
    """Refuse a place for a snapshot where something else is, and a store that cannot be reached."""
    if is_stored(path):
        Store(_address(path)).check_place()
    else:
        check_place(place_of(path))


def _address(given: str | os.PathLike[str]) -> Address:
    address = Address.of(os.fspath(given))
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
    writing = _stored_version if is_stored(path) else _version
    with writing(path, changes) as place:
        yield place


@contextmanager
def _version(given: str | os.PathLike[str], changes: Mapping[str, Any] | None) -> Iterator[Path]:
    path = place_of(given)
    path = Path(os.path.abspath(path))  # noqa: PTH100 -- resolve() would not name what people gave
    check_place(path)
    staged = path / f".version-{threading.get_ident()}.{os.getpid()}.new"
    try:
        path.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(staged, ignore_errors=True)
        yield staged
        if changes is not None:
            add_to_manifest(staged, {"changes": dict(changes)})
        _put(staged, path)
    except OSError as error:
        raise SnapshotError(f"snapshot {path} cannot be written: {error}; choose another place") from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        with contextlib.suppress(OSError):
            # Only if nothing was ever written here.
            path.rmdir()


@contextmanager
def _stored_version(given: str | os.PathLike[str], changes: Mapping[str, Any] | None) -> Iterator[Path]:
    """Write a version here, send it to a store, and keep it as if it had been fetched."""
    store = Store(_address(given))
    store.check_place()
    cache = cache_place()
    staged = cache / f".version-{threading.get_ident()}.{os.getpid()}.new"
    try:
        shutil.rmtree(staged, ignore_errors=True)
        yield staged
        if changes is not None:
            add_to_manifest(staged, {"changes": dict(changes)})
        _send(staged, store)
    except OSError as error:
        raise SnapshotError(
            f"snapshot {store.shown} cannot be written by way of {cache}: {error}; make room there"
        ) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _send(staged: Path, store: Store) -> None:
    digest = digest_of(staged)
    named = store.find_current()
    if named is None or named.digest != digest or store.sizes(named.name) != _sizes(staged):
        named = named_after(digest, store.names())
        store.send(staged, named.name)
        store.put_current(named)
    place = kept_as(named.name)
    with holding(place):
        if not (place / MANIFEST).is_file():
            take(staged, place)
            make_room(place.parent, place)


def _sizes(place: Path) -> dict[str, int]:
    files = (file for file in place.rglob("*") if file.is_file())
    return {str(file.relative_to(place)): file.stat().st_size for file in files}


def _put(staged: Path, path: Path) -> None:
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
