"""Spark's casts from strings, as ANSI mode does them, with None where Spark would raise.

Spark compares a string with a number, a Boolean, a date or a timestamp by casting the string. Each
function here is one such cast; each agrees with `try_cast` of Spark 4 on every string that the tests
could think of, but for two departures that are None here: years outside 0001 to 9999, and a time without a
date (Spark takes today's).
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from functools import cache
from importlib import resources

DAY = 86_400_000_000
"""Microseconds in a day."""

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

# What Java's String.trim drops, and UTF8String.trimAll, which drops DEL too.
_SPACE = "".join(map(chr, range(33)))
_BLANK = _SPACE + "\x7f"
_INT = re.compile(r"[+-]?[0-9]+\Z")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?\Z")
_HEX_DOUBLE = re.compile(r"([+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]+)[df]?\Z", re.IGNORECASE)
# Spark knows the names in any case, and Java NaN with a sign. Without ASCII, `i` would take a dotless one.
_NAMED_DOUBLE = re.compile(r"(?:(?i:[+-]?inf(?:inity)?|nan)|[+-]NaN)\Z", re.ASCII)
_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_DATE = re.compile(r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?\Z", re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})"
    r"(?::([0-9]{1,2})(?:\.([0-9]*))?(.*))?)?)?)?)?\Z",
    re.DOTALL,
)
# Java's forms of an offset, and with colons Spark's, in which hours and minutes may have one digit.
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2}(?::[0-9]{1,2}|:[0-9]{2}:[0-9]{2})?|[0-9]{4}|[0-9]{6})\Z"
)
# Names that Java has and the zone database has not, or means otherwise (java.time.ZoneId.SHORT_IDS).
_SHORT_ZONES = dict(
    re.findall(
        r"(\w+)=(\S+)",
        """ACT=Australia/Darwin AET=Australia/Sydney AGT=America/Argentina/Buenos_Aires
    ART=Africa/Cairo AST=America/Anchorage BET=America/Sao_Paulo BST=Asia/Dhaka CAT=Africa/Harare
    CNT=America/St_Johns CST=America/Chicago CTT=Asia/Shanghai EAT=Africa/Addis_Ababa ECT=Europe/Paris
    EST=-05:00 HST=-10:00 IET=America/Indiana/Indianapolis IST=Asia/Kolkata JST=Asia/Tokyo
    MIT=Pacific/Apia MST=-07:00 NET=Asia/Yerevan NST=Pacific/Auckland PLT=Asia/Karachi PNT=America/Phoenix
    PRT=America/Puerto_Rico PST=America/Los_Angeles SST=Pacific/Guadalcanal VST=Asia/Ho_Chi_Minh""",
    )
)
_NOT_IN_JAVA = {"Factory", "ROC"}


def to_int(text: str) -> int | None:
    """Cast to BIGINT.

    >>> to_int(" 042 "), to_int("1.5"), to_int("9223372036854775808")
    (42, None, None)
    """
    text = text.strip(_BLANK)
    if not _INT.match(text):
        return None
    # Zeros in front may be many; what is left of a number within 64 bits is short.
    digits = text.lstrip("+-0")
    if len(digits) > 19:
        return None
    value = int(digits or "0") * (-1 if text[0] == "-" else 1)
    return value if INT64_MIN <= value <= INT64_MAX else None


def to_double(text: str) -> float | None:
    """Cast to DOUBLE.

    >>> to_double("1e2"), to_double("-Infinity"), to_double("1,5")
    (100.0, -inf, None)
    """
    text = text.strip(_SPACE)
    if _DOUBLE.match(text):
        return float(text.rstrip("dDfF"))
    if not _NAMED_DOUBLE.match(text):
        return _hex_double(text)
    # There is one NaN, whatever its sign.
    return float("nan") if text[-1] in "nN" else float(text)


def _hex_double(text: str) -> float | None:
    """Read 0x1.8p3, which Java does."""
    match_ = _HEX_DOUBLE.match(text)
    if match_ is None:
        return None
    try:
        return float.fromhex(match_[1])
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
    if not parts[8]:
        return local
    offset = _offset(parts[8].strip(_SPACE), local)
    return None if offset is None else local - offset


def _midnight(year: str, month: str | None, day: str | None) -> int | None:
    try:
        date = dt.date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        return None
    return (date.toordinal() - _EPOCH) * DAY


_EPOCH = dt.date(1970, 1, 1).toordinal()


@cache
def _zones() -> frozenset[str]:
    """Name the zones of the package tzdata that Java has too."""
    return frozenset((resources.files("tzdata") / "zones").read_text("utf-8").split()) - _NOT_IN_JAVA


@cache
def _zone(name: str) -> zoneinfo.ZoneInfo:
    """Read a zone from the package: a machine's own files may differ in the time before 1970."""
    with (resources.files("tzdata") / "zoneinfo" / name).open("rb") as file:
        return zoneinfo.ZoneInfo.from_file(file, name)


def _offset(zone: str, local: int) -> int | None:
    """Return the zone's offset from UTC in microseconds at a local time."""
    if zone in {"Z", "UTC", "GMT", "UT"}:
        return 0
    zone = _SHORT_ZONES.get(zone, zone)
    fixed = _OFFSET.match(zone)
    if fixed is not None:
        return _fixed(fixed[1], fixed[2])
    if zone not in _zones():
        return None
    try:
        moment = dt.datetime(1970, 1, 1, tzinfo=_zone(zone)) + dt.timedelta(microseconds=local)
    except OverflowError:
        return None
    offset = moment.utcoffset()
    return None if offset is None else round(offset.total_seconds() * 1_000_000)


def _fixed(sign: str, digits: str) -> int | None:
    """Return the offset that +h, +hh, +hh:mm, +hh:mm:ss, +hhmm or +hhmmss means, in microseconds."""
    parts = digits.split(":") if len(digits) < 3 or ":" in digits else re.findall("..", digits)
    hours, minutes, seconds = map(int, [*parts, "0", "0"][:3])
    if minutes > 59 or seconds > 59 or (hours * 60 + minutes) * 60 + seconds > 18 * 3600:
        return None
    return (-1 if sign == "-" else 1) * ((hours * 60 + minutes) * 60 + seconds) * 1_000_000
