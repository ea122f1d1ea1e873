"""Functions of dates and timestamps, in UTC; none asks the clock."""

from __future__ import annotations

import calendar
import datetime as dt
from typing import TYPE_CHECKING

from headgate.core.casts import DAY
from headgate.records.expressions.bound import Bound, fail, lift
from headgate.records.expressions.casting import (
    as_date,
    as_text,
    as_timestamp,
    cast,
    date_of,
    day_in_range,
    days_of,
)
from headgate.records.expressions.function import Function, function_of, text_at
from headgate.records.expressions.types import BOOL, DATE, INT, LONG, MOMENTS, TIMESTAMP, VOID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.records.expressions.model import Node

_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000


def _of_date(function: Callable[[dt.date], int]) -> Function:
    return function_of(INT, lambda day: function(date_of(day)), "d")


def _months(day: dt.date, count: int) -> int | None:
    """Add months; a day that the month lacks is its last."""
    months = day.year * 12 + day.month - 1 + count
    year, month = months // 12, months % 12 + 1
    if not 1 <= year <= 9999:
        return fail("the year is not one of 1 to 9999")
    return days_of(dt.date(year, month, min(day.day, calendar.monthrange(year, month)[1])))


_FLOORS: dict[str, Callable[[dt.date], dt.date]] = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), lambda day: day.replace(month=1, day=1)),
    "QUARTER": lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
    **dict.fromkeys(("MONTH", "MM", "MON"), lambda day: day.replace(day=1)),
    "WEEK": lambda day: day - dt.timedelta(days=day.weekday()),
}
_UNITS = {
    **dict.fromkeys(("DAY", "DD"), DAY),
    "HOUR": _HOUR,
    "MINUTE": _MINUTE,
    "SECOND": _SECOND,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}


def _floor(day: int, unit: str) -> int | None:
    try:
        return days_of(_FLOORS[unit](date_of(day)))
    except (OverflowError, ValueError):
        return fail("the year is not one of 1 to 9999")


def _date_trunc(parts: Sequence[Bound]) -> Bound | None:
    unit = str(parts[0].constant).upper()
    size = _UNITS.get(unit)

    def run(moment: int) -> int | None:
        day = _floor(moment // DAY, unit)
        return None if day is None else day * DAY

    floor = run if size is None else lambda moment: moment // size * size
    return lift(TIMESTAMP, floor, (as_timestamp(parts[1]),))


def _trunc(parts: Sequence[Bound]) -> Bound | None:
    unit = str(parts[1].constant).upper()
    return lift(DATE, lambda day: _floor(day, unit), (as_date(parts[0]),))


def _known(index: int, units: Sequence[str]) -> Callable[[Sequence[Node]], str]:
    def wrong(arguments: Sequence[Node]) -> str:
        word = text_at(arguments, index)
        return "" if word.upper() in units else f"{word!r} is no unit: use one of {', '.join(units)}"

    return wrong


def _last_day(day: int) -> int:
    date = date_of(day)
    return days_of(date.replace(day=calendar.monthrange(date.year, date.month)[1]))


def _made(year: int, month: int, day: int) -> int | None:
    try:
        return days_of(dt.date(year, month, day))
    except (ValueError, OverflowError):
        return fail(f"{year}-{month}-{day} is no date")


def _unix(size: int) -> Function:
    def bind(parts: Sequence[Bound]) -> Bound | None:
        if parts[0].type not in {TIMESTAMP, VOID}:
            return None
        return lift(LONG, lambda moment: moment // size, parts)

    return Function(bind, 1, 1)


def _unix_date(parts: Sequence[Bound]) -> Bound | None:
    return lift(INT, lambda day: day, parts) if parts[0].type in {DATE, VOID} else None


def _to_date(parts: Sequence[Bound]) -> Bound | None:
    # A number is written as a text first: 2024 is the first day of that year.
    part = parts[0] if parts[0].type in MOMENTS else as_text(parts[0])
    return None if part is None else cast(part, DATE)


def _to_timestamp(parts: Sequence[Bound]) -> Bound | None:
    part = as_text(parts[0]) if parts[0].type == BOOL else parts[0]
    return None if part is None else cast(part, TIMESTAMP)


FUNCTIONS = {
    "year": _of_date(lambda day: day.year),
    "quarter": _of_date(lambda day: (day.month + 2) // 3),
    "month": _of_date(lambda day: day.month),
    "day": _of_date(lambda day: day.day),
    "dayofweek": _of_date(lambda day: day.isoweekday() % 7 + 1),
    "weekday": _of_date(lambda day: day.weekday()),
    "dayofyear": _of_date(lambda day: day.timetuple().tm_yday),
    "weekofyear": _of_date(lambda day: day.isocalendar()[1]),
    "hour": function_of(INT, lambda moment: moment // _HOUR % 24, "m"),
    "minute": function_of(INT, lambda moment: moment // _MINUTE % 60, "m"),
    "second": function_of(INT, lambda moment: moment // _SECOND % 60, "m"),
    "date_trunc": Function(_date_trunc, 2, 2, texts=(0,), wrong=_known(0, [*_FLOORS, *_UNITS])),
    "trunc": Function(_trunc, 2, 2, texts=(1,), wrong=_known(1, [*_FLOORS])),
    # Spark takes no BIGINT for days, and attributes are BIGINT: those that fit are taken here.
    "date_add": function_of(DATE, lambda day, count: day_in_range(day + count), "di"),
    "date_sub": function_of(DATE, lambda day, count: day_in_range(day - count), "di"),
    "datediff": function_of(INT, lambda end, start: end - start, "dd"),
    "add_months": function_of(DATE, lambda day, count: _months(date_of(day), count), "di"),
    "last_day": function_of(DATE, _last_day, "d"),
    "make_date": function_of(DATE, _made, "iii"),
    "to_date": Function(_to_date, 1, 1),
    "to_timestamp": Function(_to_timestamp, 1, 1),
    "unix_seconds": _unix(_SECOND),
    "unix_millis": _unix(1_000),
    "unix_micros": _unix(1),
    "unix_date": Function(_unix_date, 1, 1),
}
ALIASES = {"dayofmonth": "day", "date_diff": "datediff", "dateadd": "date_add"}
