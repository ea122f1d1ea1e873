"""Which columns of a table filters can compare, by their types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headgate.core.values import EXACT_JOINED, JOINED, below, dotted, same_name
from headgate.errors import TableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.core.values import Path
    from headgate.runtime.targets import Target

_COMPARABLE = (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)


def check_types(table: DataFrame, path: str, target: Target) -> tuple[str, ...]:
    """Refuse columns that filters compare and cannot: they would never match, and nobody would know.

    Returns the attributes that filters name and the table lacks.
    """
    unknown = []
    for attribute in target.attributes:
        kind = _find(table.schema, attribute, path)
        if kind is None:
            unknown.append(dotted(attribute))
        elif attribute in target.compared and not is_comparable(kind):
            what = f"{path}: {dotted(attribute)} is {kind.simpleString()}, which filters cannot compare"
            raise TableError(f"{what}: cast it to a type that filters know")
    return tuple(sorted(unknown))


def _find(kind: DataType, attribute: Path, path: str) -> DataType | None:
    """Find the type of an attribute, through nested structs; into maps Spark would go, and filters cannot."""
    if attribute[0][:1] in (JOINED, EXACT_JOINED):
        return _find_joined(kind, attribute[0][0], attribute)
    for place, name in enumerate(attribute):
        if isinstance(kind, MapType):
            what = f"{path}: {dotted(attribute[:place])} is {kind.simpleString()}"
            raise TableError(f"{what}, which {dotted(attribute)} cannot go into: make it a struct")
        fields = kind.fields if isinstance(kind, StructType) else []
        found = next((field for field in fields if same_name(name, field.name)), None)
        if found is None:
            return None
        kind = found.dataType
    return kind


def _find_joined(kind: DataType, mark: str, attribute: Path, prefix: Path = ()) -> DataType | None:
    """Find the type of a name whose dots may be its own, or go into structs."""
    for field in kind.fields if isinstance(kind, StructType) else []:
        path = below(prefix, field.name, mark)
        if path == attribute:
            return field.dataType
        inside = attribute[0].startswith(f"{path[0]}.")
        found = _find_joined(field.dataType, mark, attribute, path) if inside else None
        if found is not None:
            return found
    return None


def is_comparable(kind: DataType) -> bool:
    """Tell whether filters can see values of a type; an object is one, and never equal to anything."""
    if isinstance(kind, ArrayType):
        return is_comparable(kind.elementType)
    return isinstance(kind, _COMPARABLE)
