"""Snapshots in object stores: sent whole, fetched once, verified; against a server that speaks S3."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner

from headgate import Engine, Subscription
from headgate.cli import cli
from headgate.core.snapshot import digest_of, open_snapshot, write_snapshot
from headgate.core.versions import replacing
from headgate.core.versions.current import CURRENT
from headgate.core.versions.replacing import new_version
from headgate.core.versions.stores import Address, Store, locate, located, title_of
from headgate.errors import SnapshotError, TableError
from headgate.runtime import inventory, log
from headgate.runtime.state import State
from headgate.runtime.targets import open_target, opened
from tests.core.stores import BUCKET, StoreServer
from tests.spark.jobs import compile_subscriptions
from tests.streaming.world import World, lines, log_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def save(place: str, number: int) -> None:
    """Send a small snapshot with another inside."""

    def write(path: Path, inside: bool = True) -> None:
        write_snapshot(
            path,
            "records",
            {"keys": np.arange(number, number + 9, dtype=np.int64)},
            counts={"subscriptions": number},
            about={},
            inside={"inner": lambda below: write(below, inside=False)} if inside else None,
        )

    with new_version(place) as staged:
        write(staged)


def first_of(place: str) -> int:
    found = located(place)
    first = int(open_snapshot(found, "records").arrays["keys"][0])
    assert open_snapshot(found / "inner", "records").arrays["keys"][8] == first + 8
    return first


def names(place: str) -> list[str]:
    return Store(Address.of(place)).names()


def test_sent_fetched_and_opened(store: StoreServer, tmp_path: Path) -> None:
    """What is sent opens as what was saved, and elsewhere by its version and digest, also when replaced."""
    place = f"s3://{BUCKET}/engine"
    Engine.build([Subscription("s", "age > 30")]).save(place)
    assert store.names("engine")[-1] == f"{BUCKET}/engine/{CURRENT}"
    found = Engine.open(place)
    assert repr(found).endswith(f"opened from {place}>")
    packed = pickle.dumps(found)
    save(place, 2)
    os.environ["HEADGATE_CACHE"] = str(tmp_path / "elsewhere")
    assert pickle.loads(packed).match({"age": 35}) == found.match({"age": 35}) == ["s"]
    assert len(list((tmp_path / "elsewhere").glob("*/manifest.json"))) == 1


def test_the_same_content_is_sent_once(store: StoreServer) -> None:
    """Unless something of it is missing there."""
    place = f"s3://{BUCKET}/same"
    for _ in range(2):
        save(place, 7)
        assert [name[:6] for name in names(place)] == ["000001"]
    store.files.delete_file(next(name for name in store.names("same") if name.endswith(".npy")))
    save(place, 7)
    assert [name[:6] for name in names(place)] == ["000001", "000002"]
    assert first_of(place) == first_of(f"{place}/{names(place)[1]}") == 7


def test_an_address_may_say_how_to_reach_the_store(
    store: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Region and endpoint stand in it as Arrow reads them, also for workers; keys are never shown."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    place = store.address("options")
    save(place, 3)
    found = locate(place)
    assert found.name.endswith(f"?{place.partition('?')[2]}")
    assert first_of(found.name) == 3
    assert title_of(found.name) == f"s3://{BUCKET}/options"
    with pytest.raises(SnapshotError) as refused:
        located(store.address("absent"))
    assert str(refused.value).startswith(f"s3://{BUCKET}/absent is not a snapshot: there is no current;")


def test_what_is_damaged_on_the_way_is_refused(store: StoreServer, tmp_path: Path) -> None:
    place = f"s3://{BUCKET}/damaged"
    save(place, 1)
    (name,) = names(place)
    root = f"{BUCKET}/damaged/{name}"
    cases: dict[str, tuple[Callable[[bytes], bytes], str]] = {
        f"{root}/keys.npy": (
            lambda whole: whole[:-1] + bytes([whole[-1] ^ 1]),
            "keys.npy does not have its checksum as it arrived; try again, or compile it again",
        ),
        f"{root}/inner/keys.npy": (lambda whole: whole[:-1], "inner is damaged: keys.npy has 199 bytes"),
        f"{root}/manifest.json": (lambda whole: whole.replace(b"records", b"discords", 1), "manifest.json"),
        f"{BUCKET}/damaged/{CURRENT}": (lambda _: b"{}", "its file current names no version"),
    }
    for number, (file, (damage, reason)) in enumerate(cases.items()):
        os.environ["HEADGATE_CACHE"] = str(tmp_path / f"cache-{number}")
        whole = store.read(file)
        store.write(file, damage(whole))
        with pytest.raises(SnapshotError, match=reason) as refused:
            located(place)
        assert f"snapshot s3://{BUCKET}/damaged" in str(refused.value)
        assert "\n" not in str(refused.value)
        assert not [each for each in (tmp_path / f"cache-{number}").glob("*") if each.is_dir()]
        store.write(file, whole)
        assert first_of(place) == 1
    # A version that is sound, but another one.
    save(f"s3://{BUCKET}/other", 2)
    (other,) = names(f"s3://{BUCKET}/other")
    for path in store.names(f"other/{other}"):
        store.write(path.replace(f"other/{other}", f"damaged/{name}"), store.read(path))
    os.environ["HEADGATE_CACHE"] = str(tmp_path / "cache-other")
    with pytest.raises(SnapshotError, match=f"its digest is {other[7:]}, not {name[7:]} as it arrived"):
        located(place)


FETCH = """
import sys, time
from headgate.core.versions import stores
from headgate.core.versions.stores import located
fetch = stores.Store.fetch
def slow(self, *given, **more):
    print("fetching", flush=True)
    time.sleep(0.5)
    fetch(self, *given, **more)
stores.Store.fetch = slow
print((located(sys.argv[1]) / "manifest.json").is_file(), flush=True)
"""


@pytest.mark.usefixtures("store")
def test_one_process_of_a_machine_fetches(tmp_path: Path) -> None:
    place = f"s3://{BUCKET}/once"
    save(place, 1)
    os.environ["HEADGATE_CACHE"] = str(tmp_path / "other")
    command = [sys.executable, "-c", FETCH, place]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = sorted(process.communicate(timeout=120)[0] for process in started)
    assert said == ["True\n", "fetching\nTrue\n"]
    assert not list((tmp_path / "other").glob(".*"))


@pytest.mark.usefixtures("store")
def test_targets_name_the_address_for_workers(tmp_path: Path) -> None:
    """In shards too: a worker opens a group, and a single shard, by address and digest."""
    table = tmp_path / "table.jsonl"
    table.write_text(lines({"id": f"s{n}", "filter": f"age > {n}"} for n in range(9)))
    place = f"s3://{BUCKET}/shards"
    compile_subscriptions(None, str(table), place, rejected=str(tmp_path / "r.jsonl"), shards=2, quiet=True)
    target = open_target(place)
    (name,) = names(place)
    assert (target.place, target.title) == (f"{place}/{name}", place)
    assert [each.place for each in target.shards] == [f"{place}/{name}/shard-00{n}" for n in range(2)]
    save(place, 1)
    os.environ["HEADGATE_CACHE"] = str(tmp_path / "worker")
    (group,) = target.groups(1 << 40)
    assert group.place.startswith("s3://")
    assert len(opened(group)) == 9
    assert sum(len(ids) for ids in opened(target.whole).built) == 9
    assert digest_of(located(target.shards[1].place)) == target.shards[1].digest
    assert locate(target.place).place.parent == tmp_path / "worker"


@pytest.mark.usefixtures("store")
def test_the_cache_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not used for an hour goes first; what is in use stays, and what is gone is fetched again."""
    for number in range(3):
        save(f"s3://{BUCKET}/bound{number}", number)
    places = [located(f"s3://{BUCKET}/bound{number}") for number in range(3)]
    old = time.time() - 7200
    for number in (0, 1):
        os.utime(places[number], (old + number, old + number))
    size = sum(file.stat().st_size for file in places[0].rglob("*") if file.is_file())
    for most, left in ((2.5 * size / 2**30, [False, True, True]), (0, [False, False, True])):
        monkeypatch.setenv("HEADGATE_CACHE_GB", str(most))
        replacing.make_room(tmp_path / "cache", places[2])
        assert [place.exists() for place in places] == left
    assert first_of(f"s3://{BUCKET}/bound0") == 0
    monkeypatch.setenv("HEADGATE_CACHE_GB", "many")
    with pytest.raises(SnapshotError, match="HEADGATE_CACHE_GB is 'many': give a number of gigabytes"):
        replacing.make_room(tmp_path / "cache", places[2])


def run(*words: object) -> Any:
    return CliRunner().invoke(cli, [str(word) for word in words])


def test_on_the_command_line(store: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile, match, explain, tell and prune by an address."""
    monkeypatch.chdir(tmp_path)
    place = f"s3://{BUCKET}/line"
    for count in (1, 2, 3):
        save(place, count)
    (tmp_path / "s.jsonl").write_text(lines({"id": n, "filter": f"age > {n}"} for n in range(4)))
    (tmp_path / "e.jsonl").write_text('{"id": 1, "age": 2}\n')
    done = run("compile", "--subscriptions", "s.jsonl", "--output", place, "--quiet")
    assert (done.exit_code, done.output.splitlines()[0]) == (
        0,
        f"compiled 4 subscriptions over 1 attributes to {place}",
    )
    done = run("match", "--snapshot", place, "--events", "e.jsonl", "--output", "m.jsonl", "--quiet")
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert [row["subscription_id"] for row in rows] == [0, 1]
    done = run("explain", "--snapshot", place, "--subscription", 3, "--event", '{"age": 2}', "--json")
    assert json.loads(done.output)["matches"] is False
    told = json.loads(run("snapshot", "info", place, "--json").output)["snapshots"]
    assert [each["counts"]["subscriptions"] for each in told] == [4, 3, 2, 1]
    assert [each["used_by"] for each in told] == [[CURRENT], [], [], []]
    assert told[0]["path"] == f"{place}/{names(place)[-1]}"
    assert told[0]["content"] == "records"
    assert told[3]["bytes"] == sum(len(store.read(name)) for name in store.names(f"line/{names(place)[0]}"))
    dry = json.loads(run("snapshot", "prune", place, "--dry-run", "--json").output)
    assert [each["path"] for each in dry["removed"]] == [each["path"] for each in told[2:]]
    assert len(names(place)) == 4
    done = json.loads(run("snapshot", "prune", place, "--json").output)
    assert [each["reason"] for each in done["kept"]] == [CURRENT, "among the newest"]
    assert len(names(place)) == 2
    # What somebody may be sending stays.
    store.write(f"{BUCKET}/line/000009-0000000000000000/half.npy", b"")
    assert len(inventory.prune(place, 0).kept) == 2
    assert inventory.look_at(place)[0].damaged is not None


def test_what_is_refused_on_the_command_line(
    store: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.jsonl").write_text(lines([{"id": 1, "filter": "age > 1"}]))
    (tmp_path / "e.jsonl").write_text('{"id": 1, "age": 2}\n')
    store.write(f"{BUCKET}/mine/photo.jpg", b"precious")
    compiling = ("compile", "--subscriptions", "s.jsonl", "--rejected", "r.jsonl", "--output")
    version = f"s3://{BUCKET}/line/000001-0000000000000000"
    refused = {
        ("match", "--snapshot", f"s3://{BUCKET}/no", "--events", "e.jsonl", "--output", "m.jsonl"): (
            "is not a snapshot: there is no current"
        ),
        ("snapshot", "info", "s3://nobody/no"): "s3://nobody/no",
        (*compiling, "hdfs://h/x"): "give a path that all machines see, s3:// or gs://",
        (*compiling, version): f"which never changes: give s3://{BUCKET}/line",
        (*compiling, f"s3://{BUCKET}/mine"): "is not a snapshot: choose another place",
    }
    for words, reason in refused.items():
        done = run(*words)
        assert done.exit_code == 1
        assert isinstance(done.exception, SnapshotError | TableError | SystemExit)
        assert reason in str(done.exception) + done.output


def test_a_stream_follows_an_address(
    store: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes over to new versions, with the changes that they lack, and lives on without the store."""
    monkeypatch.setattr(log, "_LOOK", 0.0)
    place = store.address("stream")
    world = World(tmp_path / "world", {"snapshot": place})

    def compile_(*ids: str, position: list[str]) -> None:
        with new_version(place, {"source": "files", "position": json.dumps(position)}) as staged:
            Engine.build([Subscription(each, "age > 1") for each in ids]).backend.save(staged, source=None)

    def subscribed() -> set[str]:
        found = subscriptions.at(**subscriptions.pin()).open()
        return {str(name) for ids in found.ids for name in ids}

    compile_("a", position=[])
    subscriptions = log_of(world.settings(), State(world.state))
    for number in (1, 2):
        world.change(f"{number}.jsonl", [{"op": "subscribe", "id": f"b{number}", "filter": "age > 2"}])
    assert subscribed() == {"a", "b1", "b2"}
    compile_("a", "c", position=["1.jsonl"])
    assert subscribed() == {"a", "b2", "c"}
    inventory.prune(place, 0)
    store.files.delete_file(f"{BUCKET}/stream/{CURRENT}")
    assert subscribed() == subscribed() == {"a", "b2", "c"}
    told = capsys.readouterr().err
    assert told.count("continuing with the snapshot in use") == 1
    assert f"s3://{BUCKET}/stream is not a snapshot: there is no current" in told
    subscriptions.close()
