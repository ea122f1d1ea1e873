"""Consuming by cursor: pull, acknowledge, replay."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

import msgspec

from headgate.service.api.operation import READ, SUBSCRIBE, Answer, Call, operation
from headgate.service.problems import NotFound, Problem
from headgate.service.storage.audit import noted

_WAIT = 30.0
"""Seconds that a pull waits, at most."""
_SIZE = 4 << 20
"""Bytes of events in an answer; one event may have more."""
Cursor = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class DeliveriesQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which deliveries are wanted."""

    after: Cursor | None = None
    """Those after a cursor; after what is acknowledged, if none is given."""
    limit: int = 100
    wait: float = 0.0
    """Seconds to wait if there are none."""


class DeliveryItem(msgspec.Struct, kw_only=True):
    """An event for a consumer."""

    cursor: int
    time: float
    """When it was committed, in seconds since 1970."""
    subscriptions: list[str]
    """Those of the consumer's subscriptions that matched."""
    event: msgspec.Raw


class Gone(msgspec.Struct, kw_only=True):
    """Events after the wanted cursor that are not kept any more."""

    after: int
    first: int
    """The cursor of the first event that is kept."""


class Deliveries(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Some of a consumer's deliveries, in order."""

    items: list[DeliveryItem]
    next: int
    """The cursor to acknowledge, or to give as `after`, to go on."""
    last: int
    """The cursor of the last event of the log."""
    passed: int = 0
    """Events for the consumer that were forgotten before it acknowledged them, since it was made."""
    gone: Gone | None = None
    """What the answer begins after, if events after the wanted cursor are not kept any more."""


class Acknowledge(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What is acknowledged: everything up to a cursor."""

    cursor: Cursor


class Replay(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """From where on events are delivered again: after a cursor, or from a time on."""

    cursor: Cursor | None = None
    since: float | dt.datetime | None = None
    """Seconds since 1970, or a date and time with its offset."""


class Acknowledged(msgspec.Struct, kw_only=True):
    """Where a consumer's cursor is."""

    cursor: int


@operation(
    "GET",
    "/v1/consumers/{id}/deliveries",
    "Pull a consumer's deliveries after a cursor; waits for some if asked.",
    READ,
    {200: Deliveries},
    query=DeliveriesQuery,
    problems=(400, 404),
    example="-G -d limit=10 -d wait=20",
)
async def pull(call: Call) -> Answer:
    """Pull deliveries."""
    query = call.query(DeliveriesQuery)
    if not 1 <= query.limit <= 1_000:
        raise Problem(f"limit is {query.limit}: give 1 to 1000", 400)
    if not 0 <= query.wait <= _WAIT:
        raise Problem(f"wait is {query.wait:g}: give 0 to {_WAIT:g} seconds", 400)
    dispatcher = call.dispatcher
    state = dispatcher.state(call.path["id"])
    after = state.cursor if query.after is None else query.after
    if after > call.tenant.position:
        raise Problem(
            f"after is {after}, and the last event has {call.tenant.position}: give a cursor that was read",
            400,
        )
    part = await dispatcher.pull(state, after, query.limit, _SIZE, query.wait)
    dispatcher.counts["pull"] += len(part.deliveries)
    items = [
        DeliveryItem(
            cursor=each.position,
            time=each.time / 1e6,
            subscriptions=each.subscriptions,
            event=msgspec.Raw(each.text),
        )
        for each in part.deliveries
    ]
    gone = Gone(after=after, first=part.first) if part.first else None
    return Answer(
        Deliveries(items=items, next=part.upto, last=call.tenant.position, passed=state.passed, gone=gone)
    )


@operation(
    "POST",
    "/v1/consumers/{id}/acknowledge",
    "Acknowledge all deliveries up to a cursor: it is on disk when this is answered, and never moves back.",
    SUBSCRIBE,
    {200: Acknowledged},
    body=Acknowledge,
    problems=(400, 404, 409, 415, 422),
    example="-H 'Content-Type: application/json' -d '{\"cursor\": 10}'",
)
async def acknowledge(call: Call) -> Answer:
    """Acknowledge deliveries."""
    said = call.said(Acknowledge)
    state = call.dispatcher.state(call.path["id"])
    return Answer(Acknowledged(cursor=await call.dispatcher.acknowledge(state, said.cursor)))


@operation(
    "POST",
    "/v1/consumers/{id}/replay",
    "Deliver again what came after a cursor, or from a time on; also the only way to move a cursor back.",
    SUBSCRIBE,
    {200: Acknowledged},
    body=Replay,
    problems=(400, 404, 410, 415, 422),
    example="-H 'Content-Type: application/json' -d '{\"cursor\": 0}'",
)
async def replay(call: Call) -> Answer:
    """Deliver again."""
    said = call.said(Replay)
    if (said.cursor is None) == (said.since is None):
        raise Problem("give `cursor` or `since`: after which event, or from which time on", 422)
    dispatcher = call.dispatcher
    state = dispatcher.state(call.path["id"])
    cursor = _cursor_at(call, said.since) if said.cursor is None else said.cursor
    note = noted(call.key.id, "replay to consumer", f"{state.id} after {cursor}")
    return Answer(Acknowledged(cursor=await dispatcher.replay(state, cursor, note)))


def _cursor_at(call: Call, since: float | dt.datetime | None) -> int:
    """Return the cursor before the first event that was committed at a time or later."""
    if isinstance(since, dt.datetime):
        if since.tzinfo is None:
            raise Problem(
                f"since is {since.isoformat()}, without an offset: give 'Z' or '+02:00' with it", 422
            )
        since = since.timestamp()
    seconds = float(since or 0)
    if not 0 <= seconds < 1e11:
        raise Problem(f"since is {seconds:g}: give seconds since 1970, or a date and time", 422)
    log = call.tenant.store.log
    bounds = log.bounds()
    first = next(log.read(bounds.first, 1), None)
    wanted = int(seconds * 1e6)
    if bounds.first > 1 and (first is None or wanted < first.time):
        begin = "none is" if first is None else f"the first that is was committed at {first.time / 1e6:.6f}"
        raise NotFound(
            f"events from time {seconds:f} on are not all kept any more: {begin}", 410, first=bounds.first
        )
    return min(log.at_time(wanted) - 1, call.tenant.position)
