"""The values that an attribute of an event may have.

    kind        Python          Spark              JSON
    NULL        None            NULL               null, or absent
    BOOL        bool            BOOLEAN            true, false
    INT         int             BIGINT             a number without fraction or exponent
    FLOAT       float           DOUBLE             any other number
    DECIMAL     Decimal         DECIMAL            (a number is an INT or a FLOAT)
    STRING      str             STRING             a string
    TIMESTAMP   datetime        TIMESTAMP          (a string, cast where it is compared)
    ARRAY       list, tuple     ARRAY<one of them> an array
    OBJECT      dict            STRUCT             an object: only `IS [NOT] NULL` sees it

Nested objects are reached by dotted names: `{"user": {"age": 5}}` has the attributes `user` (OBJECT)
and `user.age` (INT). Names compare as in Spark, without regard to case.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Scalar: TypeAlias = bool | int | float | Decimal | str | dt.datetime | None
Value: TypeAlias = "Scalar | list[Value] | Mapping[str, Value]"
Path: TypeAlias = tuple[str, ...]
"""A dotted name, folded: `User.Age` is `("user", "age")`."""

MAX_DEPTH = 32
"""How deep objects may nest in an event, and arrays in an attribute."""

MAX_DECIMAL = 76
"""Digits of a decimal, before and after the point: those of Arrow's widest; Spark has 38."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


class Kind(IntEnum):
    """What a value is; arrays are told apart by their elements."""

    NULL = 0
    BOOL = 1
    INT = 2
    FLOAT = 3
    STRING = 4
    TIMESTAMP = 5
    ARRAY = 6
    OBJECT = 7
    DECIMAL = 8


_KINDS: dict[type, Kind] = {
    type(None): Kind.NULL,
    bool: Kind.BOOL,
    int: Kind.INT,
    float: Kind.FLOAT,
    Decimal: Kind.DECIMAL,
    str: Kind.STRING,
    dt.datetime: Kind.TIMESTAMP,
    dt.date: Kind.TIMESTAMP,
    list: Kind.ARRAY,
    tuple: Kind.ARRAY,
    dict: Kind.OBJECT,
}


def kind_of(value: object) -> Kind:
    """Tell the kind of a value.

    >>> kind_of(True).name, kind_of(1).name, kind_of([1]).name
    ('BOOL', 'INT', 'ARRAY')
    """
    kind = _KINDS.get(type(value))
    if kind is None:
        raise EventError(
            f"a value of type {type(value).__name__} is not supported: use None, bool, int, float, "
            "Decimal, str, datetime, a list of these, or a dict"
        )
    return kind


def micros(moment: dt.date) -> int:
    """Count microseconds since 1970; a date is its midnight, a time without zone is UTC.

    >>> micros(dt.date(1970, 1, 2))
    86400000000
    """
    if not isinstance(moment, dt.datetime):
        moment = dt.datetime(moment.year, moment.month, moment.day, tzinfo=dt.UTC)
    elif moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return (moment - _EPOCH) // _MICROSECOND


def fold(name: str) -> str:
    """Fold a name for comparison, as Spark resolves columns by default."""
    return name.lower()


def find_name(path: Path, names: Sequence[str]) -> int | None:
    """Find the last name of a path among those of columns; refuse two of them that only case tells apart.

    >>> find_name(("age",), ["id", "Age"]), find_name(("sex",), ["id", "Age"])
    (1, None)
    """
    found = [place for place, name in enumerate(names) if fold(name) == path[-1]]
    if len(found) > 1:
        raise EventError(
            f"the column {dotted(path)} is given twice: names that differ in case only are the same"
        )
    return found[0] if found else None


def flatten(data: Mapping[str, object]) -> dict[Path, object]:
    """List the attributes of a record by folded path, nested objects included.

    Checked here, once for all rooms: types, the range of integers, text that UTF-8 cannot hold, depth,
    and names that only case tells apart.

    >>> flatten({"Age": 5, "user": {"City": "Bern"}})
    {('age',): 5, ('user',): {'City': 'Bern'}, ('user', 'city'): 'Bern'}
    """
    flat: dict[Path, object] = {}
    flatten_into(flat, data, ())
    return flat


def flatten_into(flat: dict[Path, object], data: Mapping[str, object], prefix: Path) -> None:
    """Do the same for an object within a record, whose own path is given."""
    if len(prefix) > MAX_DEPTH:
        raise EventError(f"attribute {dotted(prefix)}: objects nest deeper than {MAX_DEPTH}")
    for name, value in data.items():
        if not isinstance(name, str):
            raise EventError(f"the attribute name {name!r} is not text")
        path = (*prefix, fold(name))
        if path in flat:
            raise EventError(
                f"attribute {dotted(path)} is given twice: names that differ in case only are the same"
            )
        check(value, path)
        flat[path] = value
        if type(value) is dict:
            flatten_into(flat, value, path)


def check(value: object, path: Path, depth: int = 0) -> None:
    """Refuse a value that no column of Spark could hold as it is."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise EventError(
                f"attribute {dotted(path)}: the text holds a lone surrogate at character {error.start + 1}, "
                "which UTF-8 cannot carry"
            ) from None
    elif isinstance(value, int):
        if not INT64_MIN <= value <= INT64_MAX:
            shown = value if value.bit_length() < 1000 else f"a number of {value.bit_length()} bits"
            raise EventError(
                f"attribute {dotted(path)}: {shown} does not fit into 64 bits; send it as a string"
            )
    elif isinstance(value, list | tuple):
        if depth >= MAX_DEPTH:
            raise EventError(f"attribute {dotted(path)}: arrays nest deeper than {MAX_DEPTH}")
        for element in value:
            check(element, path, depth + 1)
    elif type(value) not in _KINDS:
        try:
            kind_of(value)
        except EventError as error:
            raise EventError(f"attribute {dotted(path)}: {error}") from None
    elif type(value) is Decimal:
        _check_decimal(value, path)


def _check_decimal(value: Decimal, path: Path) -> None:
    if not value.is_finite():
        raise EventError(f"attribute {dotted(path)}: no decimal is {value}; send it as a float")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if max(len(digits), len(digits) + exponent, -exponent) > MAX_DECIMAL:
        raise EventError(
            f"attribute {dotted(path)}: a decimal of more than {MAX_DECIMAL} digits is not supported; "
            "round it, or send it as a string"
        )


def dotted(path: Path) -> str:
    """Write a path as users do.

    >>> dotted(("user", "age"))
    'user.age'
    """
    return ".".join(path)
