"""The tour: a service that has something to show from its first second.

    subscriptions and a graph ──► events at a rate ──► one consumer listens, one pulls, one lags, one fails
    views at five sites       ──► documents            a network of its own, see `tour_network.py`

`headgate serve --demo` runs it. It writes only where nothing else is: a directory that has no events or
subscriptions, or one that an earlier tour has made, which goes on.

    publishers ──► networks ──► exchanges ──► advertisers      events enter at the publisher of their page
    campaigns                                                  subscriptions at no node, over all events
    odd ones                                                   match everything, match nothing, are limited

Everything is made from row numbers and one seed, so that two tours are alike.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import zlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from headgate.console import tour_network
from headgate.console.view import Asker
from headgate.errors import HeadgateError, StorageError
from headgate.service.delivery.hub import Closed
from headgate.service.problems import Problem
from headgate.service.resources import ConsumerBody, EdgeBody, Part, SubscriptionBody
from headgate.service.security.keys import DEFAULT_TENANT, EVERYBODY
from headgate.service.storage.audit import noted
from headgate.service.storage.store import FILE, Store
from headgate.service.worker import telling
from headgate.workloads.records import advertising

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from headgate.console.pages.network import Pictures
    from headgate.service.server import Server
    from headgate.service.tenant.tenant import Tenant


SEED = 1
LISTENING, PULLING, LAGGING, CALLED = "dashboard", "bidders", "archive", "partner-hook"
"""The consumers: one listens, one pulls and acknowledges, one never does, one has a webhook that fails."""


PUBLISHERS = ("pub-news", "pub-sport", "pub-video", "pub-shop", "pub-games", "pub-travel")


class View(msgspec.Struct):
    """A view of the demo's network, and the site where it is."""

    id: str
    site: str
    filter: str


class Told(msgspec.Struct):
    """What the demo has besides its campaigns, as `tour.json` says it."""

    nodes: list[Part]
    edges: list[EdgeBody]
    subscriptions: list[SubscriptionBody]
    views: list[View]


def told() -> Told:
    """Read it."""
    return msgspec.json.decode(files("headgate.console").joinpath("tour.json").read_bytes(), type=Told)


def subscriptions(campaigns: int) -> list[SubscriptionBody]:
    """List all subscriptions."""
    rows = advertising.subscriptions(np.arange(campaigns), SEED)
    ids, filters = rows.column(0).to_pylist(), rows.column(1).to_pylist()
    bodies = []
    for number, (name, text) in enumerate(zip(ids, filters, strict=True)):
        # Some bids depend on the event: more for places that are seen.
        score: float | str = round(0.1 + 4.9 * ((number * 7_919) % 1_000) / 1_000, 2)
        if number % 20 == 0:
            score = f"{score} * viewability"
        consumer = (LISTENING, LISTENING, PULLING, LAGGING)[number % 4]
        bodies.append(SubscriptionBody(id=str(name), filter=str(text), score=score, consumer=consumer))
    return [*bodies, *told().subscriptions]


def events(first: int, count: int) -> list[dict[str, Any]]:
    """Make events with given row numbers, as rows; each enters the exchange at the publisher of its page."""
    batch = advertising.events(np.arange(first, first + count), SEED)
    rows: list[dict[str, Any]] = batch.to_pylist()
    for row in rows:
        row["source"] = PUBLISHERS[zlib.crc32(str(row["site"]).encode()) % len(PUBLISHERS)]
    return rows


_LOG = logging.getLogger("headgate.console")
MARK = ".headgate-tour"
"""What stands in a directory that a tour has made."""
RATE = 20.0
DOWN = 10.0
"""Seconds for which the partner's endpoint is down at first."""
_DEAR = 3.0
"""The price from which on it refuses an event, whenever it is asked."""
CAMPAIGNS = 4_000
_AT_ONCE = 500
"""Events that are published together, at most."""
_MADE = 2_000
"""Events that are made together."""
_PAUSE = 0.05
"""Seconds between two looks at how many events are due."""
_BUSY = 1.0
"""Seconds of patience with a service that takes no events now."""
_PULLED = 1.0
"""Seconds between two pulls of the consumer that pulls."""


def check_place(data: Path) -> None:
    """Refuse a directory that has events or subscriptions which no tour has made."""
    if (data / MARK).exists():
        return
    for folder in sorted((data / "tenants").glob("*")):
        if not (folder / FILE).exists():
            continue
        store = Store(folder)
        try:
            if store.log.bounds().last or next(store.subscriptions.all(), None) or store.graph.nodes(most=1):
                raise StorageError(
                    f"{data} has events or subscriptions of its own, and a demo would mix its own with them: "
                    "give another directory with --data, or none"
                )
        finally:
            store.close()


class Partner:
    """The endpoint of the webhook: down at first, and then it takes all but what is too dear."""

    def __init__(self, down: float) -> None:
        self._down = down
        self._server: asyncio.Server | None = None
        self._until = 0.0

    async def start(self) -> str:
        """Listen at a port of this machine; returns the address."""
        self._until = time.monotonic() + self._down
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/hook"

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        event = msgspec.json.decode(await reader.readexactly(int(length[1]) if length else 0))
        status, reason = "204 No Content", ""
        if time.monotonic() < self._until:
            status, reason = "503 Service Unavailable", "the partner is down for a moment"
        elif event["data"].get("price_floor", 0) >= _DEAR:
            status, reason = "422 Unprocessable", f"the partner takes no price from {_DEAR} on"
        lines = (f"HTTP/1.1 {status}", "Connection: close", f"Content-Length: {len(reason)}", "", reason)
        writer.write("\r\n".join(lines).encode())
        await writer.drain()
        writer.close()

    def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()


class Tour:
    """Fills a service, and publishes to it."""

    def __init__(
        self, rate: float = RATE, campaigns: int = CAMPAIGNS, *, down: float = DOWN, network: bool = True
    ) -> None:
        self._rate = rate
        self._campaigns = campaigns
        self._partner = Partner(down)
        self._network = network
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, server: Server, pictures: Pictures) -> None:
        """Fill the service if it is empty, and begin; `pictures` show its network."""
        began = time.monotonic()
        tenant = await server.tenant(DEFAULT_TENANT)
        hook = ConsumerBody(url=await self._partner.start(), order="parallel", attempts=1)
        mark = server.settings.place / MARK
        if not mark.exists():
            await self._fill(server, tenant, hook)
            await asyncio.to_thread(mark.touch)
            _LOG.info("the demo is set up after %.1f s", time.monotonic() - began)
        elif tenant.consumer(CALLED) is not None:
            await _ask(server, "put_consumer", {"id": CALLED}, body=hook)
        self._begin(self._publish(server, tenant))
        self._begin(_listen(server, LISTENING))
        self._begin(_pull(server, PULLING))
        if self._network and not pictures.sites:
            self._begin(tour_network.run(pictures, told().views, events))

    async def close(self) -> None:
        """End."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._partner.close()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(telling(_LOG, "the demo has stopped in part"))
        self._tasks.append(task)

    async def _fill(self, server: Server, tenant: Tenant, hook: ConsumerBody) -> None:

        # The graph first: nodes that come to an index of thousands would have it built again.
        for node in told().nodes:
            await _ask(server, "put_node", {"id": str(node.id)}, body=node)
        for edge in told().edges:
            await _ask(server, "put_edge", body=edge)
        await _ask(server, "put_consumer", {"id": CALLED}, body=hook)
        wanted = await asyncio.to_thread(subscriptions, self._campaigns)
        rows = [(line, str(each.id), each) for line, each in enumerate(wanted, 1)]
        _, refused = await tenant.import_(rows, [noted("", "import subscriptions", "of the demo")])
        if refused:
            raise HeadgateError(f"the demo's subscription {refused[0].id!r} is refused: {refused[0].reason}")

    async def _publish(self, server: Server, tenant: Tenant) -> None:
        """Publish at the rate; what a busy service did not take in time is left out."""
        made: list[dict[str, Any]] = []
        row, began, done = tenant.position, time.monotonic(), 0
        while True:
            await asyncio.sleep(max(_PAUSE, 1 / self._rate - _PAUSE))
            due = int((time.monotonic() - began) * self._rate) - done
            if due > _AT_ONCE:
                began, done = time.monotonic(), 0
            elif due > 0:
                done += due
            due = min(due, _AT_ONCE)
            if due <= 0:
                continue
            if len(made) < due:
                made += await asyncio.to_thread(events, row, _MADE)
                row += _MADE
            some, made = made[:due], made[due:]
            try:
                await _ask(server, "publish", body=some)
            except Problem as error:
                _LOG.warning("the demo waits: %s", error)
                await asyncio.sleep(_BUSY)


async def _listen(server: Server, consumer: str) -> None:
    """Be a listener that acknowledges what it gets."""
    dispatcher = server.dispatchers[DEFAULT_TENANT]
    state = dispatcher.state(consumer)
    listener = dispatcher.listen("server-sent events", state, state.cursor, None, acknowledges=True)
    try:
        while True:
            deliveries = await listener.feed.next()
            listener.last = dispatcher.hub.loop.time()
            dispatcher.counts[listener.way] += len(deliveries)
            if deliveries:
                dispatcher.journal.advance(state, deliveries[-1].position)
    except Closed:
        return
    finally:
        dispatcher.unlisten(listener)


async def _pull(server: Server, consumer: str) -> None:
    """Pull and acknowledge now and then, as a program does."""
    while consumer in server.dispatchers[DEFAULT_TENANT].states:
        part = await _ask(server, "pull", {"id": consumer}, {"limit": 1_000})
        if part.items:
            await _ask(server, "acknowledge", {"id": consumer}, body={"cursor": part.next})
        if len(part.items) < 1_000:
            await asyncio.sleep(_PULLED)


async def _ask(
    server: Server, operation: str, path: dict[str, str] | None = None, query: Any = None, body: Any = None
) -> Any:
    sent = None if body is None else msgspec.to_builtins(body)
    return await Asker(server, EVERYBODY).ask(operation, path, query, sent)
