"""Where changes of subscriptions come from while a stream runs: a folder, or a source that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.runtime.changes import FileChanges
from headgate.stream.sources.registry import source_of
from headgate.tables.packed import ending, read_file

if TYPE_CHECKING:
    from headgate.runtime.changes import Changes, ChangeSettings


def open_changes(settings: ChangeSettings) -> Changes | None:
    """Open the source of changes that the settings name, if they name one."""
    if settings.changes is None:
        return None
    source = source_of(settings.changes)
    return FileChanges(settings.changes, ending, read_file) if source is None else source.changes(settings)
