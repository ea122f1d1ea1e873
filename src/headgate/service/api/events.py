"""Publishing, and reading what is kept: events by position, by id and by time."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from headgate.client.asking import KeptEvent, KeptEvents, PublishedEvent, PublishedEvents
from headgate.core.event import JSON
from headgate.errors import EventError
from headgate.service.api.operation import PUBLISH, READ, Answer, Call, Limited, is_number, operation
from headgate.service.envelope import BATCH, NDJSON, STRUCTURED, EnvelopeTypeError, Sent, read_sent
from headgate.service.problems import NotFound, Problem
from headgate.service.resources import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from headgate.service.storage.log import Write
    from headgate.service.tenant.matcher import Published

_Read = TypeVar("_Read")
_NAMESAKES = 100
"""Events of one id that are listed, at most."""
_LARGE = 8 << 20
"""Bytes of events after which a page ends."""


class PublishQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How events are taken."""

    matches: bool = False
    """Whether the answer says who matched, and not only how many."""
    partial: bool = False
    """Whether good events are taken if others of the request are refused."""


class EventsQuery(Limited, kw_only=True):
    """Which events are wanted."""

    after: Cursor = 0
    id: str | None = None
    since: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None = None
    """Those committed at a time or later, in seconds since 1970."""


@operation(
    "POST",
    "/v1/events",
    PUBLISH,
    answers={200: PublishedEvents},
    media=(STRUCTURED, BATCH, JSON, NDJSON),
    body=Any,
    problems=(507,),
    idempotent=True,
    example='-H \'Content-Type: application/json\' -d \'{"id": "e1", "topic": "sport", "price": 12.5}\'',
)
async def publish(call: Call, query: PublishQuery) -> Answer:
    """Publish events: they are matched, and on disk when this is answered."""
    sent = read_request(call, read_sent)
    call.server.admit(call.tenant, len(sent), len(call.body))
    remember = call.remember

    def keep(published: Published) -> list[Write]:
        assert remember is not None
        return [remember(_answer(sent, published, query))]

    published = await call.tenant.publish(
        [each.event for each in sent],
        [each.text for each in sent],
        atomic=not query.partial,
        also=keep if remember is not None else None,
        named=query.matches,
    )
    if published.refused and not query.partial:
        errors = [{"event": row, "detail": reason} for row, reason in published.refused.items()]
        row, reason = next(iter(published.refused.items()))
        which = f"event {row} of {len(sent)}: " if len(sent) > 1 else ""
        raise Problem(f"{which}{reason}", 422, errors=errors)
    return _answer(sent, published, query)


def _answer(sent: list[Sent], published: Published, query: PublishQuery) -> Answer:
    events = [
        PublishedEvent(
            id=str(each.event.id),
            cursor=published.positions[row],
            matched=published.counts[row],
            matches=list(published.matches[row]) if query.matches else None,
            refused=published.refused.get(row),
        )
        for row, each in enumerate(sent)
    ]
    total = sum(published.counts)
    refused = len(published.refused)
    return Answer(
        PublishedEvents(accepted=len(events) - refused, refused=refused, matched=total, events=events)
    )


def read_request(call: Call, read: Callable[[bytes, str, Mapping[str, str]], list[_Read]]) -> list[_Read]:
    """Read the events of a request."""
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


@operation("GET", "/v1/events", READ, example="-G -d after=0 -d limit=10")
async def list_events(call: Call, query: EventsQuery) -> KeptEvents:
    """Read events that are kept, in order: from a cursor, from a time, or by id."""
    items, full = (
        ([*islice(find(call, query.id), _NAMESAKES)], False) if query.id is not None else _page(call, query)
    )
    more = str(items[-1].cursor) if full else None
    # After they were read: who sees that nothing after its cursor is forgotten has all of them.
    first, last = call.tenant.store.log.bounds()
    return KeptEvents(items=items, next=more, first=first, last=last, log=call.tenant.store.identity)


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


@operation("GET", "/v1/events/{cursor}", READ)
async def read_event(call: Call) -> KeptEvent:
    """Read one event that is kept, and who matched."""
    text = call.path["cursor"]
    kept = event_at(call, int(text)) if is_number(text) else None
    if kept is None:
        raise NotFound(f"there is no event at cursor {text!r}: it was never there, or is not kept any more")
    return kept


def event_at(call: Call, position: int) -> KeptEvent | None:
    """Find an event by its position."""
    for block in call.tenant.store.log.read(position, 1):
        row = position - block.first
        if 0 <= row < len(block):
            return _kept(call, block, row, position, block.texts[row])
    return None


def find(call: Call, identity: str) -> Iterator[KeptEvent]:
    """List the events of an id, the newest first."""
    for position in call.tenant.store.log.find(identity):
        event = event_at(call, position)
        # 32 bits led here, and other ids have the same.
        if event is not None and msgspec.json.decode(event.event).get("id") == identity:
            yield event


def _kept(call: Call, block: Any, row: int, position: int, text: bytes) -> KeptEvent:
    ids = call.tenant.names.ids_of
    return KeptEvent(
        cursor=position,
        time=block.time / 1e6,
        matches=ids(block.matches(row).tolist()),
        held=ids(block.held_back(row).tolist()),
        event=msgspec.Raw(text),
    )
