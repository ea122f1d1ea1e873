"""The consumers of a tenant: who is there, under which number, and whom a subscription belongs to.

They are changed by the matcher's thread and read by any. What is changed is told as what must be written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headgate.errors import SubscriptionError
from headgate.service.problems import Conflict, NotFound
from headgate.service.resources import DEFAULT, ConsumerBody
from headgate.service.security.signature import new_secret
from headgate.service.storage import consumers as stored_consumers
from headgate.service.storage.consumers import StoredConsumer

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.service.resources import SubscriptionBody
    from headgate.service.storage.log import Write
    from headgate.service.storage.store import Store
    from headgate.service.tenant.revisions import Revisions


class Consumers:
    """The consumers. `position` says where new ones begin; `changed` is told the id of each that changes."""

    def __init__(
        self, store: Store, revisions: Revisions, position: Callable[[], int], changed: Callable[[str], None]
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
        found = self._known.get(identity)
        if found is not None and (wanted.url is None or found.said.url == wanted.url):
            return []
        return self._keep(self._numbered(identity, wanted, found))

    def put(
        self, identity: str, make: Callable[[StoredConsumer | None], ConsumerBody], expected: int | None
    ) -> tuple[list[Write], tuple[StoredConsumer, bool]]:
        """Have a consumer, made of what there is; tells what must be written, it, and whether it is new."""
        found = self._known.get(identity)
        _check(identity, found, expected)
        stored = self._numbered(identity, make(found), found)
        return [*self._keep(stored), self._revisions.kept()], (stored, found is None)

    def check_there(self, identity: str, expected: int | None) -> StoredConsumer:
        """Return a consumer; refuses if there is none, or another one than is expected."""
        found = self._known.get(identity)
        if found is None:
            raise NotFound(f"there is no consumer {identity!r}")
        _check(identity, found, expected)
        return found

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

    def _numbered(self, identity: str, said: ConsumerBody, found: StoredConsumer | None) -> StoredConsumer:
        if said.url is not None and said.secret is None:
            said = msgspec.structs.replace(said, secret=new_secret())
        revision = self._revisions.next()
        if found is not None:
            return found._replace(revision=revision, body=msgspec.json.encode(said))
        self._last += 1
        return StoredConsumer(identity, self._last, revision, self._position(), msgspec.json.encode(said))


def consumer_for(identity: str, said: SubscriptionBody) -> ConsumerBody:
    """Return the consumer that a subscription belongs to."""
    if said.sink is not None:
        if said.consumer is not None:
            raise SubscriptionError("there are both `sink` and `consumer`: a sink is a consumer of its own")
        return ConsumerBody(id=f"sink:{identity}", url=said.sink)
    return ConsumerBody(id=said.consumer or DEFAULT)


def _check(identity: str, found: StoredConsumer | None, expected: int | None) -> None:
    revision = 0 if found is None else found.revision
    if expected is not None and expected != revision:
        now = f"it has revision {revision} now" if revision else "there is none"
        raise Conflict(f"consumer {identity!r} is not as you know it: {now}; read it again", 412)
