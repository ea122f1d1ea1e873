"""A graph cut into shards: each has all intermediaries, and its own part of the subscribers.

    shard 0      pub ─► net-1 ─► net-2 ─► adv-a            pub, net-1 and net-2 lead somewhere: on every shard
    shard 1      pub ─► net-1 ─► net-2 ─► adv-b, adv-c     adv-b and adv-c lead nowhere: where they are served

A path leads through nodes that lead somewhere, and ends where a subscription is served. So each shard has all
paths to its subscriptions, and an event gets from all shards together what it gets from the whole graph, each
subscription once.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.jit import kernel
from headgate.core.rooms import GRAPH_SHARDS
from headgate.core.snapshot import shard_name, write_snapshot
from headgate.graph.model import check_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.core.arrays import Bools
    from headgate.graph.model import Parts

    Homes = NDArray[np.int64]

ROOM = GRAPH_SHARDS


def shard(parts: Parts, count: int) -> list[Parts]:
    """Cut a graph into shards.

    >>> from headgate.graph.model import Edge, Node
    >>> from headgate.graph.build.tables import from_models
    >>> nodes = [Node("pub"), Node("a", subscription="a"), Node("b", subscription="b")]
    >>> parts = from_models(nodes, [Edge("pub", "a"), Edge("pub", "b")])
    >>> [(list(each.node_ids), list(each.subscription_ids)) for each in shard(parts, 2)]
    [(['a', 'pub'], ['a']), (['b', 'pub'], ['b'])]
    """
    home = homes(parts.subscription_ids, count)
    return [take_shard(parts, home, count, number) for number in range(count)]


def homes(ids: Ids, count: int) -> Homes:
    """Return the shard of each id, by its hash: it stays the same whatever else there is."""
    check_count(count)
    arrays = ids.to_arrays()
    if ids.numbered:
        hashes = hash_numbers(arrays["ids"].astype(np.int64))
    else:
        hashes = _hashed(arrays["id_offsets"], arrays["id_data"])
    return (hashes % np.uint64(count)).astype(np.int64)


def hash_numbers(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Hash whole numbers; the same on every machine."""
    return _mixed(np.ascontiguousarray(numbers).view(np.uint64))


def hash_texts(texts: pa.Array[Any]) -> NDArray[np.uint64]:
    """Hash texts; the same on every machine.

    >>> (hash_texts(pa.array(["a", "b"])) % np.uint64(2)).tolist() == homes(Ids.of(["a", "b"]), 2).tolist()
    True
    """
    pool = TextPool.from_arrow(texts.cast(pa.large_string())) if len(texts) else TextPool.build(())
    return _hashed(pool.offsets, pool.data)


def _hashed(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.uint64]:
    hashes = np.empty(len(offsets) - 1, np.uint64)
    _hash_texts(offsets, data, hashes)
    return _mixed(hashes)


def take_shard(parts: Parts, home: Homes, count: int, number: int) -> Parts:
    """Take one shard of a graph; `home` is the shard of each subscription."""
    here = home == number
    nodes = _nodes_on(parts, home, count, number)
    edges, hangs = nodes[parts.edge_target], here[parts.hang_subscription]
    node_place, subscription_place = _places(nodes), _places(here)
    own = parts.node_subscription[nodes]
    # A place of -1 is no subscription: it picks the last one, and is put right.
    served = subscription_place[own] if len(subscription_place) else own
    return replace(
        parts,
        node_ids=_filtered(parts.node_ids, nodes),
        node_kind=parts.node_kind[nodes],
        node_filter=_kept(parts.node_filter, nodes),
        node_dialect=_kept(parts.node_dialect, nodes),
        node_cost=parts.node_cost[nodes],
        node_subscription=np.where(own < 0, np.int32(-1), served),
        edge_source=node_place[parts.edge_source[edges]],
        edge_target=node_place[parts.edge_target[edges]],
        edge_filter=_kept(parts.edge_filter, edges),
        edge_dialect=_kept(parts.edge_dialect, edges),
        edge_cost=parts.edge_cost[edges],
        subscription_ids=_filtered(parts.subscription_ids, here),
        subscription_filter=_kept(parts.subscription_filter, here),
        subscription_dialect=_kept(parts.subscription_dialect, here),
        subscription_score=parts.subscription_score[here],
        hang_node=node_place[parts.hang_node[hangs]],
        hang_subscription=subscription_place[parts.hang_subscription[hangs]],
    )


def save_shards(
    path: Path,
    parts: Parts,
    count: int,
    save: Callable[[Parts, Path], None],
    *,
    source: Mapping[str, object] | None = None,
    home: Homes | None = None,
    routes: Mapping[str, NDArray[Any]] | None = None,
    about: Mapping[str, object] | None = None,
) -> None:
    """Write a snapshot of shards; `save` writes one of them, and only one at a time is in memory.

    `home` is the shard of each subscription, by the hash of its id unless it is given. `routes` and `about`
    say which events meet which shards, for whoever reads it.
    """
    if home is None:
        home = homes(parts.subscription_ids, count)
    of = home

    def save_one(number: int, path: Path) -> None:
        save(take_shard(parts, of, count, number), path)

    counts = {
        "shards": count,
        "nodes": len(parts.node_ids),
        "edges": len(parts.edge_source),
        "subscriptions": len(parts.subscription_ids),
    }
    inside = {shard_name(number): partial(save_one, number) for number in range(count)}
    said = {"source": dict(source or {}), **(about or {})}
    write_snapshot(path, ROOM, routes or {}, counts=counts, about=said, inside=inside)


def _nodes_on(parts: Parts, home: Homes, count: int, number: int) -> Bools:
    """Tell which nodes are on a shard: those that lead on, that serve here, or that nobody else takes."""
    size = len(parts.node_ids)
    leads, taken, here = np.zeros(size, np.bool_), np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    leads[parts.edge_source] = True
    serving = np.flatnonzero(parts.node_subscription >= 0)
    at = np.concatenate([serving, parts.hang_node])
    served = np.concatenate([parts.node_subscription[serving], parts.hang_subscription])
    taken[at] = True
    here[at[home[served] == number]] = True
    idle = ~leads & ~taken
    if idle.any():
        # Nobody is served there, but an event may come from there.
        here |= idle & (homes(parts.node_ids, count) == number)
    return leads | here


def _places(kept: Bools) -> NDArray[np.int32]:
    """Return the places after the others are left out, -1 for those."""
    return np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)


def _filtered(ids: Ids, kept: Bools) -> Ids:
    return Ids.from_arrow(ids.to_arrow().filter(pa.array(kept)))


def _kept(column: pa.Array[Any], kept: Bools) -> pa.Array[Any]:
    return column.filter(pa.array(kept))


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread numbers over 64 bits (the finish of splitmix64), so that steps in ids do not show in shards."""
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@kernel
def _hash_texts(offsets: NDArray[np.int64], data: NDArray[np.uint8], out: NDArray[np.uint64]) -> None:
    """Hash texts by FNV-1a."""
    for i in range(len(out)):
        hash_ = np.uint64(0xCBF29CE484222325)
        for j in range(offsets[i], offsets[i + 1]):
            hash_ = (hash_ ^ np.uint64(data[j])) * np.uint64(0x100000001B3)
        out[i] = hash_
