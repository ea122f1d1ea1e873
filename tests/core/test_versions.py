"""Versions of a snapshot: a reader finds the old one or the new one, whatever writers and pruners do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate import Engine, Subscription
from headgate.core.snapshot import MANIFEST, check_whole, digest_of, open_snapshot, write_snapshot
from headgate.core.versions import current, replacing
from headgate.core.versions.current import CURRENT, read_current, resolved, version_names
from headgate.core.versions.replacing import new_version
from headgate.errors import SnapshotError
from headgate.runtime.inventory import prune
from tests.core.opening import engine, read

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, first: int) -> None:
    """Write a version whose array begins with a number."""
    with new_version(path) as place:
        keys = np.arange(first, first + 10, dtype=np.int64)
        write_snapshot(place, "records", {"keys": keys}, counts={}, about={})


def first_of(path: Path) -> int:
    return int(open_snapshot(path, "records").arrays["keys"][0])


def entries(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write(tmp_path / "s", 1)
    return tmp_path / "s"


def test_versions_are_kept_and_one_counts(place: Path) -> None:
    before = resolved(place)
    old = open_snapshot(before, "records")
    write(place, 2)
    assert [name[:6] for name in version_names(place)] == ["000001", "000002"]
    assert entries(place) == sorted([CURRENT, *version_names(place)])
    assert (first_of(place), first_of(before), old.arrays["keys"][0]) == (2, 1, 1)
    named = read_current(place)
    assert named is not None
    assert named.digest == digest_of(place)
    assert named.name.endswith(named.digest[:16])


def test_the_same_content_is_not_kept_twice_unless_it_is_damaged(place: Path) -> None:
    write(place, 1)
    assert len(version_names(place)) == 1
    file = resolved(place) / "keys.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    write(place, 1)
    assert len(version_names(place)) == 2
    assert first_of(place) == 1
    check_whole(resolved(place))


def test_a_snapshot_without_versions_opens_and_gets_them(tmp_path: Path) -> None:
    """What was written before there were versions is one by itself; the next write puts it aside."""
    place = tmp_path / "s"
    built = Engine.build([Subscription("old", "age > 1")])
    built.backend.save(place, source=None)
    assert (place / MANIFEST).is_file()
    old = Engine.open(place)
    assert old.match({"age": 5}) == ["old"]
    engine(3).save(place)
    assert old.match({"age": 5}) == ["old"]
    assert entries(place) == sorted([CURRENT, *version_names(place)])
    assert len(Engine.open(place)) == 3


DAMAGE = {
    b"": "its file current names no version; compile it again",
    b"000001-0000000000000000": "its file current names no version; compile it again",
    b'{"format": "headgate-current", "version": 1, "name": "../x", "digest": ""}': "names no version",
    b'{"format": "headgate-current", "ver': "names no version; compile it again",
    b'{"format": "headgate-current", "version": 1, "name": "000009-0000000000000000", "digest": "0"}': (
        "names 000009-0000000000000000, which is not there; compile it again"
    ),
    b'{"format": "headgate-current", "version": 2, "what": 1}': (
        "has versions of format 2, and this Headgate reads 1: compile it to another place"
    ),
}


@pytest.mark.parametrize("text", DAMAGE)
def test_a_damaged_or_newer_current_is_refused_in_one_line(place: Path, text: bytes) -> None:
    (place / CURRENT).write_bytes(text)
    for opening in (first_of, Engine.open):
        with pytest.raises(SnapshotError) as refused:
            opening(place)
        assert DAMAGE[text] in str(refused.value)
        assert str(place) in str(refused.value)
        assert "\n" not in str(refused.value)
    write(place, 5)
    assert first_of(place) == 5


@pytest.mark.parametrize("step", ["body", "add_to_manifest", "version_names", "put_current"])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("fresh", [False, True])
def test_a_write_that_fails_changes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    failure: type[BaseException],
    fresh: bool,
) -> None:
    place = tmp_path / "s"
    if not fresh:
        write(place, 1)

    def fail(*_: object) -> None:
        raise failure("cut short")

    if step != "body":
        monkeypatch.setattr(replacing, step, fail)
    wanted = SnapshotError if failure is OSError else failure

    def attempt() -> None:
        with new_version(place, {"position": "7"}) as staged:
            if step == "body":
                staged.mkdir()
                fail()
            write_snapshot(staged, "records", {"keys": np.zeros(1, np.int64)}, counts={}, about={})

    with pytest.raises(wanted, match="cut short"):
        attempt()
    monkeypatch.undo()
    if not fresh:
        assert first_of(place) == 1
    # What came as far as its name is a version that nothing names: the next one is written beside it.
    assert not list(place.glob(".*"))
    write(place, 8)
    assert first_of(place) == 8


def test_what_a_killed_process_left_does_not_stand_in_the_way(tmp_path: Path) -> None:
    half = tmp_path / "s" / ".version-1.4194999.new"
    half.mkdir(parents=True)
    (half / "keys.npy").write_text("half")
    write(tmp_path / "s", 4)
    assert first_of(tmp_path / "s") == 4
    assert [path for path, _ in prune(tmp_path / "s", 2).removed] == [str(half)]


def test_a_reader_whose_version_is_removed_takes_the_next(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between asking `current` and opening, others may replace and prune: then it is asked again."""
    asked: list[Path] = []
    given = current.resolved

    def slow(path: Path) -> Path:
        found = given(path)
        if not asked:
            asked.append(found)
            write(place, 2)
            shutil.rmtree(found)
        return found

    monkeypatch.setattr(current, "resolved", slow)
    found = current.at_current(place, lambda each: open_snapshot(each, "records").arrays["keys"][0])
    assert (found, len(asked)) == (2, 1)


def test_pruning_keeps_two_and_what_is_mapped(place: Path) -> None:
    for number in range(2, 6):
        write(place, number)
    first, *_ = version_names(place)
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(place / first / "keys.npy")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"open\n"
        dry = prune(place, 2, dry=True)
        assert len(version_names(place)) == 5
        done = prune(place, 2)
        reader.communicate(b"")
    assert dry == done
    assert [name[:6] for name in version_names(place)] == ["000001", "000004", "000005"]
    assert [why for _, why in done.kept] == [CURRENT, "among the newest", f"process {reader.pid}"]
    assert first_of(place) == 5
    # The current one stays even if nothing shall be kept, and if it is not the newest.
    (place / CURRENT).write_bytes(current.text_of(current.Named(version_names(place)[1], "")))
    prune(place, 0)
    assert [name[:6] for name in version_names(place)] == ["000004"]


_HOLD = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
print("open", flush=True)
sys.stdin.read()
"""


def test_readers_never_find_half_a_replacement(tmp_path: Path) -> None:
    """A graph, with filters inside; a pruner removes versions meanwhile."""
    place = tmp_path / "s"
    engines = [engine(number) for number in range(4)]
    engines[0].save(place)
    done = threading.Event()
    told: list[tuple[int, list[str]]] = []
    readers = [threading.Thread(target=lambda: told.append(read(place, done.is_set))) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(1, 13):
        engines[number % 4].save(place)
        if number % 4 == 0:
            prune(place, 2)
    done.set()
    for reader in readers:
        reader.join()
    assert [wrong for _, wrong in told] == [[], []]
    assert min(times for times, _ in told) > 0


@pytest.mark.nightly
def test_reading_processes_never_find_half_a_replacement(tmp_path: Path) -> None:
    """For a minute, as processes of their own; what was 98 failures of 3,616 is none."""
    place = tmp_path / "s"
    engines = [engine(number) for number in range(4)]
    engines[0].save(place)
    command = [sys.executable, "-m", "tests.core.opening", str(place), "60"]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    replaced = 0
    while any(reader.poll() is None for reader in readers):
        replaced += 1
        engines[replaced % 4].save(place)
        if replaced % 10 == 0:
            prune(place, 2)
    told = [json.loads(reader.communicate()[0]) for reader in readers]
    print(f"{replaced:,} replacements, {sum(times for times, _ in told):,} reads, pid {os.getpid()}")
    assert [wrong for _, wrong in told] == [[], [], []]
    assert min(replaced, *(times for times, _ in told)) > 100
