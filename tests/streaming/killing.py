"""A stream in processes that are killed while files and changes keep coming; then it must be right."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from headgate import Engine, Subscription
from headgate.core.rooms import RECORDS
from headgate.runtime.sharding import Sharding
from headgate.runtime.shards import Routes, save_shards
from tests.streaming.world import State, World

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TOPICS = [f"topic{n}" for n in range(20)]
AHEAD = 24
"""Files that may lie there before they are taken."""
COMMAND = [sys.executable, "-c", "from headgate.cli import main; main()"]
LEAN = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def make(world: World, rng: random.Random, shards: int) -> None:
    """Build the snapshot."""
    given = [Subscription(f"s{n}", _filter(rng)) for n in range(200)]
    if shards > 1:
        world.whole = world.root / "whole"
        Engine.build(given).save(world.whole)
    save(world.snapshot, given, shards, world.root)


def save(place: Path, given: list[Subscription], shards: int, beside: Path) -> None:
    """Save subscriptions as a snapshot in shards, which are made in a folder, or in one piece."""
    if shards == 1:
        Engine.build(given).save(place)
        return
    parts = [given[number::shards] for number in range(shards)]
    staged = [beside / f"part-{number}" for number in range(shards)]
    for part, own in zip(parts, staged, strict=True):
        Engine.build(part).backend.save(own, source=None)
    routes = Routes.make(RECORDS, None, [(len(part), [None] * len(part)) for part in parts])
    save_shards(place, staged, ranked=False, routes=routes, sharding=Sharding(shards))


def _filter(rng: random.Random) -> str:
    return f"topic = '{rng.choice(TOPICS)}' AND n > {rng.randrange(100)}"


class Feeder(threading.Thread):
    """Moves files of events and of changes into place, some of each every moment, until it is told to end."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(daemon=True)
        self._world = world
        self._rng = random.Random(seed)
        self._over = threading.Event()
        self.files = self.events = self.repeated = self.malformed = 0
        self._subscribed = [f"s{n}" for n in range(200)]

    def run(self) -> None:
        """Feed."""
        while not self._over.wait(0.08):
            # Not more than the stream can take: what is left at the end has to be waited for.
            if self.files < 4 * len(list(self._world.state.glob("batches/*.json"))) + AHEAD:
                self.feed()

    def feed(self) -> None:
        """Move one file of events, and now and then one of changes."""
        rng = self._rng
        rows: list[Any] = []
        for _ in range(40):
            rows.append({"id": self.events, "topic": rng.choice(TOPICS), "n": rng.randrange(120)})
            self.events += 1
        if rng.random() < 0.3:
            # One that is sent a second time, in a file of its own batch or of an earlier one.
            rows.insert(rng.randrange(40), {**rows[0], "id": rng.randrange(self.events)})
            self.repeated += 1
        if rng.random() < 0.2:
            rows.insert(rng.randrange(40), f"no JSON {self.files}")
            self.malformed += 1
        self._world.send(f"{self.files:06d}.jsonl", rows)
        self.files += 1
        if rng.random() < 0.5:
            changes: list[Any] = [{"op": "unsubscribe", "id": self._subscribed.pop(0)}]
            for n in range(3):
                self._subscribed.append(f"t{self.files}-{n}")
                changes.append({"op": "subscribe", "id": self._subscribed[-1], "filter": _filter(rng)})
            self._world.change(f"{self.files:06d}.jsonl", changes)

    def end(self) -> None:
        """End, after the file that is being written."""
        self._over.set()
        self.join()


def start(world: World, *more: str, log: Path) -> subprocess.Popen[bytes]:
    """Start a stream as users do, in a process group of its own."""
    command = [
        *COMMAND, "stream",
        "--snapshot", str(world.snapshot), "--events", str(world.events), "--output", str(world.output),
        "--changes", str(world.changes), "--state", str(world.state), "--files", "jsonl", "--quiet",
        "--every", "0.1", "--max-files", "4", "--window", "1h", "--keep", "100000", "--json",
        "--master", "local[2]", "--conf", LEAN, *more,
    ]  # fmt: skip
    with log.open("ab") as file:
        return subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=file)


def kill_after(process: subprocess.Popen[bytes], world: World, rng: random.Random) -> str:
    """Kill all of a process, some batches after it began and a moment more. Returns the stage of the last."""
    batches = world.state / "batches"
    before = len(list(batches.glob("*.json"))) if batches.exists() else 0
    wanted = before + rng.choice((0, 1, 1, 2, 3))
    until = time.monotonic() + 120
    while not batches.exists() or len(list(batches.glob("*.json"))) < wanted:
        assert process.poll() is None, "the stream ended by itself"
        assert time.monotonic() < until, "no batch in two minutes"
        time.sleep(0.002)
    time.sleep(rng.uniform(0, 0.5))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    files = sorted(batches.glob("[0-9]*.json")) if batches.exists() else []
    return str(json.loads(files[-1].read_text())["stage"]) if files else "none"


def run_and_kill(
    root: Path, kills: int, seed: int, shards: int = 1, spark: SparkSession | None = None
) -> list[str]:
    """Kill a stream so many times, let it come to its end, and check all that it has written.

    It comes to its end on this Spark, if there is one, and else in a process as those that were killed.
    """
    world = World(root)
    rng = random.Random(seed)
    make(world, rng, shards)
    feeder = Feeder(world, seed)
    log = root / "log.txt"
    feeder.start()
    stages: list[str] = []
    try:
        stages.extend(kill_after(start(world, log=log), world, rng) for _ in range(kills))
    finally:
        feeder.end()
    if spark is not None:
        assert world.run(spark, every=0.1, max_files=4, window=3600.0, keep=100_000).stopped == "once"
    else:
        last = start(world, "--once", log=log)
        output, _ = last.communicate(timeout=300)
        assert last.returncode == 0, log.read_text()[-2000:]
        assert json.loads(output)["stopped"] == "once"
    check(world, feeder)
    return stages


def check(world: World, feeder: Feeder) -> None:
    """Compare the sink with the engine in this process, batch by batch, at the version of each."""
    records = State(world.state).committed()
    counts = [record["counts"] for record in records]
    dead = world.dead()
    assert sum(each["events"] for each in counts) == feeder.events
    assert sum(row["kind"] == "duplicate" for row in dead) == feeder.repeated
    assert sum(row["kind"] == "malformed" for row in dead) == feeder.malformed
    assert sum(len(record["origins"]) for record in records) == feeder.files
    found = world.matches()
    assert found == world.expected()
    assert found
    assert max(found.values()) == 1
    assert not world.rejected()
    assert len({record["version"] for record in records}) > 1
