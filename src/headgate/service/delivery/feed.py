"""A feed: one reader of a consumer's deliveries, in order and without gaps.

    behind    it reads parts from the log, until it has come to its end
    live      the hub gives it what each commit has for it, in a bounded queue

A queue that is full is dropped, and the feed is behind again: a slow reader costs a bounded amount of
memory, and
nobody waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.errors import HeadgateError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from headgate.service.delivery.hub import Hub
    from headgate.service.tenant.names import Delivery

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
        found, self._passed = self._passed, None
        return found

    async def next(self, most: int = QUEUE) -> list[Delivery]:
        """Return the next deliveries; waits until there are some.

        None are returned where events were gone, and after a nudge.
        """
        while True:
            if self._reason is not None:
                raise Closed(self._reason)
            if self._queue:
                found, self._queue, self._size = self._queue, [], 0
                self.position = found[-1].position
                return found
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
