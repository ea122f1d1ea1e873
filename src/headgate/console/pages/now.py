"""Now: events, matches and deliveries as they come."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from starlette.responses import StreamingResponse

from headgate.console.templates import packed, template
from headgate.console.view import View, page
from headgate.service.api.operation import READ
from headgate.service.metrics import BOUNDS, WAYS
from headgate.service.security.keys import check_scope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.responses import Response

    from headgate.service.server import Server
    from headgate.service.tenant.tenant import Tenant


KEPT = 600
"""Seconds that are kept."""
_PUBLISH = "publish"


class Sample(NamedTuple):
    """One second of a tenant."""

    time: int
    """Seconds since 1970."""
    events: int
    matches: int
    deliveries: int
    half: float | None
    """Milliseconds in which half of the requests that published were answered; None if there was none."""
    most: float | None
    """Milliseconds in which 99 of 100 were."""
    lag: int
    """Events since the cursor of the consumer furthest behind, for it or for others; 0 if nothing waits."""
    waiting: int
    """Bytes of events that are not on disk yet."""


@dataclass
class _Before:
    """The counts of the second before."""

    events: int = 0
    matches: int = 0
    deliveries: int = 0
    times: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))


class History:
    """The last minutes of one tenant."""

    def __init__(self) -> None:
        self.samples: deque[Sample] = deque(maxlen=KEPT)
        self._before: _Before | None = None
        self._told = asyncio.Condition()
        self._closed = False

    async def note(self, server: Server, tenant: Tenant, second: int) -> None:
        """Note what came up to a second since the last time, and tell who waits."""
        counts, dispatcher = tenant.counters, server.dispatchers[tenant.name]
        times = counts.times.get(_PUBLISH)
        now = _Before(
            counts.events,
            counts.matches,
            sum(dispatcher.counts[way] for way in WAYS),
            list(times.counts) if times is not None else _Before().times,
        )
        before = self._before or now
        self._before = now
        spent = [new - old for new, old in zip(now.times, before.times, strict=True)]
        # To count what is for each would take the log; a cursor that nothing came after is no lag.
        cursors = [
            max(state.cursor, state.clear)
            for state in dispatcher.states.values()
            if not dispatcher.has_all(state)
        ]
        self.samples.append(
            Sample(
                second,
                now.events - before.events,
                now.matches - before.matches,
                now.deliveries - before.deliveries,
                quantile(spent, 0.5),
                quantile(spent, 0.99),
                max(0, tenant.position - min(cursors)) if cursors else 0,
                tenant.waiting,
            )
        )
        async with self._told:
            self._told.notify_all()

    async def close(self) -> None:
        """Have who waits end."""
        self._closed = True
        async with self._told:
            self._told.notify_all()

    async def follow(self) -> AsyncIterator[Sample]:
        """Give each second as it comes, until the service stops."""
        while not self._closed:
            async with self._told:
                await self._told.wait()
            if self.samples and not self._closed:
                yield self.samples[-1]


def quantile(counts: list[int], part: float) -> float | None:
    """Estimate in how many milliseconds a part of requests was answered, from counts by bounds.

    >>> quantile([0] * 14, 0.5), quantile([10] + [0] * 13, 0.5)
    (None, 0.5)
    """
    total = sum(counts)
    if not total:
        return None
    wanted, seen, low = part * total, 0, 0.0
    for count, bound in zip(counts, (*BOUNDS, BOUNDS[-1]), strict=True):
        if count and seen + count >= wanted:
            return round(1_000 * (low + (bound - low) * (wanted - seen) / count), 3)
        seen, low = seen + count, bound
    return 1_000 * low


class Histories:
    """Those of all tenants that are open."""

    def __init__(self) -> None:
        self._by_tenant: dict[str, History] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, tenant: str) -> History:
        """Return that of a tenant."""
        if tenant not in self._by_tenant:
            self._by_tenant[tenant] = History()
        return self._by_tenant[tenant]

    async def sample(self, server: Server) -> None:
        """Note each second of each tenant."""
        second = int(time.time()) + 1
        while True:
            # A timer may be early by the wall's clock.
            while (left := second - time.time()) > 0:
                await asyncio.sleep(left)
            for name, tenant in list(server.tenants.items()):
                if name in server.dispatchers:
                    await self.of(name).note(server, tenant, second)
            # What came while others had the processor counts in the second that is noted next.
            second = max(second + 1, int(time.time()))

    def close(self) -> None:
        """Have who waits end."""
        for history in self._by_tenant.values():
            self._closing.add(asyncio.get_running_loop().create_task(history.close()))


SHOWN = 30
"""Events that are on the page."""
_FRESH = 10
"""Events of one second that are put on the page."""


@page("GET", "/console/now")
async def now(view: View) -> Response:
    """Show what comes."""
    info = await view.ask("info")
    asked = view.asked[-1]
    history = view.console.histories.of(view.tenant.name)
    samples = [each._asdict() for each in history.samples]
    last = view.tenant.position
    rows = await asyncio.to_thread(recent, view.tenant, last - SHOWN, SHOWN)
    return view.shown(
        "now.html.j2",
        copy=asked,
        info=info,
        samples=packed(samples),
        last=list(history.samples)[-1:],
        rows=rows[::-1],
        most=SHOWN,
    )


def recent(tenant: Tenant, after: int, most: int) -> list[dict[str, Any]]:
    """Read the events after a position, as rows of a table; at most the last so many."""
    rows: list[dict[str, Any]] = []
    for block in tenant.store.log.read(max(after + 1, 1), most):
        for row, (position, text) in enumerate(block):
            if position > after:
                rows.append(row_of(tenant, block, row, position, text))
    return rows[-most:]


def brief(fields: dict[str, Any]) -> dict[str, Any]:
    """Say in short what an event is."""
    data = fields.get("data", fields.get("data_base64"))
    text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
    return {"id": str(fields.get("id", "")), "text": text[:200]}


def row_of(tenant: Tenant, block: Any, row: int, position: int, text: bytes) -> dict[str, Any]:
    """Say in short what an event is, and who gets it."""
    fields = msgspec.json.decode(text)
    matches = block.matches(row)
    return {
        "cursor": position,
        "time": block.time / 1e6,
        "type": str(fields.get("type", "")),
        "source": str(fields.get("source", "")),
        **brief(fields),
        "matches": len(matches),
        "held": len(block.held_back(row)),
        "first": tenant.names.ids_of(matches[:3].tolist()),
    }


@page("GET", "/console/live")
async def live(view: View) -> Response:
    """Give samples and events as they come, as server-sent events."""
    check_scope(view.key, READ)
    return StreamingResponse(_stream(view), media_type="text/event-stream")


async def _stream(view: View) -> AsyncIterator[bytes]:
    tenant, seen = view.tenant, view.tenant.position
    row = template("event_row.html.j2")
    yield b"retry: 2000\n\n"
    async for sample in view.console.histories.of(tenant.name).follow():
        if not view.console.lets_go_on(view.session, view.key):
            return
        last = tenant.position
        if last > seen:
            begin = max(seen, last - _FRESH)
            fresh = await asyncio.to_thread(recent, tenant, begin, _FRESH)
            written = [row.render(each=each) for each in fresh]
            yield _event("rows", {"rows": written, "more": last - seen - len(written)})
            seen = last
        yield _event("sample", sample._asdict())


def _event(name: str, value: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(value))
