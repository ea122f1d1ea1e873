"""The backtest job: Spark's own answer, the same as that of match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import Event, Subscription
from headgate.errors import FilterError, TableError
from headgate.records.index.index import RecordIndex
from headgate.workloads.records import advertising
from tests.lanes import some
from tests.spark.files import FORMS, Row, get_table, names, put, put_lines, put_table
from tests.spark.jobs import backtest, on_both, on_spark

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

EVENTS: list[Row] = [
    {"id": "e1", "age": 35, "price": 1.5, "topic": "news", "member": True},
    {"id": "e2", "age": 20, "price": 2.5, "topic": "art", "member": False},
    {"id": "e3", "age": None, "price": None, "topic": None, "member": None},
    {"id": "e4", "age": 40, "price": -1.25, "topic": 'a,"b"', "member": True},
]


TEXTS = ("age > 30 OR topic IS NULL", "NOT (price < 2 AND member)", "Topic LIKE '%a%'")


@on_spark
@pytest.mark.parametrize(("form", "text"), some([(form, text) for form in FORMS for text in TEXTS], 4))
def test_it_answers_as_match_does_and_writes_the_events(
    session: SparkSession | None, tmp_path: Path, form: str, text: str
) -> None:
    table = put_table(tmp_path / f"events.{form}", EVENTS)
    index = RecordIndex.build([Subscription(1, text)])
    matching = [row["id"] for row in EVENTS if index.match(Event.from_row(row))]
    output = tmp_path / f"matching.{form}"
    done = backtest(session, text, table, output=str(output), quiet=True)
    assert (done.events, done.matches, done.rejected) == (4, len(matching), 0)
    assert sorted(done.sample) == matching
    assert [row["id"] for row in get_table(output)] == matching
    assert names(tmp_path) == [f"events.{form}", f"matching.{form}"]


@on_both()
def test_the_advertising_workload_agrees_with_the_index(session: SparkSession | None, tmp_path: Path) -> None:
    made = advertising.subscriptions(np.arange(3), 5).to_pylist()
    events = advertising.events(np.arange(2000), 5)
    pq.write_table(pa.Table.from_batches([events]), tmp_path / "events.parquet")
    index = RecordIndex.build(Subscription(row["id"], row["filter"]) for row in made)
    found = index.match_batch(events)["subscription_id"].to_pylist()
    for row in made:
        done = backtest(session, row["filter"], str(tmp_path / "events.parquet"), quiet=True)
        assert (done.events, done.matches) == (2000, found.count(row["id"]))


@pytest.mark.parametrize("text", ["a = 1", "TRUE"])
def test_broken_lines_are_counted_and_no_more(
    session: SparkSession | None, tmp_path: Path, text: str
) -> None:
    lines = ['{"id": 1, "a": 1}', "{bad", "", "[1]", '{"a": 1}', '{"id": 2, "a": 1, "A": 2}']
    lines += ['{"id": 3, "a": 18446744073709551616}', '{"id": 4, "a": NaN}', '{"id": 5, "a": 1}']
    done = backtest(session, text, put(tmp_path / "e.jsonl", "\n".join(lines)), quiet=True)
    assert (done.events, done.matches, done.rejected, done.sample) == (2, 2, 6, ("1", "5"))


@pytest.mark.parametrize("text", ["a = 1", "TRUE"])
def test_broken_lines_of_csv_are_counted_and_no_more(
    session: SparkSession | None, tmp_path: Path, text: str
) -> None:
    table = put(tmp_path / "e.csv", "id,a,b\n1,1,x\n2,1\n3,1,x,y\n,1,x\n4,1,y\n")
    done = backtest(session, text, table, quiet=True)
    assert (done.events, done.matches, done.rejected, done.sample) == (2, 2, 3, ("1", "4"))


EMPTY = [("bad.jsonl", "{bad\nworse\n", 2), ("empty.jsonl", "", 0), ("empty.csv", "", 0)]


@pytest.mark.parametrize(
    ("name", "content", "rejected", "text"),
    [(*case, text) for case in EMPTY for text in ("a = 1", "TRUE")],
)
def test_no_events_at_all(
    session: SparkSession | None, tmp_path: Path, name: str, content: str, rejected: int, text: str
) -> None:
    table = put(tmp_path / name, content)
    done = backtest(session, text, table, output=str(tmp_path / "out.parquet"), quiet=True)
    assert (done.events, done.matches, done.rejected, done.sample) == (0, 0, rejected, ())
    assert get_table(tmp_path / "out.parquet") == []


@pytest.mark.parametrize("form", FORMS)
def test_an_unknown_attribute_is_told_with_the_nearest(
    session: SparkSession | None, tmp_path: Path, form: str
) -> None:
    table = put_table(tmp_path / f"events.{form}", EVENTS)
    with pytest.raises(TableError) as caught:
        backtest(session, "age > 30 AND tpoic = 'news'", table, quiet=True)
    assert str(caught.value) == f"no event of {table} has the attribute tpoic; did you mean topic?"


MEANING: list[tuple[str, str, dict[str, str], list[str], int]] = [
    ("A = 1", "sql", {"names": "exact"}, ["1"], 0),
    ("a = 2 AND A < 5", "sql", {"names": "exact"}, ["1"], 0),
    ("present(a) AND a IS NULL", "sql", {"nulls": "told"}, ["2"], 1),
    ("NOT present(a)", "sql", {"nulls": "told", "names": "exact"}, ["3", "4"], 0),
    ("u.x = 1", "sql", {"dots": "either", "names": "exact"}, ["3", "4"], 0),
    ("u.x * 2 = 2", "sql", {"dots": "name", "names": "exact"}, ["4"], 0),
    ('{"a": [{"exists": true}]}', "eventbridge", {"nulls": "told", "names": "exact"}, ["1", "2"], 0),
]
"""Filters, their dialects, what names mean, who matches, and how many lines are no events."""


@pytest.mark.parametrize(("text", "dialect", "meaning", "matching", "rejected"), MEANING)
def test_what_names_mean(
    session: SparkSession | None,
    tmp_path: Path,
    text: str,
    dialect: str,
    meaning: dict[str, Any],
    matching: list[str],
    rejected: int,
) -> None:
    """Where names mean something else than in Spark, an index says who matches, as that of `match` does."""
    rows: list[Row] = [{"id": 1, "A": 1, "a": 2}, {"id": 2, "a": None}, {"id": 3, "u": {"x": 1}}]
    table = put_lines(tmp_path / "events.jsonl", [*rows, {"id": 4, "u.x": 1}])
    done = backtest(session, text, table, dialect=dialect, quiet=True, **meaning)
    assert (done.events, done.matches, done.rejected) == (4 - rejected, len(matching), rejected)
    assert sorted(done.sample) == matching


@pytest.mark.parametrize("form", FORMS)
def test_what_names_mean_in_columns(session: SparkSession | None, tmp_path: Path, form: str) -> None:
    table = put_table(tmp_path / f"events.{form}", EVENTS)
    output = tmp_path / f"matching.{form}"
    done = backtest(session, "age > 30", table, output=str(output), names="exact", quiet=True)
    assert (done.events, done.matches, sorted(done.sample)) == (4, 2, ["e1", "e4"])
    assert [row["id"] for row in get_table(output)] == ["e1", "e4"]
    with pytest.raises(TableError) as caught:
        backtest(session, "Age > 30", table, names="exact", quiet=True)
    assert str(caught.value) == f"no event of {table} has the attribute Age; did you mean age?"
    none = backtest(
        session, "age > 99", table, output=str(tmp_path / "none.jsonl"), names="exact", quiet=True
    )
    assert (none.matches, get_table(tmp_path / "none.jsonl")) == (0, [])


@on_spark
def test_computed_attributes(session: SparkSession | None, tmp_path: Path) -> None:
    """Expressions are Spark's; an attribute in one that no event has is told."""
    table = put_lines(tmp_path / "events.jsonl", EVENTS)
    done = backtest(session, "age * 2 > 50 AND upper(topic) = 'NEWS'", table, quiet=True)
    assert (done.matches, done.sample) == (1, ("e1",))
    assert backtest(session, "hour(:event_time) > 3", table, quiet=True).matches == 0
    with pytest.raises(TableError, match="has the attribute aeg; did you mean age"):
        backtest(session, "aeg * 2 > 50", table, quiet=True)


@on_spark
def test_nested_attributes_and_odd_columns(session: SparkSession | None, tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "id": [1, 2],
        "user": [{"age": 5}, {"age": 50}],
        "at": pa.array([0, 1], pa.timestamp("us", "UTC")),
        "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    }
    pq.write_table(pa.table(columns), tmp_path / "events.parquet")
    table = str(tmp_path / "events.parquet")
    assert backtest(session, "User.AGE > 30", table, quiet=True).sample == ("2",)
    with pytest.raises(TableError, match=r"has the attribute user.aeg; did you mean user.age\?"):
        backtest(session, "user.aeg > 30", table, quiet=True)
    with pytest.raises(TableError, match=r"The CSV datasource doesn't support the column `\w+`"):
        backtest(session, "user.age > 30", table, output=str(tmp_path / "out.csv"), quiet=True)
    assert names(tmp_path) == ["events.parquet"]


@on_spark
def test_a_value_that_cannot_be_cast_is_one_line(session: SparkSession | None, tmp_path: Path) -> None:
    table = put_lines(tmp_path / "events.jsonl", [{"id": 1, "a": "x"}, {"id": 2, "a": "7"}])
    with pytest.raises(TableError) as caught:
        backtest(session, "a > 5", table, output=str(tmp_path / "out.jsonl"), quiet=True)
    assert str(caught.value).startswith("Spark: [CAST_INVALID_INPUT] The value 'x'")
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == ["events.jsonl"]


def test_what_the_language_lacks_is_refused_with_the_place(
    session: SparkSession | None, tmp_path: Path
) -> None:
    table = put_lines(tmp_path / "events.jsonl", EVENTS)
    with pytest.raises(FilterError) as caught:
        backtest(session, "age > rand()", table, quiet=True)
    assert caught.value.position is not None
    with pytest.raises(TableError, match="is named twice"):
        backtest(session, "age > 1", table, output=table, quiet=True)
