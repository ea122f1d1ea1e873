"""The threads of a tenant, and the way from the event loop to them and back.

    publish, change ──► matcher's thread ──► writer's thread ──► answer, and what listens is told
    ask             ──► asker's thread   ──► answer

Coroutines are called on the service's event loop. Threads hand results to it once for each group commit.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from headgate.core.event import JSON
from headgate.service.storage.writer import Entry, Writer
from headgate.service.tenant.asker import Asker
from headgate.service.tenant.matcher import Job, Matcher

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.core.event import Event, Id
    from headgate.errors import EventError, HeadgateError
    from headgate.service.storage.block import Block
    from headgate.service.storage.log import Log, Write
    from headgate.service.tenant.matcher import Asked
    from headgate.service.tenant.tenant import Tenant

    Found = list[list[Id] | EventError]


class Workers:
    """What matches, writes and asks. `committed` is told of each block that is on disk, on the event loop."""

    def __init__(
        self,
        log: Log,
        loop: asyncio.AbstractEventLoop,
        tenant: Tenant,
        committed: Callable[[Block], None],
    ) -> None:
        self._loop = loop
        self._tenant = tenant
        self._committed = committed
        self.position = log.bounds().last
        """The position of the last event that is on disk."""
        self._writer = Writer(log, tenant.name)
        self._matcher = Matcher(tenant, self._writer, self.position, self._settle)
        self._asker = Asker(tenant, loop)

    @property
    def taken(self) -> int:
        """Return the position of the last event that was taken, on disk or not."""
        return self._matcher.position

    async def close(self) -> None:
        """Finish what waits."""
        for each in (self._asker, self._matcher, self._writer):
            await asyncio.to_thread(each.close)

    async def ask(self, make: Callable[[Callable[[Any], None]], Asked]) -> Any:
        """Have something done in the matcher's thread; returns its answer when it is on disk."""
        future: asyncio.Future[Any] = self._loop.create_future()

        def reply(answer: Any) -> None:
            if future.done():
                return
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)

        self._matcher.submit(make(reply))
        return await future

    async def between(self, run: Callable[[], tuple[list[Write], Any]]) -> Any:
        """Do something between events; returns its answer when what it writes is on disk."""
        return await self.ask(lambda reply: Job(run, reply))

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

        self._writer.submit(Entry(None, list(writes), done))
        await future

    async def match(self, events: Sequence[Event]) -> Found:
        """List for each event the subscriptions that get it, or why it is refused; nothing is kept."""
        if all(event.content_type == JSON for event in events):
            return await self._asker.ask(events)
        # Documents may take long, and others need not wait for them.
        return await asyncio.to_thread(self._tenant.index.match, events)

    def tell(self, told: Callable[..., None], *values: Any) -> None:
        """Have something called on the event loop, from any thread."""
        self._loop.call_soon_threadsafe(told, *values)

    def _settle(self, replies: list[tuple[Callable[[Any], None], Any]], block: Block | None) -> None:
        def told() -> None:
            if block is not None:
                self.position = block.last
                self._committed(block)
            for reply, answer in replies:
                reply(answer)

        self._loop.call_soon_threadsafe(told)
