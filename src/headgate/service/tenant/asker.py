"""The thread that asks who matches, for requests that keep nothing: what waits is matched together.

Threads beside each other would gain nothing where most of the work is Python's, and each would find the
caches filled by the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.service.worker import Worker

if TYPE_CHECKING:
    import asyncio
    from collections import deque
    from collections.abc import Sequence

    from headgate.core.event import Event, Id
    from headgate.errors import EventError
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
        found = [items.popleft()]
        events = len(found[0].events)
        while items and events + len(items[0].events) <= MOST_EVENTS:
            events += len(items[0].events)
            found.append(items.popleft())
        return found

    def _do(self, items: list[Ask]) -> None:
        answers: list[Any]
        try:
            found = self._tenant.index.match([event for each in items for event in each.events])
        except Exception as error:  # noqa: BLE001 -- others must go on
            answers = [error] * len(items)
        else:
            answers, place = [], 0
            for each in items:
                answers.append(found[place : place + len(each.events)])
                place += len(each.events)
        self._loop.call_soon_threadsafe(_settle, items, answers)


def _settle(items: list[Ask], answers: list[Any]) -> None:
    for each, answer in zip(items, answers, strict=True):
        if each.future.done():
            continue
        if isinstance(answer, BaseException):
            each.future.set_exception(answer)
        else:
            each.future.set_result(answer)
