"""A stream goes on after whatever ended it: nothing lost, nothing doubled, and else one clear line."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Engine, Subscription
from headgate.errors import HeadgateError, TableError
from headgate.local.stream import run_stream
from headgate.runtime.parts import PartFolder, PartWriter
from headgate.runtime.state import COMMITTED, PINNED, READY, State
from tests.lanes import some
from tests.streaming.killing import Feeder, check, make
from tests.streaming.stages import FORCED, STAGES, Server
from tests.streaming.world import World, read_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession


class Died(BaseException):
    """The process is gone."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Make a stream with two subscriptions."""
    made = World(tmp_path / "world")
    Engine.build([Subscription("s1", "n > 10"), Subscription("s2", "n < 15")]).save(made.snapshot)
    return made


def dies(monkeypatch: pytest.MonkeyPatch, world: World, stage: str, number: int, **more: Any) -> None:
    """Run a stream that dies when a batch has come to a stage; `renamed` is before it is committed."""
    real = State.put

    def put(state: State, at: int, record: Any) -> Any:
        if at == number and stage == "renamed" and record["stage"] == COMMITTED:
            raise Died
        found = real(state, at, record)
        if at == number and record["stage"] == stage:
            raise Died
        return found

    with monkeypatch.context() as patched:
        patched.setattr(State, "put", put)
        with pytest.raises(Died):
            world.run(**more)


# Another output


def test_another_output_when_a_batch_is_ready(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is put where it was staged for; the next ones go to the new place, and nothing is there twice."""
    world.send("1.jsonl", [{"id": 1, "n": 12}, "bad"])
    dies(monkeypatch, world, READY, 0)
    world.send("2.jsonl", [{"id": 2, "n": 12}, "worse"])
    other = World(world.root, {"output": str(world.root / "other"), "format": "parquet"})
    run_stream(other.settings(progress=1e9))
    told = capsys.readouterr().err
    assert f"batch 0 was ready for {world.output} and is put there; what comes now goes to" in told
    assert world.matches() == {("1", "s1"): 1, ("1", "s2"): 1}
    assert [row["row"] for row in world.dead()] == ["bad"]
    found = [tuple(row.values()) for row in read_folder(world.root / "other")]
    assert sorted(found) == [("2", "s1"), ("2", "s2")]
    assert [row["row"] for row in read_folder(world.root / "other-dead-letters")] == ["worse"]


@pytest.mark.parametrize("stage", [READY, "renamed"])
def test_the_output_was_moved_or_is_gone(world: World, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    """Moved, it is found where it is now; gone, the stream says so and waits for it."""
    world.send("1.jsonl", [{"id": 1, "n": 12}])
    dies(monkeypatch, world, stage, 0)
    moved = world.root / "moved"
    world.output.rename(moved)
    for output in (world.output, world.root / "third"):
        with pytest.raises(TableError, match=r"batch 0 of state .* is ready, and its files are in .*: put"):
            world.run(output=str(output), dead_letters=world.settings().dead)
        shutil.rmtree(output)
    if stage == "renamed":
        moved.rename(world.output)
        moved = world.output
    world.run(output=str(moved), dead_letters=world.settings().dead)
    assert sorted(row["subscription_id"] for row in read_folder(moved)) == ["s1", "s2"]


# Workers that outlive their driver


def test_a_worker_of_a_killed_driver_is_not_mixed_in(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the same part and attempt as one of the next driver, and writes while and after that works."""
    held: list[PartWriter] = []
    rows: list[pa.RecordBatch] = []
    real = PartWriter.write

    def kept(writer: PartWriter, some: pa.RecordBatch) -> None:
        real(writer, some)
        if not held and some.num_rows:
            held.append(writer)
            rows.append(some)
            raise Died

    world.send("1.jsonl", [{"id": 1, "n": 12}, {"id": 2, "n": 3}])
    with monkeypatch.context() as patched:
        patched.setattr(PartWriter, "write", kept)
        # As if the worker went on: it does not drop what it has begun.
        patched.setattr(PartWriter, "abandon", lambda _: None)
        with pytest.raises(Died):
            world.run()
    [orphan] = held

    def meanwhile(state: State, number: int, record: Any) -> Any:
        real(orphan, rows[0])
        return put(state, number, record)

    put = State.put
    monkeypatch.setattr(State, "put", meanwhile)
    world.run()
    # Its place is gone.
    with pytest.raises(OSError, match="No such file"):
        orphan.close()
    assert world.matches() == world.expected()
    assert not list((world.output / "_staged").glob("[0-9]*"))


def test_each_attempt_has_its_own_place(tmp_path: Path) -> None:
    folder = PartFolder(str(tmp_path), "jsonl")
    first = folder.prepare(3)
    (first / "late").write_text("x")
    second = folder.prepare(3)
    assert first != second
    assert not first.exists()
    # A worker that is late makes its place again.
    first.mkdir()
    (first / "batch-3-0.0.jsonl").write_text("old")
    (second / "batch-3-0.0.jsonl").write_text("new")
    folder.ready(second, ["batch-3-0.0.jsonl"]).commit()
    assert (tmp_path / "batch-3-0.jsonl").read_text() == "new"
    assert [file.name for file in (tmp_path / "_staged").iterdir()] == []


# What is damaged


def empty(data: bytes) -> bytes:
    """Leave nothing."""
    del data
    return b""


def half(data: bytes) -> bytes:
    """Tear it in the middle."""
    return data[: len(data) // 2]


def shorter(data: bytes) -> bytes:
    """Leave out the last byte."""
    return data[:-1]


def without_line(data: bytes) -> bytes:
    """Leave out the last line."""
    return data[: data.rstrip(b"\n").rfind(b"\n") + 1] if data.count(b"\n") > 1 else data[:-1]


DAMAGES = (empty, half, shorter, without_line)


def begun(
    world: World, monkeypatch: pytest.MonkeyPatch, stage: str, session: SparkSession | None = None
) -> None:
    """Leave a stream whose third batch is at a stage, with all that a state may have."""
    more = {"max_files": 2, "fold": 3, "format": "parquet"}
    world.more |= more
    for number in range(2):
        world.change(
            f"{number}.jsonl",
            [{"op": "subscribe", "id": f"t{number}{n}", "filter": "n > 3"} for n in range(2)],
        )
        for part in "ab":
            world.send(f"{number}{part}.jsonl", [{"id": f"{number}{part}", "n": 12}, "bad"])
        world.run(session)
    world.change("2.jsonl", [{"op": "unsubscribe", "id": "s1"}, {"op": "unsubscribe", "id": "s1"}])
    for part in "ab":
        world.send(f"2{part}.jsonl", [{"id": f"2{part}", "n": 12}, {"id": "0a", "n": 12}])
    dies(monkeypatch, world, stage, 2)


def files_of(world: World) -> Iterator[Path]:
    """List every file that the stream keeps for itself; of snapshots, which have checksums, two each."""
    for file in sorted(world.state.rglob("*")):
        if file.is_file() and ("snapshots" not in file.parts or file.name in {"manifest.json", "stream.npy"}):
            yield file
    for folder in ("out", "out-dead-letters", "out-rejected-changes"):
        yield from (file for file in sorted((world.root / folder / "_staged").rglob("*")) if file.is_file())
        yield world.root / folder / "columns.parquet"


def put_back(kept: Path, root: Path) -> None:
    """Have everything as it was, at the same place; snapshots do not change."""
    whole = shutil.ignore_patterns("snapshots", "snapshot")
    for place in root.iterdir():
        if place.name == "state":
            for each in place.iterdir():
                if each.name != "snapshots":
                    shutil.rmtree(each) if each.is_dir() else each.unlink()
        elif place.name != "snapshot":
            shutil.rmtree(place)
    shutil.copytree(kept, root, ignore=whole, dirs_exist_ok=True)


def rotated(data: bytes) -> bytes:
    """Damage in one of the ways, by what there is."""
    return DAMAGES[sum(data) % len(DAMAGES)](data)


CASES = [(READY, rotated), *((stage, damage) for stage in (PINNED, READY, "renamed") for damage in DAMAGES)]


def damaged(
    world: World,
    wanted: Callable[[Path], bool],
    damage: Callable[[bytes], bytes],
    session: SparkSession | None = None,
) -> dict[str, str]:
    """Damage files that the stream keeps for itself, one at a time; returns what was told, by file.

    What is refused is put back, and then the stream goes on.
    """
    kept = world.root.with_name("kept")
    shutil.copytree(world.root, kept)
    world.run(session)
    right, dead = world.matches(), sorted(row["row"] for row in world.dead())
    assert right == world.expected()
    told: dict[str, str] = {}
    files = [file for file in files_of(World(kept)) if wanted(file)]
    if damage is rotated:
        # The last of each kind, which is the one that counts.
        files = list({file.parent if file.stem.isdecimal() else file: file for file in files}.values())
    assert files
    for file in files:
        put_back(kept, world.root)
        place = world.root / file.relative_to(kept)
        data = file.read_bytes()
        changed = damage(data)
        if changed == data:
            continue
        # A snapshot shares its files with the one that it was linked from.
        place.unlink()
        place.write_bytes(changed)
        try:
            world.run(session)
        except HeadgateError as error:
            told[str(file.relative_to(kept))] = str(error)
            place.write_bytes(data)
            world.run(session)
        assert world.matches() == right, place
        assert sorted(row["row"] for row in world.dead()) == dead, place
        if "snapshots" in place.parts:
            place.write_bytes(data)
    assert not any("\n" in line for line in told.values())
    return told


@pytest.mark.parametrize(("stage", "damage"), some(CASES, 0))
def test_damage_is_told_or_recovered(
    world: World, monkeypatch: pytest.MonkeyPatch, stage: str, damage: Callable[[bytes], bytes]
) -> None:
    """Every file that the stream keeps for itself, torn or emptied."""
    begun(world, monkeypatch, stage)
    told = damaged(world, lambda _: True, damage)
    for name in ("stream.json", "base.json", "metadata", "_staged/owner"):
        assert any(place.endswith(name) for place in told), name
    named = {place: str(Path(place).parent) if "sources" in place else place for place in told}
    assert [line for place, line in told.items() if named[place] not in line] == []
    assert not any(Path(place).name in {"lock", "progress.jsonl", "columns.parquet"} for place in told)


@pytest.mark.nightly
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_of_notes_of_spark(
    spark: SparkSession, world: World, monkeypatch: pytest.MonkeyPatch, damage: Callable[[bytes], bytes]
) -> None:
    """Its checkpoint, with the checksums that it writes beside, read by Spark again."""
    begun(world, monkeypatch, PINNED, spark)
    told = damaged(world, lambda file: "spark" in file.relative_to(world.root.parent).parts, damage, spark)
    assert any(place.endswith("metadata") for place in told)


def test_an_emptied_segment_is_named(world: World) -> None:
    """It was a bare StopIteration once."""
    world.change("1.jsonl", [{"op": "subscribe", "id": "t", "filter": "n > 3"}])
    world.run()
    place = world.state / "log" / "0000000001.jsonl"
    place.write_bytes(b"")
    with pytest.raises(TableError) as error:
        world.run()
    assert str(error.value) == (
        f"{place} is empty: restore the state from a copy, or start with a new state and new outputs"
    )


# Kills


def test_killed_at_each_stage(tmp_path: Path) -> None:
    """A process that is killed at each stage in turn, with files and changes between; then all is right."""
    asked = [(stage, 1) for stage in STAGES] + [(FORCED, 9)]
    assert killed(World(tmp_path), asked, seed=7) == len(asked)


@pytest.mark.nightly
def test_killed_two_hundred_times(tmp_path: Path) -> None:
    """At all stages, again and again, at any of the times that a process comes to one."""
    rng = random.Random(200)
    stages = [rng.choice(STAGES) for _ in range(260)]
    asked = [(stage, rng.randrange(1, 30) if stage == FORCED else rng.choice((1, 1, 2))) for stage in stages]
    assert killed(World(tmp_path), asked, seed=8) >= 200


def killed(world: World, asked: list[tuple[str, int]], seed: int) -> int:
    """Run a stream that is killed as asked, and at last to its end; returns how often it was killed."""
    make(world, random.Random(seed), shards=1)
    world.more |= {"window": 3600.0, "keep": 100_000, "max_files": 1}
    feeder = Feeder(world, seed)
    count = 0
    with Server() as server:
        for stage, times in asked:
            feeder.feed()
            feeder.feed()
            world.change(f"x{count:06d}.jsonl", [{"op": "subscribe", "id": f"x{count}", "filter": "n > 90"}])
            count += server.run(world.settings(), stage, times)
    world.run()
    check(world, feeder)
    return count
