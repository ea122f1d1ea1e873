"""A stream that goes on: changes and snapshots while it runs, how it ends, what is refused at its start."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Engine, Subscription
from headgate.core.versions.replacing import new_version
from headgate.errors import HeadgateError
from headgate.stream.request import check_request
from headgate.tables.requests import contained
from tests.streaming.world import PARQUET, State, World, move

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.stream.reporting import StreamResult

PATIENCE = 60.0


class Running:
    """A stream in a thread of its own; ended when its world is, also where a test has failed."""

    def __init__(self, spark: SparkSession, world: World, **more: Any) -> None:
        self.world = world
        self.stop = threading.Event()
        self.done: StreamResult | None = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(spark,), kwargs=more, daemon=True)
        world.ends.append(self.stop.set)
        self._thread.start()

    def _run(self, spark: SparkSession, **more: Any) -> None:
        try:
            self.done = self.world.run(spark, self.stop, once=False, every=0.05, **more)
        except BaseException as error:  # noqa: BLE001 -- raised again by `end`
            self.error = error

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so."""
        until = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < until
            assert self._thread.is_alive(), self.error
            time.sleep(0.01)

    def end(self) -> StreamResult:
        """End the stream, and return what it did."""
        self.stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        assert self.done is not None
        return self.done


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Make a stream with one subscription."""
    found = World(tmp_path)
    Engine.build([Subscription("s1", "n > 10")]).save(found.snapshot)
    yield found
    for end in found.ends:
        end()


def test_everything_while_it_runs(spark: SparkSession, world: World) -> None:
    """Changes and a new snapshot take effect with the next batch; each event has one answer."""
    running = Running(spark, world, metrics=str(world.root / "metrics.txt"))
    world.send("1.jsonl", [{"id": 1, "n": 20}])
    running.wait(lambda: len(world.matches()) == 1)
    world.change("1.jsonl", [{"op": "subscribe", "id": "s2", "filter": "n > 15"}, {"op": "bad"}])
    world.send("2.jsonl", [{"id": 2, "n": 20}])
    running.wait(lambda: len(world.matches()) == 3)
    # Without events, too, changes are taken in and told.
    world.change("2.jsonl", [{"op": "unsubscribe", "id": "none"}])
    running.wait(lambda: len(world.rejected()) == 2)
    with new_version(world.snapshot, contained(str(world.changes))) as place:
        Engine.build([Subscription("t1", "n > 19")]).backend.save(place, source=None)
    world.send("3.jsonl", [{"id": 3, "n": 20}])
    running.wait(lambda: ("3", "t1") in world.matches())
    done = running.end()
    assert world.matches() == {
        ("1", "s1"): 1, ("2", "s1"): 1, ("2", "s2"): 1, ("3", "t1"): 1,
    }  # fmt: skip
    assert (done.events, done.changes, done.rejected_changes) == (3, 1, 2)
    assert (done.stopped, done.subscriptions) == ("asked", 1)
    text = (world.root / "metrics.txt").read_text()
    assert "headgate_events_total 3" in text
    assert "headgate_matches_total 4" in text
    assert (world.state / "progress.jsonl").exists()


def _answered(world: World, event: str) -> bool:
    return any(match[0] == event for match in world.matches())


@pytest.mark.nightly
def test_folding_while_it_runs(spark: SparkSession, world: World) -> None:
    """A log that is folded again and again gives the answers of one that is not."""
    running = Running(spark, world, fold=5)
    for number in range(8):
        rows = [{"op": "subscribe", "id": f"f{number}-{n}", "filter": f"n > {n}"} for n in range(4)]
        world.change(f"{number}.jsonl", rows)
        world.send(f"{number}.jsonl", [{"id": number, "n": 3}])
        running.wait(partial(_answered, world, str(number)))
    running.end()
    # Of each event those that were there by then, with a bound below 3.
    assert world.matches().total() == sum(3 * (number + 1) for number in range(8))
    assert max(record["since"] for record in State(world.state).committed()) > 0


@pytest.mark.nightly
def test_ends(spark: SparkSession, world: World) -> None:
    """By itself: at the end of what is there, or when its time is over."""
    world.send("1.jsonl", [{"id": 1, "n": 20}])
    assert world.run(spark).stopped == "once"
    assert world.run(spark, once=False, seconds=0.5).stopped == "seconds"


def _has_matches(world: World, count: int) -> bool:
    return len(world.matches()) == count


@pytest.mark.nightly
def test_rates_and_finished(spark: SparkSession, world: World) -> None:
    """So many files a batch; and files are archived or deleted when they are done."""
    for number in range(5):
        world.send(f"{number}.jsonl", [{"id": number, "n": 20}])
    archive = world.root / "archive"
    done = world.run(spark, max_files=2, finished=f"archive:{archive}")
    assert (done.batches, done.events) == (3, 5)
    for number in range(5, 9):
        world.send(f"{number}.jsonl", [{"id": number, "n": 20}])
    running = Running(spark, world, finished="delete")
    running.wait(lambda: len(world.matches()) == 9)
    # Spark removes the files of a batch when it begins a later one.
    before = {f"{number}.jsonl" for number in range(5, 9)}
    for number in range(9, 20):
        world.send(f"{number}.jsonl", [{"id": number, "n": 20}])
        running.wait(partial(_has_matches, world, number + 1))
        if not before & {file.name for file in world.events.iterdir()}:
            break
    else:
        pytest.fail(f"{sorted(before)} are still there after 11 batches")
    running.end()
    assert list(archive.rglob("*.jsonl"))


def test_state_is_refused(session: SparkSession | None, world: World) -> None:
    """A checkpoint that is gone, and a state that another stream holds."""
    world.send("1.jsonl", [{"id": 1, "n": 20}])
    world.run(session)
    with State(world.state).held(), pytest.raises(HeadgateError, match="in use by another stream"):
        world.run(session)
    (world.state / "spark" / "metadata").rename(world.root / "metadata")
    with pytest.raises(HeadgateError, match="belongs to another checkpoint"):
        world.run(session)
    (world.root / "metadata").rename(world.state / "spark" / "metadata")
    assert world.run(session).events == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"events": "nowhere"}, "nowhere is not a folder"),
        ({"changes": "nowhere"}, "nowhere is not a folder"),
        ({"events": "s3a://bucket/in"}, "a folder that all machines see"),
        ({"output": "hdfs:///out"}, "a folder that all machines see"),
        ({"snapshot": "nowhere"}, "not a snapshot"),
        ({"top": 3}, "compiled without ranks"),
        ({"mode": "relaxed"}, "say with top how many"),
        ({"format": "csv"}, "format is 'csv': there are parquet, jsonl"),
        ({"every": -1.0}, "every is -1"),
        ({"fold": 0}, "fold is 0"),
        ({"max_rows": 5}, "max_rows counts messages of a broker"),
        ({"finished": "burn"}, "finished is 'burn'"),
        ({"content_type": "turtle"}, "filters of records"),
    ],
)
def test_refused_before_spark(world: World, more: dict[str, Any], words: str) -> None:
    """One line says what is wrong."""
    with pytest.raises(HeadgateError, match=words) as found:
        check_request(replace(world.settings(), **more))
    assert "\n" not in str(found.value)


def test_places_are_looked_at(world: World) -> None:
    """Folders that hold something else, or that are named twice, are refused."""
    for folder in (world.output, world.root / "in-archive"):
        folder.mkdir()
    move(world.output, "mine.txt", "mine")
    with pytest.raises(HeadgateError, match="which no stream wrote"):
        check_request(world.settings())
    (world.output / "mine.txt").rename(world.output / "batch-0000000000-00000.jsonl")
    with pytest.raises(HeadgateError, match="another format"):
        check_request(world.settings(format=PARQUET))
    with pytest.raises(HeadgateError, match="named twice"):
        check_request(world.settings(dead_letters=str(world.events)))
    with pytest.raises(HeadgateError, match="a folder outside of"):
        check_request(world.settings(finished=f"archive:{world.events}/done"))
