"""How many messages a second go to a NATS stream and come from it, with and without Spark.

    python -m examples.nats.speed nats://127.0.0.1:4222

It makes a stream of its own on that server, and removes it. Run it from the project's root.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import uuid
from functools import partial
from typing import TYPE_CHECKING

from headgate.brokers.nats.connection import Connection
from headgate.brokers.nats.reading import Range
from headgate.brokers.nats.settings import NatsSettings
from headgate.brokers.nats.stream import MESSAGE_ID, Outgoing, Stream
from headgate.spark.session.session import close_session, open_session
from headgate.spark.stream.logs import read_log
from headgate.stream.sources.nats_log import NatsLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

COUNT = 200_000
BATCH = 50_000


def main(server: str) -> None:
    """Measure, and print a table."""
    name = f"speed-{uuid.uuid4().hex[:8]}"
    said = NatsSettings.of(f"{server}/{name}?subject={name}&max_rows={BATCH}")
    data = json.dumps({"id": "event-0000001", **{f"a{n:02}": n * 37 for n in range(25)}}).encode()
    rows = [f"{len(data)} bytes a message, {COUNT:,} messages, {os.cpu_count()} cores"]
    with Stream(said) as stream:
        stream.create(name)
        messages = [Outgoing(name, data, {MESSAGE_ID: str(n)}) for n in range(COUNT)]
        rows.append(_line("published, every answer awaited", lambda: stream.publish(messages)))
        wanted = Range(1, COUNT + 1)
        rows.append(_line("read by one process", lambda: sum(map(len, stream.messages(wanted)))))
    session = open_session("local[2]")
    try:
        _drain(session, said)
        rows.append(_line(f"read by Spark, two tasks, batches of {BATCH:,}", lambda: _drain(session, said)))
    finally:
        close_session(session)
        with Connection(said) as link:
            link.ask(f"STREAM.DELETE.{name}")
    print("\n".join(rows))
    print(f"load {os.getloadavg()[0]:.1f} at the end")


def _line(title: str, work: Callable[[], object]) -> str:
    begun = time.perf_counter()
    work()
    return f"{title:50}{COUNT / (time.perf_counter() - begun):>10,.0f} /s"


def _drain(session: SparkSession, said: NatsSettings) -> None:
    with tempfile.TemporaryDirectory() as state:
        query = (
            read_log(session, partial(NatsLog, said))
            .writeStream.format("noop")
            .option("checkpointLocation", state)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
