"""What workers do, without Spark: in portions of any size the answer is the library's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import Subscription
from headgate.core.snapshot import digest_of
from headgate.errors import TableError
from headgate.jobs.match import columns_of, matches_schema
from headgate.records.index.index import RecordIndex
from headgate.runtime.targets import Group
from headgate.spark.tables.parts import PartsTask, retype, write_part
from headgate.tables.event_rows import COLUMNS, LINES, PACKED
from headgate.tables.frames import reading, rows
from headgate.tables.frames.report import Reporter
from headgate.tables.frames.rows import both_frame, match_frame, refused_frame
from headgate.tables.frames.task import FrameTask

if TYPE_CHECKING:
    from pathlib import Path

FILTERS = ["a = 1", "a > 2 OR t = 'x'", "t LIKE '%y%'", "array_contains(tags, 'p')", "TRUE", "t IS NULL"]
EVENTS = pa.RecordBatch.from_pydict(
    {
        "id": [f"e{number}" for number in range(50)],
        "a": [number % 5 for number in range(50)],
        "t": [None if number % 4 == 0 else "xyz"[number % 3] for number in range(50)],
        "tags": [["p", "q"][: number % 3] for number in range(50)],
    }
)


class Context:
    """What a worker knows of its task."""

    def partitionId(self) -> int:  # noqa: N802 -- Spark's name
        return 3

    def taskAttemptId(self) -> int:  # noqa: N802 -- Spark's name
        return 17


@pytest.fixture
def index(tmp_path: Path) -> RecordIndex:
    index = RecordIndex.build(Subscription(number, text) for number, text in enumerate(FILTERS))
    index.save(tmp_path / "snapshot")
    return index


def packed(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([batch.column("id"), batch.to_struct_array()], names=["id", PACKED])


def task(folder: Path) -> FrameTask:
    snapshot = folder / "snapshot"
    return FrameTask(Group(str(snapshot), digest_of(snapshot)), "records", COLUMNS, numbered=True)


def write(given: list[pa.RecordBatch], folder: Path, asked: FrameTask) -> list[dict[str, Any]]:
    """Write matches as a worker does; returns what it tells of its files."""
    to = PartsTask(str(folder), "zstd", columns_of(asked))
    return [
        row for told in write_part(given, partial(both_frame, task=asked), to) for row in told.to_pylist()
    ]


@pytest.mark.parametrize(
    ("events", "pairs", "portion"),
    [(10_000, 1 << 26, 1 << 18), (7, 1 << 26, 1), (50, 6 * 4, 5), (50, 6 * 4, 1 << 18), (20, 1, 3)],
)
def test_the_answer_is_the_same_in_portions_of_any_size(
    index: RecordIndex,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    events: int,
    pairs: int,
    portion: int,
) -> None:
    monkeypatch.setitem(reading.TOGETHER, COLUMNS, events)
    monkeypatch.setattr(RecordIndex.ask, "__defaults__", (pairs,))
    monkeypatch.setattr(rows, "PORTION", portion)
    given = [packed(EVENTS.slice(0, 30)), packed(EVENTS.slice(0, 0)), packed(EVENTS.slice(30))]
    found = list(match_frame(given, task(tmp_path)))
    assert all(part.num_rows <= portion for part in found)
    assert pa.Table.from_batches(found).to_pylist() == index.match_batch(EVENTS).to_pylist()


def test_matches_are_written_to_a_file_of_the_attempt(
    index: RecordIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.TaskContext.get", Context)
    told = write([packed(EVENTS)], tmp_path, task(tmp_path))
    count = index.match_batch(EVENTS).num_rows
    assert told == [{"file": "part-00003-17.zstd.parquet", "kind": "string", "count": count}]
    file = tmp_path / "part-00003-17.zstd.parquet"
    assert pq.read_table(file).to_pylist() == index.match_batch(EVENTS).to_pylist()
    assert pq.read_metadata(file).row_group(0).column(0).compression == "ZSTD"
    assert pq.read_schema(file).types == [pa.string(), pa.int64()]
    file.unlink()
    assert write([], tmp_path, task(tmp_path)) == []
    assert not file.exists()


def test_a_file_that_cannot_be_written_is_one_error(
    index: RecordIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(index) == len(FILTERS)
    monkeypatch.setattr("pyspark.TaskContext.get", Context)
    with pytest.raises(TableError, match=r"matches cannot be written: .*nowhere"):
        write([packed(EVENTS)], tmp_path / "nowhere", task(tmp_path))


def test_an_event_without_an_id_is_never_matched(index: RecordIndex, tmp_path: Path) -> None:
    assert len(index) == len(FILTERS)
    columns: dict[str, Any] = {"id": pa.array(["e", None]), "a": [1, 1]}
    given = packed(pa.RecordBatch.from_pydict(columns))
    (found,) = match_frame([given], task(tmp_path))
    assert set(found["event_id"].to_pylist()) == {"e"}
    (refused,) = refused_frame([given], task(tmp_path))
    assert refused["reason"].to_pylist() == [
        "the event has no id: give the field 'id' as text or a whole number"
    ]


def test_ids_of_lines_have_the_type_of_all_of_them(
    index: RecordIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task does not know of the ids of others: whole numbers and text go to files of their own."""
    assert len(index) == len(FILTERS)
    monkeypatch.setattr("pyspark.TaskContext.get", Context)
    monkeypatch.setitem(reading.TOGETHER, LINES, 2)
    lines = [
        b'{"id": 7, "a": 1}',
        b"no event",
        b'{"id": 8}',
        b"",
        b'{"id": "x", "a": 1}',
        b'{"id": 9, "t": "x"}',
    ]
    batch = pa.RecordBatch.from_pydict({"value": pa.array(lines, pa.binary())})
    given = task(tmp_path)._replace(form=LINES)
    report = Reporter(0)
    assert sum(each.num_rows for each in both_frame([batch], given, report)) == 11
    assert (report.done().events, report.done().refused, report.done().texts) == (4, 1, True)
    told = {row["kind"]: row["file"] for row in write([batch], tmp_path, given)}
    tables = {kind: pq.read_table(tmp_path / told[kind]) for kind in ("long", "string", "reason")}
    assert tables["long"].schema.types == [pa.int64(), pa.int64()]
    assert tables["long"].to_pydict() == {"event_id": [7, 7, 7, 8, 8], "subscription_id": [0, 4, 5, 4, 5]}
    found = list(zip(*tables["string"].to_pydict().values(), strict=True))
    assert found == [("x", 0), ("x", 4), ("x", 5), ("9", 1), ("9", 4)]
    assert tables["reason"]["row"].to_pylist() == ["no event"]
    retype(tmp_path / told["long"], matches_schema(given, "string"), "zstd")
    again = pq.read_table(tmp_path / told["long"])
    assert again["event_id"].to_pylist() == ["7", "7", "7", "8", "8"]
