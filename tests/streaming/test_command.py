"""The command as users run it: asked to end, it ends after the batch under way; and it tells how it goes."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
import urllib.request
from typing import TYPE_CHECKING

import pytest

from headgate import Engine, Subscription
from tests.streaming.killing import COMMAND, LEAN
from tests.streaming.world import World

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE = 90.0


def _wait(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, "the stream ended by itself"
        assert time.monotonic() < until, "it did not come in time"
        time.sleep(0.005)


def _stages(world: World) -> dict[int, str]:
    files = (world.state / "batches").glob("[0-9]*.json")
    return {int(file.stem): json.loads(file.read_text("utf-8"))["stage"] for file in files}


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _metrics(port: int) -> dict[str, float]:
    """Read what Prometheus would, from lines that are values."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    rows = [line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in rows}


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_asked_to_end(tmp_path: Path, number: signal.Signals) -> None:
    """In the midst of a batch: that one is committed, the next one is left, and the last lines say so."""
    world, port = World(tmp_path), _free_port()
    Engine.build([Subscription("s1", "n > 10")]).save(world.snapshot)
    world.send("0.jsonl", [{"id": n, "n": n} for n in range(20)])
    page = tmp_path / "page.html"
    command = [
        *COMMAND, "stream", "--snapshot", str(world.snapshot), "--events", str(world.events),
        "--output", str(world.output), "--state", str(world.state), "--files", "jsonl", "--quiet",
        "--every", "0.1", "--metrics-port", str(port), "--report", str(page),
        "--master", "local[2]", "--conf", LEAN,
    ]  # fmt: skip
    with (
        (tmp_path / "errors").open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            _wait(process, lambda: _stages(world).get(0) == "committed")
            _wait(process, lambda: _metrics(port)["headgate_batches_total"] == 1)
            told = _metrics(port)
            world.send("1.jsonl", [{"id": 100 + n, "n": n} for n in range(20)])
            _wait(process, lambda: 1 in _stages(world))
            process.send_signal(number)
            output, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 0, (tmp_path / "errors").read_text()
    assert (told["headgate_events_total"], told["headgate_matches_total"]) == (20, 9)
    assert told["headgate_latency_seconds_count"] == 20
    assert _stages(world) == {0: "committed", 1: "committed"}
    assert len(world.matches()) == 18
    assert output.splitlines() == [
        f"matched 40 events in 2 batches: 18 matches in {world.output}",
        "no dead letters",
        f"the page about the run is {page}",
    ]
    assert "headgate stream --snapshot" in page.read_text("utf-8")
