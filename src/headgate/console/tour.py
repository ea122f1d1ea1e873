"""The tour: a service that has something to show from its first second.

    subscriptions and a graph ──► events at a rate ──► one consumer listens, one pulls, one lags, one fails

`headgate serve --demo` runs it. It writes only where nothing else is: a directory that has no events or
subscriptions, or one that an earlier tour has made, which goes on.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.console.asking import Asker
from headgate.errors import HeadgateError, StorageError
from headgate.service.delivery.feed import Closed
from headgate.service.problems import Problem
from headgate.service.resources import ConsumerBody
from headgate.service.security.keys import DEFAULT_TENANT, EVERYBODY
from headgate.service.storage.audit import noted
from headgate.service.storage.store import FILE, Store

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from headgate.service.server import Server
    from headgate.service.tenant.tenant import Tenant

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
    for place in sorted((data / "tenants").glob("*")):
        if not (place / FILE).exists():
            continue
        store = Store(place)
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
        from headgate.console import tour_workload as workload

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
        elif tenant.consumer(workload.CALLED) is not None:
            await _ask(server, "put_consumer", {"id": workload.CALLED}, body=hook)
        self._begin(self._publish(server, tenant))
        self._begin(_listen(server, workload.LISTENING))
        self._begin(_pull(server, workload.PULLING))

    async def close(self) -> None:
        """End."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._closed.close()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(_tell_failure)
        self._tasks.append(task)

    async def _fill(self, server: Server, tenant: Tenant, hook: ConsumerBody) -> None:
        from headgate.console import tour_workload as workload

        # The graph first: nodes that come to an index of thousands would have it built again.
        for node in workload.nodes():
            await _ask(server, "put_node", {"id": str(node.id)}, body=node)
        for edge in workload.edges():
            await _ask(server, "put_edge", body=edge)
        await _ask(server, "put_consumer", {"id": workload.CALLED}, body=hook)
        wanted = await asyncio.to_thread(workload.subscriptions, self._campaigns)
        rows = [(line, str(each.id), each) for line, each in enumerate(wanted, 1)]
        _, refused = await tenant.import_(rows, [noted("", "import subscriptions", "of the demo")])
        if refused:
            raise HeadgateError(f"the demo's subscription {refused[0].id!r} is refused: {refused[0].reason}")

    async def _publish(self, server: Server, tenant: Tenant) -> None:
        """Publish at the rate; what a busy service did not take in time is left out."""
        from headgate.console.tour_workload import events

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
        found = await _ask(server, "pull", {"id": consumer}, {"limit": 1_000})
        if found.items:
            await _ask(server, "acknowledge", {"id": consumer}, body={"cursor": found.next})
        if len(found.items) < 1_000:
            await asyncio.sleep(_PULLED)


async def _ask(
    server: Server, operation: str, path: dict[str, str] | None = None, query: Any = None, body: Any = None
) -> Any:
    said = None if body is None else msgspec.to_builtins(body)
    return (await Asker(server, EVERYBODY).answer(operation, path, query, said)).value


def _tell_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _LOG.error("the demo has stopped in part: %s", task.exception())
