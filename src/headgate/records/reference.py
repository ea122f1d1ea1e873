"""The obvious slow answer: three-valued logic over the parsed tree, one event and one filter at a time.

This is the room's definition of right. It knows nothing of rewrites, value sets or arrays, and it is
itself checked against Spark SQL.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, assert_never

from headgate.core.casts import to_bool, to_date, to_double, to_int, to_timestamp
from headgate.core.text.alphabets import words
from headgate.core.values import Kind, kind_of, micros
from headgate.records.computed import LOWER, text_form, value_of
from headgate.records.language import model
from headgate.records.language.patterns import to_regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from headgate.core.values import Path

_HOLDS: dict[model.Op, Callable[[int], bool]] = {
    model.Op.EQ: lambda order: order == 0,
    model.Op.NE: lambda order: order != 0,
    model.Op.LT: lambda order: order < 0,
    model.Op.LE: lambda order: order <= 0,
    model.Op.GT: lambda order: order > 0,
    model.Op.GE: lambda order: order >= 0,
    model.Op.NULL_SAFE_EQ: lambda order: order == 0,
}
_FAMILIES = {
    Kind.BOOL: {model.LiteralType.BOOL},
    Kind.INT: model.NUMBERS,
    Kind.FLOAT: model.NUMBERS,
    Kind.DECIMAL: model.NUMBERS,
    Kind.STRING: {model.LiteralType.STRING},
    Kind.TIMESTAMP: model.MOMENTS,
}


def matches(expression: model.Expression, attributes: Mapping[Path, object]) -> bool:
    """Tell whether an event is kept.

    >>> from headgate.records.language.parse import parse_filter
    >>> matches(parse_filter("age > 30"), {("age",): 35}), matches(parse_filter("age > 30"), {})
    (True, False)
    """
    return evaluate(expression, attributes) is True


def evaluate(expression: model.Expression, attributes: Mapping[Path, object]) -> bool | None:
    """Evaluate to TRUE, FALSE or NULL; where Spark would raise for a type, the predicate is NULL."""
    match expression:
        case model.And(children):
            return all_of(evaluate(child, attributes) for child in children)
        case model.Or(children):
            return any_of(evaluate(child, attributes) for child in children)
        case model.Not(child):
            return negate(evaluate(child, attributes))
        case model.Constant(constant):
            return constant
    attribute = expression.attribute
    value = value_of(attribute.path, attributes)
    if attribute.expression is not None:
        value = attribute.expression.of_attributes(attributes)
    elif attribute.function == LOWER:
        text = text_form(value)
        value = None if text is None else text.lower()
    match expression:
        case model.IsNull():
            return value is None
        case model.Comparison(op, _, literal):
            return _comparison(op, value, literal)
        case model.Between(_, low, high):
            return all_of((_comparison(model.Op.GE, value, low), _comparison(model.Op.LE, value, high)))
        case model.In(_, literals):
            return _in(value, literals)
        case model.Like(_, pattern, escape):
            text = text_form(value)
            return None if text is None else bool(to_regex(pattern, escape).fullmatch(text))
        case model.HasWord(_, word):
            text = text_form(value)
            return None if text is None else word in words(text)
        case model.Truth():
            return _comparison(model.Op.EQ, value, model.Literal(model.LiteralType.BOOL, value=True))
        case model.ArrayContains(_, literal):
            return _overlap(value, (literal,))
        case model.ArraysOverlap(_, literals):
            return _overlap(value, literals)
        case model.ForAll(_, literals, nulls):
            return _forall(value, literals, nulls=nulls)
    assert_never(expression)


def all_of(values: Iterable[bool | None]) -> bool | None:
    """AND: FALSE wins, then NULL."""
    distinct = set(values)
    return False if False in distinct else None if None in distinct else True


def any_of(values: Iterable[bool | None]) -> bool | None:
    """OR: TRUE wins, then NULL."""
    distinct = set(values)
    return True if True in distinct else None if None in distinct else False


def negate(value: bool | None) -> bool | None:
    """NOT: NULL stays."""
    return None if value is None else not value


def compare(value: object, literal: model.Literal) -> int | None:
    """Order a value and a literal: negative, 0 or positive; None where Spark cannot compare them.

    Spark casts one side to the other's type: the literal if the value is a number, a Boolean or a
    timestamp and the literal a string; the value if it is a string and the literal is not; whole
    numbers to double beside a double, and to decimal beside a decimal; decimals to double beside a double or
    a string.
    """
    other = literal.value
    match kind_of(value), literal.type:
        case Kind.STRING, model.LiteralType.STRING:
            return _order(value, other)
        case Kind.STRING, _:
            assert isinstance(value, str)
            return _order(_cast_text(value, literal.type), _as_double(other, literal.type))
        case Kind.BOOL, model.LiteralType.BOOL:
            return _order(value, other)
        case Kind.BOOL, model.LiteralType.STRING:
            return _order(value, to_bool(str(other)))
        case Kind.INT, model.LiteralType.INT | model.LiteralType.DECIMAL:
            return _order(value, other)
        case Kind.INT, model.LiteralType.DOUBLE:
            assert isinstance(value, int)
            return _order(float(value), other)
        case Kind.INT, model.LiteralType.STRING:
            return _order(value, to_int(str(other)))
        case Kind.FLOAT, model.LiteralType.INT | model.LiteralType.DECIMAL | model.LiteralType.DOUBLE:
            assert isinstance(other, int | float | Decimal)
            return _order(value, float(other))
        case Kind.FLOAT, model.LiteralType.STRING:
            return _order(value, to_double(str(other)))
        case Kind.DECIMAL, model.LiteralType.INT | model.LiteralType.DECIMAL:
            return _order(value, other)
        case Kind.DECIMAL, model.LiteralType.DOUBLE | model.LiteralType.STRING:
            assert isinstance(value, Decimal)
            return _order(float(value), to_double(other) if isinstance(other, str) else other)
        case Kind.TIMESTAMP, model.LiteralType.DATE | model.LiteralType.TIMESTAMP:
            assert isinstance(value, dt.date)
            return _order(micros(value), other)
        case Kind.TIMESTAMP, model.LiteralType.STRING:
            assert isinstance(value, dt.date)
            return _order(micros(value), to_timestamp(str(other)))
    return None


def _cast_text(value: str, to: model.LiteralType) -> object:
    match to:
        case model.LiteralType.INT:
            return to_int(value)
        case model.LiteralType.DECIMAL | model.LiteralType.DOUBLE:
            return to_double(value)
        case model.LiteralType.BOOL:
            return to_bool(value)
        case model.LiteralType.DATE:
            return to_date(value)
        case model.LiteralType.TIMESTAMP:
            return to_timestamp(value)
    return None


def _as_double(value: object, kind: model.LiteralType) -> object:
    """A string meets a decimal as doubles."""
    return float(value) if kind is model.LiteralType.DECIMAL and isinstance(value, Decimal) else value


def _order(left: object, right: object) -> int | None:
    """Compare two values of one type; NaN equals itself and is greater than any other number."""
    if left is None or right is None:
        return None
    if isinstance(left, float) and isinstance(right, float) and (math.isnan(left) or math.isnan(right)):
        return math.isnan(left) - math.isnan(right)
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    assert isinstance(left, int | float | Decimal)
    assert isinstance(right, int | float | Decimal)
    return (left > right) - (left < right)


def _comparison(op: model.Op, value: object, literal: model.Literal) -> bool | None:
    if op is model.Op.NULL_SAFE_EQ and (value is None or literal == model.NULL):
        return value is None and literal == model.NULL
    if value is None or literal == model.NULL:
        return None
    order = compare(value, literal)
    return None if order is None else _HOLDS[op](order)


def _in(value: object, literals: tuple[model.Literal, ...]) -> bool | None:
    if value is None:
        return None
    common = model.common_type(literals)
    assert common is not None
    orders = [compare(value, model.convert(literal, common)) for literal in literals if literal != model.NULL]
    if None in orders:
        return None
    return any_of(
        (*(order == 0 for order in orders), *(None for literal in literals if literal == model.NULL))
    )


def _overlap(value: object, literals: tuple[model.Literal, ...]) -> bool | None:
    if not isinstance(value, list | tuple):
        return None
    if not literals or not value:
        return False
    common = model.common_type(literals)
    assert common is not None
    equal = [
        _equal_element(element, model.convert(literal, common)) for element in value for literal in literals
    ]
    return any_of(equal)


def _forall(value: object, literals: tuple[model.Literal, ...], *, nulls: bool) -> bool | None:
    if not isinstance(value, list | tuple):
        return None
    return all_of((nulls and element is None) or _in(element, literals) for element in value)


def _equal_element(element: object, literal: model.Literal) -> bool | None:
    """Elements meet literals of their own family only; Spark refuses other mixtures."""
    if element is None or literal == model.NULL or literal.type not in _FAMILIES.get(kind_of(element), ()):
        return None
    return compare(element, literal) == 0
