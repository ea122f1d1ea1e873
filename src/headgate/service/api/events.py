"""Publishing, and reading what is kept: events by position, by id and by time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from headgate.core.event import JSON
from headgate.errors import EventError
from headgate.service.api.operation import PUBLISH, READ, Answer, Call, is_number, operation
from headgate.service.envelope import (
    BATCH,
    NDJSON,
    STRUCTURED,
    EnvelopeTypeError,
    Sent,
    read_events,
    read_sent,
)
from headgate.service.problems import NotFound, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headgate.core.event import Event
    from headgate.service.storage.log import Write
    from headgate.service.tenant.matcher import Published

_Read = TypeVar("_Read")
_LARGE = 8 << 20
"""Bytes of events after which a page ends."""


class PublishQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How events are taken."""

    matches: bool = False
    """Whether the answer says who matched, and not only how many."""
    partial: bool = False
    """Whether good events are taken if others of the request are refused."""


class PublishedEvent(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What became of one event."""

    id: str
    cursor: int | None = None
    """Its position in the log; none if it was refused."""
    matched: int = 0
    matches: list[str] | None = None
    refused: str | None = None


class PublishedEvents(msgspec.Struct, kw_only=True):
    """What became of the events of a request."""

    accepted: int
    refused: int
    matched: int
    events: list[PublishedEvent]


class KeptEvent(msgspec.Struct, omit_defaults=True, kw_only=True):
    """An event that is kept."""

    cursor: int
    time: float
    """When it was committed, in seconds since 1970."""
    matches: list[str]
    held: list[str] = []
    """Subscriptions that it matched, and that did not get it because of their limit."""
    event: msgspec.Raw


class KeptEvents(msgspec.Struct, kw_only=True):
    """Some of the events that are kept."""

    items: list[KeptEvent]
    next: str | None
    first: int
    """The cursor of the first event that is still kept."""
    last: int
    log: str
    """Which log it is: another one after a restore. Cursors of one mean nothing in another."""


class EventsQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which events are wanted."""

    after: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 0
    limit: int = 100
    id: str | None = None
    since: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None = None
    """Those committed at a time or later, in seconds since 1970."""


@operation(
    "POST",
    "/v1/events",
    "Publish events: they are matched, and on disk when this is answered.",
    PUBLISH,
    {200: PublishedEvents},
    media=(STRUCTURED, BATCH, JSON, NDJSON),
    body=Any,
    query=PublishQuery,
    problems=(400, 413, 415, 422, 429, 507),
    idempotent=True,
    example='-H \'Content-Type: application/json\' -d \'{"id": "e1", "topic": "sport", "price": 12.5}\'',
)
async def publish(call: Call) -> Answer:
    """Publish events."""
    query = call.query(PublishQuery)
    sent = read_request(call)
    call.server.admit(call.tenant, call.key, len(sent), len(call.body))
    remember = call.remember

    def keep(found: Published) -> list[Write]:
        assert remember is not None
        return [remember(_answer(sent, found, query))]

    found = await call.tenant.publish(
        [each.event for each in sent],
        [each.text for each in sent],
        atomic=not query.partial,
        also=keep if remember is not None else None,
        named=query.matches,
    )
    if found.refused and not query.partial:
        errors = [{"event": row, "detail": reason} for row, reason in found.refused.items()]
        row, reason = next(iter(found.refused.items()))
        which = f"event {row} of {len(sent)}: " if len(sent) > 1 else ""
        raise Problem(f"{which}{reason}", 422, errors=errors)
    return _answer(sent, found, query)


def _answer(sent: list[Sent], found: Published, query: PublishQuery) -> Answer:
    if not query.matches and not found.refused:
        events = [
            PublishedEvent(id=str(each.event.id), cursor=position, matched=count)
            for each, position, count in zip(sent, found.positions, found.counts, strict=True)
        ]
    else:
        events = [
            PublishedEvent(
                id=str(each.event.id),
                cursor=found.positions[row],
                matched=found.counts[row],
                matches=list(found.matches[row]) if query.matches else None,
                refused=found.refused.get(row),
            )
            for row, each in enumerate(sent)
        ]
    total = sum(found.counts)
    refused = len(found.refused)
    return Answer(
        PublishedEvents(accepted=len(events) - refused, refused=refused, matched=total, events=events)
    )


def read_request(call: Call) -> list[Sent]:
    """Read the events of a request."""
    return _read(call, read_sent)


def read_asked(call: Call) -> list[Event]:
    """Read the events of a request that are not kept."""
    return _read(call, read_events)


def _read(call: Call, read: Callable[[bytes, str, Mapping[str, str]], list[_Read]]) -> list[_Read]:
    if not call.body and "ce-id" not in call.headers:
        raise Problem("the body is empty: send an event", 400)
    try:
        found = read(call.body, call.headers.get("content-type", ""), call.headers)
    except EventError as error:
        status = 415 if isinstance(error, EnvelopeTypeError) else 400
        raise Problem(str(error), status) from None
    if not found:
        raise Problem("there is no event in the body: send one at least", 400)
    if len(found) > call.server.settings.batch:
        raise Problem(
            f"there are {len(found):,} events in the body, and {call.server.settings.batch:,} are "
            "allowed: send less at once",
            413,
        )
    return found


@operation(
    "GET",
    "/v1/events",
    "Read events that are kept, in order: from a cursor, from a time, or by id.",
    READ,
    {200: KeptEvents},
    query=EventsQuery,
    problems=(400,),
    example="-G -d after=0 -d limit=10",
)
async def list_events(call: Call) -> Answer:
    """Read events."""
    query = call.query(EventsQuery)
    if not 1 <= query.limit <= 1_000:
        raise Problem(f"limit is {query.limit}: give 1 to 1000", 400)
    items, full = ([*_find(call, query.id)], False) if query.id is not None else _page(call, query)
    more = str(items[-1].cursor) if full else None
    # After they were read: who sees that nothing after its cursor is forgotten has all of them.
    first, last = call.tenant.store.log.bounds()
    return Answer(KeptEvents(items=items, next=more, first=first, last=last, log=call.tenant.store.identity))


def _page(call: Call, query: EventsQuery) -> tuple[list[KeptEvent], bool]:
    """Read events; tells, too, whether there may be more."""
    log, after = call.tenant.store.log, query.after
    if query.since is not None:
        after = max(after, log.at_time(int(query.since * 1e6)) - 1)
    items: list[KeptEvent] = []
    size = 0
    for block in log.read(after + 1, query.limit):
        for row, (position, text) in enumerate(block):
            if position > after:
                items.append(_kept(call, block, row, position, text))
                size += len(text)
                if len(items) == query.limit or size >= _LARGE:
                    return items, True
    return items, False


@operation(
    "GET",
    "/v1/events/{cursor}",
    "Read one event that is kept, and who matched.",
    READ,
    {200: KeptEvent},
    problems=(404,),
)
async def read_event(call: Call) -> Answer:
    """Read one event."""
    given = call.path["cursor"]
    found = event_at(call, int(given)) if is_number(given) else None
    if found is None:
        raise NotFound(f"there is no event at cursor {given!r}: it was never there, or is not kept any more")
    return Answer(found)


def event_at(call: Call, position: int) -> KeptEvent | None:
    """Find an event by its position."""
    for block in call.tenant.store.log.read(position, 1):
        row = position - block.first
        if 0 <= row < len(block):
            return _kept(call, block, row, position, block.texts[row])
    return None


def _find(call: Call, identity: str) -> list[KeptEvent]:
    found = []
    for position in call.tenant.store.log.find(identity):
        event = event_at(call, position)
        # 32 bits led here, and other ids have the same.
        if event is not None and msgspec.json.decode(event.event).get("id") == identity:
            found.append(event)
            if len(found) == 100:
                break
    return found


def _kept(call: Call, block: Any, row: int, position: int, text: bytes) -> KeptEvent:
    ids = call.tenant.names.ids_of
    return KeptEvent(
        cursor=position,
        time=block.time / 1e6,
        matches=ids(block.matches(row).tolist()),
        held=ids(block.held_back(row).tolist()),
        event=msgspec.Raw(text),
    )
