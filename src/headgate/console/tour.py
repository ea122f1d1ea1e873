"""The tour: a service that has something to show from its first second.

    subscriptions and a graph ──► events at a rate ──► one consumer listens, one pulls, one lags, one fails

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
import socket
import time
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from headgate.console.view import Asker
from headgate.errors import HeadgateError, StorageError
from headgate.service.delivery.hub import Closed
from headgate.service.problems import Problem
from headgate.service.resources import ConsumerBody, EdgeBody, Limit, Part, SubscriptionBody
from headgate.service.security.keys import DEFAULT_TENANT, EVERYBODY
from headgate.service.storage.audit import noted
from headgate.service.storage.store import FILE, Store
from headgate.service.worker import telling
from headgate.workloads.records import advertising
from headgate.workloads.records.advertising_filters import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from pathlib import Path

    from headgate.service.server import Server
    from headgate.service.tenant.tenant import Tenant


SEED = 1
LISTENING, PULLING, LAGGING, CALLED = "dashboard", "bidders", "archive", "partner-hook"
"""The consumers: one listens, one pulls and acknowledges, one never does, one has a closed webhook."""
_PUBLISHERS = ("pub-news", "pub-sport", "pub-video", "pub-shop", "pub-games", "pub-travel")
_ADVERTISED = CATEGORIES[:12]


class Network(NamedTuple):
    """A node between publishers and advertisers."""

    id: str
    filter: str | None
    targets: tuple[str, ...]


_EUROPE = "country IN ('GB', 'DE', 'FR', 'IT', 'ES', 'NL', 'PL', 'SE')"
_NETWORKS = (
    Network("net-europe", _EUROPE, ("exchange-open", "exchange-premium")),
    Network(
        "net-americas", "country IN ('US', 'BR', 'MX', 'CA', 'AR')", ("exchange-open", "exchange-premium")
    ),
    Network("net-mobile", "device = 'phone' AND connection != '3g'", ("exchange-open",)),
    Network("net-screens", "device IN ('tv', 'tablet')", ("exchange-premium",)),
    Network("net-members", "is_member = true", ("exchange-premium", "exchange-late")),
)
_EXCHANGES = (
    ("exchange-open", None),
    ("exchange-premium", "viewability >= 0.6 AND price_floor >= 0.3"),
    ("exchange-late", "hour >= 20 OR hour <= 5"),
)


def nodes() -> list[Part]:
    """List the nodes of the exchange."""
    parts = [Part(id=name, kind="publisher") for name in _PUBLISHERS]
    parts += [Part(id=each.id, filter=each.filter, kind="network") for each in _NETWORKS]
    parts += [Part(id=name, filter=text, kind="exchange") for name, text in _EXCHANGES]
    return parts + [
        Part(
            id=f"adv-{name}",
            filter=f"category = '{name}' OR array_contains(interests, '{name}')",
            kind="advertiser",
        )
        for name in _ADVERTISED
    ]


def edges() -> list[EdgeBody]:
    """List its edges; some have filters of their own."""
    bodies = []
    for number, source in enumerate(_PUBLISHERS):
        for step in range(3):
            network = _NETWORKS[(number + step) % len(_NETWORKS)]
            adult = None if step else "NOT array_contains(blocked_categories, 'gambling')"
            bodies.append(EdgeBody(source=source, target=network.id, filter=adult))
    bodies += [EdgeBody(source=each.id, target=target) for each in _NETWORKS for target in each.targets]
    for number, name in enumerate(_ADVERTISED):
        first, second = _EXCHANGES[number % 3][0], _EXCHANGES[(number + 1) % 3][0]
        bodies.append(EdgeBody(source=first, target=f"adv-{name}"))
        bodies.append(EdgeBody(source=second, target=f"adv-{name}", filter="price_floor < 2.5"))
    return bodies


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
    return [*bodies, *_at_nodes(), *_odd()]


def _at_nodes() -> Iterator[SubscriptionBody]:
    wishes = ("age BETWEEN 25 AND 44", "income >= 30000", "device = 'phone'", "user.score > 0.5")
    for name in _ADVERTISED:
        for step, wish in enumerate(wishes):
            yield SubscriptionBody(
                id=f"{name}-{step + 1}", filter=wish, node=f"adv-{name}", score=1.0 + step, consumer=PULLING
            )
    for exchange, _ in _EXCHANGES:
        yield SubscriptionBody(
            id=f"audit-{exchange}", filter="price_floor >= 1", node=exchange, score=0.5, consumer=LISTENING
        )


def _odd() -> Iterator[SubscriptionBody]:
    yield SubscriptionBody(id="everything", filter="true", consumer=LAGGING, metadata={"why": "an archive"})
    for name, text in {
        "never-atlantis": "country = 'Atlantis'",
        "never-hour": "hour > 23",
        "never-free": "price_floor < 0 AND device = 'phone'",
    }.items():
        yield SubscriptionBody(id=name, filter=text, consumer=LISTENING, score=9.0)
    yield SubscriptionBody(
        id="partner-phones", filter="device = 'phone' AND country = 'DE'", consumer=CALLED, score=2.0
    )
    yield SubscriptionBody(
        id="night-alert", filter="hour >= 22 AND viewability > 0.9", consumer=LISTENING, score=3.0,
        limit=Limit(events=3, period=60, digest=True),
    )  # fmt: skip


def events(first: int, count: int) -> list[dict[str, Any]]:
    """Make events with given row numbers, as rows; each enters the exchange at the publisher of its page."""
    batch = advertising.events(np.arange(first, first + count), SEED)
    rows: list[dict[str, Any]] = batch.to_pylist()
    for row in rows:
        row["source"] = _PUBLISHERS[zlib.crc32(str(row["site"]).encode()) % len(_PUBLISHERS)]
    return rows


_LOG = logging.getLogger("headgate.console")
MARK = ".headgate-tour"
"""What stands in a directory that a tour has made."""
RATE = 20.0
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


class Tour:
    """Fills a service, and publishes to it."""

    def __init__(self, rate: float = RATE, campaigns: int = CAMPAIGNS) -> None:
        self._rate = rate
        self._campaigns = campaigns
        self._closed = socket.socket()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, server: Server) -> None:
        """Fill the service if it is empty, and begin."""
        began = time.monotonic()
        tenant = await server.tenant(DEFAULT_TENANT)
        # A port that is taken and not listened at: whoever calls it is refused.
        self._closed.bind(("127.0.0.1", 0))
        hook = ConsumerBody(
            url=f"http://127.0.0.1:{self._closed.getsockname()[1]}/hook", order="parallel", attempts=1
        )
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

    async def close(self) -> None:
        """End."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._closed.close()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(telling(_LOG, "the demo has stopped in part"))
        self._tasks.append(task)

    async def _fill(self, server: Server, tenant: Tenant, hook: ConsumerBody) -> None:

        # The graph first: nodes that come to an index of thousands would have it built again.
        for node in nodes():
            await _ask(server, "put_node", {"id": str(node.id)}, body=node)
        for edge in edges():
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
