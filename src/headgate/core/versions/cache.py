"""Versions of snapshots from object stores, kept on this machine: fetched once, verified, then mapped by all.

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
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.core.machine import cache_home
from headgate.core.snapshot import MANIFEST, check_whole, digest_of
from headgate.core.versions.stores import MOST, PLACE, Address, Store
from headgate.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_GB = 50.0
_RECENT = 3600.0


def cache_place() -> Path:
    """Return the directory of the cache, which is this user's alone."""
    given = os.environ.get(PLACE)
    wanted = Path(given) if given else cache_home() / "snapshots"
    for place in (wanted, Path(tempfile.gettempdir()) / f"headgate-{os.getuid()}" / "snapshots"):
        try:
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            # Workers often have no home.
            continue
        if os.access(place, os.W_OK):
            return place
    raise SnapshotError(f"{wanted} cannot be written: set {PLACE} to a directory for fetched snapshots")


def fetched(address: Address) -> Path:
    """Return the directory on this machine of the version that an address names."""
    name = str(address.name)
    place = kept_as(name)
    if not (place / MANIFEST).is_file():
        with holding(place):
            if not (place / MANIFEST).is_file():
                _fetch(Store(address), name, place)
                make_room(place.parent, place)
    with suppress(OSError):
        os.utime(place)
    return place


def kept_as(name: str) -> Path:
    """Return where a version is kept."""
    return cache_place() / name.rpartition("-")[2]


def _fetch(store: Store, name: str, place: Path) -> None:
    """Copy a version beside its place, verify every byte, and rename it."""
    beside = place.with_name(f".{place.name}.{os.getpid()}.new")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        beside.mkdir()
        store.fetch(name, beside)
        check_whole(beside)
        take(beside, place)
    except SnapshotError as error:
        why = str(error).replace(str(beside), f"{store.shown}/{name}")
        advice = " as it arrived; try again, or compile it again"
        raise SnapshotError(why.replace("; compile it again", advice)) from None
    except OSError as error:
        raise SnapshotError(
            f"snapshot {store.shown} cannot be kept in {place.parent}: {error.strerror}; make room there, or "
            f"set {PLACE} to another directory"
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def take(beside: Path, place: Path) -> None:
    """Have a directory in the cache under its name; refuses one that has another digest than its name."""
    digest = digest_of(beside)
    if not digest.startswith(place.name):
        raise SnapshotError(
            f"snapshot {beside} is damaged: its digest is {digest[:16]}, not {place.name}; compile it again"
        )
    # What is there without a manifest is being removed.
    shutil.rmtree(place, ignore_errors=True)
    beside.rename(place)


@contextmanager
def holding(place: Path) -> Iterator[None]:
    """Keep other processes from putting something there; the system lets go if the process dies."""
    with place.with_name(f"{place.name}.lock").open("w") as file:
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
    given = os.environ.get(MOST)
    try:
        return _MOST_GB if given is None else float(given)
    except ValueError:
        raise SnapshotError(f"{MOST} is {given!r}: give a number of gigabytes") from None
