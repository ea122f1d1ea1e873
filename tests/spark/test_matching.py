"""What workers do, without Spark: in portions of any size the answer is the library's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import RecordIndex, Subscription
from headgate.core.snapshot import digest_of
from headgate.errors import TableError
from headgate.spark.match import matching
from headgate.spark.match.matching import PACKED, Task, match_columns, write_matches

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
    return Task(str(snapshot), digest_of(snapshot), "string", "long", None, str(folder), "zstd")


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
    monkeypatch.setattr(matching, "EVENTS", events)
    monkeypatch.setattr(matching, "PAIRS", pairs)
    monkeypatch.setattr(matching, "PORTION", portion)
    given = [packed(EVENTS.slice(0, 30)), packed(EVENTS.slice(0, 0)), packed(EVENTS.slice(30))]
    found = list(match_columns(given, task(tmp_path)))
    assert all(part.num_rows <= portion for part in found)
    assert pa.Table.from_batches(found).to_pylist() == index.match_batch(EVENTS).to_pylist()


def test_matches_are_written_to_a_file_of_the_attempt(
    index: RecordIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.TaskContext.get", Context)
    told = list(write_matches([packed(EVENTS)], match_columns, task(tmp_path)))
    assert [part.to_pylist() for part in told] == [[{"file": "part-00003-17.zstd.parquet"}]]
    file = tmp_path / "part-00003-17.zstd.parquet"
    assert pq.read_table(file).to_pylist() == index.match_batch(EVENTS).to_pylist()
    assert pq.read_metadata(file).row_group(0).column(0).compression == "ZSTD"
    assert pq.read_schema(file).types == [pa.string(), pa.int64()]
    file.unlink()
    assert [part.num_rows for part in write_matches([], match_columns, task(tmp_path))] == [0]
    assert not file.exists()


def test_a_file_that_cannot_be_written_is_one_error(
    index: RecordIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(index) == len(FILTERS)
    monkeypatch.setattr("pyspark.TaskContext.get", Context)
    nowhere = task(tmp_path)._replace(parts=str(tmp_path / "nowhere"))
    with pytest.raises(TableError, match=r"matches cannot be written: .*nowhere"):
        list(write_matches([packed(EVENTS)], match_columns, nowhere))


def test_an_event_without_an_id_is_never_matched(index: RecordIndex, tmp_path: Path) -> None:
    assert len(index) == len(FILTERS)
    columns: dict[str, Any] = {"id": pa.array(["e", None]), "a": [1, 1]}
    with pytest.raises(TableError, match="an event has no id"):
        list(match_columns([packed(pa.RecordBatch.from_pydict(columns))], task(tmp_path)))
