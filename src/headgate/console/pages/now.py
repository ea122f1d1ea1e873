"""Now: events, matches and deliveries as they come."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import StreamingResponse

from headgate.console.templates import template
from headgate.console.view import View, page
from headgate.service.api.operation import READ
from headgate.service.security.keys import check_scope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.responses import Response

    from headgate.console.history import Sample
    from headgate.service.tenant.tenant import Tenant

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
    # Inside a script's text: no tag can end it.
    packed = msgspec.json.encode(samples).decode().replace("<", "\\u003c")
    return view.shown(
        "now.html.j2",
        copy=asked,
        info=info,
        samples=packed,
        last=list(history.samples)[-1:],
        rows=rows[::-1],
        most=SHOWN,
    )


def recent(tenant: Tenant, after: int, most: int) -> list[dict[str, Any]]:
    """Read the events after a position, as rows of a table; at most the last so many."""
    found: list[dict[str, Any]] = []
    for block in tenant.store.log.read(max(after + 1, 1), most):
        for row, (position, text) in enumerate(block):
            if position > after:
                found.append(row_of(tenant, block, row, position, text))
    return found[-most:]


def row_of(tenant: Tenant, block: Any, row: int, position: int, text: bytes) -> dict[str, Any]:
    """Say in short what an event is, and who gets it."""
    fields = msgspec.json.decode(text)
    matches = block.matches(row)
    data = fields.get("data", fields.get("data_base64"))
    said = data if isinstance(data, str) else msgspec.json.encode(data).decode()
    return {
        "cursor": position,
        "time": block.time / 1e6,
        "id": str(fields.get("id", "")),
        "type": str(fields.get("type", "")),
        "source": str(fields.get("source", "")),
        "text": said[:200],
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
        yield _event("sample", _told(sample))


def _told(sample: Sample) -> dict[str, Any]:
    return sample._asdict()


def _event(name: str, value: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(value))
