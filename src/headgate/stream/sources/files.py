"""Files of events in a folder: what they may be taken from, and removed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headgate.errors import TableError
from headgate.stream.settings import ARCHIVE, KEEP
from headgate.tables.places import check_links, is_remote, leads_out, local

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.stream.settings import StreamSettings


def check_source(settings: StreamSettings) -> None:
    """Refuse a folder that files cannot be taken from."""
    if is_remote(settings.events):
        raise TableError(
            f"{settings.events}: a stream takes files from a folder that all machines see: name one, "
            "or a broker"
        )
    if not local(settings.events).is_dir():
        raise TableError(f"{settings.events} is not a folder: make it, and move files of events into it")
    check_links(settings.events, folders=True)
    kept = settings.finished.removeprefix(ARCHIVE)
    if kept != settings.finished:
        inside = Path(kept).absolute().is_relative_to(local(settings.events).absolute())
        if not kept or inside:
            raise TableError(f"finished is {settings.finished!r}: name a folder outside of {settings.events}")


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
