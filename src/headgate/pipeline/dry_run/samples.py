"""The first rows of a table, and how many there are, without Spark: for the dry run and for reports."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.contents.registry import DEFAULT, contents_of
from headgate.core.event import read_object
from headgate.errors import HeadgateError, TableError
from headgate.runtime.rows import MISFIT, NOT_UTF8
from headgate.tables.packed import codec_of, read_file, reading, size_of
from headgate.tables.partitions import partitions_of
from headgate.tables.places import Format, UnsureError, format_of, is_remote, table_files
from headgate.tables.utf8 import split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from headgate.contents.kind import Kind
    from headgate.pipeline.file.model import Pipeline

ROWS = 2_000
"""Rows of a sample, at most."""
BYTES = 16 << 20
"""Text read for a sample, at most."""
_ESCAPED = re.compile("[\udc80-\udcff]")
"""What stands for bytes that are not UTF-8."""
_COUNTED, _PARTS = 64 << 20, 64
"""Files up to this size have all of their lines counted, larger ones those of so many parts."""


class Rows(NamedTuple):
    """The first rows of a table; what cannot be read of them comes as the reason."""

    rows: list[dict[str, Any] | str]
    total: int
    """Rows of the table; about so many, unless `counted`."""
    counted: bool
    bytes: int
    """What the table takes on disk."""


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
        text = io.TextIOWrapper(data, encoding="utf-8-sig", errors="replace", newline="")
        try:
            return [*next(_reader(text), []), *more]
        except csv.Error as error:
            raise TableError(f"{path} cannot be read: its header: {error}") from None


def first_documents(path: str, kind: Kind, content_type: str | None, most: int) -> Rows:
    """Read the first files of a folder of documents, as rows."""
    from headgate.contents.kind import bad_length
    from headgate.tables.requests import type_of_file, type_of_name

    files = table_files(path)
    said = None if content_type is None else type_of_name(content_type, kind)
    rows: list[dict[str, Any] | str] = []
    for file in files[:most]:
        written = said or type_of_file(file.name, kind)
        if written is None:
            rows.append(f"{file.name}: what it is written in is not clear")
        elif (bad := bad_length(file.stat().st_size, kind)) is not None:
            rows.append(f"{file.name}: {bad}")
        else:
            rows.append({"id": file.name, "datacontenttype": written, "data": read_file(file)})
    return Rows(rows, len(files), counted=True, bytes=sum(file.stat().st_size for file in files))


def _footer(file: Path, path: str) -> pq.FileMetaData:
    try:
        return pq.read_metadata(file)
    except (OSError, pa.ArrowException) as error:
        raise TableError(f"{path} cannot be read: {file.name} is no sound Parquet file ({error})") from None


def _parquet(files: dict[Path, dict[str, Any]], path: str, most: int, size: int) -> Rows:
    total = sum(_footer(file, path).num_rows for file in files)
    rows: list[dict[str, Any] | str] = []
    for file, more in files.items():
        if len(rows) >= most:
            break
        try:
            with pq.ParquetFile(file) as opened:
                for batch in opened.iter_batches(batch_size=min(most, ROWS)):
                    good, bad = split(pa.Table.from_batches([batch]))
                    rows += [row | more for row in good.to_pylist()]
                    rows += [NOT_UTF8] * bad.num_rows
                    if len(rows) >= most:
                        break
        except (OSError, pa.ArrowException) as error:
            raise TableError(f"{path} cannot be read: {file.name}: {error}") from None
    return Rows(
        [_without_nulls(row) if isinstance(row, dict) else row for row in rows[:most]], total, True, size
    )


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is NULL, as rows of JSON do."""
    return {name: value for name, value in row.items() if value is not None}


def _text(files: dict[Path, dict[str, Any]], form: Format, most: int, size: int) -> Rows:
    rows: list[dict[str, Any] | str] = []
    read = 0
    for file, more in files.items():
        for used, row in _csv(file) if form is Format.CSV else _lines(file):
            if len(rows) >= most or read >= BYTES:
                return Rows(rows, max(len(rows), _count_lines(files, form)), False, size)
            rows.append(row | more if isinstance(row, dict) else row)
            read += used
    return Rows(rows, len(rows), True, size)


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


def _lines(file: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Read JSON lines, with the bytes that each took."""
    with reading(file) as text:
        for number, line in enumerate(text):
            content = line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line
            if not content.strip():
                continue
            try:
                yield len(line), dict(read_object(content))
            except HeadgateError as error:
                yield len(line), str(error)


def _csv(file: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    with reading(file) as data:
        reader = _reader(io.TextIOWrapper(data, encoding="utf-8-sig", errors="surrogateescape", newline=""))
        header: list[str] | None = None
        while True:
            try:
                values = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield BYTES, f"the line cannot be read: {error}"
                continue
            if header is None:
                header = values
                continue
            used = sum(len(value.encode(errors="surrogateescape")) + 1 for value in values)
            if any(map(_ESCAPED.search, values)):
                yield used, NOT_UTF8
                continue
            if len(values) != len(header):
                yield used, MISFIT
                continue
            yield used, {name: value for name, value in zip(header, values, strict=True) if value != ""}


def _reader(text: Iterable[str]) -> Iterator[list[str]]:
    """Read CSV whose fields may be as long as a sample: by itself, Python gives up at 131,072 characters."""
    csv.field_size_limit(BYTES)
    return csv.reader(text)


def typed(row: dict[str, Any], texts: tuple[str, ...] = ("id",)) -> dict[str, Any]:
    """Read numbers and truth values of a row of CSV, about as Spark does.

    >>> typed({"id": "7", "age": "35", "price": "1.5", "new": "true", "topic": "art"})
    {'id': '7', 'age': 35, 'price': 1.5, 'new': True, 'topic': 'art'}
    """
    return {name: value if name in texts else _value(value) for name, value in row.items()}


def _value(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    try:
        return json.loads(text) if text[:1] in "-0123456789" else text
    except ValueError:
        return text


def content_at_hand(pipeline: Pipeline) -> str:
    """Find the kinds of a pipeline's filters, as one: the first rows say them, or else the file does."""
    spoken: set[str] = set()
    for path in (pipeline.compile.subscriptions, pipeline.compile.nodes, pipeline.compile.edges):
        if path is not None and not is_remote(path) and table_files(path):
            rows = [row for row in first_rows(path).rows if isinstance(row, dict)]
            spoken |= {str(row.get("dialect") or pipeline.dialect) for row in rows if row.get("filter")}
    return contents_of(spoken) or contents_of([pipeline.dialect]) or DEFAULT
