"""Deliveries of a consumer: pulled, acknowledged, replayed; attempts and dead letters of its webhook."""

from __future__ import annotations

import datetime as dt
import time
import uuid

import msgspec

from headgate.service.api.operation import READ, SUBSCRIBE, Call, Limited, is_number, operation
from headgate.service.envelope import write_envelope
from headgate.service.problems import Conflict, NotFound, Problem
from headgate.service.resources import Cursor
from headgate.service.storage import consumers as stored_consumers
from headgate.service.storage.audit import noted
from headgate.service.tenant.limits import SOURCE
from headgate.service.tenant.names import Delivery

_WAIT = 30.0
"""Seconds that a pull waits, at most."""
_SIZE = 4 << 20
"""Bytes of events in an answer; one event may have more."""


class DeliveriesQuery(Limited, kw_only=True):
    """Which deliveries are wanted."""

    after: Cursor | None = None
    """Those after a cursor; after what is acknowledged, if none is given."""
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


@operation("GET", "/v1/consumers/{id}/deliveries", READ, example="-G -d limit=10 -d wait=20")
async def pull(call: Call, query: DeliveriesQuery) -> Deliveries:
    """Pull a consumer's deliveries after a cursor; waits for some if asked."""
    if not 0 <= query.wait <= _WAIT:
        raise Problem(f"wait is {query.wait:g}: give 0 to {_WAIT:g} seconds", 400)
    dispatcher = call.dispatcher
    state = dispatcher.state(call.path["id"])
    after = state.cursor if query.after is None else query.after
    dispatcher.check_after(after)
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
    return Deliveries(items=items, next=part.upto, last=call.tenant.position, passed=state.passed, gone=gone)


@operation(
    "POST",
    "/v1/consumers/{id}/acknowledge",
    SUBSCRIBE,
    problems=(409,),
    example="-H 'Content-Type: application/json' -d '{\"cursor\": 10}'",
)
async def acknowledge(call: Call, body: Acknowledge) -> Acknowledged:
    """Acknowledge all deliveries up to a cursor: it is on disk when answered, and never moves back."""
    state = call.dispatcher.state(call.path["id"])
    return Acknowledged(cursor=await call.dispatcher.acknowledge(state, body.cursor))


@operation(
    "POST",
    "/v1/consumers/{id}/replay",
    SUBSCRIBE,
    problems=(410,),
    example="-H 'Content-Type: application/json' -d '{\"cursor\": 0}'",
)
async def replay(call: Call, body: Replay) -> Acknowledged:
    """Deliver again what came after a cursor, or from a time on; also the only way to move a cursor back."""
    if (body.cursor is None) == (body.since is None):
        raise Problem("give `cursor` or `since`: after which event, or from which time on", 422)
    dispatcher = call.dispatcher
    state = dispatcher.state(call.path["id"])
    cursor = _cursor_at(call, body.since) if body.cursor is None else body.cursor
    note = noted(call.key.id, "replay to consumer", f"{state.id} after {cursor}")
    return Acknowledged(cursor=await dispatcher.replay(state, cursor, note))


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


_MOST = 10_000


class AttemptsQuery(Limited, kw_only=True):
    """Which attempts are wanted."""

    before: Cursor = 2**62
    """Those with a smaller number."""


class AttemptItem(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One try to deliver an event."""

    number: int
    cursor: int
    time: float
    status: int | None = None
    milliseconds: int = 0
    reason: str | None = None
    """Why it failed; not there if it did not."""


class Attempts(msgspec.Struct, kw_only=True):
    """Attempts, the latest first."""

    items: list[AttemptItem]
    next: int | None
    """What to give as `before`, to go on."""


class LettersQuery(Limited, kw_only=True):
    """Which dead letters are wanted."""

    after: Cursor = 0


class Letter(msgspec.Struct, omit_defaults=True, kw_only=True):
    """An event that could not be delivered."""

    cursor: int
    time: float
    attempts: int
    reason: str
    again: bool = False
    """Whether it waits to be tried again."""
    event: msgspec.Raw | None = None
    """Not there if it is not kept any more, or the subscription that matched is gone."""


class Letters(msgspec.Struct, kw_only=True):
    """Dead letters, in order."""

    items: list[Letter]
    next: int | None


class Some(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Some of the dead letters, by their cursors; all if none are given."""

    cursors: list[Cursor] | None = None


class DropQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which dead letters are dropped."""

    cursors: str | None = None
    """Their cursors, separated by commas; all if it is not there."""


class Replayed(msgspec.Struct, kw_only=True):
    """How many dead letters are tried again."""

    replayed: int


class Dropped(msgspec.Struct, kw_only=True):
    """How many dead letters there were."""

    dropped: int


class Tested(msgspec.Struct, kw_only=True):
    """What a webhook answered."""

    delivered: bool
    status: int | None
    milliseconds: int
    reason: str | None


@operation("GET", "/v1/consumers/{id}/attempts", READ)
async def list_attempts(call: Call, query: AttemptsQuery) -> Attempts:
    """Read the latest attempts to call a webhook."""
    state = call.dispatcher.state(call.path["id"])
    rows = call.tenant.store.consumers.attempts(state.id, query.before, query.limit)
    items = [
        AttemptItem(
            number=number,
            cursor=each.position,
            time=each.time / 1e6,
            status=each.status,
            milliseconds=each.milliseconds,
            reason=each.reason,
        )
        for number, each in rows
    ]
    return Attempts(items=items, next=items[-1].number if len(items) == query.limit else None)


@operation("POST", "/v1/consumers/{id}/test", SUBSCRIBE, problems=(409,), example="-X POST")
async def send_test(call: Call) -> Tested:
    """Send an event to a webhook to try it: once, and at once; it is not kept."""
    from headgate.service.delivery.webhook import post

    state = call.dispatcher.state(call.path["id"])
    if state.said.url is None:
        raise Conflict(f"consumer {state.id!r} has no webhook: give it a `url`")
    text = write_envelope(str(uuid.uuid4()), SOURCE, "headgate.test", {"consumer": state.id})
    outcome = await post(call.dispatcher, state, Delivery(0, time.time_ns() // 1_000, text, []))
    return Tested(
        delivered=outcome.reason is None,
        status=outcome.status,
        milliseconds=outcome.milliseconds,
        reason=outcome.reason,
    )


@operation("GET", "/v1/consumers/{id}/dead-letters", READ)
async def list_dead_letters(call: Call, query: LettersQuery) -> Letters:
    """Read the events that could not be delivered to a webhook, and why."""
    state = call.dispatcher.state(call.path["id"])
    rows = call.tenant.store.consumers.dead_letters(state.id, query.after, query.limit)
    items = [letter_of(each, await call.dispatcher.event_for(state, each.position)) for each in rows]
    return Letters(items=items, next=items[-1].cursor if len(items) == query.limit else None)


def letter_of(letter: stored_consumers.DeadLetter, delivery: Delivery | None) -> Letter:
    """Return a dead letter, with its event if that is kept."""
    return Letter(
        cursor=letter.position,
        time=letter.time / 1e6,
        attempts=letter.attempts,
        reason=letter.reason,
        again=bool(letter.again),
        event=None if delivery is None else msgspec.Raw(delivery.text),
    )


@operation(
    "POST",
    "/v1/consumers/{id}/dead-letters:replay",
    SUBSCRIBE,
    status=202,
    body=Some,
    problems=(409,),
    example="-H 'Content-Type: application/json' -d '{\"cursors\": [10, 12]}'",
)
async def replay_dead_letters(call: Call) -> Replayed:
    """Try dead letters again, all or some: those that are delivered are dead letters no more."""
    cursors = call.read(Some).cursors if call.body.strip() else None
    state = call.dispatcher.state(call.path["id"])
    if not state.called:
        raise Conflict(
            f"the webhook of consumer {state.id!r} is not called: give it a `url`, and `enabled` true"
        )
    positions = _positions(call, state.id, cursors)
    await call.tenant.write(stored_consumers.mark(state.id, positions))
    call.dispatcher.replay_letters(state)
    return Replayed(replayed=len(positions))


@operation("DELETE", "/v1/consumers/{id}/dead-letters", SUBSCRIBE, example="-X DELETE")
async def drop_dead_letters(call: Call, query: DropQuery) -> Dropped:
    """Drop dead letters, all or some."""
    listed = query.cursors
    state = call.dispatcher.state(call.path["id"])
    if listed is not None and not all(is_number(each.strip()) for each in listed.split(",")):
        raise Problem(f"cursors is {listed!r}: give numbers, separated by commas", 400)
    positions = _positions(
        call, state.id, None if listed is None else [int(each) for each in listed.split(",")]
    )
    await call.tenant.write(stored_consumers.unbury(state.id, positions))
    return Dropped(dropped=len(positions))


def _positions(call: Call, consumer: str, wanted: list[int] | None) -> list[int]:
    """Return the positions of dead letters; refuses some that are none."""
    there = [each.position for each in call.tenant.store.consumers.dead_letters(consumer, 0, _MOST)]
    if wanted is None:
        return there
    missing = sorted(set(wanted) - set(there))
    if missing:
        raise NotFound(f"consumer {consumer!r} has no dead letter at cursor {missing[0]}")
    return sorted(set(wanted))
