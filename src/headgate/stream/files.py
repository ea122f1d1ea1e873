"""Files of events in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headgate.errors import TableError
from headgate.stream.settings import KEEP
from headgate.tables.places import leads_out

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.stream.settings import StreamSettings


def check_removed(paths: Iterable[str], settings: StreamSettings) -> None:
    """Refuse files behind a link to a folder elsewhere, if they are to be removed when the batch is done."""
    if settings.finished == KEEP:
        return
    for folder in sorted({Path(path).parent for path in paths}):
        if leads_out(folder, settings.events):
            raise TableError(
                f"{folder} lies behind a link that leads out of {settings.events}, and finished is "
                f"{settings.finished!r}: remove the link, so that nothing is removed there"
            )
