"""Put lines of a file into a NATS stream, or show what a stream holds: enough to try Headgate with NATS.

    python -m examples.nats.messages put 'nats://127.0.0.1:4222/EVENTS?subject=events.demo' events.jsonl
    python -m examples.nats.messages show nats://127.0.0.1:4222/MATCHES

`put` makes the stream if there is none. Run it from the project's root.
"""

from __future__ import annotations

import sys
import uuid
from dataclasses import replace
from pathlib import Path

from headgate.brokers.nats.reading import Range
from headgate.brokers.nats.settings import NatsSettings
from headgate.brokers.nats.stream import MESSAGE_ID, Outgoing, Stream


def put(address: str, file: str) -> None:
    """Publish each line as one message."""
    said = NatsSettings.of(address)
    subject = said.subject or said.stream.lower()
    run = uuid.uuid4().hex
    lines = Path(file).read_bytes().splitlines()
    with Stream(replace(said, subject=subject)) as stream:
        if stream.look() is None:
            stream.create(subject)
        stream.publish([Outgoing(subject, line, {MESSAGE_ID: f"{run}:{n}"}) for n, line in enumerate(lines)])
    print(f"published {len(lines):,} messages to {subject}")


def show(address: str) -> None:
    """Print every message: its sequence number, subject and data."""
    said = NatsSettings.of(address)
    with Stream(said) as stream:
        state = stream.state()
        for part in stream.messages(Range(state.first, state.end, said.subject)):
            for message in part:
                print(message.sequence, message.subject, message.data.decode())


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["put", address, file]:
            put(address, file)
        case ["show", address]:
            show(address)
        case _:
            sys.exit(__doc__)
