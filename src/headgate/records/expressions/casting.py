"""Casts between types, as Spark's ANSI mode does them, with NULL where it raises."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

from headgate.core import casts
from headgate.core.casts import DAY, INT64_MAX, INT64_MIN
from headgate.core.values import micros
from headgate.records.expressions.bound import Bound, fail, lift, nothing
from headgate.records.expressions.types import (
    BOOL,
    DATE,
    DOUBLE,
    INT,
    LONG,
    MOMENTS,
    STRING,
    TIMESTAMP,
    VOID,
    WHOLE,
    Type,
    distinct,
    is_atomic,
    is_decimal,
    is_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable

EXACT = Context(prec=160, rounding=ROUND_HALF_UP)
FIRST_DAY = (dt.date.min - dt.date(1970, 1, 1)).days
LAST_DAY = (dt.date.max - dt.date(1970, 1, 1)).days
FIRST, LAST = FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAYS = _EPOCH.date().toordinal()
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?\Z")
_BLANK = "".join(map(chr, range(33)))


def cast(part: Bound, to: Type) -> Bound | None:
    """Cast a part; None where Spark knows no such cast."""
    if part.type == to:
        return part
    if part.type == VOID:
        return nothing(to)
    if part.type.element is not None and to.element is not None:
        return _elements(part, to)
    function = converter(part.type, to)
    if function is None:
        return None
    return lift(to, function, (part,))


def _elements(part: Bound, to: Type) -> Bound | None:
    assert part.type.element is not None
    assert to.element is not None
    if part.type.element == VOID:
        return part._replace(type=to)
    inner = converter(part.type.element, to.element)
    if inner is None:
        return None
    return lift(to, lambda items: [None if each is None else inner(each) for each in items], (part,))


def converter(given: Type, to: Type) -> Callable[[Any], Any] | None:
    """Return what casts values of one type to another."""
    if given == to:
        return lambda value: value
    if to == STRING:
        return writer(given)
    if is_decimal(to):
        return _to_decimal(given, to)
    return _CASTS.get((given.name, to.name))


def fitted(value: Decimal, to: Type) -> Decimal | None:
    """Round a decimal to the digits of its type; NULL if it has too many before the point."""
    whole = to.precision - to.scale
    if value and value.adjusted() >= whole:
        return fail(f"the number has more than {whole} digits before the point")
    exponent = value.as_tuple().exponent
    if exponent != -to.scale:
        value = EXACT.quantize(value, Decimal((0, (1,), -to.scale)))
    if len(value.as_tuple().digits) > to.precision and value:
        return fail(f"the number has more than {to.precision - to.scale} digits before the point")
    return value


def _to_decimal(given: Type, to: Type) -> Callable[[Any], Any] | None:
    if given in WHOLE or given == BOOL:
        return lambda value: fitted(Decimal(int(value)), to)
    if is_decimal(given):
        return lambda value: fitted(value, to)
    if given == DOUBLE:
        return lambda value: fitted(Decimal(repr(value)), to) if math.isfinite(value) else None
    if given == STRING:
        return lambda value: _text_decimal(value, to)
    if given == TIMESTAMP:
        return lambda value: fitted(EXACT.divide(Decimal(value), Decimal(1_000_000)), to)
    return None


def _text_decimal(text: str, to: Type) -> Decimal | None:
    text = text.strip(_BLANK)
    if not _DECIMAL.match(text):
        return fail(f"{text!r} is no number")
    value = Decimal(text)
    if value and value.adjusted() > 2 * to.precision:
        return fail("the number has too many digits")
    if value.adjusted() < -to.scale - 2:
        value = Decimal(0)
    return fitted(EXACT.plus(value), to)


def _whole(low: int, high: int) -> Callable[[int], int | None]:
    return lambda value: value if low <= value <= high else fail(f"{value} does not fit")


to_int32 = _whole(-(2**31), 2**31 - 1)
to_int64 = _whole(INT64_MIN, INT64_MAX)


def _cut(whole: Callable[[int], int | None]) -> Callable[[Any], int | None]:
    """Drop what is after the point."""

    def run(value: Any) -> int | None:
        if isinstance(value, float) and not math.isfinite(value):
            return fail(f"{value} is no whole number")
        return whole(int(value))

    return run


def _text(function: Callable[[str], Any], name: str) -> Callable[[str], Any]:
    def run(text: str) -> Any:
        found = function(text)
        return fail(f"{text[:40]!r} is no {name}") if found is None else found

    return run


def _int32(text: str) -> int | None:
    found = casts.to_int(text)
    return None if found is None or not -(2**31) <= found < 2**31 else found


def _day(text: str) -> int | None:
    found = casts.to_date(text)
    return None if found is None else found // DAY


def in_range(moment: int) -> int | None:
    """Keep a timestamp within the years that events can have."""
    return moment if FIRST <= moment <= LAST else fail("the year is not one of 1 to 9999")


def day_in_range(day: int) -> int | None:
    """Keep a date within the years that events can have."""
    return day if FIRST_DAY <= day <= LAST_DAY else fail("the year is not one of 1 to 9999")


def _seconds(value: float | Decimal) -> int | None:
    if isinstance(value, float):
        if not math.isfinite(value):
            return fail(f"{value} is no moment")
        value *= 1_000_000
        return in_range(int(value)) if abs(value) < 1e18 else fail("the year is not one of 1 to 9999")
    return in_range(int(EXACT.multiply(value, Decimal(1_000_000))))


_NUMBERS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "int": {"bigint": int, "double": float, "boolean": bool},
    "bigint": {"int": to_int32, "double": float, "boolean": bool},
    "double": {"int": _cut(to_int32), "bigint": _cut(to_int64), "boolean": bool},
    "decimal": {"int": _cut(to_int32), "bigint": _cut(to_int64), "double": float, "boolean": bool},
    "boolean": {"int": int, "bigint": int, "double": float},
    "string": {
        "int": _text(_int32, "INT"),
        "bigint": _text(casts.to_int, "BIGINT"),
        "double": _text(casts.to_double, "DOUBLE"),
        "boolean": _text(casts.to_bool, "BOOLEAN"),
        "date": _text(_day, "DATE"),
        "timestamp": _text(casts.to_timestamp, "TIMESTAMP"),
    },
    "date": {"timestamp": lambda day: day * DAY},
    "timestamp": {
        "date": lambda moment: moment // DAY,
        "bigint": lambda moment: moment // 1_000_000,
        "int": lambda moment: to_int32(moment // 1_000_000),
        "double": lambda moment: moment / 1_000_000,
    },
}
_CASTS = {(given, to): function for given, found in _NUMBERS.items() for to, function in found.items()}
_CASTS |= {
    ("int", "timestamp"): lambda value: in_range(value * 1_000_000),
    ("bigint", "timestamp"): lambda value: in_range(value * 1_000_000),
    ("double", "timestamp"): _seconds,
    ("decimal", "timestamp"): _seconds,
}


def writer(given: Type) -> Callable[[Any], str] | None:
    """Return what writes values of a type as a text."""
    if given in WHOLE:
        return str
    if is_decimal(given):
        return lambda value: f"{value:f}"
    if given.element is not None:
        inner = (lambda _value: "null") if given.element == VOID else writer(given.element)
        return None if inner is None else lambda items: _array_text(items, inner)
    if given == STRING:
        return str
    return {"boolean": _bool_text, "double": double_text, "date": day_text, "timestamp": moment_text}.get(
        given.name
    )


def _array_text(items: list[Any], inner: Callable[[Any], str]) -> str:
    return f"[{', '.join('null' if each is None else inner(each) for each in items)}]"


def _bool_text(value: bool) -> str:
    return "true" if value else "false"


def double_text(value: float) -> str:
    """Write a double as Java does, with the fewest digits that tell it from others.

    >>> double_text(1e7), double_text(0.001), double_text(-1e-4), double_text(float("inf"))
    ('1.0E7', '0.001', '-1.0E-4', 'Infinity')
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "e" not in text else f"{Decimal(text):f}"
    sign, figures, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    power = exponent + len(figures) - 1
    digits = "".join(map(str, figures)).rstrip("0")
    return f"{'-' * sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def day_text(day: int) -> str:
    """Write a date.

    >>> day_text(0)
    '1970-01-01'
    """
    return dt.date.fromordinal(day + _DAYS).isoformat()


def moment_text(moment: int) -> str:
    """Write a timestamp, without zeros at its end.

    >>> moment_text(1_500_000)
    '1970-01-01 00:00:01.5'
    """
    day, rest = divmod(moment, DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    minutes, second = divmod(seconds, 60)
    text = f"{day_text(day)} {minutes // 60:02}:{minutes % 60:02}:{second:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


# What Spark casts by itself for an argument of a function.


def as_text(part: Bound) -> Bound | None:
    """Take a part as a text."""
    return cast(part, STRING) if is_atomic(part.type) else None


def as_int(part: Bound) -> Bound | None:
    """Take a part as an INT."""
    return cast(part, INT) if part.type in {INT, LONG, STRING, VOID} else None


def as_double(part: Bound) -> Bound | None:
    """Take a part as a DOUBLE."""
    return cast(part, DOUBLE) if is_number(part.type) or part.type in {STRING, VOID} else None


def as_bool(part: Bound) -> Bound | None:
    """Take a part as a BOOLEAN."""
    return cast(part, BOOL) if part.type in {BOOL, STRING, VOID} else None


def as_date(part: Bound) -> Bound | None:
    """Take a part as a DATE."""
    return cast(part, DATE) if part.type in MOMENTS or part.type in {STRING, VOID} else None


def as_timestamp(part: Bound) -> Bound | None:
    """Take a part as a TIMESTAMP."""
    return cast(part, TIMESTAMP) if part.type in MOMENTS or part.type in {STRING, VOID} else None


# In and out of events.


def incoming(kind: Type) -> Callable[[Any], Any] | None:
    """Return what takes a value of an event for what is computed with; None if it is the same."""
    if kind == TIMESTAMP:
        return micros
    if is_decimal(kind):
        return lambda value: EXACT.quantize(value, Decimal((0, (1,), -kind.scale)))
    if kind.element is not None:
        inner = incoming(kind.element)
        if inner is None:
            return (
                (lambda items: [None if each is None else float(each) for each in items])
                if (kind.element == DOUBLE)
                else None
            )
        return lambda items: [None if each is None else inner(each) for each in items]
    if kind.name == "struct":
        fields = {name: incoming(each) for name, each in kind.fields}
        doubles = {name for name, each in kind.fields if each == DOUBLE}
        return lambda value: _struct_in(value, fields, doubles)
    return None


def _struct_in(value: dict[str, Any], fields: dict[str, Any], doubles: set[str]) -> dict[str, Any]:
    found = {}
    for name, each in distinct(value).items():
        folded = name.lower()
        if each is None or folded not in fields:
            continue
        function = fields[folded]
        found[folded] = float(each) if folded in doubles else each if function is None else function(each)
    return found


def outgoing(kind: Type) -> Callable[[Any], Any] | None:
    """Return what makes a value of an event of what was computed; None if it is the same."""
    if kind == DATE:
        return lambda day: dt.date.fromordinal(day + _DAYS)
    if kind == TIMESTAMP:
        return lambda moment: _EPOCH + dt.timedelta(microseconds=moment)
    if kind.element is not None:
        inner = outgoing(kind.element)
        return (
            None if inner is None else lambda items: [None if each is None else inner(each) for each in items]
        )
    return None
