"""The types of attributes, where they are known before the events come."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from headgate.core.arguments import likeliest
from headgate.core.event import read_object
from headgate.core.values import MAX_DECIMAL, Kind, below, dotted
from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from headgate.core.values import Path

_NAMES = {
    "null": Kind.NULL,
    "bool": Kind.BOOL,
    "int64": Kind.INT,
    "float64": Kind.FLOAT,
    "decimal": Kind.DECIMAL,
    "string": Kind.STRING,
    "timestamp": Kind.TIMESTAMP,
}
_WORDS = {kind: name for name, kind in _NAMES.items()}
_DIGITS = re.compile(r"\bdecimal\s*\(\s*([0-9]{1,3})\s*(?:,\s*(-?[0-9]{1,3})\s*)?\)")


def _checked_digits(match_: re.Match[str]) -> str:
    precision, scale = int(match_[1]), int(match_[2] or 0)
    if not 0 < precision <= MAX_DECIMAL or abs(scale) > MAX_DECIMAL or precision - scale > MAX_DECIMAL:
        raise TableError(f"type {match_[0]!r} is not known: a decimal has at most {MAX_DECIMAL} digits")
    return "decimal"


@dataclass(frozen=True)
class Type:
    """A kind, and for arrays the kind of the elements (None where nothing is known of them).

    Digits of decimals are checked and not kept: filters compare decimals whatever they have.

    >>> str(Type.parse("array<int64>")), Type.parse("string").kind.name, str(Type.parse("DECIMAL(10, 2)"))
    ('array<int64>', 'STRING', 'decimal')
    """

    kind: Kind
    element: Kind | None = None

    @classmethod
    def parse(cls, text: str) -> Type:
        """Read a type's name."""
        word = _DIGITS.sub(_checked_digits, text.strip().lower())
        if word.startswith("array<") and word.endswith(">") and word[6:-1] in _NAMES:
            return cls(Kind.ARRAY, _NAMES[word[6:-1]])
        if word in _NAMES:
            return cls(_NAMES[word])
        known = ", ".join(_NAMES)
        raise TableError(f"type {text!r} is not known: use one of {known}, or array<one of them>")

    def __str__(self) -> str:
        """Write the type's name."""
        if self.kind is Kind.ARRAY:
            return f"array<{'null' if self.element is None else _WORDS.get(self.element, 'object')}>"
        return _WORDS.get(self.kind, "object")


@dataclass(frozen=True)
class Schema:
    """The types of all attributes, by path; folded, unless names have a mark.

    >>> schema = Schema.from_json({"age": "int64", "user": {"city": "string"}})
    >>> str(schema.types[("user", "city")])
    'string'
    >>> schema.nearest(("user", "ctiy"))
    'user.city'
    """

    types: Mapping[Path, Type]

    @classmethod
    def from_json(cls, tree: Mapping[str, object], mark: str = "") -> Schema:
        """Read `{"age": "int64", "tags": "array<string>", "user": {"city": "string"}}`."""
        given: object = tree
        if not isinstance(given, Mapping):
            raise TableError(f"schema: {type(tree).__name__} is given: give a mapping of names and types")
        types: dict[Path, Type] = {}
        _read(tree, (), types, mark)
        return cls(types)

    @classmethod
    def from_arrow(cls, schema: pa.Schema, mark: str = "") -> Schema:
        """Take over the types of a table; columns of types we do not know count as objects."""
        given: object = schema
        if not hasattr(given, "pandas_metadata"):
            raise TableError(f"schema: {type(schema).__name__} is given: give the schema of an Arrow table")
        types: dict[Path, Type] = {}
        for field in schema:
            _read_arrow(field, (), types, mark)
        return cls(types)

    def nearest(self, path: Path) -> str | None:
        """Suggest the known name most like an unknown one."""
        return likeliest(dotted(path), map(dotted, self.types))


def _read(tree: Mapping[Any, object], prefix: Path, types: dict[Path, Type], mark: str) -> None:
    for name, entry in tree.items():
        if not isinstance(name, str):
            raise TableError(f"schema: the name {name!r} is not text")
        path = below(prefix, name, mark)
        if path in types and not (isinstance(entry, dict) and types[path].kind is Kind.OBJECT and mark):
            raise TableError(
                f"schema: attribute {dotted(path)} is given twice: names that differ in case only "
                "are the same"
            )
        if isinstance(entry, str):
            try:
                types[path] = Type.parse(entry)
            except TableError as error:
                raise TableError(f"schema: attribute {dotted(path)}: {error}") from None
        elif isinstance(entry, dict):
            types[path] = Type(Kind.OBJECT)
            _read(entry, path, types, mark)
        else:
            raise TableError(
                f"schema: attribute {dotted(path)} has {entry!r}: give a type's name or an object"
            )


def _read_arrow(field: pa.Field[pa.DataType], prefix: Path, types: dict[Path, Type], mark: str) -> None:
    path = below(prefix, field.name, mark)
    kind = arrow_kind(field.type)
    if kind is Kind.ARRAY:
        types[path] = Type(kind, arrow_kind(field.type.field(0).type))
        return
    types[path] = Type(kind)
    from pyarrow.types import is_struct

    if is_struct(field.type):
        for child in field.type:
            _read_arrow(child, path, types, mark)


def arrow_kind(kind: pa.DataType) -> Kind:
    """Say what values an Arrow type holds; OBJECT for anything that only `IS NULL` can see.

    >>> import pyarrow as pa
    >>> arrow_kind(pa.int32()).name, arrow_kind(pa.list_(pa.string())).name
    ('INT', 'ARRAY')
    """
    from pyarrow.types import is_dictionary, is_run_end_encoded

    if is_dictionary(kind) or is_run_end_encoded(kind):
        return arrow_kind(kind.value_type)
    for test, ours in _arrow():
        if test(kind):
            return ours
    return Kind.OBJECT


@cache
def _arrow() -> tuple[tuple[Callable[[pa.DataType], bool], Kind], ...]:
    # A schema of JSON is read where nothing else needs Arrow, which takes long to load.
    from pyarrow import types

    return (
        (types.is_null, Kind.NULL),
        (types.is_boolean, Kind.BOOL),
        (types.is_integer, Kind.INT),
        (types.is_floating, Kind.FLOAT),
        (types.is_string, Kind.STRING),
        (types.is_large_string, Kind.STRING),
        (types.is_string_view, Kind.STRING),
        (types.is_decimal, Kind.DECIMAL),
        (types.is_timestamp, Kind.TIMESTAMP),
        (types.is_date, Kind.TIMESTAMP),
        (types.is_list, Kind.ARRAY),
        (types.is_large_list, Kind.ARRAY),
        (types.is_fixed_size_list, Kind.ARRAY),
        (types.is_list_view, Kind.ARRAY),
        (types.is_large_list_view, Kind.ARRAY),
    )


@lru_cache(maxsize=4)
def read_schema(text: str, mark: str = "") -> Schema:
    """Read the types of attributes from JSON text, by paths with a mark."""
    return Schema.from_json(read_object(text), mark)
