"""Which rows Spark SQL would say that a filter holds for, said in this process.

An index says the same where each column has one type and what is compared is of one kind, or can be cast
value by value. All else is left to Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.core.casts import to_bool, to_date, to_double, to_int, to_timestamp
from headgate.core.subscription import Subscription
from headgate.core.values import dotted, fold
from headgate.records.index.index import CHUNK, RecordIndex
from headgate.records.language import model
from headgate.records.names import plain_text
from headgate.tables.places import UnsureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headgate.core.values import Path
    from headgate.records.language.model import Expression, Predicate

    Column = pa.ChunkedArray[Any] | pa.Array[Any]

_CASTS: dict[model.LiteralType, Callable[[str], object]] = {
    model.LiteralType.BOOL: to_bool,
    model.LiteralType.INT: to_int,
    model.LiteralType.DECIMAL: to_double,
    model.LiteralType.DOUBLE: to_double,
    model.LiteralType.DATE: to_date,
    model.LiteralType.TIMESTAMP: to_timestamp,
}
"""How Spark casts texts that are compared with such literals."""


def where(table: pa.Table, sql: str, tree: Expression, title: str) -> pa.Table:
    """Return the rows for which a filter holds; leave to Spark what it may see otherwise."""
    _check(table, tree, title)
    index = RecordIndex.build([Subscription(0, sql)])
    matches: list[Any] = []
    begun = 0
    for batch in table.combine_chunks().to_batches(CHUNK):
        numbers = pa.array(np.arange(begun, begun + batch.num_rows, dtype=np.int64))
        matches += index.match_batch(batch, numbers).column(0).to_pylist()
        begun += batch.num_rows
    return table.take(pa.array(matches, pa.int64()))


def _check(table: pa.Table, tree: Expression, events: str) -> None:
    """Leave to Spark what it may see otherwise."""
    columns = dict(_columns(table))
    folded = [fold(name) for name in table.column_names]
    if len(set(folded)) < len(folded):
        raise UnsureError(f"{events}: two columns have one name")
    for each in model.predicates(tree):
        if each.attribute.expression is not None:
            what = f"{events}: {plain_text(each.attribute.expression.text)} is computed"
            raise UnsureError(f"{what}, and Spark has the types of columns for it")
        if not _is_clear(each, columns[each.attribute.path]):
            what = f"{events}: {dotted(each.attribute.path)} is {columns[each.attribute.path].type}"
            raise UnsureError(f"{what}, and Spark casts what it is compared with")


def _columns(table: pa.Table) -> Iterator[tuple[Path, Column]]:
    """List the attributes of a table by folded path, nested ones included."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        yield from _nested(column.combine_chunks(), (fold(name),))


def _nested(column: Column, path: Path) -> Iterator[tuple[Path, Column]]:
    yield path, column
    if isinstance(column, pa.StructArray):
        for field, inner in zip(column.type, column.flatten(), strict=True):
            yield from _nested(inner, (*path, fold(field.name)))


def _is_clear(predicate: Predicate, column: Column) -> bool:
    """Tell whether Spark compares values as we do: all are of the literals' kind, or can be cast to it."""
    kind: pa.DataType = column.type
    if isinstance(predicate, model.IsNull) or column.null_count == len(column):
        return not isinstance(predicate, model.Truth) or pa.types.is_boolean(kind)
    if isinstance(predicate, model.Truth):
        return pa.types.is_boolean(kind)
    if isinstance(predicate, model.HasWord) and pa.types.is_string(kind):
        # Beyond ASCII, what is a word to Spark depends on its Java.
        return all(text.isascii() for text in column.unique().to_pylist() if text is not None)
    if isinstance(predicate, model.Textual) or predicate.attribute.function:
        return pa.types.is_string(kind)
    types = {literal.type for literal in _literals(predicate)} - {model.LiteralType.NULL}
    if isinstance(kind, pa.ListType):
        return _alike(types, kind.value_type)
    if _alike(types, kind):
        return True
    if not pa.types.is_string(kind) or len(types) != 1:
        return False
    cast = _CASTS[types.pop()]
    return all(cast(text) is not None for text in column.unique().to_pylist() if text is not None)


def _literals(predicate: Any) -> tuple[Any, ...]:
    if hasattr(predicate, "literals"):
        return tuple(predicate.literals)
    return (predicate.low, predicate.high) if hasattr(predicate, "low") else (predicate.literal,)


def _alike(types: set[model.LiteralType], kind: pa.DataType) -> bool:
    if pa.types.is_boolean(kind):
        return types <= {model.LiteralType.BOOL}
    if pa.types.is_string(kind):
        return types <= {model.LiteralType.STRING}
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return types <= model.NUMBERS
    # Decimals are not among them: Spark rounds where no type of 38 digits holds column and literals.
    return (pa.types.is_date(kind) or pa.types.is_timestamp(kind)) and types <= model.MOMENTS
