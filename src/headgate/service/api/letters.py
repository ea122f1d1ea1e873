"""What became of webhooks: attempts, dead letters, and events to try them with."""

from __future__ import annotations

import time
import uuid
from typing import Annotated

import msgspec

from headgate.service.api.operation import READ, SUBSCRIBE, Answer, Call, is_number, operation
from headgate.service.envelope import SPECVERSION
from headgate.service.problems import Conflict, NotFound, Problem
from headgate.service.storage import consumers as stored_consumers
from headgate.service.tenant.names import Delivery

_MOST = 10_000
Cursor = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class AttemptsQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which attempts are wanted."""

    before: Cursor = 2**62
    """Those with a smaller number."""
    limit: int = 100


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


class LettersQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which dead letters are wanted."""

    after: Cursor = 0
    limit: int = 100


class Letter(msgspec.Struct, omit_defaults=True, kw_only=True):
    """An event that could not be delivered."""

    cursor: int
    time: float
    attempts: int
    reason: str
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


def _checked(limit: int) -> int:
    if not 1 <= limit <= 1_000:
        raise Problem(f"limit is {limit}: give 1 to 1000", 400)
    return limit


@operation(
    "GET",
    "/v1/consumers/{id}/attempts",
    "Read the latest attempts to call a webhook.",
    READ,
    {200: Attempts},
    query=AttemptsQuery,
    problems=(400, 404),
)
async def list_attempts(call: Call) -> Answer:
    """Read attempts."""
    query = call.query(AttemptsQuery)
    state = call.dispatcher.state(call.path["id"])
    rows = call.tenant.store.consumers.attempts(state.id, query.before, _checked(query.limit))
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
    return Answer(Attempts(items=items, next=items[-1].number if len(items) == query.limit else None))


@operation(
    "POST",
    "/v1/consumers/{id}/test",
    "Send an event to a webhook to try it: once, and at once; it is not kept.",
    SUBSCRIBE,
    {200: Tested},
    problems=(404, 409),
    example="-X POST",
)
async def send_test(call: Call) -> Answer:
    """Send a test event."""
    from headgate.service.delivery.webhook import post

    state = call.dispatcher.state(call.path["id"])
    if state.said.url is None:
        raise Conflict(f"consumer {state.id!r} has no webhook: give it a `url`")
    text = msgspec.json.encode(
        {
            "specversion": SPECVERSION,
            "id": str(uuid.uuid4()),
            "source": "/headgate",
            "type": "headgate.test",
            "data": {"consumer": state.id},
        }
    )
    outcome = await post(call.dispatcher, state, Delivery(0, time.time_ns() // 1_000, text, []))
    return Answer(
        Tested(
            delivered=outcome.reason is None,
            status=outcome.status,
            milliseconds=outcome.milliseconds,
            reason=outcome.reason,
        )
    )


@operation(
    "GET",
    "/v1/consumers/{id}/dead-letters",
    "Read the events that could not be delivered to a webhook, and why.",
    READ,
    {200: Letters},
    query=LettersQuery,
    problems=(400, 404),
)
async def list_dead_letters(call: Call) -> Answer:
    """Read dead letters."""
    query = call.query(LettersQuery)
    state = call.dispatcher.state(call.path["id"])
    rows = call.tenant.store.consumers.dead_letters(state.id, query.after, _checked(query.limit))
    items = []
    for each in rows:
        found = await call.dispatcher.event_for(state, each.position)
        items.append(
            Letter(
                cursor=each.position,
                time=each.time / 1e6,
                attempts=each.attempts,
                reason=each.reason,
                event=None if found is None else msgspec.Raw(found.text),
            )
        )
    return Answer(Letters(items=items, next=items[-1].cursor if len(items) == query.limit else None))


@operation(
    "POST",
    "/v1/consumers/{id}/dead-letters:replay",
    "Try dead letters again, all or some: those that are delivered are dead letters no more.",
    SUBSCRIBE,
    {202: Replayed},
    body=Some,
    problems=(400, 404, 409, 415, 422),
    example="-H 'Content-Type: application/json' -d '{\"cursors\": [10, 12]}'",
)
async def replay_dead_letters(call: Call) -> Answer:
    """Try dead letters again."""
    said = call.said(Some) if call.body.strip() else Some()
    state = call.dispatcher.state(call.path["id"])
    if not state.called:
        raise Conflict(
            f"the webhook of consumer {state.id!r} is not called: give it a `url`, and `enabled` true"
        )
    positions = _positions(call, state.id, said.cursors)
    await call.tenant.write(stored_consumers.replay(state.id, positions))
    call.dispatcher.replay_letters(state)
    return Answer(Replayed(replayed=len(positions)), 202)


@operation(
    "DELETE",
    "/v1/consumers/{id}/dead-letters",
    "Drop dead letters, all or some.",
    SUBSCRIBE,
    {200: Dropped},
    query=DropQuery,
    problems=(400, 404),
    example="-X DELETE",
)
async def drop_dead_letters(call: Call) -> Answer:
    """Drop dead letters."""
    given = call.query(DropQuery).cursors
    state = call.dispatcher.state(call.path["id"])
    if given is not None and not all(is_number(each.strip()) for each in given.split(",")):
        raise Problem(f"cursors is {given!r}: give numbers, separated by commas", 400)
    positions = _positions(
        call, state.id, None if given is None else [int(each) for each in given.split(",")]
    )
    await call.tenant.write(stored_consumers.unbury(state.id, positions))
    return Answer(Dropped(dropped=len(positions)))


def _positions(call: Call, consumer: str, wanted: list[int] | None) -> list[int]:
    """Return the positions of dead letters; refuses some that are none."""
    there = [each.position for each in call.tenant.store.consumers.dead_letters(consumer, 0, _MOST)]
    if wanted is None:
        return there
    missing = sorted(set(wanted) - set(there))
    if missing:
        raise NotFound(f"consumer {consumer!r} has no dead letter at cursor {missing[0]}")
    return sorted(set(wanted))
