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
from typing import TYPE_CHECKING, NamedTuple

from headgate.contents.kind import ALLOW, FilterSettings
from headgate.errors import HeadgateError
from headgate.runtime.operations import Put, Unsubscribe
from headgate.service.storage import subscriptions as stored_subscriptions
from headgate.service.storage.graph import edge_of, node_of
from headgate.service.storage.store import built, demand_build, keep
from headgate.service.tenant.consumers import consumer_for
from headgate.service.tenant.contents import Contents
from headgate.service.tenant.edits import changed, read_taxonomy
from headgate.service.tenant.index import Index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headgate.core.event import Id
    from headgate.core.subscription import Subscription
    from headgate.runtime.operations import Change
    from headgate.service.resources import SubscriptionBody
    from headgate.service.settings import Quotas
    from headgate.service.storage.log import Write
    from headgate.service.storage.store import Store
    from headgate.service.storage.subscriptions import Stored
    from headgate.service.tenant.registry import Registry
    from headgate.service.tenant.workers import Workers

    Rows = Sequence[tuple[int, str, SubscriptionBody]]
    """Subscriptions of an import: the line, the id, and what is said."""

_LOG = logging.getLogger("headgate.service")
_SAVE_AFTER = 10_000
"""Changes after which a snapshot is written."""
_SAVE_LATER = 5.0
"""Seconds after a change of the graph until a snapshot is written."""
_RANKED = "ranked"
"""What is kept once somebody asked for the best by what holds of filters."""


class Refused(NamedTuple):
    """A subscription of an import that was refused.

    Its line, counted from 1, its id if it has one, and why.
    """

    line: int
    id: str | None
    reason: str


def contents_of(store: Store, quotas: Quotas, ids: Iterable[str] | None = None) -> Contents:
    """Return all that an index is built of: what is stored and has not ended; some if their ids are given."""
    now = time.time_ns() // 1_000
    rows = store.subscriptions.all() if ids is None else map(store.subscriptions.get, ids)
    found = [each.indexed for each in rows if each is not None and (each.expires or now + 1) > now]
    graph = store.graph
    nodes, edges = [node_of(each) for each in graph.nodes()], [edge_of(each) for each in graph.edges()]
    text = graph.taxonomy()
    settings = FilterSettings(
        taxonomy=None if text is None else read_taxonomy(text), unindexed=ALLOW if quotas.unindexed else None
    )
    return Contents(found, nodes, edges, settings, bool(store.setting(_RANKED)))


def open_index(store: Store, quotas: Quotas) -> Index:
    """Open the snapshot and make the changes since, or build the index again."""
    graph = bool(store.graph.nodes(most=1))
    opened = None if store.must_build else Index.read(store.index, graph=graph)
    if opened is None:
        return Index.build(contents_of(store, quotas))
    index, position = opened
    changes = store.subscriptions.changes(position)
    try:
        if all(index.shape.with_change(change) == index.shape for change in changes):
            index.repeat(changes)
            return index
    except HeadgateError as error:
        _LOG.warning("changes since the snapshot cannot be applied, the index is built again: %s", error)
    return Index.build(contents_of(store, quotas))


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

    def fits(self, change: Change) -> bool:
        """Tell whether the index can make a change as it is; any thread may ask."""
        return self.index.shape.with_change(change) == self.index.shape

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
        for identity, said in good:
            if identity not in changed_since:
                more, stored, _ = self._registry.put(identity, said)
                writes += more
                rows.append(stored)
        return [*writes, self._registry.kept(), stored_subscriptions.put_many(rows), *also], rows

    # Building anew

    async def build(
        self, rows: Rows, also: Sequence[Write] = (), check: Callable[[], None] = lambda: None
    ) -> tuple[list[Stored], list[Refused]]:
        """Build the index anew with more subscriptions, while events are matched with the old one.

        `check` is called in the matcher's thread before the new one is taken, and may refuse it.
        """
        async with self._lock:
            return await self._anew(lambda: self._built(rows), also, check)

    async def _anew(
        self,
        make: Callable[[], tuple[list[tuple[str, SubscriptionBody]], list[Refused], Index]],
        also: Sequence[Write],
        check: Callable[[], None] = lambda: None,
    ) -> tuple[list[Stored], list[Refused]]:
        # What was changed before is stored when this is answered; what is changed from then on is noted.
        await self._workers.between(self._begin_noting)
        try:
            good, refused, index = await asyncio.to_thread(make)
            taken: list[Stored] = await self._workers.between(lambda: self._swap(index, good, also, check))
        finally:
            self._since = None
        await self._save()
        return taken, refused

    def _built(self, rows: Rows) -> tuple[list[tuple[str, SubscriptionBody]], list[Refused], Index]:
        """Index what is stored and more, in a thread of its own."""
        registry = self._registry
        last: dict[str, tuple[int, SubscriptionBody, Subscription]] = {}
        refused: list[Refused] = []
        fresh_ones = 0
        for line, identity, said in rows:
            try:
                said.check()
                registry.check_filter(said)
                consumer_for(identity, said)
                registry.check_count(identity, fresh_ones)
                fresh_ones += identity not in last and identity not in registry.revisions
                last[identity] = line, said, said.subscription(identity)
            except HeadgateError as error:
                refused.append(Refused(line, identity, str(error)))
        contents = contents_of(self._store, registry.quotas)
        now = time.time()
        kept = [each for each in contents.subscriptions if each.id not in last]
        fresh = [
            wanted
            for _, said, wanted in last.values()
            if said.expires is None or said.expires.timestamp() > now
        ]
        index, bad = Index.collect(contents._replace(subscriptions=[*kept, *fresh]))
        for refused_id, reason in bad.items():
            if refused_id in last:
                line, *_ = last.pop(str(refused_id))
                refused.append(Refused(line, str(refused_id), reason))
        good = [(identity, said) for identity, (_, said, _) in last.items()]
        return good, sorted(refused), index

    async def change(self, change: Change, writes: Sequence[Write]) -> None:
        """Change the graph, where its shape allows, or build it anew with what is written."""
        async with self._lock:
            if self.fits(change):

                def run() -> tuple[list[Write], None]:
                    self.index.apply(change)
                    # No change of the log tells of it: without a snapshot the index is built again.
                    return [*writes, demand_build()], None

                await self._workers.between(run)
                if self._saving is None or self._saving.done():
                    self._saving = self._loop.create_task(self._save_later())
                    self._saving.add_done_callback(_tell_failure)
                return
            await self._rebuild(lambda contents: changed(contents, change), writes)

    async def rebuild(self, edit: Callable[[Contents], Contents], writes: Sequence[Write]) -> None:
        """Build the index again, of what is stored and edited; refuses what does not fit."""
        async with self._lock:
            await self._rebuild(edit, writes)

    async def _rebuild(self, edit: Callable[[Contents], Contents], writes: Sequence[Write]) -> None:
        def make() -> tuple[list[tuple[str, SubscriptionBody]], list[Refused], Index]:
            return [], [], Index.build(edit(contents_of(self._store, self._registry.quotas)))

        await self._anew(make, writes)

    async def rank(self) -> None:
        """Have clauses indexed from now on, which is needed to rank by what holds of filters."""
        if self.index.ranked:
            return
        async with self._lock:
            if not self.index.ranked:
                await self._rebuild(lambda contents: contents._replace(ranked=True), [keep(_RANKED, 1)])

    # Snapshots

    def save_soon(self) -> None:
        """Write a snapshot if there were many changes since the last one."""
        if not self._lock.locked() and self._store.subscriptions.position() - self._saved_at > _SAVE_AFTER:
            task = self._loop.create_task(self.save())
            task.add_done_callback(_tell_failure)

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


def _subject(change: Change) -> Id | None:
    match change:
        case Put(_, wanted):
            return wanted.id
        case Unsubscribe(identity):
            return identity
    return None


def _tell_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _LOG.error("the snapshot of the index could not be written: %s", task.exception())
