"""Who is who: the ids of subscriptions and consumers, and the numbers that blocks have for them.

A number that was given away is never given to another subscription. One that is gone has no consumer, so
what it matched and was not delivered yet is delivered to nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from headgate.core.event import Id
    from headgate.service.storage.block import Block

NOBODY = -1


class Delivery:
    """An event for a consumer, and those of its subscriptions that matched."""

    __slots__ = ("position", "subscriptions", "text", "time")

    def __init__(self, position: int, time: int, text: bytes, subscriptions: list[str]) -> None:
        self.position = position
        self.time = time
        self.text = text
        self.subscriptions = subscriptions


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
            grown = np.full(max(number + 1, 2 * len(self._owner)), NOBODY, np.int32)
            grown[: len(self._owner)] = self._owner
            self._owner = grown
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
        mine = np.flatnonzero(self.owners(block.subscriptions) == consumer)
        return self._collected(block, mine, after)

    def owned(self, consumer: int) -> list[str]:
        """List the subscriptions of a consumer."""
        return self.ids_of(np.flatnonzero(self._owner == consumer).tolist())

    def present(self, consumer: int | None = None) -> NDArray[np.int64]:
        """Return the numbers of subscriptions that are there, of all consumers or of one, in order."""
        return np.flatnonzero(self._owner != NOBODY if consumer is None else self._owner == consumer)

    def count_owned(self, consumer: int) -> int:
        """Count the subscriptions of a consumer."""
        return int(np.count_nonzero(self._owner == consumer))

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
        places = places[order]
        rows = np.searchsorted(block.ends, places, "right").tolist()
        ids, texts, first, time = self._ids, block.texts, block.first, block.time
        found: list[tuple[int, list[Delivery]]] = []
        last_owner = last_row = -1
        for owner, row, number in zip(
            of[order].tolist(), rows, block.subscriptions[places].tolist(), strict=True
        ):
            identity = ids.get(number)
            if identity is None:
                continue
            if owner != last_owner:
                found.append((owner, [Delivery(first + row, time, texts[row], [identity])]))
                last_owner, last_row = owner, row
            elif row != last_row:
                found[-1][1].append(Delivery(first + row, time, texts[row], [identity]))
                last_row = row
            else:
                found[-1][1][-1].subscriptions.append(identity)
        return found

    def _collected(self, block: Block, places: NDArray[np.int64], after: int) -> list[Delivery]:
        """Put matches at some places together by event."""
        rows = np.searchsorted(block.ends, places, "right").tolist()
        numbers = block.subscriptions[places].tolist()
        ids = self._ids
        found: list[Delivery] = []
        last = -1
        for row, number in zip(rows, numbers, strict=True):
            position = block.first + row
            identity = ids.get(number)
            if position <= after or identity is None:
                continue
            if row != last:
                found.append(Delivery(position, block.time, block.texts[row], []))
                last = row
            found[-1].subscriptions.append(identity)
        return found
