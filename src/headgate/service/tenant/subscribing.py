"""Subscriptions that come and go: checked, changed in the index and the registry, and written."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from headgate.errors import HeadgateError, SubscriptionError
from headgate.runtime.operations import UPSERT, Put, Unsubscribe
from headgate.service.problems import Conflict, NotFound
from headgate.service.storage import subscriptions as stored_subscriptions
from headgate.service.tenant.building import Refused
from headgate.service.tenant.consumers import consumer_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.service.resources import SubscriptionBody
    from headgate.service.storage.log import Write
    from headgate.service.storage.subscriptions import Stored
    from headgate.service.tenant.building import Building, Rows
    from headgate.service.tenant.registry import Registry
    from headgate.service.tenant.workers import Workers

_TOGETHER = 200
"""Subscriptions of an import that are taken between events."""
_BUILD_FROM = 2_000
"""Subscriptions that come together from which the index is built again rather than changed."""


class Subscribing:
    """What changes the subscriptions of a tenant."""

    def __init__(self, registry: Registry, workers: Workers, building: Building) -> None:
        self._registry = registry
        self._workers = workers
        self._building = building

    async def put(
        self,
        identity: str,
        said: SubscriptionBody,
        *,
        expected: int | None = None,
        create: bool = False,
        also: Sequence[Write] = (),
    ) -> tuple[Stored, bool]:
        """Have a subscription; `expected` is the revision that it must have, 0 if there must be none.

        Returns it, and whether it is new. What is to be written `also` is, with it or not at all.
        """
        change = self._checked(identity, said)
        if not self._building.fits(change):
            return await self._put_anew(identity, said, expected, create=create, also=also)

        def run() -> tuple[list[Write], tuple[Stored, bool]]:
            writes, answer = self._put(change, said, expected, create=create)
            return [*writes, *also], answer

        found: tuple[Stored, bool] = await self._workers.between(run)
        self._building.save_soon()
        return found

    def _checked(self, identity: str, said: SubscriptionBody) -> Put:
        """Return the change that has a subscription; refuses what could not be one."""
        said.check()
        self._registry.check_filter(said)
        consumer_for(identity, said)
        return Put(UPSERT, said.subscription(identity))

    def _put(
        self, change: Put, said: SubscriptionBody, expected: int | None, *, create: bool
    ) -> tuple[list[Write], tuple[Stored, bool]]:
        """Change the index, in the matcher's thread, and say what must be written."""
        identity = str(change.subscription.id)
        self._registry.check_revision(identity, expected, create=create)
        self._registry.check_count(identity)
        if said.expires_at is None or said.expires_at > time.time_ns() // 1_000:
            self._building.apply(change)
        writes, stored, new = self._registry.put(identity, said)
        kept = stored_subscriptions.put(stored, change.subscription)
        return [*writes, self._registry.kept(), kept], (stored, new)

    async def _put_anew(
        self,
        identity: str,
        said: SubscriptionBody,
        expected: int | None,
        *,
        create: bool,
        also: Sequence[Write],
    ) -> tuple[Stored, bool]:
        """Have a subscription that needs another shape: the index is built again with it."""
        new = True

        def check() -> None:
            nonlocal new
            self._registry.check_revision(identity, expected, create=create)
            new = identity not in self._registry.revisions

        def before() -> tuple[list[Write], None]:
            check()
            return [], None

        # Before the work, and again when it is done: another request may have come first.
        await self._workers.between(before)
        rows, refused = await self._building.build([(1, identity, said)], also, check)
        if refused:
            raise SubscriptionError(refused[0].reason)
        if not rows:
            raise Conflict(
                f"subscription {identity!r} was changed by another request meanwhile: read it again"
            )
        return rows[0], new

    async def import_(self, rows: Rows, also: Sequence[Write] = ()) -> tuple[int, list[Refused]]:
        """Have many subscriptions, given with their lines; returns how many were taken, and what was not."""
        if len(rows) >= _BUILD_FROM and 4 * len(rows) >= len(self._registry.names):
            taken, refused = await self._building.build(rows, also)
            return len(taken), refused
        refused, anew = [], []
        for begin in range(0, len(rows), _TOGETHER):
            some = rows[begin : begin + _TOGETHER]
            bad, wider = await self._workers.between(partial(self._put_some, some))
            refused += bad
            anew += wider
        if anew:
            refused += (await self._building.build(anew))[1]
        if also:
            await self._workers.write(*also)
        self._building.save_soon()
        return len(rows) - len(refused), sorted(refused)

    def _put_some(
        self, rows: Rows
    ) -> tuple[list[Write], tuple[list[Refused], list[tuple[int, str, SubscriptionBody]]]]:
        """Have some subscriptions, in the matcher's thread; returns refused ones, and wider ones."""
        writes: list[Write] = []
        refused, wider = [], []
        for line, identity, said in rows:
            try:
                change = self._checked(identity, said)
                if not self._building.fits(change):
                    wider.append((line, identity, said))
                    continue
                writes += self._put(change, said, None, create=False)[0]
            except HeadgateError as error:
                refused.append(Refused(line, identity, str(error)))
        return writes, (refused, wider)

    async def remove(self, identity: str, *, expected: int | None = None, also: Sequence[Write] = ()) -> None:
        """Have no subscription of an id."""

        def run() -> tuple[list[Write], None]:
            if identity not in self._registry.revisions:
                raise NotFound(f"there is no subscription {identity!r}")
            self._registry.check_revision(identity, expected, create=False)
            return [*self.take_out(identity), *also], None

        await self._workers.between(run)
        self._building.save_soon()

    def take_out(self, identity: str) -> list[Write]:
        """Take a subscription out of the index, in the matcher's thread, and say what must be written."""
        if identity in self._building.index:
            self._building.apply(Unsubscribe(identity))
        return self._registry.remove(identity)
