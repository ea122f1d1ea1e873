"""Whether tables are small enough for a job in this process: Spark takes 10 seconds to start."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.client.log import EventLog, Position
from headgate.local.checkpoint import Checkpoint, FoundFile, PositionNotes
from headgate.stream.service import events_of
from headgate.stream.settings import SERVICE, is_broker
from headgate.tables.packed import GROWTH, codec_of, size_of
from headgate.tables.places import is_hidden, is_remote, local, table_files

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.stream.settings import StreamSettings

BYTES = 16 << 20
"""What tables may have together, on disk."""
ROWS = 200_000
"""How many rows a workload may have."""


def why_large(tables: Iterable[str]) -> str | None:
    """Say why a job over tables is for Spark; None if it is small."""
    size = 0
    for path in tables:
        if is_remote(path):
            return f"{path} is not on this machine"
        size += sum(size_of(file) for file in table_files(path))
    if size > BYTES:
        return f"the tables have {size >> 20:,} MB, and up to {BYTES >> 20} are small"
    return None


def why_stream(settings: StreamSettings) -> str | None:
    """Say why a stream is for Spark; None if it takes few files that are there, and ends."""
    unable = unable_to_stream(settings)
    if unable is not None:
        return unable
    if settings.events.startswith(SERVICE):
        return (
            None
            if (many := waiting(settings)) <= ROWS
            else f"{many:,} events wait, and up to {ROWS:,} are few"
        )
    size = sum(file.size * (GROWTH if codec_of(file.path) else 1) for file in new_files(settings))
    if size > BYTES:
        return f"the new files have {size >> 20:,} MB, and up to {BYTES >> 20} are small"
    return None


def unable_to_stream(settings: StreamSettings) -> str | None:
    """Say what of a stream this process cannot do."""
    if not settings.once:
        return "a stream that goes on, without --once"
    places = (settings.events, settings.output, settings.changes or "")
    if any(is_broker(place) and not place.startswith(SERVICE) for place in places):
        return "a stream from or to a broker"
    return None


def waiting(settings: StreamSettings) -> int:
    """Count the positions of a service's log that belong to no batch yet."""
    noted = PositionNotes(Path(settings.state).absolute() / "spark").end()
    with EventLog(events_of(settings)) as log:
        state = log.state()
        begin = log.begin() if noted is None else Position.of(noted, settings.events)
        return log.end(begin, state).after - max(begin.after, state.first - 1)


def new_files(settings: StreamSettings) -> list[FoundFile]:
    """List the files of a stream's folder that belong to no batch yet, the oldest first."""
    known = Checkpoint(Path(settings.state).absolute() / "spark").known()
    base = local(settings.events).absolute()
    found = []
    for folder, _, names in os.walk(base, followlinks=True):
        for name in names:
            place = Path(folder) / name
            if is_hidden(place.relative_to(base)) or str(place) in known:
                continue
            with suppress(FileNotFoundError):
                about = place.stat()
                found.append(FoundFile(str(place), about.st_mtime_ns // 1_000_000, about.st_size))
    return sorted(found, key=lambda file: (file.at, file.path))
