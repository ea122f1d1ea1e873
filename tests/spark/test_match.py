"""The match job: the same answers whatever the format and the partitioning, and no event lost."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext

from headgate import Event, Subscription
from headgate.errors import SnapshotError, TableError
from headgate.jobs.events import JudgeTask
from headgate.records.index.index import RecordIndex
from headgate.spark.tables import parts
from headgate.spark.tables.events import judge
from headgate.spark.tables.parts import CODECS, PartsTask, open_part, write_part
from headgate.tables.places import Format
from headgate.workloads.records import advertising
from tests.lanes import some
from tests.spark.files import FORMS, Row, get_lines, get_table, names, put, put_lines, put_table
from tests.spark.jobs import match_events, on_both, on_spark
from tests.spark.without_spark import match_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.tables.results import MatchResult

FILTERS = {
    "all": "TRUE",
    "age": "age > 30",
    "between": "age BETWEEN 20 AND 40 AND price < 2.5",
    "id": "id >= 5",
    "like": "topic LIKE 'n%s'",
    "member": "member",
    "no topic": "topic IS NULL",
    "none": "topic = 'nobody writes this'",
    "not": "NOT (age > 30 OR topic = 'art')",
    "quote": "topic = 'a,\"b\"'",
    "topic": "topic IN ('news', 'art')",
    "unknown": "nowhere IS NULL",
}
EVENTS: list[Row] = [
    {"id": 1, "age": 35, "price": 1.5, "topic": "news", "member": True},
    {"id": 2, "age": 20, "price": 2.5, "topic": "art", "member": False},
    {"id": 3, "age": None, "price": None, "topic": None, "member": None},
    {"id": 4, "age": 40, "price": -1.25, "topic": 'a,"b"', "member": True},
    {"id": 5, "age": 31, "price": 1e300, "topic": "two\nlines", "member": False},
    {"id": 6, "age": -7, "price": 0.0, "topic": "Zürich 😀", "member": True},
]
KINDS: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "age": pa.int32(),
    "price": pa.float64(),
    "topic": pa.string(),
    "member": pa.bool_(),
}


def build(folder: Path, filters: dict[Any, str]) -> RecordIndex:
    """Save a snapshot of filters in a folder."""
    index = RecordIndex.build(Subscription(name, text) for name, text in filters.items())
    index.save(folder / "snapshot")
    return index


class Job:
    """Match against given filters in a folder of its own."""

    def __init__(self, session: SparkSession | None, folder: Path) -> None:
        self.spark: Any = session
        self.folder = folder
        self.rejected = folder / "rejected.jsonl"

    def build(self, filters: dict[Any, str]) -> RecordIndex:
        return build(self.folder, filters)

    def __call__(self, events: str, output: str = "matches.jsonl") -> MatchResult:
        return match_events(
            self.spark,
            str(self.folder / "snapshot"),
            events,
            str(self.folder / output),
            rejected=str(self.rejected),
            quiet=True,
        )

    def pairs(self, output: str = "matches.jsonl") -> list[tuple[Any, Any]]:
        return [(row["event_id"], row["subscription_id"]) for row in get_table(self.folder / output)]

    def refused(self) -> list[Row]:
        return get_lines(self.rejected)

    def lines(self, *lines: bytes) -> MatchResult:
        return self(put(self.folder / "events.jsonl", b"\n".join(lines)))

    def parquet(self, **columns: Any) -> MatchResult:
        pq.write_table(pa.table(columns), self.folder / "events.parquet")
        return self(str(self.folder / "events.parquet"))


@pytest.fixture
def job(session: SparkSession | None, tmp_path: Path) -> Job:
    return Job(session, tmp_path)


def expected(index: RecordIndex, rows: Iterable[Row]) -> list[tuple[Any, Any]]:
    return [(row["id"], found) for row in rows for found in index.match(Event.from_row(row))]


PAIRS = [(form, out) for form in FORMS for out in FORMS]


@on_spark
@pytest.mark.parametrize(("form", "out"), some(PAIRS, PAIRS.index(("csv", "parquet"))))
def test_all_formats_in_and_out_agree_with_the_library(job: Job, form: str, out: str) -> None:
    check_formats(job, form, out)


@pytest.mark.parametrize(("form", "out"), [pair for pair in PAIRS if pair[0] != "csv"])
def test_formats_agree_in_this_process(tmp_path: Path, form: str, out: str) -> None:
    check_formats(Job(None, tmp_path), form, out)


def check_formats(job: Job, form: str, out: str) -> None:
    index = job.build(FILTERS)
    answer = expected(index, EVENTS)
    events = put_table(job.folder / f"events.{form}", EVENTS, pa.schema(KINDS))
    done = job(events, f"matches.{out}")
    assert (done.events, done.rejected, done.matches) == (6, 0, len(answer))
    assert done.unknown_attributes == (() if form == "jsonl" else ("nowhere",))
    found = job.pairs(f"matches.{out}")
    # CSV holds text only.
    assert found == ([(str(event), name) for event, name in answer] if out == "csv" else answer)
    assert sum(batch.events for batch in done.batches) == 6
    if out == "jsonl":
        assert list(get_lines(job.folder / "matches.jsonl")[0]) == ["event_id", "subscription_id"]
    elif out == "csv":
        header = "event_id,subscription_id\n1,age\n"
        assert (job.folder / "matches.csv").read_text("utf-8").startswith(header)
    else:
        assert pq.read_schema(next((job.folder / "matches.parquet").glob("*.parquet"))).names == [
            "event_id",
            "subscription_id",
        ]
    assert names(job.folder) == sorted([f"events.{form}", f"matches.{out}", "rejected.jsonl", "snapshot"])


IDS: dict[str, tuple[list[Any], list[Any]]] = {
    "numbers": ([3, 20, -(2**63)], [3, 20, -(2**63)]),
    "texts": (["b", "a"], ["b", "a"]),
    "mixed": ([1, "1", "x"], ["1", "1", "x"]),
    "odd": (
        ["", " padded ", "a,b", 'q"q', "two\nlines", "\\", "é"],
        ["", " padded ", "a,b", 'q"q', "two\nlines", "\\", "é"],
    ),
}


@pytest.mark.parametrize(("ids", "found"), IDS.values(), ids=IDS)
def test_ids_come_out_as_they_went_in(tmp_path: Path, ids: list[Any], found: list[Any]) -> None:
    build(tmp_path, {7: "TRUE", 8: "FALSE"})
    done = match_lines(tmp_path / "snapshot", [{"id": identity} for identity in ids])
    assert done.pairs == [(identity, 7) for identity in found]
    assert done.events == len(ids)


@pytest.mark.parametrize(("ids", "found"), list(IDS.values()), ids=IDS)
def test_ids_are_written_as_they_went_in(job: Job, ids: list[Any], found: list[Any]) -> None:
    job.build({7: "TRUE", 8: "FALSE"})
    events = put_lines(job.folder / "events.jsonl", [{"id": identity} for identity in ids])
    for out in FORMS:
        assert job(events, f"m.{out}").matches == len(ids)
    assert job.pairs("m.jsonl") == job.pairs("m.parquet") == [(identity, 7) for identity in found]
    # An empty text is told from NULL by its quotes, which Python's reader does not show.
    assert job.pairs("m.csv") == [(str(identity), "7") for identity in found]


CSV_IDS: dict[str, tuple[list[str], list[Any]]] = {
    "numbers": (["3", "20", "-1"], [3, 20, -1]),
    "zeros": (["007", "7"], ["007", "7"]),
    "fractions": (["1.10", "1.1", "1e3"], ["1.10", "1.1", "1e3"]),
    "words": (["TRUE", "2024-01-01 10:00"], ["TRUE", "2024-01-01 10:00"]),
    "long": (["123456789012345678901"], ["123456789012345678901"]),
}


@pytest.mark.parametrize(("ids", "found"), list(CSV_IDS.values()), ids=CSV_IDS)
def test_ids_in_csv_are_not_rewritten(job: Job, ids: list[str], found: list[Any]) -> None:
    job.build({"s": "a = 1"})
    job(put(job.folder / "events.csv", "id,a\n" + "".join(f"{one},1\n" for one in ids)))
    assert job.pairs() == [(identity, "s") for identity in found]


@pytest.mark.parametrize(("ids", "found"), some(list(CSV_IDS.values()), 2), ids=CSV_IDS)
def test_ids_in_csv_are_read_as_they_are(
    spark: SparkSession, tmp_path: Path, ids: list[str], found: list[Any]
) -> None:
    table = put(tmp_path / "events.csv", "id,a\n" + "".join(f"{one},1\n" for one in ids))
    judged = judge(spark, JudgeTask(table, Format.CSV, texts=()))
    assert judged.id_type == ("long" if isinstance(found[0], int) else "string")
    assert [row["id"] for row in judged.rows.frame.collect()] == found


def test_lines_that_are_no_events_are_refused_with_the_reason(tmp_path: Path) -> None:
    build(tmp_path, {"s": "a = 1"})
    lines = {
        b'{"id": 1, "a": 1': "not valid JSON: Input data was truncated",
        b"nonsense": "not valid JSON",
        b"[1]": "expected a JSON object, found list",
        b'"text"': "expected a JSON object, found str",
        b'{"a": 1}': "the event has no id",
        b'{"id": null, "a": 1}': "the event has no id",
        b'{"id": true, "a": 1}': "the event has id True",
        b'{"id": 1.5, "a": 1}': "the event has id 1.5",
        b'{"id": [1], "a": 1}': "the event has id [1]",
        b'{"id": 18446744073709551616, "a": 1}': "attribute id: 18446744073709551616 does not fit",
        b'{"id": 2, "a": 9223372036854775808}': "attribute a: 9223372036854775808 does not fit into 64 bits",
        b'{"id": "\\ud83d", "a": 1}': "the escape \\ud83d is a lone surrogate",
        b'{"id": "x", "a": "\xff"}': "not valid JSON: 'utf-8' codec can't decode byte 0xff",
        b'{"id": 3, "a": NaN}': "not valid JSON",
        b'{"id": 4, "a": Infinity}': "not valid JSON",
        b'{"id": 5, "a": 1e999}': "not valid JSON: Number out of range",
        b'{"id": 6, "a": ' + b"[" * 5000 + b"]" * 5000 + b"}": "not usable JSON: it nests too deep",
        b'{"id": 7, "a": ' + b'{"b": ' * 40 + b"1" + b"}" * 41: "objects nest deeper than 32",
        b'{"id": 8, "a": 1, "A": 2}': "attribute a is given twice",
    }
    others = [b"", b"  \t", b'{"id": "last", "a": 1.0}\r']
    done = match_lines(tmp_path / "snapshot", [b'{"id": "first", "a": 1}', *lines, *others])
    assert done.events == 2
    assert done.pairs == [("first", "s"), ("last", "s")]
    for row, (line, reason) in zip(done.refused, lines.items(), strict=True):
        assert row["row"] == line.decode(errors="replace")
        assert reason in row["reason"]
        assert "\n" not in row["reason"]


def test_values_of_all_kinds_in_lines(tmp_path: Path) -> None:
    filters = {
        "array": "array_contains(tags, 'x')",
        "null element": "array_contains(tags, 'y')",
        "nested": "user.address.city = 'Bern'",
        "object": "user IS NOT NULL",
        "time": "at >= TIMESTAMP '2024-01-01 00:00:00'",
        "text": "n = '5'",
        "case": "USER.Address.CITY LIKE 'B%'",
    }
    rows: list[Row] = [
        {"id": 1, "tags": ["x", None], "user": {"address": {"city": "Bern"}}, "at": "2024-05-05", "n": 5},
        {"id": 2, "tags": [], "user": {}, "at": "yesterday", "n": "5"},
        {"id": 3, "tags": "x", "user": "Bern", "at": None, "n": [5]},
        {"id": 4, "tags": ["y"], "user": {"ADDRESS": {"City": "Bonn"}}, "at": "2023-12-31T23:59:59Z"},
        {"id": 5},
    ]
    index = build(tmp_path, filters)
    found = match_lines(tmp_path / "snapshot", rows).pairs
    assert found == expected(index, rows)
    assert (1, "nested") in found
    assert (4, "case") in found


@on_spark
@pytest.mark.parametrize("text", some(["a = 1", "TRUE", "c >= 5 OR c IS NULL", "b = 'x' OR b IS NULL"], 2))
@pytest.mark.nightly
def test_broken_lines_of_csv_are_refused_whatever_filters_ask_for(job: Job, text: str) -> None:
    lines = [
        "id,a,b,c",
        "e1,1,x,y",
        "e2,1",
        "e3,1,x,y,z",
        ",1,x,y",
        "",
        "e4,1,,",
        f"e5,1,x,{2**64}",
        "e6,1,x,7",
    ]
    # The last column is large in one line only, so it holds whole numbers, and that line does not fit.
    lines = [line.replace(",y", ",5") for line in lines]
    events = put(job.folder / "events.csv", "\n".join(lines) + "\n")
    job.build({"s": text})
    done = job(events)
    assert (done.events, done.rejected, done.matches) == (3, 4, 3)
    assert job.pairs() == [("e1", "s"), ("e4", "s"), ("e6", "s")]
    assert [row["row"] for row in job.refused()] == [
        "e2,1",
        "e3,1,x,5,z",
        '{"a":1,"b":"x","c":5}',
        f"e5,1,x,{2**64}",
    ]


@on_spark
@pytest.mark.parametrize("end", some(["\n", "\r\n"], 1), ids=["lf", "crlf"])
@pytest.mark.nightly
def test_values_of_csv_may_span_lines(job: Job, end: str) -> None:
    job.build(
        {"news": "topic = 'news'", "two": "topic = 'two\nlines, \"quoted\"'", "inch": "topic = '5\" pipe'"}
    )
    lines = ["id,topic,age", f'e1,"two{end}lines, ""quoted""",1', 'e2,5" pipe,2', 'e3,"news",3', "e4,,4"]
    done = job(put(job.folder / "events.csv", end.join(lines) + end))
    assert (done.events, done.rejected) == (4, 0)
    assert job.pairs() == [("e1", "two"), ("e2", "inch"), ("e3", "news")]


@on_spark
@pytest.mark.nightly
def test_types_of_csv_are_found_over_the_whole_file(job: Job) -> None:
    """The first column has no name, and is passed over."""
    job.build(
        {
            "date": "day >= DATE '2024-01-02'",
            "float": "f > 1.2",
            "inf": "f > 1e308",
            "moment": "at < TIMESTAMP '2024-01-01 12:00:00'",
            "number as text": "word = '12'",
            "truth": "b = true",
        }
    )
    lines = [",id,f,b,day,at,word", "0,1,1,true,2024-01-01,2024-01-01T11:00:00Z,12"]
    lines += ["1,2,1.5,FALSE,2024-01-03,2024-01-01 13:00:00,x", "2,3,Inf,,,,"]
    job(put(job.folder / "events.csv", "\n".join(lines)))
    assert job.pairs() == [
        (1, "moment"),
        (1, "number as text"),
        (1, "truth"),
        (2, "date"),
        (2, "float"),
        (3, "float"),
        (3, "inf"),
    ]


@pytest.mark.nightly
@on_spark
def test_files_of_one_csv_table_must_agree(job: Job) -> None:
    job.build({"s": "a = 1"})
    put(job.folder / "events" / "1.csv", "id,a,b\n1,1,2\n")
    put(job.folder / "events" / "2.csv", "id,a,b\n2,1,2\n")
    job(str(job.folder / "events"))
    assert sorted(job.pairs()) == [(1, "s"), (2, "s")]
    put(job.folder / "events" / "2.csv", "id,b,a\n2,1,2\n")
    with pytest.raises(TableError, match="CSV header does not conform to the schema"):
        job(str(job.folder / "events"))


@on_spark
@pytest.mark.nightly
def test_types_of_parquet(job: Job) -> None:
    """Moments of every kind, small numbers, and types that filters can only find to be NULL or not."""
    moment = dt.datetime(2024, 1, 1, 0, 0, 0, 123000)
    kinds: dict[str, pa.DataType] = {
        "micros": pa.timestamp("us"),
        "millis": pa.timestamp("ms"),
        "utc": pa.timestamp("us", "UTC"),
        "zurich": pa.timestamp("ms", "Europe/Zurich"),
    }
    zoned = moment.replace(tzinfo=dt.UTC)
    same = "= TIMESTAMP '2024-01-01 00:00:00.123'"
    job.build(
        {
            "day": "day = DATE '2024-01-01'",
            "int96": f"at {same}",
            "small": "i8 = -1 AND u8 = 255 AND u32 = 4294967295 AND f32 = 0.5 AND word = 'x'",
            "decimal": "a = 1 AND array_contains(p, 0.1) AND NOT q.r = 0.1 AND big > 9.3e18",
            "struct": "b = 'x' OR b.c = 1",
            "absent": "n = 1 AND user.age > 5 AND user.city = 'Bern' AND missing IS NULL",
            **{name: f"{name} {same}" for name in kinds},
        }
    )
    columns: dict[str, Any] = {
        name: pa.array([zoned if name in {"utc", "zurich"} else moment, None], kind)
        for name, kind in kinds.items()
    }
    columns |= {
        "id": [1, 2],
        "day": pa.array([moment.date(), None]),
        "i8": pa.array([-1, None], pa.int8()),
        "u8": pa.array([255, None], pa.uint8()),
        "u32": pa.array([2**32 - 1, None], pa.uint32()),
        "f32": pa.array([0.5, None], pa.float32()),
        "word": pa.array(["x", None]).dictionary_encode(),
        "a": [decimal.Decimal(1), None],
        "p": pa.array([[decimal.Decimal("0.10")], None], pa.list_(pa.decimal128(5, 2))),
        "q": [{"r": decimal.Decimal("0.100000000000000000000000000000000001")}, None],
        "big": pa.array([2**64 - 1, None], pa.uint64()),
        "b": [{"c": 1}, None],
        "n": [1, 1],
        "user": [{"age": 7}, {"age": 7}],
    }
    folder = job.folder / "events.parquet"
    folder.mkdir()
    pq.write_table(pa.table(columns), folder / "a.parquet")
    table = pa.table({"id": [3], "at": pa.array([moment], pa.timestamp("us"))})
    pq.write_table(table, folder / "int96.parquet", use_deprecated_int96_timestamps=True)
    done = job(str(folder))
    assert sorted(job.pairs()) == [
        *((1, name) for name in sorted(["day", "decimal", "small", "struct", *kinds])),
        (3, "int96"),
    ]
    assert done.unknown_attributes == ("missing", "user.city")


@pytest.mark.nightly
@on_spark
def test_nanoseconds_are_one_error_that_helps(job: Job) -> None:
    job.build({"s": "TRUE"})
    with pytest.raises(TableError) as caught:
        job.parquet(id=[1], at=pa.array([1], pa.timestamp("ns")))
    assert str(caught.value).endswith("TIMESTAMP(NANOS,false)): write timestamps in microseconds")


@on_both()
def test_rows_of_parquet_without_an_id_are_refused(job: Job) -> None:
    job.build({"s": "a IS NOT NULL"})
    done = job.parquet(ID=pa.array([1, None, 3], pa.int16()), a=[1, 2, None])
    assert (done.events, done.rejected, done.matches) == (2, 1, 1)
    assert job.refused() == [
        {"row": '{"a":2}', "reason": "the event has no id: give the field 'id' as text or a whole number"}
    ]


FOOTERS = [(said, folder) for said in (True, False) for folder in ("events", "a b%20c+é")]


def put_files(place: Path, *, statistics: bool, missing: bool) -> str:
    """Write events into two files; one id is missing, if so, in the second group of rows of a third."""
    place.mkdir(exist_ok=True)
    tables = [pa.table({"Id": ids, "a": [1] * len(ids)}) for ids in ([1, 2, 3], [4, 5])]
    if missing:
        tables.append(pa.table({"Id": pa.array([6, 7, None, 8], pa.int64()), "a": [1, 1, 1, 2]}))
    for number, table in enumerate(tables):
        file = place / f"{number}.parquet"
        pq.write_table(table, file, row_group_size=2, write_statistics=statistics)
    return str(place)


@pytest.mark.parametrize(("statistics", "folder"), some(FOOTERS, 0, 3))
def test_footers_of_parquet_are_asked_for_ids(
    spark: SparkSession, tmp_path: Path, statistics: bool, folder: str
) -> None:
    for missing, count, refused in ((False, 5, []), (True, 8, ['{"a":1}'])):
        events = put_files(tmp_path / folder, statistics=statistics, missing=missing)
        judged = judge(spark, JudgeTask(events, Format.PARQUET, texts=()))
        assert (judged.count, judged.rejected) == (count, len(refused))
        assert [row["row"] for row in judged.refused.frame.collect()] == refused


@pytest.mark.parametrize(("statistics", "folder"), FOOTERS)
def test_ids_are_counted_whatever_the_footers_of_parquet_say(job: Job, statistics: bool, folder: str) -> None:
    job.build({"s": "a = 1"})
    done = job(put_files(job.folder / folder, statistics=statistics, missing=False))
    assert (done.events, done.rejected, done.matches) == (5, 0, 5)
    assert job.refused() == []
    done = job(put_files(job.folder / folder, statistics=statistics, missing=True))
    assert (done.events, done.rejected, done.matches) == (8, 1, 7)
    assert [row["row"] for row in job.refused()] == ['{"a":1}']


@pytest.mark.nightly
def test_parquet_without_statistics_of_the_ids_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(["x", None]), "a": [1, 1]})
    pq.write_table(table, tmp_path / "events.parquet", write_statistics=["a"])
    judged = judge(spark, JudgeTask(str(tmp_path / "events.parquet"), Format.PARQUET, texts=()))
    assert (judged.count, judged.rejected) == (1, 1)
    assert [row["id"] for row in judged.rows.frame.where("a = 1").collect()] == ["x"]


@pytest.mark.parametrize("codec", CODECS)
def test_workers_compress_as_they_are_told(tmp_path: Path, codec: str) -> None:
    found = pa.RecordBatch.from_pylist([{"event_id": 1, "subscription_id": "s"}])
    with open_part(tmp_path / "part.parquet", found.schema, codec) as writer:
        writer.write_batch(found)
    wanted = {"lz4_raw": "LZ4"}.get(codec, codec.upper())
    assert pq.read_metadata(tmp_path / "part.parquet").row_group(0).column(0).compression == wanted


@on_spark
@pytest.mark.parametrize("codec", some(["zstd", "gzip", "lz4_raw", "uncompressed", "snappy"], 2))
@pytest.mark.nightly
def test_matches_are_compressed_as_the_session_says(job: Job, codec: str) -> None:
    job.build({"s": "a = 1"})
    setting = "spark.sql.parquet.compression.codec"
    before = job.spark.conf.get(setting)
    assert before is not None
    job.spark.conf.set(setting, codec)
    try:
        job(put_lines(job.folder / "events.jsonl", [{"id": 1, "a": 1}]), "matches.parquet")
    finally:
        job.spark.conf.set(setting, before)
    assert job.pairs("matches.parquet") == [(1, "s")]
    (file,) = (job.folder / "matches.parquet").glob("*.parquet")
    wanted = {"lz4_raw": "LZ4"}.get(codec, codec.upper())
    assert pq.read_metadata(file).row_group(0).column(0).compression == wanted
    found = job.spark.read.parquet(str(job.folder / "matches.parquet"))
    assert found.dtypes == [("event_id", "bigint"), ("subscription_id", "string")]
    assert found.count() == 1


@pytest.mark.nightly
@on_spark
def test_spark_writes_what_workers_cannot(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.spark.matching.codec_of", lambda _: None)
    index = job.build(FILTERS)
    events = put_table(job.folder / "events.parquet", EVENTS, pa.schema(KINDS))
    answer = expected(index, EVENTS)
    assert job(events, "matches.parquet").matches == len(answer)
    assert job.pairs("matches.parquet") == answer


@on_spark
@pytest.mark.nightly
def test_what_a_failed_attempt_wrote_is_not_taken(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempt of a task writes a match and fails; Spark tries again."""
    job.build({"s": "a = 1"})

    def once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        yield from batches
        if context.attemptNumber() == 0:
            raise ValueError("once only")

    def write(batches: Iterable[pa.RecordBatch], work: Any, task: PartsTask) -> Iterator[pa.RecordBatch]:
        return write_part(once(batches), work, task)

    monkeypatch.setattr(parts, "write_part", write)
    events = job.folder / "events.parquet"
    job.spark.range(100, numPartitions=3).selectExpr("id", "1 AS a").write.parquet(str(events))
    place = job.folder / "matches.parquet"
    assert job(str(events), "matches.parquet").matches == 100
    assert sorted(job.pairs("matches.parquet")) == [(number, "s") for number in range(100)]
    assert len(list(place.glob("*.parquet"))) == 1
    assert not (place / "_temporary").exists()
    assert names(job.folder) == ["events.parquet", "matches.parquet", "rejected.jsonl", "snapshot"]


@on_spark
@pytest.mark.parametrize(
    "ids",
    [
        [1.5, 2.0],
        [True, False],
        [[1], [2]],
        [dt.date(2024, 1, 1)] * 2,
        [decimal.Decimal(1)] * 2,
        [b"x", b"y"],
    ],
    ids=["double", "boolean", "array", "date", "decimal", "binary"],
)
def test_an_id_column_of_another_type_is_one_error(job: Job, ids: list[Any]) -> None:
    job.build({"s": "TRUE"})
    with pytest.raises(TableError, match=r"column id is .*: cast it to string or bigint"):
        job.parquet(id=ids)
    assert not (job.folder / "matches.jsonl").exists()


def test_columns_that_no_filter_names_do_not_disturb(job: Job) -> None:
    job.build({"s": "a = 1", "odd": "`odd``name.x` = 2"})
    done = job.parquet(
        id=[1, None],
        a=[1, 1],
        amount=pa.array([decimal.Decimal("1.5"), None]),
        blob=[b"\xff", None],
        clock=pa.array([dt.time(1, 2, 3), None]),
        map=pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        structs=[[{"x": 1}], None],
        huge=pa.array([2**64 - 1, None], pa.uint64()),
        nothing=pa.nulls(2),
        **{"odd`name.x": [2, 2], "a.b": [1, 1], "_broken": ["x", "y"], "_reason": ["x", "y"]},
    )
    assert (done.events, done.rejected) == (1, 1)
    assert job.pairs() == [(1, "odd"), (1, "s")]


@on_spark
@pytest.mark.parametrize(
    ("values", "text", "hint"),
    [
        (
            [[b"x"]],
            "array_contains(a, 'x')",
            "filters cannot compare: cast it to a type that filters know",
        ),
        ([b"x"], "a LIKE 'x%'", "filters cannot compare: cast it to a type that filters know"),
        ([{"b": b"x"}], "a.b = 'x'", "filters cannot compare: cast it to a type that filters know"),
        (
            pa.array([[("b", 1)]], pa.map_(pa.string(), pa.int64())),
            "a.b IS NULL",
            "a.b cannot go into: make it a struct",
        ),
    ],
    ids=["array", "binary", "nested", "map"],
)
def test_a_type_that_filters_cannot_compare_is_one_error(job: Job, values: Any, text: str, hint: str) -> None:
    job.build({"s": text})
    with pytest.raises(TableError, match=f"events.parquet: a(.b)? is .*, which {hint}"):
        job.parquet(id=[1], a=values)
    assert names(job.folder) == ["events.parquet", "snapshot"]


@pytest.mark.parametrize(
    ("form", "out"), some(PAIRS, PAIRS.index(("csv", "csv")), PAIRS.index(("jsonl", "parquet")))
)
def test_no_events(job: Job, form: str, out: str) -> None:
    job.build({1: "a = 1"})
    path = job.folder / f"events.{form}"
    if form == "parquet":
        pq.write_table(pa.table({"id": pa.array([], pa.string()), "a": pa.array([], pa.int64())}), path)
    else:
        put(path, "")
    done = job(str(path), f"m.{out}")
    assert (done.events, done.rejected, done.matches, done.unknown_attributes) == (0, 0, 0, ())
    assert job.pairs(f"m.{out}") == []
    if out == "csv":
        assert (job.folder / "m.csv").read_text("utf-8") == "event_id,subscription_id\n"
    assert job.refused() == []


def test_no_subscriptions(job: Job) -> None:
    job.build({})
    done = job.lines(b'{"id": 1}', b"bad")
    assert (done.events, done.rejected, done.matches) == (1, 1, 0)
    assert job.pairs() == []
    (refused,) = job.refused()
    assert list(refused) == ["row", "reason"]
    assert refused["row"] == "bad"
    assert refused["reason"].startswith("not valid JSON")


def by_event(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, list[Any]]]:
    return [(event, [match for _, match in found]) for event, found in groupby(pairs, itemgetter(0))]


@on_spark
@pytest.mark.parametrize("most", some(["4m", "40k", "4k"], 1))
@pytest.mark.nightly
def test_many_partitions_give_the_same_answer(job: Job, most: str) -> None:
    rows: list[Row] = [{"id": n, "a": n % 7, "t": f"t{n % 11}"} for n in range(2000)]
    index = job.build({f"s{n}": f"a = {n % 7} AND t > 't{n % 10}'" for n in range(30)})
    answer = expected(index, rows)
    lines = put_lines(job.folder / "events.jsonl", rows)
    table = job.folder / "events.parquet"
    pq.write_table(pa.Table.from_pylist(rows), table, row_group_size=150)
    size = job.spark.conf.get("spark.sql.files.maxPartitionBytes")
    assert size is not None
    try:
        job.spark.conf.set("spark.sql.files.maxPartitionBytes", most)
        for events in (lines, str(table)):
            assert job(events).matches == len(answer)
            # Events come in any order; the matches of one stand together, in the order of ids.
            assert sorted(by_event(job.pairs())) == by_event(answer)
    finally:
        job.spark.conf.set("spark.sql.files.maxPartitionBytes", size)


@on_both()
def test_files_of_a_directory_are_all_read(job: Job) -> None:
    rows: list[Row] = [{"id": f"e{n:03}", "a": 1} for n in range(100)]
    job.build({"s": "a = 1"})
    for number, part in enumerate(np.array_split(np.arange(100), 5)):
        put_lines(job.folder / "events" / f"{number}.jsonl", [rows[place] for place in part])
    put(job.folder / "events" / "_SUCCESS", "")
    assert job(str(job.folder / "events")).matches == 100
    assert sorted(job.pairs()) == [(row["id"], "s") for row in rows]


@on_spark
def test_the_advertising_workload_agrees_with_spark_sql(job: Job) -> None:
    made = advertising.subscriptions(np.arange(200), 3).to_pylist()
    index = job.build({row["id"]: row["filter"] for row in made})
    events = pa.Table.from_batches([advertising.events(np.arange(600), 3)])
    pq.write_table(events, job.folder / "events.parquet")
    done = job(str(job.folder / "events.parquet"), "matches.parquet")
    assert done.unknown_attributes == ()
    table = job.spark.read.parquet(str(job.folder / "events.parquet"))
    answer = []
    for begin in range(0, 200, 100):
        part = made[begin : begin + 100]
        columns = [f"({row['filter']}) AS c{number}" for number, row in enumerate(part)]
        for row in table.selectExpr("id", *columns).collect():
            answer += [(row["id"], part[number]["id"]) for number in range(len(part)) if row[f"c{number}"]]
    assert len(answer) > 50
    assert sorted(job.pairs("matches.parquet")) == sorted(answer)
    assert done.matches == len(answer)
    # As JSON lines, where times are text.
    rows = [json.loads(json.dumps(row, default=dt.datetime.isoformat)) for row in events.to_pylist()]
    assert match_lines(job.folder / "snapshot", rows).pairs == expected(index, rows) == sorted(answer)


def test_a_damaged_snapshot_is_refused(job: Job) -> None:
    job.build({"s": "a = 1"})
    manifest = job.folder / "snapshot" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-9])
    with pytest.raises(SnapshotError, match="is damaged"):
        job.lines(b'{"id": 1}')


def test_no_place_is_named_twice(job: Job) -> None:
    job.build({"s": "a = 1"})
    events = put_lines(job.folder / "matches.jsonl", [{"id": 1, "a": 1}])
    with pytest.raises(TableError, match="is named twice"):
        job(events)
    with pytest.raises(TableError, match="is named twice"):
        job(put_lines(job.folder / "e.jsonl", [{"id": 1}]), "rejected.jsonl")
    assert get_lines(job.folder / "matches.jsonl") == [{"id": 1, "a": 1}]


def test_a_table_without_ids_is_one_error(job: Job) -> None:
    job.build({"s": "a = 1"})
    events = put(job.folder / "events.csv", "key,a\n1,1\n")
    with pytest.raises(TableError) as caught:
        job(events)
    assert str(caught.value) == f"{events} has no column 'id'; its columns are key, a"
