"""Which columns of a DataFrame filters can compare, by their types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types

from headgate.tables import comparing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from headgate.core.values import Path
    from headgate.runtime.targets import Target

_PLAIN = (
    types.BooleanType,
    types.DateType,
    types.DecimalType,
    types.DoubleType,
    types.FloatType,
    types.IntegralType,
    types.NullType,
    types.StringType,
    types.TimestampNTZType,
    types.TimestampType,
)


def check_types(table: DataFrame, path: str, target: Target) -> tuple[str, ...]:
    """Refuse columns that filters compare and cannot; returns the attributes that the table lacks."""
    return comparing.check_types(_fields(table.schema), path, target)


def attribute_paths(schema: types.StructType, mark: str = "") -> list[Path]:
    """List the attributes of a table by path, nested ones included; `mark` says what names mean."""
    return list(comparing.attribute_paths(_fields(schema), mark))


def is_comparable(kind: DataType) -> bool:
    """Tell whether filters can see values of a type."""
    return comparing.is_comparable(_arrow(kind))


def _fields(struct: types.StructType) -> list[pa.Field[pa.DataType]]:
    """Return columns with types that are compared as their own are, and what those are called."""
    return [
        pa.field(each.name, _arrow(each.dataType), metadata={comparing.CALLED: each.dataType.simpleString()})
        for each in struct
    ]


def _arrow(kind: DataType) -> pa.DataType:
    if isinstance(kind, types.StructType):
        return pa.struct(_fields(kind))
    if isinstance(kind, types.ArrayType):
        return pa.list_(_arrow(kind.elementType))
    if isinstance(kind, types.MapType):
        return pa.map_(pa.string(), _arrow(kind.valueType))
    return pa.null() if isinstance(kind, _PLAIN) else pa.binary()
