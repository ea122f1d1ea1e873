"""A tenant: the index of its subscriptions, the threads that match and write, and the store behind them.

    publish, put, remove ──► matcher's thread ──► writer's thread ──► answer, and what listens is told

Coroutines are called on the service's event loop. Threads hand results to it once for each group commit.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from headgate.core.event import JSON
from headgate.errors import HeadgateError, SubscriptionError
from headgate.runtime.operations import UPSERT, Put, Unsubscribe
from headgate.service.metrics import TenantCounts
from headgate.service.problems import Conflict, Forbidden, NotFound
from headgate.service.resources import DEFAULT, ConsumerBody, SubscriptionBody
from headgate.service.security.signature import new_secret
from headgate.service.settings import Quotas
from headgate.service.storage import consumers as stored_consumers
from headgate.service.storage import subscriptions as stored_subscriptions
from headgate.service.storage.consumers import StoredConsumer
from headgate.service.storage.graph import edge_of, node_of
from headgate.service.storage.store import Store, built, demand_build, keep
from headgate.service.storage.subscriptions import Stored
from headgate.service.storage.writer import Entry, Writer
from headgate.service.tenant.asker import Asker
from headgate.service.tenant.edits import changed, read_taxonomy
from headgate.service.tenant.index import Contents
from headgate.service.tenant.indexes import Indexes
from headgate.service.tenant.limits import Limits
from headgate.service.tenant.matcher import Job, Matcher, Matching, Publish, Published, Tell
from headgate.service.tenant.matches import Matches
from headgate.service.tenant.names import Names
from headgate.service.tenant.statistics import MatchCounts
from headgate.service.tenant.timers import digests_of, run_timers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from headgate.core.event import Event, Id
    from headgate.core.subscription import Subscription
    from headgate.errors import EventError
    from headgate.runtime.operations import Change
    from headgate.service.storage.block import Block
    from headgate.service.storage.log import Write
    from headgate.service.tenant.matcher import Told

_LOG = logging.getLogger("headgate.service")
NO_QUOTAS = Quotas()
_SAVE_AFTER = 10_000
"""Changes after which a snapshot is written."""
_SAVE_LATER = 5.0
"""Seconds after a change of the graph until a snapshot is written."""
_TOGETHER = 200
"""Subscriptions of an import that are taken between events."""
_BUILD_FROM = 2_000
"""Subscriptions that come together from which the index is built again rather than changed."""
_RANKED = "ranked"
"""What is kept once somebody asked for the best by what holds of filters."""


class Refused(NamedTuple):
    """A subscription of an import that was refused.

    Its line, counted from 1, its id if it has one, and why.
    """

    line: int
    id: str | None
    reason: str


class Tenant(Matching):
    """One tenant, open."""

    def __init__(
        self, name: str, store: Store, loop: asyncio.AbstractEventLoop, quotas: Quotas = NO_QUOTAS
    ) -> None:
        self.name = name
        self.store = store
        self.names = Names()
        self.limits = Limits()
        self.revisions: dict[str, int] = {}
        """The revision of each subscription."""
        self.committed: Callable[[Block], None] = lambda _: None
        """Is told of each block that is on disk, on the event loop."""
        self.changed: Callable[[str], None] = lambda _: None
        """Is told the id of each consumer that came, changed or went, on the event loop."""
        self.waiting = 0
        """Bytes of events that are not on disk yet."""
        self.counters = TenantCounts()
        self.counts = MatchCounts()
        self.quotas = quotas
        self._loop = loop
        self._building = asyncio.Lock()
        self._since: list[Change] | None = None
        self._ends: list[tuple[int, str, int]] = []
        self.expiries: dict[str, int] = {}
        """When subscriptions end, in microseconds; of those that do."""
        self._timers: asyncio.Task[None] | None = None
        self._saving: asyncio.Task[None] | None = None
        self._consumers = {each.id: each for each in store.consumers.all()}
        self.names.consumers.update({each.id: each.number for each in self._consumers.values()})
        self._numbers = max((each.number for each in self._consumers.values()), default=0)
        self._next = store.subscriptions.next_number()
        self._revision = int(store.setting("revision") or 0)  # type: ignore[call-overload]
        self._saved_at = store.subscriptions.position()
        self.index = self._open_index()
        self._read_names()
        self.writer = Writer(store.log, name)
        bounds = store.log.bounds()
        self.matcher = Matcher(self, self.writer, bounds.last, self._settle, name)
        self.asker = Asker(self._match_now, loop, name)
        self.position = bounds.last
        """The position of the last event that is on disk."""

    @classmethod
    async def open(cls, name: str, place: Path, quotas: Quotas = NO_QUOTAS, *, forced: bool = True) -> Tenant:
        """Open what is kept in a directory, or begin there; `forced` has each write on disk at once."""
        loop = asyncio.get_running_loop()
        found = await asyncio.to_thread(lambda: cls(name, Store(place, forced=forced), loop, quotas))
        found.start()
        return found

    def start(self) -> None:
        """Begin to do what time asks for."""
        self._timers = self._loop.create_task(run_timers(self))

    def _open_index(self) -> Indexes:
        store = self.store
        graph = bool(store.graph.nodes(most=1))
        opened = None if store.must_build else Indexes.open(store.index, graph=graph)
        if opened is None:
            return Indexes.build(self._contents())
        index, position = opened
        changes = store.subscriptions.changes(position)
        try:
            if all(index.needs(change) == index.shape for change in changes):
                index.repeat(changes)
                return index
        except HeadgateError as error:
            _LOG.warning("changes since the snapshot cannot be applied, the index is built again: %s", error)
        return Indexes.build(self._contents())

    def _contents(self, more: Sequence[Stored] = ()) -> Contents:
        now = time.time_ns() // 1_000
        replaced = {each.id for each in more}
        kept = (each for each in self.store.subscriptions.all() if each.id not in replaced)
        found = [each.indexed for each in (*kept, *more) if each.expires is None or each.expires > now]
        return self._with_graph(found)

    def contents(self, ids: Iterable[str] | None = None) -> Contents:
        """Return what the index is built of; of some subscriptions alone if their ids are given."""
        if ids is None:
            return self._contents()
        now = time.time_ns() // 1_000
        stored = [each for each in map(self.store.subscriptions.get, ids) if each is not None]
        return self._with_graph([each.indexed for each in stored if (each.expires or now + 1) > now])

    def _with_graph(self, found: list[Subscription]) -> Contents:
        graph = self.store.graph
        nodes, edges = [node_of(each) for each in graph.nodes()], [edge_of(each) for each in graph.edges()]
        ranked = bool(self.store.setting(_RANKED))
        return Contents(found, nodes, edges, self._settings(graph.taxonomy()), ranked)

    def _settings(self, taxonomy: str | None) -> dict[str, Any]:
        """Return what filters are read with."""
        found: dict[str, Any] = {"unindexed": "allow"} if self.quotas.unindexed else {}
        if taxonomy is not None:
            found["taxonomy"] = read_taxonomy(taxonomy)
        return found

    def _read_names(self) -> None:
        limits = self.store.limits()
        for number, identity, consumer, end in self.store.subscriptions.names():
            self.names.add(number, identity, consumer)
            if end is not None:
                self.expiries[identity] = end
                heapq.heappush(self._ends, (end, identity, number))
        revisions = self.store.database.rows("SELECT id, revision FROM subscriptions")
        self.revisions.update(dict(revisions))
        for number, *period in limits:
            stored = self.store.subscriptions.by_number(number)
            if stored is not None and stored.said.limit is not None:
                self.limits.read(number, stored.said.limit, *period)

    async def close(self) -> None:
        """Finish what waits, write a snapshot if there are changes, and close."""
        for task in (self._timers, self._saving):
            if task is not None:
                task.cancel()
        await asyncio.to_thread(self.asker.close)
        await asyncio.to_thread(self.matcher.close)
        await asyncio.to_thread(self.writer.close)
        position = self.store.subscriptions.position()
        if position != self._saved_at or self.store.must_build:
            await asyncio.to_thread(self.index.save, self.store.index, position)
            await asyncio.to_thread(
                self.store.log.append, [], [stored_subscriptions.contained(position), built()]
            )
        self.store.close()

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
            found: Published = await self._ask(
                lambda reply: Publish(events, texts, reply, atomic, also, named)
            )
        finally:
            self.waiting -= size
        return found

    async def tell_due(self) -> int:
        """Publish the digests that are due; returns how many there are."""
        found: int = await self._ask(lambda reply: Tell(self._digests, reply))
        return found

    def _digests(self, now: int) -> tuple[list[Told], list[Write]]:
        due, writes = self.limits.due(now)
        return digests_of(due, self.names.ids_of), writes

    async def ask(self, events: Sequence[Event]) -> list[list[Id] | EventError]:
        """List for each event the subscriptions that get it, or why it is refused; nothing is kept."""
        if all(event.content_type == JSON for event in events):
            return await self.asker.ask(events)
        # Documents may take long, and others need not wait for them.
        return await asyncio.to_thread(self._match_now, events)

    def _match_now(self, events: Sequence[Event]) -> list[list[Id] | EventError]:
        return self.index.match(events)

    async def _ask(self, make: Callable[[Callable[[Any], None]], Publish | Job | Tell]) -> Any:
        future: asyncio.Future[Any] = self._loop.create_future()

        def reply(answer: Any) -> None:
            if future.done():
                return
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)

        self.matcher.submit(make(reply))
        return await future

    async def between(self, run: Callable[[], tuple[list[Write], Any]]) -> Any:
        """Do something between events; returns its answer when what it writes is on disk."""
        return await self._ask(lambda reply: Job(run, reply))

    async def write(self, *writes: Write) -> None:
        """Write something that matching does not know of; returns when it is on disk."""
        future: asyncio.Future[None] = self._loop.create_future()

        def settle(error: HeadgateError | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        def done(error: HeadgateError | None) -> None:
            self._loop.call_soon_threadsafe(settle, error)

        self.writer.submit(Entry(None, list(writes), done))
        await future

    def _settle(self, replies: list[tuple[Callable[[Any], None], Any]], block: Block | None) -> None:
        def told() -> None:
            if block is not None:
                self.position = block.last
                self.counters.committed(block)
                self.counts.note(block)
                self.committed(block)
            for reply, answer in replies:
                reply(answer)

        self._loop.call_soon_threadsafe(told)

    # What the matcher asks, in its thread

    def match(self, events: Sequence[Event]) -> Matches:
        """Find the subscriptions that get each event, or why it is refused."""
        if self._ends and self._ends[0][0] <= time.time_ns() // 1_000:
            self._end_due()
        return self.index.match_numbers(events, self.names)

    def ids_of(self, numbers: Sequence[int]) -> list[str]:
        """Return the ids of subscriptions."""
        return self.names.ids_of(numbers)

    @property
    def holds(self) -> bool:
        """Tell whether there are limits that may hold matches back."""
        return bool(self.limits)

    def hold(self, now: int, found: Matches) -> tuple[Matches, Matches | None, list[Write]]:
        """Take out of matches what limits hold back."""
        lists = found.lists()
        held, writes = self.limits.hold(now, lists)
        return (found, None, writes) if held is None else (Matches.of(lists), Matches.of(held), writes)

    def recover(self) -> None:
        """Open the index again from what is stored."""
        _LOG.warning("tenant %s: a change could not be written, the index is opened again", self.name)
        self.names = Names()
        self._consumers = {each.id: each for each in self.store.consumers.all()}
        self.names.consumers.update({each.id: each.number for each in self._consumers.values()})
        self.limits = Limits()
        self.revisions.clear()
        self.expiries.clear()
        self._ends.clear()
        self.index = self._open_index()
        self._read_names()

    def _end_due(self) -> None:
        """Take subscriptions whose time is over out of the index; they stay stored, and can be renewed."""
        now = time.time_ns() // 1_000
        while self._ends and self._ends[0][0] <= now:
            _, identity, number = heapq.heappop(self._ends)
            if self.names.numbers.get(identity) != number or self.expiries.get(identity, now + 1) > now:
                continue
            if identity in self.index:
                self._apply(Unsubscribe(identity))

    @property
    def next_end(self) -> int | None:
        """Return when the next subscription ends."""
        return self._ends[0][0] if self._ends else None

    async def end_due(self) -> None:
        """Take subscriptions whose time is over out of the index."""

        def run() -> tuple[list[Write], None]:
            self._end_due()
            return [], None

        await self.between(run)

    # Subscriptions

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
        said.check()
        self._check_filter(said)
        wanted = said.subscription(identity)
        expires = None if said.expires is None else int(said.expires.timestamp() * 1e6)
        consumer = self._consumer_for(identity, said)
        change = Put(UPSERT, wanted)
        if self.index.needs(change) != self.index.shape:
            return await self._put_anew(identity, said, expected, create=create, also=also)

        def run() -> tuple[list[Write], tuple[Stored, bool]]:
            writes, answer = self._put(change, said, consumer, expires, expected, create=create)
            return [*writes, *also], answer

        found: tuple[Stored, bool] = await self.between(run)
        self._save_soon()
        return found

    def _put(
        self,
        change: Put,
        said: SubscriptionBody,
        consumer: ConsumerBody,
        expires: int | None,
        expected: int | None,
        *,
        create: bool,
    ) -> tuple[list[Write], tuple[Stored, bool]]:
        """Change the index, in the matcher's thread, and say what must be written."""
        identity = str(change.subscription.id)
        self._check_revision(identity, expected, create=create)
        self._check_count(identity)
        if expires is None or expires > time.time_ns() // 1_000:
            self._apply(change)
        writes, stored, new = self._name(identity, said, consumer, expires)
        return [*writes, stored_subscriptions.put(stored, change.subscription)], (stored, new)

    def _check_filter(self, said: SubscriptionBody) -> None:
        most, text = self.quotas.filter_length, said.subscription("").filter
        if most is not None and len(text) > most:
            raise Forbidden(f"the filter has {len(text):,} characters, and the quota is {most:,}: shorten it")

    def _check_count(self, identity: str, more: int = 0) -> None:
        most = self.quotas.subscriptions
        if most is not None and identity not in self.revisions and len(self.revisions) + more >= most:
            raise Forbidden(
                f"there are {len(self.revisions) + more:,} subscriptions, and the quota is {most:,}: delete "
                "some first"
            )

    def _check_revision(self, identity: str, expected: int | None, *, create: bool) -> None:
        found = self.revisions.get(identity, 0)
        if create and found:
            raise Conflict(
                f"subscription {identity!r} is there already: replace it with PUT, or choose another id"
            )
        if expected is not None and expected != found:
            now = f"it has revision {found} now" if found else "there is none"
            raise Conflict(f"subscription {identity!r} is not as you know it: {now}; read it again", 412)

    def _name(
        self, identity: str, said: SubscriptionBody, consumer: ConsumerBody, expires: int | None
    ) -> tuple[list[Write], Stored, bool]:
        """Give a subscription its number, revision and consumer."""
        writes = self._have_consumer(consumer)
        owner = str(consumer.id)
        number = self.names.numbers.get(identity)
        before = -1 if number is None else number
        new = identity not in self.revisions
        if (
            number is None
            or int(self.names.owners(np.array([number], np.uint32))[0]) != self.names.consumers[owner]
        ):
            number, self._next = self._next, self._next + 1
        self._revision += 1
        revision = self.revisions[identity] = self._revision
        self.names.add(number, identity, owner)
        if new or before == number:
            limited = self.limits.set(number, said.limit)
        else:
            limited = [*self.limits.set(before, None), *self.limits.set(number, said.limit)]
        self.expiries.pop(identity, None)
        if expires is not None:
            self.expiries[identity] = expires
            heapq.heappush(self._ends, (expires, identity, number))
        stored = Stored(number, identity, owner, revision, expires, msgspec.json.encode(said))
        return [*writes, *limited, _keep_revision(revision)], stored, new

    def _apply(self, change: Change) -> None:
        self.index.apply(change)
        if self._since is not None:
            self._since.append(change)

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
            self._check_revision(identity, expected, create=create)
            new = identity not in self.revisions

        def before() -> tuple[list[Write], None]:
            check()
            return [], None

        # Before the work, and again when it is done: another request may have come first.
        await self.between(before)
        rows, refused = await self._build([(1, identity, said)], also, check)
        if refused:
            raise SubscriptionError(refused[0].reason)
        if not rows:
            raise Conflict(
                f"subscription {identity!r} was changed by another request meanwhile: read it again"
            )
        return rows[0], new

    async def import_(
        self, rows: Sequence[tuple[int, str, SubscriptionBody]], also: Sequence[Write] = ()
    ) -> tuple[int, list[Refused]]:
        """Have many subscriptions, given with their lines; returns how many were taken, and what was not."""
        if len(rows) >= _BUILD_FROM and 4 * len(rows) >= len(self.names):
            taken, refused = await self._build(rows, also)
            return len(taken), refused
        refused, anew = [], []
        for begin in range(0, len(rows), _TOGETHER):
            some = rows[begin : begin + _TOGETHER]
            bad, wider = await self.between(partial(self._put_some, some))
            refused += bad
            anew += wider
        if anew:
            refused += (await self._build(anew))[1]
        if also:
            await self.write(*also)
        self._save_soon()
        return len(rows) - len(refused), sorted(refused)

    def _put_some(
        self, rows: Sequence[tuple[int, str, SubscriptionBody]]
    ) -> tuple[list[Write], tuple[list[Refused], list[tuple[int, str, SubscriptionBody]]]]:
        """Have some subscriptions, in the matcher's thread; returns refused ones, and wider ones."""
        writes: list[Write] = []
        refused, wider = [], []
        for line, identity, said in rows:
            try:
                said.check()
                self._check_filter(said)
                change = Put(UPSERT, said.subscription(identity))
                if self.index.needs(change) != self.index.shape:
                    wider.append((line, identity, said))
                    continue
                expires = None if said.expires is None else int(said.expires.timestamp() * 1e6)
                consumer = self._consumer_for(identity, said)
                writes += self._put(change, said, consumer, expires, None, create=False)[0]
            except HeadgateError as error:
                refused.append(Refused(line, identity, str(error)))
        return writes, (refused, wider)

    async def _build(
        self,
        rows: Sequence[tuple[int, str, SubscriptionBody]],
        also: Sequence[Write] = (),
        check: Callable[[], None] = lambda: None,
    ) -> tuple[list[Stored], list[Refused]]:
        """Build the index anew with more subscriptions, while events are matched with the old one.

        `check` is called in the matcher's thread before the new one is taken, and may refuse it.
        """
        async with self._building:
            # What was changed before is stored when this is answered; what is changed from then on is noted.
            await self.between(self._begin_noting)
            try:
                good, refused, index = await asyncio.to_thread(self._built, rows)
                taken = await self.between(lambda: self._swap(index, good, also, check))
            finally:
                self._since = None
            await self._save()
        found: list[Stored] = taken
        return found, refused

    def _begin_noting(self) -> tuple[list[Write], None]:
        self._since = []
        return [demand_build()], None

    def _built(
        self, rows: Sequence[tuple[int, str, SubscriptionBody]]
    ) -> tuple[list[tuple[str, SubscriptionBody]], list[Refused], Indexes]:
        """Index what is stored and more, in a thread of its own."""
        last: dict[str, tuple[int, SubscriptionBody, Subscription]] = {}
        refused: list[Refused] = []
        fresh_ones = 0
        for line, identity, said in rows:
            try:
                said.check()
                self._check_filter(said)
                self._check_count(identity, fresh_ones)
                fresh_ones += identity not in last and identity not in self.revisions
                last[identity] = line, said, said.subscription(identity)
            except HeadgateError as error:
                refused.append(Refused(line, identity, str(error)))
        contents = self._contents()
        now = time.time()
        kept = [each for each in contents.subscriptions if each.id not in last]
        fresh = [
            wanted
            for _, said, wanted in last.values()
            if said.expires is None or said.expires.timestamp() > now
        ]
        index, bad = Indexes.collect(contents._replace(subscriptions=[*kept, *fresh]))
        for refused_id, reason in bad.items():
            if refused_id in last:
                line, *_ = last.pop(str(refused_id))
                refused.append(Refused(line, str(refused_id), reason))
        good = [(identity, said) for identity, (_, said, _) in last.items()]
        return good, sorted(refused), index

    def _swap(
        self,
        index: Indexes,
        good: list[tuple[str, SubscriptionBody]],
        also: Sequence[Write] = (),
        check: Callable[[], None] = lambda: None,
    ) -> tuple[list[Write], list[Stored]]:
        """Put another index in the place of this one, in the matcher's thread."""
        check()
        fresh = {identity for identity, _ in good}
        # What was changed meanwhile came later than what was imported.
        changed = {_subject(change) for change in self._since or ()}
        index.repeat(self._since or ())
        self.index = index
        self._since = None
        writes: list[Write] = []
        rows = []
        for identity, said in good:
            if identity in changed and identity in fresh:
                continue
            expires = None if said.expires is None else int(said.expires.timestamp() * 1e6)
            more, stored, _ = self._name(identity, said, self._consumer_for(identity, said), expires)
            writes += more[:-1]
            rows.append(stored)
        many = stored_subscriptions.put_many(rows)
        return [*writes, _keep_revision(self._revision), many, *also], rows

    async def remove(self, identity: str, *, expected: int | None = None, also: Sequence[Write] = ()) -> None:
        """Have no subscription of an id."""

        def run() -> tuple[list[Write], None]:
            if identity not in self.revisions:
                raise NotFound(f"there is no subscription {identity!r}")
            self._check_revision(identity, expected, create=False)
            return [*self._remove(identity), *also], None

        await self.between(run)
        self._save_soon()

    def _remove(self, identity: str) -> list[Write]:
        """Take a subscription out of the index, in the matcher's thread, and say what must be written."""
        if identity in self.index:
            self._apply(Unsubscribe(identity))
        number = self.names.numbers[identity]
        self.names.remove(identity)
        limited = self.limits.set(number, None)
        self.expiries.pop(identity, None)
        del self.revisions[identity]
        return [stored_subscriptions.remove(identity), *limited]

    # The graph, the taxonomy, and what filters may be

    async def change(self, change: Change, writes: Sequence[Write]) -> None:
        """Change the graph, where its shape allows, or build it anew with what is written."""
        async with self._building:
            if self.index.needs(change) == self.index.shape:

                def run() -> tuple[list[Write], None]:
                    self.index.apply(change)
                    # No change of the log tells of it: without a snapshot the index is built again.
                    return [*writes, demand_build()], None

                await self.between(run)
                if self._saving is None or self._saving.done():
                    self._saving = self._loop.create_task(self._save_later())
                    self._saving.add_done_callback(_tell_failure)
                return
            await self._rebuild(lambda contents: changed(contents, change), writes)

    async def rebuild(self, edit: Callable[[Contents], Contents], writes: Sequence[Write]) -> None:
        """Build the index again, of what is stored and edited; refuses what does not fit."""
        async with self._building:
            await self._rebuild(edit, writes)

    async def _rebuild(self, edit: Callable[[Contents], Contents], writes: Sequence[Write]) -> None:
        await self.between(self._begin_noting)
        try:
            index = await asyncio.to_thread(lambda: Indexes.build(edit(self._contents())))
            await self.between(lambda: self._swap(index, [], writes))
        finally:
            self._since = None
        await self._save()

    async def rank(self) -> None:
        """Have clauses indexed from now on, which is needed to rank by what holds of filters."""
        if self.index.ranked:
            return
        async with self._building:
            if not self.index.ranked:
                await self._rebuild(lambda contents: contents._replace(ranked=True), [keep(_RANKED, 1)])

    async def requote(self, quotas: Quotas, writes: Sequence[Write]) -> None:
        """Have other quotas."""
        before, self.quotas = self.quotas, quotas
        try:
            if quotas.unindexed == before.unindexed:
                await self.write(*writes)
            else:
                await self.rebuild(lambda contents: contents, writes)
        except HeadgateError:
            self.quotas = before
            raise

    async def _save_later(self) -> None:
        await asyncio.sleep(_SAVE_LATER)
        await self.save()

    # Snapshots

    def index_places(self) -> list[Path]:
        """List where snapshots of the index are."""
        return self.index.places(self.store.index)

    def _save_soon(self) -> None:
        if not self._building.locked() and self.store.subscriptions.position() - self._saved_at > _SAVE_AFTER:
            task = self._loop.create_task(self.save())
            task.add_done_callback(_tell_failure)

    async def save(self) -> None:
        """Write a snapshot of the index, when nothing else builds one."""
        async with self._building:
            await self._save()

    async def _save(self) -> None:
        """Write a snapshot of the index, while it is used."""
        # The index has at least what is on disk: changes are applied before they are written.
        position = self.store.subscriptions.position()
        await asyncio.to_thread(self.index.save, self.store.index, position)
        self._saved_at = position
        await self.write(stored_subscriptions.contained(position), built())

    # Consumers

    def _consumer_for(self, identity: str, said: SubscriptionBody) -> ConsumerBody:
        """Return the consumer that a subscription belongs to."""
        if said.sink is not None:
            if said.consumer is not None:
                raise SubscriptionError(
                    "there are both `sink` and `consumer`: a sink is a consumer of its own"
                )
            return ConsumerBody(id=f"sink:{identity}", url=said.sink)
        return ConsumerBody(id=said.consumer or DEFAULT)

    def _have_consumer(self, wanted: ConsumerBody) -> list[Write]:
        """Make a consumer that is not there yet; it begins with the next event."""
        identity = str(wanted.id)
        found = self._consumers.get(identity)
        if found is not None and (wanted.url is None or found.said.url == wanted.url):
            return []
        stored = self._numbered(identity, wanted, found)
        return self._keep_consumer(stored)

    def consumer(self, identity: str) -> StoredConsumer | None:
        """Find a consumer; its cursor is where it began, and delivery knows how far it came since."""
        return self._consumers.get(identity)

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

        def run() -> tuple[list[Write], tuple[StoredConsumer, bool]]:
            found = self._consumers.get(identity)
            self._check_consumer(identity, found, expected)
            stored = self._numbered(identity, make(found), found)
            writes = self._keep_consumer(stored)
            return [*writes, _keep_revision(self._revision), *also], (stored, found is None)

        answer: tuple[StoredConsumer, bool] = await self.between(run)
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
            found = self._consumers.get(identity)
            if found is None:
                raise NotFound(f"there is no consumer {identity!r}")
            self._check_consumer(identity, found, expected)
            owned = self.names.owned(found.number)
            if owned and not subscriptions:
                raise Conflict(
                    f"consumer {identity!r} has {len(owned):,} subscriptions: delete these first, or "
                    "all together with "
                    "?subscriptions=delete"
                )
            writes = [write for each in owned for write in self._remove(each)]
            del self._consumers[identity]
            self.names.consumers.pop(identity, None)
            self._loop.call_soon_threadsafe(self._tell_changed, identity)
            return [*writes, stored_consumers.remove(identity), *also], None

        await self.between(run)
        self._save_soon()

    def _check_consumer(self, identity: str, found: StoredConsumer | None, expected: int | None) -> None:
        revision = 0 if found is None else found.revision
        if expected is not None and expected != revision:
            now = f"it has revision {revision} now" if revision else "there is none"
            raise Conflict(f"consumer {identity!r} is not as you know it: {now}; read it again", 412)

    def _keep_consumer(self, stored: StoredConsumer) -> list[Write]:
        self._consumers[stored.id] = stored
        self.names.consumers[stored.id] = stored.number
        self._loop.call_soon_threadsafe(self._tell_changed, stored.id)
        return [stored_consumers.put(stored)]

    def _tell_changed(self, identity: str) -> None:
        self.changed(identity)

    def _numbered(self, identity: str, said: ConsumerBody, found: StoredConsumer | None) -> StoredConsumer:
        if said.url is not None and said.secret is None:
            said = msgspec.structs.replace(said, secret=new_secret())
        self._revision += 1
        if found is not None:
            return found._replace(revision=self._revision, body=msgspec.json.encode(said))
        self._numbers += 1
        cursor = self.matcher.position
        return StoredConsumer(identity, self._numbers, self._revision, cursor, msgspec.json.encode(said))


def _subject(change: Change) -> Id | None:
    match change:
        case Put(_, wanted):
            return wanted.id
        case Unsubscribe(identity):
            return identity
    return None


def _keep_revision(revision: int) -> Write:
    return keep("revision", revision)


def _tell_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _LOG.error("the snapshot of the index could not be written: %s", task.exception())
