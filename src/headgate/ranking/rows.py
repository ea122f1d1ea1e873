"""Subscriptions by row, and answers about one moment while others change them."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from headgate.contents.live import Names
from headgate.core.arguments import check_id, check_like
from headgate.core.ids import Ids
from headgate.errors import SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from headgate.core.arrays import Bools, Floats64, Ints
    from headgate.core.event import Id
    from headgate.ranking.answers import RankedRows


_Answer = TypeVar("_Answer")
TRIES = 3
"""How often a reader asks before it waits for the writers."""


class Moments:
    """The count of changes, and the lock of those who make them.

    >>> moments = Moments()
    >>> with moments.changing():
    ...     moments.count
    1
    >>> moments.reading(lambda: moments.count)
    2
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.count = 0

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold others off while something is changed. A change inside another is a part of it."""
        with self.lock:
            outermost = self.count % 2 == 0
            self.count += outermost
            try:
                yield
            finally:
                self.count += outermost

    def reading(self, ask: Callable[[], _Answer]) -> _Answer:
        """Ask until nothing was changed meanwhile."""
        for _ in range(TRIES):
            before = self.count
            if before % 2:
                break
            try:
                answer = ask()
            except Exception:
                # Half of a change may look like anything; what is wrong in itself is so the next time, too.
                if self.count == before:
                    raise
                continue
            if self.count == before:
                return answer
        with self.lock:
            return ask()


class Admission(Protocol):
    """Tells of all rows at once which may be in an answer."""

    def admitted(self, rows: RowIds) -> Bools:
        """Tell of each row whether it may."""


if TYPE_CHECKING:
    Admitted = Admission | Callable[[Id], bool]
    """Who may be in an answer: by id, or all at once."""

_MANY = 256
"""From how many ids on Arrow is quicker."""


class RowIds:
    """Ids and their rows. A row belongs to one subscription for good; when it is removed, the row is gone.

    >>> rows = RowIds(Ids.of(["b", "d"]))
    >>> rows.add("c"), rows.remove("b"), rows.find("b"), len(rows), rows.order().tolist()
    (2, 0, -1, 2, [0.0, 1.0, 0.5])
    """

    def __init__(self, ids: Ids) -> None:
        self.base = ids
        self.later: list[Id] = []
        self._place: dict[Id, int] = {}
        self._gone = np.zeros(len(ids) + 64, np.bool_)
        self._left = len(ids)
        self._array: pa.Array[Any] | None = None
        self._order: Floats64 | None = None
        self._names = Names(ids)

    def __len__(self) -> int:
        """Count the subscriptions."""
        return self._left

    @property
    def count(self) -> int:
        """Count the rows, also those that are gone."""
        return len(self.base) + len(self.later)

    @property
    def gone(self) -> Bools:
        """Tell for each row whether it is gone."""
        return self._gone[: self.count]

    @property
    def changed(self) -> bool:
        """Tell whether there is anything to fold."""
        return bool(self.later) or self._left < len(self.base)

    def find(self, identity: Id) -> int:
        """Find the row of a subscription, -1 for none."""
        row_ = self._place.get(identity)
        if row_ is not None:
            return row_
        row = self.base.find(identity)
        return -1 if row < 0 or self._gone[row] else row

    def get(self, identity: Id) -> int:
        """Find the row of a subscription; refuses an id that is not here."""
        row = self.find(identity)
        if row < 0:
            raise SubscriptionError(f"there is no subscription {identity!r} here")
        return row

    def check_new(self, identity: Id) -> None:
        """Refuse an id that is here, or of another type than these, or that cannot be stored."""
        check_id(identity)
        known = self.base[0] if len(self.base) else (self.later[0] if self.later else identity)
        check_like(identity, numbered=isinstance(known, int))
        if self.find(identity) >= 0:
            raise SubscriptionError(f"id {identity!r} is subscribed already: unsubscribe it first")

    def add(self, identity: Id) -> int:
        """Give a subscription the next row."""
        row = self.count
        if row == len(self._gone):
            self._gone = np.concatenate([self._gone, np.zeros(row, np.bool_)])
        self._place[identity] = row
        self._left += 1
        self.later.append(identity)
        return row

    def remove(self, identity: Id) -> int:
        """Let the row of a subscription be gone; returns it."""
        row = self.get(identity)
        self._place.pop(identity, None)
        self._gone[row] = True
        self._left -= 1
        return row

    def id(self, row: int) -> Id:
        """Return the id of a row."""
        first = len(self.base)
        return self.base[row] if row < first else self.later[row - first]

    def ids(self, rows: NDArray[np.integer[Any]]) -> list[Id]:
        """List the ids of rows."""
        if len(rows) < _MANY:
            names, first = self._names, len(self.base)
            return [names[row] if row < first else self.later[row - first] for row in rows.tolist()]
        ids: Any = self.to_arrow(rows).to_pylist()
        return list(ids)

    def to_arrow(self, rows: NDArray[np.integer[Any]]) -> pa.Array[Any]:
        """Return the ids of rows for Arrow."""
        array, count = self._array, self.count
        # Another thread may have left one that is too short: rows are only ever added.
        if array is None or len(array) != count:
            array = self.base.to_arrow()
            if self.later:
                later: Any = pa.array(self.later)
                array = pa.concat_arrays([array.cast(later.type), later])
            self._array = array
        return array.take(pa.array(rows))

    def order(self) -> Floats64:
        """Return numbers for the rows that rise with the ids; later ones go between those that were built."""
        order, count = self._order, self.count
        if order is None or len(order) != count:
            first = len(self.base)
            order = np.arange(count, dtype=np.float64)
            if count > first:
                new = np.array(sorted(range(count - first), key=self.later.__getitem__))
                before = self.base.places([self.later[each] for each in new.tolist()]) if first else new * 0
                order[first + new] = before - 1 + np.arange(1, len(new) + 1) / (len(new) + 1)
            self._order = order
        return order

    def places(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
        """Return numbers for some rows that rise with their ids, without a look at the others."""
        if not self.later or not len(rows) or rows.max() < len(self.base):
            return rows
        ids = self.ids(rows)
        places = np.empty(len(ids), np.int64)
        places[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
        return places

    def folded(self) -> tuple[RowIds, Ints]:
        """Return new rows for what is left, in the order of ids, and the rows that they had."""
        kept = np.flatnonzero(~self.gone)
        kept = kept[np.argsort(self.order()[kept], kind="stable")]
        return RowIds(Ids.from_arrow(self.to_arrow(kept))), kept


def admit(rows: RowIds, some: Ints, admitted: Admitted) -> Bools:
    """Tell of some rows whether they may be in an answer."""
    if callable(admitted):
        return np.array([admitted(each) for each in rows.ids(some)], np.bool_)
    return admitted.admitted(rows)[some]


def best(ranked: RankedRows, k: int, rows: RowIds) -> RankedRows:
    """Take the k highest values, the highest first; equal ones by id."""
    if 0 < k < len(ranked.rows):
        least = np.partition(ranked.values, len(ranked.values) - k)[len(ranked.values) - k]
        ranked = ranked.where(ranked.values >= least)
    return ranked.first(k, rows.places(ranked.rows))
