"""Bytes that are not UTF-8, and folders without files: every job says what it does with them."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.errors import TableError
from headgate.pipeline.dry_run.samples import first_rows
from headgate.runtime.rows import NOT_UTF8
from headgate.tables.places import format_of
from headgate.tables.results import Tables
from headgate.tables.utf8 import bad_rows, is_text, shown
from tests.spark.files import get_table, put, put_lines
from tests.spark.jobs import backtest, compile_graph, compile_subscriptions, match_events, on_spark

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CAFE, BAD = "café".encode(), b"caf\xe9"
FORMS = ("jsonl", "csv", "parquet", "csv.gz", "json.gz")


def texts(values: list[bytes]) -> pa.Array[Any]:
    """Make a column of texts of any bytes, as careless writers of Parquet do."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


def write(path: Path, columns: dict[str, list[bytes] | list[int]]) -> str:
    """Write a table; numbers are such where the format has any."""
    rows = [
        [value if isinstance(value, bytes) else str(value).encode() for value in row]
        for row in zip(*columns.values(), strict=True)
    ]
    if path.suffix == ".parquet":
        given = {
            name: texts(values) if isinstance(values[0], bytes) else pa.array(values)
            for name, values in columns.items()
        }
        pq.write_table(pa.table(given), path)
        return str(path)
    if ".csv" in path.suffixes:
        lines = [b",".join(name.encode() for name in columns), *(b",".join(row) for row in rows)]
    else:
        quoted = [isinstance(values[0], bytes) for values in columns.values()]
        lines = [
            b"{%s}"
            % b",".join(
                b'"%s":%s' % (name.encode(), b'"%s"' % value if text else value)
                for name, value, text in zip(columns, row, quoted, strict=True)
            )
            for row in rows
        ]
    data = b"\n".join(lines) + b"\n"
    return put(path, gzip.compress(data) if path.suffix == ".gz" else data)


def check(session: SparkSession | None, folder: Path, form: str) -> None:
    """Compile, match and backtest tables with such rows: these are refused, and the others count."""
    folder.mkdir()
    snapshot, rejected, out = str(folder / "snapshot"), folder / "refused.jsonl", folder / "out.jsonl"

    def refused(count: int) -> None:
        rows = get_table(rejected)
        assert len(rows) == count
        for row in rows:
            assert "\ufffd" in row["row"]
            reason = "not valid JSON: 'utf-8' codec can't decode" if form.startswith("json") else NOT_UTF8
            assert row["reason"].startswith(reason)

    filters = [b"topic = '%s'" % CAFE, b"topic = '%s'" % BAD, b"price > 1"]
    subscriptions = write(folder / f"s.{form}", {"id": [b"s1", b"s2", b"s3"], "filter": filters})
    compiled = compile_subscriptions(
        session, subscriptions, snapshot, rejected=str(rejected), ranked=False, quiet=True
    )
    assert (compiled.subscriptions, compiled.rejected) == (2, 1)
    refused(1)
    # The refused rows do not make the prices of the others text.
    columns: dict[str, list[bytes] | list[int]] = {
        "id": [b"e1", b"e2", b"e\xff", b"e4"],
        "topic": [CAFE, BAD, b"x", CAFE],
        "price": [10, 20, 30, 9],
    }
    events = write(folder / f"e.{form}", columns)
    done = match_events(session, snapshot, events, str(out), rejected=str(rejected), quiet=True)
    assert (done.events, done.rejected) == (2, 2)
    refused(2)
    pairs = sorted((row["event_id"], row["subscription_id"]) for row in get_table(out))
    assert pairs == [("e1", "s1"), ("e1", "s3"), ("e4", "s1"), ("e4", "s3")]
    tried = backtest(session, "price > 9", events, output=str(out), quiet=True)
    assert (tried.events, tried.rejected, tried.sample) == (2, 2, ("e1",))
    nodes = write(folder / f"n.{form}", {"id": [b"pub", b"caf\xe9"]})
    edges = write(folder / f"g.{form}", {"source": [b"pub", b"pub"], "target": [b"pub", b"caf\xe9"]})
    graph = compile_graph(session, Tables(nodes, edges), snapshot, rejected=str(rejected), quiet=True)
    assert (graph.nodes, graph.edges, graph.rejected) == (1, 1, 2)
    refused(2)
    sources = write(folder / f"f.{form}", {"id": [b"e1", b"e2"], "source": [b"pub", b"\xff"]})
    done = match_events(session, snapshot, sources, str(out), rejected=str(rejected), quiet=True)
    assert (done.events, done.rejected) == (1, 1)
    refused(1)


@pytest.mark.parametrize("form", FORMS)
def test_rows_that_are_not_utf8_are_refused(tmp_path: Path, form: str) -> None:
    check(None, tmp_path / "t", form)


@on_spark
@pytest.mark.nightly
def test_rows_that_are_not_utf8_are_refused_on_spark(session: SparkSession, tmp_path: Path) -> None:
    for form in FORMS[:4]:
        check(session, tmp_path / form, form)


def test_numbers_that_are_not_utf8_leave_the_types_of_others(tmp_path: Path) -> None:
    """Nor does a row that is refused in a dry run look like one that is not."""
    path = put(tmp_path / "e.csv", b"id,price,topic\n1,5,a\n2,6\xff,b\n3,7,c\xff\n")
    tried = backtest(None, "price > 5", path, quiet=True)
    assert (tried.events, tried.rejected, tried.matches) == (1, 2, 0)
    assert [isinstance(row, str) for row in first_rows(path).rows] == [False, True, True]
    for name in ("parquet", "csv"):
        place = write(tmp_path / f"f.{name}", {"id": [b"a", b"b\xff"]})
        assert first_rows(place).rows == [{"id": "a"}, NOT_UTF8]


def test_a_header_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "e.csv", b"id,caf\xe9\n1,2\n")
    with pytest.raises(TableError, match=r"e\.csv: the header has bytes that are not UTF-8: write the table"):
        backtest(None, "price > 5", path, quiet=True)


def test_texts_inside_values() -> None:
    words = texts([b"ok", b"caf\xe9", CAFE])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), words)
    structs = pa.StructArray.from_arrays([words, pa.array([1, 2, 3])], names=["a", "b"])
    starts: Any = pa.array([0, 1, 2, 3], pa.int32())
    maps = pa.MapArray.from_arrays(starts, words, pa.array([1, 2, 3]))
    for column in (words, lists, structs, maps):
        assert not is_text(column)
        assert bad_rows([column]) is not None
        assert list(bad_rows([column])) == [False, True, False]  # type: ignore[arg-type]
        assert is_text(column.take(pa.array([0, 2])))
    assert bad_rows([pa.array([1, 2]), pa.array(["é", None])]) is None
    table = pa.table({"w": words, "l": lists, "s": structs, "m": maps})
    assert shown(table)[1] == {"w": "caf�", "l": ["caf�"], "s": {"a": "caf�", "b": 2}, "m": [("caf�", 2)]}


def empty(session: SparkSession | None, folder: Path) -> None:
    """Run the jobs over folders without files: whose names have endings are empty tables."""
    put_lines(folder / "s.jsonl", [{"id": 1, "filter": "a > 1"}])
    snapshot, rejected = str(folder / "snapshot"), str(folder / "refused.jsonl")
    for form in ("jsonl", "csv", "parquet"):
        place = folder / f"empty.{form}"
        place.mkdir()
        compiled = compile_subscriptions(session, str(place), snapshot, rejected=rejected, quiet=True)
        assert (compiled.subscriptions, compiled.rejected) == (0, 0)
        compile_subscriptions(session, str(folder / "s.jsonl"), snapshot, rejected=rejected, quiet=True)
        out = folder / "out.parquet"
        done = match_events(session, snapshot, str(place), str(out), rejected=rejected, quiet=True)
        assert (done.events, done.matches, done.unknown_attributes) == (0, 0, ())
        assert pq.read_table(out).column_names == ["event_id", "subscription_id"]
        assert backtest(session, "a > 1", str(place), quiet=True).events == 0


def test_a_folder_without_files_is_an_empty_table(tmp_path: Path) -> None:
    empty(None, tmp_path)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(TableError) as told:
        format_of(str(tmp_path / "nothing"))
    assert str(told.value).removeprefix(str(tmp_path)) == (
        "/nothing has no files, so its format is not clear: put some there, or let its name end in one of "
        ".jsonl, .ndjson, .json, .csv, .parquet"
    )


@on_spark
@pytest.mark.nightly
def test_a_folder_without_files_is_an_empty_table_on_spark(session: SparkSession, tmp_path: Path) -> None:
    empty(session, tmp_path)
