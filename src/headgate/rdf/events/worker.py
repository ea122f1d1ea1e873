"""The parser process: `python -m headgate.rdf.events.worker MEMORY`.

It reads frames from its standard input and answers on its standard output. A frame is its length in four
bytes, the lowest first, and MessagePack.

    in     [settings, [[data, kind, name], …]]
    out    one frame each: [text, triples], or the reason of a refusal as a string

The first frame out says that it is ready. It ends when its input does, so it does not outlive who started it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import time
from typing import TYPE_CHECKING, TypeVar

import msgspec

from headgate.errors import EventError
from headgate.rdf.events.triples import Settings, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

READY = "ready"
HEAD = 4
CPU_SECONDS = 30
"""Time of the processor for one document: ends a process that nobody waits for any more."""


class Frame(msgspec.Struct, array_like=True):
    """Documents, each with its media type and what messages call it."""

    settings: Settings
    documents: list[tuple[bytes, str, str]]


def pack(value: object) -> bytes:
    """Write a frame."""
    packed = msgspec.msgpack.encode(value)
    return len(packed).to_bytes(HEAD, "little") + packed


def serve(memory: int, frames: type[T], answers: Callable[[T], Iterator[object]]) -> None:
    """Answer until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    restrict(memory)
    decoder = msgspec.msgpack.Decoder(frames)
    write(pack(READY))
    while head := read(HEAD):
        for answer in answers(decoder.decode(read(int.from_bytes(head, "little")))):
            write(pack(answer))


def _parsed(frame: Frame) -> Iterator[object]:
    for data, kind, name in frame.documents:
        allow_cpu()
        try:
            answer: object = parse(data, kind, name, frame.settings)
        except EventError as error:
            answer = str(error)
        yield answer


def restrict(memory: int) -> None:
    """Give up what a parser does not need, as far as the platform lets us."""
    for name, most in (
        ("RLIMIT_AS", memory),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_FSIZE", 0),
        ("RLIMIT_NOFILE", 0),
        ("RLIMIT_NPROC", 0),
    ):
        if hasattr(resource, name):
            # A platform may know a limit by name only.
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(getattr(resource, name), (most, most))


def allow_cpu() -> None:
    """Let the process run so much longer."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(time.process_time()) + CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard < 0 else min(soft, hard), hard))


def read(size: int) -> bytes:
    """Read some bytes; none at the end of the input."""
    parts: list[bytes] = []
    while size:
        part = os.read(0, min(size, 1 << 20))
        if not part:
            return b""
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write(data: bytes) -> None:
    """Write all of some bytes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]


if __name__ == "__main__":
    serve(int(sys.argv[1]), Frame, _parsed)
