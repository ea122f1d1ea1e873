"""The ids of subscriptions, sorted: a subscription's number is its place here."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa

from headgate.core.arguments import check_id, check_like
from headgate.core.interning import TextPool
from headgate.errors import SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from headgate.core.arrays import Ints, Ints32
    from headgate.core.event import Id
    from headgate.core.subscription import Subscription

    Column = pa.Array[Any]


class Ids(Sequence["Id"]):
    """Sorted distinct ids, all text or all whole numbers, as flat arrays that a snapshot can map.

    >>> ids = Ids.of(["news", "art"])
    >>> list(ids), ids.place("b"), ids.numbered
    (['art', 'news'], 1, False)
    """

    def __init__(self, stored: Ints | TextPool) -> None:
        self._stored = stored

    @classmethod
    def of(cls, identities: Iterable[Id]) -> Ids:
        """Sort and store ids; refuse repeated ones, a mixture of types, and what cannot be stored."""
        ids = list(identities)
        kinds = set(map(type, ids))
        if kinds <= {int} or kinds == {str}:
            quick = _sorted_numbers(ids) if int in kinds else _sorted_texts(ids)
            if quick is not None:
                return cls(quick)
        for identity in ids:
            check_id(identity)
        if len(kinds) > 1:
            raise SubscriptionError("some ids are text and some are numbers: use one of the two")
        for identity, times in Counter(ids).items():
            if times > 1:
                raise SubscriptionError(
                    f"id {identity!r} is given {times} times: give each subscription an id of its own"
                )
        if ids and isinstance(ids[0], int):
            return cls(np.sort(np.array(ids, np.int64)))
        return cls(TextPool.build(sorted(str(identity) for identity in ids)))

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
        return self._stored.to_arrow().cast(pa.string())

    @property
    def numbered(self) -> bool:
        """Tell whether the ids are whole numbers rather than text."""
        return not isinstance(self._stored, TextPool)

    def place(self, identity: Id) -> int:
        """Find the number of the first id that is at least the given one."""
        if len(self):
            check_like(identity, numbered=self.numbered)
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

    def places(self, identities: Sequence[Id]) -> Ints:
        """Find for each of some ids, of the type of these, the number of the first that is at least it.

        >>> Ids.of(["b", "d"]).places(["a", "b", "c", "e"]).tolist()
        [0, 0, 1, 2]
        """
        if isinstance(self._stored, TextPool):
            return self._stored.place([str(identity) for identity in identities], 0, len(self)) >> 1
        return np.searchsorted(self._stored, np.array(identities, np.int64))

    def some(self, numbers: Ints32) -> list[Id]:
        """List the ids of some numbers.

        >>> Ids.of(["b", "d", "f"]).some(np.array([0, 2], np.int32))
        ['b', 'f']
        """
        stored = self._stored
        ids: list[Id] = [*stored.pick(numbers)] if isinstance(stored, TextPool) else stored[numbers].tolist()
        return ids

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
            return [self[number] for number in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        return self._stored.text(index) if isinstance(self._stored, TextPool) else int(self._stored[index])


def _sorted_numbers(ids: list[Any]) -> Ints | None:
    """Sort ids that are whole numbers; None if there is anything wrong with them."""
    try:
        numbers = np.sort(np.array(ids, np.int64))
    except OverflowError:
        return None
    return None if bool((numbers[1:] == numbers[:-1]).any()) else numbers


def _sorted_texts(ids: list[Any]) -> TextPool | None:
    """Sort ids that are text; None if there is anything wrong with them."""
    if len(set(ids)) < len(ids):
        return None
    try:
        return TextPool.build(sorted(ids))
    except UnicodeEncodeError:
        return None


WHOLE = "0|-?[1-9][0-9]{0,17}"
"""Text that is a whole number and nothing else: 007 is an id of its own."""

_WHOLE = re.compile(rf"(?:{WHOLE})\Z")


def are_whole(texts: Column) -> Column:
    """Tell which texts are whole numbers; null is none.

    >>> import pyarrow as pa
    >>> are_whole(pa.array(["7", "007", None])).to_pylist()
    [True, False, False]
    """
    import pyarrow.compute as pc

    compute: Any = pc
    whole: Column = compute.match_substring_regex(texts, rf"^(?:{WHOLE})$").fill_null(False)
    return whole


def is_whole(text: str) -> bool:
    """Tell whether a text is a whole number."""
    return _WHOLE.match(text) is not None


def fit_ids(column: Column, *, numbered: bool) -> Column:
    """Make ids whole numbers, or text; those that are no whole numbers become null.

    >>> import pyarrow as pa
    >>> fit_ids(pa.array(["7", "007"]), numbered=True).to_pylist()
    [7, None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not numbered:
        return column.cast(pa.string())
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    compute: Any = pc
    read: Column = compute.if_else(are_whole(column), column, pa.scalar(None, pa.string()))
    return read.cast(pa.int64())


def fit_id(identity: Id, *, numbered: bool) -> Id | None:
    """Do the same to one id.

    >>> fit_id("7", numbered=True), fit_id("007", numbered=True), fit_id(7, numbered=False)
    (7, None, '7')
    """
    if isinstance(identity, int) is numbered:
        return identity
    if isinstance(identity, int):
        return str(identity)
    return int(identity) if is_whole(identity) else None


def sorted_by_id(subscriptions: Iterable[Subscription]) -> tuple[Ids, list[Subscription]]:
    """Sort subscriptions by their ids, and return these, too; refuses what `Ids.of` refuses."""
    given = list(subscriptions)
    ids = Ids.of(each.id for each in given)
    by_id = {each.id: each for each in given}
    return ids, [by_id[identity] for identity in ids.to_list()]
