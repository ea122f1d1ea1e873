"""The hub: hands what each commit has to the feeds of those it is for.

A block is split by consumer once, whatever the number of feeds, and only for consumers that have some. The
latest blocks
stay in memory, so that a feed comes from the log to the present without a gap, and one that fell behind a
little reads no
file.

    behind    it reads parts from the log, until it has come to its end
    live      the hub gives it what each commit has for it, in a bounded queue

A queue that is full is dropped, and the feed is behind again: a slow reader costs a bounded amount of
memory, and
nobody waits for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import HeadgateError
from headgate.service.tenant.names import grown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headgate.service.storage.log import Block, Log
    from headgate.service.tenant.names import Delivery, Names
    from headgate.service.tenant.tenant import Tenant


QUEUE = 1_000
"""Deliveries that may wait in a feed."""
QUEUE_BYTES = 256 << 10
"""Bytes of these; one delivery may have more."""


class Closed(HeadgateError):  # noqa: N818 -- an end, and no error
    """A feed has ended; its text says why."""


class Feed:
    """One reader. It belongs to the event loop."""

    __slots__ = (
        "_moved", "_nudged", "_passed", "_queue", "_reason", "_size", "_waiter",
        "consumer", "direct", "fell_behind", "hub", "live", "position",
    )  # fmt: skip

    def __init__(self, hub: Hub, consumer: int, after: int) -> None:
        self.hub = hub
        self.consumer = consumer
        self.position = after
        """What was handed out: all up to here."""
        self.live = False
        self.fell_behind = 0
        """How often the queue was full."""
        self.direct: Callable[[list[Delivery]], bool] | None = None
        """Takes deliveries while the reader waits, or says that it cannot: no task is woken then."""
        self._queue: list[Delivery] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._reason: str | None = None
        self._moved = 0
        self._nudged = False
        self._passed: tuple[int, int] | None = None

    def push(self, deliveries: list[Delivery]) -> None:
        """Take what a commit has, or fall behind."""
        if self.direct is not None and self._waiter is not None and self.direct(deliveries):
            self.position = deliveries[-1].position
            return
        size = self._size
        for each in deliveries:
            size += len(each.text)
        if self._queue and (len(self._queue) + len(deliveries) > QUEUE or size > QUEUE_BYTES):
            # All before what waits was handed out, or was for others.
            self.position = max(self.position, self._queue[0].position - 1)
            self._queue, self._size, self.live = [], 0, False
            self.fell_behind += 1
        else:
            self._queue = self._queue + deliveries if self._queue else deliveries
            self._size = size
        self.wake()

    def wake(self) -> None:
        """Have whoever waits look again."""
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def nudge(self) -> None:
        """Have whoever waits get nothing, as a sign of life."""
        self._nudged = True
        self.wake()

    def rewind(self, after: int) -> None:
        """Go on after another position."""
        self._moved += 1
        self._queue, self._size, self.live = [], 0, False
        self.position, self._passed = after, None
        self.wake()

    def close(self, reason: str) -> None:
        """End; what waits is not handed out."""
        if self._reason is None:
            self._reason = reason
            self.live = False
            self.hub.remove(self)
        self.wake()

    @property
    def closed(self) -> bool:
        """Tell whether it has ended."""
        return self._reason is not None

    def take_passed(self) -> tuple[int, int] | None:
        """Return, once, the position after which events were gone, and the first that was kept."""
        passed, self._passed = self._passed, None
        return passed

    async def next(self, most: int = QUEUE) -> list[Delivery]:
        """Return the next deliveries; waits until there are some.

        None are returned where events were gone, and after a nudge.
        """
        while True:
            if self._reason is not None:
                raise Closed(self._reason)
            if self._queue:
                deliveries, self._queue, self._size = self._queue, [], 0
                self.position = deliveries[-1].position
                return deliveries
            if self._nudged:
                self._nudged = False
                return []
            if self.live:
                self._waiter = self.hub.loop.create_future()
                await self._waiter
                continue
            moved = self._moved
            part = await self.hub.read(self.consumer, self.position, most)
            if moved != self._moved or self._reason is not None:
                continue
            if part.first:
                self._passed = self.position, part.first
            self.position = max(self.position, part.upto)
            if self.position >= self.hub.source.position:
                # Nothing was committed since: no await stands between this and the reading of the last part.
                self.live = True
            if part.deliveries or part.first:
                return part.deliveries


MOST = 1_000
"""Deliveries of a part."""
MOST_BYTES = 256 << 10
"""Bytes of a part's events; one event may have more."""
_LOOKED = 20_000
"""Events of the log that are looked at for a part, whomever they are for."""


class Part(NamedTuple):
    """Some deliveries of a consumer, in order."""

    deliveries: list[Delivery]
    upto: int
    """The position up to which these are all."""
    first: int = 0
    """The first position that was still kept, if events after the wanted position were not; 0 otherwise."""


def read_log(
    log: Log, names: Names, consumer: int, after: int, last: int, most: int = MOST, size: int = MOST_BYTES
) -> Part:
    """Read deliveries of a consumer after a position, up to the last that is on disk. Made for threads."""
    blocks = log.read(after + 1, _LOOKED)
    begin = next(blocks, None)
    if begin is None or begin.first > after + 1:
        first = log.bounds().first
        passed = first if first > after + 1 else 0
    else:
        passed = 0
    if begin is None:
        return Part([], max(after, last), passed)
    return collect(chain((begin,), blocks), names, consumer, after, most, size)._replace(first=passed)


def collect(
    blocks: Iterable[Block], names: Names, consumer: int, after: int, most: int = MOST, size: int = MOST_BYTES
) -> Part:
    """Collect deliveries of a consumer from blocks, until there are enough."""
    deliveries: list[Delivery] = []
    taken, upto, looked = 0, after, 0
    for block in blocks:
        for delivery in names.deliveries(block, consumer, after):
            if len(deliveries) == most or (deliveries and taken + len(delivery.text) > size):
                return Part(deliveries, deliveries[-1].position)
            deliveries.append(delivery)
            taken += len(delivery.text)
        upto = max(upto, block.last)
        looked += len(block)
        if len(deliveries) >= most or taken >= size or looked >= _LOOKED:
            break
    return Part(deliveries, upto)


RECENT, RECENT_DERIVED = 4 << 20, 512 << 10
"""Bytes of blocks that stay in memory; of a site of a network, of which a machine may have many."""


class Hub:
    """The feeds of a tenant. It belongs to the event loop."""

    def __init__(self, source: Tenant, recent: int = RECENT) -> None:
        self.source = source
        self.loop = asyncio.get_running_loop()
        self._feeds: dict[int, list[Feed]] = {}
        self._wanted = np.zeros(64, bool)
        self._latest = np.zeros(64, np.int64)
        self.began = source.position
        """The position at which the hub began: of what came before, it knows nothing by heart."""
        self._reading: set[asyncio.Future[Part]] = set()
        self._recent: deque[tuple[Block, int]] = deque()
        self._most = recent
        self._size = 0
        self._after = source.position

    # Feeds

    def feed(self, consumer: int, after: int) -> Feed:
        """Make a feed of a consumer's deliveries after a position."""
        feed = Feed(self, consumer, after)
        self._grow(consumer)
        self._feeds.setdefault(consumer, []).append(feed)
        self._wanted[consumer] = True
        return feed

    def remove(self, feed: Feed) -> None:
        """Forget a feed."""
        feeds = self._feeds.get(feed.consumer, [])
        if feed in feeds:
            feeds.remove(feed)
        if not feeds:
            self._feeds.pop(feed.consumer, None)
            self._wanted[feed.consumer] = False

    def feeds(self, consumer: int) -> list[Feed]:
        """List the feeds of a consumer."""
        return list(self._feeds.get(consumer, ()))

    def _grow(self, consumer: int) -> None:
        # The last place stays free: numbers that are not known here are looked up there.
        if consumer + 1 >= len(self._wanted):
            size = 2 * (consumer + 2)
            self._wanted, self._latest = grown(self._wanted, size), grown(self._latest, size)

    # Events

    def committed(self, block: Block) -> None:
        """Hand on a block that is on disk."""
        names = self.source.names
        self._keep(block)
        owners = names.owners(block.subscriptions)
        if len(owners):
            self._grow(int(owners.max()))
            # Rows rise, and of equal numbers the last one stays.
            self._latest[owners] = block.first + block.rows()
        if not self._feeds:
            return
        for consumer, deliveries in names.by_consumer(block, self._wanted):
            for feed in self._feeds.get(consumer, ()):
                if feed.live:
                    feed.push(deliveries)

    def _keep(self, block: Block) -> None:
        size = sum(map(len, block.texts)) + block.subscriptions.nbytes + 100 * len(block)
        self._recent.append((block, size))
        self._size += size
        self.forget(0)

    def forget(self, before: int) -> None:
        """Have no more blocks in memory than there is room for, and none that ends before a position."""
        while self._recent and (self._size > self._most or self._recent[0][0].last < before):
            old, size = self._recent.popleft()
            self._size -= size
            self._after = old.last

    def latest(self, consumer: int) -> int:
        """Return the position of the last event for a consumer since the hub began; 0 if there was none."""
        return int(self._latest[consumer]) if consumer < len(self._latest) - 1 else 0

    async def read(self, consumer: int, after: int, most: int = MOST, size: int = MOST_BYTES) -> Part:
        """Read deliveries of a consumer after a position: from memory, or in a thread from the log."""
        source = self.source
        if after < self._after:
            reading = self.loop.run_in_executor(
                None,
                partial(
                    read_log, source.store.log, source.names, consumer, after, source.position, most, size
                ),
            )
            self._reading.add(reading)
            reading.add_done_callback(self._reading.discard)
            return await asyncio.shield(reading)
        if self.latest(consumer) <= after:
            return Part([], max(after, source.position))
        blocks = [block for block, _ in self._recent if block.last > after]
        part = collect(blocks, source.names, consumer, after, most, size)
        whole = not part.deliveries and part.upto >= blocks[-1].last
        return Part([], max(after, source.position)) if whole else part

    async def settle(self) -> None:
        """Wait for threads that read for somebody who has gone: the log can be closed then."""
        await asyncio.gather(*self._reading, return_exceptions=True)
