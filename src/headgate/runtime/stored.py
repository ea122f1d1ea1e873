"""Snapshots in object stores: what their versions hold, and which of them may go.

Who reads a version there is not known here. The current one stays, and what is newer than it: somebody may be
sending it.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.core.snapshot import MANIFEST
from headgate.core.versions.current import CURRENT, number_of
from headgate.core.versions.stores import Address, Store
from headgate.runtime.inventory import Pruned, SnapshotInfo, info_of

if TYPE_CHECKING:
    from headgate.core.versions.current import Named


def look_at(address: str) -> list[SnapshotInfo]:
    """Describe the versions of a snapshot, the newest first; only their manifests are fetched."""
    store = Store(Address.of(address))
    current = store.current()
    return [_info(store, name, current) for name in reversed(store.names())]


def _info(store: Store, name: str, current: Named) -> SnapshotInfo:
    files = store.files(name)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / name
        place.mkdir()
        store.fetch(name, place, only=MANIFEST)
        found = info_of(place, (CURRENT,) if name == current.name else ())
        damaged = (
            None if found.damaged is None else found.damaged.replace(str(place), f"{store.shown}/{name}")
        )
    made = files[MANIFEST].mtime if MANIFEST in files else None
    return replace(
        found,
        path=f"{store.shown}/{name}",
        files=len(files),
        bytes=sum(each.size for each in files.values()),
        made="" if made is None else made.astimezone(UTC).isoformat(timespec="seconds"),
        damaged=damaged,
    )


def prune(address: str, keep: int, *, dry: bool = False) -> Pruned:
    """Remove versions of a snapshot, all but the current one and the newest `keep`."""
    store = Store(Address.of(address))
    current = store.current()
    kept: list[tuple[str, str]] = []
    gone: list[tuple[str, int]] = []
    for place, name in enumerate(reversed(store.names())):
        path = f"{store.shown}/{name}"
        if name == current.name:
            kept.append((path, CURRENT))
        elif number_of(name) > number_of(current.name):
            kept.append((path, "newer than the current one"))
        elif place < keep:
            kept.append((path, "among the newest"))
        else:
            gone.append((path, sum(store.sizes(name).values())))
            if not dry:
                store.remove(name)
    return Pruned(tuple(gone), tuple(kept))
