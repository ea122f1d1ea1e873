"""Ranked subscriptions cut into shards: each has its own part of them, and answers with its own best.

    snapshot/
      manifest.json     how many there are
      shard-000/        a snapshot of ranked subscriptions
      shard-001/        …

The best k of all are among the best k of each shard.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from headgate.core.snapshot import open_snapshot, open_with_inside, room_of, write_snapshot
from headgate.graph.sharding import homes
from headgate.ranking.base import open_frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.core.ids import Ids

    Save = Callable[[NDArray[np.int64], Path], None]

ROOM = "ranking-shards"


def save_shards(
    path: Path, ids: Ids, count: int, save: Save, *, source: Mapping[str, object] | None = None
) -> None:
    """Write a snapshot of shards; `save` writes the one of some places among `ids`, one at a time.

    A subscription is on the shard that the hash of its id says, as in a graph.
    """
    home = homes(ids, count)

    def save_one(number: int, place: Path) -> None:
        save(np.flatnonzero(home == number), place)

    inside = {_name(number): partial(save_one, number) for number in range(count)}
    counts = {"shards": count, "subscriptions": len(ids)}
    write_snapshot(path, ROOM, {}, counts=counts, about={"source": dict(source or {})}, inside=inside)


def ranked_places(path: Path) -> list[Path]:
    """List the directories of the shards of a snapshot; one that is not cut is its own."""
    if room_of(path) != ROOM:
        return [path]
    count = open_with_inside(path, lambda: open_snapshot(path, ROOM)).counts["shards"]
    return [path / _name(number) for number in range(count)]


def have_numbers(places: list[Path]) -> bool:
    """Tell whether the ids of shards are whole numbers; one without subscriptions does not know."""
    ids = [open_frozen(place, verify=False).ids for place in places]
    return all(each.numbered for each in ids if len(each))


def _name(number: int) -> str:
    return f"shard-{number:03}"
