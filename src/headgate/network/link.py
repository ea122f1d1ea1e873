"""A link: what a site takes from another one, in order, from a document on.

It begins anew whenever the connection is lost, or other views are wanted:

    subscribe    the other site has a subscription of this one, whose filter names the views
    locate       it says after which cursor all documents are that are still needed
    catch up     what its log has from there, up to where the subscription counts
    listen       what comes then, as it comes

Nothing is kept here of how far it came: the views of this site know that, and drop what comes again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.client import asking
from headgate.client.asking import JSON, Ask
from headgate.errors import ServiceError
from headgate.network.assignment import PROTOCOL
from headgate.network.entry import filter_of, read_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headgate.core.event import Id
    from headgate.network.assignment import Neighbour
    from headgate.network.entry import Mark, Result

    Take = Callable[[str, Result | Mark], asyncio.Future[None] | Any]

_FIRST, _LONGEST = 0.05, 1.0
"""Seconds until a connection that was lost is tried again: at first, and at most."""
_PATIENCE = 10.0
"""Seconds that the other site may take to answer."""
_ACKNOWLEDGE = 1.0
"""Seconds between acknowledgements."""
_PART = 500
"""Entries that are read at once when catching up."""


class Located(msgspec.Struct, frozen=True):
    """Where a site's log has what another one needs."""

    cursor: int
    """All of it comes after this."""
    last: int
    """The last position of the log."""
    protocol: int = 0


class Logged(msgspec.Struct, frozen=True):
    """An entry of a site's log, not read yet."""

    cursor: int
    event: msgspec.Raw


class LogPage(msgspec.Struct, frozen=True):
    """Some of a site's log."""

    items: list[Logged]
    next: str | None


def place_of(site: str, views: list[tuple[Id, int]]) -> Ask[Located]:
    """Ask where a log has what a site needs of views, each after a document."""
    body = msgspec.json.encode({"site": site, "views": views, "protocol": PROTOCOL})
    return Ask("POST", "/v1/site:locate", Located, body, {"Content-Type": JSON})


def page_after(cursor: int | str, limit: int) -> Ask[LogPage]:
    """Ask for entries of a log."""
    return Ask("GET", f"/v1/events?after={cursor}&limit={limit}", LogPage)


class Link:
    """One link. It belongs to the event loop of the site that takes."""

    def __init__(
        self,
        own: str,
        name: str,
        neighbour: Neighbour,
        wanted: Callable[[], Mapping[Id, int]],
        take: Callable[[str, Result | Mark], Any],
    ) -> None:
        self.name = name
        self.state = "begins"
        """What it does, or why it does not."""
        self.since = time.time()
        """When that began."""
        self.cursor = 0
        """What was taken last."""
        self._own = own
        self._wanted = wanted
        self._take = take
        self._client = neighbour.client(_PATIENCE)
        self._acknowledging: asyncio.Future[None] | None = None
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """End it."""
        await self._end()
        await self._client.close()

    async def _end(self) -> None:
        tasks = [self._task, *([] if self._acknowledging is None else [self._acknowledging])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def leave(self) -> None:
        """End it for good: the other site need not keep anything for this one."""
        await self._end()
        # The other one may be gone, or never have known of this one.
        with contextlib.suppress(ServiceError):
            await self._client.send(asking.delete_subscription(self._own))
        await self._client.close()

    def _tell(self, state: str) -> None:
        if state != self.state:
            self.state, self.since = state, time.time()

    async def _run(self) -> None:
        wait = _FIRST
        while True:
            begun = time.monotonic()
            try:
                await self._follow()
                self._tell("lost: the other site ended the stream")
            except ServiceError as error:
                self._tell(f"lost: {error}")
            # One that stood for a while was good.
            wait = _FIRST if time.monotonic() - begun > 2 * _LONGEST else min(2 * wait, _LONGEST)
            await asyncio.sleep(wait)

    async def _follow(self) -> None:
        client, wanted = self._client, self._wanted()
        await client.subscribe(self._own, filter_of(list(wanted)), consumer=self._own)
        located = await client.send(place_of(self._own, list(wanted.items())))
        cursor = located.cursor
        while cursor < located.last:
            cursor = await self._catch_up(cursor, located.last)
        self._tell("open")
        acknowledged = time.monotonic()
        async for delivery in client.listen_as(Logged, self._own, after=located.last, acknowledge=False):
            await self._give(delivery.event)
            self.cursor = delivery.cursor
            if time.monotonic() - acknowledged > _ACKNOWLEDGE:
                # Beside the stream: what comes next does not wait for it.
                self._acknowledging = asyncio.ensure_future(self._acknowledge(delivery.cursor))
                acknowledged = time.monotonic()

    async def _acknowledge(self, cursor: int) -> None:
        # It moves what the other site need not keep; the next one says the same.
        with contextlib.suppress(ServiceError):
            await self._client.acknowledge(self._own, cursor)

    async def _catch_up(self, cursor: int, last: int) -> int:
        page = await self._client.send(page_after(cursor, min(_PART, last - cursor)))
        for item in page.items:
            if item.cursor <= last:
                await self._give(item.event)
        return page.items[-1].cursor if page.items else last

    async def _give(self, event: msgspec.Raw) -> None:
        entry = read_entry(event)
        if entry is not None:
            await self._take(self.name, entry)
