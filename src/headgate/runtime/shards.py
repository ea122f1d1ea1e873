"""Subscriptions without a graph, cut into shards: where each lies by the rule, and what is written.

    snapshot/
      manifest.json     how many there are, the rule, what events are routed by, which are open
      key_*.npy         the keys that lead to each, if there are any
      shard-000/        a snapshot of filters, or of ranked subscriptions
      shard-001/        …

What matches on all shards together is what matches; the best k of all are among the best k of each.

    event {"country": "CH", …}          shard 0   open: an event may match without any key
      its key is =CH                    shard 1   =AT =FR            passed by
                                        shard 2   =CH =DE =IT        met
                                        shard 3   no subscriptions   met by nobody

An event meets a shard that is open, or that has one of its keys. Values of which it is not sure what they
equal (doubles, Booleans, times, arrays, objects) lead everywhere; NULL equals nothing and leads to no key.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.registry import kind_of
from headgate.core.casts import to_int
from headgate.core.interning import TextPool
from headgate.core.rooms import FILTER_SHARDS, RANKING_SHARDS
from headgate.core.snapshot import open_snapshot, shard_name, write_snapshot
from headgate.core.values import Kind
from headgate.graph.build.sharding import hash_numbers, hash_texts
from headgate.records.events.columns import columns_of
from headgate.records.keys import number_key
from headgate.runtime.sharding import ACCESS, HASH, TENANT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.protocol import Keys
    from headgate.core.arrays import Bools
    from headgate.core.event import Event
    from headgate.core.values import Path as Attribute
    from headgate.runtime.sharding import Sharding

    Homes = NDArray[np.int64]

    Column = pa.Array[Any]


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
    inside = {shard_name(number): partial(_move, folder) for number, folder in enumerate(staged)}
    counts = {"shards": len(staged), "subscriptions": int(routes.subscriptions.sum())}
    about: dict[str, Any] = {"source": dict(source or {}), **routes.about(sharding)}
    room = RANKING_SHARDS if ranked else FILTER_SHARDS
    write_snapshot(path, room, routes.arrays(), counts=counts, about=about, inside=inside)


def _move(path: Path, target: Path) -> None:
    path.rename(target)


ROUTING = "routing"
_compute: Any = pc


MOST_KEYS = 100_000
"""Of a shard: one with more is met by every event. Every task has the keys of its shard with it."""


class Routes(NamedTuple):
    """What the outer snapshot says of all shards."""

    content: str
    path: Attribute | None
    """The attribute of records that keys are values of; documents have keys without one."""
    subscriptions: NDArray[np.int64]
    open: Bools
    """Whether a shard has a subscription that any event may match."""
    key_start: NDArray[np.int64]
    keys: TextPool
    """Those of shard s are key_start[s] to key_start[s + 1]."""

    @classmethod
    def make(
        cls, content: str, path: Attribute | None, shards: Sequence[tuple[int, Iterable[Keys]]]
    ) -> Routes:
        """Sum up what shards have: how many subscriptions, and the keys of each."""
        opened, distinct = [], []
        for _, each in shards:
            keys = list(each)
            opened.append(any(one is None for one in keys))
            distinct.append(sorted({key for one in keys if one is not None for key in one}))
        return cls.of_shards(content, path, [count for count, _ in shards], opened, distinct)

    @classmethod
    def of_shards(
        cls,
        content: str,
        path: Attribute | None,
        counts: Sequence[int],
        opened: Sequence[bool],
        keys: Sequence[Sequence[str]],
    ) -> Routes:
        """Lay out what is known of each shard; one that is open needs no keys."""
        opened = [each or len(own_keys) > MOST_KEYS for each, own_keys in zip(opened, keys, strict=True)]
        listed = [[] if each else list(own_keys) for each, own_keys in zip(opened, keys, strict=True)]
        return cls(
            content,
            path,
            np.array(counts, np.int64),
            np.array(opened, np.bool_),
            np.concatenate([[0], np.cumsum([len(each) for each in listed])]).astype(np.int64),
            TextPool.build([key for each in listed for key in each]),
        )

    @classmethod
    def read(cls, directory: Path, room: str, content: str) -> Routes | None:
        """Read what an outer snapshot says; None if it says nothing."""
        snapshot = open_snapshot(directory, room, verify=False)
        noted = snapshot.about.get(ROUTING)
        if noted is None:
            return None
        counts = np.array(noted["subscriptions"], np.int64)
        start, keys = np.zeros(len(counts) + 1, np.int64), TextPool.build(())
        if "key_start" in snapshot.arrays:
            start = snapshot.arrays["key_start"]
            keys = TextPool(snapshot.arrays["key_offsets"], snapshot.arrays["key_data"])
        path = None if noted["path"] is None else tuple(noted["path"])
        return cls(content, path, counts, np.array(noted["open"], np.bool_), start, keys)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the keys as they are stored in the outer snapshot; nothing if there are none."""
        if not self.keys.size:
            return {}
        return {
            "key_start": self.key_start,
            "key_offsets": self.keys.offsets,
            "key_data": self.keys.data,
        }

    def about(self, sharding: Sharding) -> dict[str, Any]:
        """Return what its manifest says of it."""
        return {
            "sharding": {"by": sharding.by, "column": sharding.column},
            ROUTING: {
                "path": None if self.path is None else list(self.path),
                "subscriptions": self.subscriptions.tolist(),
                "open": self.open.tolist(),
            },
        }

    def route(self, number: int) -> Route | None:
        """Return what leads to a shard; None if every event does."""
        if self.open[number]:
            return None
        begin, end = self.key_start[number], self.key_start[number + 1]
        keys = [self.keys.text(key) for key in range(int(begin), int(end))]
        return Route(self.content, self.path, frozenset(keys))


@dataclass(frozen=True)
class Route:
    """The keys that lead to one shard."""

    content: str
    path: Attribute | None
    keys: frozenset[str]

    @cached_property
    def _texts(self) -> Column:
        return pa.array([key[1:] for key in self.keys if key[0] == "="], pa.large_string())

    @cached_property
    def _numbers(self) -> list[int]:
        return [int(key[1:]) for key in self.keys if key[0] == "#"]

    def __getstate__(self) -> Mapping[str, Any]:
        """Leave out what is made when it is needed."""
        return {name: getattr(self, name) for name in ("content", "path", "keys")}

    def met(self, events: pa.RecordBatch | Sequence[Event]) -> Bools:
        """Tell which events meet the shard."""
        if self.path is None:
            assert not isinstance(events, pa.RecordBatch)
            keys = kind_of(self.content).keys
            return np.array([not self.keys.isdisjoint(keys(event)) for event in events], np.bool_)
        column = columns_of(events)(self.path)
        meets: Bools = column.kind != Kind.NULL
        whole, texts = column.kind == Kind.INT, column.kind == Kind.STRING
        meets[whole] = np.isin(column.number[whole], self._numbers)
        meets[texts] = self._known(column.texts)[column.code[texts]]
        return meets

    def _known(self, texts: TextPool) -> Bools:
        """Tell which texts lead here; one equals the whole number that it is cast to."""
        known: Bools = np.array(_compute.is_in(texts.to_arrow(), value_set=self._texts), np.bool_)
        if self._numbers:
            numbers = map(to_int, texts.texts())
            leads = [number is not None and number_key(number) in self.keys for number in numbers]
            known |= np.array(leads, np.bool_)
        return known


def rarest(keys: Sequence[str], counts: Mapping[str, int]) -> str:
    """Choose the key that the fewest filters name; the first of equal ones.

    >>> rarest(["title", "news"], {"title": 9, "news": 2})
    'news'
    """
    return min(keys, key=lambda key: (counts.get(key, 0), key))
