"""Who is who: the ids of subscriptions and consumers, and the numbers that blocks have for them.

A number that was given away is never given to another subscription. One that is gone has no consumer, so
what it matched and was not delivered yet is delivered to nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from headgate.core.event import Id
    from headgate.service.storage.log import Block

    Numbers = NDArray[np.uint32]


_Number = TypeVar("_Number", bound=np.generic)
NOBODY = -1


@dataclass(slots=True, eq=False)
class Delivery:
    """An event for a consumer, and those of its subscriptions that matched."""

    position: int
    time: int
    text: bytes
    subscriptions: list[str]


class Names:
    """The ids and numbers of a tenant. They are changed by the matcher's thread and read by any."""

    def __init__(self) -> None:
        self.numbers: dict[Id, int] = {}
        """Of subscriptions, by id."""
        self._ids: dict[int, str] = {}
        self._owner = np.full(1_024, NOBODY, np.int32)
        self.consumers: dict[str, int] = {}
        """The numbers of consumers, by id."""

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self.numbers)

    def add(self, number: int, identity: str, consumer: str) -> None:
        """Have a subscription of a number; another one of its id has none any more."""
        self.remove(identity)
        if number >= len(self._owner):
            self._owner = grown(self._owner, max(number + 1, 2 * len(self._owner)), NOBODY)
        self._ids[number] = identity
        self._owner[number] = self.consumers[consumer]
        # Last, because by this it is found.
        self.numbers[identity] = number

    def remove(self, identity: str) -> None:
        """Have no subscription of an id."""
        number = self.numbers.pop(identity, None)
        if number is not None:
            self._owner[number] = NOBODY
            self._ids.pop(number, None)

    def numbers_of(self, ids: Iterable[Id]) -> list[int]:
        """Return the numbers of subscriptions; of those that have just gone, none."""
        try:
            return list(map(self.numbers.__getitem__, ids))
        except KeyError:
            numbers = self.numbers
            return [numbers[each] for each in ids if each in numbers]

    def ids_of(self, numbers: Iterable[int]) -> list[str]:
        """Return the ids of subscriptions; of those that are gone, none."""
        ids = self._ids
        return [ids[each] for each in numbers if each in ids]

    def owners(self, numbers: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Return the consumers of subscriptions, all by number."""
        owner = self._owner
        # Whoever grows it may be a moment behind.
        return owner[np.minimum(numbers, len(owner) - 1)] if len(numbers) else np.zeros(0, np.int32)

    def deliveries(self, block: Block, consumer: int, after: int) -> list[Delivery]:
        """List what a block has for a consumer after a position."""
        owners = self.owners(block.subscriptions)
        places = np.flatnonzero(owners == consumer)
        by_owner = self._collected(block, places, owners[places])
        return [each for _, some in by_owner for each in some if each.position > after]

    def owned(self, consumer: int) -> list[str]:
        """List the subscriptions of a consumer."""
        return self.ids_of(self.present(consumer).tolist())

    def present(self, consumer: int | None = None) -> NDArray[np.int64]:
        """Return the numbers of subscriptions that are there, of all consumers or of one, in order."""
        return np.flatnonzero(self._owner != NOBODY if consumer is None else self._owner == consumer)

    def by_consumer(self, block: Block, wanted: NDArray[np.bool_]) -> list[tuple[int, list[Delivery]]]:
        """List what a block has for each of some consumers: those that are true in `wanted`, by number.

        The first and the last of `wanted` are false: nobody and consumers beyond it are looked up there.
        """
        owners = self.owners(block.subscriptions)
        places = np.flatnonzero(wanted.take(owners, mode="clip"))
        if not len(places):
            return []
        of = owners[places]
        order = np.argsort(of, kind="stable")
        return self._collected(block, places[order], of[order])

    def _collected(
        self, block: Block, places: NDArray[np.int64], owners: NDArray[np.int32]
    ) -> list[tuple[int, list[Delivery]]]:
        """Put matches at some places together by event, for each of their owners, which rise."""
        rows = np.searchsorted(block.ends, places, "right").tolist()
        ids, texts, first, time = self._ids, block.texts, block.first, block.time
        by_owner: list[tuple[int, list[Delivery]]] = []
        last_owner = last_row = -1
        numbers = block.subscriptions[places].tolist()
        for owner, row, number in zip(owners.tolist(), rows, numbers, strict=True):
            identity = ids.get(number)
            if identity is None:
                continue
            if owner != last_owner:
                by_owner.append((owner, [Delivery(first + row, time, texts[row], [identity])]))
                last_owner, last_row = owner, row
            elif row != last_row:
                by_owner[-1][1].append(Delivery(first + row, time, texts[row], [identity]))
                last_row = row
            else:
                by_owner[-1][1][-1].subscriptions.append(identity)
        return by_owner


NONE = np.zeros(0, np.uint32)


class Matches(NamedTuple):
    """What some events matched."""

    counts: NDArray[np.int64]
    """How many subscriptions each event matched; none of one that was refused."""
    numbers: Numbers
    """The numbers of these, for each event in the order of their ids."""
    refused: dict[int, EventError]
    """Why events were refused, by their rows."""

    @classmethod
    def of(cls, answers: Sequence[Sequence[int] | EventError]) -> Matches:
        """Put the numbers of each event together.

        >>> Matches.of([[3, 1], [], [7]]).numbers
        array([3, 1, 7], dtype=uint32)
        """
        refused = {row: each for row, each in enumerate(answers) if isinstance(each, EventError)}
        lists = [() if isinstance(each, EventError) else each for each in answers]
        counts = np.fromiter(map(len, lists), np.int64, len(lists))
        numbers = np.fromiter(chain.from_iterable(lists), np.uint32, int(counts.sum()))
        return cls(counts, numbers, refused)

    def some(self, rows: Sequence[int]) -> Matches:
        """Return those of some events, in rising order."""
        if len(rows) == len(self.counts):
            return self
        kept = np.zeros(len(self.counts), np.bool_)
        kept[rows] = True
        refused = {place: self.refused[row] for place, row in enumerate(rows) if row in self.refused}
        return Matches(self.counts[kept], self.numbers[np.repeat(kept, self.counts)], refused)

    def lists(self) -> list[list[int]]:
        """List the numbers of each event."""
        numbers, ends = self.numbers.tolist(), np.cumsum(self.counts).tolist()
        return [numbers[end - count : end] for count, end in zip(self.counts.tolist(), ends, strict=True)]

    @property
    def ends(self) -> Numbers:
        """Return where the numbers of each event end."""
        return np.cumsum(self.counts).astype(np.uint32)


class MatchCounts:
    """Counts by the number of a subscription. They are kept by the event loop's thread."""

    def __init__(self) -> None:
        self._count = np.zeros(1_024, np.int64)
        self._last = np.zeros(1_024, np.int64)

    def note(self, block: Block) -> None:
        """Count what a block has."""
        for numbers in (block.subscriptions, block.held):
            if len(numbers):
                self._grow(int(numbers.max()))
                np.add.at(self._count, numbers, 1)
                self._last[numbers] = block.time

    def _grow(self, number: int) -> None:
        if number >= len(self._count):
            size = max(number + 1, 2 * len(self._count))
            self._count, self._last = grown(self._count, size), grown(self._last, size)

    def of(self, number: int) -> tuple[int, int | None]:
        """Return how often a subscription matched, and when last, in microseconds; None if never."""
        if number >= len(self._count) or not self._count[number]:
            return 0, None
        return int(self._count[number]), int(self._last[number])

    def counts(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how often each of some subscriptions matched."""
        known = self._count
        return np.where(numbers < len(known), known[np.minimum(numbers, len(known) - 1)], 0)


def grown(values: NDArray[_Number], size: int, fill: int = 0) -> NDArray[_Number]:
    """Return an array of another size that begins with the values."""
    larger = np.full(size, fill, values.dtype)
    larger[: len(values)] = values
    return larger
