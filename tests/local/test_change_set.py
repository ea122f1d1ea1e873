"""Tables that change together: whatever fails and whenever the process ends, all of them change or none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headgate import Subscription
from headgate.errors import TableError
from headgate.jobs.match import match_events
from headgate.local.runner import LocalRunner
from headgate.records.index.index import RecordIndex
from headgate.tables import change_set
from headgate.tables.change_set import changing, finish
from headgate.tables.writing import write_table
from tests.spark.files import get_table, names, put, put_lines

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ("out.parquet", "out-rejected.jsonl", "more.csv")
"""The first is moved last."""


def write(folder: Path, word: str) -> None:
    """Write all tables anew; each has one word."""
    paths = [str(folder / name) for name in NAMES]
    with changing(paths) as changes:
        for path in paths:
            write_table(pa.table({"word": [word]}), changes.staged(path))


def read(folder: Path) -> list[str]:
    """Read them; a table that is not there has no word."""
    places = [folder / name for name in NAMES]
    return [get_table(place)[0]["word"] if place.exists() else "" for place in places]


def killed(work: Callable[[], None]) -> None:
    """Do something in a process of its own, which ends in the midst of it without any clean-up."""
    process = os.fork()
    if not process:
        try:
            work()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 9, "it was killed"


def end(*_: object) -> None:
    os._exit(9)


@pytest.mark.parametrize("before", ["", "old"])
@pytest.mark.parametrize("in_one_step", [True, False])
def test_a_process_that_is_killed_between_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, in_one_step: bool
) -> None:
    if not in_one_step:
        # As on file systems that cannot exchange two files.
        monkeypatch.setattr(change_set, "_EXCHANGE", 1 << 20)
    for moves in range(len(NAMES) + 1):
        folder = tmp_path / str(moves)
        folder.mkdir()
        if before:
            write(folder, before)

        def work(folder: Path = folder, moves: int = moves) -> None:
            done, move = [0], change_set._Move.do  # noqa: SLF001

            def counted(each: change_set._Move) -> None:
                if done[0] == moves:
                    end()
                done[0] += 1
                move(each)

            change_set._Move.do = counted  # type: ignore[assignment, method-assign] # noqa: SLF001
            change_set.ChangeSet.discard = end  # type: ignore[method-assign, assignment]
            write(folder, "new")

        killed(work)
        # Each table is whole, and the first is new only when the others are.
        assert read(folder) == [*[before] * (3 - moves), *["new"] * moves]
        finish(str(folder / NAMES[0]))
        assert read(folder) == ["new"] * 3
        assert names(folder) == sorted(NAMES)


def test_a_process_that_is_killed_while_it_writes(tmp_path: Path) -> None:
    write(tmp_path, "old")

    def work() -> None:
        with changing([str(tmp_path / NAMES[0])]) as changes:
            put(Path(changes.staged(str(tmp_path / NAMES[0]))) / "part-0", "half")
            end()

    killed(work)
    assert read(tmp_path) == ["old"] * 3
    assert len(names(tmp_path)) == 4
    with changing([str(tmp_path / NAMES[0])]) as one:
        place = Path(one.staged(str(tmp_path / NAMES[0])))
        # Another that is alive is left alone.
        with changing([str(tmp_path / NAMES[0])]):
            assert place.parent.is_dir()
        write_table(pa.table({"word": ["new"]}), str(place))
    assert read(tmp_path) == ["new", "old", "old"]
    assert names(tmp_path) == sorted(NAMES)


@pytest.mark.parametrize("before", ["", "old"])
def test_what_was_moved_is_moved_back_if_another_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    if before:
        write(tmp_path, before)
    move = change_set._Move.do  # noqa: SLF001

    def refuse(each: change_set._Move) -> None:
        if each.place.name == NAMES[0]:
            raise OSError(28, "No space left on device", str(each.place))
        move(each)

    monkeypatch.setattr(change_set._Move, "do", refuse)  # noqa: SLF001
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path, "new")
    assert read(tmp_path) == [before] * 3
    assert names(tmp_path) == (sorted(NAMES) if before else [])


def test_a_note_that_is_damaged_is_told(tmp_path: Path) -> None:
    write(tmp_path, "old")
    put(tmp_path / f".{NAMES[0]}.changing", "[{")
    with pytest.raises(TableError, match=r"\.changing is damaged, and tables beside it may be of two runs"):
        write(tmp_path, "new")
    assert read(tmp_path) == ["old"] * 3


def test_a_match_that_fails_changes_nothing(tmp_path: Path) -> None:
    RecordIndex.build([Subscription(1, "a > 1")]).save(tmp_path / "s")
    put_lines(tmp_path / "e.jsonl", [{"id": 1, "a": 2}, {"a": 2}])

    def match(events: str = "e.jsonl") -> None:
        match_events(
            LocalRunner(quiet=True),
            str(tmp_path / "s"),
            str(tmp_path / events),
            str(tmp_path / "m.jsonl"),
            rejected=str(tmp_path / "r.jsonl"),
            stats=str(tmp_path / "stats.parquet"),
        )

    match()
    there = ["e.jsonl", "m.jsonl", "r.jsonl", "s", "stats.parquet"]
    assert [name for name in names(tmp_path) if not name.endswith(".lock")] == there
    before = {name: (tmp_path / name).read_bytes() for name in there if name != "s"}
    put_lines(tmp_path / "f.jsonl", [{"id": 1, "a": 2}, {"b": 2}])
    put_lines(tmp_path / "g.jsonl", [{"id": n, "a": 2} for n in range(9)])
    # Statistics are written last, and about ids of another type than those of the file.
    RecordIndex.build([Subscription("x", "a > 1")]).save(tmp_path / "s")
    with pytest.raises(TableError, match="name another file"):
        match("f.jsonl")
    assert before == {name: (tmp_path / name).read_bytes() for name in before}
    RecordIndex.build([Subscription(1, "a > 1")]).save(tmp_path / "s")
    match("g.jsonl")
    assert len(get_table(tmp_path / "m.jsonl")) == 9
    assert get_table(tmp_path / "r.jsonl") == []
