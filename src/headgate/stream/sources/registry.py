"""Which sources of events there are besides folders. CONTRIBUTING says how one is added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.stream.sources.kafka import Kafka
from headgate.stream.sources.nats import Nats
from headgate.stream.sources.service import Service

if TYPE_CHECKING:
    from headgate.runtime.changes import Changes, ChangeSettings
    from headgate.stream.settings import StreamSettings
    from headgate.stream.sources.source import Source


SOURCES: tuple[Source, ...] = (Nats(), Kafka(), Service())


def source_of(place: str | None) -> Source | None:
    """Find the source of an address; that of a folder is None."""
    return next((source for source in SOURCES if source.has(place)), None)


def sources_of(settings: StreamSettings) -> list[Source]:
    """List the sources that a stream's settings name, for whatever."""
    places = (settings.events, settings.output, settings.changes)
    return [source for source in SOURCES if any(map(source.has, places))]


def open_changes(settings: ChangeSettings) -> Changes | None:
    """Open the source of changes that the settings name, if they name one."""
    if settings.changes is None:
        return None
    source = source_of(settings.changes)
    if source is not None:
        return source.changes(settings)
    from headgate.runtime.changes import FileChanges
    from headgate.tables.packed import ending, read_file

    return FileChanges(settings.changes, ending, read_file)
