"""Events from rows and JSON, and what is refused."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.core.event import read_object
from headgate.errors import EventError, SubscriptionError

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
        EventError, match=r"'text/html' is not supported: send one of application/json, text/tu"
    ):
        Event("e1", {}, content_type="text/html")


@pytest.mark.parametrize(("data", "found"), [([1], "list"), (None, "nothing"), ("a", "str"), (7, "int")])
def test_data_that_is_no_record(data: object, found: str) -> None:
    event = Event("e1", data)
    with pytest.raises(
        EventError, match=f"^event 'e1' is application/json: its data is a mapping .*{found}$"
    ):
        _ = event.attributes


def test_a_filter_that_is_no_text() -> None:
    with pytest.raises(SubscriptionError, match=r"^subscription 1: its filter is None: give text$"):
        Subscription(1, None)  # type: ignore[arg-type]


def test_an_event_that_is_rdf() -> None:
    event = Event("e1", "<urn:a> <urn:b> <urn:c> .", content_type="Text/Turtle; charset=UTF-8")
    assert event.content_type == "text/turtle"
    assert event == Event("e1", "<urn:a> <urn:b> <urn:c> .", content_type="turtle")
    assert hash(event) == hash(Event("e1", "<urn:a> <urn:b> <urn:c> .", content_type="turtle"))
    with pytest.raises(
        EventError, match=r"event 'e1' is text/turtle and these filters look at records: send app"
    ):
        _ = event.attributes
    for data, found in (({}, "dict"), (None, "nothing"), (1, "int")):
        with pytest.raises(
            EventError, match=f"event 'e1' is text/turtle: its data is text or bytes, not {found}"
        ):
            Event("e1", data, content_type="turtle")


def test_what_is_made_of_an_event_is_made_once() -> None:
    event = Event("e1", {"a": 1})
    made = event.once("size", lambda event: [len(event.data)])
    assert made == [1]
    assert event.once("size", lambda _: [2]) is made
    assert event.once("other", lambda _: [2]) == [2]
    assert event == Event("e1", {"a": 1})
    assert replace(event, id="e2").once("size", lambda _: [3]) == [3]


TEXT = "<urn:a> <urn:b> <urn:c> ."
ROWS: list[tuple[dict[str, object], Event]] = [
    ({"datacontenttype": "turtle", "data": TEXT}, Event(1, TEXT, content_type="text/turtle")),
    ({"dataContentType": "application/n-triples", "Data": TEXT}, Event(1, TEXT, content_type="nt")),
    (
        {"datacontenttype": "nt", "data": b"", "source": "pub", "time": "2005-05-10T09:30:00Z"},
        Event(1, b"", dt.datetime(2005, 5, 10, 9, 30, tzinfo=dt.UTC), "pub", "nt"),
    ),
    (
        {"datacontenttype": "rss", "data": "", "time": dt.datetime(2005, 5, 10)},
        Event(1, "", dt.datetime(2005, 5, 10, tzinfo=dt.UTC), content_type="rss"),
    ),
]


@pytest.mark.parametrize(("row", "wanted"), ROWS, ids=range(len(ROWS)))
def test_rows_that_are_rdf(row: dict[str, object], wanted: Event) -> None:
    assert Event.from_row({"id": 1, **row}) == wanted


@pytest.mark.parametrize(
    "row",
    [
        {"data": TEXT},
        {"data": TEXT, "datacontenttype": None},
        {"data": TEXT, "datacontenttype": 7},
        {"data": TEXT, "datacontenttype": "application/json"},
        {"data": TEXT, "datacontenttype": "turtle; charset=latin-1"},
        {"data": {"a": 1}, "datacontenttype": "jsonld"},
        {"datacontenttype": "turtle"},
    ],
)
def test_rows_that_are_records_all_the_same(row: dict[str, object]) -> None:
    event = Event.from_row({"id": 1, **row})
    assert event.content_type == "application/json"
    assert event.data == {"id": 1, **row}


def test_a_time_that_is_none() -> None:
    with pytest.raises(EventError, match=r"event 1 has the time 'soon': give one like 2005-05-10T09:30:00Z"):
        Event.from_row({"id": 1, "datacontenttype": "nt", "data": "", "time": "soon"})


def test_rdf_as_json() -> None:
    event = Event.from_json(json.dumps({"id": "e", "datacontenttype": "turtle", "data": TEXT, "x": 1}))
    assert event == Event("e", TEXT, content_type="turtle")


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
    ("\ufeff{}", "not valid JSON: a byte order mark stands at the very start only, and once"),
    ("\ufeff{}".encode(), "not valid JSON: a byte order mark stands at the very start only, and once"),
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
