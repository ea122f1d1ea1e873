"""Texts of tables whose bytes are not UTF-8: their rows are refused.

Parquet keeps any bytes as text. Readers of CSV put the replacement character for them: where a file has such
bytes at all, rows with that character are taken for those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.core.arrays import Bools

    Column = pa.Array[Any] | pa.ChunkedArray[Any]


def is_text(column: Column) -> bool:
    """Tell whether all texts of a column, also those inside its values, are UTF-8."""
    return all(map(_is_text, column.chunks if isinstance(column, pa.ChunkedArray) else [column]))


def _is_text(column: pa.Array[Any]) -> bool:
    if not has_texts(column.type):
        return True
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        data = column.buffers()[2]
        # Most texts are ASCII, which is seen at once.
        if data is None or not data.size or np.frombuffer(memoryview(data), np.uint8).max() < 0x80:
            return True
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def has_texts(kind: pa.DataType) -> bool:
    """Tell whether values of a type are texts, or have such inside them."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return True
    return any(has_texts(kind.field(index).type) for index in range(kind.num_fields))


def bad_rows(columns: Iterable[Column]) -> Bools | None:
    """Tell the rows that have texts which are not UTF-8; None if there are none."""
    flags: Bools | None = None
    for column in columns:
        if not is_text(column):
            bad = np.array([not _is_whole(value) for value in as_bytes(column).to_pylist()], np.bool_)
            flags = bad if flags is None else flags | bad
    return flags if flags is not None and flags.any() else None


def as_bytes(column: Column) -> Column:
    """Return a column with bytes in the place of texts."""
    return column.cast(_bytes_type(column.type))


def _bytes_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind):
        return pa.binary()
    if pa.types.is_large_string(kind):
        return pa.large_binary()
    if isinstance(kind, pa.StructType):
        return pa.struct([field.with_type(_bytes_type(field.type)) for field in kind])
    if isinstance(kind, pa.MapType):
        return pa.map_(_bytes_type(kind.key_type), _bytes_type(kind.item_type))
    if isinstance(kind, pa.ListType):
        return pa.list_(_bytes_type(kind.value_type))
    return kind


def _is_whole(value: Any) -> bool:
    if isinstance(value, bytes):
        try:
            value.decode()
        except UnicodeDecodeError:
            return False
        return True
    if isinstance(value, dict):
        return all(map(_is_whole, value.values()))
    return not isinstance(value, list | tuple) or all(map(_is_whole, value))


def shown(table: pa.Table) -> list[dict[str, Any]]:
    """List rows with the replacement character for what is not UTF-8."""
    columns = [
        [_shown(value) for value in as_bytes(column).to_pylist()]
        if has_texts(column.type)
        else column.to_pylist()
        for column in table.columns
    ]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, dict):
        return {name: _shown(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_shown, value))
    return value


def split(table: pa.Table, names: Sequence[str] | None = None) -> tuple[pa.Table, pa.Table]:
    """Take rows apart: those whose texts are UTF-8, in some columns or in all, and the others."""
    bad = bad_rows(table.column(name) for name in table.column_names if names is None or name in names)
    if bad is None:
        return table, table.slice(0, 0)
    return table.filter(pa.array(~bad)), table.filter(pa.array(bad))
