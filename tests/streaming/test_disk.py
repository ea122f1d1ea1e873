"""What a stream keeps is on the disk before anything rests on it; a full disk is named, and harms nothing."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Engine, Subscription
from headgate.core import machine
from headgate.core.machine import disk_error, force_all, naming
from headgate.errors import HeadgateError, MachineError
from headgate.runtime.state import COMMITTED, READY, State
from headgate.stream.worker import _Part
from tests.lanes import some
from tests.streaming.killing import COMMAND, LEAN
from tests.streaming.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

PAGE = 4096
SIZE = 4 << 20


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Give folders that are small disks of their own."""
    mounted: list[Path] = []

    def mount(name: str) -> Path:
        place = tmp_path / "world" / name
        place.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "-l", str(place)], check=True)


def leave(place: Path, pages: int) -> None:
    """Fill a disk but for some pages."""
    filler = place / ".filler"
    filler.unlink(missing_ok=True)
    with filler.open("wb") as file:
        free = os.statvfs(place)
        file.write(b"x" * max(0, free.f_bavail * free.f_frsize - pages * PAGE))


def fed(root: Path, more: dict[str, Any]) -> World:
    """Make a stream with something for each of its places."""
    world = World(root, more)
    Engine.build([Subscription("s1", "n > 10"), Subscription("s2", "n < 150")]).save(world.snapshot)
    world.change(
        "1.jsonl", [{"op": "subscribe", "id": "t", "filter": "n > 3"}, {"op": "unsubscribe", "id": "x"}]
    )
    for number in range(2):
        rows = [{"id": f"{number} {n}", "n": n} for n in range(200)]
        world.send(f"{number}.jsonl", [*rows, *(f"bad {n}" for n in range(100))])
    return world


PLACES = ("state", "out", "out-dead-letters", "out-rejected-changes")
CASES = [(name, form) for name in PLACES for form in ("jsonl", "parquet")]


@pytest.mark.parametrize(("name", "form"), some(CASES, 1, 2))
def test_a_full_disk_is_named(tmp_path: Path, small: Callable[[str], Path], name: str, form: str) -> None:
    """With a page more each time the stream gets further, until there is room; then all is there, once."""
    place = small(name)
    world = fed(tmp_path / "world", {"format": form, "max_files": 1, "fold": 1})
    lines = []
    for pages in range(1000):
        leave(place, pages)
        try:
            world.run()
            break
        except MachineError as error:
            lines.append(str(error))
    (place / ".filler").unlink()
    named = {line.removeprefix(f"the disk of {place}").split("/")[1] for line in lines}
    assert ("snapshots" if name == "state" else "_staged") in named
    assert len(named) > (name == "state")
    for line in lines:
        assert line.startswith(f"the disk of {place}")
        assert line.endswith(" is full: make room there, then run the same command again; nothing is lost")
    # The log was folded aside, where nobody was waiting.
    world.run()
    assert world.matches() == world.expected()
    assert len(world.matches()) == 2 * (189 + 150 + 196)
    assert sorted(row["row"] for row in world.dead()) == sorted(2 * [f"bad {n}" for n in range(100)])
    assert len(world.rejected()) == 1


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["state/spark", "out", "out-dead-letters"])
def test_a_full_disk_is_named_on_spark(
    spark: SparkSession, tmp_path: Path, small: Callable[[str], Path], name: str
) -> None:
    """What Java and workers cannot write is told in the same way, and nothing is lost."""
    place = small(name)
    world = fed(tmp_path / "world", {"max_files": 1})
    lines = []
    for pages in (0, 3, 64):
        leave(place, pages)
        try:
            world.run(spark)
            break
        except MachineError as error:
            lines.append(str(error))
    (place / ".filler").unlink()
    world.run(spark)
    assert lines
    for line in lines:
        assert line.startswith(f"the disk of {place}")
        assert line.endswith(" is full: make room there, then run the same command again; nothing is lost")
    assert world.matches() == world.expected()
    assert sorted(row["row"] for row in world.dead()) == sorted(2 * [f"bad {n}" for n in range(100)])


def test_what_is_full_is_told(tmp_path: Path) -> None:
    full = OSError(28, "No space left on device")
    with pytest.raises(MachineError, match=f"the disk of {tmp_path} is full"), naming(tmp_path):
        raise full
    other = OSError(5, "Input/output error")
    with pytest.raises(OSError, match="Input/output error") as error, naming(tmp_path):
        raise other
    assert str(disk_error(error.value)) == f"{tmp_path}: Input/output error"
    assert str(disk_error(OSError("the disk is broken"))) == "the disk is broken"
    assert isinstance(disk_error(full), MachineError)
    # Arrays are written by a function that says how much, and not why.
    assert not machine.is_full(OSError("10 requested and 3 written"), tmp_path)


def test_nothing_rests_on_what_is_not_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and the folders with their names are forced before the record that names them is written."""
    world = fed(tmp_path / "world", {})
    forced: set[tuple[int, int]] = set()
    fsync, put, replace = os.fsync, State.put, Path.replace
    folding = False

    def key(place: Path | int) -> tuple[int, int]:
        about = os.fstat(place) if isinstance(place, int) else place.stat()
        return about.st_ino, about.st_mtime_ns

    def noted(file: int) -> None:
        fsync(file)
        forced.add(key(file))

    def moved(place: Path, target: Path) -> Path:
        assert key(place) in forced, place
        return replace(place, target)

    def checked(state: State, number: int, record: Any) -> Any:
        if record["stage"] == READY:
            for note in (record["note"], record["dead"]):
                place = Path(note["folder"]) / "_staged" / note["staged"]
                assert {key(each) for each in (place, place.parent, *place.iterdir())} <= forced
                assert {file.name for file in place.iterdir()} == set(note["files"])
            assert {key(state.seen), key(state.seen / f"{number}-{number}.npy")} <= forced
        if record["stage"] == COMMITTED:
            assert {key(Path(record[name]["folder"])) for name in ("note", "dead")} <= forced
            until = time.monotonic() + 30
            while folding and len(list(state.snapshots.glob("[!.]*"))) < 2:
                assert time.monotonic() < until
                time.sleep(0.01)
        snapshot = state.snapshots / record["snapshot"]
        assert key(state.log) in forced
        # While it is folded aside something else is in it, too.
        assert folding or key(state.snapshots) in forced
        for each in (*state.log.iterdir(), *snapshot.rglob("*")):
            assert each.is_dir() or key(each) in forced, each
        return put(state, number, record)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(Path, "replace", moved)
    monkeypatch.setattr(State, "put", checked)
    world.run()
    folding = True
    world.change("2.jsonl", [{"op": "subscribe", "id": "new", "filter": "n > 4"}])
    for number in range(2):
        world.send(f"more {number}.jsonl", [{"id": number, "n": 5}, "bad"])
    world.run(fold=1, max_files=1)
    assert len({record["snapshot"] for record in State(world.state).committed()}) > 1
    assert world.matches() == world.expected()


def test_whole_folders_are_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_text("x")
    forced = []
    monkeypatch.setattr(os, "fsync", lambda file: forced.append(Path(f"/proc/self/fd/{file}").readlink()))
    force_all(tmp_path / "a")
    assert sorted(forced) == [tmp_path / each for each in ("a", "a/b", "a/b/file")]


def failing(world: World, monkeypatch: pytest.MonkeyPatch, error: Exception) -> str:
    """Run a stream in which reading fails; returns the line that it ends with."""

    def broken(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(_Part, "judged", broken)
        with pytest.raises(HeadgateError) as told:
            world.run()
    assert "\n" not in str(told.value)
    return str(told.value)


def test_a_failure_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What led to a defect is in a file; and the stream goes on when it is mended."""
    world = fed(tmp_path / "world", {})
    place = world.state / "failure.txt"
    assert failing(world, monkeypatch, ZeroDivisionError("by\nnothing")) == (
        "the stream ended by a defect of Headgate, ZeroDivisionError: by nothing; where it came from is in "
        f"{place}: run the same command again, and report it with that file if it comes again"
    )
    assert "in broken" in place.read_text()
    assert failing(world, monkeypatch, OSError(5, "Input/output error", "x")) == "x: Input/output error"
    assert failing(world, monkeypatch, MemoryError()).startswith("the stream ran out of memory: give it more")
    world.run()
    assert world.matches() == world.expected()


BREAKS = """
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder

class Breaks(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "headgate.stream.worker":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module
        def changed(module):
            execute(module)
            def broken(part, given):
                {what}
            module._Part.judged = broken
        spec.loader.exec_module = changed
        return spec

sys.meta_path.insert(0, Breaks())
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("what", "line"),
    [
        (
            "raise ZeroDivisionError('by\\nnothing')",
            "the stream ended by a defect of Headgate, in a worker: ZeroDivision",
        ),
        ("raise OSError(5, 'Input/output error', 'x')", "x: Input/output error"),
        ("raise MemoryError", "a Python worker ran out of memory: give workers more"),
        ("import os; os.kill(os.getpid(), 9)", "Spark lost a worker, usually because memory ran out"),
    ],
)
def test_a_failure_in_a_worker_is_one_line(tmp_path: Path, what: str, line: str) -> None:
    """The command ends with it and nothing else on stderr; when that is mended, it goes on."""
    world = fed(tmp_path / "world", {})
    (tmp_path / "broken").mkdir()
    # What Python runs before anything else, in workers, too.
    (tmp_path / "broken" / "sitecustomize.py").write_text(BREAKS.format(what=what))
    command = [
        *COMMAND, "stream", "--snapshot", str(world.snapshot), "--events", str(world.events),
        "--output", str(world.output), "--state", str(world.state), "--changes", str(world.changes),
        "--files", "jsonl", "--quiet", "--once", "--master", "local[1]", "--conf", LEAN,
    ]  # fmt: skip
    path = os.pathsep.join((str(tmp_path / "broken"), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    [told] = done.stderr.splitlines()
    assert told.startswith(f"headgate: {line}")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert world.matches() == world.expected()
