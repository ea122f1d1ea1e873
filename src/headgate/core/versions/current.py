"""Which version of a snapshot counts: a small file names it.

    snapshot/
      current                       names one of the versions
      000001-9f2c41d0a7b1e6c3/      a version: a directory that is written once and never changed
      000002-c3b8e0f2d94a6157/      its number, and the beginning of the digest of its manifest

A new version is written whole, then `current` is replaced by a rename. A reader asks `current` once and opens
what it names, so it finds the old version or the new one, and never a mixture. A place without `current` is
one version by itself: snapshots inside others, and those that were written before there were versions.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from headgate.core.machine import put_file
from headgate.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CURRENT = "current"
FORMAT = "headgate-current"
VERSION = 1
NAME = re.compile(r"(\d{6,})-[0-9a-f]{16}")
_HEAD = f'{{"format": "{FORMAT}"'
_TRIES = 10
"""How often a snapshot is opened whose versions are removed at the same time."""
_Read = TypeVar("_Read")


class Named(NamedTuple):
    """A version: the name of its directory, and the digest of its manifest."""

    name: str
    digest: str


def named_after(digest: str, others: Iterable[str]) -> Named:
    """Name a new version; its number comes after those of the others.

    >>> named_after("9f2c41d0a7b1e6c3" * 4, ["000001-c3b8e0f2d94a6157"]).name
    '000002-9f2c41d0a7b1e6c3'
    """
    last = max(map(number_of, others), default=0)
    return Named(f"{last + 1:06d}-{digest[:16]}", digest)


def number_of(name: str) -> int:
    """Return the number of a version; 0 if the name is none of a version.

    >>> number_of("000002-9f2c41d0a7b1e6c3"), number_of("filters")
    (2, 0)
    """
    match_ = NAME.fullmatch(name)
    return 0 if match_ is None else int(match_[1])


def text_of(named: Named) -> bytes:
    """Write what `current` holds."""
    about = {"format": FORMAT, "version": VERSION, "name": named.name, "digest": named.digest}
    return (json.dumps(about) + "\n").encode()


def read_text(text: bytes, path: str) -> Named:
    """Read what `current` holds; `place` is the snapshot's."""
    if not text.startswith(_HEAD.encode()):
        raise SnapshotError(f"snapshot {path} is damaged: its file {CURRENT} names no version; {_AGAIN}")
    try:
        about = json.loads(text)
    except ValueError:
        about = {}
    if about.get("version", VERSION) != VERSION:
        raise SnapshotError(
            f"snapshot {path} has versions of format {about['version']}, and this Headgate reads {VERSION}: "
            "compile it to another place with this Headgate, or use the one that wrote it"
        )
    named = Named(str(about.get("name")), str(about.get("digest")))
    if not number_of(named.name):
        raise SnapshotError(f"snapshot {path} is damaged: its file {CURRENT} names no version; {_AGAIN}")
    return named


_AGAIN = "compile it again"


def read_current(path: Path) -> Named | None:
    """Tell which version counts; None if the place has no versions."""
    try:
        text = (path / CURRENT).read_bytes()
    except OSError:
        return None
    return read_text(text, str(path))


def is_versioned(path: Path) -> bool:
    """Tell whether a directory has versions of a snapshot, sound or not."""
    try:
        with (path / CURRENT).open("rb") as file:
            found = file.read(len(_HEAD)) == _HEAD.encode()
    except OSError:
        found = False
    return found or bool(version_names(path))


def version_names(path: Path) -> list[str]:
    """List the versions at a place, the oldest first."""
    try:
        names = [each.name for each in os.scandir(path) if NAME.fullmatch(each.name) and each.is_dir()]
    except OSError:
        return []
    return sorted(names, key=lambda name: (number_of(name), name))


def resolved(path: Path) -> Path:
    """Return the directory that counts at a place: it does not change, whatever is put there later."""
    path = Path(path)
    named = read_current(path)
    if named is None:
        return path
    version = path / named.name
    if not version.is_dir():
        raise SnapshotError(
            f"snapshot {path} is damaged: its file {CURRENT} names {named.name}, which is not there; {_AGAIN}"
        )
    return version


def called(path: str | Path) -> str:
    """Return what people call a snapshot: its place, not the version there.

    >>> called("out/snapshot/000002-9f2c41d0a7b1e6c3"), called("out/snapshot")
    ('out/snapshot', 'out/snapshot')
    """
    before, _, last = str(path).rpartition("/")
    return before if before and number_of(last) else str(path)


def at_current(path: Path, read: Callable[[Path], _Read]) -> _Read:
    """Open the version that counts; another one, if that is removed before it is open."""
    for _ in range(_TRIES):
        version = resolved(path)
        try:
            return read(version)
        except SnapshotError:
            if resolved(path) == version:
                raise
    return read(resolved(path))


def put_current(path: Path, named: Named) -> None:
    """Have a version count: at once, and on the disk before anything rests on it."""
    put_file(path / CURRENT, text_of(named))
