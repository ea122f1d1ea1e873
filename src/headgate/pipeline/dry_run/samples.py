"""The first rows of a table, and how many there are, without Spark, read as the jobs read them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.contents.registry import DEFAULT, contents_of
from headgate.core.text.csv_text import NOT_UTF8, CsvText
from headgate.errors import TableError
from headgate.jobs.choosing import dialects_of
from headgate.local.rows import LocalRows
from headgate.tables.lines import LINES, batches_of, json_of, split_lines
from headgate.tables.packed import codec_of, reading, size_of
from headgate.tables.partitions import add_fields, partitions_of
from headgate.tables.places import Format, UnsureError, format_of, is_remote, table_files
from headgate.tables.utf8 import split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from headgate.pipeline.file.model import Pipeline

    Row = bytes | dict[str, Any] | str

ROWS = 2_000
"""Rows of a sample, at most."""
BYTES = 16 << 20
"""Text read for a sample, at most."""
_TOO_LONG = "field larger than field limit ({})"
_COUNTED, _PARTS = 64 << 20, 64
"""Files up to this size have all of their lines counted, larger ones those of so many parts."""


class Rows(NamedTuple):
    """The first rows of a table: lines of JSON, or columns; what cannot be read comes as the reason."""

    rows: Sequence[Row]
    total: int
    """Rows of the table; about so many, unless `counted`."""
    counted: bool
    bytes: int
    """What the table takes on disk."""

    @property
    def unreadable(self) -> list[str]:
        """List why rows cannot be read at all."""
        return [row for row in self.rows if isinstance(row, str)]

    def lines(self, most: int | None = None) -> Iterator[pa.RecordBatch]:
        """Write the others as workers get them."""
        read = [row for row in self.rows if not isinstance(row, str)][:most]
        lines = (json_of(_as_text(row)) if isinstance(row, dict) else row for row in read)
        return batches_of(("", line, None) for line in lines)


@dataclass(frozen=True)
class SampledTable:
    """The first rows of a table, as a job asks for them."""

    name: str
    """Its path."""
    rows: Rows
    form: Format = Format.JSONL
    most: int | None = None

    def columns(self) -> None:
        """Say that rows name their fields."""

    def lines(self, *required: str, even: bool = False) -> LocalRows:
        """Return what can be read."""
        del required, even
        return LocalRows(LINES, lambda: [self.rows.lines(self.most)])

    def typed(self) -> LocalRows:
        """Return the same: nobody asks for columns of what is compiled."""
        return self.lines()


def _as_text(row: dict[str, Any]) -> dict[str, Any]:
    """Write bytes of Parquet as text, as the jobs do."""
    return {
        name: value.decode(errors="replace") if isinstance(value, bytes) else value
        for name, value in row.items()
    }


def first_rows(path: str, most: int = ROWS) -> Rows:
    """Read the first rows of a table on this machine, and count all of them or say about how many."""
    form = format_of(path)
    files = table_files(path)
    size = sum(map(size_of, files))
    columns = _partitions(path, files)
    if form is Format.PARQUET:
        return _parquet(columns, path, most, size)
    return _text(columns, form, most, size)


def _partitions(path: str, files: list[Path]) -> dict[Path, dict[str, Any]]:
    """Return what folders name for the rows of each file; what is left to Spark is left out here."""
    try:
        found = partitions_of(path, files)
    except UnsureError:
        return {file: {} for file in files}
    return {
        file: {name: value for name, value, _ in columns if value is not None}
        for file, columns in zip(files, found, strict=True)
    }


def column_names(path: str) -> list[str] | None:
    """List the columns of a table from its footer or header; None for JSON lines, which have none."""
    form, files = format_of(path), table_files(path)
    if form is Format.JSONL or not files:
        return None
    more = list(_partitions(path, files)[files[0]])
    if form is Format.PARQUET:
        return [*_footer(files[0], path).schema.to_arrow_schema().names, *more]
    with reading(files[0]) as data:
        header = CsvText(data.read(BYTES)).header
    if len(header.line) == BYTES:
        raise TableError(f"{path} cannot be read: its header: {_TOO_LONG.format(BYTES)}")
    return [*header.values, *more]


def _footer(file: Path, path: str) -> pq.FileMetaData:
    try:
        return pq.read_metadata(file)
    except (OSError, pa.ArrowException) as error:
        raise TableError(f"{path} cannot be read: {file.name} is no sound Parquet file ({error})") from None


def _parquet(files: dict[Path, dict[str, Any]], path: str, most: int, size: int) -> Rows:
    total = sum(_footer(file, path).num_rows for file in files)
    rows: list[Row] = []
    for file, more in files.items():
        if len(rows) >= most:
            break
        try:
            with pq.ParquetFile(file) as opened:
                for batch in opened.iter_batches(batch_size=min(most, ROWS)):
                    good, bad = split(pa.Table.from_batches([batch]))
                    rows += [without_nulls(row | more) for row in good.to_pylist()]
                    rows += [NOT_UTF8] * bad.num_rows
                    if len(rows) >= most:
                        break
        except (OSError, pa.ArrowException) as error:
            raise TableError(f"{path} cannot be read: {file.name}: {error}") from None
    return Rows(rows[:most], total, counted=True, bytes=size)


def without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is NULL, as rows of JSON do."""
    return {name: value for name, value in row.items() if value is not None}


def _text(files: dict[Path, dict[str, Any]], form: Format, most: int, size: int) -> Rows:
    rows: list[Row] = []
    left = BYTES
    for file, more in files.items():
        with reading(file) as opened:
            data = opened.read(left + 1)
        read = _csv(data, more) if form is Format.CSV else _lines(data, more)
        found = list(islice(read, most - len(rows) + 1))
        if len(data) > left or len(found) > most - len(rows):
            # The last one may be cut, or is beyond what is wanted.
            rows += found[:-1]
            told = rows or [f"the line cannot be read: {_TOO_LONG.format(BYTES)}"]
            return Rows(told, max(len(rows), _count_lines(files, form)), counted=False, bytes=size)
        rows += found
        left -= len(data)
    return Rows(rows, len(rows), counted=True, bytes=size)


def _lines(data: bytes, more: dict[str, Any]) -> Iterator[Row]:
    inner = json_of(more)[1:-1]
    for line in split_lines(data):
        if line.strip():
            yield add_fields(line, inner) if inner else line


def _csv(data: bytes, more: dict[str, Any]) -> Iterator[Row]:
    table = CsvText(data)
    names = table.header.values
    for row in table:
        if row.reason == NOT_UTF8 or len(row.values) != len(names):
            yield row.reason or ""
        else:
            yield {name: value for name, value in zip(names, row.values, strict=True) if value} | more


def _count_lines(files: Iterable[Path], form: Format) -> int:
    """Count lines; of a large file those of parts all over it, for rows may grow on the way."""
    lines = 0.0
    for file in files:
        size = size_of(file)
        # A packed file cannot be read from the middle.
        whole = size <= _COUNTED or codec_of(file) is not None
        with reading(file) as text:
            found, seen, chunk = 0, 0, b""
            for part in range(1 if whole else _PARTS):
                if not whole:
                    text.seek(part * (size // _PARTS))
                chunk = text.read(-1 if whole else _COUNTED // _PARTS)
                found, seen = found + chunk.count(b"\n"), seen + len(chunk)
            lines += (found if whole else found * size / max(1, seen)) + (whole and not chunk.endswith(b"\n"))
        lines -= form is Format.CSV
    return round(lines)


def content_at_hand(pipeline: Pipeline) -> str:
    """Find the kinds of a pipeline's filters, as one: the first rows say them, or else the file does."""
    spoken: set[str] = set()
    for path in (pipeline.compile.subscriptions, pipeline.compile.nodes, pipeline.compile.edges):
        if path is not None and not is_remote(path) and table_files(path):
            spoken |= dialects_of(SampledTable(path, first_rows(path)), pipeline.dialect)
    return contents_of(spoken) or contents_of([pipeline.dialect]) or DEFAULT
