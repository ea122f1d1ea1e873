"""Functions of dates and timestamps, in UTC; none asks the clock."""

from __future__ import annotations

import calendar
import datetime as dt
from typing import TYPE_CHECKING, Any

from headgate.core.casts import DAY
from headgate.records.expressions.bound import Bound, fail, lift
from headgate.records.expressions.casting import as_date, as_int, as_text, as_timestamp, cast, day_in_range
from headgate.records.expressions.function import Function
from headgate.records.expressions.types import BOOL, DATE, INT, LONG, MOMENTS, TIMESTAMP, VOID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_DAYS = dt.date(1970, 1, 1).toordinal()
_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000


def _date(day: int) -> dt.date:
    return dt.date.fromordinal(day + _DAYS)


def _number(day: dt.date) -> int:
    return day.toordinal() - _DAYS


def _of_date(function: Callable[[dt.date], int]) -> Function:
    def bind(parts: Sequence[Bound]) -> Bound | None:
        part = as_date(parts[0])
        return None if part is None else lift(INT, lambda day: function(_date(day)), (part,))

    return Function(bind, 1, 1)


def _of_timestamp(function: Callable[[int], int]) -> Function:
    def bind(parts: Sequence[Bound]) -> Bound | None:
        part = as_timestamp(parts[0])
        return None if part is None else lift(INT, function, (part,))

    return Function(bind, 1, 1)


def _months(day: dt.date, count: int) -> int | None:
    """Add months; a day that the month lacks is its last."""
    months = day.year * 12 + day.month - 1 + count
    year, month = months // 12, months % 12 + 1
    if not 1 <= year <= 9999:
        return fail("the year is not one of 1 to 9999")
    return _number(dt.date(year, month, min(day.day, calendar.monthrange(year, month)[1])))


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
        return _number(_FLOORS[unit](_date(day)))
    except (OverflowError, ValueError):
        return fail("the year is not one of 1 to 9999")


def _date_trunc(parts: Sequence[Bound]) -> Bound | None:
    part = as_timestamp(parts[1])
    if part is None:
        return None
    unit = str(parts[0].constant).upper()
    if unit in _UNITS:
        size = _UNITS[unit]
        return lift(TIMESTAMP, lambda moment: moment // size * size, (part,))

    def run(moment: int) -> int | None:
        day = _floor(moment // DAY, unit)
        return None if day is None else day * DAY

    return lift(TIMESTAMP, run, (part,))


def _trunc(parts: Sequence[Bound]) -> Bound | None:
    part = as_date(parts[0])
    unit = str(parts[1].constant).upper()
    return None if part is None else lift(DATE, lambda day: _floor(day, unit), (part,))


def _known(place: int, units: Sequence[str]) -> Callable[[Sequence[Any]], str]:
    def wrong(arguments: Sequence[Any]) -> str:
        word = str(arguments[place].literal.value)
        return "" if word.upper() in units else f"{word!r} is no unit: use one of {', '.join(units)}"

    return wrong


def _add(sign: int) -> Callable[[Sequence[Bound]], Bound | None]:
    def bind(parts: Sequence[Bound]) -> Bound | None:
        day, count = as_date(parts[0]), as_int(parts[1])
        # Spark takes no BIGINT for days, and attributes are BIGINT: those that fit are taken here.
        if day is None or count is None:
            return None
        return lift(DATE, lambda first, days: day_in_range(first + sign * days), (day, count))

    return bind


def _add_months(parts: Sequence[Bound]) -> Bound | None:
    day, count = as_date(parts[0]), as_int(parts[1])
    if day is None or count is None:
        return None
    return lift(DATE, lambda first, months: _months(_date(first), months), (day, count))


def _datediff(parts: Sequence[Bound]) -> Bound | None:
    end, start = as_date(parts[0]), as_date(parts[1])
    return None if end is None or start is None else lift(INT, lambda a, b: a - b, (end, start))


def _last_day(parts: Sequence[Bound]) -> Bound | None:
    part = as_date(parts[0])
    if part is None:
        return None

    def run(day: int) -> int:
        found = _date(day)
        return _number(found.replace(day=calendar.monthrange(found.year, found.month)[1]))

    return lift(DATE, run, (part,))


def _make_date(parts: Sequence[Bound]) -> Bound | None:
    found = [as_int(part) for part in parts]
    return None if None in found else lift(DATE, _made, [part for part in found if part is not None])


def _made(year: int, month: int, day: int) -> int | None:
    try:
        return _number(dt.date(year, month, day))
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
    "hour": _of_timestamp(lambda moment: moment // _HOUR % 24),
    "minute": _of_timestamp(lambda moment: moment // _MINUTE % 60),
    "second": _of_timestamp(lambda moment: moment // _SECOND % 60),
    "date_trunc": Function(_date_trunc, 2, 2, texts=(0,), wrong=_known(0, [*_FLOORS, *_UNITS])),
    "trunc": Function(_trunc, 2, 2, texts=(1,), wrong=_known(1, [*_FLOORS])),
    "date_add": Function(_add(1), 2, 2),
    "date_sub": Function(_add(-1), 2, 2),
    "datediff": Function(_datediff, 2, 2),
    "add_months": Function(_add_months, 2, 2),
    "last_day": Function(_last_day, 1, 1),
    "make_date": Function(_make_date, 3, 3),
    "to_date": Function(_to_date, 1, 1),
    "to_timestamp": Function(_to_timestamp, 1, 1),
    "unix_seconds": _unix(_SECOND),
    "unix_millis": _unix(1_000),
    "unix_micros": _unix(1),
    "unix_date": Function(_unix_date, 1, 1),
}
ALIASES = {"dayofmonth": "day", "date_diff": "datediff", "dateadd": "date_add"}
