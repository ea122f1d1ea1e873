"""What is remembered of steps: when one is done, and what is left of a run that was killed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from headgate.core.subscription import Subscription
from headgate.errors import TableError
from headgate.pipeline.run.plan import Step, steps_of, until
from headgate.pipeline.run.state import MISSING, REMOTE, RunState, locked, remove_leftovers, stamp
from headgate.records.index.index import RecordIndex
from tests.pipeline.pipelines import shop
from tests.spark.files import names, put

if TYPE_CHECKING:
    from pathlib import Path


def step(folder: Path, **settings: object) -> Step:
    return Step(
        "match.x", {"events": str(folder / "in.jsonl")}, {"output": str(folder / "out.jsonl")}, settings
    )


@pytest.fixture
def finished(tmp_path: Path) -> RunState:
    """A directory with one finished step."""
    put(tmp_path / "in.jsonl", "{}")
    state = RunState(tmp_path)
    state.begin(step(tmp_path, top=3))
    put(tmp_path / "out.jsonl", "{}")
    inputs = state.stamps(step(tmp_path).inputs)
    state.finish(step(tmp_path, top=3), inputs, {"matches": 7}, 1.5, "2026-01-01")
    return RunState.open(tmp_path)


def test_a_finished_step_is_done_and_remembered(finished: RunState, tmp_path: Path) -> None:
    assert finished.why_not_done(step(tmp_path, top=3)) is None
    assert finished.steps["match.x"].result == {"matches": 7}
    assert names(tmp_path) == [".headgate", "in.jsonl", "out.jsonl"]
    assert names(tmp_path / ".headgate") == ["state.json"]


@pytest.mark.usefixtures("finished")
def test_a_directory_can_be_moved(tmp_path: Path) -> None:
    moved = tmp_path.with_name("moved")
    tmp_path.rename(moved)
    state = RunState.open(moved)
    assert state.why_not_done(step(moved, top=3)) is None


def test_why_a_step_is_to_be_done_again(finished: RunState, tmp_path: Path) -> None:
    asked = step(tmp_path, top=3)
    assert RunState(tmp_path).why_not_done(asked) == "it was not done before"
    assert finished.why_not_done(step(tmp_path, top=4)) == "what is asked has changed"
    os.utime(tmp_path / "in.jsonl", ns=(1, 1))
    assert finished.why_not_done(asked) == f"the input {tmp_path}/in.jsonl has changed"
    (tmp_path / "in.jsonl").unlink()
    assert finished.why_not_done(asked) == f"{tmp_path}/in.jsonl is missing"


def test_an_output_that_changed_is_written_again(finished: RunState, tmp_path: Path) -> None:
    put(tmp_path / "out.jsonl", "{} ")
    assert finished.why_not_done(step(tmp_path, top=3)) == f"the output {tmp_path}/out.jsonl has changed"
    (tmp_path / "out.jsonl").unlink()
    assert finished.why_not_done(step(tmp_path, top=3)) == f"{tmp_path}/out.jsonl is missing"


def test_another_version_does_everything_anew(
    finished: RunState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.pipeline.run.plan.__version__", "99")
    assert finished.why_not_done(step(tmp_path, top=3)) == "what is asked has changed"


def test_a_step_that_has_begun_is_not_done(finished: RunState, tmp_path: Path) -> None:
    finished.begin(step(tmp_path, top=3))
    state = RunState.open(tmp_path)
    assert state.why_not_done(step(tmp_path, top=3)) == "it was not done before"
    assert state.begun == ["out.jsonl"]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": "other"}', '{"format": "headgate-run", "version": 9}']
)
def test_a_state_that_cannot_be_read_is_one_line(tmp_path: Path, content: str) -> None:
    put(tmp_path / ".headgate" / "state.json", content)
    with pytest.raises(TableError, match="run with --fresh to start again"):
        RunState.open(tmp_path)


def test_stamps(tmp_path: Path) -> None:
    assert stamp(str(tmp_path / "no")) == MISSING
    assert stamp("hdfs://x/y") == REMOTE
    put(tmp_path / "folder" / "a" / "x.xml", "<x/>")
    before = stamp(str(tmp_path / "folder"))
    put(tmp_path / "folder" / ".hidden", "?")
    assert stamp(str(tmp_path / "folder")) == before
    put(tmp_path / "folder" / "a" / "y.xml", "<y/>")
    assert stamp(str(tmp_path / "folder")) != before


def test_what_is_remote_is_done_every_time(tmp_path: Path) -> None:
    put(tmp_path / "out.jsonl", "{}")
    there = Step("match.x", {"events": "s3a://b/e.jsonl"}, {"output": str(tmp_path / "out.jsonl")}, {})
    state = RunState(tmp_path)
    state.finish(there, state.stamps(there.inputs), {}, 1, "")
    assert "is on another file system" in str(state.why_not_done(there))


def test_a_snapshot_with_the_same_content_is_the_same(tmp_path: Path) -> None:
    place = tmp_path / "snapshot"
    found = []
    for text in ("a = 1", "a = 1", "a = 2"):
        RecordIndex.build([Subscription("s", text)]).save(place)
        found.append(stamp(str(place)))
    assert found[0] == found[1] != found[2]
    next(place.glob("*.npy")).unlink()
    assert stamp(str(place)) not in found


def test_halves_of_tables_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in ("half.parquet", "whole.parquet", "mine.parquet"):
        put(tmp_path / name / "part-0.parquet", "x")
    put(tmp_path / "whole.parquet" / "_SUCCESS", "")
    state = RunState(tmp_path, begun=["half.parquet", "whole.parquet", "gone.parquet"])
    state.clear_halves()
    assert names(tmp_path) == ["mine.parquet", "whole.parquet"]


def test_leftovers_of_a_dead_process_are_removed(tmp_path: Path) -> None:
    put(tmp_path / ".m[1].parquet.77.parts" / "x", "")
    put(tmp_path / ".m[1].parquet.78.parts" / "x", "")
    put(tmp_path / ".m[1].parquet.77.new", "")
    put(tmp_path / ".other.77.new", "")
    remove_leftovers([str(tmp_path / "m[1].parquet"), "s3a://b/c.parquet", str(tmp_path / "no" / "x")], 77)
    assert names(tmp_path) == [".m[1].parquet.78.parts", ".other.77.new"]


def test_one_run_at_a_time(tmp_path: Path) -> None:
    with locked(tmp_path) as before:
        assert before is None
        with (
            pytest.raises(TableError, match=rf"in use by another run \(process {os.getpid()}\)"),
            locked(tmp_path),
        ):
            pass
    with locked(tmp_path) as before:
        assert before is None


def test_the_lock_of_a_process_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys, time\n"
        "from headgate.pipeline.run.state import locked\n"
        "with locked(pathlib.Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(300)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(TableError, match=f"process {other.pid}"), locked(tmp_path):
            pass
        other.kill()
        other.wait(30)
    with locked(tmp_path) as before:
        assert before == other.pid


def test_steps_and_what_they_read_and_write(tmp_path: Path) -> None:
    steps = steps_of(shop(tmp_path))
    assert [each.name for each in steps] == [
        "compile",
        "match.all",
        "summary.all",
        "match.best",
    ]
    assert {each.kind for each in steps} == {"compile", "match", "summary"}
    assert [each.of for each in steps] == ["", "all", "all", "best"]
    directory = tmp_path / "shop"
    prints = [each.fingerprint(directory) for each in steps]
    assert len({*prints}) == len(prints)
    changed = steps_of(shop(tmp_path, sets={"match.best.top": 3}))
    same = [a.fingerprint(directory) == b.fingerprint(directory) for a, b in zip(steps, changed, strict=True)]
    assert same == [True, True, True, False]
    # Where it runs changes no answer.
    elsewhere = steps_of(shop(tmp_path, sets={"spark.master": "yarn"}))
    assert [each.fingerprint(directory) for each in elsewhere] == prints


def test_until_ends_the_list(tmp_path: Path) -> None:
    steps = steps_of(shop(tmp_path))
    assert [each.name for each in until(steps, "match.all")] == ["compile", "match.all"]
    assert len(until(steps, "match")) == 4
    assert until(steps, None) == steps
    with pytest.raises(
        Exception, match=r"there is no step 'mtch': did you mean 'match\.all'|there are compile"
    ):
        until(steps, "mtch")


def test_what_a_backtest_depends_on_is_asked(tmp_path: Path) -> None:
    text = """
[subscriptions]
table = "subs.jsonl"
dialect = "sparql"
[events]
table = "events.jsonl"
[[backtest]]
filter = "ASK { ?x ?p ?y . ?y ?q ?z }"
"""
    found = set()
    for sets in ({}, {"subscriptions.coerce": True}, {"subscriptions.injective": True}):
        pipeline = shop(tmp_path, text, sets)
        (tested,) = [each for each in steps_of(pipeline) if each.kind == "backtest"]
        found.add(tested.fingerprint(pipeline.directory))
    assert len(found) == 3
