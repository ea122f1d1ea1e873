"""Spark's casts from strings, as ANSI mode does them, with None where Spark would raise.

Spark compares a string with a number, a Boolean, a date or a timestamp by casting the string. Each
function here is one such cast; each agrees with `try_cast` of Spark 4 on every string that the tests
could think of, but for three departures that are None here: years outside 0001 to 9999, a time without a
date (Spark takes today's), and the three-letter zones of Java other than UTC and GMT.
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from functools import lru_cache

DAY = 86_400_000_000
"""Microseconds in a day."""

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

# UTF8String.trimAll drops everything up to the space and DEL.
_BLANK = "".join(map(chr, range(33))) + "\x7f"
_INT = re.compile(r"[+-]?[0-9]+\Z")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?\Z")
_HEX_DOUBLE = re.compile(r"([+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]+)[df]?\Z", re.IGNORECASE)
_NAMED_DOUBLE = re.compile(r"(?:([+-]?)(?:inf|infinity)|[+-]?(nan))\Z", re.IGNORECASE)
_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?\Z", re.DOTALL)
_TIMESTAMP = re.compile(
    r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})"
    r"(?::([0-9]{1,2})(?:\.([0-9]{0,9}))?[ ]?(\S*))?)?)?)?)?\Z"
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?\Z")


def to_int(text: str) -> int | None:
    """Cast to BIGINT.

    >>> to_int(" 042 "), to_int("1.5"), to_int("9223372036854775808")
    (42, None, None)
    """
    text = text.strip(_BLANK)
    if not _INT.match(text) or len(text) > 400:
        return None
    value = int(text)
    return value if INT64_MIN <= value <= INT64_MAX else None


def to_double(text: str) -> float | None:
    """Cast to DOUBLE.

    >>> to_double("1e2"), to_double("-Infinity"), to_double("1,5")
    (100.0, -inf, None)
    """
    text = text.strip(_BLANK)
    if _DOUBLE.match(text):
        return float(text.rstrip("dDfF"))
    named = _NAMED_DOUBLE.match(text)
    if named is None:
        return _hex_double(text)
    if named[2]:
        return float("nan")
    return float("-inf") if named[1] == "-" else float("inf")


def _hex_double(text: str) -> float | None:
    """Read 0x1.8p3, which Java does."""
    found = _HEX_DOUBLE.match(text)
    if found is None:
        return None
    try:
        return float.fromhex(found[1])
    except OverflowError:
        return float("-inf") if text.startswith("-") else float("inf")


def to_bool(text: str) -> bool | None:
    """Cast to BOOLEAN.

    >>> to_bool("Yes"), to_bool("0"), to_bool("maybe")
    (True, False, None)
    """
    text = text.strip(_BLANK).lower()
    if text in _TRUE:
        return True
    return False if text in _FALSE else None


def to_date(text: str) -> int | None:
    """Cast to DATE, as microseconds of that midnight in UTC.

    >>> to_date("1970-01-02"), to_date("1970-1-2T23:59"), to_date("1970-13-01")
    (86400000000, 86400000000, None)
    """
    parts = _DATE.match(text.strip(_BLANK))
    return None if parts is None else _midnight(parts[1], parts[2], parts[3])


def to_timestamp(text: str) -> int | None:
    """Cast to TIMESTAMP in the session time zone UTC, as microseconds since 1970.

    >>> to_timestamp("1970-01-01 00:00:01.5"), to_timestamp("1970-01-01T01:00:00+01:00")
    (1500000, 0)
    >>> to_timestamp("yesterday") is None
    True
    """
    parts = _TIMESTAMP.match(text.strip(_BLANK))
    if parts is None:
        return None
    midnight = _midnight(parts[1], parts[2], parts[3])
    hour, minute, second = (int(part or 0) for part in parts.group(4, 5, 6))
    if midnight is None or hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((parts[7] or "").ljust(6, "0")[:6])
    local = midnight + ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
    zone = parts[8]
    if not zone:
        return local
    offset = _offset(zone, local)
    return None if offset is None else local - offset


def _midnight(year: str, month: str | None, day: str | None) -> int | None:
    try:
        date = dt.date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        return None
    return (date.toordinal() - _EPOCH) * DAY


_EPOCH = dt.date(1970, 1, 1).toordinal()


@lru_cache(maxsize=1024)
def _zone(name: str) -> zoneinfo.ZoneInfo | None:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _offset(zone: str, local: int) -> int | None:
    """Return the zone's offset from UTC in microseconds at a local time."""
    if zone in {"Z", "UTC", "GMT", "UT"}:
        return 0
    fixed = _OFFSET.match(zone)
    if fixed is not None:
        hours, minutes, seconds = (int(part or 0) for part in fixed.group(2, 3, 4))
        if hours > 18 or minutes > 59 or seconds > 59 or (hours == 18 and minutes + seconds > 0):
            return None
        sign = -1 if fixed[1] == "-" else 1
        return sign * ((hours * 60 + minutes) * 60 + seconds) * 1_000_000
    named = _zone(zone) if "/" in zone else None
    if named is None:
        return None
    try:
        moment = dt.datetime(1970, 1, 1, tzinfo=named) + dt.timedelta(microseconds=local)
    except OverflowError:
        return None
    offset = moment.utcoffset()
    return None if offset is None else round(offset.total_seconds() * 1_000_000)
