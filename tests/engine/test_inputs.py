"""What an engine may be given: mappings, tables, frames, scalars of other libraries."""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from enum import IntEnum
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate import Edge, Engine, Event, Node, Subscription
from headgate.errors import EventError, GraphError, SubscriptionError

pd: Any = import_module("pandas")
"""It has no types of its own."""
pl: Any = import_module("polars")
SUBSCRIPTIONS = [{"id": "s1", "filter": "age > 30"}, {"id": "s2", "filter": "age > 20 AND topic = 'news'"}]
ROWS: list[dict[str, Any]] = [
    {"id": "e1", "age": 35, "topic": "news"},
    {"id": "e2", "age": 25, "topic": "news"},
    {"id": "e3", "age": 35, "topic": None},
    {"id": "e4", "age": 5, "topic": "news"},
]
PAIRS = [("e1", "s1"), ("e1", "s2"), ("e2", "s2"), ("e3", "s1")]
RELAXED = [(1, "s2", 4.0), (2, "s2", 4.0), (3, "s1", 1.0), (4, "s2", 3.0)]


class Stream:
    """A table of which nothing is known but Arrow's interface."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class Columns:
    """A batch of which nothing is known but Arrow's interface."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self._batch.__arrow_c_array__(requested_schema)


class Color(IntEnum):
    RED = 7


VIEWS: Any = [("id", pa.string_view()), ("age", pa.int32()), ("topic", pa.large_string())]
VIEWS = pa.schema(VIEWS)
TABLE = pa.Table.from_pylist(ROWS)
FORMS: dict[str, Any] = {
    "table": TABLE,
    "chunks": pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1, 2), TABLE.slice(3)]),
    "batch": pa.RecordBatch.from_pylist(ROWS),
    "reader": lambda: pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches()),
    "stream": Stream(TABLE),
    "array": Columns(pa.RecordBatch.from_pylist(ROWS)),
    "pandas": pd.DataFrame(ROWS),
    "polars": pl.DataFrame(ROWS),
    "dicts": ROWS,
    "events": [Event.from_row(row) for row in ROWS],
    "json": [json.dumps(row) for row in ROWS],
    "bytes": [json.dumps(row).encode() for row in ROWS],
    "generator": lambda: (row for row in ROWS),
    "views": TABLE.cast(VIEWS),
}


def given(form: str) -> Any:
    found = FORMS[form]
    return found() if callable(found) else found


def engine(kind: str) -> Engine:
    if kind == "graph":
        return Engine.build(
            [{**row, "node": "net"} for row in SUBSCRIPTIONS],
            nodes=[{"id": "pub"}, {"id": "net", "filter": "age > 10"}],
            edges=[{"source": "pub", "target": "net"}],
            ranked=True,
        )
    return Engine.build(SUBSCRIPTIONS, ranked=kind == "ranked")


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["plain", "ranked"])
def test_tables_of_all_forms(kind: str, form: str) -> None:
    found = engine(kind)
    assert rows(found.match_batch(given(form))) == PAIRS
    assert found.match_events(given(form)) == [["s1", "s2"], ["s2"], ["s1"], []]
    best = rows(found.top_batch(given(form), 1))
    assert best == [("e1", "s1", 0.0, 1), ("e2", "s2", 0.0, 1), ("e3", "s1", 0.0, 1)]
    if kind == "ranked":
        relaxed = rows(found.top_batch(given(form), 1, "relaxed", factors={"topic": 3}))
        assert relaxed == [(f"e{at}", best, value, 1) for at, best, value in RELAXED]


@pytest.mark.parametrize("form", FORMS)
def test_tables_through_a_graph(form: str) -> None:
    found, given_rows = engine("graph"), [{**row, "source": "pub"} for row in ROWS]
    table: Any = pa.Table.from_pylist(given_rows)
    assert rows(found.match_batch(table)) == PAIRS
    assert rows(found.match_batch(table.drop_columns("id"))) == [(0, "s1"), (0, "s2"), (1, "s2"), (2, "s1")]
    assert rows(found.top_batch(given_rows, 1)) == [
        ("e1", "s1", -1.0, 1),
        ("e2", "s2", -1.0, 1),
        ("e3", "s1", -1.0, 1),
    ]
    assert rows(found.top_batch(table, 1)) == rows(found.top_batch(given_rows, 1))
    for each in (given_rows, table, table.drop_columns("id")):
        assert [row[1:] for row in rows(found.top_batch(each, 1, "relaxed"))] == [
            ("s2", 2.0, 1),
            ("s2", 2.0, 1),
            ("s1", 1.0, 1),
        ]
    assert found.match_events(given_rows) == [["s1", "s2"], ["s2"], ["s1"], []]
    with pytest.raises(EventError, match="source"):
        found.match_batch(given(form))


def test_a_source_that_is_no_node_is_told_with_the_event() -> None:
    found = engine("graph")
    table = pa.table({"age": [35, 36], "source": ["pub", "nowhere"]})
    with pytest.raises(EventError, match="event 1: source 'nowhere' is not a node of the graph"):
        found.match_batch(table)
    with pytest.raises(EventError, match="event 0 has no source"):
        found.match({"age": 35})
    with pytest.raises(EventError, match="'nowhere' of event 1 is not a node"):
        found.match_events([{"age": 35, "source": "pub"}, {"age": 35, "source": "nowhere"}])


def test_rows_without_ids() -> None:
    found = engine("plain")
    assert rows(found.match_batch(pa.table({"age": [1, 35]}))) == [(1, "s1")]
    assert rows(found.match_batch([{"age": 35}, {"id": "x", "age": 36}])) == [("0", "s1"), ("x", "s1")]
    # What was not sent is not seen.
    ids = Engine.build([{"id": "s", "filter": "id IS NULL"}])
    assert ids.match({"age": 1}) == ["s"]
    assert rows(ids.match_batch([{"age": 1}])) == [(0, "s")]
    assert rows(ids.match_batch(pa.table({"age": [1]}))) == [(0, "s")]


def test_tables_without_rows_or_matches_have_their_types() -> None:
    for ids, kind in (("s", pa.string()), (7, pa.int64())):
        found = Engine.build([{"id": ids, "filter": "age > 30"}])
        for events in ([], [{"age": 1}], pa.table({"age": pa.array([], pa.int64())})):
            table: Any = found.match_batch(events)
            assert (table.num_rows, table.schema.types) == (0, [pa.int64(), kind])
            assert found.top_batch(events, 3).schema.types == [pa.int64(), kind, pa.float64(), pa.int32()]
    assert Engine.build().match_batch([{"age": 1}]).num_rows == 0
    assert Engine.build(SUBSCRIPTIONS).top_batch(ROWS, 0).num_rows == 0


VALUES: list[tuple[Any, str]] = [
    (np.int64(35), "a = 35"),
    (np.int8(35), "a = 35"),
    (np.uint8(35), "a = 35"),
    (np.float32(0.5), "a = 0.5"),
    (np.float64(0.5), "a = 0.5"),
    (np.bool_(True), "a = TRUE"),
    (np.str_("x"), "a = 'x'"),
    (np.datetime64("2020-01-02T03:04:05"), "a = TIMESTAMP '2020-01-02 03:04:05Z'"),
    (np.datetime64("2020-01-02T03:04:05.000000001"), "a = TIMESTAMP '2020-01-02 03:04:05Z'"),
    (np.datetime64("NaT"), "a IS NULL"),
    (np.array([1, 2]), "array_contains(a, 2)"),
    (pd.Timestamp("2020-01-02T03:04:05Z"), "a = TIMESTAMP '2020-01-02 03:04:05Z'"),
    (pd.NaT, "a IS NULL"),
    (pd.NA, "a IS NULL"),
    (dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=dt.UTC), "a = TIMESTAMP '2020-01-02 03:04:05Z'"),
    (Decimal(35), "a = 35"),
    (Decimal("0.5"), "a = 0.5"),
    (Decimal("1E+2"), "a = 100"),
    (Decimal("0.1000000000000000055511151231257827"), "a > 0.1 AND a = 0.1e0"),
    (Decimal("NaN"), "a > 1e308"),
    (Color.RED, "a = 7"),
    ([np.int64(1), Decimal(2)], "array_contains(a, 2)"),
]


@pytest.mark.parametrize(("value", "text"), VALUES, ids=[f"{type(v).__name__}-{t}" for v, t in VALUES])
def test_values_count_as_what_they_are(value: Any, text: str) -> None:
    found = Engine.build([{"id": "s", "filter": text}])
    assert found.match({"a": value}) == ["s"]
    assert found.match(Event("e", {"a": value})) == ["s"]
    assert found.match_events([{"a": value}]) == [["s"]]
    assert found.explain({"a": value}, "s").matches
    nested = Engine.build([{"id": "s", "filter": re.sub(r"\ba\b", "b.a", text)}])
    assert nested.match({"b": {"a": value}}) == ["s"]


def test_decimals_of_tables() -> None:
    found = Engine.build([{"id": "s", "filter": "price = 2.5"}, {"id": "t", "filter": "number = 12"}])
    prices = pa.array([Decimal("2.50"), Decimal("3.00")], pa.decimal128(5, 2))
    numbers = pa.array([Decimal(11), Decimal(12)], pa.decimal128(5, 0))
    assert rows(found.match_batch(pa.table({"price": prices, "number": numbers}))) == [(0, "s"), (1, "t")]
    inside = pa.StructArray.from_arrays([prices], ["price"])
    nested = Engine.build([{"id": "s", "filter": "of.price = 2.5"}])
    assert rows(nested.match_batch(pa.table({"of": inside}))) == [(0, "s")]


def test_subscriptions_of_all_forms() -> None:
    listed: list[dict[str, Any]] = [
        {"id": "s1", "filter": "age > 30", "score": 2.0, "weights": [2.0]},
        {"id": "s2", "filter": "age > 20", "score": None, "weights": None},
    ]
    table = pa.Table.from_pylist(listed).append_column("owner", pa.array(["me", "you"]))
    forms = [
        listed,
        table,
        Stream(table),
        pd.DataFrame({"ID": ["s1", "s2"], "filter": ["age > 30", "age > 20"], "score": [2.0, None]}),
        pl.DataFrame({"ID": ["s1", "s2"], "filter": ["age > 30", "age > 20"], "score": [2.0, None]}),
    ]
    for each in [*forms, [Subscription("s1", "age > 30", score=2.0), listed[1]]]:
        found = Engine.build(each)
        assert [best.subscription for best in found.top({"age": 35}, 2)] == ["s1", "s2"]
        other = Engine.build(ranked=True)
        other.subscribe(each)
        assert other.ids == ["s1", "s2"]
    maps = pa.table(
        {
            "id": ["s1"],
            "filter": ["age > 30"],
            "weights": pa.array([[("age", 3.0)]], pa.map_(pa.string(), pa.float64())),
        }
    )
    assert Engine.build(maps).top({"age": 35}, 1, "relaxed")[0].value == 3.0


def test_what_is_no_subscription() -> None:
    for wrong, reason in (
        (7, "the subscriptions are an int: give a table, or a list of subscriptions"),
        ("s1", "the subscriptions are a str"),
        ([7], "a subscription is an int: give a Subscription, or a mapping of its fields"),
        ([{"id": "s1"}], "subscription .s1. has no 'filter': its fields are id, filter, dialect"),
        ([{"id": "s1", "filter": "TRUE", "Filter": "FALSE"}], "has two fields 'filter'"),
    ):
        with pytest.raises(SubscriptionError, match=reason):
            Engine.build(wrong)
    with pytest.raises(GraphError, match="a node is an int: give a Node"):
        Engine.build(nodes=[7])
    with pytest.raises(GraphError, match="an edge has no 'target'"):
        Engine.build(nodes=[Node("a")], edges=[{"source": "a"}])
    assert Edge("a", "b").cost == 1.0


def test_what_is_no_event() -> None:
    found = engine("plain")
    for wrong, reason in (
        (7, "an event is an Event, a mapping of attributes, or JSON, not an int"),
        ("age = 35", "or JSON, and this text is none: not valid JSON"),
        (b"[1]", "or JSON, and this text is none: expected a JSON object, found list"),
        (b"\xff{}", "or JSON, and this text is none: not valid JSON"),
        ('{"age": 18446744073709551616}', "attribute age: 18446744073709551616 does not fit into 64 bits"),
        ('{"age": 1, "AGE": 2}', "attribute age is given twice"),
        (None, "not None"),
        ({7: 1}, "the attribute name 7 is not text"),
        ({"age": object()}, "attribute age: a value of type object is not supported"),
        (Event("e", 7), "its data is a mapping of attributes, not an int"),
    ):
        with pytest.raises(EventError, match=reason):
            found.match(wrong)  # type: ignore[arg-type]
    for many, reason in (
        ({"age": 35}, "the events are a dict: give a table, or a list of events and mappings"),
        (7, "the events are an int"),
        ([7], "an event is an Event, a mapping"),
        (["{}", "{"], "this text is none: not valid JSON"),
        (b"{}", "the events are a bytes: give a table, or a list of events and mappings"),
        (pd.DataFrame({"age": [object()]}), "is not a table that Arrow can read"),
    ):
        with pytest.raises(EventError, match=reason):
            found.match_batch(many)
        with pytest.raises(EventError, match=reason):
            found.match_events(many)


def test_json_is_as_good_as_a_mapping() -> None:
    found = engine("ranked")
    for row in ROWS:
        for text in (json.dumps(row), json.dumps(row).encode(), bytearray(json.dumps(row).encode())):
            assert found.match(text) == found.match(row)  # type: ignore[arg-type]
            assert found.top(bytes(text, "utf-8") if isinstance(text, str) else bytes(text), 2) == found.top(
                row, 2
            )
        assert found.explain(json.dumps(row), "s1") == found.explain(row, "s1")
    # An id of its own, one of its row, and a document.
    assert rows(found.match_batch(['{"age": 35}', '{"ID": "x", "age": 36}'])) == [("0", "s1"), ("x", "s1")]
    shop = Engine.build([{"id": "s", "filter": "//item", "dialect": "xpath"}])
    assert shop.match('{"datacontenttype": "xml", "data": "<item/>"}') == ["s"]


def test_documents_as_mappings_and_tables() -> None:
    found = Engine.build([{"id": "s", "filter": "//item[price > 10]", "dialect": "xpath"}])
    listed = [
        {"id": "e1", "datacontenttype": "xml", "data": "<item><price>12</price></item>"},
        {"id": "e2", "datacontenttype": "xml", "data": "<item/>"},
    ]
    assert found.match(listed[0]) == ["s"]
    for each in (listed, pa.Table.from_pylist(listed), pd.DataFrame(listed)):
        assert rows(found.match_batch(each)) == [("e1", "s")]
        assert found.match_events(each) == [["s"], []]
