"""Tables of CSV, read without Spark where it would read the same: regular quotes, one header, clear types.

Whatever could be read in two ways is `UnsureError`: quotes inside a value, lines of blanks, numbers with an
exponent, times. Spark infers the type of a column from all of its values, and so does `typed`.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.csv

from headgate.core.values import fold
from headgate.runtime.rows import REPLACEMENT
from headgate.tables.packed import read_file
from headgate.tables.partitions import add_columns, partitions_of
from headgate.tables.places import UnsureError, check_header
from headgate.tables.text_types import DAY, FRACTION, TEXT, TRUTH, WHOLE, kind_of_text
from headgate.tables.writing import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_REGULAR = re.compile(rb'(?:(?:"(?:[^"]|"")*+"|[^",\r\n]*+)(?:,|\r?\n|\Z))*+')
_BLANK = re.compile(rb"^[ \t]+\r?$", re.MULTILINE)
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Csv:
    """A table of texts, and the lines that do not fit its header or are not UTF-8."""

    names: list[str]
    columns: pa.Table
    broken: list[str]

    def rows(self) -> Iterator[dict[str, Any]]:
        """List the rows; what is empty is NULL."""
        for batch in self.columns.to_batches():
            yield from batch.to_pylist()


def read_csv(path: str, files: list[Path]) -> Csv:
    """Read all columns as text."""
    check_header(path)
    tables: list[pa.Table] = []
    broken: list[str] = []
    first: list[str] = []
    strange = False
    for file, columns in zip(files, partitions_of(path, files), strict=True):
        data = read_file(file).removeprefix(_MARK)
        if not data.strip():
            continue
        if not _REGULAR.fullmatch(data) or _BLANK.search(data) or b"\0" in data:
            raise UnsureError(
                f"{path}: quotes, line ends or blank lines of {file.name} may be read in two ways"
            )
        text = data.decode(errors="replace").encode()
        strange |= text != data
        table = _texts(text, broken)
        names = table.column_names
        if any(not name.strip() for name in names):
            raise UnsureError(f"{path}: a column of {file.name} has no name")
        if tables and first != names:
            raise UnsureError(f"{path}: its files differ in their columns")
        first = names
        tables.append(add_columns(table, columns, path))
    whole = pa.concat_tables(tables) if tables else pa.table({})
    if strange:
        whole = _without_strange(whole, broken)
    return Csv(whole.column_names, whole, broken)


def _without_strange(table: pa.Table, broken: list[str]) -> pa.Table:
    """Take out the rows that have bytes which are not UTF-8: the replacement character stands for them."""
    kept = []
    for row in table.to_pylist():
        strange = any(isinstance(value, str) and REPLACEMENT in value for value in row.values())
        kept.append(not strange)
        if strange:
            broken.append(",".join("" if value is None else quoted(str(value)) for value in row.values()))
    return table.filter(pa.array(kept, pa.bool_()))


def _texts(data: bytes, broken: list[str]) -> pa.Table:
    """Read one file; an empty value is NULL, also one in quotes."""
    # Lines without a sign are passed over, also before the header.
    header = next(row for row in csv.reader(io.StringIO(data.decode())) if row)

    def keep(row: Any) -> Literal["skip"]:
        broken.append(row.text)
        return "skip"

    return pa.csv.read_csv(
        io.BytesIO(data),
        pa.csv.ReadOptions(use_threads=False, block_size=max(1 << 20, len(data) + 1)),
        pa.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=keep),
        pa.csv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            null_values=[""],
        ),
    )


def typed(table: Csv, path: str, texts: Iterable[str]) -> pa.Table:
    """Give columns the types that Spark infers, but for the columns `texts`."""
    texts = set(texts)
    columns = [
        # What folders name has its type.
        column if fold(name) in texts or column.type != pa.string() else _typed(column, name, path)
        for name, column in zip(table.names, table.columns.columns, strict=True)
    ]
    return pa.table(columns, names=table.names) if columns else table.columns


def _typed(column: pa.ChunkedArray[Any], name: str, path: str) -> pa.ChunkedArray[Any]:
    kinds: set[str] = set()
    unclear: str | None = None
    for text in column.unique().to_pylist():
        if text is None:
            continue
        kind = kind_of_text(text)
        unclear = text if kind is None else unclear
        kinds.add(kind or TEXT)
        if kind == TEXT:
            return column
    if unclear is not None:
        raise UnsureError(f"{path}: column {name} holds {unclear[:40]!r}, whose type is not clear")
    if kinds == {DAY}:
        return column.cast(pa.date32())
    if kinds == {TRUTH}:
        truths = [None if text is None else text.lower() == "true" for text in column.to_pylist()]
        return pa.chunked_array([pa.array(truths, pa.bool_())])
    if kinds == {WHOLE}:
        return pa.chunked_array([_parsed(column, int, pa.int64())])
    if kinds and kinds <= {WHOLE, FRACTION}:
        return pa.chunked_array([_parsed(column, float, pa.float64())])
    if DAY in kinds:
        raise UnsureError(f"{path}: column {name} holds days and numbers")
    return column


def _parsed(column: pa.ChunkedArray[Any], read: Any, kind: pa.DataType) -> pa.Array[Any]:
    return pa.array([None if text is None else read(text) for text in column.to_pylist()], kind)
