"""Casts from strings: properties that need no Spark (Spark itself is asked in tests/records)."""

from __future__ import annotations

import datetime as dt
import math
import zoneinfo
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.casts import DAY, to_bool, to_date, to_double, to_int, to_timestamp
from headgate.core.values import micros

if TYPE_CHECKING:
    from collections.abc import Callable

CASTS = [to_int, to_double, to_bool, to_date, to_timestamp]
SPACES = st.text("".join(map(chr, range(33))), max_size=3)
BLANKS = st.text("".join(map(chr, range(33))) + "\x7f", max_size=3)
INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize("cast", CASTS)
@given(st.text() | st.text("0123456789+-.:eEdDfFTZ UTC/nai", max_size=30))
def test_any_text_has_a_value_or_none(cast: Callable[[str], object], text: str) -> None:
    value = cast(text)
    assert value is None or isinstance(value, bool | int | float)
    blank = "\n" if cast is to_double else "\x7f"
    assert repr(cast(f"\t {text}{blank}")) == repr(value)


@given(INT64, BLANKS, st.sampled_from(["", "+", "0", "000"]))
def test_whole_numbers(value: int, blank: str, lead: str) -> None:
    text = str(value) if value < 0 else lead + str(value)
    assert to_int(f"{blank}{text}{blank}") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775809", None),
        ("1" * 5000, None),
        ("0" * 5000 + "7", 7),
        ("-" + "0" * 500, 0),
        ("-" + "0" * 500 + "9223372036854775808", -(2**63)),
        ("1\x7f", 1),
        ("- 1", None),
        ("1.0", None),
        ("1e2", None),
        ("٣", None),
        ("1\u00a0", None),
        ("1_0", None),
    ],
)
def test_edges_of_whole_numbers(text: str, value: int | None) -> None:
    assert to_int(text) == value


@given(st.floats(), SPACES, st.sampled_from(["", "d", "F"]))
def test_doubles(value: float, blank: str, suffix: str) -> None:
    text = repr(value) + (suffix if math.isfinite(value) else "")
    assert repr(to_double(f"{blank}{text}{blank}")) == repr(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_hexadecimal_doubles(value: float) -> None:
    assert to_double(value.hex()) == value
    assert to_double(value.hex().upper() + "D") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x1p3", 8.0),
        ("-0X.8P1f", -1.0),
        ("0x1p99999", math.inf),
        ("-0x1p99999", -math.inf),
        ("0x10", None),
        ("0xp3", None),
        ("1e400", math.inf),
        ("-1e-400", -0.0),
        ("infinit", None),
        ("1 .5", None),
        ("--1", None),
        (".", None),
        ("e5", None),
        ("1\x7f", None),
        ("\x7fNaN", None),
        ("NAN", math.nan),
        ("-NaN", math.nan),
        ("-NAN", None),
        ("+nan", None),
        ("\u0131nf", None),
        ("\u0130nfinity", None),
        ("-INFINITY", -math.inf),
        ("0" * 5000 + "7", 7.0),
        ("1" + "0" * 400 + "e-400", 1.0),
    ],
)
def test_edges_of_doubles(text: str, value: float | None) -> None:
    assert repr(to_double(text)) == repr(value)


@given(st.booleans(), BLANKS, st.sampled_from([str.lower, str.upper, str.title]))
def test_booleans(value: bool, blank: str, case: Callable[[str], str]) -> None:
    words = {True: ["t", "true", "y", "yes", "1"], False: ["f", "false", "n", "no", "0"]}
    for word in words[value]:
        assert to_bool(blank + case(word) + blank) is value
        assert to_bool(word + "x") is None


@given(st.dates(), BLANKS, st.sampled_from(["", " ", "T", "T anything", " 25:00"]))
def test_dates(date: dt.date, blank: str, tail: str) -> None:
    assert to_date(blank + date.isoformat() + tail + blank) == micros(date)
    assert to_date(f"{date.year:04}-{date.month}-{date.day}") == micros(date)


@given(
    st.datetimes(), st.sampled_from([" ", "T"]), st.sampled_from(["", "Z", " UTC", "+00:00", " GMT", "-0"])
)
def test_moments(moment: dt.datetime, between: str, zone: str) -> None:
    text = f"{moment.date().isoformat()}{between}{moment:%H:%M:%S.%f}{zone}"
    assert to_timestamp(text) == micros(moment)


@given(st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)), st.integers(-18 * 60, 18 * 60))
def test_offsets(moment: dt.datetime, minutes: int) -> None:
    sign = "-" if minutes < 0 else "+"
    hours, rest = divmod(abs(minutes), 60)
    for zone in (
        f"{sign}{hours:02}:{rest:02}",
        f" {sign}{hours}:{rest}",
        f"\t UTC{sign}{hours}:{rest:02}:00",
        f"GMT{sign}{hours:02}{rest:02}00",
    ):
        text = f"{moment.date().isoformat()} {moment:%H:%M:%S.%f}{zone}"
        assert to_timestamp(text) == micros(moment) - minutes * 60_000_000


@given(st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2037, 1, 1)), st.sampled_from([0, 1]))
def test_named_zones(moment: dt.datetime, fold: int) -> None:
    name = ["Europe/Zurich", "America/New_York"][fold]
    # A text does not say which of two equal hours it means: the first.
    local = moment.replace(tzinfo=zoneinfo.ZoneInfo(name), fold=0)
    text = f"{moment.date().isoformat()} {moment:%H:%M:%S.%f} {name}"
    assert to_timestamp(text) == micros(local.astimezone(dt.UTC))


@pytest.mark.parametrize(
    ("zone", "utc"),
    [
        ("Zulu", "10:00"),
        ("GMT0", "10:00"),
        ("Japan", "01:00"),
        ("CET", "09:00"),
        ("EST5EDT", "15:00"),
        # Java's own short names, some of which the zone database means otherwise.
        ("PST", "18:00"),
        ("IST", "04:30"),
        ("EST", "15:00"),
        # Not Java's.
        ("zulu", None),
        ("EDT", None),
        ("ROC", None),
        ("Factory", None),
        ("localtime", None),
        ("posix/Europe/Berlin", None),
        ("right/Europe/Berlin", None),
        ("+0230:00", None),
        ("+02:3000", None),
        ("+230", None),
        ("+1:2:3", None),
        ("\x7fUTC", None),
    ],
)
def test_zones(zone: str, utc: str | None) -> None:
    expected = None if utc is None else to_timestamp(f"2024-01-05 {utc}:00")
    assert (
        to_timestamp(f"2024-01-05 10:00:00 {zone}") == to_timestamp(f"2024-01-05T10:00:00{zone}") == expected
    )


def test_zones_before_1970_are_java_s() -> None:
    # Files of the zone database that keep this zone's own past, as some machines do, say -00:16:08.
    assert to_timestamp("1900-01-01 00:00:00 Africa/Bamako") == -2_208_987_832_000_000


@pytest.mark.parametrize(
    "text", ["+2024", "02024", "+002024", "+2024-1", "02024-01-01", "+2024-01-01 00:00:00"]
)
def test_years_with_a_sign_or_zeros(text: str) -> None:
    assert to_date(text) == to_timestamp(text) == to_date("2024-01-01")


@pytest.mark.parametrize(
    ("text", "date"),
    [("0002024-01-01", True), ("00002024-01-01", False), ("-2024-01-01", False), ("20240-01-01", False)],
)
def test_years_of_many_digits(text: str, date: bool) -> None:
    assert to_timestamp(text) is None
    assert to_date(text) == (to_date("2024-01-01") if date else None)


@pytest.mark.parametrize(
    "text",
    [
        "2023-02-29",
        "0000-01-01",
        "2024-00-01",
        "2024-01-32",
        "2024-01-01 24:00:00",
        "2024-01-01 00:60:00",
        "2024-01-01 00:00:60",
        "2024-01-01 00:00:00+18:01",
        "2024-01-01 00:00:00+19",
        "2024-01-01 00:00:00 Mars/Olympus",
        "2024-01-01 00:00:00 ../../etc/passwd",
        "2024-01-01 00:00:00 /etc/passwd",
        "2024-01-01 00:00:00 Europe/",
        "2024-01-01 00:00:00 \x00/",
        "2024-01-01 00:00:00 " + "a/" * 5000,
        "0001-01-01 00:00:00 Asia/Tokyo1",
    ],
)
def test_no_moments(text: str) -> None:
    assert to_timestamp(text) is None


def test_the_ends_of_time() -> None:
    assert to_timestamp("0001-01-01 00:00:00 Asia/Tokyo") is not None
    assert to_timestamp("9999-12-31 23:59:59.999999") == micros(dt.datetime.max)
    assert (
        to_timestamp("9999-12-31 23:59:59 America/New_York")
        == micros(dt.datetime.max) + 18_000_000_000 - 999_999
    )
    assert to_date("1969-12-31") == -DAY


def test_more_than_microseconds_are_cut() -> None:
    assert to_timestamp("1970-01-01 00:00:00.0000019") == 1
    assert to_timestamp("1969-12-31 23:59:59.9999999") == -1
    assert to_timestamp("1970-01-01 00:00:00.12345678901234567890") == 123456
