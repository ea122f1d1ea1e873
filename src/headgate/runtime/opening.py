"""Snapshots in workers: opened once, and only the very one that the driver has verified."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from headgate.core.snapshot import digest_of
from headgate.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Callable

    Opened = TypeVar("Opened")


def opened_as(path: str, digest: str, opening: Callable[[Path], Opened]) -> Opened:
    """Open a snapshot that must have a digest.

    It is looked at afterwards: what was mapped before another snapshot took the place stays as it was.
    """
    place = Path(path)
    found = opening(place)
    if digest_of(place) != digest:
        raise SnapshotError(
            f"snapshot {path} was replaced while it was being used: run the job again, with the new one"
        )
    return found
