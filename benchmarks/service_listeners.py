"""Listeners of the benchmark of the service: a process with many connections of server-sent events.

    python -m benchmarks.service_listeners '{"port": 8080, "consumers": ["c0", "c1"], "seconds": 8,
    "stalled": 0}'

Each event carries the time at which it was sent (`data.sent`), so latency is measured here. It prints one
line when all connections are open, and one JSON object at the end.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from typing import Any


def _request(consumer: str, after: int) -> bytes:
    head = f"GET /v1/consumers/{consumer}/listen HTTP/1.1\r\nHost: x\r\nLast-Event-ID: {after}\r\n\r\n"
    return head.encode()


_SENT = re.compile(rb'"sent":([0-9.]+)')


async def _listen(
    port: int, consumer: str, after: int, times: list[float], counts: list[int], opened: asyncio.Event
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(
        f"GET /v1/consumers/{consumer}/listen HTTP/1.1\r\nHost: x\r\nLast-Event-ID: {after}\r\n\r\n".encode()
    )
    await reader.readuntil(b"\r\n\r\n")
    opened.set()
    try:
        while True:
            piece = await reader.read(1 << 16)
            if not piece:
                return
            now = time.time()
            found = _SENT.findall(piece)
            counts[0] += len(found)
            times.extend(now - float(each) for each in found)
    finally:
        writer.close()


async def _stall(port: int, consumer: str, after: int, ended: list[float]) -> None:
    """Open a connection, and never read from it again."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 12)
    writer.write(
        f"GET /v1/consumers/{consumer}/listen HTTP/1.1\r\nHost: x\r\nLast-Event-ID: {after}\r\n\r\n".encode()
    )
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    began = time.monotonic()
    while True:
        await asyncio.sleep(0.2)
        # A connection that was cut off cannot be written to.
        writer.write(b"")
        sock = writer.get_extra_info("socket")
        if sock is None or sock.getsockopt(6, 11, 1)[0] != 1:
            ended.append(time.monotonic() - began)
            return


async def _main(asked: dict[str, Any]) -> dict[str, Any]:
    times: list[float] = []
    counts, ended = [0], list[float]()
    opened = [asyncio.Event() for _ in asked["consumers"]]
    tasks = [
        asyncio.ensure_future(_listen(asked["port"], consumer, asked["after"], times, counts, event))
        for consumer, event in zip(asked["consumers"], opened, strict=True)
    ]
    for event in opened:
        await event.wait()
    if asked.get("stalled"):
        tasks.append(asyncio.ensure_future(_stall(asked["port"], asked["stalled"], asked["after"], ended)))
    print("open", flush=True)
    await asyncio.sleep(asked["seconds"])
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    times.sort()
    return {
        "deliveries": counts[0],
        "p50": times[len(times) // 2] if times else None,
        "p99": times[int(len(times) * 0.99)] if times else None,
        "cut_off": ended[0] if ended else None,
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_main(json.loads(sys.argv[1])))))
