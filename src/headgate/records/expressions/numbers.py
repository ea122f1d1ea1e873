"""Functions and operators of numbers."""

from __future__ import annotations

import math
import operator
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.records.expressions import types
from headgate.records.expressions.bound import NOT_CONSTANT, Bound, fail, lift, nothing
from headgate.records.expressions.casting import (
    EXACT,
    as_int,
    cast,
    fitted,
    to_int32,
    to_int64,
)
from headgate.records.expressions.function import Function, function_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BY_ZERO = "division by zero"
_DIVISION_SCALE = 6


def _sum(left: types.Type, right: types.Type) -> types.Type:
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return types.adjusted(whole + scale + 1, scale)


def _product(left: types.Type, right: types.Type) -> types.Type:
    return types.adjusted(left.precision + right.precision + 1, left.scale + right.scale)


def _quotient(left: types.Type, right: types.Type) -> types.Type:
    scale = max(_DIVISION_SCALE, left.scale + right.precision + 1)
    return types.adjusted(left.precision - left.scale + right.scale + scale, scale)


def _rest(left: types.Type, right: types.Type) -> types.Type:
    scale = max(left.scale, right.scale)
    return types.adjusted(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)


_RESULTS = {"+": _sum, "-": _sum, "*": _product, "/": _quotient, "%": _rest, "pmod": _rest}


def _operands(parts: Sequence[Bound]) -> tuple[Bound, Bound] | None:
    """Give two operands types of numbers: a text beside a number becomes one, NULL is of the other's type."""
    left, right = parts
    kinds = {left.type, right.type}
    if types.STRING in kinds:
        kind = types.DOUBLE if types.VOID in kinds else types.with_string(left.type, right.type)
        if kind is None or not types.is_number(kind):
            return None
        made = [cast(part, kind) if part.type == types.STRING else part for part in (left, right)]
        left, right = (part for part in made if part is not None)
    if left.type == types.VOID:
        left = nothing(right.type if right.type != types.VOID else types.DOUBLE)
    if right.type == types.VOID:
        right = nothing(left.type)
    return (left, right) if types.is_number(left.type) and types.is_number(right.type) else None


def _decimals(left: Bound, right: Bound) -> tuple[types.Type, types.Type] | None:
    """Return the types of digits of two operands, if one is a decimal and none a double."""
    kinds = {left.type, right.type}
    if types.DOUBLE in kinds or not any(map(types.is_decimal, kinds)):
        return None
    return _digits(left), _digits(right)


def _digits(part: Bound) -> types.Type:
    if part.type in types.WHOLE and part.constant is not NOT_CONSTANT and part.constant is not None:
        # A literal has no more digits than are written.
        kind = types.digits(part.constant)
        assert kind is not None
        return kind
    return types.as_decimal(part.type)


def _arithmetic(sign: str) -> Callable[[Sequence[Bound]], Bound | None]:
    def bind(parts: Sequence[Bound]) -> Bound | None:
        pair = _operands(parts)
        if pair is None:
            return None
        left, right = pair
        digits_of = _decimals(left, right)
        if digits_of is not None:
            result, function = _RESULTS[sign](*digits_of), _OF_DECIMALS[sign]
            return lift(result, lambda a, b: _fit(function(a, b), result), list(map(cast, pair, digits_of)))
        as_doubles = sign == "/" or types.DOUBLE in {left.type, right.type}
        kind = types.DOUBLE if as_doubles else types.tightest(left.type, right.type)
        assert kind is not None
        function = _OF_DOUBLES[sign] if kind == types.DOUBLE else _OF_WHOLES[sign, kind]
        return lift(kind, function, [cast(part, kind) for part in pair])

    return bind


def _fit(value: Decimal | None, kind: types.Type) -> Decimal | None:
    return None if value is None else fitted(value, kind)


_Operation: TypeAlias = "Callable[[Any, Any], Any]"


def _unless_zero(divide: _Operation) -> _Operation:
    """Divide, if the divisor is not zero."""
    return lambda left, right: divide(left, right) if right else fail(BY_ZERO)


@_unless_zero
def _divided(left: Decimal, right: Decimal) -> Decimal:
    # Java divides to 39 digits after the point, before the result is rounded to its own.
    return EXACT.quantize(EXACT.divide(left, right), Decimal((0, (1,), -types.MAX_PRECISION - 1)))


@_unless_zero
def _float_rest(left: float, right: float) -> float:
    return math.nan if math.isinf(left) or math.isnan(left) else math.fmod(left, right)


def _int_rest(left: int, right: int) -> int | None:
    if not right:
        return fail(BY_ZERO)
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


@_unless_zero
def _int_divided(left: int, right: int) -> int | None:
    quotient = abs(left) // abs(right)
    return to_int64(quotient if (left < 0) == (right < 0) else -quotient)


@_unless_zero
def _decimal_div(left: Decimal, right: Decimal) -> int | None:
    return to_int64(int(EXACT.divide_int(left, right)))


_remainder = _unless_zero(EXACT.remainder)


def _positive(rest: _Operation) -> _Operation:
    """Return pmod: what is left of a division, not below zero for a positive divisor."""

    def run(left: Any, right: Any) -> Any:
        remainder = rest(left, right)
        return rest(remainder + right, right) if remainder is not None and remainder < 0 else remainder

    return run


def _add64(left: int, right: int) -> int | None:
    total = left + right
    return total if INT64_MIN <= total <= INT64_MAX else fail("the sum does not fit into 64 bits")


def _subtract64(left: int, right: int) -> int | None:
    rest = left - right
    return rest if INT64_MIN <= rest <= INT64_MAX else fail("the difference does not fit into 64 bits")


def _multiply64(left: int, right: int) -> int | None:
    product = left * right
    return product if INT64_MIN <= product <= INT64_MAX else fail("the product does not fit into 64 bits")


_OF_DECIMALS: dict[str, _Operation] = {
    "+": EXACT.add,
    "-": EXACT.subtract,
    "*": EXACT.multiply,
    "/": _divided,
    "%": _remainder,
    "pmod": _positive(_remainder),
}
_OF_DOUBLES: dict[str, _Operation] = {
    "+": float.__add__,
    "-": float.__sub__,
    "*": float.__mul__,
    "/": _unless_zero(operator.truediv),
    "%": _float_rest,
    "pmod": _positive(_float_rest),
}
_OF_WHOLES: dict[tuple[str, types.Type], _Operation] = {
    ("+", types.LONG): _add64,
    ("-", types.LONG): _subtract64,
    ("*", types.LONG): _multiply64,
    ("%", types.LONG): _int_rest,
    ("pmod", types.LONG): _positive(_int_rest),
    ("+", types.INT): lambda a, b: to_int32(a + b),
    ("-", types.INT): lambda a, b: to_int32(a - b),
    ("*", types.INT): lambda a, b: to_int32(a * b),
    ("%", types.INT): _int_rest,
    ("pmod", types.INT): _positive(_int_rest),
}


def _div(parts: Sequence[Bound]) -> Bound | None:
    pair = _operands(parts)
    if pair is None or types.DOUBLE in {pair[0].type, pair[1].type}:
        return None
    digits_of = _decimals(*pair)
    if digits_of is None:
        return lift(types.LONG, _int_divided, [cast(part, types.LONG) for part in pair])
    return lift(types.LONG, _decimal_div, list(map(cast, pair, digits_of)))


def _number(part: Bound) -> Bound | None:
    """Take a part as a number of its own type."""
    if types.is_number(part.type):
        return part
    return cast(part, types.DOUBLE) if part.type in {types.STRING, types.VOID} else None


_SCALA = Context(prec=34, rounding=ROUND_HALF_EVEN)


def _minus(value: Decimal) -> Decimal:
    """Change the sign; of more than 34 digits, Spark rounds the last away."""
    if len(value.as_tuple().digits) > _SCALA.prec:
        scale = value.as_tuple().exponent
        assert isinstance(scale, int)
        value = EXACT.quantize(_SCALA.plus(value), Decimal((0, (1,), scale)))
    return value.copy_negate()


def _one(
    of_whole: Callable[[int], int],
    of_decimal: Callable[[Decimal], Decimal],
    of_double: Callable[[float], float],
) -> Callable[[Sequence[Bound]], Bound | None]:
    """Bind a function of one number, which gives a number of the same type."""

    def bind(parts: Sequence[Bound]) -> Bound | None:
        part = _number(parts[0])
        if part is None:
            return None
        if part.type in types.WHOLE:
            fitting = to_int32 if part.type == types.INT else to_int64
            return lift(part.type, lambda value: fitting(of_whole(value)), (part,))
        return lift(part.type, of_decimal if types.is_decimal(part.type) else of_double, (part,))

    return bind


def _round(parts: Sequence[Bound]) -> Bound | None:
    part = _number(parts[0])
    places: int | None = 0
    if len(parts) > 1:
        given = as_int(parts[1])
        if given is None:
            return None
        places = given.run([])
    if part is None or places is None:
        return None if part is None else nothing(part.type)
    kind, unit = part.type, Decimal((0, (1,), -places))
    if kind in types.WHOLE:
        if places >= 0:
            return part
        whole = to_int32 if kind == types.INT else to_int64
        return lift(kind, lambda value: whole(int(EXACT.quantize(Decimal(value), unit))), (part,))
    if types.is_decimal(kind):
        leading = kind.precision - kind.scale + 1
        if places < 0:
            to = types.decimal(min(max(leading, 1 - places), types.MAX_PRECISION), 0)
        else:
            scale = min(kind.scale, places)
            to = types.decimal(min(leading + scale, types.MAX_PRECISION), scale)
        return lift(
            to,
            lambda value: fitted(EXACT.quantize(value, unit) if places < to.scale + 1 else value, to),
            (part,),
        )
    return lift(types.DOUBLE, lambda value: _round_double(value, unit), (part,))


def _round_double(value: float, unit: Decimal) -> float:
    if not math.isfinite(value):
        return value
    exact = Decimal(repr(value))
    exponent, wanted = exact.as_tuple().exponent, unit.as_tuple().exponent
    assert isinstance(exponent, int)
    assert isinstance(wanted, int)
    if exponent >= wanted:
        # Java's decimals have no negative zero.
        return value or 0.0
    if exact.adjusted() < wanted - 1:
        return 0.0
    return float(EXACT.quantize(exact, unit))


def _towards(direction: str) -> Callable[[Sequence[Bound]], Bound | None]:
    def bind(parts: Sequence[Bound]) -> Bound | None:
        part = _number(parts[0])
        if part is None:
            return None
        if part.type in types.WHOLE:
            return cast(part, types.LONG)
        if types.is_decimal(part.type):
            to = types.decimal(min(part.type.precision - part.type.scale + 1, types.MAX_PRECISION), 0)
            return lift(to, lambda value: value.quantize(Decimal(1), direction, EXACT), (part,))
        function = math.floor if direction == ROUND_FLOOR else math.ceil
        return lift(types.LONG, lambda value: _rounded(value, function), (part,))

    return bind


def _rounded(value: float, function: Callable[[float], int]) -> int | None:
    if math.isnan(value):
        return 0
    return fail(f"{value} does not fit into 64 bits") if math.isinf(value) else to_int64(function(value))


def _sign(value: float) -> float:
    return value if math.isnan(value) or value == 0 else math.copysign(1.0, value)


def _sqrt(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


OPERATORS = {
    **{sign: Function(_arithmetic(sign), 2, 2) for sign in ("+", "-", "*", "/", "%")},
    "div": Function(_div, 2, 2),
}
FUNCTIONS = {
    "negative": Function(_one(int.__neg__, _minus, float.__neg__), 1, 1),
    "abs": Function(_one(abs, lambda value: _minus(value) if value < 0 else value, abs), 1, 1),
    "round": Function(_round, 1, 2, wholes=(1,)),
    "floor": Function(_towards(ROUND_FLOOR), 1, 1),
    "ceil": Function(_towards(ROUND_CEILING), 1, 1),
    "sign": function_of(types.DOUBLE, _sign, "f"),
    "sqrt": function_of(types.DOUBLE, _sqrt, "f"),
    "pmod": Function(_arithmetic("pmod"), 2, 2),
}
ALIASES = {"mod": "%", "ceiling": "ceil", "signum": "sign"}
