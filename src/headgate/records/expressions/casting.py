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
from headgate.records.expressions import types
from headgate.records.expressions.bound import Bound, fail, lift, nothing

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


def cast(part: Bound, to: types.Type) -> Bound | None:
    """Cast a part; None where Spark knows no such cast."""
    if part.type == to:
        return part
    if part.type == types.VOID:
        return nothing(to)
    if part.type.element is not None and to.element is not None:
        if part.type.element == types.VOID:
            return part._replace(type=to)
        function = _of_elements(converter(part.type.element, to.element))
    else:
        function = converter(part.type, to)
    return None if function is None else lift(to, function, (part,))


def converter(given: types.Type, to: types.Type) -> Callable[[Any], Any] | None:
    """Return what casts values of one type to another."""
    if given == to:
        return lambda value: value
    if to == types.STRING:
        return writer(given)
    if types.is_decimal(to):
        return _to_decimal(given, to)
    return _FROM.get(given.name, {}).get(to.name)


def fitted(value: Decimal, to: types.Type) -> Decimal | None:
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


def _to_decimal(given: types.Type, to: types.Type) -> Callable[[Any], Any] | None:
    if given in types.WHOLE or given == types.BOOL:
        return lambda value: fitted(Decimal(int(value)), to)
    if types.is_decimal(given):
        return lambda value: fitted(value, to)
    if given == types.DOUBLE:
        return lambda value: fitted(Decimal(repr(value)), to) if math.isfinite(value) else None
    if given == types.STRING:
        return lambda value: _text_decimal(value, to)
    if given == types.TIMESTAMP:
        return lambda value: fitted(EXACT.divide(Decimal(value), Decimal(1_000_000)), to)
    return None


def _text_decimal(text: str, to: types.Type) -> Decimal | None:
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
        value = function(text)
        return fail(f"{text[:40]!r} is no {name}") if value is None else value

    return run


def _int32(text: str) -> int | None:
    value = casts.to_int(text)
    return None if value is None or not -(2**31) <= value < 2**31 else value


def _day(text: str) -> int | None:
    moment = casts.to_date(text)
    return None if moment is None else moment // DAY


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


def _whole_seconds(value: int) -> int | None:
    return in_range(value * 1_000_000)


_FROM: dict[str, dict[str, Callable[[Any], Any]]] = {
    "int": {"bigint": int, "double": float, "boolean": bool, "timestamp": _whole_seconds},
    "bigint": {"int": to_int32, "double": float, "boolean": bool, "timestamp": _whole_seconds},
    "double": {"int": _cut(to_int32), "bigint": _cut(to_int64), "boolean": bool, "timestamp": _seconds},
    "decimal": {
        "int": _cut(to_int32),
        "bigint": _cut(to_int64),
        "double": float,
        "boolean": bool,
        "timestamp": _seconds,
    },
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


def writer(given: types.Type) -> Callable[[Any], str] | None:
    """Return what writes values of a type as a text."""
    if given.element is not None:
        inner = (lambda _value: "null") if given.element == types.VOID else writer(given.element)
        return None if inner is None else lambda items: _array_text(items, inner)
    return _WRITERS.get(given.name)


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


def date_of(day: int) -> dt.date:
    """Return the date of a number of days."""
    return dt.date.fromordinal(day + _DAYS)


def days_of(date: dt.date) -> int:
    """Return the number of days of a date."""
    return date.toordinal() - _DAYS


def day_text(day: int) -> str:
    """Write a date.

    >>> day_text(0)
    '1970-01-01'
    """
    return date_of(day).isoformat()


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


_WRITERS: dict[str, Callable[[Any], str]] = {
    "int": str,
    "bigint": str,
    "decimal": "{:f}".format,
    "string": str,
    "boolean": _bool_text,
    "double": double_text,
    "date": day_text,
    "timestamp": moment_text,
}

# What Spark casts by itself for an argument of a function.


def _taking(to: types.Type, takes: Callable[[types.Type], bool]) -> Callable[[Bound], Bound | None]:
    """Return what takes a part as one of a type, if its own is among those that are taken."""
    return lambda part: cast(part, to) if takes(part.type) else None


_UNTYPED = frozenset({types.STRING, types.VOID})
as_text = _taking(types.STRING, types.is_atomic)
as_int = _taking(types.INT, (types.WHOLE | _UNTYPED).__contains__)
as_double = _taking(types.DOUBLE, lambda kind: types.is_number(kind) or kind in _UNTYPED)
as_bool = _taking(types.BOOL, (_UNTYPED | {types.BOOL}).__contains__)
as_date = _taking(types.DATE, (types.MOMENTS | _UNTYPED).__contains__)
as_timestamp = _taking(types.TIMESTAMP, (types.MOMENTS | _UNTYPED).__contains__)

# In and out of events.


def incoming(kind: types.Type, *, inside: bool = False) -> Callable[[Any], Any] | None:
    """Return what takes a value of an event for what is computed with; None if it is the same.

    `inside` an array or an object a double may be a whole number.
    """
    if kind == types.DOUBLE and inside:
        return float
    if kind == types.TIMESTAMP:
        return micros
    if types.is_decimal(kind):
        return lambda value: EXACT.quantize(value, Decimal((0, (1,), -kind.scale)))
    if kind.element is not None:
        return _of_elements(incoming(kind.element, inside=True))
    if kind.name == "struct":
        fields = {name: incoming(each, inside=True) for name, each in kind.fields}
        return lambda value: _struct_in(value, fields)
    return None


def _of_elements(function: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    """Apply a function to the elements of an array that are not NULL."""
    if function is None:
        return None
    return lambda items: [None if each is None else function(each) for each in items]


def _struct_in(value: dict[str, Any], fields: dict[str, Callable[[Any], Any] | None]) -> dict[str, Any]:
    fields_in = {}
    for name, each in types.distinct(value).items():
        folded = name.lower()
        if each is not None and folded in fields:
            function = fields[folded]
            fields_in[folded] = each if function is None else function(each)
    return fields_in


def outgoing(kind: types.Type) -> Callable[[Any], Any] | None:
    """Return what makes a value of an event of what was computed; None if it is the same."""
    if kind == types.DATE:
        return date_of
    if kind == types.TIMESTAMP:
        return lambda moment: _EPOCH + dt.timedelta(microseconds=moment)
    return None if kind.element is None else _of_elements(outgoing(kind.element))
