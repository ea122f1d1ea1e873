"""Snapshots on disk: what is told of them, and that nothing is removed that somebody uses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from headgate import Edge, Engine, Node, Subscription, __version__
from headgate.core.snapshot import digest_of
from headgate.core.versions.current import resolved
from headgate.runtime.state import write_record
from tests.spark.files import names, put

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.running import Command


def save(place: Path, when: int, *, count: int = 1) -> Path:
    """Write a snapshot, and say when that was."""
    engine(count).save(place)
    os.utime(resolved(place) / "manifest.json", (when, when))
    return place


def engine(count: int) -> Engine:
    return Engine.build([Subscription(number, f"age > {number}") for number in range(count)])


def test_what_a_snapshot_holds(headgate: Command, tmp_path: Path) -> None:
    save(tmp_path / "s", 1_700_000_000, count=3)
    ran = headgate("snapshot", "info", tmp_path / "s", "--json")
    (found,) = ran.json["snapshots"]
    about = {name: found[name] for name in ("room", "content", "counts", "shards", "made", "headgate")}
    assert about == {
        "room": "records",
        "content": "records",
        "counts": {"subscriptions": 3, "attributes": 1},
        "shards": 1,
        "made": "2023-11-14T22:13:20+00:00",
        "headgate": __version__,
    }
    files = [file for file in resolved(tmp_path / "s").rglob("*") if file.is_file()]
    assert (found["files"], found["bytes"]) == (len(files), sum(file.stat().st_size for file in files))
    lines = headgate("snapshot", "info", tmp_path / "s").out.splitlines()
    assert lines[2] == "  counts   3 subscriptions, 1 attributes"
    assert lines[-1] == "  used by  current"


def test_a_graph_a_link_and_damage(headgate: Command, tmp_path: Path) -> None:
    """A graph is told with what its filters look at; a damaged one with the reason, among the others."""
    nodes = [Node("a"), Node("b", "price > 1")]
    hung = [Subscription("s", "age > 1", node="b")]
    Engine.build(hung, nodes=nodes, edges=[Edge("a", "b")]).save(tmp_path / "v" / "graph")
    save(tmp_path / "v" / "old", 1_000_000_000)
    put(tmp_path / "v" / "bad" / "manifest.json", "{}")
    (tmp_path / "v" / "current").symlink_to("old")
    found = headgate("snapshot", "info", tmp_path / "v", "--json").json["snapshots"]
    told = {each["path"].rpartition("/")[2]: each for each in found}
    assert list(told)[-1] == "old"
    assert (told["graph"]["room"], told["graph"]["content"]) == ("graph", "records")
    assert {"nodes": 2, "subscriptions": 1}.items() <= told["graph"]["counts"].items()
    assert told["old"]["used_by"] == ["link current"]
    assert told["bad"]["damaged"].endswith("is damaged: compile it again")


def test_old_versions_go(headgate: Command, tmp_path: Path) -> None:
    """The newest stay, and what a link leads to; without --dry-run the others and what was left half go."""
    for place in range(5):
        save(tmp_path / f"v{place}", 1_000 + place)
    (tmp_path / "live").symlink_to("v0")
    put(tmp_path / ".v9.4194999.new" / "half.npy", "x")
    put(tmp_path / f".v9.{os.getpid()}.new" / "half.npy", "x")
    before = names(tmp_path)
    ran = headgate("snapshot", "prune", tmp_path, "--keep", "2", "--dry-run", "--json")
    assert [each["path"].rpartition("/")[2] for each in ran.json["removed"]] == [
        "v2",
        "v1",
        ".v9.4194999.new",
    ]
    assert {each["reason"] for each in ran.json["kept"]} == {"among the newest", "link live"}
    assert names(tmp_path) == before
    ran = headgate("snapshot", "prune", tmp_path, "--keep", "2")
    assert ran.out.splitlines()[-1].startswith("removed 3 of 6, ")
    left = {file.name for file in tmp_path.iterdir()}
    assert left == {"v0", "v3", "v4", "live", f".v9.{os.getpid()}.new"}


READER = """
import sys
from headgate import Engine, Event
engine = Engine.open(sys.argv[1])
engine.match(Event("e", {"age": 50}))
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are seen on Linux only")
def test_a_reader_keeps_what_it_has_mapped(headgate: Command, tmp_path: Path) -> None:
    save(tmp_path / "v1", 1_000)
    save(tmp_path / "v2", 2_000)
    command = [sys.executable, "-c", READER, str(tmp_path / "v1")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "open\n"
        ran = headgate("snapshot", "prune", tmp_path, "--keep", "0", "--json")
        reader.communicate("")
    assert [each["reason"] for each in ran.json["kept"]] == [f"process {reader.pid}"]
    assert (tmp_path / "v1").is_dir()
    assert not (tmp_path / "v2").exists()


def test_the_state_of_a_stream(headgate: Command, tmp_path: Path) -> None:
    """What the stream goes on with, and what a batch that is not committed has pinned, stays."""
    state = tmp_path / "state"
    digests = []
    for count in (1, 2, 3):
        place = state / "snapshots" / "new"
        engine(count).backend.save(place, source=None)
        os.utime(place / "manifest.json", (1_000 + count, 1_000 + count))
        digests.append(digest_of(place))
        place.rename(state / "snapshots" / digests[-1])
    write_record(state / "stream.json", {"layout": 1})
    write_record(state / "base.json", {"snapshot": digests[1], "since": 0})
    (state / "batches").mkdir()
    for number, stage in enumerate(("committed", "pinned")):
        record = {"batch": number, "stage": stage, "snapshot": digests[0] if number else digests[2]}
        write_record(state / "batches" / f"{number:010d}.json", record)
    found = headgate("snapshot", "info", state, "--json").json["snapshots"]
    assert [each["used_by"] for each in found] == [[], ["the stream"], ["batch 1"]]
    from headgate.runtime.state import State

    with State(state).held():
        ran = headgate("snapshot", "prune", state, "--keep", "0")
    assert ran.code == 1
    assert "is in use by another stream" in ran.complaint
    assert headgate("snapshot", "prune", state, "--keep", "0").code == 0
    assert {file.name for file in (state / "snapshots").iterdir()} == {digests[0], digests[1]}


def test_places_without_snapshots(headgate: Command, tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "no", "no does not exist"), (tmp_path, "has no snapshot in it")):
        for command in ("info", "prune"):
            assert reason in headgate("snapshot", command, path).complaint
    assert json.loads(headgate("snapshot", "prune", save(tmp_path / "s", 1), "--json").out)["removed"] == []
