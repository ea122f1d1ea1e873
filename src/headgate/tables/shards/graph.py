"""Where the subscriptions of a graph lie, and what leads to them.

An event that reaches a subscription has passed its own filter; one that a node serves by itself, without a
filter of its own, is reached through that node, whose filter the event has passed. So keys of the one or of
the other are keys of the subscription. What hangs at nodes without a filter is open.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.core.event import ID
from headgate.errors import HeadgateError
from headgate.runtime.routes import Routes, rarest
from headgate.runtime.rows import read_line
from headgate.runtime.sharding import TENANT
from headgate.runtime.shards import ShardPlacement
from headgate.tables.filter_rows import UNUSUAL
from headgate.tables.lines import VALUE
from headgate.tables.shards.rows import tenant_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from headgate.contents.protocol import Contents, Keys
    from headgate.graph.model import Parts
    from headgate.runtime.sharding import Sharding
    from headgate.tables.graph.tables import AssembledGraph

    FindTenants = Callable[[str], Mapping[str, str]]


class GraphPlacement(NamedTuple):
    """The shard of each subscription, and what leads to each shard."""

    home: NDArray[np.int64]
    routes: Routes


def place_graph(
    assembled: AssembledGraph, contents: Contents, sharding: Sharding, find_tenants: FindTenants | None
) -> GraphPlacement:
    """Place the subscriptions of a graph; `find_tenants` reads the tenants in a column of their table."""
    parts = assembled.parts
    path = sharding.routed_by(contents.room_name)
    keys: list[Keys] = [None] * len(parts.subscription_ids)
    if path is not None or sharding.demands(contents.room_name):
        finder = contents.finder(path)
        keys = _keys_of(parts, finder.of_compiled(assembled.programs))
        if finder.demands:
            counts = Counter(key for each in keys if each for key in each)
            keys = [frozenset([rarest(sorted(each), counts)]) if each else each for each in keys]
    first = pa.array([min(each) if each else None for each in keys], pa.string())
    tenants: pa.Array[Any] = pa.array([None] * len(keys), pa.string())
    if sharding.by == TENANT and find_tenants is not None and sharding.column is not None:
        found = find_tenants(sharding.column)
        tenants = pa.array([found.get(str(each)) for each in parts.subscription_ids], pa.string())
    keyed = sum(each is not None for each in keys)
    placing = ShardPlacement(sharding, keyed, len(keys) - keyed)
    home = placing.homes(parts.subscription_ids.to_arrow(), tenants, first)
    shards = [np.flatnonzero(home == number).tolist() for number in range(sharding.count)]
    summed = [(len(places), [keys[place] for place in places]) for places in shards]
    return GraphPlacement(home, Routes.make(contents.room_name, path, summed))


def _keys_of(parts: Parts, programs: list[Keys]) -> list[Keys]:
    """Find the keys of subscriptions, by those of the programs of filters."""
    own, nodes = (
        [None if each is None else programs[int(each)] if programs else None for each in column.to_pylist()]
        for column in (parts.subscription_filter, parts.node_filter)
    )
    filtered = parts.subscription_filter.is_valid().to_pylist()
    open_at = np.zeros(len(own), np.bool_)
    open_at[parts.hang_subscription] = True
    found: list[Keys] = [keys if has else None for keys, has in zip(own, filtered, strict=True)]
    served: dict[int, list[Keys]] = {}
    for node in np.flatnonzero(parts.node_subscription >= 0).tolist():
        served.setdefault(int(parts.node_subscription[node]), []).append(nodes[node])
    for place, each in served.items():
        if not filtered[place] and not open_at[place] and None not in each:
            found[place] = frozenset().union(*(keys for keys in each if keys is not None))
    return found


def tenants_of(rows: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Find the tenants of subscriptions, by the text of ids; the first row of an id counts."""
    tenants: dict[str, str | None] = {}
    for name, tenant in rows:
        tenants.setdefault(name, tenant)
    return {name: tenant for name, tenant in tenants.items() if tenant is not None}


def read_tenants(batches: Iterable[pa.RecordBatch], column: str) -> Iterator[pa.RecordBatch]:
    """Read the ids and tenants of rows."""
    for batch in batches:
        rows = [each for each in map(_named, batch[VALUE].to_pylist()) if each is not None]
        yield pa.RecordBatch.from_pydict(
            {
                ID: pa.array([name for name, _ in rows], pa.string()),
                TENANT: pa.array([tenant_of(row, column) for _, row in rows], pa.string()),
            }
        )


def _named(value: bytes | None) -> tuple[str, str] | None:
    """Read the id of a row; what is none is refused elsewhere."""
    if not value or not value.strip():
        return None
    try:
        row = read_line(value)
        return (str(row[ID]), value.decode()) if row.get(ID) is not None else None
    except (*UNUSUAL, HeadgateError):
        return None
