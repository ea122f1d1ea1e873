"""The state of a stream: records, the lock, and what does not belong together."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from headgate.errors import TableError
from headgate.runtime.state import COMMITTED, PINNED, STAGE, State, write_record

if TYPE_CHECKING:
    from pathlib import Path


def test_records(tmp_path: Path) -> None:
    """The last committed batch is found again; old records are dropped."""
    state = State(tmp_path)
    assert state.last is None
    for number in range(10):
        state.put(number, {STAGE: COMMITTED, "n": number})
    state.put(10, {STAGE: PINNED})
    again = State(tmp_path)
    assert again.last == {"batch": 9, STAGE: COMMITTED, "n": 9}
    assert again.batch(10) == {"batch": 10, STAGE: PINNED}
    assert again.batch(11) is None
    again.forget(8)
    assert [record["batch"] for record in State(tmp_path).committed()] == [8, 9]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """Another process is refused while one holds the state; when that dies, it is free."""
    code = (
        "import sys, pathlib, time; from headgate.runtime.state import State\n"
        "with State(pathlib.Path(sys.argv[1])).held():\n  print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(TableError, match="in use by another stream"), State(tmp_path).held():
            pass
    finally:
        holder.kill()
        holder.communicate()
    with State(tmp_path).held():
        pass


def test_damage_is_told(tmp_path: Path) -> None:
    """A record that is no JSON, or a layout of the future, is refused in one line."""
    state = State(tmp_path)
    state.put(0, {STAGE: COMMITTED})
    (tmp_path / "batches" / "0000000000.json").write_text("{")
    with pytest.raises(TableError, match="is damaged: restore"):
        State(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    write_record(other / "stream.json", {"layout": 99})
    with pytest.raises(TableError, match="layout 99"):
        State(other)


def test_foreign_checkpoint(tmp_path: Path) -> None:
    """Batches of one checkpoint are not taken for those of another, nor for those of none."""
    state = State(tmp_path)
    state.check_checkpoint()
    state.fixed("query", "one")
    with pytest.raises(TableError, match="belongs to another checkpoint"):
        State(tmp_path).check_checkpoint()
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark" / "metadata").write_text('{"id":"one"}')
    State(tmp_path).check_checkpoint()
    (tmp_path / "spark" / "metadata").write_text('{"id":"two"}')
    with pytest.raises(TableError, match="belongs to another checkpoint"):
        State(tmp_path).check_checkpoint()


def test_the_files_of_a_batch_are_those_that_spark_noted(tmp_path: Path) -> None:
    state = State(tmp_path)
    notes, offsets = state.spark / "sources" / "0", state.spark / "offsets"
    notes.mkdir(parents=True)
    offsets.mkdir()
    assert state.files(0) == []
    rows = [{"path": f"file:///in/{n}%20%23%2520.xml", "timestamp": 1, "batchId": n} for n in range(12)]
    entries = [json.dumps(row, separators=(",", ":")) for row in rows]
    for number, entry in enumerate(entries):
        (notes / str(number)).write_text(f"v1\n{entry}\n")
    # Now and then Spark writes all that it has into one.
    (notes / "9.compact").write_text("\n".join(["v1", *entries[:10]]))
    (notes / "9").unlink()
    for number, last in enumerate((0, 8, 9, 11)):
        (offsets / str(number)).write_text(f'v1\n{{}}\n{{"logOffset":{last}}}')
    for number, some in enumerate(([0], range(1, 9), [9], [10, 11])):
        assert set(state.files(number)) == {f"/in/{n} #%20.xml" for n in some}
