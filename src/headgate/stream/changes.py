"""Where changes of subscriptions come from while a stream runs: a folder, or a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.runtime.changes import FileChanges
from headgate.stream.settings import NATS
from headgate.tables.packed import ending, read_file

if TYPE_CHECKING:
    from headgate.runtime.changes import Changes, ChangeSettings


def open_changes(settings: ChangeSettings) -> Changes | None:
    """Open the source of changes that the settings name, if they name one."""
    if settings.changes is None:
        return None
    if settings.changes.startswith(NATS):
        from headgate.stream.nats import NatsChanges

        return NatsChanges(settings)
    return FileChanges(settings.changes, ending, read_file)
