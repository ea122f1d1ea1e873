"""Where changes come from: rows of JSON lines, CSV or Parquet, from a folder or a broker.

What a row may ask for is in `operations`.
"""

from __future__ import annotations

import codecs
import errno
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.core.text.csv_text import CsvText
from headgate.errors import TableError
from headgate.runtime.questions import check_changes
from headgate.runtime.rows import NOT_UTF8, as_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


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


class ChangeSettings(Protocol):
    """What says where changes come from."""

    @property
    def changes(self) -> str | None:
        """Name a folder or a broker."""

    @property
    def options(self) -> Mapping[str, str]:
        """Return more for a broker."""


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

    def __init__(
        self,
        path: str,
        ending: Callable[[Path], str] = lambda file: file.suffix.lower(),
        read: Callable[[Path], bytes] = Path.read_bytes,
    ) -> None:
        """Take files from a folder; `ending` and `read` know those that are packed."""
        check_changes(path)
        self._folder = Path(path)
        self._ending = ending
        self._content = read

    def since(self, position: str | None) -> tuple[list[Change], str | None]:
        """Read the files that were not there at a position."""
        done: set[str] = set() if position is None else set(json.loads(position))
        names = self._names()
        fresh = sorted(names - done)
        if not fresh:
            return [], position
        changes = [change for name in fresh for change in self._read(self._folder / name)]
        return changes, json.dumps(sorted(names))

    def end(self) -> str:
        """Return the position after all that is there now."""
        return json.dumps(sorted(self._names()))

    def _names(self) -> set[str]:
        return {
            file.name
            for file in self._folder.iterdir()
            if self._ending(file) in ENDINGS and not file.name.startswith((".", "_")) and file.is_file()
        }

    def _read(self, file: Path) -> Iterator[Change]:
        """Read the rows of a file; of one that cannot be read, what is refused is its name and the reason."""
        form = self._ending(file)
        try:
            data = self._content(file)
            if form == PARQUET:
                for batch in pq.ParquetFile(pa.BufferReader(data)).iter_batches():
                    for row in rows_of(batch):
                        if isinstance(row, bytes):
                            yield Change(row, file.name, refusal=NOT_UTF8)
                        else:
                            yield Change(json.dumps(as_object(row), default=str).encode(), file.name)
            elif form == CSV:
                for given, fields in CsvText(data).objects():
                    if fields is None:
                        yield Change(given.line, file.name, refusal=given.reason)
                    else:
                        text = json.dumps(fields, ensure_ascii=False)
                        yield Change(text.encode(), file.name, text=True)
            else:
                for line in data.removeprefix(codecs.BOM_UTF8).splitlines():
                    if line.strip():
                        yield Change(line, file.name)
        except (OSError, pa.ArrowException, TableError) as error:
            if isinstance(error, OSError) and not of_the_file(error):
                raise
            yield Change(
                f"{file.name} cannot be read: {' '.join(str(error).split())[:300]}".encode(), file.name
            )

    def close(self) -> None:
        """Have nothing open."""


def rows_of(batch: pa.RecordBatch) -> Iterator[dict[str, Any] | bytes]:
    """List the rows of a batch; of one with bytes that are not UTF-8, how it can be shown."""
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        for number in range(batch.num_rows):
            row = batch.slice(number, 1)
            try:
                yield from row.to_pylist()
            except UnicodeDecodeError:
                yield _shown(row)


def _shown(row: pa.RecordBatch) -> bytes:
    """Write a row whose texts are not UTF-8."""
    values = {}
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            value = column[0].as_py()
        except UnicodeDecodeError:
            plain = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
            # One that is inside others cannot be had by itself.
            value = column.cast(pa.binary())[0].as_py() if plain else b"\xff"
            value = value.decode(errors="backslashreplace")
        values[name] = value
    return json.dumps(values, ensure_ascii=False, default=str).encode()


def of_the_file(error: OSError) -> bool:
    """Tell whether a file is to blame. Else it is the disk or the network: that passes, and is tried anew."""
    # Arrow tells damage as an error without a number.
    return error.errno in {None, errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR}
