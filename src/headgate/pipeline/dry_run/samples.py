"""The first rows of a table, and how many there are, without Spark, read as the jobs read them."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.contents.registry import DEFAULT, contents_of
from headgate.core.event import ID, SOURCE
from headgate.core.text.csv_text import NOT_UTF8, CsvText
from headgate.core.values import fold
from headgate.errors import TableError
from headgate.jobs.choosing import dialects_of
from headgate.local.rows import LocalRows
from headgate.tables.document_rows import PATH
from headgate.tables.lines import LINES, batches_of, json_of, split_lines
from headgate.tables.packed import codec_of, reading, size_of
from headgate.tables.partitions import add_fields, partitions_of
from headgate.tables.places import Format, UnsureError, base_of, format_of, is_remote, table_files
from headgate.tables.text_types import UnclearError, meant_kind, typed_column
from headgate.tables.utf8 import split
from headgate.tables.writing import write_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headgate.pipeline.file.model import Pipeline
    from headgate.workloads.catalogue import GeneratedTable

    Row = bytes | dict[str, Any] | str
    _FirstRows = tuple[list[Row], int, bool]

ROWS = 2_000
"""Rows of a sample, at most."""
BYTES = 16 << 20
"""Text read for a sample, at most."""
_TOO_LONG = "field larger than field limit ({})"
_COUNTED, _PARTS = 64 << 20, 64
"""Files up to this size have all of their lines counted, larger ones those of so many parts."""


@dataclass(frozen=True)
class SampledTable:
    """The first rows of a table, as a job asks for them."""

    name: str
    """Its path."""
    rows: Sequence[Row]
    """Lines of JSON, or columns; what cannot be read comes as the reason."""
    total: int
    """Rows of the table; about so many, unless `counted`."""
    counted: bool
    size: int
    """What the table takes on disk."""
    form: Format = Format.JSONL
    generated: bool = False
    """Whether the table is yet to be made."""

    @property
    def unreadable(self) -> list[str]:
        """List why rows cannot be read at all."""
        return [row for row in self.rows if isinstance(row, str)]

    def columns(self) -> None:
        """Say that rows name their fields."""

    def lines(self, *required: str, even: bool = False) -> LocalRows:
        """Return what can be read."""
        del required, even
        return LocalRows(LINES, lambda: [batches_of(("", line, None) for line in self._texts(self.rows))])

    def typed(self) -> LocalRows:
        """Return the same: nobody asks for columns of what is compiled."""
        return self.lines()

    def half(self) -> SampledTable:
        """Return the first half of the rows."""
        return replace(self, rows=self.rows[: len(self.rows) // 2])

    def write_events(self, path: Path) -> None:
        """Write what can be read as lines of JSON, for jobs that read events."""
        rows = typed(self.rows) if self.form is Format.CSV else self.rows
        path.write_bytes(b"".join(line + b"\n" for line in self._texts(rows)))

    def _texts(self, rows: Sequence[Row]) -> Iterator[bytes]:
        """Write what can be read as JSON."""
        for row in rows:
            if not isinstance(row, str):
                yield json_of(_as_text(row)) if isinstance(row, dict) else row

    def checked(self, usable: int, refused: Iterable[Any]) -> CheckedRows:
        """Say how many rows are usable, and why the others are not."""
        return CheckedRows(self, usable, (*self.unreadable, *map(str, refused)))


@dataclass(frozen=True)
class CheckedRows:
    """What the first rows of a table are, and what they say of the table."""

    table: SampledTable
    usable: int
    """How many subscriptions, nodes, edges or events they are."""
    reasons: tuple[str, ...]
    """Why the others are refused."""

    @property
    def looked_at(self) -> int:
        """Count the rows that were read."""
        return len(self.table.rows)

    @property
    def total(self) -> int:
        """Estimate how many rows of the table are usable."""
        share = self.usable / self.looked_at if self.looked_at else 1.0
        return round(self.table.total * share)


def typed(rows: Sequence[Row]) -> list[Row]:
    """Give the columns of CSV the types that Spark infers, as far as these rows say; ids are text."""
    columns: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items() if isinstance(row, dict) else ():
            if isinstance(value, str) and fold(name) not in {ID, SOURCE}:
                columns.setdefault(name, set()).add(value)
    known = {}
    for name, texts in columns.items():
        with suppress(UnclearError):
            known[name] = typed_column(texts, meant_kind)[1]
    return [
        {name: known.get(name, {}).get(value, value) for name, value in row.items()}
        if isinstance(row, dict)
        else row
        for row in rows
    ]


def generated(path: str, made: GeneratedTable, seed: int, most: int) -> SampledTable:
    """Make the first rows of a table; they have the types of JSON."""
    count = min(most, made.rows)
    batch = made.make(np.arange(count, dtype=np.int64), seed)
    rows: list[Row] = [without_nulls(row) for row in batch.to_pylist()]
    size = written_size(pa.Table.from_batches([batch]), format_of(path)) * made.rows // max(1, count)
    return SampledTable(path, rows, made.rows, counted=True, size=size, generated=True)


def written_size(table: pa.Table, form: Format) -> int:
    """Write a table, and return how many bytes it takes."""
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
        write_table(table, f"{folder}/table.{form.value}")
        return bytes_below(Path(folder))


def bytes_below(folder: Path) -> int:
    """Sum up the files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def sample_files(path: str, most: int, folder: Path) -> SampledTable:
    """Copy the first documents of files into a folder."""
    files, base = table_files(path), base_of(path)
    for file in files[:most]:
        target = folder / (file.name if file == base else file.relative_to(base))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    names: list[Row] = [{PATH: file.name} for file in files[:most]]
    size = sum(file.stat().st_size for file in files)
    return SampledTable(path, names, len(files), counted=True, size=size)


def _as_text(row: dict[str, Any]) -> dict[str, Any]:
    """Write bytes of Parquet as text, as the jobs do."""
    return {
        name: value.decode(errors="replace") if isinstance(value, bytes) else value
        for name, value in row.items()
    }


def first_rows(path: str, most: int = ROWS) -> SampledTable:
    """Read the first rows of a table on this machine, and count all of them or say about how many."""
    form = format_of(path)
    files = table_files(path)
    size = sum(map(size_of, files))
    columns = _partitions(path, files)
    read = _parquet(columns, path, most) if form is Format.PARQUET else _text(columns, form, most)
    return SampledTable(path, *read, size, form)


def _partitions(path: str, files: list[Path]) -> dict[Path, dict[str, Any]]:
    """Return what folders name for the rows of each file; what is left to Spark is left out here."""
    try:
        partitions = partitions_of(path, files)
    except UnsureError:
        return {file: {} for file in files}
    return {
        file: {name: value for name, value, _ in columns if value is not None}
        for file, columns in zip(files, partitions, strict=True)
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


def _parquet(files: dict[Path, dict[str, Any]], path: str, most: int) -> _FirstRows:
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
    return rows[:most], total, True


def without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is NULL, as rows of JSON do."""
    return {name: value for name, value in row.items() if value is not None}


def _text(files: dict[Path, dict[str, Any]], form: Format, most: int) -> _FirstRows:
    rows: list[Row] = []
    left = BYTES
    for file, more in files.items():
        with reading(file) as opened:
            data = opened.read(left + 1)
        read = _csv(data, more) if form is Format.CSV else _lines(data, more)
        some = list(islice(read, most - len(rows) + 1))
        if len(data) > left or len(some) > most - len(rows):
            # The last one may be cut, or is beyond what is wanted.
            rows += some[:-1]
            told = rows or [f"the line cannot be read: {_TOO_LONG.format(BYTES)}"]
            return told, max(len(rows), _count_lines(files, form)), False
        rows += some
        left -= len(data)
    return rows, len(rows), True


def _lines(data: bytes, more: dict[str, Any]) -> Iterator[Row]:
    inner = json_of(more)[1:-1]
    for line in split_lines(data):
        if line.strip():
            yield add_fields(line, inner) if inner else line


def _csv(data: bytes, more: dict[str, Any]) -> Iterator[Row]:
    for row, fields in CsvText(data).objects():
        yield row.reason or "" if fields is None else fields | more


def _count_lines(files: Iterable[Path], form: Format) -> int:
    """Count lines; of a large file those of parts all over it, for rows may grow on the way."""
    lines = 0.0
    for file in files:
        size = size_of(file)
        # A packed file cannot be read from the middle.
        whole = size <= _COUNTED or codec_of(file) is not None
        with reading(file) as text:
            ends, seen, chunk = 0, 0, b""
            for part in range(1 if whole else _PARTS):
                if not whole:
                    text.seek(part * (size // _PARTS))
                chunk = text.read(-1 if whole else _COUNTED // _PARTS)
                ends, seen = ends + chunk.count(b"\n"), seen + len(chunk)
            lines += (ends if whole else ends * size / max(1, seen)) + (whole and not chunk.endswith(b"\n"))
        lines -= form is Format.CSV
    return round(lines)


def content_at_hand(pipeline: Pipeline) -> str:
    """Find the kinds of a pipeline's filters, as one: the first rows say them, or else the file does."""
    spoken: set[str] = set()
    for path in (pipeline.compile.subscriptions, pipeline.compile.nodes, pipeline.compile.edges):
        if path is not None and not is_remote(path) and table_files(path):
            spoken |= dialects_of(first_rows(path), pipeline.dialect)
    return contents_of(spoken) or contents_of([pipeline.dialect]) or DEFAULT
