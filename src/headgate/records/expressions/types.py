"""Spark's types, as far as expressions need them, and the types that it finds for two operands.

An attribute has the type of its value (decision 2), so an expression is typed anew for every combination of
types that its attributes come in. The rules are those of Spark's ANSI mode.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.core.values import fold

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_PRECISION = 38
_MIN_SCALE = 6
"""Digits after the point that are kept when a result has too many digits."""


class Type(NamedTuple):
    """A type; `precision` and `scale` are of decimals, `element` of arrays, `fields` of objects."""

    name: str
    precision: int = 0
    scale: int = 0
    element: Type | None = None
    fields: tuple[tuple[str, Type], ...] = ()

    def __str__(self) -> str:
        """Write it as `typeof` does."""
        if self.name == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.name == "array":
            return f"array<{self.element}>"
        if self.name == "struct":
            return f"struct<{','.join(f'{name}:{kind}' for name, kind in self.fields)}>"
        return self.name


VOID = Type("void")
BOOL = Type("boolean")
INT = Type("int")
LONG = Type("bigint")
DOUBLE = Type("double")
STRING = Type("string")
DATE = Type("date")
TIMESTAMP = Type("timestamp")
WHOLE = frozenset({INT, LONG})
MOMENTS = frozenset({DATE, TIMESTAMP})
_ORDER = {INT: 1, LONG: 2, DOUBLE: 3}


def decimal(precision: int, scale: int) -> Type:
    """Return a type of decimals."""
    return Type("decimal", precision, scale)


def array(element: Type) -> Type:
    """Return a type of arrays."""
    return Type("array", element=element)


def is_decimal(kind: Type) -> bool:
    """Tell whether a type is one of decimals."""
    return kind.name == "decimal"


def is_number(kind: Type) -> bool:
    """Tell whether a type is one of numbers."""
    return kind in _ORDER or kind.name == "decimal"


def is_atomic(kind: Type) -> bool:
    """Tell whether values of a type have no parts."""
    return kind.name not in {"array", "struct"}


def adjusted(precision: int, scale: int) -> Type:
    """Return the type of a result, with fewer digits after the point where 38 do not do."""
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    whole = precision - scale
    return decimal(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, _MIN_SCALE)))


def as_decimal(kind: Type) -> Type:
    """Return the decimals that hold all values of a whole type."""
    return kind if is_decimal(kind) else decimal(10 if kind == INT else 20, 0)


def digits(value: Decimal | int) -> Type | None:
    """Return the type that the digits of a number ask for; None if Spark has none.

    >>> str(digits(Decimal("0.10"))), str(digits(120)), digits(Decimal(10) ** 38)
    ('decimal(2,2)', 'decimal(3,0)', None)
    """
    _, figures, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(figures) + max(0, exponent), scale)
    return decimal(precision, scale) if precision <= MAX_PRECISION else None


def tightest(left: Type, right: Type) -> Type | None:
    """Find the type that holds both without loss, or the more general of two."""
    if right in {left, VOID}:
        return left
    if left == VOID:
        return right
    if left in _ORDER and right in _ORDER:
        return left if _ORDER[left] > _ORDER[right] else right
    if {left, right} == MOMENTS:
        return TIMESTAMP
    return None


def _wider_decimal(left: Type, right: Type) -> Type | None:
    if not (is_number(left) and is_number(right)) or not (is_decimal(left) or is_decimal(right)):
        return None
    if DOUBLE in {left, right}:
        return DOUBLE
    left, right = as_decimal(left), as_decimal(right)
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    if whole + scale <= MAX_PRECISION:
        return decimal(whole + scale, scale)
    return decimal(MAX_PRECISION, max(0, MAX_PRECISION - whole))


def with_string(left: Type, right: Type) -> Type | None:
    """Find what a string becomes beside another type."""
    if left != STRING:
        left, right = right, left
    if left != STRING or not is_atomic(right):
        return None
    if right in WHOLE:
        return LONG
    return DOUBLE if is_number(right) else right


def common(left: Type, right: Type) -> Type | None:
    """Find the one type of two operands or branches; None if Spark refuses them together."""
    kind = tightest(left, right) or _wider_decimal(left, right) or with_string(left, right)
    if kind is None and left.element is not None and right.element is not None:
        inner = common(left.element, right.element)
        return None if inner is None else array(inner)
    return kind


def common_of(kinds: Iterable[Type], *, strings: bool = True) -> Type | None:
    """Find the one type of many; without `strings` a string is not cast for the others."""
    shared: Type | None = VOID
    for kind in kinds:
        if shared is not None:
            alone = not strings and STRING in {shared, kind}
            shared = tightest(shared, kind) if alone else common(shared, kind)
    return shared


def type_of(value: object) -> Type | None:
    """Return the type that a value of an event has; None if it has none that Spark could compute with.

    >>> str(type_of([1, None, 2.5])), str(type_of(Decimal("1.50"))), type_of([1, "x"])
    ('array<double>', 'decimal(3,2)', None)
    """
    kind = _PLAIN.get(type(value))
    if kind is not None:
        return kind
    if isinstance(value, Decimal):
        return digits(value)
    if isinstance(value, list | tuple):
        kinds: list[Type | None] = [VOID, *map(type_of, value)]
        inner = reduce(_beside, kinds)
        return None if inner is None else array(inner)
    if isinstance(value, dict):
        return _struct(value)
    return None


def _struct(value: dict[str, object]) -> Type:
    """Return the type of an object; a field that has none is left out, and so is NULL to functions."""
    kinds = ((fold(name), type_of(each)) for name, each in distinct(value).items())
    return Type("struct", fields=tuple((name, kind) for name, kind in kinds if kind is not None))


def distinct(value: dict[str, Any]) -> dict[str, Any]:
    """Leave out fields whose names differ in case only: Spark has no such object, so they are NULL.

    >>> distinct({"a": 1, "A": 2, "b": 3})
    {'b': 3}
    """
    if len(set(map(fold, value))) == len(value):
        return value
    folded = Counter(map(fold, value))
    return {name: each for name, each in value.items() if folded[fold(name)] == 1}


def _beside(left: Type | None, right: Type | None) -> Type | None:
    """Return the type of elements: numbers may be whole or not, all else is of one type."""
    if left is None or right is None:
        return None
    if VOID in {left, right} or left == right:
        return right if left == VOID else left
    if left in _ORDER and right in _ORDER:
        return DOUBLE
    if is_decimal(left) and is_decimal(right):
        return _wider_decimal(left, right)
    if left.name == right.name == "array":
        assert left.element is not None
        assert right.element is not None
        inner = _beside(left.element, right.element)
        return None if inner is None else array(inner)
    if left.name == right.name == "struct":
        fields = dict(left.fields)
        for name, kind in right.fields:
            met = _beside(fields.get(name, VOID), kind)
            # Of several types, it is NULL to functions.
            fields[name] = VOID if met is None else met
        return Type("struct", fields=tuple(sorted(fields.items())))
    return None


_PLAIN: dict[type, Type] = {
    type(None): VOID,
    bool: BOOL,
    int: LONG,
    float: DOUBLE,
    str: STRING,
    dt.datetime: TIMESTAMP,
    dt.date: TIMESTAMP,
}
