"""The hub: hands what each commit has to the feeds of those it is for.

A block is split by consumer once, whatever the number of feeds, and only for consumers that have some. The
latest blocks
stay in memory, so that a feed comes from the log to the present without a gap, and one that fell behind a
little reads no
file.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from headgate.service.delivery.feed import Feed
from headgate.service.delivery.reading import MOST, MOST_BYTES, Part, collect, read_log

if TYPE_CHECKING:
    from headgate.service.storage.block import Block
    from headgate.service.storage.store import Store
    from headgate.service.tenant.names import Names

RECENT, RECENT_DERIVED = 4 << 20, 512 << 10
"""Bytes of blocks that stay in memory; of a site of a network, of which a machine may have many."""


class Source(Protocol):
    """Where a hub's events come from: a tenant."""

    store: Store

    @property
    def names(self) -> Names:
        """Return the ids and numbers of subscriptions."""

    @property
    def position(self) -> int:
        """Return the position of the last event that is on disk."""


class Hub:
    """The feeds of a tenant. It belongs to the event loop."""

    def __init__(self, source: Source, recent: int = RECENT) -> None:
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
        found = Feed(self, consumer, after)
        self._grow(consumer)
        self._feeds.setdefault(consumer, []).append(found)
        self._wanted[consumer] = True
        return found

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
            wanted, latest = np.zeros(size, bool), np.zeros(size, np.int64)
            wanted[: len(self._wanted)] = self._wanted
            latest[: len(self._latest)] = self._latest
            self._wanted, self._latest = wanted, latest

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
        while self._size > self._most and self._recent:
            old, size = self._recent.popleft()
            self._size -= size
            self._after = old.last

    def forget(self, before: int) -> None:
        """Have no blocks in memory that end before a position: they are not kept any more."""
        while self._recent and self._recent[0][0].last < before:
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
