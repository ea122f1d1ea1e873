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
from headgate.core.text.words import words
from headgate.core.values import Kind, kind_of, micros
from headgate.records.computed import LOWER, text_form, value_of
from headgate.records.language.model import (
    MOMENTS,
    NULL,
    NUMBERS,
    And,
    ArrayContains,
    ArraysOverlap,
    Between,
    Comparison,
    Constant,
    Expression,
    ForAll,
    HasWord,
    In,
    IsNull,
    Like,
    Literal,
    LiteralType,
    Not,
    Op,
    Or,
    Truth,
    common_type,
    convert,
)
from headgate.records.language.patterns import to_regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from headgate.core.values import Path

_HOLDS: dict[Op, Callable[[int], bool]] = {
    Op.EQ: lambda order: order == 0,
    Op.NE: lambda order: order != 0,
    Op.LT: lambda order: order < 0,
    Op.LE: lambda order: order <= 0,
    Op.GT: lambda order: order > 0,
    Op.GE: lambda order: order >= 0,
    Op.NULL_SAFE_EQ: lambda order: order == 0,
}
_FAMILIES = {
    Kind.BOOL: {LiteralType.BOOL},
    Kind.INT: NUMBERS,
    Kind.FLOAT: NUMBERS,
    Kind.DECIMAL: NUMBERS,
    Kind.STRING: {LiteralType.STRING},
    Kind.TIMESTAMP: MOMENTS,
}


def matches(expression: Expression, attributes: Mapping[Path, object]) -> bool:
    """Tell whether an event is kept.

    >>> from headgate.records.language.parse import parse_filter
    >>> matches(parse_filter("age > 30"), {("age",): 35}), matches(parse_filter("age > 30"), {})
    (True, False)
    """
    return evaluate(expression, attributes) is True


def evaluate(expression: Expression, attributes: Mapping[Path, object]) -> bool | None:
    """Evaluate to TRUE, FALSE or NULL; where Spark would raise for a type, the predicate is NULL."""
    match expression:
        case And(children):
            return all_of(evaluate(child, attributes) for child in children)
        case Or(children):
            return any_of(evaluate(child, attributes) for child in children)
        case Not(child):
            return negate(evaluate(child, attributes))
        case Constant(constant):
            return constant
    attribute = expression.attribute
    value = value_of(attribute.path, attributes)
    if attribute.expression is not None:
        value = attribute.expression.of_attributes(attributes)
    elif attribute.function == LOWER:
        text = text_form(value)
        value = None if text is None else text.lower()
    match expression:
        case IsNull():
            return value is None
        case Comparison(op, _, literal):
            return _comparison(op, value, literal)
        case Between(_, low, high):
            return all_of((_comparison(Op.GE, value, low), _comparison(Op.LE, value, high)))
        case In(_, literals):
            return _in(value, literals)
        case Like(_, pattern, escape):
            text = text_form(value)
            return None if text is None else bool(to_regex(pattern, escape).fullmatch(text))
        case HasWord(_, word):
            text = text_form(value)
            return None if text is None else word in words(text)
        case Truth():
            return _comparison(Op.EQ, value, Literal(LiteralType.BOOL, value=True))
        case ArrayContains(_, literal):
            return _overlap(value, (literal,))
        case ArraysOverlap(_, literals):
            return _overlap(value, literals)
        case ForAll(_, literals, nulls):
            return _forall(value, literals, nulls=nulls)
    assert_never(expression)


def all_of(values: Iterable[bool | None]) -> bool | None:
    """AND: FALSE wins, then NULL."""
    found = set(values)
    return False if False in found else None if None in found else True


def any_of(values: Iterable[bool | None]) -> bool | None:
    """OR: TRUE wins, then NULL."""
    found = set(values)
    return True if True in found else None if None in found else False


def negate(value: bool | None) -> bool | None:
    """NOT: NULL stays."""
    return None if value is None else not value


def compare(value: object, literal: Literal) -> int | None:
    """Order a value and a literal: negative, 0 or positive; None where Spark cannot compare them.

    Spark casts one side to the other's type: the literal if the value is a number, a Boolean or a
    timestamp and the literal a string; the value if it is a string and the literal is not; whole
    numbers to double beside a double, and to decimal beside a decimal; decimals to double beside a double or
    a string.
    """
    other = literal.value
    match kind_of(value), literal.type:
        case Kind.STRING, LiteralType.STRING:
            return _order(value, other)
        case Kind.STRING, _:
            assert isinstance(value, str)
            return _order(_cast_text(value, literal.type), _as_double(other, literal.type))
        case Kind.BOOL, LiteralType.BOOL:
            return _order(value, other)
        case Kind.BOOL, LiteralType.STRING:
            return _order(value, to_bool(str(other)))
        case Kind.INT, LiteralType.INT | LiteralType.DECIMAL:
            return _order(value, other)
        case Kind.INT, LiteralType.DOUBLE:
            assert isinstance(value, int)
            return _order(float(value), other)
        case Kind.INT, LiteralType.STRING:
            return _order(value, to_int(str(other)))
        case Kind.FLOAT, LiteralType.INT | LiteralType.DECIMAL | LiteralType.DOUBLE:
            assert isinstance(other, int | float | Decimal)
            return _order(value, float(other))
        case Kind.FLOAT, LiteralType.STRING:
            return _order(value, to_double(str(other)))
        case Kind.DECIMAL, LiteralType.INT | LiteralType.DECIMAL:
            return _order(value, other)
        case Kind.DECIMAL, LiteralType.DOUBLE | LiteralType.STRING:
            assert isinstance(value, Decimal)
            return _order(float(value), to_double(other) if isinstance(other, str) else other)
        case Kind.TIMESTAMP, LiteralType.DATE | LiteralType.TIMESTAMP:
            assert isinstance(value, dt.date)
            return _order(micros(value), other)
        case Kind.TIMESTAMP, LiteralType.STRING:
            assert isinstance(value, dt.date)
            return _order(micros(value), to_timestamp(str(other)))
    return None


def _cast_text(value: str, to: LiteralType) -> object:
    match to:
        case LiteralType.INT:
            return to_int(value)
        case LiteralType.DECIMAL | LiteralType.DOUBLE:
            return to_double(value)
        case LiteralType.BOOL:
            return to_bool(value)
        case LiteralType.DATE:
            return to_date(value)
        case LiteralType.TIMESTAMP:
            return to_timestamp(value)
    return None


def _as_double(value: object, kind: LiteralType) -> object:
    """A string meets a decimal as doubles."""
    return float(value) if kind is LiteralType.DECIMAL and isinstance(value, Decimal) else value


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


def _comparison(op: Op, value: object, literal: Literal) -> bool | None:
    if op is Op.NULL_SAFE_EQ and (value is None or literal == NULL):
        return value is None and literal == NULL
    if value is None or literal == NULL:
        return None
    order = compare(value, literal)
    return None if order is None else _HOLDS[op](order)


def _in(value: object, literals: tuple[Literal, ...]) -> bool | None:
    if value is None:
        return None
    common = common_type(literals)
    assert common is not None
    orders = [compare(value, convert(literal, common)) for literal in literals if literal != NULL]
    if None in orders:
        return None
    return any_of((*(order == 0 for order in orders), *(None for literal in literals if literal == NULL)))


def _overlap(value: object, literals: tuple[Literal, ...]) -> bool | None:
    if not isinstance(value, list | tuple):
        return None
    if not literals or not value:
        return False
    common = common_type(literals)
    assert common is not None
    found = [_equal_element(element, convert(literal, common)) for element in value for literal in literals]
    return any_of(found)


def _forall(value: object, literals: tuple[Literal, ...], *, nulls: bool) -> bool | None:
    if not isinstance(value, list | tuple):
        return None
    return all_of((nulls and element is None) or _in(element, literals) for element in value)


def _equal_element(element: object, literal: Literal) -> bool | None:
    """Elements meet literals of their own family only; Spark refuses other mixtures."""
    if element is None or literal == NULL or literal.type not in _FAMILIES.get(kind_of(element), ()):
        return None
    return compare(element, literal) == 0
