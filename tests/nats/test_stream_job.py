"""The stream job from NATS to NATS: what the engine in this process matches, once, also after kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Engine, Event, Subscription
from headgate.brokers.nats.reading import Range
from headgate.brokers.nats.settings import NatsSettings
from headgate.brokers.nats.stream import Stream
from headgate.spark.stream.run import run_stream
from headgate.stream.settings import StreamSettings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.nats.server import Server

LEAN = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
Pairs = Counter[tuple[str, str]]


def make(folder: Path, count: int = 60) -> Engine:
    """Build an engine and save it as a snapshot."""
    engine = Engine.build([Subscription(f"s{n}", f"topic = 't{n % 10}' AND n > {n}") for n in range(count)])
    engine.save(folder / "snapshot")
    return engine


def rows(numbers: Iterable[int]) -> list[dict[str, Any]]:
    return [{"id": f"e{n}", "topic": f"t{n % 10}", "n": n % 97} for n in numbers]


def lines(found: Iterable[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(row).encode() for row in found]


def answers(engine: Engine, events: Iterable[dict[str, Any]]) -> Pairs:
    return Counter(
        (row["id"], str(match))
        for row in events
        for match in engine.match(Event(row["id"], {k: v for k, v in row.items() if k != "id"}))
    )


def published(server: Server, name: str) -> Pairs:
    with Stream(NatsSettings.of(server.url(name))) as stream:
        parts = stream.messages(Range(1, stream.state().end))
        found = [json.loads(one.data) for part in parts for one in part]
    return Counter((row["event_id"], row["subscription_id"]) for row in found)


@pytest.mark.nightly
def test_from_nats_to_nats(spark: SparkSession, server: Server, tmp_path: Path) -> None:
    engine = make(tmp_path)
    server.add("JOB", "job.events.>", "job.changes")
    server.add("JOB_OUT", "job.out.>")
    settings = StreamSettings(
        str(tmp_path / "snapshot"),
        server.url("JOB", "subject=job.events.>"),
        server.url("JOB_OUT", "subject=job.out.{subscription_id}"),
        str(tmp_path / "state"),
        changes=server.url("JOB", "subject=job.changes"),
        once=True,
        max_rows=250,
    )
    first = rows(range(400))
    server.put("job.events.a", [*lines(first), b"no JSON", lines(first[:1])[0]])
    done = run_stream(spark, settings, quiet=True)
    assert (done.malformed, done.duplicate) == (1, 1)
    wanted = answers(engine, first)
    assert wanted.total() == done.matches > 100
    assert published(server, "JOB_OUT") == wanted
    server.put("job.changes", [b'{"op": "subscribe", "id": "new", "filter": "n = 5"}', b'{"op": "weep"}'])
    later = rows(range(1_000, 1_100))
    server.put("job.events.b", lines(later))
    done = run_stream(spark, settings, quiet=True)
    assert (done.changes, done.rejected_changes) == (1, 1)
    engine.subscribe(Subscription("new", "n = 5"))
    assert published(server, "JOB_OUT") == wanted + answers(engine, later)


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.parametrize("kills", [1, 8])
def test_killed_between_nats_and_nats(server: Server, tmp_path: Path, kills: int) -> None:
    engine = make(tmp_path)
    name = f"HARD{kills}"
    server.add(name, f"{name}.events")
    server.add(f"{name}_OUT", f"{name}.out")
    events = rows(range(4_000 + 2_000 * kills))
    server.put(f"{name}.events", lines(events))
    command = [
        sys.executable, "-c", "from headgate.cli import main; main()", "stream",
        "--snapshot", str(tmp_path / "snapshot"), "--state", str(tmp_path / "state"), "--quiet",
        "--events", server.url(name, f"subject={name}.events"), "--max-rows", "500", "--once",
        "--output", server.url(f"{name}_OUT", f"subject={name}.out"), "--every", "0",
        "--master", "local[2]", "--conf", LEAN,
    ]  # fmt: skip
    log = tmp_path / "log"
    with Stream(NatsSettings.of(server.url(f"{name}_OUT"))) as stream:
        for kill in range(kills):
            end = stream.state().end + 100 + 217 * kill % 900
            with log.open("ab") as file:
                process = subprocess.Popen(command, start_new_session=True, stdout=file, stderr=file)
            while stream.state().end < end:
                assert process.poll() is None, log.read_text()
                time.sleep(0.002)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)
    with log.open("ab") as file:
        done = subprocess.run(command, stdout=file, stderr=file, timeout=240, check=False)
    assert done.returncode == 0, log.read_text()
    assert published(server, f"{name}_OUT") == answers(engine, events)
