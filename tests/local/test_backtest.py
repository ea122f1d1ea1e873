"""A filter tried in this process: Spark SQL says the same, or it is left to Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.errors import TableError
from headgate.local.rows import columns_of
from headgate.tables.places import UnsureError
from tests.spark.files import FORMS, Row, get_table, names, put, put_lines, put_table
from tests.spark.jobs import backtest

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

EVENTS: list[Row] = [
    {"id": 1, "age": 35, "price": 1.5, "topic": "news", "member": True, "born": "1990-02-03", "n": "7"},
    {"id": 2, "age": 20, "price": 2, "topic": "art", "member": False, "born": "1999-12-31", "n": " 8.0"},
    {"id": 3, "tags": ["a", None], "user": {"Age": 5, "name": None}, "n": None, "nothing": None},
    {"id": 4, "age": -1, "price": 1e10, "topic": 'a,"b"', "tags": [], "user": {"Age": 50}, "born": None},
]
CLEAR = (
    "age > 30 OR topic IS NULL",
    "NOT (price < 2 AND member)",
    "Topic LIKE '%a%'",
    "price IN (1.5, 2)",
    "age BETWEEN -1 AND 20 AND NOT member",
    "born > DATE '1995-01-01'",
    "born < TIMESTAMP '1995-01-01 00:00:00'",
    "n > 7.5",
    "n IN (7.0, 9.5)",
    "array_contains(tags, 'a')",
    "arrays_overlap(tags, array('b', 'a'))",
    "USER.age >= 5",
    "user.name IS NULL",
    "nothing = 'x' OR nothing IS NULL",
    "nothing > 3",
    "TRUE",
    "age <=> NULL",
)
UNCLEAR = ("topic > 5", "age = 'x'", "n = 7", "member = 1", "age LIKE '3%'", "topic", "n IN (7, 7.5)")
"""What Spark casts, with an error for a value that it cannot cast."""


@pytest.mark.spark
def test_clear_filters_are_what_spark_sql_says(spark: SparkSession, tmp_path: Path) -> None:
    """The types of columns are the same, and so are the events that match each filter."""
    table = put_lines(tmp_path / "events.jsonl", EVENTS)
    frame = spark.read.json(table)
    columns = columns_of(EVENTS, table)
    wanted = frame.toArrow()
    assert columns.schema.names == wanted.schema.names
    assert [str(each) for each in columns.schema.types] == [str(each) for each in wanted.schema.types]
    assert columns.to_pylist() == wanted.to_pylist()
    told = frame.selectExpr("id", *(f"({text}) AS c{place}" for place, text in enumerate(CLEAR))).collect()
    for place, text in enumerate(CLEAR):
        holds = [str(row["id"]) for row in told if row[f"c{place}"]]
        done = backtest(None, text, table, output=str(tmp_path / "out.parquet"), quiet=True)
        assert (done.events, done.matches, done.rejected, list(done.sample)) == (4, len(holds), 0, holds)
        rows = [row for row in wanted.to_pylist() if str(row["id"]) in holds]
        assert get_table(tmp_path / "out.parquet") == rows


def test_what_is_computed_is_left_to_spark(tmp_path: Path) -> None:
    """Spark types an expression by its columns, and raises where a value cannot be computed."""
    table = put_lines(tmp_path / "events.jsonl", EVENTS)
    with pytest.raises(UnsureError, match=r"age \* 2 is computed, and Spark has the types of columns for it"):
        backtest(None, "age * 2 > 5", table, quiet=True)
    with pytest.raises(TableError, match="has the attribute aeg; did you mean age"):
        backtest(None, "aeg * 2 > 5", table, quiet=True)


@pytest.mark.parametrize("text", UNCLEAR)
def test_what_spark_casts_is_left_to_it(tmp_path: Path, text: str) -> None:
    """A filter that compares values of another kind is not tried here."""
    table = put_lines(tmp_path / "events.jsonl", EVENTS)
    with pytest.raises(UnsureError, match="Spark casts what it is compared with"):
        backtest(None, text, table, output=str(tmp_path / "out.jsonl"), quiet=True)
    assert names(tmp_path) == ["events.jsonl"]


MIXED: dict[str, list[Row]] = {
    "a has values of several types": [{"id": 1, "a": 1}, {"id": 2, "a": "x"}],
    "a has values": [{"id": 1, "a": [1, "x"]}],
    "a.b is an empty object": [{"id": 1, "a": {"b": {}}}],
    "two columns have one name": [{"id": 1, "a": 1}, {"id": 2, "A": 1}],
}


@pytest.mark.parametrize("reason", MIXED)
def test_columns_of_no_clear_type_are_left_to_spark(tmp_path: Path, reason: str) -> None:
    """Spark would make text of such a column, or drop it."""
    table = put_lines(tmp_path / "events.jsonl", MIXED[reason])
    with pytest.raises(UnsureError, match=reason):
        backtest(None, "a = 1", table, quiet=True)


BROKEN = {
    "e.jsonl": (
        '{"id": 1, "a": 1}\n{bad\n\n[1]\n{"a": 1}\n{"id": 2, "a": 1, "A": 2}\n{"id": 5, "a": 1}\n',
        (2, 2, 4, ("1", "5")),
    ),
    "e.csv": ("id,a,b\n1,1,x\n2,1\n3,1,x,y\n,1,x\n4,1,y\n", (2, 2, 3, ("1", "4"))),
    "bad.jsonl": ("{bad\nworse\n", (0, 0, 2, ())),
    "empty.jsonl": ("", (0, 0, 0, ())),
    "empty.csv": ("", (0, 0, 0, ())),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_lines_are_counted_and_no_more(tmp_path: Path, name: str) -> None:
    """As the job on Spark counts them; without events there is a table without rows."""
    text, counts = BROKEN[name]
    table = put(tmp_path / name, text)
    for asked in ("a = 1", "TRUE"):
        done = backtest(None, asked, table, output=str(tmp_path / "out.parquet"), quiet=True)
        assert (done.events, done.matches, done.rejected, done.sample) == counts
        assert len(get_table(tmp_path / "out.parquet")) == counts[1]


@pytest.mark.parametrize("form", FORMS)
def test_an_unknown_attribute_is_told_with_the_nearest(tmp_path: Path, form: str) -> None:
    """The message is that of the job on Spark."""
    table = put_table(tmp_path / f"events.{form}", [{"id": "e1", "age": 35, "topic": "news"}])
    with pytest.raises(TableError) as caught:
        backtest(None, "age > 30 AND tpoic = 'news'", table, quiet=True)
    assert str(caught.value) == f"no event of {table} has the attribute tpoic; did you mean topic?"


def test_nested_columns_are_no_csv(tmp_path: Path) -> None:
    """Spark says so in its own words."""
    pq.write_table(pa.table({"id": [1], "user": [{"age": 5}]}), tmp_path / "events.parquet")
    with pytest.raises(UnsureError, match=r"out.csv: column user is struct"):
        backtest(None, "user.age = 5", str(tmp_path / "events.parquet"), output=str(tmp_path / "out.csv"))
    assert names(tmp_path) == ["events.parquet"]


def test_documents_are_written_as_they_came(tmp_path: Path) -> None:
    """With the columns that the job on Spark writes."""
    rows: list[dict[str, Any]] = [
        {"id": 1, "data": "<a>1</a>", "datacontenttype": "xml", "source": "s"},
        {"id": "x", "data": "<b/>", "datacontenttype": "xml"},
        {"id": 3, "data": "<a", "datacontenttype": "xml"},
    ]
    table = put_lines(tmp_path / "events.jsonl", rows)
    done = backtest(None, "//a", table, dialect="xpath", output=str(tmp_path / "out.jsonl"), quiet=True)
    assert (done.events, done.matches, done.rejected, done.sample) == (2, 1, 1, ("1",))
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert found == [{"id": "1", "source": "s", "datacontenttype": "application/xml", "data": "<a>1</a>"}]
