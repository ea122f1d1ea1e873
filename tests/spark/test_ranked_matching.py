"""What workers do with ranks, without Spark: in portions of any size the answer is the library's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headgate import Event, Subscription
from headgate.core.snapshot import digest_of
from headgate.engine.question import Question, Top
from headgate.ranking.filters.index import RankedIndex
from headgate.records.index.index import RecordIndex
from headgate.runtime import engines
from headgate.runtime.targets import Group
from headgate.tables.event_rows import COLUMNS, KEY, LINES, PACKED
from headgate.tables.frames import reading
from headgate.tables.frames import rows as frame_rows
from headgate.tables.frames.rows import match_frame
from headgate.tables.frames.task import FrameTask
from headgate.tables.lines import VALUE

if TYPE_CHECKING:
    from pathlib import Path

SUBSCRIPTIONS = [
    Subscription(3, "a = 1 AND t = 'x'", score=1.0),
    Subscription(1, "a > 2 OR t = 'x'", score=1.0, weights=[2.5]),
    Subscription(2, "t LIKE '%y%' AND id <> 'e1'", score=-0.0),
    Subscription(7, "TRUE", score=0.0, weights=[0.0]),
]
ROWS: list[dict[str, Any]] = [
    # Ids repeat, next to each other and far apart, and filters look at them.
    {"id": f"e{number // 2 % 9}", "a": number % 5, "t": None if number % 4 == 0 else "xyz"[number % 3]}
    for number in range(40)
]
KEYS = [1000 - number for number in range(40)]


@pytest.fixture(scope="module")
def index() -> RankedIndex:
    return RankedIndex.build(SUBSCRIPTIONS, room=RecordIndex)


@pytest.mark.parametrize("top", [None, Top.of(2), Top.of(0), Top.of(3, "relaxed", {"t": 0.5})])
@pytest.mark.parametrize(("events", "pairs", "portion"), [(4096, 1 << 24, 1 << 18), (7, 9, 1), (40, 12, 5)])
def test_the_answer_is_the_same_in_portions_of_any_size(
    index: RankedIndex,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    top: Top | None,
    events: int,
    pairs: int,
    portion: int,
) -> None:
    for form in (COLUMNS, LINES):
        monkeypatch.setitem(reading.TOGETHER, form, events)
    monkeypatch.setattr(engines, "PAIRS", pairs)
    monkeypatch.setattr(frame_rows, "PORTION", portion)
    index.save(tmp_path / "snapshot")
    expected: list[tuple[Any, ...]] = []
    for key, row in zip(KEYS, ROWS, strict=True):
        event = Event.from_row(row)
        if top is None:
            expected += [(row["id"], each, key) for each in index.match(event)]
        else:
            best = index.top(event, top.k, top.mode, factors=top.weighing)
            expected += [
                (row["id"], each.subscription, rank, each.value, key) for rank, each in enumerate(best, 1)
            ]
    snapshot = tmp_path / "snapshot"
    task = FrameTask(
        Group(str(snapshot), digest_of(snapshot)), "records", COLUMNS, numbered=True, question=Question(top)
    )
    batch, keys = pa.RecordBatch.from_pylist(ROWS), pa.array(KEYS)
    columns = [batch.column("id"), batch.to_struct_array(), keys]
    packed = pa.RecordBatch.from_arrays(columns, names=["id", PACKED, KEY])
    lines = pa.array([json.dumps(row).encode() for row in ROWS], pa.binary())
    written = pa.RecordBatch.from_arrays([lines, keys], names=[VALUE, KEY])
    for form, given in ((COLUMNS, packed), (LINES, written)):
        found = list(match_frame([given], task._replace(form=form, keyed=True)))
        assert [tuple(row.values()) for part in found for row in part.to_pylist()] == expected
        assert all(0 < part.num_rows <= portion for part in found)
        found = list(match_frame([given], task._replace(form=form)))
        assert [tuple(row.values()) for part in found for row in part.to_pylist()] == [
            row[:-1] for row in expected
        ]


def test_lines_that_are_no_events_are_passed_over(index: RankedIndex, tmp_path: Path) -> None:
    index.save(tmp_path / "snapshot")
    lines = pa.array([b"", b"{", b'{"id": 5, "a": 9}', b'{"a": 1}', b'{"id": "6", "a": 9}'], pa.binary())
    batch = pa.RecordBatch.from_arrays([lines, pa.array([50, 40, 30, 20, 10])], names=[VALUE, KEY])
    snapshot = tmp_path / "snapshot"
    group = Group(str(snapshot), digest_of(snapshot))
    task = FrameTask(group, "records", LINES, numbered=True, question=Question(Top.of(1)), keyed=True)
    found = [tuple(row.values()) for part in match_frame([batch], task) for row in part.to_pylist()]
    assert found == [("5", 1, 1, 1.0, 30), ("6", 1, 1, 1.0, 10)]
