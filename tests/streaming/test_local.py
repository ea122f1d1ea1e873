"""A stream in this process: each match once, whatever kills it, and Spark goes on where it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headgate import Engine, Subscription
from headgate.local.checkpoint import FileCheckpoint, FoundFile, encoded, new_files
from headgate.local.small_streams import why_stream
from headgate.local.stream import run_stream
from headgate.runtime import statistics
from headgate.tables.places import UnsureError
from tests.streaming.world import State, World, move

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ODD = "a b#1%é.jsonl"
"""A name that Java writes in another way."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Make a stream with two subscriptions."""
    made = World(tmp_path)
    Engine.build([Subscription("s1", "n > 10"), Subscription("s2", "n < 15")]).save(made.snapshot)
    return made


def test_it_finds_what_the_engine_finds(world: World) -> None:
    """Matches, dead letters and counts, with changes and a late event; files without a byte are read, too."""
    more = {"lateness": 60.0, "max_files": 2}
    world.send(ODD, [{"id": 1, "n": 12, "time": "2026-01-01T10:00:00Z"}, "{bad", {"id": 1, "n": 20}])
    world.send("empty.jsonl", [])
    move(world.events, ".hidden.jsonl", '{"id": 9, "n": 99}\n')
    first = run_stream(world.settings(**more), quiet=True)
    assert (first.batches, first.events, first.matches) == (1, 1, 2)
    assert (first.malformed, first.duplicate, first.stopped) == (1, 1, "once")
    world.change("1.jsonl", [{"op": "subscribe", "id": "s3", "filter": "n = 20"}, {"op": "bad"}])
    for number in range(2, 6):
        world.send(f"{number}.jsonl", [{"id": number, "n": 4 * number, "time": "2026-01-01T10:00:00Z"}])
    world.send("6.jsonl", [{"id": 6, "n": 20, "time": "2026-01-01T08:00:00Z"}])
    second = run_stream(world.settings(**more), quiet=True)
    assert (second.batches, second.events, second.late) == (3, 4, 1)
    assert (second.changes, second.rejected_changes, second.version) == (1, 1, 1)
    assert world.matches() == world.expected()
    assert ("5", "s3") in world.matches()
    assert sorted(row["kind"] for row in world.dead()) == ["duplicate", "late", "malformed"]
    assert run_stream(world.settings(**more), quiet=True).batches == 0


@pytest.mark.parametrize("finished", ["delete", "archive"])
def test_finished_files_go_where_they_shall(world: World, finished: str) -> None:
    """They are removed, or kept elsewhere under their whole names."""
    archive = world.root / "done"
    world.send("1.jsonl", [{"id": 1, "n": 12}])
    place = world.events / "1.jsonl"
    said = finished if finished == "delete" else f"archive:{archive}"
    run_stream(world.settings(finished=said), quiet=True)
    assert not place.exists()
    assert (archive / str(place).lstrip("/")).exists() is (finished == "archive")


RUN = """
import json, sys
from headgate.local.stream import run_stream
from headgate.stream.settings import StreamSettings
run_stream(StreamSettings(**json.loads(sys.argv[1])), quiet=True)
"""


def test_killed_in_the_middle_nothing_is_lost_or_doubled(world: World) -> None:
    """Killed three times among sixty batches, and run to the end."""
    for number in range(60):
        world.send(f"{number:02}.jsonl", [{"id": number, "n": number}, {"id": f"x{number}", "n": 12}])
    names = ("snapshot", "events", "output", "state", "changes", "format", "once")
    settings = world.settings(max_files=1)
    said = json.dumps({**{name: getattr(settings, name) for name in names}, "max_files": 1})
    begun = []
    for kill in range(3):
        process = subprocess.Popen([sys.executable, "-c", RUN, said])
        offsets = world.state / "spark" / "offsets"
        while process.poll() is None and len(list(offsets.glob("[0-9]*"))) < 8 * (kill + 1):
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        begun.append(len(list(offsets.glob("[0-9]*"))))
    assert begun[0] < begun[1] < begun[2] < 60
    done = run_stream(settings, quiet=True)
    assert 0 < done.batches <= 60 - begun[1]
    assert len(State(world.state).committed()) <= 60
    assert world.matches() == {
        **{(str(number), "s1"): 1 for number in range(11, 60)},
        **{(str(number), "s2"): 1 for number in range(15)},
        **{(f"x{number}", name): 1 for number in range(60) for name in ("s1", "s2")},
    }


def test_statistics(session: SparkSession | None, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """All batches of all runs count, also for subscriptions that have come and gone."""
    place = world.root / "statistics.parquet"
    written: list[object] = []
    write = statistics.WaitingStatistics.write

    def noted(waiting: statistics.WaitingStatistics) -> None:
        written.append(waiting)
        write(waiting)

    monkeypatch.setattr(statistics.WaitingStatistics, "write", noted)
    world.send("1.jsonl", [{"id": 1, "n": 12}, "{bad", {"id": 2, "n": 20}])
    world.run(session, stats=str(place))
    assert len(written) == 1
    monkeypatch.setattr(statistics, "WAIT", 0.0)
    world.change("1.jsonl", [{"op": "unsubscribe", "id": "s1"}, {"id": "s3", "filter": "n = 20"}])
    world.send("2.jsonl", [{"id": 3, "n": 20}, {"id": 1, "n": 12}])
    world.send("3.jsonl", [{"id": 4, "n": 20}])
    assert world.run(session, stats=str(place), max_files=1).events == 2
    kept = statistics.read_statistics(place)
    assert (kept.events, len(written)) == (4, 1 + 2 + 1)
    columns = ["subscription_id", "events", "matches", "last_event"]
    found = {
        row["subscription_id"]: tuple(row.values())[1:] for row in kept.table.select(columns).to_pylist()
    }
    assert found == {"s1": (2, 2, "2"), "s2": (4, 1, "1"), "s3": (2, 2, "4")}
    assert world.matches() == world.expected()


@pytest.mark.spark
@pytest.mark.nightly
def test_spark_and_this_process_go_on_with_one_state(spark: SparkSession, world: World) -> None:
    """Each takes what is new, also after ten notes of files, which are written into one."""
    world.send(ODD, [{"id": "odd", "n": 12}])
    for number in range(10):
        world.send(f"{number}.jsonl", [{"id": number, "n": 12}])
    assert run_stream(world.settings(max_files=1), quiet=True).batches == 11
    assert (world.state / "spark" / "sources" / "0" / "9.compact").exists()
    world.send("a.jsonl", [{"id": "a", "n": 12}])
    assert world.run(spark).events == 1
    world.send("b.jsonl", [{"id": "b", "n": 12}])
    assert run_stream(world.settings(), quiet=True).events == 1
    names = ["odd", *map(str, range(10)), "a", "b"]
    assert world.matches() == {(name, each): 1 for name in names for each in ("s1", "s2")}


@pytest.mark.spark
def test_spark_goes_on_beside_half_a_note(spark: SparkSession, world: World) -> None:
    """A process may die while it writes the first one; by itself Spark refuses to begin then."""
    world.send("1.jsonl", [{"id": 1, "n": 12}])
    for folder in ("offsets", "sources/0"):
        (world.state / "spark" / folder).mkdir(parents=True)
        for name in (".0.new", ".0.ab-cd.tmp", "..0.ab-cd.tmp.crc"):
            (world.state / "spark" / folder / name).write_text("v1")
    assert world.run(spark).events == 1
    assert world.matches() == {("1", "s1"): 1, ("1", "s2"): 1}


def test_files_without_a_batch_are_the_next(tmp_path: Path) -> None:
    """A process may die after it has noted files, and before it says that they are a batch."""
    notes = FileCheckpoint(tmp_path)
    notes.open()
    assert notes.under_way() is None
    assert notes.take([FoundFile("/in/a b", 1, 2)]) == 0
    assert notes.under_way() == 0
    notes.commit(0)
    assert notes.under_way() is None
    notes.take([FoundFile("/in/c", 1, 2)])
    (tmp_path / "offsets" / "1").unlink()
    assert notes.under_way() == 1
    assert notes.known() == {"/in/a b", "/in/c"}
    assert encoded("/in/é b") == "/in/é%20b"


def test_what_is_left_to_spark(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams that go on, and many new files."""
    world.send("1.jsonl", [{"id": 1, "n": 12}])
    assert why_stream(world.settings()) is None
    with pytest.raises(UnsureError, match="a stream that goes on, without --once"):
        run_stream(world.settings(once=False), quiet=True)
    monkeypatch.setattr("headgate.local.small.BYTES", 5)
    assert str(why_stream(world.settings())).startswith("the new files have 0 MB")
    assert [Path(file.path).name for file in new_files(world.settings())] == ["1.jsonl"]
