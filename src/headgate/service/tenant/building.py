"""How a tenant's index comes to be: opened, built anew beside the one that is used, put in its place, saved.

change within the shape    is made in the matcher's thread
any other                  has the index built anew of what is stored, and of what comes with the change;
events are matched with the old one meanwhile, and changes are noted and made
again in the new one
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from headgate.errors import HeadgateError, SubscriptionError
from headgate.runtime.operations import UPSERT, Put, Unsubscribe
from headgate.service.problems import Conflict, existing
from headgate.service.storage import subscriptions as stored_subscriptions
from headgate.service.storage.database import keep
from headgate.service.storage.store import built, demand_build
from headgate.service.tenant.contents import RANKED, Contents, changed
from headgate.service.tenant.index import Index, open_index
from headgate.service.tenant.registry import consumer_for
from headgate.service.worker import telling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.core.event import Id
    from headgate.core.subscription import Subscription
    from headgate.runtime.operations import Change
    from headgate.service.resources import SubscriptionBody
    from headgate.service.storage.log import Write
    from headgate.service.storage.store import Store
    from headgate.service.storage.subscriptions import Stored
    from headgate.service.tenant.registry import Registry
    from headgate.service.tenant.workers import Workers

    Rows = Sequence[tuple[int, str, SubscriptionBody]]
    """Subscriptions of an import: the line, the id, and what is said."""


_LOG = logging.getLogger("headgate.service")
_UNSAVED = telling(_LOG, "the snapshot of the index could not be written")
_SAVE_AFTER = 10_000
"""Changes after which a snapshot is written."""
_SAVE_LATER = 5.0
"""Seconds after a change of the graph until a snapshot is written."""
_TOGETHER = 200
"""Subscriptions of an import that are taken between events."""
_BUILD_FROM = 2_000
"""Subscriptions that come together from which the index is built again rather than changed."""


class RefusedLine(msgspec.Struct, order=True):
    """A line of an import that was refused."""

    line: int
    """Counted from 1."""
    id: str | None
    reason: str


class Building:
    """The index of a tenant, and what changes it."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        workers: Workers,
        index: Index,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._store = store
        self._registry = registry
        self._workers = workers
        self._loop = loop
        self.index = index
        self._lock = asyncio.Lock()
        self._since: list[Change] | None = None
        self._saving: asyncio.Task[None] | None = None
        self._saved_at = store.subscriptions.position()

    def reopen(self) -> None:
        """Open the index again from what is stored."""
        self.index = open_index(self._store, self._registry.quotas)

    async def close(self) -> None:
        """Write a snapshot if there are changes; nothing else runs any more."""
        position = self._store.subscriptions.position()
        if position != self._saved_at or self._store.must_build:
            await asyncio.to_thread(self.index.write, self._store.index, position)
            await asyncio.to_thread(
                self._store.log.append, [], [stored_subscriptions.contained(position), built()]
            )

    def cancel(self) -> None:
        """Have no snapshot written later."""
        if self._saving is not None:
            self._saving.cancel()

    # In the matcher's thread

    def apply(self, change: Change) -> None:
        """Make a change of subscriptions, or refuse it and change nothing."""
        self.index.apply(change)
        if self._since is not None:
            self._since.append(change)

    def _begin_noting(self) -> tuple[list[Write], None]:
        self._since = []
        return [demand_build()], None

    def _swap(
        self,
        index: Index,
        good: list[tuple[str, SubscriptionBody]],
        also: Sequence[Write],
        check: Callable[[], None],
    ) -> tuple[list[Write], list[Stored]]:
        """Put another index in the place of this one."""
        check()
        # What was changed meanwhile came later than what was imported.
        changed_since = {_subject(change) for change in self._since or ()}
        index.repeat(self._since or ())
        self.index = index
        self._since = None
        writes: list[Write] = []
        rows = []
        for identity, body in good:
            if identity not in changed_since:
                more, stored, _ = self._registry.put(identity, body)
                writes += more
                rows.append(stored)
        return [*writes, self._registry.kept(), stored_subscriptions.put_many(rows), *also], rows

    # Building anew

    async def build(
        self, rows: Rows, also: Sequence[Write] = (), check: Callable[[], None] = lambda: None
    ) -> tuple[list[Stored], list[RefusedLine]]:
        """Build the index anew with more subscriptions, while events are matched with the old one.

        `check` is called in the matcher's thread before the new one is taken, and may refuse it.
        """
        async with self._lock:
            return await self._anew(lambda: self._built(rows), also, check)

    async def _anew(
        self,
        make: Callable[[], tuple[list[tuple[str, SubscriptionBody]], list[RefusedLine], Index]],
        also: Sequence[Write],
        check: Callable[[], None] = lambda: None,
    ) -> tuple[list[Stored], list[RefusedLine]]:
        # What was changed before is stored when this is answered; what is changed from then on is noted.
        await self._workers.between(self._begin_noting)
        try:
            good, refused, index = await asyncio.to_thread(make)
            taken: list[Stored] = await self._workers.between(lambda: self._swap(index, good, also, check))
        finally:
            self._since = None
        await self._save()
        return taken, refused

    def _built(self, rows: Rows) -> tuple[list[tuple[str, SubscriptionBody]], list[RefusedLine], Index]:
        """Index what is stored and more, in a thread of its own."""
        registry = self._registry
        last: dict[str, tuple[int, SubscriptionBody, Subscription]] = {}
        refused: list[RefusedLine] = []
        fresh_ones = 0
        for line, identity, body in rows:
            try:
                wanted = self._checked(identity, body).subscription
                registry.check_count(identity, fresh_ones)
                fresh_ones += identity not in last and identity not in registry.revisions
                last[identity] = line, body, wanted
            except HeadgateError as error:
                refused.append(RefusedLine(line, identity, str(error)))
        contents = Contents.stored(self._store, registry.quotas)
        now = time.time()
        kept = [each for each in contents.subscriptions if each.id not in last]
        fresh = [
            wanted
            for _, body, wanted in last.values()
            if body.expires is None or body.expires.timestamp() > now
        ]
        index, bad = Index.collect(contents._replace(subscriptions=[*kept, *fresh]))
        for refused_id, reason in bad.items():
            if refused_id in last:
                line, *_ = last.pop(str(refused_id))
                refused.append(RefusedLine(line, str(refused_id), reason))
        good = [(identity, body) for identity, (_, body, _) in last.items()]
        return good, sorted(refused), index

    async def change(self, change: Change, writes: Sequence[Write]) -> None:
        """Change the graph, where its shape allows, or build it anew with what is written."""
        async with self._lock:
            if self.index.fits(change):

                def run() -> tuple[list[Write], None]:
                    self.index.apply(change)
                    # No change of the log tells of it: without a snapshot the index is built again.
                    return [*writes, demand_build()], None

                await self._workers.between(run)
                if self._saving is None or self._saving.done():
                    self._saving = self._loop.create_task(self._save_later())
                    self._saving.add_done_callback(_UNSAVED)
                return
            await self._rebuild(lambda contents: changed(contents, change), writes)

    async def rebuild(self, edit: Callable[[Contents], Contents], writes: Sequence[Write]) -> None:
        """Build the index again, of what is stored and edited; refuses what does not fit."""
        async with self._lock:
            await self._rebuild(edit, writes)

    async def _rebuild(self, edit: Callable[[Contents], Contents], writes: Sequence[Write]) -> None:
        def make() -> tuple[list[tuple[str, SubscriptionBody]], list[RefusedLine], Index]:
            return [], [], Index.build(edit(Contents.stored(self._store, self._registry.quotas)))

        await self._anew(make, writes)

    async def rank(self) -> None:
        """Have clauses indexed from now on, which is needed to rank by what holds of filters."""
        if self.index.ranked:
            return
        async with self._lock:
            if not self.index.ranked:
                await self._rebuild(lambda contents: contents._replace(ranked=True), [keep(RANKED, 1)])

    # Snapshots

    def save_soon(self) -> None:
        """Write a snapshot if there were many changes since the last one."""
        if not self._lock.locked() and self._store.subscriptions.position() - self._saved_at > _SAVE_AFTER:
            task = self._loop.create_task(self.save())
            task.add_done_callback(_UNSAVED)

    async def _save_later(self) -> None:
        await asyncio.sleep(_SAVE_LATER)
        await self.save()

    async def save(self) -> None:
        """Write a snapshot of the index, when nothing else builds one."""
        async with self._lock:
            await self._save()

    async def _save(self) -> None:
        """Write a snapshot of the index, while it is used."""
        # The index has at least what is on disk: changes are applied before they are written.
        position = self._store.subscriptions.position()
        await asyncio.to_thread(self.index.write, self._store.index, position)
        self._saved_at = position
        await self._workers.write(stored_subscriptions.contained(position), built())

    # Subscriptions that come and go

    async def put(
        self,
        identity: str,
        body: SubscriptionBody,
        *,
        expected: int | None = None,
        create: bool = False,
        also: Sequence[Write] = (),
    ) -> tuple[Stored, bool]:
        """Have a subscription; `expected` is the revision that it must have, 0 if there must be none.

        Returns it, and whether it is new. What is to be written `also` is, with it or not at all.
        """
        change = self._checked(identity, body)
        if not self.index.fits(change):
            return await self._put_anew(identity, body, expected, create=create, also=also)

        put = partial(self._put, change, body, expected, create=create)
        answer: tuple[Stored, bool] = await self._workers.between(put, also)
        self.save_soon()
        return answer

    def _checked(self, identity: str, body: SubscriptionBody) -> Put:
        """Return the change that has a subscription; refuses what could not be one."""
        body.check()
        self._registry.check_filter(body)
        consumer_for(identity, body)
        return Put(UPSERT, body.subscription(identity))

    def _put(
        self, change: Put, body: SubscriptionBody, expected: int | None, *, create: bool
    ) -> tuple[list[Write], tuple[Stored, bool]]:
        """Change the index, in the matcher's thread, and say what must be written."""
        identity = str(change.subscription.id)
        self._registry.check_revision(identity, expected, create=create)
        self._registry.check_count(identity)
        if body.expires_at is None or body.expires_at > time.time_ns() // 1_000:
            self.apply(change)
        writes, stored, new = self._registry.put(identity, body)
        kept = stored_subscriptions.put(stored, change.subscription)
        return [*writes, self._registry.kept(), kept], (stored, new)

    async def _put_anew(
        self,
        identity: str,
        body: SubscriptionBody,
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
        rows, refused = await self.build([(1, identity, body)], also, check)
        if refused:
            raise SubscriptionError(refused[0].reason)
        if not rows:
            raise Conflict(
                f"subscription {identity!r} was changed by another request meanwhile: read it again"
            )
        return rows[0], new

    async def import_(self, rows: Rows, also: Sequence[Write] = ()) -> tuple[int, list[RefusedLine]]:
        """Have many subscriptions, given with their lines; returns how many were taken, and what was not."""
        if len(rows) >= _BUILD_FROM and 4 * len(rows) >= len(self._registry.names):
            taken, refused = await self.build(rows, also)
            return len(taken), refused
        refused, anew = [], []
        for begin in range(0, len(rows), _TOGETHER):
            some = rows[begin : begin + _TOGETHER]
            bad, wider = await self._workers.between(partial(self._put_some, some))
            refused += bad
            anew += wider
        if anew:
            refused += (await self.build(anew))[1]
        if also:
            await self._workers.write(*also)
        self.save_soon()
        return len(rows) - len(refused), sorted(refused)

    def _put_some(
        self, rows: Rows
    ) -> tuple[list[Write], tuple[list[RefusedLine], list[tuple[int, str, SubscriptionBody]]]]:
        """Have some subscriptions, in the matcher's thread; returns refused ones, and wider ones."""
        writes: list[Write] = []
        refused, wider = [], []
        for line, identity, body in rows:
            try:
                change = self._checked(identity, body)
                if not self.index.fits(change):
                    wider.append((line, identity, body))
                    continue
                writes += self._put(change, body, None, create=False)[0]
            except HeadgateError as error:
                refused.append(RefusedLine(line, identity, str(error)))
        return writes, (refused, wider)

    async def remove(self, identity: str, *, expected: int | None = None, also: Sequence[Write] = ()) -> None:
        """Have no subscription of an id."""

        def run() -> tuple[list[Write], None]:
            existing(self._registry.revisions.get(identity), f"subscription {identity!r}")
            self._registry.check_revision(identity, expected, create=False)
            return self.take_out(identity), None

        await self._workers.between(run, also)
        self.save_soon()

    def take_out(self, identity: str) -> list[Write]:
        """Take a subscription out of the index, in the matcher's thread, and say what must be written."""
        if identity in self.index:
            self.apply(Unsubscribe(identity))
        return self._registry.remove(identity)


def _subject(change: Change) -> Id | None:
    match change:
        case Put(_, wanted):
            return wanted.id
        case Unsubscribe(identity):
            return identity
    return None
