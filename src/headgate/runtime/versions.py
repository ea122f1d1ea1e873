"""Live subscriptions: a snapshot with the changes since, up to a version; the driver and workers have them.

Changes are read by one function (`operations`), done by one (`live`) and in one order, so all answer alike.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.contents.registry import kind_at
from headgate.runtime.live import apply
from headgate.runtime.operations import read_change
from headgate.runtime.pieces import Pieces

if TYPE_CHECKING:
    from collections.abc import Iterator


class Version(NamedTuple):
    """The subscriptions at one moment."""

    snapshot: str
    """A directory that does not change."""
    since: int
    """The version of the log that it holds already."""
    version: int
    """The version that is meant."""
    log: str
    """The directory of the log."""
    owner: str
    """The state that it is of: another one may have had the same place."""


class _Held(NamedTuple):
    at: Version
    pieces: Pieces


_held: dict[str, _Held] = {}


def pieces_at(wanted: Version) -> Pieces:
    """Return the subscriptions at a version: those of the last call, with what is new, if that will do."""
    # Taken out: of one that did not catch up it is not known how far it came.
    held = _held.pop(wanted.snapshot, None)
    if held is None or held.at.version > wanted.version or _lineage(held.at) != _lineage(wanted):
        # At most one is kept. The driver has verified the snapshot.
        _held.clear()
        held = _Held(wanted._replace(version=wanted.since), Pieces.open(Path(wanted.snapshot), verify=False))
    catch_up(held.pieces, Path(wanted.snapshot), Path(wanted.log), held.at.version, wanted.version)
    _held[wanted.snapshot] = _Held(wanted, held.pieces)
    return held.pieces


def _lineage(at: Version) -> tuple[int, str]:
    return at.since, at.owner


def catch_up(pieces: Pieces, snapshot: Path, log: Path, have: int, want: int) -> None:
    """Apply the versions of a log after one, up to another."""
    dialect = default_dialect(snapshot)
    for version in range(have + 1, want + 1):
        for change in read_segment(log, version):
            apply(read_change(change, dialect), pieces)


def segment(log: Path, version: int) -> Path:
    """Name the file of a version."""
    return log / f"{version:010d}.jsonl"


def read_segment(log: Path, version: int) -> Iterator[dict[str, Any]]:
    """Read the changes of a version; its first line is about them."""
    with segment(log, version).open("rb") as file:
        next(file)
        for line in file:
            yield json.loads(line)


def default_dialect(snapshot: Path) -> str:
    """Return the dialect of filters that name none: the first of the snapshot's content room."""
    return kind_at(snapshot).dialects[0]
