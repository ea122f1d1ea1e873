"""Where tables lie, and what their files hold: checked before Spark, or anything large, is loaded."""

from __future__ import annotations

import codecs
import csv
import os
import re
from collections import Counter
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.core.event import SECOND_MARK
from headgate.core.values import fold
from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARKS = 2 * codecs.BOM_UTF8


class UnsureError(TableError):
    """Leave a table to Spark: it may be read in two ways, and what Spark does is right."""


class Format(Enum):
    """What a table's file holds, by its ending."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


ENDINGS = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSONL,
    ".csv": Format.CSV,
    ".parquet": Format.PARQUET,
}


def is_remote(path: str) -> bool:
    """Tell a URI of a file system that Spark knows from a path on this machine."""
    return "://" in path and not path.startswith("file://")


def local(path: str) -> Path:
    """Return the path of a table on this machine, also when it was given as file://."""
    return Path(path.removeprefix("file://"))


def for_reading(path: str) -> str:
    """Write a path so that Spark takes every sign of it as it is, and this machine's files for meant."""
    if is_remote(path):
        return path
    return "file://" + re.sub(r"([\\*?\[\]{}])", r"\\\1", str(local(path).absolute()))


def as_spark(place: Path) -> str:
    """Write the path of a file or folder as Spark does in the rows that it makes of files."""
    return f"file:{os.path.normpath(place.absolute())}"


def format_of(path: str) -> Format:
    """Find a table's format by its ending; a directory is known by the files in it."""
    suffix = Path(path.rstrip("/")).suffix.lower()
    if suffix in ENDINGS:
        return ENDINGS[suffix]
    inside = local(path)
    if not is_remote(path) and inside.is_dir():
        for file in sorted(inside.iterdir()):
            if file.suffix.lower() in ENDINGS and not file.name.startswith((".", "_")):
                return ENDINGS[file.suffix.lower()]
    known = ", ".join(ENDINGS)
    raise TableError(f"the format of {path} is not clear: name it with one of {known}")


def check_input(path: str) -> Format:
    """Refuse an input that is not there, before Spark starts."""
    place = local(path)
    if not is_remote(path) and not place.exists():
        raise TableError(f"{path} does not exist")
    check_links(path)
    if not is_remote(path) and place.is_file() and ":" in place.name:
        raise TableError(f"{path} has ':' in its name, which Spark cannot read: rename it")
    return format_of(path)


def check_links(path: str, *, folders: bool = False) -> None:
    """Refuse links inside a folder that lead out of it, and links to folders: Spark would follow both.

    Those to folders may lead back, so that Spark would look into them again and again; `folders` asks for
    these alone. The folder itself may be a link.
    """
    if is_remote(path) or not local(path).is_dir():
        return
    for link in _links(local(path)):
        if link.is_dir():
            raise TableError(
                f"{link} is a link to a folder, which is not followed: put the folder itself there"
            )
        if not folders and leads_out(link, path):
            raise TableError(f"{link} is a link that leads out of {path}: put the file itself there")


def leads_out(place: str | Path, folder: str) -> bool:
    """Tell whether a path inside a folder leads out of it, through links."""
    return not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(local(folder)))


def _links(place: Path) -> Iterator[Path]:
    """List the links in a folder and in those inside it, without what Spark passes over."""
    waiting = [place]
    while waiting:
        folder = waiting.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError as error:
            raise TableError(f"{folder} cannot be read: {error.strerror}") from None
        for entry in entries:
            if entry.name.startswith((".", "_")):
                continue
            if entry.is_symlink():
                yield Path(entry.path)
            elif entry.is_dir():
                waiting.append(Path(entry.path))


def check_output(path: str) -> Format:
    """Refuse an output that cannot be written or that would bury something else, before any work."""
    form = format_of(path)
    if is_remote(path):
        if form is not Format.PARQUET:
            raise TableError(
                f"{path}: a single file is written to a local path only; use a .parquet directory"
            )
        return form
    place = local(path)
    above = next(parent for parent in place.absolute().parents if parent.exists())
    if not above.is_dir():
        raise TableError(f"{path} cannot be written: {above} is not a directory")
    if place.is_dir() and (form is not Format.PARQUET or not _is_spark_output(place)):
        raise TableError(f"{path} is a directory that Headgate did not write: choose another place")
    if form is Format.PARQUET and place.is_file():
        raise TableError(f"{path} is a file and a Parquet table is a directory: choose another place")
    return form


def check_here(path: str) -> None:
    """Refuse a directory on another file system: workers map what is in it."""
    if is_remote(path):
        raise TableError(f"{path} is not on this machine: give a path that all machines see")


def check_apart(*paths: str | None) -> None:
    """Refuse a place that is named twice: an output would bury an input or another output."""
    seen: set[str] = set()
    for path in paths:
        if path is not None:
            place = path if is_remote(path) else os.path.realpath(local(path))
            if place in seen:
                raise TableError(f"{path} is named twice: give every input and output a place of its own")
            seen.add(place)


def _is_spark_output(place: Path) -> bool:
    names = [file.name for file in place.iterdir()]
    return not names or "_SUCCESS" in names


def table_files(path: str) -> list[Path]:
    """List the files of a table in the order of their names, those that readers pass over left out."""
    place = local(path)
    if place.is_file():
        return [place]
    found = [file for file in sorted(place.rglob("*")) if file.is_file()]
    hidden = (".", "_")
    return [
        file for file in found if not any(part.startswith(hidden) for part in file.relative_to(place).parts)
    ]


def check_header(path: str) -> None:
    """Refuse a header that names a column twice: Spark would rename both, and filters would see neither.

    And a second byte order mark, which Spark passes over without a word.
    """
    if is_remote(path):
        return
    place = local(path)
    found = [place] if place.is_file() else sorted(place.glob("*.csv"))
    # The others Spark passes over.
    files = [file for file in found if file == place or not file.name.startswith((".", "_"))]
    for file in files:
        with file.open("rb") as data:
            if data.read(len(_MARKS)) == _MARKS:
                raise TableError(f"{file}: {SECOND_MARK}")
    for file in files[:1]:
        with file.open(encoding="utf-8-sig", errors="replace", newline="") as text:
            names = [fold(name) for name in next(csv.reader(text), [])]
        for name, times in Counter(names).items():
            if times > 1 and name:
                raise TableError(f"{path}: the header names the column {name!r} {times} times")
