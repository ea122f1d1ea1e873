"""Values of literals and their comparison, by what XML Schema 1.1 and SPARQL 1.1 say."""

from __future__ import annotations

import datetime as dt
import math
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.rdf.language.model import XSD, literal
from headgate.rdf.language.values import LONGEST, Moment, Number, Text, Truth, compare, value_of

SIGNS = ("=", "!=", "<", "<=", ">", ">=")
# What the six signs say, in their order.
LESS = (False, True, True, True, False, False)
EQUAL = (True, False, False, True, False, True)
MORE = (False, True, False, False, True, True)
UNORDERED = (False, True, False, False, False, False)
ERROR = (None,) * 6
SAME = (True, False, None, None, None, None)
DIFFERENT = (False, True, None, None, None, None)


def typed(text: str) -> str:
    """Make a term of `lexical^^type`, of `lexical@language`, of `<iri>`, or of a string."""
    if text.startswith(("<", "_")):
        return text
    if "^^" in text:
        lexical, _, name = text.rpartition("^^")
        return literal(lexical, name if ":" in name else f"{XSD}{name}")
    lexical, at, language = text.partition("@")
    return literal(lexical, language=language) if at else literal(lexical)


NUMBERS: list[tuple[str, object]] = [
    ("1^^integer", 1),
    ("-0^^integer", 0),
    ("+007^^integer", 7),
    ("340282366920938463463374607431768211456^^integer", 2**128),
    ("^^integer", None),
    ("+^^integer", None),
    ("1.0^^integer", None),
    ("1e3^^integer", None),
    (" 1^^integer", None),
    ("1\n^^integer", None),
    ("1_000^^integer", None),
    ("٣^^integer", None),
    ("127^^byte", 127),
    ("128^^byte", None),
    ("-128^^byte", -128),
    ("-129^^byte", None),
    ("32767^^short", 32767),
    ("32768^^short", None),
    ("-2147483648^^int", -(2**31)),
    ("2147483648^^int", None),
    ("9223372036854775807^^long", 2**63 - 1),
    ("9223372036854775808^^long", None),
    ("255^^unsignedByte", 255),
    ("256^^unsignedByte", None),
    ("-0^^unsignedByte", 0),
    ("-1^^unsignedByte", None),
    ("65535^^unsignedShort", 65535),
    ("4294967296^^unsignedInt", None),
    ("18446744073709551615^^unsignedLong", 2**64 - 1),
    ("18446744073709551616^^unsignedLong", None),
    ("0^^nonNegativeInteger", 0),
    ("-1^^nonNegativeInteger", None),
    ("0^^positiveInteger", None),
    ("1^^positiveInteger", 1),
    ("0^^nonPositiveInteger", 0),
    ("1^^nonPositiveInteger", None),
    ("0^^negativeInteger", None),
    ("-1^^negativeInteger", -1),
    ("1^^decimal", Decimal(1)),
    ("-.50^^decimal", Decimal("-0.5")),
    ("5.^^decimal", Decimal(5)),
    (".^^decimal", None),
    ("1e3^^decimal", None),
    ("INF^^decimal", None),
    ("0.1000000000000000000000000000000000001^^decimal", Decimal("0.1000000000000000000000000000000000001")),
    ("1^^double", 1.0),
    ("1E3^^double", 1000.0),
    ("-1.5e-3^^double", -0.0015),
    ("INF^^double", math.inf),
    ("+INF^^double", math.inf),
    ("-INF^^double", -math.inf),
    ("inf^^double", None),
    ("Infinity^^double", None),
    ("nan^^double", None),
    ("-NaN^^double", None),
    ("1e^^double", None),
    ("0x10^^double", None),
    ("1e400^^double", math.inf),
    ("1e-400^^double", 0.0),
    ("1e999999999999999999999999^^double", math.inf),
    ("0.1^^float", float(np.float32(0.1))),
    ("16777217^^float", 16777216.0),
    ("1e39^^float", math.inf),
    ("1e-60^^float", 0.0),
    # The double next to these lies between two floats: rounding by way of it would go wrong.
    ("1.00000017881393432617187499^^float", 1.00000011920928955078125),
    ("1.00000017881393432617187500^^float", 1.0000002384185791015625),
    ("1.00000005960464477539062501^^float", 1.00000011920928955078125),
    ("1.000000059604644775390625^^float", 1.0),
]


@pytest.mark.parametrize(("text", "expected"), NUMBERS)
def test_numbers(text: str, expected: object) -> None:
    found = value_of(typed(text))
    if expected is None:
        assert found is None
    else:
        assert isinstance(found, Number)
        assert found.value == expected
        assert type(found.value) is type(expected)


def test_not_a_number() -> None:
    for name in ("float", "double"):
        found = value_of(typed(f"NaN^^{name}"))
        assert isinstance(found, Number)
        assert math.isnan(found.value)


DAY = 86400
MOMENTS: list[tuple[str, tuple[object, bool] | None]] = [
    ("1970-01-01T00:00:00Z^^dateTime", (0, True)),
    ("1970-01-01T00:00:00^^dateTime", (0, False)),
    ("1970-01-01T00:00:00+01:00^^dateTime", (-3600, True)),
    ("1970-01-01T00:00:00-14:00^^dateTime", (14 * 3600, True)),
    ("1970-01-01T00:00:00-14:01^^dateTime", None),
    ("1970-01-01T00:00:00+05:30^^dateTime", (-19800, True)),
    ("1969-12-31T24:00:00Z^^dateTime", (0, True)),
    ("1969-12-31T24:00:00.000Z^^dateTime", (0, True)),
    ("1969-12-31T24:00:01Z^^dateTime", None),
    ("1970-01-01T23:59:60Z^^dateTime", None),
    ("1970-01-01T00:00:00.1000000000000000000001Z^^dateTime", (Fraction(10**21 + 1, 10**22), True)),
    ("1970-01-01T00:00:00.Z^^dateTime", None),
    ("2000-02-29T00:00:00Z^^dateTime", (11016 * DAY, True)),
    ("1900-02-29T00:00:00Z^^dateTime", None),
    ("2001-04-31T00:00:00Z^^dateTime", None),
    ("2001-13-01T00:00:00Z^^dateTime", None),
    ("2001-00-01T00:00:00Z^^dateTime", None),
    ("2001-1-01T00:00:00Z^^dateTime", None),
    ("0001-01-01T00:00:00Z^^dateTime", (-719162 * DAY, True)),
    ("0000-01-01T00:00:00Z^^dateTime", (-719528 * DAY, True)),
    ("-0001-12-31T00:00:00Z^^dateTime", (-719529 * DAY, True)),
    ("10000-01-01T00:00:00Z^^dateTime", (2932897 * DAY, True)),
    ("02001-01-01T00:00:00Z^^dateTime", None),
    ("201-01-01T00:00:00Z^^dateTime", None),
    ("2001-01-01T00:00Z^^dateTime", None),
    ("2001-01-01 00:00:00Z^^dateTime", None),
    ("2001-01-01T00:00:00z^^dateTime", None),
    ("2001-01-01^^dateTime", None),
    ("1970-01-01T00:00:00Z^^dateTimeStamp", (0, True)),
    ("1970-01-01T00:00:00^^dateTimeStamp", None),
    ("1970-01-02^^date", (DAY, False)),
    ("1970-01-02Z^^date", (DAY, True)),
    ("1970-01-02+02:00^^date", (DAY - 7200, True)),
    ("1970-01-02T00:00:00^^date", None),
    ("2001-02-29^^date", None),
    ("-0004-02-29^^date", (-720930 * DAY, False)),
]


@pytest.mark.parametrize(("text", "expected"), MOMENTS)
def test_moments(text: str, expected: tuple[object, bool] | None) -> None:
    found = value_of(typed(text))
    if expected is None:
        assert found is None
    else:
        assert isinstance(found, Moment)
        assert (found.seconds, found.zoned) == expected
        assert found.kind == ("date" if text.endswith("^^date") else "dateTime")


@given(st.dates())
def test_days_are_those_of_the_calendar(day: dt.date) -> None:
    found = value_of(typed(f"{day.isoformat()}^^date"))
    assert isinstance(found, Moment)
    assert found.seconds == (day - dt.date(1970, 1, 1)).days * DAY


def test_other_values() -> None:
    assert value_of('"chat"@fr') == Text("chat", "fr")
    assert value_of('"a\\nb"') == Text("a\nb", "")
    assert [value_of(typed(f"{text}^^boolean")) for text in ("true", "1", "false", "0")] == [
        Truth(True),
        Truth(True),
        Truth(False),
        Truth(False),
    ]
    for text in ("True^^boolean", "yes^^boolean", "^^boolean", "x^^token", "x^^urn:t", "P1Y^^duration"):
        assert value_of(typed(text)) is None
    assert value_of("<urn:x>") is None
    assert value_of("_:b0") is None


COMPARED: list[tuple[str, str, tuple[bool | None, ...]]] = [
    # Numbers: exact until a float or a double comes in.
    ("1^^integer", "2^^integer", LESS),
    ("1^^integer", "01^^integer", EQUAL),
    ("1^^integer", "1.0^^decimal", EQUAL),
    ("3^^unsignedByte", "3^^long", EQUAL),
    ("18446744073709551617^^integer", "18446744073709551616^^integer", MORE),
    ("9007199254740993^^integer", "9007199254740992.5^^decimal", MORE),
    ("9007199254740993^^integer", "9007199254740992^^double", EQUAL),
    ("9007199254740993.5^^decimal", "9007199254740992e0^^double", MORE),
    ("16777217^^integer", "16777216^^float", EQUAL),
    ("0.1^^decimal", "0.1^^float", EQUAL),
    ("0.1^^double", "0.1^^float", LESS),
    ("0.1^^decimal", "0.1^^double", EQUAL),
    ("-0^^double", "0^^integer", EQUAL),
    ("NaN^^double", "NaN^^double", UNORDERED),
    ("NaN^^float", "1^^integer", UNORDERED),
    ("INF^^double", "1e400^^double", EQUAL),
    ("1" + "0" * 400 + "^^integer", "INF^^double", EQUAL),
    ("1" + "0" * 400 + "^^integer", "1e308^^double", MORE),
    ("-1" + "0" * 400 + "^^decimal", "-1e308^^float", EQUAL),
    # Strings by code points; no order and no inequality with languages.
    ("a", "b", LESS),
    ("Z", "a", LESS),
    ("\uffff", "\U0001f388", LESS),
    ("", "", EQUAL),
    ("a@en", "a@en", SAME),
    ("a@en", "a@EN", SAME),
    ("a@en", "b@en", ERROR),
    ("a@en", "a", ERROR),
    # Truth values: false is less than true.
    ("false^^boolean", "true^^boolean", LESS),
    ("1^^boolean", "true^^boolean", EQUAL),
    ("true^^boolean", "1^^integer", ERROR),
    # Times.
    ("2001-01-01T00:00:00Z^^dateTime", "2001-01-01T01:00:00+01:00^^dateTime", EQUAL),
    ("2001-01-01T00:00:00^^dateTime", "2001-01-01T00:00:00.0^^dateTime", EQUAL),
    ("2001-01-01T00:00:00Z^^dateTime", "2001-01-01T00:00:00^^dateTime", ERROR),
    ("2001-01-01T00:00:00Z^^dateTime", "2001-01-01T14:00:00^^dateTime", ERROR),
    ("2001-01-01T00:00:00Z^^dateTime", "2001-01-01T14:00:00.001^^dateTime", LESS),
    ("2001-01-01T14:00:01^^dateTime", "2001-01-01T00:00:00Z^^dateTime", MORE),
    ("2000-12-31T24:00:00Z^^dateTime", "2001-01-01T00:00:00Z^^dateTime", EQUAL),
    ("2001-01-01T00:00:00Z^^dateTimeStamp", "2001-01-01T00:00:00Z^^dateTime", EQUAL),
    ("-0001-01-01T00:00:00Z^^dateTime", "0000-01-01T00:00:00Z^^dateTime", LESS),
    ("12001-01-01T00:00:00Z^^dateTime", "2001-01-01T00:00:00Z^^dateTime", MORE),
    ("2001-01-01^^date", "2001-01-02^^date", LESS),
    ("2001-01-01Z^^date", "2001-01-01+00:00^^date", EQUAL),
    ("2001-01-01Z^^date", "2001-01-01+02:00^^date", MORE),
    ("2001-01-01Z^^date", "2001-01-01^^date", ERROR),
    ("2001-01-01^^date", "2001-01-01T00:00:00^^dateTime", ERROR),
    # What cannot be compared: a string and a number, unknown types, texts that are no value.
    ("2001", "2000^^integer", ERROR),
    ("2001^^integer", "2001", ERROR),
    ("1^^urn:t", "1^^urn:t", SAME),
    ("1^^urn:t", "2^^urn:t", ERROR),
    ("1^^urn:t", "1^^integer", ERROR),
    ("abc^^integer", "abc^^integer", SAME),
    ("abc^^integer", "1^^integer", ERROR),
    ("300^^byte", "300^^integer", ERROR),
    # IRIs and blank nodes are terms, equal or not.
    ("<urn:x>", "<urn:x>", SAME),
    ("<urn:x>", "<urn:y>", DIFFERENT),
    ("<urn:x>", "1^^integer", DIFFERENT),
    ("<urn:x>", "urn:x", DIFFERENT),
    ("_:b0", "_:b0", SAME),
    ("_:b0", "<urn:x>", DIFFERENT),
]


@pytest.mark.parametrize(("left", "right", "expected"), COMPARED)
def test_comparison(left: str, right: str, expected: tuple[bool | None, ...]) -> None:
    one, other = typed(left), typed(right)
    assert tuple(compare(sign, one, other) for sign in SIGNS) == expected
    turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    assert tuple(compare(turned.get(sign, sign), other, one) for sign in SIGNS) == expected


COERCED: list[tuple[str, str, tuple[bool | None, ...]]] = [
    ("2001", "2000^^integer", MORE),
    (" 2001\n", "2001^^integer", EQUAL),
    ("1999.5", "2000^^integer", LESS),
    ("1e3", "1000^^integer", EQUAL),
    ("9007199254740993", "9007199254740992^^integer", MORE),
    ("9007199254740993", "9007199254740992^^double", EQUAL),
    ("INF", "1^^integer", MORE),
    ("two", "2^^integer", ERROR),
    ("", "2^^integer", ERROR),
    ("2001\u00a0", "2001^^integer", ERROR),
    ("2001@en", "2001^^integer", ERROR),
    ("2001", "2001^^urn:t", ERROR),
    ("2001", "abc^^integer", ERROR),
    ("true", "1^^boolean", EQUAL),
    ("0", "true^^boolean", LESS),
    ("yes", "true^^boolean", ERROR),
    ("2001-01-01", "2001-01-02^^date", LESS),
    ("2001-01-01", "2001-01-01T00:00:00^^dateTime", ERROR),
    ("2001-01-01T00:00:00Z", "2001-01-01T00:00:00Z^^dateTime", EQUAL),
    ("2001-01-01T00:00:00Z", "2001-01-01T00:00:00^^dateTime", ERROR),
    # Two strings stay strings.
    ("10", "9", LESS),
    ("<urn:x>", "1^^integer", DIFFERENT),
]


@pytest.mark.parametrize(("left", "right", "expected"), COERCED)
def test_coercion(left: str, right: str, expected: tuple[bool | None, ...]) -> None:
    one, other = typed(left), typed(right)
    assert tuple(compare(sign, one, other, True) for sign in SIGNS) == expected
    turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    assert tuple(compare(turned.get(sign, sign), other, one, True) for sign in SIGNS) == expected


def test_giants_have_no_value_and_take_no_time() -> None:
    started = time.perf_counter()
    one = typed("1^^integer")
    for name in ("integer", "decimal", "double", "float", "long"):
        giant = literal("9" * 5_000_000, f"{XSD}{name}")
        assert value_of(giant) is None
        assert compare("<", giant, one) is None
        assert value_of(literal("9" * LONGEST, f"{XSD}{name}")) is not None or name == "long"
    for text in (f"{'9' * 1_000_000}-01-01", f"2001-01-01T00:00:00.{'9' * 1_000_000}Z"):
        assert value_of(literal(text, f"{XSD}dateTime")) is None
    assert compare("<", literal("9" * 5_000_000), one, True) is None
    for text in ("1e" + "9" * 3000, "1e-" + "9" * 3000, "9" * 3900 + "e" + "9" * 50):
        assert isinstance(value_of(literal(text, f"{XSD}float")), Number)
    assert time.perf_counter() - started < 5


def test_giant_years_compare() -> None:
    late = literal(f"{'9' * 3000}-01-01", f"{XSD}date")
    assert compare(">", late, typed("2001-01-01^^date")) is True
    assert compare("=", late, late) is True


@given(st.floats(allow_nan=False), st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_meets_a_double_as_the_nearest_double(double: float, exact: Decimal) -> None:
    text = f"{exact:f}"
    one, other = literal(text, f"{XSD}decimal"), literal(_double(double), f"{XSD}double")
    assert compare("<", one, other) is (float(text) < double)
    assert compare("=", one, other) is (float(text) == double)


@given(st.fractions(max_denominator=10**6), st.integers(-60, 40))
def test_floats_are_the_nearest(fraction: Fraction, power: int) -> None:
    digits = f"{float(fraction)!r}"
    exact = Fraction(Decimal(digits)) * Fraction(10) ** power
    found = value_of(literal(f"{digits}e{power}" if "e" not in digits else digits, f"{XSD}float"))
    assert isinstance(found, Number)
    if "e" in digits or math.isinf(float(found.value)):
        return
    near = np.float32(found.value)
    gap = abs(Fraction(float(near)) - exact)
    for neighbour in (np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))):
        if np.isfinite(neighbour):
            assert gap <= abs(Fraction(float(neighbour)) - exact)


def _double(value: float) -> str:
    return repr(value).replace("inf", "INF")
