"""Where each subscription lies, by the rule of its sharding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.graph.build.sharding import hash_numbers, hash_texts
from headgate.runtime.sharding import ACCESS, HASH, TENANT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.runtime.sharding import Sharding

    Homes = NDArray[np.int64]


class Placing:
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
