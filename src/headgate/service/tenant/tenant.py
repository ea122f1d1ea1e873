"""A tenant: its subscriptions, consumers and index, the threads that match and write, and the store behind.

Workers     threads, and the way to them
Registry    subscriptions by number, their revisions, limits and ends; Consumers likewise
Building    the index, how it changes and is built anew; subscriptions that come and go
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from headgate.errors import HeadgateError
from headgate.runtime.operations import Unsubscribe
from headgate.service.metrics import TenantCounts
from headgate.service.problems import Conflict
from headgate.service.settings import Quotas
from headgate.service.storage.store import Store
from headgate.service.tenant.building import Building
from headgate.service.tenant.contents import Contents
from headgate.service.tenant.index import open_index
from headgate.service.tenant.limits import digests_of
from headgate.service.tenant.matcher import Publish, Published, Tell
from headgate.service.tenant.names import MatchCounts, Matches
from headgate.service.tenant.registry import Consumers, Registry, Revisions
from headgate.service.tenant.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from headgate.core.event import Event
    from headgate.service.resources import ConsumerBody
    from headgate.service.storage.consumers import StoredConsumer
    from headgate.service.storage.log import Block, Write
    from headgate.service.tenant.index import Index
    from headgate.service.tenant.matcher import Told
    from headgate.service.tenant.names import Names

_LOG = logging.getLogger("headgate.service")
_LOOK = 0.25
"""Seconds between looks at what is due."""
NO_QUOTAS = Quotas()


class Tenant:
    """One tenant, open."""

    def __init__(
        self, name: str, store: Store, loop: asyncio.AbstractEventLoop, quotas: Quotas = NO_QUOTAS
    ) -> None:
        self.name = name
        self.store = store
        self.committed: Callable[[Block], None] = lambda _: None
        """Is told of each block that is on disk, on the event loop."""
        self.changed: Callable[[str], None] = lambda _: None
        """Is told the id of each consumer that came, changed or went, on the event loop."""
        self.waiting = 0
        """Bytes of events that are not on disk yet."""
        self.counters = TenantCounts()
        self.counts = MatchCounts()
        self._loop = loop
        self._timers: asyncio.Task[None] | None = None
        index = open_index(store, quotas)
        revisions = Revisions(store)
        self._consumers = Consumers(
            store,
            revisions,
            lambda: self._workers.taken,
            lambda each: loop.call_soon_threadsafe(lambda: self.changed(each)),
        )
        self.registry = Registry(store, self._consumers, revisions, quotas)
        self._workers = Workers(store.log, loop, self, self._note)
        self._building = Building(store, self.registry, self._workers, index, loop)
        # What others ask of a tenant, and the one that does it.
        self.ask, self.between, self.write = self._workers.match, self._workers.between, self._workers.write
        building = self._building
        self.put, self.import_, self.remove = building.put, building.import_, building.remove
        self.change, self.rebuild, self.rank = building.change, building.rebuild, building.rank
        self.save, self.consumer = building.save, self._consumers.find

    @classmethod
    async def open(cls, name: str, place: Path, quotas: Quotas = NO_QUOTAS, *, forced: bool = True) -> Tenant:
        """Open what is kept in a directory, or begin there; `forced` has each write on disk at once."""
        loop = asyncio.get_running_loop()
        tenant = await asyncio.to_thread(lambda: cls(name, Store(place, forced=forced), loop, quotas))
        tenant.start()
        return tenant

    def start(self) -> None:
        """Begin to do what time asks for."""
        self._timers = self._loop.create_task(self._run_timers())

    async def _run_timers(self) -> None:
        """Do what is due, until this is cancelled."""
        while True:
            await asyncio.sleep(_LOOK)
            try:
                end = self.registry.next_end
                if end is not None and end <= time.time_ns() // 1_000:
                    await self.end_due()
                if self.registry.limits.digests:
                    await self.tell_due()
            except HeadgateError as error:
                _LOG.error("tenant %s: what is due could not be done: %s", self.name, error)
                await asyncio.sleep(5)

    async def close(self) -> None:
        """Finish what waits, write a snapshot if there are changes, and close."""
        if self._timers is not None:
            self._timers.cancel()
        self._building.cancel()
        await self._workers.close()
        await self._building.close()
        self.store.close()

    # What is here

    @property
    def index(self) -> Index:
        """Return the index of this moment."""
        return self._building.index

    @property
    def names(self) -> Names:
        """Return the ids and numbers of subscriptions."""
        return self.registry.names

    @property
    def position(self) -> int:
        """Return the position of the last event that is on disk."""
        return self._workers.position

    # Events

    async def publish(
        self,
        events: Sequence[Event],
        texts: Sequence[bytes],
        *,
        atomic: bool = True,
        also: Callable[[Published], list[Write]] | None = None,
        named: bool = False,
    ) -> Published:
        """Match events and keep them; returns when they are on disk, with what else is written with them.

        The answer names those who matched if that is wanted.
        """
        size = sum(map(len, texts))
        self.waiting += size
        try:
            published: Published = await self._workers.ask(
                lambda reply: Publish(events, texts, reply, atomic, also, named)
            )
        finally:
            self.waiting -= size
        return published

    async def tell_due(self) -> int:
        """Publish the digests that are due; returns how many there are."""
        count: int = await self._workers.ask(lambda reply: Tell(self._digests, reply))
        return count

    def _digests(self, now: int) -> tuple[list[Told], list[Write]]:
        due, writes = self.registry.limits.due(now)
        return digests_of(due, self.names.ids_of), writes

    def _note(self, block: Block) -> None:
        self.counters.committed(block)
        self.counts.note(block)
        self.committed(block)

    # What the matcher asks, in its thread

    def match(self, events: Sequence[Event]) -> Matches:
        """Find the subscriptions that get each event, or why it is refused."""
        end = self.registry.next_end
        if end is not None and end <= time.time_ns() // 1_000:
            self._end_due()
        return self.index.match_numbers(events, self.names)

    def hold(self, now: int, matches: Matches) -> tuple[Matches, Matches | None, list[Write]]:
        """Take out of matches what limits hold back."""
        lists = matches.lists()
        held, writes = self.registry.limits.hold(now, lists)
        return (matches, None, writes) if held is None else (Matches.of(lists), Matches.of(held), writes)

    def recover(self) -> None:
        """Open the index again from what is stored."""
        _LOG.warning("tenant %s: a change could not be written, the index is opened again", self.name)
        self._building.reopen()
        self._consumers.read()
        self.registry.read()

    def _end_due(self) -> None:
        """Take subscriptions whose time is over out of the index; they stay stored, and can be renewed."""
        for identity in self.registry.ended():
            if identity in self.index:
                self._building.apply(Unsubscribe(identity))

    async def end_due(self) -> None:
        """Take subscriptions whose time is over out of the index."""

        def run() -> tuple[list[Write], None]:
            self._end_due()
            return [], None

        await self.between(run)

    # Quotas

    async def requote(self, quotas: Quotas, writes: Sequence[Write]) -> None:
        """Have other quotas."""
        before, self.registry.quotas = self.registry.quotas, quotas
        try:
            if quotas.unindexed == before.unindexed:
                await self.write(*writes)
            else:
                await self.rebuild(lambda contents: contents, writes)
        except HeadgateError:
            self.registry.quotas = before
            raise

    # Snapshots

    def contents(self, ids: Iterable[str] | None = None) -> Contents:
        """Return what the index is built of; of some subscriptions alone if their ids are given."""
        return Contents.stored(self.store, self.registry.quotas, ids)

    # Consumers

    async def put_consumer(
        self,
        identity: str,
        make: Callable[[StoredConsumer | None], ConsumerBody],
        *,
        expected: int | None = None,
        also: Sequence[Write] = (),
    ) -> tuple[StoredConsumer, bool]:
        """Have a consumer, made of what there is; `expected` is the revision that it must have.

        Returns it, and whether it is new. What is to be written `also` is, with it or not at all.
        """
        put = partial(self._consumers.put, identity, make, expected)
        answer: tuple[StoredConsumer, bool] = await self.between(put, also)
        return answer

    async def remove_consumer(
        self,
        identity: str,
        *,
        expected: int | None = None,
        subscriptions: bool = False,
        also: Sequence[Write] = (),
    ) -> None:
        """Have no consumer of an id; one with subscriptions goes only together with them."""

        def run() -> tuple[list[Write], None]:
            consumer = self._consumers.check_there(identity, expected)
            owned = self.names.owned(consumer.number)
            if owned and not subscriptions:
                raise Conflict(
                    f"consumer {identity!r} has {len(owned):,} subscriptions: delete these first, or "
                    "all together with "
                    "?subscriptions=delete"
                )
            writes = [write for each in owned for write in self._building.take_out(each)]
            return [*writes, *self._consumers.remove(identity)], None

        await self.between(run, also)
        self._building.save_soon()
