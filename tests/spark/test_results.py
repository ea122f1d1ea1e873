"""What matches give, as columns of all surfaces: jobs, DataFrames and streams say what the library says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headgate.spark as hg
from headgate import Engine, Event, Subscription
from headgate.engine.question import Question, Top
from headgate.errors import TableError
from headgate.jobs.match import matches_schema
from headgate.local.stream import run_stream
from headgate.rdf.index import bindings
from headgate.runtime.targets import open_target
from headgate.spark.tables.parts import retype
from headgate.stream.settings import StreamSettings
from headgate.tables.event_rows import DOCUMENTS
from headgate.tables.frames.rows import both_frame, match_frame, refused_frame
from headgate.tables.frames.task import ARRAYS, ROWS, FrameTask
from headgate.tables.requests import check_match
from tests.spark.files import get_lines, put_lines
from tests.spark.jobs import match_events

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark.files import Row

FILTERS = [
    Subscription("books", "//book/name{val}", "xpath"),
    Subscription("pairs", "ASK { ?a <urn:p> ?b . ?b <urn:p> ?c . ?c <urn:p> ?d . ?d <urn:p> ?e }", "sparql"),
    Subscription("prices", "ASK { ?what <urn:price> ?price }", "sparql"),
    Subscription("adults", "age > 30", "sql"),
]
TRIPLES = " ".join(f"<urn:{one}> <urn:p> <urn:{other}> ." for one in "abcdef" for other in "abcdef")
EVENTS: list[Row] = [
    {
        "id": "e1",
        "data": "<s><book><name>A</name></book><book><name>é</name></book></s>",
        "datacontenttype": "xml",
    },
    {"id": "e2", "data": "<urn:x> <urn:price> 7 , 8 .", "datacontenttype": "turtle"},
    {"id": "e3", "data": TRIPLES, "datacontenttype": "turtle"},
    {"id": "e4", "data": "<nothing/>", "datacontenttype": "xml"},
]
TOO_MUCH = (
    "it matches, but its results are too much: searching for its bindings takes more than 100 steps; send "
    "smaller events, or narrow the filter"
)
WANTED: list[Row] = [
    {
        "event_id": "e1",
        "subscription_id": "books",
        "results": [{"name.val": "A"}, {"name.val": "é"}],
        "complete": True,
    },
    {
        "event_id": "e2",
        "subscription_id": "prices",
        "results": [{"what": "urn:x", "price": "7"}, {"what": "urn:x", "price": "8"}],
        "complete": True,
    },
    {"event_id": "e3", "subscription_id": "pairs", "results": None, "complete": False},
]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a search take so few steps that one of the filters takes too many."""
    monkeypatch.setattr(bindings, "STEPS", 50)


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    engine = Engine.build(FILTERS)
    engine.save(tmp_path / "snapshot")
    return tmp_path / "snapshot"


def rows_of(table: Any) -> list[Row]:
    rows: list[Row] = table.to_pylist(maps_as_pydicts="strict")
    return sorted(rows, key=lambda row: str(row["event_id"]))


def test_the_library(snapshot: Path) -> None:
    found = Engine.open(snapshot).match_batch([Event.from_row(row) for row in EVENTS], results=True)
    assert rows_of(found) == WANTED


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_the_job(session: SparkSession | None, snapshot: Path, tmp_path: Path, form: str) -> None:
    """Records among documents have an empty list."""
    # Workers of Spark are other processes, whose searches may take as long as ever.
    events = [each for each in [*EVENTS, {"id": "e5", "age": 31}] if session is None or each["id"] != "e3"]
    put_lines(tmp_path / "events.jsonl", events)
    to, rejected = tmp_path / f"matches.{form}", tmp_path / "rejected.jsonl"
    done = match_events(
        session,
        str(snapshot),
        str(tmp_path / "events.jsonl"),
        str(to),
        rejected=str(rejected),
        question=Question.of(results=1000),
        quiet=True,
    )
    wanted = [each for each in WANTED if session is None or each["event_id"] != "e3"]
    wanted.append({"event_id": "e5", "subscription_id": "adults", "results": [], "complete": True})
    found = rows_of(pq.read_table(to)) if form == "parquet" else get_lines(to)
    assert sorted(found, key=lambda row: str(row["event_id"])) == wanted
    told = get_lines(rejected)
    assert done.left_out == (session is None) == len(told)
    for row in told:
        assert json.loads(row["row"]) == {"id": "e3", "subscription": "pairs"}
        assert row["reason"] == TOO_MUCH


def test_the_best_of_the_job_and_a_limit(tmp_path: Path) -> None:
    snapshot = tmp_path / "ranked"
    Engine.build(FILTERS, ranked=True).save(snapshot)
    put_lines(tmp_path / "events.jsonl", EVENTS[:2])
    to, events = tmp_path / "matches.jsonl", str(tmp_path / "events.jsonl")
    rejected = str(tmp_path / "rejected.jsonl")
    asked = Question.of(Top(1), results=1)
    match_events(None, str(snapshot), events, str(to), rejected=rejected, question=asked, quiet=True)
    assert [(row["rank"], row["results"], row["complete"]) for row in get_lines(to)] == [
        (1, [{"name.val": "A"}], False),
        (1, [{"what": "urn:x", "price": "7"}], False),
    ]


def test_csv_has_no_lists(snapshot: Path, tmp_path: Path) -> None:
    put_lines(tmp_path / "events.jsonl", EVENTS)
    to = str(tmp_path / "matches.csv")
    reason = (
        "is CSV, which has no lists, and results are lists: let it end in .parquet or .jsonl, or leave out"
    )
    with pytest.raises(TableError, match=reason):
        check_match(
            str(snapshot),
            str(tmp_path / "events.jsonl"),
            to,
            rejected=str(tmp_path / "rejected.jsonl"),
            question=Question.of(results=7),
        )


def test_ids_of_another_type_later(snapshot: Path, tmp_path: Path) -> None:
    """A file of results is written again if another task had text for an id."""
    (group,) = open_target(str(snapshot)).groups(1 << 30)
    task = FrameTask(group, "", "", numbered=False, question=Question.of(results=5))
    found = Engine.open(snapshot).match_batch([Event.from_row({**EVENTS[1], "id": 7})], results=True)
    pq.write_table(found, tmp_path / "part.parquet")
    retype(tmp_path / "part.parquet", matches_schema(task, "string"), "snappy")
    again = pq.read_table(tmp_path / "part.parquet")
    assert rows_of(again) == [{**WANTED[1], "event_id": "7"}]


def frame_task(snapshot: Path, **more: Any) -> FrameTask:
    target = open_target(str(snapshot))
    (group,) = target.groups(1 << 30)
    task = FrameTask(group, target.content, DOCUMENTS, target.numbered, question=Question.of(results=1000))
    return task._replace(**more)


def frame_rows() -> pa.RecordBatch:
    """Have events as Spark hands them to workers."""
    names = ("id", "source", "data", "datacontenttype")
    columns: dict[str, Any] = {
        name: pa.array([row.get(name) for row in EVENTS], pa.string()) for name in names
    }
    columns["kept"] = pa.array([{"mark": row["id"]} for row in EVENTS])
    return pa.RecordBatch.from_pydict(columns)


def test_frames_as_rows(snapshot: Path) -> None:
    (found,) = match_frame([frame_rows()], frame_task(snapshot))
    assert rows_of(found) == [{**row, "mark": row["event_id"]} for row in WANTED]


def test_frames_as_arrays(snapshot: Path) -> None:
    (found,) = match_frame([frame_rows()], frame_task(snapshot, shape=ARRAYS))
    wanted: dict[str, list[Row]] = {row["id"]: [] for row in EVENTS}
    for row in WANTED:
        wanted[row["event_id"]].append({name: value for name, value in row.items() if name != "event_id"})
    assert {row["event_id"]: row["matches"] for row in rows_of(found)} == wanted


@pytest.mark.parametrize("shape", [ROWS, ARRAYS])
def test_frames_and_what_is_refused(snapshot: Path, shape: str) -> None:
    """Both in one pass have the columns of both; a result that is too much is told by itself, too."""
    reason = f"subscription 'pairs' is left out: {TOO_MUCH}"
    found = list(both_frame([frame_rows()], frame_task(snapshot, shape=shape, keep=("mark",))))
    assert len({str(each.schema.names) for each in found}) == 1
    table = pa.concat_tables([pa.Table.from_batches([each]) for each in found], promote_options="permissive")
    assert [row["reason"] for row in rows_of(table) if row["reason"]] == [reason]
    (refused,) = refused_frame([frame_rows()], frame_task(snapshot, exceeded=True))
    assert [(row["event_id"], row["reason"]) for row in rows_of(refused)] == [("e3", reason)]


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_streams(snapshot: Path, tmp_path: Path, form: str) -> None:
    (tmp_path / "events").mkdir()
    put_lines(tmp_path / "events" / "1.jsonl", EVENTS)
    places: dict[str, Any] = {name: str(tmp_path / name) for name in ("events", "output", "state")}
    settings = StreamSettings(snapshot=str(snapshot), **places, format=form, once=True, results=True)
    done = run_stream(settings, quiet=True)
    assert (done.matches, done.left_out) == (3, 1)
    files = sorted((tmp_path / "output").glob(f"batch-*.{form}"))
    found = [
        row
        for file in files
        for row in (get_lines(file) if form == "jsonl" else rows_of(pq.read_table(file)))
    ]
    assert found == WANTED
    if form == "parquet":
        assert pq.read_schema(tmp_path / "output" / "columns.parquet").names == [*WANTED[0]]
    with pytest.raises(TableError, match="results_limit says how many rows of a match are wanted"):
        StreamSettings(snapshot="s", events="e", output="o", state="t", results_limit=3).check()


@pytest.mark.nightly
def test_on_spark(spark: SparkSession, snapshot: Path, tmp_path: Path) -> None:
    """A DataFrame has them as rows, as arrays and in batches of a stream."""
    schema = "id string, data string, datacontenttype string"
    put_lines(tmp_path / "in" / "1.jsonl", EVENTS[:2])
    events = spark.read.schema(schema).json(str(tmp_path / "in"))
    found = hg.match(events, snapshot, results=True)
    assert dict(found.dtypes)["results"] == "array<map<string,string>>"
    assert sorted([row.asDict() for row in found.collect()], key=lambda row: row["event_id"]) == WANTED[:2]
    arrays = hg.match(events, snapshot, results=1, shape="arrays").collect()
    assert sorted((row["event_id"], row["matches"][0]["complete"]) for row in arrays) == [
        ("e1", False),
        ("e2", False),
    ]
    hg.write_parquet(found, tmp_path / "matches.parquet")
    assert rows_of(pq.read_table(tmp_path / "matches.parquet")) == WANTED[:2]
    written: list[Row] = []
    batches = hg.each_batch(
        None,
        snapshot,
        lambda matches, _, __: written.extend(row.asDict() for row in matches.collect()),
        state=tmp_path / "state",
        results=True,
    )
    stream = spark.readStream.schema(schema).json(str(tmp_path / "in"))
    query = stream.writeStream.foreachBatch(batches).trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    batches.close()
    assert sorted(written, key=lambda row: str(row["event_id"])) == WANTED[:2]
