"""The threads of a tenant, and the way from the event loop to them and back.

    publish, change ──► matcher's thread ──► writer's thread ──► answer, and what listens is told
    ask             ──► asker's thread   ──► answer

What is asked and keeps nothing is matched together, by one thread: threads beside each other would gain
nothing where most of the work is Python's, and each would find the caches filled by the others.

Coroutines are called on the service's event loop. Threads hand results to it once for each group commit.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from headgate.core.event import JSON
from headgate.service.tenant.matcher import Job, Matcher
from headgate.service.worker import Entry, Worker, Writer

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Sequence

    from headgate.core.event import Event, Id
    from headgate.errors import EventError, HeadgateError
    from headgate.service.storage.log import Block, Log, Write
    from headgate.service.tenant.matcher import Asked
    from headgate.service.tenant.tenant import Tenant

    Found = list[list[Id] | EventError]


MOST_EVENTS = 500
"""Events that are matched together: more would have the first of them wait."""


@dataclass
class Ask:
    """The events of one request."""

    events: Sequence[Event]
    future: asyncio.Future[Found]


class Asker(Worker[Ask]):
    """Matches the events of requests in the order in which they came."""

    def __init__(self, tenant: Tenant, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(f"asker-{tenant.name}")
        self._tenant = tenant
        self._loop = loop
        self.start()

    async def ask(self, events: Sequence[Event]) -> Found:
        """List for each event the subscriptions that get it, or why it is refused."""
        future: asyncio.Future[Found] = self._loop.create_future()
        self.submit(Ask(events, future))
        return await future

    # In its thread

    def _take(self, items: deque[Ask]) -> list[Ask]:
        taken = [items.popleft()]
        events = len(taken[0].events)
        while items and events + len(items[0].events) <= MOST_EVENTS:
            events += len(items[0].events)
            taken.append(items.popleft())
        return taken

    def _do(self, items: list[Ask]) -> None:
        answers: list[Any]
        try:
            matches = self._tenant.index.match([event for each in items for event in each.events])
        except Exception as error:  # noqa: BLE001 -- others must go on
            answers = [error] * len(items)
        else:
            answers, first_row = [], 0
            for each in items:
                answers.append(matches[first_row : first_row + len(each.events)])
                first_row += len(each.events)

        def settle() -> None:
            for each, answer in zip(items, answers, strict=True):
                _settle(each.future, answer)

        self._loop.call_soon_threadsafe(settle)


def _settle(future: asyncio.Future[Any], answer: Any) -> None:
    """Give whoever waits the answer, or raise it."""
    if future.done():
        return
    if isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)


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

        self._matcher.submit(make(partial(_settle, future)))
        return await future

    async def between(self, run: Callable[[], tuple[list[Write], Any]], also: Sequence[Write] = ()) -> Any:
        """Do something between events; returns its answer when what it writes, and `also`, is on disk."""
        return await self.ask(lambda reply: Job(run, reply, also))

    async def write(self, *writes: Write) -> None:
        """Write something that matching does not know of; returns when it is on disk."""
        future: asyncio.Future[None] = self._loop.create_future()

        def done(error: HeadgateError | None) -> None:
            self._loop.call_soon_threadsafe(_settle, future, error)

        self._writer.submit(Entry(None, list(writes), done))
        await future

    async def match(self, events: Sequence[Event]) -> Found:
        """List for each event the subscriptions that get it, or why it is refused; nothing is kept."""
        if all(event.content_type == JSON for event in events):
            return await self._asker.ask(events)
        # Documents may take long, and others need not wait for them.
        return await asyncio.to_thread(self._tenant.index.match, events)

    def _settle(self, replies: list[tuple[Callable[[Any], None], Any]], block: Block | None) -> None:
        def told() -> None:
            if block is not None:
                self.position = block.last
                self._committed(block)
            for reply, answer in replies:
                reply(answer)

        self._loop.call_soon_threadsafe(told)
