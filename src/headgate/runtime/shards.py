"""Subscriptions without a graph, cut into shards: each has its own part of them.

    snapshot/
      manifest.json     how many there are, the rule, what events are routed by, which are open
      key_*.npy         the keys that lead to each, if there are any
      shard-000/        a snapshot of filters, or of ranked subscriptions
      shard-001/        …

What matches on all shards together is what matches; the best k of all are among the best k of each.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from headgate.contents.registry import room_at
from headgate.core.rooms import FILTER_SHARDS, RANKING_SHARDS
from headgate.core.snapshot import open_snapshot, open_with_inside, room_of, write_snapshot
from headgate.graph.build.sharding import shard_name
from headgate.ranking.filters.base import open_frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from headgate.core.ids import Ids
    from headgate.runtime.routes import Routes
    from headgate.runtime.sharding import Sharding

RANKED, PLAIN = ROOMS = (RANKING_SHARDS, FILTER_SHARDS)


def save_shards(
    path: Path,
    staged: Sequence[Path],
    *,
    ranked: bool,
    routes: Routes,
    sharding: Sharding,
    source: Mapping[str, object] | None = None,
) -> None:
    """Write a snapshot of shards that lie elsewhere on the same disk, and are moved into it."""
    inside = {shard_name(number): partial(_move, place) for number, place in enumerate(staged)}
    counts = {"shards": len(staged), "subscriptions": int(routes.subscriptions.sum())}
    about: dict[str, Any] = {"source": dict(source or {}), **routes.about(sharding)}
    room = RANKED if ranked else PLAIN
    write_snapshot(path, room, routes.arrays(), counts=counts, about=about, inside=inside)


def _move(place: Path, target: Path) -> None:
    place.rename(target)


def shard_places(path: Path) -> list[Path]:
    """List the directories of the shards of a snapshot; one that is not cut is its own."""
    room = room_of(path)
    if room not in ROOMS:
        return [path]
    count = open_with_inside(path, lambda: open_snapshot(path, room)).counts["shards"]
    return [path / shard_name(number) for number in range(count)]


def ids_at(place: Path, *, ranked: bool) -> Ids:
    """Open the ids of a shard."""
    if ranked:
        return open_frozen(place, verify=False).ids
    index: Any = room_at(place).open(place, verify=False)
    found: Ids = index.ids
    return found


def have_numbers(ids: Sequence[Ids]) -> bool:
    """Tell whether the ids of shards are whole numbers; one without subscriptions does not know."""
    return all(each.numbered for each in ids if len(each))
