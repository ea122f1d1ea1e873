"""Objects of JSON as columns, with the types that Spark infers where those are clear.

A column that holds values of several kinds is `UnsureError`: Spark would make text of them, or drop some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.core.event import ID
from headgate.core.values import fold
from headgate.tables.places import UnsureError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PLAIN: dict[frozenset[type], pa.DataType] = {
    frozenset({bool}): pa.bool_(),
    frozenset({int}): pa.int64(),
    frozenset({float}): pa.float64(),
    frozenset({int, float}): pa.float64(),
    frozenset({str}): pa.string(),
    # Nothing to infer from.
    frozenset(): pa.string(),
}


def columns_of(rows: Sequence[Mapping[str, Any]], path: str) -> pa.Table:
    """Make columns of objects, in the order of their names.

    >>> columns_of([{"id": 7, "b": 1}, {"id": "x", "b": 1.5, "a": {"c": None}}], "events.jsonl").to_pylist()
    [{'a': None, 'b': 1.0, 'id': '7'}, {'a': {'c': None}, 'b': 1.5, 'id': 'x'}]
    """
    names = sorted({name for row in rows for name in row})
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        if fold(name) == ID and {type(value) for value in values} == {int, str}:
            values = [str(value) for value in values]
        kind = _kind(values, name, path)
        columns.append(pa.array(values, kind))
    return pa.table(columns, names=names)


def _kind(values: Sequence[Any], name: str, path: str) -> pa.DataType:
    found = frozenset(type(value) for value in values if value is not None)
    plain = _PLAIN.get(found)
    if plain is not None:
        return plain
    if found == {list}:
        inner = [each for value in values if value is not None for each in value]
        return pa.list_(pa.field("element", _kind(inner, name, path)))
    fields = sorted({field for value in values if isinstance(value, dict) for field in value})
    if found == {dict} and fields:
        objects = [value for value in values if value is not None]
        return pa.struct(
            [
                (field, _kind([value.get(field) for value in objects], f"{name}.{field}", path))
                for field in fields
            ]
        )
    what = "is an empty object" if found == {dict} else "has values of several types"
    raise UnsureError(f"{path}: {name} {what}")
