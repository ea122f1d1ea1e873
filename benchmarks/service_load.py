"""The load generator of the benchmark of the service: a process beside it that sends prepared requests.

    python -m benchmarks.service_load '{"port": 8080, "mode": "batches", "seconds": 8, "events":
    "events.jsonl"}'

It prints one JSON object: what it sent, the times of requests, and what was not answered with 200.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

BATCH = 100
_PREPARED = 200


def _request(path: str, kind: str, body: bytes) -> bytes:
    about = f"Content-Type: {kind}\r\nContent-Length: {len(body)}"
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{about}\r\n\r\n".encode() + body


def prepare(lines: list[bytes], mode: str) -> list[tuple[int, bytes]]:
    """Make requests: how many events each has, and its bytes."""
    path = "/v1/match" if mode == "match" else "/v1/events"
    if mode == "single":
        return [(1, _request(path, "application/cloudevents+json", line)) for line in lines[: 20 * _PREPARED]]
    found = []
    for number in range(_PREPARED):
        begin = number * BATCH % max(1, len(lines) - BATCH)
        body = b"[" + b",".join(lines[begin : begin + BATCH]) + b"]"
        found.append((BATCH, _request(path, "application/cloudevents-batch+json", body)))
    return found


class Load:
    """Connections that send one request after another."""

    def __init__(self, port: int, requests: list[tuple[int, bytes]], rate: float | None = None) -> None:
        self._port = port
        self._requests = requests
        self._rate = rate
        self.events = 0
        self.times: list[float] = []
        self.others: dict[int, int] = {}
        """Answers that were not 200, by status."""

    async def connection(self, number: int, until: float) -> None:
        """Send requests over one connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        place = number * 37
        try:
            while time.monotonic() < until:
                count, request = self._requests[place % len(self._requests)]
                place += 1
                began = time.monotonic()
                writer.write(request)
                status, _ = await answer(reader)
                self.times.append(time.monotonic() - began)
                if status == 200:
                    self.events += count
                else:
                    self.others[status] = self.others.get(status, 0) + 1
                    await asyncio.sleep(0.01)
        finally:
            writer.close()

    async def run(self, connections: int, seconds: float) -> None:
        """Send for some seconds."""
        until = time.monotonic() + seconds
        await asyncio.gather(*(self.connection(number, until) for number in range(connections)))


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Read an answer: its status and its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return int(head[9:12]), await reader.readexactly(length)


async def _main(asked: dict[str, Any]) -> dict[str, Any]:
    lines = Path(asked["events"]).read_bytes().splitlines()
    load = Load(asked["port"], prepare(lines, asked["mode"]))
    began = time.monotonic()
    await load.run(asked["connections"], asked["seconds"])
    seconds = time.monotonic() - began
    times = sorted(load.times)
    return {
        "events": load.events,
        "seconds": seconds,
        "others": load.others,
        "p50": times[len(times) // 2],
        "p99": times[int(len(times) * 0.99)],
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_main(json.loads(sys.argv[1])))))
