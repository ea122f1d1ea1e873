"""What a stream guards against: outputs of others, rows that changed under it, an end that hangs."""

from __future__ import annotations

import threading
import time
from array import array
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headgate import Engine, Subscription
from headgate.core.event import EVENT_TIME, SECOND_MARK
from headgate.core.values import MARKS
from headgate.errors import EventError, TableError
from headgate.runtime.snapshots import Version
from headgate.runtime.state import State
from headgate.stream.batch import Batches, StreamEnd, check_removed
from headgate.stream.reading import SourceReading, read_given
from headgate.stream.rows import Origin, PartReport, Survey
from headgate.stream.running import check_kind
from headgate.stream.sources.logs import COLUMNS
from tests.streaming.world import World, lines, log_of, move

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def message(value: bytes | None, origin: str = "subject") -> pa.RecordBatch:
    """Make what a source gives: a message, or the place of a file."""
    columns: list[pa.Array[Any]] = [
        pa.array([value], pa.binary()),
        pa.array([None], pa.string()),
        pa.array([origin]),
        pa.array([None], pa.timestamp("us")),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(COLUMNS))


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path)
    Engine.build([Subscription("s", "age > 1")]).save(found.snapshot)
    return found


def test_outputs_of_another_state_are_not_replaced(session: SparkSession | None, world: World) -> None:
    world.send("1.jsonl", [{"id": 1, "age": 5}, {"id": 2}, "{"])
    world.run(session)
    before = world.matches()
    assert sum(before.values()) == 1
    world.send("2.jsonl", [{"id": 3, "age": 5}])
    with pytest.raises(TableError, match="has files of another stream, or of an earlier state of this one"):
        world.run(session, state=str(world.root / "other"))
    assert world.matches() == before
    world.run(session)
    assert sum(world.matches().values()) == 2


def test_a_batch_is_done_with_its_own_rows(session: SparkSession | None, world: World) -> None:
    world.send("1.jsonl", [{"id": 1, "age": 5}])
    world.run(session)
    world.send("2.jsonl", [{"id": 2, "age": 5}])
    world.run(session)
    # As after a power cut: Spark's notes of the last batch are gone, and ours are not.
    for folder in ("offsets", "commits", "sources/0"):
        for name in ("1", ".1.crc"):
            (world.state / "spark" / folder / name).unlink(missing_ok=True)
    world.send("3.jsonl", [{"id": 3, "age": 5}])
    with pytest.raises(TableError, match=r"batch 1 of state .* was done with other rows"):
        world.run(session)


def test_another_kind_of_output_is_refused(session: SparkSession | None, world: World) -> None:
    world.send("1.jsonl", [{"id": 1, "age": 5}])
    world.run(session)
    state = State(world.state)
    with pytest.raises(TableError, match="a stream that writes to files, and nats is another kind of output"):
        check_kind(state, replace(world.settings(), output="nats://127.0.0.1:1/stream/subject"))
    check_kind(state, world.settings())


@pytest.mark.nightly
def test_the_end_waits_for_no_batch_that_waits_for_it(spark: SparkSession, world: World) -> None:
    world.send("1.jsonl", [{"id": 1, "age": 5}])
    stop = threading.Event()
    running = threading.Thread(target=lambda: world.run(spark, stop, once=False, every=0.01), daemon=True)
    running.start()
    until = time.monotonic() + 60
    while not world.output.exists() or not list(world.output.glob("batch-*")):
        assert time.monotonic() < until
        time.sleep(0.05)
    sending = threading.Event()

    def send() -> None:
        number = 2
        while not sending.is_set():
            world.send(f"{number}.jsonl", [{"id": number, "age": 5}])
            number += 1
            time.sleep(0.02)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    time.sleep(1.0)
    stop.set()
    running.join(30)
    sending.set()
    sender.join()
    assert not running.is_alive()
    world.run(spark)
    assert sum(world.matches().values()) == len(list(world.events.iterdir()))


def test_a_batch_is_not_begun_when_the_stream_ends() -> None:
    batches = Batches.__new__(Batches)
    batches.under_way, batches.ending = threading.Lock(), True
    for held in (False, True):
        if held:
            batches.under_way.acquire()
        with pytest.raises(StreamEnd):
            batches(None, 1)  # type: ignore[arg-type]


def part(number: int, name: str, *marks: int) -> PartReport:
    return PartReport(number, hashes=array("Q", marks), origins=[Origin(name, len(marks), None)])


def test_of_two_parts_the_first_has_an_event() -> None:
    survey = Survey([part(0, "b", 1, 2), part(1, "a", 2, 3), part(2, "c", 2)])
    assert survey.repeated(by_name=True) == {0: {2}, 2: {2}}
    assert survey.repeated(by_name=False) == {1: {2}, 2: {2}}
    assert not survey.has_once([2])
    again = Survey([part(0, "b", 1), part(1, "a", 2, 3), part(2, "c")])
    assert again.repeated(by_name=True) == {}
    assert again.has_once([2])
    # The one that was left lost its place meanwhile.
    assert not Survey([part(0, "b", 1), part(1, "a", 3)]).has_once([2])


def test_whoever_did_not_catch_up_begins_anew(world: World) -> None:
    log = world.root / "log"
    log.mkdir()
    head = {"version": 1, "position": None, "changes": 1, "at": 0}
    change = {"op": "subscribe", "id": "new", "filter": "age > 2"}
    move(log, "0000000001.jsonl", lines([head, change]))
    at = Version(str(world.snapshot), 0, 2, str(log), "me")
    with pytest.raises(TableError, match=r"0000000002.jsonl is missing: restore the state"):
        at.open()
    empty = {**head, "changes": 0}
    move(log, "0000000002.jsonl", lines([empty]))
    assert len(at.open()) == 2
    # Another state at the same place has other changes.
    move(log, "0000000001.jsonl", lines([empty]))
    assert len(at.open()) == 2
    assert len(at._replace(owner="other").open()) == 1


def test_the_log_is_folded_once_though_no_batch_comes(world: World) -> None:
    state = State(world.state)
    subscriptions = log_of(world.settings(fold=2), state)
    for number in range(12):
        world.change(f"{number:02d}.jsonl", [{"op": "subscribe", "id": f"n{number}", "filter": "age > 2"}])
        subscriptions.poll()
        subscriptions.close()
    assert len(list(state.snapshots.iterdir())) == 2
    assert subscriptions.operations == {"subscribe": 12}
    subscriptions.pin()
    subscriptions.forget()
    assert len(list(state.snapshots.iterdir())) == 1


def test_versions_without_a_change_are_folded_too(world: World) -> None:
    state = State(world.state)
    subscriptions = log_of(world.settings(fold=4), state)
    for number in range(12):
        world.change(f"{number:02d}.jsonl", [{"op": "unsubscribe", "id": "nobody"}])
        subscriptions.poll()
        subscriptions.close()
        subscriptions.pin()
        subscriptions.forget()
    assert len(list(state.log.iterdir())) <= 4


def test_an_error_of_the_disk_is_no_dead_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = SourceReading("records", None, "time")
    (tmp_path / "1.jsonl").write_text('{"id": 1}\n')
    given = message(None, origin=str(tmp_path / "1.jsonl"))
    assert [each.event.id for [each] in read_given([given], reading)] == [1]  # type: ignore[union-attr]
    gone = message(None, origin=str(tmp_path / "gone.jsonl"))
    [[letter]] = read_given([gone], reading)
    assert "cannot be read: No such file" in str(letter.event)

    def stale(*_: Any, **__: Any) -> None:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(Path, "open", stale)
    with pytest.raises(OSError, match="Stale"):
        list(read_given([given], reading))


@pytest.mark.parametrize("mark", ["", *MARKS])
def test_a_record_has_its_time_whatever_names_mean(mark: str) -> None:
    given = message(b'{"id": 1, "time": "2026-01-01T10:00:00Z"}')
    [[row]] = read_given([given], SourceReading("records", None, "time", mark=mark))
    assert not isinstance(row.event, EventError)
    assert row.event.attributes_as(mark)[EVENT_TIME] == row.event.time is not None


@pytest.mark.parametrize("content", ["records", "xml"])
def test_a_file_may_begin_with_one_byte_order_mark(tmp_path: Path, content: str) -> None:
    reading = SourceReading(content, "xml" if content == "xml" else None, "time")
    file = tmp_path / "1.jsonl"
    for marks in (1, 2):
        file.write_text("\ufeff" * marks + lines([{"id": 1, "data": "<a/>"}, {"id": 2, "data": "<a/>"}]))
        [given] = read_given([message(None, origin=str(file))], reading)
        refused = [str(each.event) for each in given if isinstance(each.event, EventError)]
        assert refused == ([] if marks == 1 else [f"not valid JSON: {SECOND_MARK}"])


def test_a_file_behind_a_link_that_leads_out_is_a_dead_letter(tmp_path: Path) -> None:
    for name in ("in", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.jsonl").write_text('{"id": 1}\n')
    folder = tmp_path / "in"
    (folder / "b.jsonl").symlink_to("a.jsonl")
    (folder / "c.jsonl").symlink_to(tmp_path / "outside" / "a.jsonl")
    (folder / "sub").symlink_to(tmp_path / "outside")
    (tmp_path / "link").symlink_to(folder)
    for root in (folder, tmp_path / "link"):
        reading = SourceReading("records", None, "time", str(root))
        names = ("a.jsonl", "b.jsonl", "c.jsonl", "sub/a.jsonl")
        [given] = read_given([message(None, origin=str(root / name)) for name in names], reading)
        assert [isinstance(each.event, EventError) for each in given] == [False, False, True, True]
        assert str(given[-1].event) == f"the file lies behind a link that leads out of {root}"
        assert given[-1].text() == str(root / "sub/a.jsonl")


def test_nothing_is_removed_behind_a_link_to_a_folder(session: SparkSession | None, world: World) -> None:
    """Spark would delete what it finds there, when the batch is done."""
    outside = world.root / "outside"
    outside.mkdir()
    (outside / "a.jsonl").write_text('{"id": 1, "age": 2}\n')
    (world.events / "sub").symlink_to(outside)
    with pytest.raises(TableError, match="sub is a link to a folder, which is not followed"):
        world.run(session)
    # One that comes while the stream runs.
    files = [str(world.events / "sub" / "a.jsonl"), str(world.events / "b.jsonl")]
    check_removed(files, world.settings())
    with pytest.raises(TableError, match=r"sub lies behind a link that leads out of .*: remove the link"):
        check_removed(files, world.settings(finished="delete"))
    (world.events / "sub").unlink()
    (world.events / "c.jsonl").symlink_to(outside / "a.jsonl")
    world.send("d.jsonl", [{"id": 2, "age": 2}])
    done = world.run(session, finished="delete")
    assert (done.events, done.malformed) == (1, 1)
    assert world.dead()[0]["reason"] == f"the file lies behind a link that leads out of {world.events}"
    world.send("e.jsonl", [{"id": 3, "age": 2}])
    world.run(session, finished="delete")
    assert (outside / "a.jsonl").exists()


def test_an_empty_message_is_a_dead_letter() -> None:
    [[letter]] = read_given([message(b"  ")], SourceReading("records", None, "time"))
    assert isinstance(letter.event, EventError)
    assert str(letter.event) == "the message is empty"
