"""Which columns of a table filters can compare, by their types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.core.values import EXACT_JOINED, JOINED, below, dotted, same_name
from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.core.values import Path
    from headgate.runtime.targets import Target

    Field = pa.Field[pa.DataType]
    Fields = Iterable[Field]

CALLED = "called"
"""Where a column says what its type is called, if not as Arrow calls it."""


def check_types(fields: Fields, path: str, target: Target) -> tuple[str, ...]:
    """Refuse columns that filters compare and cannot: they would never match, and nobody would know.

    Returns the attributes that filters name and the table lacks.
    """
    unknown = []
    for attribute, column, inside in attribute_fields(fields, target):
        if column is None:
            unknown.append(dotted(attribute))
        elif inside:
            # Spark would go there.
            what = f"{path}: {dotted(attribute[:-inside])} is {_called(column)}"
            raise TableError(f"{what}, which {dotted(attribute)} cannot go into: make it a struct")
        elif attribute in target.compared and not is_comparable(column.type):
            what = f"{path}: {dotted(attribute)} is {_called(column)}, which filters cannot compare"
            raise TableError(f"{what}: cast it to a type that filters know")
    return tuple(sorted(unknown))


def attribute_fields(fields: Fields, target: Target) -> Iterator[tuple[Path, Field | None, int]]:
    """Find the columns of the attributes that filters name; None where the table lacks one.

    The last says how many names go on inside it, where it is a map.
    """
    fields = list(fields)
    return ((attribute, *_find(fields, attribute)) for attribute in target.attributes)


def _called(field: Field) -> str:
    name = (field.metadata or {}).get(CALLED.encode())
    return str(field.type) if name is None else name.decode()


def attribute_paths(fields: Fields, mark: str = "", prefix: Path = ()) -> Iterator[Path]:
    """List the attributes of a table by path, nested ones included; `mark` says what names mean."""
    for each in fields:
        path = below(prefix, each.name, mark)
        yield path
        yield from attribute_paths(_inside(each.type), mark, path)


def is_comparable(kind: pa.DataType) -> bool:
    """Tell whether filters can see values of a type; an object is one, and never equal to anything."""
    if isinstance(kind, pa.ListType):
        return is_comparable(kind.value_type)
    return not (pa.types.is_map(kind) or pa.types.is_binary(kind))


def _inside(kind: pa.DataType) -> Fields:
    return kind if isinstance(kind, pa.StructType) else ()


def _find(fields: Fields, attribute: Path) -> tuple[Field | None, int]:
    """Find the column of an attribute, through structs, or the map on the way to it."""
    if attribute[0][:1] in (JOINED, EXACT_JOINED):
        return _find_joined(fields, attribute[0][0], attribute), 0
    column: Field | None = None
    for position, name in enumerate(attribute):
        if column is not None and pa.types.is_map(column.type):
            return column, len(attribute) - position
        column = next((each for each in fields if same_name(name, each.name)), None)
        if column is None:
            return None, 0
        fields = _inside(column.type)
    return column, 0


def _find_joined(fields: Fields, mark: str, attribute: Path, prefix: Path = ()) -> Field | None:
    """Find a column by a name whose dots may be its own, or go into structs."""
    for each in fields:
        path = below(prefix, each.name, mark)
        if path == attribute:
            return each
        inside = attribute[0].startswith(f"{path[0]}.")
        column = _find_joined(_inside(each.type), mark, attribute, path) if inside else None
        if column is not None:
            return column
    return None
