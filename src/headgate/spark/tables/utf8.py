"""Texts of columns whose bytes are not UTF-8, told by Spark."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column


def are_utf8(values: Iterable[tuple[Column, DataType]]) -> Column | None:
    """Tell whether all texts in values of some types are UTF-8; None if there can be none. NULL is."""
    found = [_is_utf8(value, kind) for value, kind in values if _has_texts(kind)]
    return reduce(and_, found) if found else None


def _has_texts(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_texts(field.dataType) for field in kind)
    if isinstance(kind, MapType):
        return _has_texts(kind.keyType) or _has_texts(kind.valueType)
    return _has_texts(kind.elementType) if isinstance(kind, ArrayType) else isinstance(kind, StringType)


def _is_utf8(value: Column, kind: DataType) -> Column:
    if isinstance(kind, StructType):
        inner = are_utf8((value.getField(field.name), field.dataType) for field in kind)
    elif isinstance(kind, MapType):
        entries = ((sf.map_keys(value), kind.keyType), (sf.map_values(value), kind.valueType))
        inner = are_utf8((values, ArrayType(inside)) for values, inside in entries)
    elif isinstance(kind, ArrayType):
        inner = sf.forall(value, lambda each: _is_utf8(each, kind.elementType))
    else:
        inner = sf.is_valid_utf8(value)
    assert inner is not None, "it has texts"
    return sf.coalesce(inner, sf.lit(True))
