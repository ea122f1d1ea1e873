"""Tables of CSV, read without Spark where it would read the same: regular quotes, one header, clear types.

Whatever could be read in two ways is `UnsureError`: quotes inside a value, lines of blanks, numbers with an
exponent, times. Spark infers the type of a column from all of its values, and so does `typed`.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.core.text.csv_text import CsvText
from headgate.core.values import fold
from headgate.tables.packed import read_file
from headgate.tables.partitions import add_columns, partitions_of
from headgate.tables.places import UnsureError, check_header
from headgate.tables.text_types import TEXT, TYPES, UnclearError, typed_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from headgate.core.text.csv_text import CsvRow

_REGULAR = re.compile(rb'(?:(?:"(?:[^"]|"")*+"|[^",\r\n]*+)(?:,|\r?\n|\Z))*+')
_BLANK = re.compile(rb"^[ \t]+\r?$", re.MULTILINE)


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
    """Read all columns as text; an empty value is NULL, also one in quotes."""
    check_header(path)
    tables: list[pa.Table] = []
    broken: list[str] = []
    for file, more in zip(files, partitions_of(path, files), strict=True):
        data = read_file(file).removeprefix(BOM_UTF8)
        if not data.strip():
            continue
        if not _REGULAR.fullmatch(data) or _BLANK.search(data) or b"\0" in data:
            raise UnsureError(
                f"{path}: quotes, line ends or blank lines of {file.name} may be read in two ways"
            )
        text = CsvText(data)
        names = text.header.values
        if any(not name.strip() for name in names):
            raise UnsureError(f"{path}: a column of {file.name} has no name")
        table = columns_of(names, text, broken)
        if tables and tables[0].column_names != [*names, *(name for name, *_ in more)]:
            raise UnsureError(f"{path}: its files differ in their columns")
        tables.append(add_columns(table, more, path))
    whole = pa.concat_tables(tables) if tables else pa.table({})
    return Csv(whole.column_names, whole, broken)


def columns_of(names: Sequence[str], rows: Iterable[CsvRow], broken: list[str]) -> pa.Table:
    """Put rows into columns of text; those that are none are added to `broken`."""
    values = []
    for row in rows:
        if row.reason is None:
            values.append(row.values)
        else:
            broken.append(row.text)
    columns = zip(*values, strict=True) if values else ([] for _ in names)
    arrays = [pa.array([value or None for value in column], pa.string()) for column in columns]
    return pa.table(dict(zip(names, arrays, strict=True)))


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
    try:
        kind, values = typed_column(text for text in column.unique().to_pylist() if text is not None)
    except UnclearError as error:
        text = str(error)[:40]
        raise UnsureError(f"{path}: column {name} holds {text!r}, whose type is not clear") from None
    if kind == TEXT:
        return column
    typed_values: list[Any] = [None if text is None else values[text] for text in column.to_pylist()]
    return pa.chunked_array([pa.array(typed_values, TYPES[kind])])
