"""Listeners of the benchmark of the service: a process with many connections of server-sent events.

    python -m benchmarks.service_listeners '{"port": 8080, "consumers": ["c0", "c1"], "seconds": 8,
    "after": 0}'

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
    head = (
        f"GET /v1/consumers/{consumer}/listen HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: {after}\r\n\r\n"
    )
    return head.encode()


_SENT = re.compile(rb'"sent":([0-9.]+)')


async def _listen(
    port: int, consumer: str, after: int, times: list[float], counts: list[int], opened: asyncio.Event
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(_request(consumer, after))
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


async def _main(asked: dict[str, Any]) -> dict[str, Any]:
    times: list[float] = []
    counts = [0]
    opened = [asyncio.Event() for _ in asked["consumers"]]
    tasks = [
        asyncio.ensure_future(_listen(asked["port"], consumer, asked["after"], times, counts, event))
        for consumer, event in zip(asked["consumers"], opened, strict=True)
    ]
    for event in opened:
        await event.wait()
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
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_main(json.loads(sys.argv[1])))))
