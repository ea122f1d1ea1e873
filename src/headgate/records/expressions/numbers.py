"""Functions and operators of numbers."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING, Any

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.records.expressions.bound import NOT_CONSTANT, Bound, fail, lift, nothing
from headgate.records.expressions.casting import (
    EXACT,
    as_double,
    as_int,
    cast,
    fitted,
    to_int32,
    to_int64,
)
from headgate.records.expressions.function import Function
from headgate.records.expressions.types import (
    DOUBLE,
    INT,
    LONG,
    MAX_PRECISION,
    STRING,
    VOID,
    WHOLE,
    Type,
    adjusted,
    as_decimal,
    decimal,
    digits,
    is_decimal,
    is_number,
    tightest,
    with_string,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BY_ZERO = "division by zero"
_DIVISION_SCALE = 6


def _sum(left: Type, right: Type) -> Type:
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return adjusted(whole + scale + 1, scale)


def _product(left: Type, right: Type) -> Type:
    return adjusted(left.precision + right.precision + 1, left.scale + right.scale)


def _quotient(left: Type, right: Type) -> Type:
    scale = max(_DIVISION_SCALE, left.scale + right.precision + 1)
    return adjusted(left.precision - left.scale + right.scale + scale, scale)


def _rest(left: Type, right: Type) -> Type:
    scale = max(left.scale, right.scale)
    return adjusted(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)


_RESULTS = {"+": _sum, "-": _sum, "*": _product, "/": _quotient, "%": _rest}


def _operands(parts: Sequence[Bound]) -> tuple[Bound, Bound] | None:
    """Give two operands types of numbers: a text beside a number becomes one, NULL is of the other's type."""
    left, right = parts
    if STRING in {left.type, right.type}:
        kind = with_string(left.type, right.type) if VOID not in {left.type, right.type} else DOUBLE
        if kind is None or not is_number(kind):
            return None
        made = [cast(part, kind) if part.type == STRING else part for part in (left, right)]
        left, right = (part for part in made if part is not None)
    if left.type == VOID:
        left = nothing(right.type if right.type != VOID else DOUBLE)
    if right.type == VOID:
        right = nothing(left.type)
    return (left, right) if is_number(left.type) and is_number(right.type) else None


def _decimals(left: Bound, right: Bound) -> tuple[Type, Type] | None:
    """Return the types of digits of two operands, if one is a decimal and none a double."""
    if DOUBLE in {left.type, right.type} or not (is_decimal(left.type) or is_decimal(right.type)):
        return None
    return _digits(left), _digits(right)


def _digits(part: Bound) -> Type:
    if part.type in WHOLE and part.constant is not NOT_CONSTANT and part.constant is not None:
        # A literal has no more digits than are written.
        found = digits(part.constant)
        assert found is not None
        return found
    return as_decimal(part.type)


def _both(left: Bound, right: Bound, kind: Type) -> tuple[Bound, Bound]:
    found = cast(left, kind), cast(right, kind)
    assert found[0] is not None
    assert found[1] is not None
    return found[0], found[1]


def _arithmetic(sign: str) -> Callable[[Sequence[Bound]], Bound | None]:
    def bind(parts: Sequence[Bound]) -> Bound | None:
        pair = _operands(parts)
        if pair is None:
            return None
        left, right = pair
        found = _decimals(left, right)
        if found is not None:
            result = _RESULTS[sign](*found)
            own = _both(left, right, found[0])[0], _both(left, right, found[1])[1]
            function = _OF_DECIMALS[sign]
            return lift(result, lambda a, b: _fit(function(a, b), result), own)
        kind = DOUBLE if sign == "/" or DOUBLE in {left.type, right.type} else tightest(left.type, right.type)
        assert kind is not None
        function = _OF_DOUBLES[sign] if kind == DOUBLE else _OF_WHOLES[sign, kind]
        return lift(kind, function, _both(left, right, kind))

    return bind


def _fit(value: Decimal | None, kind: Type) -> Decimal | None:
    return None if value is None else fitted(value, kind)


def _divided(left: Decimal, right: Decimal) -> Decimal | None:
    if not right:
        return fail(BY_ZERO)
    # Java divides to 39 digits after the point, before the result is rounded to its own.
    return EXACT.quantize(EXACT.divide(left, right), Decimal((0, (1,), -MAX_PRECISION - 1)))


def _remainder(left: Decimal, right: Decimal) -> Decimal | None:
    return EXACT.remainder(left, right) if right else fail(BY_ZERO)


def _float_divided(left: float, right: float) -> float | None:
    return left / right if right else fail(BY_ZERO)


def _float_rest(left: float, right: float) -> float | None:
    if not right:
        return fail(BY_ZERO)
    return math.nan if math.isinf(left) or math.isnan(left) else math.fmod(left, right)


def _int_rest(left: int, right: int) -> int | None:
    if not right:
        return fail(BY_ZERO)
    found = abs(left) % abs(right)
    return -found if left < 0 else found


def _int_divided(left: int, right: int) -> int | None:
    if not right:
        return fail(BY_ZERO)
    found = abs(left) // abs(right)
    return to_int64(found if (left < 0) == (right < 0) else -found)


def _add64(left: int, right: int) -> int | None:
    found = left + right
    return found if INT64_MIN <= found <= INT64_MAX else fail("the sum does not fit into 64 bits")


def _subtract64(left: int, right: int) -> int | None:
    found = left - right
    return found if INT64_MIN <= found <= INT64_MAX else fail("the difference does not fit into 64 bits")


def _multiply64(left: int, right: int) -> int | None:
    found = left * right
    return found if INT64_MIN <= found <= INT64_MAX else fail("the product does not fit into 64 bits")


_OF_DECIMALS: dict[str, Callable[[Any, Any], Any]] = {
    "+": EXACT.add,
    "-": EXACT.subtract,
    "*": EXACT.multiply,
    "/": _divided,
    "%": _remainder,
}
_OF_DOUBLES: dict[str, Callable[[Any, Any], Any]] = {
    "+": float.__add__,
    "-": float.__sub__,
    "*": float.__mul__,
    "/": _float_divided,
    "%": _float_rest,
}
_OF_WHOLES: dict[tuple[str, Type], Callable[[Any, Any], Any]] = {
    ("+", LONG): _add64,
    ("-", LONG): _subtract64,
    ("*", LONG): _multiply64,
    ("%", LONG): _int_rest,
    ("+", INT): lambda a, b: to_int32(a + b),
    ("-", INT): lambda a, b: to_int32(a - b),
    ("*", INT): lambda a, b: to_int32(a * b),
    ("%", INT): _int_rest,
}


def _div(parts: Sequence[Bound]) -> Bound | None:
    pair = _operands(parts)
    if pair is None or DOUBLE in {pair[0].type, pair[1].type}:
        return None
    left, right = pair
    found = _decimals(left, right)
    if found is None:
        return lift(LONG, _int_divided, _both(left, right, LONG))
    own = _both(left, right, found[0])[0], _both(left, right, found[1])[1]
    return lift(LONG, _decimal_div, own)


def _decimal_div(left: Decimal, right: Decimal) -> int | None:
    return to_int64(int(EXACT.divide_int(left, right))) if right else fail(BY_ZERO)


def _positive(parts: Sequence[Bound]) -> Bound | None:
    """Bind pmod: what is left of a division, not below zero for a positive divisor."""
    pair = _operands(parts)
    if pair is None:
        return None
    left, right = pair
    found = _decimals(left, right)
    if found is not None:
        result = _rest(*found)
        own = _both(left, right, found[0])[0], _both(left, right, found[1])[1]
        return lift(result, lambda a, b: _fit(_pmod(a, b, _remainder), result), own)
    kind = DOUBLE if DOUBLE in {left.type, right.type} else tightest(left.type, right.type)
    assert kind is not None
    rest = _float_rest if kind == DOUBLE else _int_rest
    return lift(kind, lambda a, b: _pmod(a, b, rest), _both(left, right, kind))


def _pmod(left: Any, right: Any, rest: Callable[[Any, Any], Any]) -> Any:
    found = rest(left, right)
    return rest(found + right, right) if found is not None and found < 0 else found


def _number(part: Bound) -> Bound | None:
    """Take a part as a number of its own type."""
    if is_number(part.type):
        return part
    return cast(part, DOUBLE) if part.type in {STRING, VOID} else None


_SCALA = Context(prec=34, rounding=ROUND_HALF_EVEN)


def _minus(value: Decimal) -> Decimal:
    """Change the sign; of more than 34 digits, Spark rounds the last away."""
    if len(value.as_tuple().digits) > _SCALA.prec:
        scale = value.as_tuple().exponent
        assert isinstance(scale, int)
        value = EXACT.quantize(_SCALA.plus(value), Decimal((0, (1,), scale)))
    return value.copy_negate()


def _negative(parts: Sequence[Bound]) -> Bound | None:
    part = _number(parts[0])
    if part is None:
        return None
    kind = part.type
    if kind in WHOLE:
        whole = to_int32 if kind == INT else to_int64
        return lift(kind, lambda value: whole(-value), (part,))
    return lift(kind, _minus if is_decimal(kind) else float.__neg__, (part,))


def _abs(parts: Sequence[Bound]) -> Bound | None:
    part = _number(parts[0])
    if part is None:
        return None
    kind = part.type
    if kind in WHOLE:
        whole = to_int32 if kind == INT else to_int64
        return lift(kind, lambda value: whole(abs(value)), (part,))
    return lift(
        kind, (lambda value: _minus(value) if value < 0 else value) if is_decimal(kind) else abs, (part,)
    )


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
    if kind in WHOLE:
        if places >= 0:
            return part
        whole = to_int32 if kind == INT else to_int64
        return lift(kind, lambda value: whole(int(EXACT.quantize(Decimal(value), unit))), (part,))
    if is_decimal(kind):
        leading = kind.precision - kind.scale + 1
        if places < 0:
            to = decimal(min(max(leading, 1 - places), MAX_PRECISION), 0)
        else:
            scale = min(kind.scale, places)
            to = decimal(min(leading + scale, MAX_PRECISION), scale)
        return lift(
            to,
            lambda value: fitted(EXACT.quantize(value, unit) if places < to.scale + 1 else value, to),
            (part,),
        )
    return lift(DOUBLE, lambda value: _round_double(value, unit), (part,))


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
        if part.type in WHOLE:
            return cast(part, LONG)
        if is_decimal(part.type):
            to = decimal(min(part.type.precision - part.type.scale + 1, MAX_PRECISION), 0)
            return lift(to, lambda value: value.quantize(Decimal(1), direction, EXACT), (part,))
        function = math.floor if direction == ROUND_FLOOR else math.ceil
        return lift(LONG, lambda value: _rounded(value, function), (part,))

    return bind


def _rounded(value: float, function: Callable[[float], int]) -> int | None:
    if math.isnan(value):
        return 0
    return fail(f"{value} does not fit into 64 bits") if math.isinf(value) else to_int64(function(value))


def _sign(value: float) -> float:
    return value if math.isnan(value) or value == 0 else math.copysign(1.0, value)


def _of_double(function: Callable[[float], Any]) -> Callable[[Sequence[Bound]], Bound | None]:
    def bind(parts: Sequence[Bound]) -> Bound | None:
        part = as_double(parts[0])
        return None if part is None else lift(DOUBLE, function, (part,))

    return bind


def _sqrt(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


OPERATORS = {
    **{sign: Function(_arithmetic(sign), 2, 2) for sign in ("+", "-", "*", "/", "%")},
    "div": Function(_div, 2, 2),
}
FUNCTIONS = {
    "negative": Function(_negative, 1, 1),
    "abs": Function(_abs, 1, 1),
    "round": Function(_round, 1, 2, wholes=(1,)),
    "floor": Function(_towards(ROUND_FLOOR), 1, 1),
    "ceil": Function(_towards(ROUND_CEILING), 1, 1),
    "sign": Function(_of_double(_sign), 1, 1),
    "sqrt": Function(_of_double(_sqrt), 1, 1),
    "pmod": Function(_positive, 2, 2),
}
ALIASES = {"mod": "%", "ceiling": "ceil", "signum": "sign"}
