"""Values of events: kinds, moments, flattening, and what is refused."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from enum import IntEnum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.values import MAX_DEPTH, Kind, flatten, kind_of, micros
from headgate.errors import EventError

KINDS: list[tuple[object, Kind]] = [
    (None, Kind.NULL),
    (True, Kind.BOOL),
    (0, Kind.INT),
    (-(2**63), Kind.INT),
    (0.0, Kind.FLOAT),
    (math.nan, Kind.FLOAT),
    ("", Kind.STRING),
    (dt.datetime(2024, 1, 1), Kind.TIMESTAMP),
    (dt.date(2024, 1, 1), Kind.TIMESTAMP),
    ([], Kind.ARRAY),
    ((1, "a"), Kind.ARRAY),
    ({}, Kind.OBJECT),
]


class Colour(IntEnum):
    RED = 1


@pytest.mark.parametrize(("value", "kind"), KINDS)
def test_kinds(value: object, kind: Kind) -> None:
    assert kind_of(value) is kind
    assert flatten({"a": value})["a",] is value


STRANGE = [b"a", {1}, 1j, np.int64(1), np.float64(1), dt.time(1), object(), Colour.RED]


@pytest.mark.parametrize("value", STRANGE)
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(EventError, match=f"a value of type {type(value).__name__} is not supported"):
        kind_of(value)


@pytest.mark.parametrize("value", [value for value in STRANGE if not isinstance(value, int)])
def test_a_refused_value_is_named(value: object) -> None:
    for data in ({"user": {"x": value}}, {"user": {"x": [1, [value]]}}):
        with pytest.raises(EventError, match=r"attribute user\.x: a value of type"):
            flatten(data)


def test_decimals_have_at_most_76_digits_and_are_numbers() -> None:
    for text in ("9" * 76, "-1e75", "1e-76", "0." + "9" * 76, "1" * 40 + "." + "1" * 36, "0e-76"):
        assert flatten({"a": Decimal(text)})["a",] == Decimal(text)
    for text in ("9" * 77, "1e76", "1e-77", "1e999999", "0e-77", "1" * 40 + "." + "1" * 37):
        for value in (Decimal(text), [Decimal(text)]):
            with pytest.raises(EventError, match=r"attribute b\.a: a decimal of more than 76 digits"):
                flatten({"b": {"a": value}})
    for text in ("NaN", "-Infinity", "sNaN"):
        with pytest.raises(EventError, match=r"attribute a: no decimal is .*; send it as a float"):
            flatten({"a": Decimal(text)})


MOMENTS = [
    (dt.date(1970, 1, 1), 0),
    (dt.date(1969, 12, 31), -86_400_000_000),
    (dt.datetime(1970, 1, 1, 0, 0, 0, 1), 1),
    (dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), -1),
    (dt.datetime(1970, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))), 0),
    (dt.datetime.min, -62_135_596_800_000_000),
    (dt.datetime.max, 253_402_300_799_999_999),
    (dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=18))), -62_135_661_600_000_000),
]


@pytest.mark.parametrize(("moment", "expected"), MOMENTS)
def test_microseconds(moment: dt.date, expected: int) -> None:
    assert micros(moment) == expected


@given(st.datetimes())
def test_microseconds_are_exact(moment: dt.datetime) -> None:
    assert dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros(moment)) == moment


def test_names_are_folded_and_nested() -> None:
    inner = {"City": "Bern", "at": None}
    assert flatten({"User": inner, "N": 1}) == {
        ("user",): inner,
        ("user", "city"): "Bern",
        ("user", "at"): None,
        ("n",): 1,
    }


def test_a_dot_in_a_name_is_no_nesting() -> None:
    assert flatten({"a.b": 1, "a": {"b": 2}}) == {("a.b",): 1, ("a",): {"b": 2}, ("a", "b"): 2}


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"a": 2**63}, "attribute a: 9223372036854775808 does not fit into 64 bits; send it as a string"),
    ({"a": -(2**63) - 1}, "does not fit into 64 bits"),
    ({"a": [0, [2**64]]}, "attribute a: 18446744073709551616 does not fit into 64 bits"),
    ({"a": 10**5000}, "attribute a: a number of 16610 bits does not fit into 64 bits"),
    ({"a": "x\ud800"}, "attribute a: the text holds a lone surrogate at character 2"),
    ({"u": {"a": ["\udfff"]}}, "attribute u.a: the text holds a lone surrogate at character 1"),
    ({"a": 1, "A": 1}, "attribute a is given twice"),
    ({"u": {"b": 1, "B": 2}}, "attribute u.b is given twice"),
]


@pytest.mark.parametrize(("data", "message"), REFUSED)
def test_refused(data: dict[str, object], message: str) -> None:
    with pytest.raises(EventError) as caught:
        flatten(data)
    assert message in str(caught.value)


def test_names_must_be_text() -> None:
    with pytest.raises(EventError, match="the attribute name 1 is not text"):
        flatten({1: 2})  # type: ignore[dict-item]


def nested_object(depth: int) -> dict[str, object]:
    data: dict[str, object] = {"a": 1}
    for _ in range(depth):
        data = {"a": data}
    return data


def nested_array(depth: int) -> list[object]:
    data: list[object] = []
    for _ in range(depth - 1):
        data = [data]
    return data


def test_depth_is_limited() -> None:
    assert len(flatten(nested_object(MAX_DEPTH))) == MAX_DEPTH + 1
    assert flatten({"a": nested_array(MAX_DEPTH)})
    for data in (nested_object(MAX_DEPTH + 1), nested_object(500), nested_object(100_000)):
        with pytest.raises(EventError, match=f"objects nest deeper than {MAX_DEPTH}"):
            flatten(data)
    for depth in (MAX_DEPTH + 1, 980, 100_000):
        with pytest.raises(EventError, match=f"attribute a: arrays nest deeper than {MAX_DEPTH}"):
            flatten({"a": nested_array(depth)})
