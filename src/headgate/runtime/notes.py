"""Spark's notes of which rows are which batch, read and checked: one that is torn or empty is refused.

offsets/N      batch N: a version, a line about it, and a line for each source: where the batch ends there
commits/N      batch N is done
sources/0/K    a version, and a line for each file that was found; K.compact has all until then
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RESTORE = "restore the state from a copy, or start with a new state and new outputs"
_VERSION = re.compile(r"v[0-9]+\Z")
_NONE = "-"
"""What stands for the end of a source that has none."""


def damaged(place: Path, advice: str = RESTORE) -> TableError:
    """Say that a file of a state is damaged, and how."""
    how = "is empty" if place.exists() and not place.stat().st_size else "is damaged"
    return TableError(f"{place} {how}: {advice}")


def read_note(place: Path, hints: tuple[str, ...] = ()) -> list[Any]:
    """Read the lines of a note, without its version; with `hints`, those that hold one of them."""
    try:
        version, *lines = place.read_text("utf-8").removesuffix("\n").split("\n")
        if hints:
            lines = [line for line in lines if any(hint in line for hint in hints)]
        found = [None if line == _NONE else json.loads(line) for line in lines]
    except ValueError:
        raise damaged(place) from None
    if not _VERSION.match(version):
        raise damaged(place)
    return found


def numbered(folder: Path) -> list[Path]:
    """List the notes of a folder, the first first."""
    return sorted(folder.glob("[0-9]*"), key=lambda each: int(each.stem))


def last_number(folder: Path) -> int:
    """Return the number of the last note, -1 if there is none."""
    return max((int(each.stem) for each in folder.glob("[0-9]*")), default=-1)


def offset_of(place: Path) -> int:
    """Return the number of the last note of files that a batch has; -1 if there is no such batch."""
    try:
        found = read_note(place)
    except FileNotFoundError:
        return -1
    if len(found) < 2 or not isinstance(found[-1], dict) or "logOffset" not in found[-1]:
        raise damaged(place)
    return int(found[-1]["logOffset"])


def files_noted(folder: Path, after: int, last: int) -> list[str]:
    """List the files of the notes after one, up to another."""
    # Others are not even read: now and then Spark writes all notes into one, with the number of the last.
    hints = tuple(f'"batchId":{each}' for each in range(after + 1, last + 1))
    found: dict[str, None] = {}
    for place in numbered(folder):
        if hints and int(place.stem) > after:
            found |= {path: None for path, number in _entries(place, hints) if after < number <= last}
    return list(found)


def paths_noted(folder: Path) -> set[str]:
    """Name all files that were ever noted."""
    return {path for place in numbered(folder) for path, _ in _entries(place)}


def count_noted(folder: Path, last: int) -> int:
    """Count the files of the notes up to one; all of them are read and checked."""
    found = {entry for place in numbered(folder) for entry in _entries(place)}
    return sum(number <= last for _, number in found)


def _entries(place: Path, hints: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
    try:
        for each in read_note(place, hints):
            yield unquote(urlsplit(each["path"]).path), int(each["batchId"])
    except (KeyError, TypeError):
        raise damaged(place) from None


def check_notes(root: Path) -> None:
    """Refuse a checkpoint whose last batch cannot be read; nobody else may be writing to it."""
    for folder in (root, *(root / each for each in ("offsets", "commits", "sources/0"))):
        # What was being written when a process died or the disk was full: Spark refuses to begin beside it.
        for left in (*folder.glob(".*.tmp"), *folder.glob(".*.tmp.crc"), *folder.glob(".*.new")):
            left.unlink(missing_ok=True)
    for name, least in (("offsets", 2), ("commits", 1)):
        number = last_number(root / name)
        if number >= 0 and len(read_note(root / name / str(number))) < least:
            raise damaged(root / name / str(number))
