"""The speed of logs that match nothing.

NATS JetStream and Redis streams, durable, where they are installed.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.results import Result

SECTION = "Logs that match nothing, durable, by the clock"
_BODY = b"x" * 400


def peers(place: Path, seconds: float) -> list[Result]:
    """Measure those that are there; one that is not is left out."""
    results = []
    nats = Path(sys.executable).with_name("nats-server")
    program = str(nats) if nats.exists() else shutil.which("nats-server")
    if program:
        results += _jetstream(program, place / "nats", seconds)
    redis = shutil.which("redis-server")
    if redis:
        results += _redis(redis, place / "redis", seconds)
    return results


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait(port: int) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server did not start")


def _jetstream(program: str, place: Path, seconds: float) -> list[Result]:
    place.mkdir()
    port = _free_port()
    settings = place / "nats.conf"
    settings.write_text(f'jetstream {{ store_dir: "{place}/js", sync_interval: always }}\n', "utf-8")
    process = subprocess.Popen(
        [program, "-a", "127.0.0.1", "-p", str(port), "-c", str(settings)], stderr=subprocess.DEVNULL
    )
    try:
        _wait(port)
        return [
            Result(
                f"NATS JetStream, sync always, {flight} in flight",
                asyncio.run(_published(port, flight, seconds)),
                "events a second",
                section=SECTION,
            )
            for flight in (1, 100)
        ]
    finally:
        process.terminate()
        process.wait(20)


async def _published(port: int, flight: int, seconds: float) -> float:
    import nats

    connection = await nats.connect(f"nats://127.0.0.1:{port}")
    stream: Any = connection.jetstream()
    await stream.add_stream(name=f"s{flight}", subjects=[f"e{flight}"])
    done, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        await asyncio.gather(*(stream.publish(f"e{flight}", _BODY) for _ in range(flight)))
        done += flight
    await connection.close()
    return done / seconds


def _redis(program: str, place: Path, seconds: float) -> list[Result]:
    place.mkdir()
    port = _free_port()
    process = subprocess.Popen(
        [
            program,
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--dir",
            str(place),
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            "--save",
            "",
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait(port)
        return [
            Result(
                f"Redis stream, appendfsync always, {flight} in a pipeline",
                _added(port, flight, seconds),
                "events a second",
                section=SECTION,
            )
            for flight in (1, 100)
        ]
    finally:
        process.terminate()
        process.wait(20)


def _added(port: int, flight: int, seconds: float) -> float:
    """Add events in the protocol of Redis, which is a few lines."""
    command = b"*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$1\r\nd\r\n$%d\r\n%s\r\n" % (len(_BODY), _BODY)
    done, until = 0, time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", port)) as connection:
        answers = connection.makefile("rb")
        while time.monotonic() < until:
            connection.sendall(command * flight)
            for _ in range(flight):
                answers.read(int(answers.readline()[1:]) + 2)
            done += flight
    return done / seconds
