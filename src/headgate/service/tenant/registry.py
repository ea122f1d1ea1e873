"""The subscriptions of a tenant beside its index: numbers, revisions, limits, and when they end.

They are changed by the matcher's thread and read by any. What is changed is told as what must be written.
"""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from headgate.errors import SubscriptionError
from headgate.service.problems import Conflict, Forbidden, existing
from headgate.service.resources import DEFAULT, ConsumerBody
from headgate.service.security.webhooks import new_secret
from headgate.service.storage import consumers as stored_consumers
from headgate.service.storage import subscriptions as stored_subscriptions
from headgate.service.storage.consumers import StoredConsumer
from headgate.service.storage.database import keep
from headgate.service.storage.subscriptions import Stored
from headgate.service.tenant.limits import Limits
from headgate.service.tenant.names import Names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headgate.service.resources import SubscriptionBody
    from headgate.service.settings import Quotas
    from headgate.service.storage.log import Write
    from headgate.service.storage.store import Store


_SETTING = "revision"


class Revisions:
    """The last revision that was given; by the matcher's thread only."""

    def __init__(self, store: Store) -> None:
        self._last = int(store.setting(_SETTING) or 0)

    def next(self) -> int:
        """Give another one."""
        self._last += 1
        return self._last

    def kept(self) -> Write:
        """Return what must be written, so that none is given again."""
        return keep(_SETTING, self._last)


class Consumers:
    """The consumers. `position` says where new ones begin; `changed` is told the id of each that changes."""

    def __init__(
        self,
        store: Store,
        revisions: Revisions,
        position: Callable[[], int],
        changed: Callable[[str], object],
    ) -> None:
        self._store = store
        self._revisions = revisions
        self._position = position
        self._changed = changed
        self._last = 0
        self.read()

    def read(self) -> None:
        """Have what is stored."""
        self._known = {each.id: each for each in self._store.consumers.all()}
        self.numbers = {each.id: each.number for each in self._known.values()}
        """The number of each, by id."""
        self._last = max((self._last, *self.numbers.values()))

    def find(self, identity: str) -> StoredConsumer | None:
        """Find a consumer; its cursor is where it began, and delivery knows how far it came since."""
        return self._known.get(identity)

    def have(self, wanted: ConsumerBody) -> list[Write]:
        """Make a consumer that is not there yet; it begins with the next event."""
        identity = str(wanted.id)
        known = self._known.get(identity)
        if known is not None and (wanted.url is None or known.said.url == wanted.url):
            return []
        return self._keep(self._numbered(identity, wanted, known))

    def put(
        self, identity: str, make: Callable[[StoredConsumer | None], ConsumerBody], expected: int | None
    ) -> tuple[list[Write], tuple[StoredConsumer, bool]]:
        """Have a consumer, made of what there is; tells what must be written, it, and whether it is new."""
        known = self._known.get(identity)
        _check(identity, known, expected)
        stored = self._numbered(identity, make(known), known)
        return [*self._keep(stored), self._revisions.kept()], (stored, known is None)

    def check_there(self, identity: str, expected: int | None) -> StoredConsumer:
        """Return a consumer; refuses if there is none, or another one than is expected."""
        known = existing(self._known.get(identity), f"consumer {identity!r}")
        _check(identity, known, expected)
        return known

    def remove(self, identity: str) -> list[Write]:
        """Have no consumer of an id, which has no subscriptions any more."""
        del self._known[identity]
        self.numbers.pop(identity, None)
        self._changed(identity)
        return [stored_consumers.remove(identity)]

    def _keep(self, stored: StoredConsumer) -> list[Write]:
        self._known[stored.id] = stored
        self.numbers[stored.id] = stored.number
        self._changed(stored.id)
        return [stored_consumers.put(stored)]

    def _numbered(self, identity: str, body: ConsumerBody, known: StoredConsumer | None) -> StoredConsumer:
        if body.url is not None and body.secret is None:
            body = msgspec.structs.replace(body, secret=new_secret())
        revision = self._revisions.next()
        if known is not None:
            return known._replace(revision=revision, body=msgspec.json.encode(body))
        self._last += 1
        return StoredConsumer(identity, self._last, revision, self._position(), msgspec.json.encode(body))


def consumer_for(identity: str, body: SubscriptionBody) -> ConsumerBody:
    """Return the consumer that a subscription belongs to."""
    if body.sink is not None:
        if body.consumer is not None:
            raise SubscriptionError("there are both `sink` and `consumer`: a sink is a consumer of its own")
        return ConsumerBody(id=f"sink:{identity}", url=body.sink)
    return ConsumerBody(id=body.consumer or DEFAULT)


def _check(identity: str, known: StoredConsumer | None, expected: int | None) -> None:
    revision = 0 if known is None else known.revision
    if expected is not None and expected != revision:
        raise Conflict(_other(f"consumer {identity!r}", revision), 412)


def _other(what: str, revision: int) -> str:
    now = f"it has revision {revision} now" if revision else "there is none"
    return f"{what} is not as you know it: {now}; read it again"


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
        self.revisions.clear()
        for number, identity, consumer, revision, end in self._store.subscriptions.names():
            self.names.add(number, identity, consumer)
            self.revisions[identity] = revision
            self._end_at(identity, number, end)
        for number, *period in self._store.limits():
            stored = self._store.subscriptions.by_number(number)
            if stored is not None and stored.said.limit is not None:
                self.limits.read(number, stored.said.limit, *period)

    def _end_at(self, identity: str, number: int, end: int | None) -> None:
        self.expiries.pop(identity, None)
        if end is not None:
            self.expiries[identity] = end
            heapq.heappush(self._ends, (end, identity, number))

    # What may be

    def check_filter(self, body: SubscriptionBody) -> None:
        """Refuse a filter that is longer than the quota."""
        most, text = self.quotas.filter_length, body.subscription("").filter
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
        revision = self.revisions.get(identity, 0)
        if create and revision:
            raise Conflict(
                f"subscription {identity!r} is there already: replace it with PUT, or choose another id"
            )
        if expected is not None and expected != revision:
            raise Conflict(_other(f"subscription {identity!r}", revision), 412)

    # What is

    def put(self, identity: str, body: SubscriptionBody) -> tuple[list[Write], Stored, bool]:
        """Give a subscription its number, revision and consumer; tells whether it is new."""
        consumer = consumer_for(identity, body)
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
            limited = self.limits.set(number, body.limit)
        else:
            limited = [*self.limits.set(before, None), *self.limits.set(number, body.limit)]
        expires = body.expires_at
        self._end_at(identity, number, expires)
        stored = Stored(number, identity, owner, revision, expires, msgspec.json.encode(body))
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
