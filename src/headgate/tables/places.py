"""Where tables lie, and what their files hold: checked before Spark, or anything large, is loaded."""

from __future__ import annotations

import codecs
import csv
import glob
import io
import os
import re
from collections import Counter
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.core.arguments import likeliest
from headgate.core.event import SECOND_MARK
from headgate.core.values import fold
from headgate.core.versions.stores import is_stored
from headgate.errors import TableError
from headgate.tables.packed import ending, plain_name, reading

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

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


def for_reading(path: str | Path) -> str:
    """Write a path so that Spark takes every sign of it as it is, and this machine's files for meant."""
    if is_remote(str(path)):
        return str(path)
    return "file://" + re.sub(r"([\\*?\[\]{}])", r"\\\1", str(local(str(path)).absolute()))


def is_pattern(path: str) -> bool:
    """Tell a pattern of names (`events/*.jsonl`) from a path; a file of that very name is itself."""
    return not is_remote(path) and glob.has_magic(path) and not local(path).exists()


def roots_of(path: str) -> list[Path]:
    """List the files and folders that a path on this machine names: itself, or those that fit a pattern.

    What begins with a dot or an underscore is passed over, as Spark does.
    """
    if not is_pattern(path):
        return [local(path)]
    base = base_of(path)
    paths = sorted(Path(each) for each in glob.glob(str(local(path)), recursive=True))  # noqa: PTH207
    return [each for each in paths if each != base and not is_hidden(each.relative_to(base))]


def base_of(path: str) -> Path:
    """Return the folder below which folders name columns: the table, or what is before a pattern's signs."""
    base = local(path)
    if not is_pattern(path):
        return base
    parts = base.parts
    return Path(*parts[: next(at for at, part in enumerate(parts) if glob.has_magic(part))])


def is_hidden(path: Path) -> bool:
    """Tell what readers of tables pass over, by the names below a folder."""
    return any(part.startswith((".", "_")) for part in path.parts)


def as_spark(path: Path) -> str:
    """Write the path of a file or folder as Spark does in the rows that it makes of files."""
    return f"file:{os.path.normpath(path.absolute())}"


def beside(path: str, word: str, folder: Path | None = None) -> str:
    """Name a table after an output: out/snapshot -> out/snapshot-rejected.jsonl.

    That of an output on another file system is in `folder` on this machine: it is one file, and those are
    written here only.

    >>> beside("out/matches.parquet", "rejected"), beside("out/snapshot/", "rejected")
    ('out/matches-rejected.jsonl', 'out/snapshot-rejected.jsonl')
    >>> beside("out/matches.jsonl.gz", "rejected")
    'out/matches-rejected.jsonl'
    >>> beside("hdfs:///data/matches.parquet", "rejected", Path("jobs"))
    'jobs/matches-rejected.jsonl'
    """
    if is_remote(path) and folder is None:
        if Path(path.rstrip("/")).suffix.lower() not in ENDINGS:
            check_here(path)
        raise TableError(
            f"{path} is not on this machine, and the {word} table is written here: say where with --{word}"
        )
    output = Path(str(local(path)).rstrip("/"))
    if folder is not None and is_remote(path):
        output = folder / output.name
    elif output.name in {"", ".."}:
        output = output.absolute()
    plain = Path(plain_name(output.name))
    return str(output.with_name(f"{plain.stem if plain.suffix else plain.name}-{word}.jsonl"))


def format_of(path: str) -> Format:
    """Find a table's format by its ending; a folder and a pattern are known by their files."""
    suffix = ending(path)
    if suffix in ENDINGS:
        return ENDINGS[suffix]
    if not is_remote(path) and (is_pattern(path) or local(path).is_dir()):
        formats = {
            ENDINGS[ending(file)]: file for file in reversed(table_files(path)) if ending(file) in ENDINGS
        }
        if len(formats) > 1:
            one, other = list(formats.values())[-2:]
            raise TableError(f"{path} has {other.name} and {one.name}: keep files of one format in a table")
        for form in formats:
            return form
        if local(path).is_dir() and not table_files(path):
            raise TableError(
                f"{path} has no files, so its format is not clear: put some there, or let its name end in "
                f"one of {', '.join(ENDINGS)}"
            )
    known = ", ".join(ENDINGS)
    raise TableError(f"the format of {path} is not clear: name it with one of {known}")


def is_table(path: str) -> bool:
    """Tell a table from a document, or several, by its ending and that of its files."""
    if ending(path) in ENDINGS:
        return True
    return not is_remote(path) and any(ending(file) in ENDINGS for file in table_files(path))


def check_input(path: str) -> Format:
    """Refuse an input that is not there, before Spark starts."""
    check_there(path)
    check_links(path)
    for root in [] if is_remote(path) else roots_of(path):
        if root.is_file() and ":" in root.name:
            raise TableError(f"{root} has ':' in its name, which Spark cannot read: rename it")
    return format_of(path)


def check_there(path: str) -> None:
    """Refuse a path that names nothing, and a pattern that nothing fits."""
    if is_pattern(path) and not roots_of(path):
        raise TableError(f"no file fits {path}")
    if not is_remote(path) and not is_pattern(path) and not local(path).exists():
        raise TableError(f"{path} does not exist")


def check_links(path: str, *, folders: bool = False) -> None:
    """Refuse links inside a folder that lead out of it, and links to folders: Spark would follow both.

    Those to folders may lead back, so that Spark would look into them again and again; `folders` asks for
    these alone. The folder itself may be a link.
    """
    if is_remote(path):
        return
    for folder in roots_of(path):
        for link in _links(folder) if folder.is_dir() else ():
            if link.is_dir():
                raise TableError(
                    f"{link} is a link to a folder, which is not followed: put the folder itself there"
                )
            if not folders and leads_out(link, str(folder)):
                raise TableError(f"{link} is a link that leads out of {folder}: put the file itself there")


def leads_out(path: str | Path, folder: str) -> bool:
    """Tell whether a path inside a folder leads out of it, through links."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(local(folder)))


def _links(root: Path) -> Iterator[Path]:
    """List the links in a folder and in those inside it, without what Spark passes over."""
    waiting = [root]
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
    output = local(path)
    above = next(parent for parent in output.absolute().parents if parent.exists())
    if not above.is_dir():
        raise TableError(f"{path} cannot be written: {above} is not a directory")
    if output.is_dir() and (form is not Format.PARQUET or not _is_spark_output(output)):
        raise TableError(f"{path} is a directory that Headgate did not write: choose another place")
    if form is Format.PARQUET and output.is_file():
        raise TableError(f"{path} is a file and a Parquet table is a directory: choose another place")
    return form


def given_place(path: str) -> str:
    """Return the place of a snapshot as it was given, without file://; that of a store is an address."""
    return path if is_remote(path) else str(local(path))


def check_here_or_stored(path: str) -> None:
    """Refuse a place for a snapshot that is neither on this machine nor in an object store."""
    if is_remote(path) and not is_stored(path):
        raise TableError(f"{path} is not on this machine: give a path that all machines see, s3:// or gs://")


def check_snapshot_place(path: str) -> None:
    """Refuse the same, and a place where something else is."""
    check_here_or_stored(path)
    # What writes snapshots loads numpy.
    from headgate.core.versions.replacing import check_output as check_version

    check_version(given_place(path))


def check_here(path: str) -> None:
    """Refuse a directory on another file system: workers map what is in it."""
    if is_remote(path):
        raise TableError(f"{path} is not on this machine: give a path that all machines see")


def check_apart(*paths: str | None) -> None:
    """Refuse a place that is named twice: an output would bury an input or another output."""
    seen: set[str] = set()
    for path in paths:
        if path is None:
            continue
        places = (
            {path}
            if is_remote(path)
            else {os.path.realpath(each) for each in roots_of(path) or [local(path)]}
        )
        if not seen.isdisjoint(places):
            raise TableError(f"{path} is named twice: give every input and output a place of its own")
        seen |= places


def _is_spark_output(folder: Path) -> bool:
    names = [file.name for file in folder.iterdir()]
    return not names or "_SUCCESS" in names


def table_files(path: str) -> list[Path]:
    """List the files of a table in the order of their names, those that readers pass over left out."""
    files: list[Path] = []
    for root in roots_of(path):
        below = [root] if root.is_file() else sorted(root.rglob("*"))
        files += [file for file in below if file.is_file() and not is_hidden(file.relative_to(root))]
    # A pattern may name a folder and a file in it.
    return list(dict.fromkeys(files))


def no_column(path: str, name: str, names: Collection[str]) -> str:
    """Say that a table lacks a column, and which one may be meant.

    >>> no_column("subs.csv", "filter", ["id", "filtr"])
    "subs.csv has no column 'filter'; its columns are id, filtr (is 'filtr' meant?)"
    """
    meant = likeliest(name, names)
    hint = "" if meant is None else f" (is {meant!r} meant?)"
    return f"{path} has no column {name!r}; its columns are {', '.join(names)}{hint}"


def check_header(path: str) -> None:
    """Refuse a header that names a column twice: Spark would rename both, and filters would see neither.

    And a second byte order mark, which Spark passes over without a word.
    """
    if is_remote(path):
        return
    files = [file for file in table_files(path) if file == local(path) or ending(file) == ".csv"]
    for file in files:
        with reading(file) as data:
            if data.read(len(_MARKS)) == _MARKS:
                raise TableError(f"{file}: {SECOND_MARK}")
    for file in files[:1]:
        with reading(file) as data:
            text = io.TextIOWrapper(data, encoding="utf-8-sig", errors="replace", newline="")
            names = [fold(name) for name in next(csv.reader(text), [])]
            text.detach()
        if any("\ufffd" in name for name in names):
            raise TableError(f"{path}: the header has bytes that are not UTF-8: write the table in UTF-8")
        for name, times in Counter(names).items():
            if times > 1 and name:
                raise TableError(f"{path}: the header names the column {name!r} {times} times")
