"""Whether a stream is small enough for this process: few files or events that are there, and an end."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.local import small
from headgate.local.checkpoint import Checkpoint, new_files
from headgate.stream.settings import is_broker
from headgate.stream.sources.registry import source_of
from headgate.tables.packed import GROWTH, codec_of

if TYPE_CHECKING:
    from headgate.stream.settings import StreamSettings
    from headgate.stream.sources.logs import Log


def why_stream(settings: StreamSettings) -> str | None:
    """Say why a stream is for Spark; None if it takes few files that are there, and ends."""
    unable = unable_to_stream(settings)
    if unable is not None:
        return unable
    log = log_of(settings)
    if log is not None:
        with closing(log):
            many = waiting(settings, log)
        return None if many <= small.ROWS else f"{many:,} events wait, and up to {small.ROWS:,} are few"
    size = sum(file.size * (GROWTH if codec_of(file.path) else 1) for file in new_files(settings))
    if size > small.BYTES:
        return f"the new files have {size >> 20:,} MB, and up to {small.BYTES >> 20} are small"
    return None


def unable_to_stream(settings: StreamSettings) -> str | None:
    """Say what of a stream this process cannot do."""
    if not settings.once:
        return "a stream that goes on, without --once"
    source = source_of(settings.events)
    if is_broker(settings.output) or is_broker(settings.changes) or not (source is None or source.local):
        return "a stream from or to a broker"
    return None


def log_of(settings: StreamSettings) -> Log | None:
    """Open the log that events come from; None if it is a folder."""
    source = source_of(settings.events)
    opening = None if source is None else source.log(settings)
    return None if opening is None else opening()


def waiting(settings: StreamSettings, log: Log) -> int:
    """Count the positions of a log that belong to no batch yet."""
    begin = Checkpoint(Path(settings.state).absolute() / "spark").end() or log.begin()
    span = log.span(begin, log.end(begin, None))
    return span.stop - span.start
