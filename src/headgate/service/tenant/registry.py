"""The subscriptions of a tenant beside its index: numbers, revisions, limits, and when they end.

They are changed by the matcher's thread and read by any. What is changed is told as what must be written.
"""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from headgate.service.problems import Conflict, Forbidden
from headgate.service.storage import subscriptions as stored_subscriptions
from headgate.service.storage.subscriptions import Stored
from headgate.service.tenant.consumers import consumer_for
from headgate.service.tenant.limits import Limits
from headgate.service.tenant.names import Names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.service.resources import SubscriptionBody
    from headgate.service.settings import Quotas
    from headgate.service.storage.log import Write
    from headgate.service.storage.store import Store
    from headgate.service.tenant.consumers import Consumers
    from headgate.service.tenant.revisions import Revisions


class Registry:
    """Who is who among subscriptions, and what is known of each."""

    def __init__(self, store: Store, consumers: Consumers, revisions: Revisions, quotas: Quotas) -> None:
        self._store = store
        self._consumers = consumers
        self._given = revisions
        self._next = store.subscriptions.next_number()
        self.quotas = quotas
        self.revisions: dict[str, int] = {}
        """The revision of each subscription."""
        self.expiries: dict[str, int] = {}
        """When subscriptions end, in microseconds; of those that do."""
        self._ends: list[tuple[int, str, int]] = []
        self.read()

    def read(self) -> None:
        """Have what is stored."""
        self.names, self.limits = Names(), Limits()
        self.names.consumers = self._consumers.numbers
        self.expiries.clear()
        self._ends.clear()
        limits = self._store.limits()
        for number, identity, consumer, end in self._store.subscriptions.names():
            self.names.add(number, identity, consumer)
            self._end_at(identity, number, end)
        self.revisions.clear()
        self.revisions.update(dict(self._store.database.rows("SELECT id, revision FROM subscriptions")))
        for number, *period in limits:
            stored = self._store.subscriptions.by_number(number)
            if stored is not None and stored.said.limit is not None:
                self.limits.read(number, stored.said.limit, *period)

    def _end_at(self, identity: str, number: int, end: int | None) -> None:
        self.expiries.pop(identity, None)
        if end is not None:
            self.expiries[identity] = end
            heapq.heappush(self._ends, (end, identity, number))

    # What may be

    def check_filter(self, said: SubscriptionBody) -> None:
        """Refuse a filter that is longer than the quota."""
        most, text = self.quotas.filter_length, said.subscription("").filter
        if most is not None and len(text) > most:
            raise Forbidden(f"the filter has {len(text):,} characters, and the quota is {most:,}: shorten it")

    def check_count(self, identity: str, more: int = 0) -> None:
        """Refuse a new subscription beyond the quota; `more` are new as well."""
        most = self.quotas.subscriptions
        if most is not None and identity not in self.revisions and len(self.revisions) + more >= most:
            raise Forbidden(
                f"there are {len(self.revisions) + more:,} subscriptions, and the quota is {most:,}: delete "
                "some first"
            )

    def check_revision(self, identity: str, expected: int | None, *, create: bool) -> None:
        """Refuse a change of a subscription that is another one than is expected."""
        found = self.revisions.get(identity, 0)
        if create and found:
            raise Conflict(
                f"subscription {identity!r} is there already: replace it with PUT, or choose another id"
            )
        if expected is not None and expected != found:
            now = f"it has revision {found} now" if found else "there is none"
            raise Conflict(f"subscription {identity!r} is not as you know it: {now}; read it again", 412)

    # What is

    def put(self, identity: str, said: SubscriptionBody) -> tuple[list[Write], Stored, bool]:
        """Give a subscription its number, revision and consumer; tells whether it is new."""
        consumer = consumer_for(identity, said)
        writes = self._consumers.have(consumer)
        owner = str(consumer.id)
        number = self.names.numbers.get(identity)
        before = -1 if number is None else number
        new = identity not in self.revisions
        if (
            number is None
            or int(self.names.owners(np.array([number], np.uint32))[0]) != self.names.consumers[owner]
        ):
            number, self._next = self._next, self._next + 1
        revision = self.revisions[identity] = self._given.next()
        self.names.add(number, identity, owner)
        if new or before == number:
            limited = self.limits.set(number, said.limit)
        else:
            limited = [*self.limits.set(before, None), *self.limits.set(number, said.limit)]
        expires = said.expires_at
        self._end_at(identity, number, expires)
        stored = Stored(number, identity, owner, revision, expires, msgspec.json.encode(said))
        return [*writes, *limited], stored, new

    def remove(self, identity: str) -> list[Write]:
        """Have no subscription of an id."""
        number = self.names.numbers[identity]
        self.names.remove(identity)
        limited = self.limits.set(number, None)
        self.expiries.pop(identity, None)
        del self.revisions[identity]
        return [stored_subscriptions.remove(identity), *limited]

    def kept(self) -> Write:
        """Return what must be written, so that no revision is given twice."""
        return self._given.kept()

    # When it ends

    @property
    def next_end(self) -> int | None:
        """Return when the next subscription ends."""
        return self._ends[0][0] if self._ends else None

    def ended(self) -> Iterator[str]:
        """List the subscriptions whose time is over, each once."""
        now = time.time_ns() // 1_000
        while self._ends and self._ends[0][0] <= now:
            _, identity, number = heapq.heappop(self._ends)
            if self.names.numbers.get(identity) == number and self.expiries.get(identity, now + 1) <= now:
                yield identity
