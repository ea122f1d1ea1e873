"""Where a snapshot lies: the directory on this machine that counts at a place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.arguments import place_of
from headgate.core.versions.current import resolved

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path


def located(given: str | PathLike[str]) -> Path:
    """Return the directory of the version that counts at a place: it does not change any more."""
    return resolved(place_of(given))
