"""What workers do, without Spark: in portions of any size the answer is the library's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import Subscription
from headgate.core.snapshot import digest_of
from headgate.errors import TableError
from headgate.records.index.index import RecordIndex
from headgate.runtime.targets import Group
from headgate.spark.jobs.match import worker
from headgate.spark.jobs.match.worker import Task, match_rows, retype, write_matches
from headgate.tables import event_rows
from headgate.tables.event_rows import COLUMNS, LINES, PACKED

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
    return pa.RecordBatch.from_arrays([batch.to_struct_array()], names=[PACKED])


def task(folder: Path) -> Task:
    snapshot = folder / "snapshot"
    group = Group(str(snapshot), digest_of(snapshot))
    return Task(group, "records", COLUMNS, "string", "long", parts=str(folder), codec="zstd")


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
    monkeypatch.setitem(event_rows.TOGETHER, COLUMNS, events)
    monkeypatch.setattr(RecordIndex.ask, "__defaults__", (pairs,))
    monkeypatch.setattr(worker, "PORTION", portion)
    given = [packed(EVENTS.slice(0, 30)), packed(EVENTS.slice(0, 0)), packed(EVENTS.slice(30))]
    found = list(match_rows(given, task(tmp_path)))
    assert all(part.num_rows <= portion for part in found)
    assert pa.Table.from_batches(found).to_pylist() == index.match_batch(EVENTS).to_pylist()


def test_matches_are_written_to_a_file_of_the_attempt(
    index: RecordIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.TaskContext.get", Context)
    (told,) = write_matches([packed(EVENTS)], task(tmp_path))
    count = index.match_batch(EVENTS).num_rows
    files = [(row["file"], row["kind"], row["count"]) for row in told.to_pylist() if row["file"] is not None]
    assert files == [("part-00003-17.zstd.parquet", "string", count)]
    file = tmp_path / "part-00003-17.zstd.parquet"
    assert pq.read_table(file).to_pylist() == index.match_batch(EVENTS).to_pylist()
    assert pq.read_metadata(file).row_group(0).column(0).compression == "ZSTD"
    assert pq.read_schema(file).types == [pa.string(), pa.int64()]
    file.unlink()
    (told,) = write_matches([], task(tmp_path))
    assert told["file"].to_pylist() == [None]
    assert not file.exists()


def test_a_file_that_cannot_be_written_is_one_error(
    index: RecordIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(index) == len(FILTERS)
    monkeypatch.setattr("pyspark.TaskContext.get", Context)
    nowhere = task(tmp_path)._replace(parts=str(tmp_path / "nowhere"))
    with pytest.raises(TableError, match=r"matches cannot be written: .*nowhere"):
        list(write_matches([packed(EVENTS)], nowhere))


def test_an_event_without_an_id_is_never_matched(index: RecordIndex, tmp_path: Path) -> None:
    assert len(index) == len(FILTERS)
    columns: dict[str, Any] = {"id": pa.array(["e", None]), "a": [1, 1]}
    with pytest.raises(TableError, match="an event has no id"):
        list(match_rows([packed(pa.RecordBatch.from_pydict(columns))], task(tmp_path)))


def test_ids_of_lines_have_the_type_of_all_of_them(
    index: RecordIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task does not know of the ids of others: whole numbers and text go to files of their own."""
    assert len(index) == len(FILTERS)
    monkeypatch.setattr("pyspark.TaskContext.get", Context)
    monkeypatch.setitem(event_rows.TOGETHER, LINES, 2)
    lines = [
        b'{"id": 7, "a": 1}',
        b"no event",
        b'{"id": 8}',
        b"",
        b'{"id": "x", "a": 1}',
        b'{"id": 9, "t": "x"}',
    ]
    batch = pa.RecordBatch.from_pydict({"value": pa.array(lines, pa.binary())})
    given = task(tmp_path)._replace(form=LINES, event_type="", tells=True)
    (told,) = write_matches([batch], given)
    rows = {row["kind"]: row for row in told.to_pylist()}
    assert (rows[None]["numbers"], rows[None]["texts"]) == (3, 1)
    tables = {kind: pq.read_table(tmp_path / rows[kind]["file"]) for kind in ("long", "string", "reason")}
    assert tables["long"].schema.types == [pa.int64(), pa.int64()]
    assert tables["long"].to_pydict() == {"event_id": [7, 7, 7, 8, 8], "subscription_id": [0, 4, 5, 4, 5]}
    found = list(zip(*tables["string"].to_pydict().values(), strict=True))
    assert found == [("x", 0), ("x", 4), ("x", 5), ("9", 1), ("9", 4)]
    assert tables["reason"]["row"].to_pylist() == ["no event"]
    retype(tmp_path / rows["long"]["file"], given._replace(event_type="string"))
    again = pq.read_table(tmp_path / rows["long"]["file"])
    assert again["event_id"].to_pylist() == ["7", "7", "7", "8", "8"]
