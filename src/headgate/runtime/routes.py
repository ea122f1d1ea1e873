"""Which events meet which shards: the keys of each shard's subscriptions, in the outer snapshot.

    event {"country": "CH", …}          shard 0   open: an event may match without any key
      its key is =CH                    shard 1   =AT =FR            passed by
                                        shard 2   =CH =DE =IT        met
                                        shard 3   no subscriptions   met by nobody

An event meets a shard that is open, or that has one of its keys. Values of which it is not sure what they
equal (doubles, Booleans, times, arrays, objects) lead everywhere; NULL equals nothing and leads to no key.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.registry import kind_of
from headgate.core.casts import to_int
from headgate.core.interning import TextPool
from headgate.core.snapshot import open_snapshot
from headgate.core.values import fold
from headgate.records.events.columns import find_column
from headgate.records.keys import number_key, text_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path as Place

    from numpy.typing import NDArray

    from headgate.contents.protocol import Keys
    from headgate.core.event import Event
    from headgate.core.values import Path
    from headgate.runtime.sharding import Sharding

    Bools = NDArray[np.bool_]
    Column = pa.Array[Any]

ROUTING = "routing"
_compute: Any = pc
_NOTHING = object()


MOST_KEYS = 100_000
"""Of a shard: one with more is met by every event. Every task has the keys of its shard with it."""


class Routes(NamedTuple):
    """What the outer snapshot says of all shards."""

    content: str
    path: Path | None
    """The attribute of records that keys are values of; documents have keys without one."""
    subscriptions: NDArray[np.int64]
    open: Bools
    """Whether a shard has a subscription that any event may match."""
    key_start: NDArray[np.int64]
    keys: TextPool
    """Those of shard s are key_start[s] to key_start[s + 1]."""

    @classmethod
    def make(cls, content: str, path: Path | None, shards: Sequence[tuple[int, Iterable[Keys]]]) -> Routes:
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
        path: Path | None,
        counts: Sequence[int],
        opened: Sequence[bool],
        keys: Sequence[Sequence[str]],
    ) -> Routes:
        """Lay out what is known of each shard; one that is open needs no keys."""
        opened = [each or len(found) > MOST_KEYS for each, found in zip(opened, keys, strict=True)]
        listed = [[] if each else list(found) for each, found in zip(opened, keys, strict=True)]
        return cls(
            content,
            path,
            np.array(counts, np.int64),
            np.array(opened, np.bool_),
            np.concatenate([[0], np.cumsum([len(each) for each in listed])]).astype(np.int64),
            TextPool.build([key for each in listed for key in each]),
        )

    @classmethod
    def read(cls, place: Place, room: str, content: str) -> Routes | None:
        """Read what an outer snapshot says; None if it says nothing."""
        found = open_snapshot(place, room, verify=False)
        said = found.about.get(ROUTING)
        if said is None:
            return None
        counts = np.array(said["subscriptions"], np.int64)
        start, keys = np.zeros(len(counts) + 1, np.int64), TextPool.build(())
        if "key_start" in found.arrays:
            start = found.arrays["key_start"]
            keys = TextPool(found.arrays["key_offsets"], found.arrays["key_data"])
        path = None if said["path"] is None else tuple(said["path"])
        return cls(content, path, counts, np.array(said["open"], np.bool_), start, keys)

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
        keys = [self.keys.text(place) for place in range(int(begin), int(end))]
        return Route(self.content, self.path, frozenset(keys))


@dataclass(frozen=True)
class Route:
    """The keys that lead to one shard."""

    content: str
    path: Path | None
    keys: frozenset[str]

    @cached_property
    def _texts(self) -> Column:
        return pa.array([key[1:] for key in self.keys if key[0] == "="], pa.large_string())

    @cached_property
    def _numbers(self) -> Column:
        return pa.array([int(key[1:]) for key in self.keys if key[0] == "#"], pa.int64())

    def __getstate__(self) -> Mapping[str, Any]:
        """Leave out what is made when it is needed."""
        return {name: getattr(self, name) for name in ("content", "path", "keys")}

    def met(self, events: pa.RecordBatch | Sequence[Event]) -> Bools:
        """Tell which events meet the shard."""
        if isinstance(events, pa.RecordBatch):
            return self.of_columns(events)
        data = (event.data for event in events)
        return self.of_documents(data) if kind_of(self.content).documents else self.of_values(data)

    def of_columns(self, batch: pa.RecordBatch) -> Bools:
        """Tell which events that come as columns meet the shard."""
        assert self.path is not None
        column = find_column(batch, self.path)
        if column is None:
            return np.zeros(batch.num_rows, np.bool_)
        kind = column.type
        if pa.types.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        if pa.types.is_integer(kind):
            return _flags(_compute.is_in(column.cast(pa.int64()), value_set=self._numbers))
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            return self._of_texts(column.cast(pa.large_string()))
        return _flags(column.is_valid())

    def _of_texts(self, column: Column) -> Bools:
        found = _flags(_compute.is_in(column, value_set=self._texts))
        if len(self._numbers):
            coded = column.dictionary_encode()
            # A text equals the whole number that it is cast to.
            cast = np.array([self._is_cast(str(text)) for text in coded.dictionary.to_pylist()], np.bool_)
            code = np.asarray(coded.indices.fill_null(-1), np.int64)
            found |= np.append(cast, np.False_)[code]
        return found

    def of_values(self, rows: Iterable[object]) -> Bools:
        """Tell which events that come as rows of JSON meet the shard; what is no row is judged elsewhere."""
        assert self.path is not None
        return np.array([self._meets(_value(row, self.path)) for row in rows], np.bool_)

    def _meets(self, value: object) -> bool:
        if value is None:
            return False
        if type(value) is str:
            return text_key(value) in self.keys or self._is_cast(value)
        return number_key(value) in self.keys if type(value) is int else True

    def _is_cast(self, text: str) -> bool:
        number = to_int(text)
        return number is not None and number_key(number) in self.keys

    def of_documents(self, documents: Iterable[Any]) -> Bools:
        """Tell which documents meet the shard."""
        kind = kind_of(self.content)
        return np.array([not self.keys.isdisjoint(kind.keys(each)) for each in documents], np.bool_)


def _value(row: object, path: Path) -> object:
    """Find a value in a row of JSON by its folded path; `_NOTHING`, which leads everywhere, if unclear."""
    if not isinstance(row, dict):
        return _NOTHING
    for name in path:
        if not isinstance(row, dict):
            return None
        found = [value for key, value in row.items() if fold(key) == name]
        if len(found) > 1:
            return _NOTHING
        row = found[0] if found else None
    return row


def _flags(column: Any) -> Bools:
    return np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)


def rarest(keys: Sequence[str], counts: Mapping[str, int]) -> str:
    """Choose the key that the fewest filters name; the first of equal ones.

    >>> rarest(["title", "news"], {"title": 9, "news": 2})
    'news'
    """
    return min(keys, key=lambda key: (counts.get(key, 0), key))
