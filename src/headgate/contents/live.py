"""What running indexes share: a frozen base, a small tail of new filters, and what was removed from both.

    subscribe      appends to the tail
    unsubscribe    marks a filter of the base or the tail
    compaction     builds a new base of what is left of both; changes made meanwhile are repeated on it

Readers take one state and keep to it.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from headgate.contents.portions import Asks
from headgate.core.arguments import check_id, check_like, usable_id
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.errors import SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.core.arrays import Bools, Ints, Ints32
    from headgate.core.event import Id
    from headgate.core.subscription import Subscription


LISTED = 1 << 16
"""Ids of a base that are kept as Python has them, at most: those that were asked for first."""
ALL_LISTED = 1 << 17
"""Ids of a base that are all kept as Python has them, if there are no more."""


class Names(dict[int, Any]):
    """Ids by number; fills itself, up to a size."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    def __missing__(self, number: int) -> Id:
        identity = self._ids[number]
        if len(self) < LISTED:
            self[number] = identity
        return identity


class FrozenBase(ABC):
    """A base: filters by number, which is the place of their id. Only `removed` ever changes: from 0 to 1."""

    def __init__(self, ids: Ids, filters: TextPool) -> None:
        self.ids = ids
        self.filters = filters
        self.removed = np.zeros(len(ids), np.uint8)

    @abstractmethod
    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; nothing may have been removed. `source` says what it was built from."""

    @cached_property
    def id_array(self) -> pa.Array[Any]:
        """Return the ids for Arrow."""
        return self.ids.to_arrow()

    def listed(self, numbers: Ints32) -> list[Id]:
        """List the ids of some numbers."""
        if self.ids.numbered:
            return self.ids.some(numbers)
        if len(self.ids) <= ALL_LISTED:
            listed: list[Id] = self._all_names[numbers].tolist()
            return listed
        if len(numbers) > LISTED:
            return self.ids.some(numbers)
        names = self._names
        return [names[number] for number in numbers.tolist()]

    @cached_property
    def _all_names(self) -> NDArray[np.object_]:
        names = np.empty(len(self.ids), np.object_)
        names[:] = self.ids.to_list()
        return names

    @cached_property
    def _names(self) -> Names:
        return Names(self.ids)

    @cached_property
    def numbers(self) -> Ints:
        """Return the ids, which must be whole numbers, as an array."""
        return np.asarray(self.id_array.cast(pa.int64()))

    def find(self, identity: Id) -> int:
        """Find the number of a subscription that is here and not removed; -1 for none."""
        number = self.ids.find(identity)
        return -1 if number < 0 or self.removed[number] else number


class Tail(Protocol):
    """A tail: filters by place, in the order in which they came."""

    def __len__(self) -> int:
        """Count the filters that readers can see."""

    def admit(self, compiled: Any, /) -> None:
        """Refuse a filter that cannot be here, before anything is changed for it."""

    def add(self, compiled: Any, /) -> object:
        """Append a filter. Writer only."""


BaseT = TypeVar("BaseT", bound=FrozenBase)
TailT = TypeVar("TailT", bound=Tail)
StateT = TypeVar("StateT", bound="LiveState[Any, Any]")


class LiveState(Generic[BaseT, TailT]):
    """Base and tail. Filter n of the base has number n, filter p of the tail the number `base + p`."""

    def __init__(self, base: BaseT, tail: TailT) -> None:
        self.base = base
        self.tail = tail
        self.tail_ids: list[Id] = []
        self.tail_texts: list[str] = []
        self.tail_removed = np.zeros(64, np.uint8)
        self.changes = 0
        """How many changes there were: it rises with every one."""
        self._places: dict[Id, int] = {}
        self._late_array: pa.Array[Any] | None = None
        self._gone = 0

    @property
    def late(self) -> int:
        """Count the filters in the tail that readers can see."""
        return len(self.tail)

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self.base.ids) + self.late - self._gone

    @property
    def changed(self) -> bool:
        """Tell whether there is anything to compact."""
        return self.late > 0 or self._gone > 0

    @property
    def numbered(self) -> bool:
        """Tell whether ids are whole numbers rather than text."""
        if len(self.base.ids):
            return self.base.ids.numbered
        return bool(self.tail_ids) and isinstance(self.tail_ids[0], int)

    def check_type(self, identity: Id) -> None:
        """Refuse an id that is text among numbers, or a number among texts, or neither."""
        usable_id(identity)
        if len(self.base.ids) or self.tail_ids:
            check_like(identity, numbered=self.numbered)

    def find(self, identity: Id) -> int:
        """Find the number of a subscription, -1 for none."""
        position = self._places.get(identity)
        return self.base.find(identity) if position is None else len(self.base.ids) + position

    def number_of(self, identity: Id) -> int:
        """Find the number of a subscription; refuses an id that is not here."""
        self.check_type(identity)
        number = self.find(identity)
        if number < 0:
            raise SubscriptionError(f"there is no subscription {identity!r} here")
        return number

    def text(self, number: int) -> str:
        """Return the text of a filter."""
        base = len(self.base.ids)
        return self.base.filters.text(number) if number < base else self.tail_texts[number - base]

    def add(self, identity: Id, text: str, compiled: Any) -> None:
        """Append a subscription to the tail. Writer only."""
        position = self.late
        # What an addition that failed has left.
        del self.tail_ids[position:], self.tail_texts[position:]
        if position == len(self.tail_removed):
            self.tail_removed = np.concatenate([self.tail_removed, np.zeros(position, np.uint8)])
        self.tail_ids.append(identity)
        self.tail_texts.append(text)
        self.tail.add(compiled)
        self._places[identity] = position
        self.changes += 1

    def remove(self, identity: Id) -> bool:
        """Mark a subscription; returns whether there was one. Writer only."""
        position = self._places.pop(identity, None)
        if position is not None:
            self.tail_removed[position] = 1
        else:
            number = self.base.find(identity)
            if number < 0:
                return False
            self.base.removed[number] = 1
        self._gone += 1
        self.changes += 1
        return True

    def ids(self) -> list[Id]:
        """List all ids, sorted."""
        left = [self.base.ids[number] for number in np.flatnonzero(self.base.removed == 0).tolist()]
        return sorted([*left, *self._places])

    def id_array(self, numbers: NDArray[Any]) -> pa.Array[Any]:
        """Return the ids of some numbers for Arrow."""
        base = len(self.base.ids)
        if self.in_order(numbers):
            return self.base.id_array.take(numbers)
        inside = numbers < base
        own, late = self.base.id_array, self._late_ids()
        early = own.cast(late.type).take(numbers[inside])
        both = pa.concat_arrays([early, late.take(numbers[~inside] - base)])
        at = np.empty(len(numbers), np.int64)
        at[inside] = np.arange(len(early))
        at[~inside] = np.arange(len(early), len(numbers))
        return both.take(at)

    def listed(self, numbers: NDArray[Any]) -> list[Id]:
        """List the ids of some numbers."""
        if self.in_order(numbers):
            return self.base.listed(numbers)
        ids: list[Any] = self.id_array(numbers).to_pylist()
        return ids

    def numbers_at(self, numbers: NDArray[Any]) -> Ints:
        """Return the ids of some numbers, which are whole numbers themselves."""
        if self.in_order(numbers):
            whole: Ints = self.base.numbers[numbers]
            return whole
        return np.asarray(self.id_array(numbers).cast(pa.int64()))

    def in_order(self, numbers: NDArray[Any]) -> bool:
        """Tell whether numbers are all of the base, which has its ids in order."""
        return not self.late or not len(numbers) or int(numbers.max()) < len(self.base.ids)

    def _late_ids(self) -> pa.Array[Any]:
        """Return the ids of the tail for Arrow; those of earlier calls are kept."""
        count, known = self.late, self._late_array
        if known is None or len(known) < count:
            kind = pa.int64() if self.numbered else pa.string()
            more = pa.array(self.tail_ids[0 if known is None else len(known) : count], kind)
            known = self._late_array = more if known is None else pa.concat_arrays([known, more])
        return known

    def named(self, early: Mapping[int, str], late: Mapping[int, str]) -> list[tuple[Id, str]]:
        """Give filters that were left out their ids: of the base, and of the tail; not those that went."""
        base = [(self.base.ids[n], why) for n, why in sorted(early.items()) if not self.base.removed[n]]
        gone = self.tail_removed
        return base + [
            (self.tail_ids[n], why) for n, why in sorted(late.items()) if n < self.late and not gone[n]
        ]

    def left(self) -> tuple[Bools, Bools]:
        """Tell what is left, of the base and of the tail. Writer only: no change may come in between."""
        return self.base.removed == 0, self.tail_removed[: self.late] == 0

    def merged(self, kept: Bools, late: Bools) -> Remainder:
        """Return ids and texts of some of the base and of the tail, in the order of the ids."""
        old, new = np.flatnonzero(kept), np.flatnonzero(late)
        order = _rising(self.base.ids, old, [self.tail_ids[position] for position in new.tolist()])
        kind = pa.int64() if self.numbered else pa.large_string()
        ids = [self.base.ids.to_arrow().cast(kind).take(old), _picked(self.tail_ids, new, kind)]
        texts = [self.base.filters.to_arrow().take(old), _picked(self.tail_texts, new, pa.large_string())]
        return Remainder(
            Ids.from_arrow(pa.concat_arrays(ids).take(order)),
            TextPool.from_arrow(pa.concat_arrays(texts).take(order)),
            order,
        )


class Remainder(NamedTuple):
    """Ids and texts in order, and where each stood: those of the base first, then those of the tail."""

    ids: Ids
    filters: TextPool
    order: Ints


def _picked(values: Sequence[Id], places: Ints, kind: pa.DataType) -> pa.Array[Any]:
    return pa.array([values[position] for position in places.tolist()], kind)


def _rising(ids: Ids, kept: Ints, new: list[Id]) -> Ints:
    """Sort some of the ids and new ones behind them: returns their places in rising order of ids."""
    order = sorted(range(len(new)), key=new.__getitem__)
    before = ids.places([new[position] for position in order]) if len(ids) else np.zeros(len(new), np.int64)
    # An id goes before the first old one that is not below it; new ones are in order among themselves.
    keys = np.concatenate([2 * kept + 1, 2 * before])
    behind = np.concatenate([np.arange(len(kept)), len(kept) + np.array(order, np.int64)])
    return behind[np.argsort(keys, kind="stable")]


class Moment(NamedTuple, Generic[StateT]):
    """What is left of a state at one moment: which filters of the base, and which of the tail."""

    state: StateT
    kept: Bools
    late: Bools


class LiveIndex(Asks, Generic[StateT]):
    """An index that changes while others read: subscriptions come and go, and are compacted aside.

    `compact_after` is the least tail that is folded in by itself, None turns that off.
    """

    def __init__(self, state: StateT, compact_after: int | None) -> None:
        self.compact_after = compact_after
        self._state = state
        self._writing = threading.RLock()
        self._compacting = threading.Lock()
        self._changes: list[tuple[Id, tuple[str, Any] | None]] | None = None
        self._failure: BaseException | None = None
        self._aside: threading.Thread | None = None

    @abstractmethod
    def _read(self, text: str, dialect: str) -> tuple[str, Any]:
        """Compile a filter, and write it in the room's own dialect; refuses a bad one."""

    @abstractmethod
    def _rebuilt(self, moment: Moment[StateT]) -> StateT:
        """Build a state whose base holds all that was left at a moment."""

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self._state)

    def __contains__(self, identity: Id) -> bool:
        """Tell whether there is a subscription of this id."""
        return self._state.find(identity) >= 0

    @property
    def numbered(self) -> bool:
        """Tell whether ids are whole numbers rather than text."""
        return self._state.numbered

    @property
    def ids(self) -> Ids:
        """Return the ids, in order."""
        state = self._state
        return Ids.of(state.ids()) if state.changed else state.base.ids

    def filter(self, identity: Id) -> str:
        """Return the text of a subscription's filter, in the room's own dialect."""
        state = self._state
        return state.text(state.number_of(identity))

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot, compacted if need be; `source` says what it was built from."""
        # Without the lock: a compaction that runs already needs it to end.
        if self._state.changed:
            self.compact()
        self._state.base.save(path, source=source)

    def prepare(self, subscription: Subscription) -> tuple[str, Any]:
        """Compile a filter for `subscribe`; refuses a bad one."""
        self._raise_failure()
        text, compiled = self._read(subscription.filter, subscription.dialect)
        self._state.tail.admit(compiled)
        return text, compiled

    def subscribe(self, subscription: Subscription, prepared: tuple[str, Any] | None = None) -> None:
        """Add a subscription; it matches from now on. Refuses a bad filter, and an id that is here."""
        identity, prepared = subscription.id, prepared or self.prepare(subscription)
        with self._writing:
            check_id(identity)
            self._state.check_type(identity)
            if self._state.find(identity) >= 0:
                raise SubscriptionError(f"id {identity!r} is subscribed already: unsubscribe it first")
            self._state.add(identity, *prepared)
            if self._changes is not None:
                self._changes.append((identity, prepared))
            if self._due() and (self._aside is None or not self._aside.is_alive()):
                self._aside = threading.Thread(
                    target=self._compact_aside, name="headgate-compaction", daemon=True
                )
                self._aside.start()

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription; it matches no more. Refuses an id that is not here."""
        with self._writing:
            self._raise_failure()
            self._state.check_type(identity)
            if not self._state.remove(identity):
                raise SubscriptionError(f"there is no subscription {identity!r} here")
            if self._changes is not None:
                self._changes.append((identity, None))

    def compact(self) -> None:
        """Fold the tail into a new base, without what was removed, and put it in place at once.

        Others may match and change subscriptions meanwhile.
        """
        with self._compacting:
            with self._writing:
                state = self._state
                moment, self._changes = Moment(state, *state.left()), []
            try:
                fresh = self._rebuilt(moment)
                with self._writing:
                    for identity, prepared in self._changes:
                        if prepared is None:
                            fresh.remove(identity)
                        else:
                            fresh.add(identity, *prepared)
                    self._state = fresh
            finally:
                with self._writing:
                    self._changes = None

    def _due(self) -> bool:
        """Tell whether the tail has grown long enough to be folded in."""
        state = self._state
        least = self.compact_after
        return least is not None and state.late > max(least, len(state.base.ids) // 4)

    def _compact_aside(self) -> None:
        try:
            while self._due():
                self.compact()
        except BaseException as error:  # noqa: BLE001 -- raised by the next change, where somebody sees it
            self._failure = error

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
