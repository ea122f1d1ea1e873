"""The ids of subscriptions, sorted: a subscription's number is its place here."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa

from headgate.core.arguments import check_id
from headgate.core.interning import TextPool
from headgate.errors import SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from headgate.core.event import Id


class Ids(Sequence["Id"]):
    """Sorted distinct ids, all text or all whole numbers, as flat arrays that a snapshot can map.

    >>> ids = Ids.of(["news", "art"])
    >>> list(ids), ids.place("b"), ids.numbered
    (['art', 'news'], 1, False)
    """

    def __init__(self, stored: NDArray[np.int64] | TextPool) -> None:
        self._stored = stored

    @classmethod
    def of(cls, identities: Iterable[Id]) -> Ids:
        """Sort and store ids; refuse repeated ones, a mixture of types, and what cannot be stored."""
        given = list(identities)
        kinds = set(map(type, given))
        if kinds <= {int} or kinds == {str}:
            quick = _sorted_numbers(given) if int in kinds else _sorted_texts(given)
            if quick is not None:
                return cls(quick)
        for identity in given:
            check_id(identity)
        if len(kinds) > 1:
            raise SubscriptionError("some ids are text and some are numbers: use one of the two")
        for identity, times in Counter(given).items():
            if times > 1:
                raise SubscriptionError(
                    f"id {identity!r} is given {times} times: give each subscription an id of its own"
                )
        if given and isinstance(given[0], int):
            return cls(np.sort(np.array(given, np.int64)))
        return cls(TextPool.build(sorted(str(identity) for identity in given)))

    @classmethod
    def from_arrow(cls, identities: pa.Array[Any]) -> Ids:
        """Take over sorted distinct ids, whole numbers or text.

        >>> list(Ids.from_arrow(pa.array(["art", "news"])))
        ['art', 'news']
        """
        if pa.types.is_integer(identities.type):
            return cls(identities.cast(pa.int64()).to_numpy())
        return cls(TextPool.from_arrow(identities) if len(identities) else TextPool.build(()))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Ids:
        """Take over the arrays of a snapshot."""
        if "ids" in arrays:
            return cls(arrays["ids"])
        return cls(TextPool(arrays["id_offsets"], arrays["id_data"]))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to be stored."""
        if isinstance(self._stored, TextPool):
            return {"id_offsets": self._stored.offsets, "id_data": self._stored.data}
        return {"ids": self._stored}

    def to_arrow(self) -> pa.Array[Any]:
        """Return the ids for Arrow, as `int64` or `string`."""
        if not isinstance(self._stored, TextPool):
            return pa.array(np.asarray(self._stored))
        buffers = [None, *(pa.py_buffer(part.data) for part in self._stored)]
        return pa.Array.from_buffers(pa.large_string(), self._stored.size, buffers).cast(pa.string())

    @property
    def numbered(self) -> bool:
        """Tell whether the ids are whole numbers rather than text."""
        return not isinstance(self._stored, TextPool)

    def place(self, identity: Id) -> int:
        """Find the number of the first id that is at least the given one."""
        if isinstance(identity, int) is not self.numbered and len(self):
            wanted = "whole numbers" if self.numbered else "text"
            raise SubscriptionError(f"id {identity!r} has the wrong type: ids here are {wanted}")
        stored = self._stored
        # Numbers are searched in their memory: to ask this object for each of them takes ten times as long.
        return bisect_left(self if isinstance(stored, TextPool) else stored.data, identity)

    def find(self, identity: Id) -> int:
        """Find the number of an id; -1 for one that is not here.

        >>> Ids.of(["b", "d"]).find("d"), Ids.of(["b", "d"]).find("c"), Ids.of(["b"]).find(7)
        (1, -1, -1)
        """
        if not len(self) or isinstance(identity, bool):
            return -1
        if not isinstance(identity, int if self.numbered else str):
            return -1
        number = self.place(identity)
        return number if number < len(self) and self[number] == identity else -1

    def places(self, identities: Sequence[Id]) -> NDArray[np.int64]:
        """Find for each of some ids, of the type of these, the number of the first that is at least it.

        >>> Ids.of(["b", "d"]).places(["a", "b", "c", "e"]).tolist()
        [0, 0, 1, 2]
        """
        if isinstance(self._stored, TextPool):
            return self._stored.place([str(identity) for identity in identities], 0, len(self)) >> 1
        return np.searchsorted(self._stored, np.array(identities, np.int64))

    def some(self, numbers: NDArray[np.int32]) -> list[Id]:
        """List the ids of some numbers.

        >>> Ids.of(["b", "d", "f"]).some(np.array([0, 2], np.int32))
        ['b', 'f']
        """
        stored = self._stored
        found: list[Id] = (
            [*stored.pick(numbers)] if isinstance(stored, TextPool) else stored[numbers].tolist()
        )
        return found

    def to_list(self) -> list[Id]:
        """List all ids: sooner than one after the other."""
        if isinstance(self._stored, TextPool):
            return list(self._stored.texts())
        return list(self._stored.tolist())

    def __len__(self) -> int:
        """Count the ids."""
        return self._stored.size

    @overload
    def __getitem__(self, index: int) -> Id: ...

    @overload
    def __getitem__(self, index: slice) -> list[Id]: ...

    def __getitem__(self, index: int | slice) -> Id | list[Id]:
        """Return the id of a number."""
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        return self._stored.text(index) if isinstance(self._stored, TextPool) else int(self._stored[index])


def _sorted_numbers(given: list[Any]) -> NDArray[np.int64] | None:
    """Sort ids that are whole numbers; None if there is anything wrong with them."""
    try:
        found = np.sort(np.array(given, np.int64))
    except OverflowError:
        return None
    return None if bool((found[1:] == found[:-1]).any()) else found


def _sorted_texts(given: list[Any]) -> TextPool | None:
    """Sort ids that are text; None if there is anything wrong with them."""
    if len(set(given)) < len(given):
        return None
    try:
        return TextPool.build(sorted(given))
    except UnicodeEncodeError:
        return None
