"""Where tables lie, and what their files hold: checked before Spark, or anything large, is loaded."""

from __future__ import annotations

import os
import re
from enum import Enum
from pathlib import Path

from headgate.errors import TableError


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
    if not is_remote(path) and place.is_file() and ":" in place.name:
        raise TableError(f"{path} has ':' in its name, which Spark cannot read: rename it")
    return format_of(path)


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
