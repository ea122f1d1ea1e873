"""Where changes come from: rows of JSON lines, CSV or Parquet, from a folder or a broker.

What a row may ask for is in `operations`.
"""

from __future__ import annotations

import codecs
import csv
import errno
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.runtime.questions import check_changes
from headgate.runtime.rows import MISFIT, as_object

if TYPE_CHECKING:
    from collections.abc import Iterator


class Change(NamedTuple):
    """A row as it came, not yet looked at, and where it came from."""

    row: bytes
    """One JSON object; what is none is refused by whoever applies it."""
    origin: str
    """The file or the subject."""
    text: bool = False
    """Whether all values are text, as in CSV: then ids have no type yet."""
    refusal: str | None = None
    """Why it is none, if that is known already."""


class Changes(Protocol):
    """Where changes come from. It is asked before each batch, by one thread."""

    source: str
    """What kind it is; positions of one kind mean nothing to another."""

    def since(self, position: str | None) -> tuple[list[Change], str | None]:
        """List the changes after a position, in order, and the position after them.

        None stands for the beginning. What it returns is kept in the stream's state together with the
        changes, and given back after a crash: so a change is never lost nor applied twice. Without anything
        new it returns no changes and the same position, at once.
        """

    def close(self) -> None:
        """End what was opened."""


CSV, PARQUET = ".csv", ".parquet"
ENDINGS = (".jsonl", ".ndjson", ".json", CSV, PARQUET)


class FileChanges:
    """Files in the order of their names; a position lists those that were read and are still there."""

    source = "files"

    def __init__(self, path: str) -> None:
        check_changes(path)
        self._folder = Path(path)

    def since(self, position: str | None) -> tuple[list[Change], str | None]:
        """Read the files that were not there at a position."""
        done: set[str] = set() if position is None else set(json.loads(position))
        names = self._names()
        fresh = sorted(names - done)
        if not fresh:
            return [], position
        found = [change for name in fresh for change in self._read(self._folder / name)]
        return found, json.dumps(sorted(names))

    def end(self) -> str:
        """Return the position after all that is there now."""
        return json.dumps(sorted(self._names()))

    def _names(self) -> set[str]:
        return {
            file.name
            for file in self._folder.iterdir()
            if file.suffix.lower() in ENDINGS and not file.name.startswith((".", "_")) and file.is_file()
        }

    def _read(self, file: Path) -> Iterator[Change]:
        """Read the rows of a file; of one that cannot be read, what is refused is its name and the reason."""
        try:
            if file.suffix.lower() == PARQUET:
                for batch in pq.ParquetFile(file).iter_batches():
                    for row in batch.to_pylist():
                        yield Change(json.dumps(as_object(row), default=str).encode(), file.name)
            elif file.suffix.lower() == CSV:
                yield from _csv_rows(file)
            else:
                for line in file.read_bytes().removeprefix(codecs.BOM_UTF8).splitlines():
                    if line.strip():
                        yield Change(line, file.name)
        except (OSError, pa.ArrowException) as error:
            if isinstance(error, OSError) and not of_the_file(error):
                raise
            yield Change(
                f"{file.name} cannot be read: {' '.join(str(error).split())[:300]}".encode(), file.name
            )

    def close(self) -> None:
        """Have nothing open."""


def _csv_rows(file: Path) -> Iterator[Change]:
    """Read rows of CSV as JSON, without what is empty."""
    text = file.read_bytes().removeprefix(codecs.BOM_UTF8).decode(errors="replace")
    # By itself Python gives up at 131,072 characters, and a filter may have more.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    lines = list(io.StringIO(text, newline=""))
    rows = csv.reader(lines)
    header = next(rows, [])
    begin = rows.line_num
    for values in rows:
        if len(values) == len(header):
            given = {name: value for name, value in zip(header, values, strict=True) if value != ""}
            yield Change(json.dumps(given, ensure_ascii=False).encode(), file.name, text=True)
        elif values:
            line = "".join(lines[begin : rows.line_num]).rstrip("\r\n")
            yield Change(line.encode(), file.name, refusal=MISFIT)
        begin = rows.line_num


def of_the_file(error: OSError) -> bool:
    """Tell whether a file is to blame. Else it is the disk or the network: that passes, and is tried anew."""
    # Arrow tells damage as an error without a number.
    return error.errno in {None, errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR}
