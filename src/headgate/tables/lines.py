"""Rows of tables as lines of JSON, each with its place, whatever the format of the table. Read without Spark.

JSON lines are handed on as they are. Of CSV and Parquet an object is written for each row, as Spark's
`to_json` writes it. What Spark might read in another way than we do is `UnsureError`, and left to Spark.
"""

from __future__ import annotations

import json
import math
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.core.values import fold
from headgate.errors import TableError
from headgate.tables.packed import read_file
from headgate.tables.partitions import add_columns, add_fields, partitions_of
from headgate.tables.places import Format, UnsureError, check_input, no_column, table_files
from headgate.tables.utf8 import shown, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

FILE, BLOCK, POSITION = ORDER = ("file", "block", "position")
"""A row's place. Spark hands files out by size, so its own numbers do not follow their names."""
VALUE = "value"
BROKEN = "_headgate_broken"
"""Where Spark puts a CSV line that does not fit the header."""
_TYPES: dict[str, pa.DataType] = {
    FILE: pa.string(),
    BLOCK: pa.int64(),
    POSITION: pa.int64(),
    VALUE: pa.binary(),
    BROKEN: pa.string(),
}
LINES = pa.schema(_TYPES)
"""What workers get of a table: its place and a line of JSON; of a line of CSV that is broken, that."""
SAMPLE = 4096
"""Events of a sample that are looked at: the first of the table."""
TOGETHER = 10_000
"""Rows in a batch, at most; as many as Spark hands to workers."""

_ENDS = re.compile(rb"\r\n|\n|\r")
_MARK = b"\xef\xbb\xbf"


def read_lines(path: str, *wanted: str) -> Iterator[pa.RecordBatch]:
    """Read a table as one JSON object a row, in batches of `LINES`.

    CSV and Parquet must have the columns `wanted`; JSON lines are judged one by one.
    """
    form = check_input(path)
    files = table_files(path)
    if form is Format.JSONL:
        return batches_of((name, line, None) for name, line in _lines(path, files))
    if form is Format.CSV:
        from headgate.tables.csv_text import read_csv

        table = read_csv(path, files)
        check_columns(table.names, path, *wanted)
        rows = ((json_of(row), None) for row in table.rows())
        broken = ((None, line) for line in table.broken)
        return batches_of(("", line, other) for line, other in (*rows, *broken))
    table_, bad = split(read_parquet(path, files))
    check_columns(table_.column_names, path, *wanted)
    whole = (("", json_of(row), None) for row in _plain_rows(table_, path))
    return batches_of((*whole, *(("", None, json_of(row).decode()) for row in shown(bad))))


def _lines(path: str, files: list[Path]) -> Iterator[tuple[str, bytes]]:
    for file, columns in zip(files, partitions_of(path, files), strict=True):
        name = _name(file, files)
        inner = json_of({name: value for name, value, _ in columns})[1:-1]
        for line in json_lines(file):
            yield name, add_fields(line, inner) if inner else line


def json_lines(file: Path) -> list[bytes]:
    """Take a file of JSON lines apart."""
    return split_lines(read_file(file))


def split_lines(data: bytes) -> list[bytes]:
    """Take JSON lines apart; a byte order mark at their start is left out."""
    lines = _ENDS.split(data.removeprefix(_MARK))
    return lines if lines[-1] else lines[:-1]


def _name(file: Path, files: list[Path]) -> str:
    """One file needs no name in every row."""
    return str(file) if len(files) > 1 else ""


def batches_of(rows: Iterable[tuple[str, bytes | None, str | None]]) -> Iterator[pa.RecordBatch]:
    """Put rows into batches of `LINES`: the file of each, its JSON, and what is broken instead."""
    placed = ((file, 0, position, value, broken) for position, (file, value, broken) in enumerate(rows))
    while some := list(islice(placed, TOGETHER)):
        columns = zip(zip(*some, strict=True), LINES, strict=True)
        arrays: list[Any] = [pa.array(column, field.type) for column, field in columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=LINES)


_Each = TypeVar("_Each")


def portions(
    each: Iterable[_Each], most: int, size_of: Callable[[_Each], int], size: int
) -> Iterator[list[_Each]]:
    """Put things together: `most` of them, or fewer that reach a size together."""
    held: list[_Each] = []
    reached = 0
    for one in each:
        held.append(one)
        reached += size_of(one)
        if len(held) >= most or reached >= size:
            yield held
            held, reached = [], 0
    if held:
        yield held


def check_columns(names: Iterable[str], path: str, *wanted: str) -> None:
    """Refuse a table that lacks a column altogether; a table without any columns is an empty file."""
    names = list(names)
    for name in wanted:
        if names and name not in map(fold, names):
            raise TableError(no_column(path, name, names))


def read_parquet(path: str, files: list[Path]) -> pa.Table:
    """Read Parquet files that have the same columns."""
    try:
        schemas = [pq.read_schema(file) for file in files]
        if any(schema.remove_metadata() != schemas[0].remove_metadata() for schema in schemas[1:]):
            raise UnsureError(f"{path}: its files differ in their columns")
        tables = [
            add_columns(pq.read_table(file, partitioning=None), more, path)
            for file, more in zip(files, partitions_of(path, files), strict=True)
        ]
    except (OSError, pa.ArrowException) as error:
        for file in files:
            with file.open("rb") as start:
                # The mark of plain files, and that of encrypted ones.
                if start.read(4) not in (b"PAR1", b"PARE"):
                    raise TableError(f"{path} cannot be read: {file.name} is not a Parquet file") from None
        raise UnsureError(f"{path} cannot be read: {error}") from None
    return pa.concat_tables(tables) if tables else pa.table({})


def _plain_rows(table: pa.Table, path: str) -> Iterator[dict[str, Any]]:
    for field in table.schema:
        if not is_plain(field.type):
            raise UnsureError(f"{path}: column {field.name} is {field.type}")
    for batch in table.to_batches(TOGETHER):
        yield from batch.to_pylist()


def is_plain(kind: pa.DataType) -> bool:
    """Tell whether values of a type are written in JSON in one way only."""
    if isinstance(kind, pa.MapType):
        return pa.types.is_string(kind.key_type) and is_plain(kind.item_type)
    if isinstance(kind, pa.StructType):
        return all(is_plain(field.type) for field in kind)
    if isinstance(kind, pa.ListType):
        return is_plain(kind.value_type)
    tests = (pa.types.is_signed_integer, pa.types.is_string, pa.types.is_boolean, pa.types.is_float64)
    return any(test(kind) for test in (*tests, pa.types.is_null, pa.types.is_date32))


def json_of(row: dict[str, Any]) -> bytes:
    """Write a row as Spark does: without what is NULL.

    >>> json_of({"id": 7, "filter": None, "weights": [("age", 0.5)], "score": float("inf")})
    b'{"id":7,"weights":{"age":0.5},"score":"Infinity"}'
    """
    fields = {name: _value(value) for name, value in row.items() if value is not None}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=str).encode()


def _value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _value(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):
            return {name: _value(each) for name, each in value}
        return [_value(each) for each in value]
    return value


def column_names(path: str) -> list[str]:
    """List the columns of a CSV or Parquet table."""
    files = table_files(path)
    if check_input(path) is Format.CSV:
        from headgate.tables.csv_text import read_csv

        return read_csv(path, files).names
    return list(read_parquet(path, files).column_names)
