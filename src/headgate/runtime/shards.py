"""Subscriptions without a graph, cut into shards: where each lies by the rule, and what is written.

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

import numpy as np
import pyarrow as pa

from headgate.core.rooms import FILTER_SHARDS, RANKING_SHARDS
from headgate.core.snapshot import open_snapshot, open_with_inside, room_of, write_snapshot
from headgate.core.versions.current import resolved
from headgate.engine.engine import Engine
from headgate.graph.build.sharding import hash_numbers, hash_texts, shard_name
from headgate.runtime.sharding import ACCESS, HASH, TENANT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.runtime.sharding import Sharding

    Homes = NDArray[np.int64]
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from headgate.core.ids import Ids
    from headgate.runtime.routes import Routes


class ShardPlacement:
    """Says where subscriptions lie; knows what must be known of the whole table.

    Those that anything may match (`open`) have the first shards for themselves, as many as their share is.
    """

    def __init__(self, sharding: Sharding, keyed: int = 0, opened: int = 0) -> None:
        self._sharding = sharding
        self._first = 0
        if sharding.by == ACCESS and keyed and opened:
            share = round(sharding.count * opened / (opened + keyed))
            self._first = max(1, min(sharding.count - 1, share))

    def homes(self, ids: pa.Array[Any], tenants: pa.Array[Any], keys: pa.Array[Any]) -> Homes:
        """Return the shard of each subscription; `keys` is what leads to it, the first of its keys."""
        count = np.uint64(self._sharding.count)
        hashes = _hashes(ids)
        if self._sharding.by == HASH or self._sharding.count == 1:
            return (hashes % count).astype(np.int64)
        named = tenants if self._sharding.by == TENANT else keys
        has = np.asarray(named.is_valid())
        hashes[has] = _hashes(named.filter(pa.array(has)))
        if self._sharding.by == TENANT or not self._first:
            return (hashes % count).astype(np.int64)
        first = np.uint64(self._first)
        return np.where(has, first + hashes % (count - first), hashes % first).astype(np.int64)


def _hashes(values: pa.Array[Any]) -> NDArray[np.uint64]:
    if pa.types.is_integer(values.type):
        return hash_numbers(np.asarray(values.cast(pa.int64()), np.int64))
    return hash_texts(values)


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
    path = resolved(path)
    room = room_of(path)
    if room not in ROOMS:
        return [path]
    count = open_with_inside(path, lambda place: open_snapshot(place, room)).counts["shards"]
    return [path / shard_name(number) for number in range(count)]


def ids_at(place: Path | str) -> Ids:
    """Open a shard, which was verified, for its ids."""
    return Engine.open(place, verify=False).backend.built


def have_numbers(ids: Sequence[Ids]) -> bool:
    """Tell whether the ids of shards are whole numbers; one without subscriptions does not know."""
    return all(each.numbered for each in ids if len(each))
