"""Put a new version of a snapshot in place: written beside the others, then made the current one."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.core.machine import force
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
from headgate.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@contextmanager
def new_version(path: Path, changes: Mapping[str, Any] | None = None) -> Iterator[Path]:
    """Give a place to write a snapshot to; at the end of the body it is the version that counts.

    `changes` is the position of the log of changes that it contains. Older versions stay, for those who read
    them. One that has the content of the current one is not kept twice. If the body fails, nothing changes.
    """
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
