"""Events from rows and JSON, and what is refused."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, EventError
from headgate.core.event import read_object

if TYPE_CHECKING:
    from collections.abc import Mapping

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False)
)


def test_the_envelope() -> None:
    event = Event("e1", {"Topic": "news"}, source="p1")
    assert event.attributes == {("topic",): "news"}
    assert event.content_type == "application/json"
    with pytest.raises(
        EventError, match="content type 'text/turtle' is not supported: send application/json"
    ):
        Event("e1", {}, content_type="text/turtle")


def test_the_id_is_an_attribute_of_a_row() -> None:
    event = Event.from_row({"id": 7, "a": 1})
    assert event.id == 7
    assert event.attributes == {("id",): 7, ("a",): 1}


@pytest.mark.parametrize("row", [{}, {"id": None}, {"id": 1.5}, {"id": True}, {"id": [1]}, {"Id": None}])
def test_a_row_needs_an_id(row: Mapping[str, object]) -> None:
    with pytest.raises(EventError, match="give the field 'id' as text or a whole number"):
        Event.from_row(row)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,4}", fullmatch=True), SCALARS | st.lists(SCALARS)))
def test_json_keeps_values_and_types(data: dict[str, object]) -> None:
    data["id"] = "e"
    found = Event.from_json(json.dumps(data)).data
    assert [(name, type(value), value) for name, value in found.items()] == [
        (name, type(value), value) for name, value in data.items()
    ]


def test_numbers_keep_their_kind() -> None:
    found = Event.from_json('{"id": 1, "a": 1, "b": 1.0, "c": 1e2, "d": -0.0, "e": 9223372036854775807}').data
    assert [type(value) for value in found.values()] == [int, int, float, float, float, int]


def test_the_last_of_two_equal_names_wins() -> None:
    assert Event.from_json('{"id": 1, "a": 1, "a": 2}').data["a"] == 2


def test_a_pair_of_escapes_is_one_character() -> None:
    assert Event.from_json(r'{"id": "\ud83c\udf88"}').id == "🎈"


BAD = [
    ("", "not valid JSON"),
    ("{", "not valid JSON"),
    ('{"id": 1} {"id": 2}', "not valid JSON"),
    ("{'id': 1}", "not valid JSON"),
    ('{"id": 1, "a": NaN}', "not valid JSON"),
    ('{"id": 1, "a": Infinity}', "not valid JSON"),
    ('{"id": 1, "a": 1e400}', "not valid JSON: Number out of range"),
    ('{"id": 1, "a": ' + "9" * 5000 + "}", "not valid JSON"),
    (r'{"id": 1, "a": "\ud800"}', r"the escape \ud800 is a lone surrogate"),
    (r'{"id": 1, "a": "x\udfffy"}', r"the escape \udfff is a lone surrogate"),
    (r'{"id": 1, "a": "\ud83cx"}', r"the escape \ud83c is a lone surrogate"),
    ('{"id": "\ud800"}', "not valid JSON"),
    (b'{"id": 1, "a": "\xff"}', "not valid JSON"),
    (b"\xff\xfe{\x00}\x00", "not valid JSON"),
    ("null", "expected a JSON object, found NoneType"),
    ("[1]", "expected a JSON object, found list"),
    ('{"id":' + "[" * 100_000, "not usable JSON: it nests too deep"),
    ('{"a":' * 100_000, "not usable JSON: it nests too deep"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=range(len(BAD)))
def test_bad_json_is_refused_in_one_line(text: str | bytes, message: str) -> None:
    with pytest.raises(EventError) as caught:
        Event.from_json(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("depth", [33, 100, 500, 900, 960, 980, 990, 1000, 5000])
def test_deep_json_is_an_event_error(depth: int) -> None:
    with pytest.raises(EventError, match="nest"):
        _ = Event.from_json('{"id": 1, "a": ' + "[" * depth + "]" * depth + "}").attributes
    with pytest.raises(EventError, match="nest"):
        _ = Event.from_json('{"id": 1, "a": ' + '{"a": ' * depth + "1" + "}" * depth + "}").attributes


def test_a_number_beyond_64_bits_is_refused_where_it_is_used() -> None:
    with pytest.raises(EventError, match="attribute a: 18446744073709551616 does not fit into 64 bits"):
        _ = Event.from_json('{"id": 1, "a": 18446744073709551616}').attributes


@given(st.text() | st.binary())
def test_anything_is_an_object_or_an_event_error(text: str | bytes) -> None:
    with contextlib.suppress(EventError):
        assert isinstance(read_object(text), dict)
