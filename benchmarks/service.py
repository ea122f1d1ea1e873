"""What the service costs: publishing, matching, storing, delivering, starting; beside logs without matching.

The server is a process of its own, and so is the load. Costs are the server's CPU time, from /proc. Rates
by the clock say little where others run: the share of time that the server's threads waited for a core
stands beside them.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import msgspec
import numpy as np

from benchmarks.engine import SEED
from benchmarks.results import Result
from benchmarks.service_peers import peers
from headgate.workloads.catalogue import synthetic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from headgate.service.storage.store import Store

_SERVE = [sys.executable, "-c", "from headgate.cli import main; main()", "serve"]
_TICKS = os.sysconf("SC_CLK_TCK")
_MANY = 5_000
"""Matches of an event that has many."""
_GROUP = 100
"""Events of a commit under load."""
_QUIET = 0.10
"""Rates by the clock count where the server waited less than this."""


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    filters: int
    events: int
    seconds: float
    retained: int
    listeners: int
    rounds: int


PLANS = {
    "quick": Plan(1_000, 2_000, 0.5, 2_000, 20, 1),
    "full": Plan(100_000, 20_000, 8.0, 1_000_000, 1_000, 3),
}


def run(size: str) -> list[Result]:
    """Measure all of it."""
    plan = PLANS[size]
    full = size == "full"
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        asyncio.run(_fill(place / "data", plan))
        events = _write_events(place, plan)
        with _server(place / "data") as server:
            results += _loads(server, events, plan, full=full)
        results += _store(place, plan, full=full)
        with _server(place / "data") as server:
            results += _listeners(server, plan, full=full)
        results += _restart(place, plan, full=full)
        results += peers(place, plan.seconds)
    return results


# What is served


async def _fill(data: Path, plan: Plan) -> None:
    """Make a data directory with subscriptions of W-mix, of as many consumers as there are listeners."""
    from headgate.service.resources import SubscriptionBody
    from headgate.service.server import make_place
    from headgate.service.tenant.tenant import Tenant

    workload = synthetic("mixed", plan.filters)
    rows = workload.subscriptions(np.arange(plan.filters), SEED).to_pylist()
    make_place(data)
    tenant = await Tenant.open("default", data / "tenants" / "default")
    said = [
        (row, str(each["id"]), SubscriptionBody(filter=each["filter"], consumer=f"c{row % plan.listeners}"))
        for row, each in enumerate(rows)
    ]
    count, refused = await tenant.import_(said)
    assert count == plan.filters, refused[:3]
    await tenant.close()


def _write_events(place: Path, plan: Plan) -> Path:
    """Write events of W-mix as CloudEvents, one a line."""
    rows = synthetic("mixed", plan.filters).events(np.arange(plan.events), SEED).to_pylist()
    file = place / "events.jsonl"
    with file.open("wb") as out:
        for number, row in enumerate(rows):
            data = {name: value for name, value in row.items() if value is not None and name != "id"}
            out.write(msgspec.json.encode(_envelope(f"e{number}", data)) + b"\n")
    return file


def _envelope(identity: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"specversion": "1.0", "id": identity, "source": "/bench", "type": "bench", "data": data}


@dataclass
class _Server:
    """A server that runs, and what it used."""

    process: subprocess.Popen[str]
    port: int
    started: float
    """CPU seconds until it was ready."""

    def cpu(self) -> float:
        """Return the CPU seconds that it used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory(self) -> float:
        """Return its resident memory in MB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text("ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1e3

    def waits(self) -> tuple[int, int]:
        """Return the nanoseconds that its threads ran, and those that they waited for a core."""
        ran = queued = 0
        for place in Path(f"/proc/{self.process.pid}/task").glob("*/schedstat"):
            its_ran, its_queued, _ = map(int, place.read_text("ascii").split())
            ran, queued = ran + its_ran, queued + its_queued
        return ran, queued


@contextmanager
def _server(data: Path) -> Iterator[_Server]:
    process = subprocess.Popen(
        [*_SERVE, "--data", str(data), "--port", "0"], stderr=subprocess.PIPE, text=True
    )
    try:
        yield _ready(process)
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _ready(process: subprocess.Popen[str]) -> _Server:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("headgate serves at "):
            server = _Server(process, int(line.rpartition(":")[2]), 0.0)
            server.started = server.cpu()
            return server
    raise AssertionError("the server did not start")


# Publishing and matching


def _loads(server: _Server, events: Path, plan: Plan, *, full: bool) -> list[Result]:
    results = []
    section = f"Requests, W-mix, {plan.filters:,} filters"
    for mode, title, connections, cost, rate in (
        ("batches", "publish, durable, batches of 100", 4, 100, 10_000),
        ("single", "publish, durable, one event a request, 32 connections", 32, 300, 2_500),
        ("match", "match only, batches of 100", 4, 50, 20_000),
    ):
        best: dict[str, Any] | None = None
        for _ in range(plan.rounds):
            found = _load(server, mode, connections, events, plan.seconds)
            assert not found["others"], found["others"]
            if best is None or found["micros"] < best["micros"]:
                best = found
        assert best is not None
        quiet = best["waited"] < _QUIET
        results += [
            Result(
                title,
                best["micros"],
                "µs of server CPU an event",
                goal=cost if full else None,
                section=section,
            ),
            Result(
                f"{title}: by the clock{'' if quiet else ', on a busy machine'}",
                best["rate"],
                "events a second",
                goal=rate if full and quiet else None,
                at_least=True,
                section=section,
            ),
            Result(
                f"{title}: p99",
                1e3 * best["p99"],
                "ms",
                section=section,
                goal=50 if full and quiet and mode == "single" else None,
            ),
            Result(
                f"{title}: the server waited for a core",
                100 * best["waited"],
                "% of the time",
                section=section,
            ),
        ]
    return results


def _load(server: _Server, mode: str, connections: int, events: Path, seconds: float) -> dict[str, Any]:
    asked = {"port": server.port, "mode": mode, "events": str(events), "connections": connections}
    _sent(asked, 0.5)
    cpu, (ran, queued) = server.cpu(), server.waits()
    found = _sent(asked, seconds)
    ran, queued = server.waits()[0] - ran, server.waits()[1] - queued
    found["micros"] = (server.cpu() - cpu) / max(1, found["events"]) * 1e6
    found["rate"] = found["events"] / found["seconds"]
    found["waited"] = queued / max(1, ran + queued)
    return found


def _sent(asked: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Let a process beside the server send requests, and read what it tells."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.service_load", json.dumps({**asked, "seconds": seconds})],
        check=True,
        stdout=subprocess.PIPE,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# Storing


def _store(place: Path, plan: Plan, *, full: bool) -> list[Result]:
    """Measure what it costs to keep an event with many matches: in a commit of its own, and among others.

    As in a service that runs, the write-ahead log has come round before: growing it costs more.
    """
    from headgate.service.storage.store import Store

    store = Store(place / "many")
    chance = np.random.default_rng(5)
    found = [np.sort(chance.choice(100_000, _MANY, replace=False)).astype(np.uint32) for _ in range(_GROUP)]
    nothing = np.zeros(0, np.uint32)
    times: dict[str, list[float]] = {"many": [], "none": [], "group": []}
    for _ in range(20 if full else 1):
        _kept(store, found)
    for number in range(600 if full else 60):
        if number % 2:
            times["none"].append(_kept(store, [nothing]))
        else:
            times["many"].append(_kept(store, [found[number % _GROUP]]))
    for _ in range(40 if full else 2):
        times["group"].append(_kept(store, found) / _GROUP)
    store.close()
    del plan
    many, none = (float(np.median(times[name])) * 1e6 for name in ("many", "none"))
    goal, section = 100 if full else None, "Storage"
    return [
        Result(
            f"an event that matches {_MANY:,}, in a commit of its own",
            many,
            "µs of CPU",
            goal=goal,
            section=section,
        ),
        Result("an event that matches nothing, in a commit of its own", none, "µs of CPU", section=section),
        Result(f"what {_MANY:,} matches add to a commit", many - none, "µs of CPU", section=section),
        Result(
            f"an event that matches {_MANY:,}, in a commit of {_GROUP}, checkpoints included",
            float(np.mean(times["group"])) * 1e6,
            "µs of CPU",
            goal=goal,
            section=section,
        ),
    ]


def _kept(store: Store, found: list[NDArray[np.uint32]]) -> float:
    """Keep events that match these in one commit; returns the CPU seconds of it."""
    from headgate.service.storage.log import NONE, Block

    ends = np.cumsum([len(each) for each in found]).astype(np.uint32)
    ids = np.zeros(len(found), np.uint32)
    first = store.log.bounds().last + 1
    block = Block(first, 0, [b"x" * 400] * len(found), ends, np.concatenate(found), NONE, NONE, ids)
    began = time.thread_time()
    store.log.append([block], [])
    return time.thread_time() - began


# Delivering


def _listeners(server: _Server, plan: Plan, *, full: bool) -> list[Result]:
    """Measure server-sent events: many consumers, and one of a hundred that reads nothing."""
    section = "Server-sent events"
    before = server.memory()
    rows = list(synthetic("mixed", 1_000).events(np.arange(2_000), SEED).to_pylist())
    _publish(server, rows, 1.0)
    cpu = server.cpu()
    sent = _publish(server, rows, plan.seconds)
    published = (server.cpu() - cpu) / sent
    many = _listened(server, [f"c{number}" for number in range(plan.listeners)], plan.seconds)
    few = [f"c{number}" for number in range(min(99, plan.listeners - 1))]
    # It must be over before the other is cut off.
    seconds = min(plan.seconds, 5.0)
    stalled = _Stalled(server)
    # A new subscription has its own cost, once: what is compared has it before.
    _publish(server, rows, 1.0)
    alone = _listened(server, few, seconds)
    stalled.listen()
    beside = _listened(server, few, seconds)
    after = stalled.cut_off()
    results = [
        Result(
            f"{plan.listeners:,} consumers",
            (many["cpu"] - published * many["sent"]) / max(1, many["deliveries"]) * 1e6,
            "µs of server CPU a delivery",
            goal=15 if full else None,
            section=section,
        ),
        Result(
            f"{plan.listeners:,} consumers, publishing included",
            many["cpu"] / max(1, many["deliveries"]) * 1e6,
            "µs of server CPU a delivery",
            section=section,
        ),
        Result(
            "the same events published, with nobody who listens",
            published * 1e6,
            "µs of server CPU an event",
            section=section,
        ),
        Result("deliveries", many["deliveries"], "in all", section=section),
        Result(
            "memory above the engine",
            many["memory"] - before,
            "MB",
            goal=200 if full else None,
            section=section,
        ),
        Result("p99 of 99 consumers", 1e3 * (alone["p99"] or 0), "ms", section=section),
        Result(
            "p99 of 99 beside one that reads nothing",
            1e3 * (beside["p99"] or 0),
            "ms",
            goal=1.5e3 * (alone["p99"] or 0) if full else None,
            section=section,
        ),
    ]
    results.append(
        Result("that one is cut off after", after, "s", goal=10 if full else None, section=section)
    )
    return results


class _Stalled:
    """A listener that stopped reading in the middle of more than any buffer holds."""

    def __init__(self, server: _Server) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port)
        self._port = server.port
        self._ask("PUT", "/v1/subscriptions/stalled", b'{"filter": "stalled = 1", "consumer": "stalled"}')

    def listen(self) -> None:
        """Begin to listen, have more published than any buffer holds, and read nothing of it."""
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        self._socket.connect(("127.0.0.1", self._port))
        self._socket.sendall(b"GET /v1/consumers/stalled/listen HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self._socket.recv(64)
        some = [{"id": f"b{number}", "stalled": 1, "text": "x" * 10_000} for number in range(100)]
        for _ in range(20):
            self._ask("POST", "/v1/events", msgspec.json.encode(some))
        self._began = time.monotonic()

    def _ask(self, method: str, path: str, body: bytes = b"") -> None:
        self._connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        answer.read()
        assert answer.status < 300, answer.status

    def cut_off(self) -> float:
        """Wait until it is cut off; returns how many seconds that took since its buffers were full."""
        while _is_open(self._socket) and time.monotonic() - self._began < 60:
            time.sleep(0.05)
        after = time.monotonic() - self._began
        self._socket.close()
        self._ask("DELETE", "/v1/subscriptions/stalled")
        self._connection.close()
        return after


def _is_open(listener: socket.socket) -> bool:
    """Tell whether a connection stands; its first byte of TCP_INFO is the state, and 1 is established."""
    return listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == 1


def _listened(server: _Server, consumers: list[str], seconds: float) -> dict[str, Any]:
    """Publish while consumers listen; returns what the server took for both."""
    rows = list(synthetic("mixed", 1_000).events(np.arange(2_000), SEED).to_pylist())
    with urlopen(f"http://127.0.0.1:{server.port}/v1/events?limit=1", timeout=30) as answer:
        last = json.load(answer)["last"]
    asked = {"port": server.port, "consumers": consumers, "seconds": seconds + 1.0, "after": last}
    listening = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.service_listeners", json.dumps(asked)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert listening.stdout is not None
    assert listening.stdout.readline() == "open\n"
    cpu = server.cpu()
    sent = _publish(server, rows, seconds)
    memory = server.memory()
    found: dict[str, Any] = json.loads(listening.communicate()[0])
    found |= {"cpu": server.cpu() - cpu, "sent": sent, "memory": memory}
    return found


def _publish(server: _Server, rows: list[dict[str, Any]], seconds: float) -> int:
    """Publish at a steady rate; returns how many events there were."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    chance = random.Random(7)
    sent, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        some: list[dict[str, Any]] = []
        for row in chance.sample(rows, 20):
            data = {name: value for name, value in row.items() if value is not None and name != "id"}
            some.append(_envelope(f"x{sent + len(some)}", {**data, "sent": time.time()}))
        connection.request(
            "POST",
            "/v1/events",
            msgspec.json.encode(some),
            {"Content-Type": "application/cloudevents-batch+json"},
        )
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        sent += len(some)
        time.sleep(0.05)
    connection.close()
    return sent


# Starting


def _restart(place: Path, plan: Plan, *, full: bool) -> list[Result]:
    """Measure a start with many retained events."""
    from headgate.service.storage.log import NONE, Block
    from headgate.service.storage.store import Store

    data = place / "restart"
    shutil.copytree(place / "data", data)
    store = Store(data / "tenants" / "default")
    first = store.log.bounds().last + 1
    text = msgspec.json.encode(_envelope("e", {f"a{number}": number for number in range(20)}))
    for begin in range(first, first + plan.retained, 1_000):
        count = min(1_000, first + plan.retained - begin)
        found = np.arange(24 * count, dtype=np.uint32) % plan.filters + 1
        ends = np.arange(24, 24 * count + 1, 24, dtype=np.uint32)
        now = time.time_ns() // 1_000
        hashes = np.zeros(count, np.uint32)
        store.log.append([Block(begin, now, [text] * count, ends, found, NONE, NONE, hashes)], [])
    kept = store.log.bounds()
    store.close()
    with _server(data) as server:
        started = server.started
    return [
        Result(
            f"{kept.last - kept.first + 1:,} retained events, {plan.filters:,} subscriptions: ready after",
            started,
            "CPU s",
            goal=5 if full else None,
            section="Start",
        )
    ]
