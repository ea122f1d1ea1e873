"""Consumers as resources: made, read with how far behind they are, changed, deleted."""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from headgate.service.api.operation import READ, SUBSCRIBE, Answer, Call, Page, operation
from headgate.service.problems import Conflict, NotFound, Problem
from headgate.service.resources import ConsumerBody, Name
from headgate.service.security.addresses import check_url
from headgate.service.security.signature import key_of, new_secret
from headgate.service.storage.audit import noted

if TYPE_CHECKING:
    from headgate.service.delivery.backlog import Behind
    from headgate.service.delivery.state import State
    from headgate.service.storage.consumers import StoredConsumer

_TAG = re.compile(r'(?:W/)?"?(\d{1,18})"?')


class Lag(msgspec.Struct, kw_only=True):
    """How far a consumer is behind."""

    events: int
    """Events for it that are not acknowledged."""
    seconds: float
    """How long the first of them has waited."""
    exact: bool
    """Whether all were counted; otherwise there are at least so many."""


class ConsumerState(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What a consumer does now."""

    listeners: int = 0
    circuit: Literal["closed", "open", "half-open"] | None = None
    """Of a webhook: open while it is not called, because it failed again and again."""
    retry: float | None = None
    """Seconds until the webhook is tried again, if its circuit is open."""
    reason: str | None = None
    """Why the webhook failed last, or is not called any more."""
    passed: int = 0
    """Events that were forgotten by age or size before they were delivered."""
    dead_letters: int = 0


class Consumer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A consumer, as it is read."""

    id: str
    revision: int
    cursor: int
    """All events up to here are acknowledged."""
    lag: Lag
    state: ConsumerState
    subscriptions: int
    url: str | None = None
    order: Literal["ordered", "parallel"] | None = None
    parallel: int | None = None
    attempts: int | None = None
    timeout: float | None = None
    enabled: bool | None = None
    metadata: dict[str, Any] = {}
    secret: str | None = None
    """What webhooks are signed with. It is shown when it is made, and never again."""


class Consumers(msgspec.Struct, kw_only=True):
    """Some of the consumers, in the order of their ids."""

    items: list[Consumer]
    next: str | None


class DeleteQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What goes with a consumer."""

    subscriptions: Literal["keep", "delete"] = "keep"


async def views(call: Call, states: list[State], secret: str | None = None) -> list[Consumer]:
    """Return consumers as they are read."""
    dispatcher = call.dispatcher
    behind = await dispatcher.behind(states)
    dead = await asyncio.to_thread(call.tenant.store.consumers.count_dead)
    return [_view(call, state, *behind[state], dead.get(state.id, 0), secret) for state in states]


def _view(call: Call, state: State, behind: Behind, exact: bool, dead: int, secret: str | None) -> Consumer:
    said = state.said
    waited = 0.0 if behind.since is None else max(0.0, round(time.time() - behind.since / 1e6, 3))
    called = said.url is not None
    circuit = state.breaker.state() if called else None
    return Consumer(
        id=state.id,
        revision=state.revision,
        cursor=state.cursor,
        lag=Lag(events=behind.events, seconds=waited, exact=exact),
        state=ConsumerState(
            listeners=len(state.listeners),
            circuit=circuit,
            retry=round(max(0.0, state.breaker.until - time.monotonic()), 1) if circuit == "open" else None,
            reason=state.reason,
            passed=state.passed,
            dead_letters=dead,
        ),
        subscriptions=call.tenant.names.count_owned(state.number),
        url=said.url,
        order=said.order if called else None,
        parallel=said.parallel if called and said.order == "parallel" else None,
        attempts=said.attempts if called else None,
        timeout=said.timeout if called else None,
        enabled=said.enabled if called else None,
        metadata=said.metadata,
        secret=secret,
    )


@operation(
    "GET",
    "/v1/consumers",
    "List consumers: how far behind each is, who listens, how its webhook does.",
    READ,
    {200: Consumers},
    query=Page,
    problems=(400,),
    example="-G -d limit=10",
)
async def list_consumers(call: Call) -> Answer:
    """List consumers."""
    page = call.query(Page)
    most = page.most()
    stored = call.tenant.store.consumers.page(page.after, most, page.search)
    states = [call.dispatcher.states[each.id] for each in stored if each.id in call.dispatcher.states]
    more = stored[-1].id if len(stored) == most else None
    return Answer(Consumers(items=await views(call, states), next=more))


@operation(
    "GET",
    "/v1/consumers/{id}",
    "Read a consumer: how far behind it is, who listens, how its webhook does.",
    READ,
    {200: Consumer},
    problems=(404,),
)
async def read_consumer(call: Call) -> Answer:
    """Read a consumer."""
    return await _answer(call, call.dispatcher.state(call.path["id"]))


@operation(
    "PUT",
    "/v1/consumers/{id}",
    "Make a consumer, or replace what is said of it; its cursor stays.",
    SUBSCRIBE,
    {200: Consumer, 201: Consumer},
    body=ConsumerBody,
    problems=(400, 412, 415, 422),
    example="-X PUT -H 'Content-Type: application/json' -d '{\"url\": \"https://example.com/hook\"}'",
)
async def put_consumer(call: Call) -> Answer:
    """Make or replace a consumer."""
    said = call.said(ConsumerBody)
    if said.id is not None and said.id != call.path["id"]:
        raise Problem(f"the body has the id {said.id!r}, and the path {call.path['id']!r}", 422)
    return await _put(call, lambda _: said, "replace consumer")


@operation(
    "PATCH",
    "/v1/consumers/{id}",
    "Change some of what is said of a consumer; null takes a member away.",
    SUBSCRIBE,
    {200: Consumer},
    body=dict[str, Any],
    media=("application/merge-patch+json", "application/json"),
    problems=(400, 404, 412, 415, 422),
    example="-X PATCH -H 'Content-Type: application/json' -d '{\"enabled\": true}'",
)
async def patch_consumer(call: Call) -> Answer:
    """Change a consumer."""
    change = call.said(dict[str, Any])
    if "id" in change:
        raise Problem("the id of a consumer cannot be changed: make another one", 422)
    call.dispatcher.state(call.path["id"])

    def patched(found: StoredConsumer | None) -> ConsumerBody:
        if found is None:
            raise NotFound(f"there is no consumer {call.path['id']!r}")
        members = msgspec.json.decode(found.body)
        for name, value in change.items():
            if value is None:
                members.pop(name, None)
            else:
                members[name] = value
        try:
            return msgspec.convert(members, ConsumerBody)
        except msgspec.ValidationError as error:
            raise Problem(f"the body does not fit: {error}", 422) from None

    return await _put(call, patched, "patch consumer")


async def _put(call: Call, make: Any, action: str) -> Answer:
    identity = checked_name(call.path["id"])
    shown: list[str] = []

    def made(found: StoredConsumer | None) -> ConsumerBody:
        said: ConsumerBody = make(found)
        old = None if found is None else found.said.secret
        if said.url is not None:
            check_url(said.url, private=call.server.settings.private_webhooks)
        secret = said.secret or old
        if secret is None and said.url is not None:
            secret = new_secret()
        if secret is not None:
            key_of(secret)
            if secret != old:
                shown.append(secret)
        return msgspec.structs.replace(said, id=identity, secret=secret)

    also = [noted(call.key.id, action, identity)]
    _, new = await call.tenant.put_consumer(identity, made, expected=expected(call), also=also)
    return await _answer(
        call, call.dispatcher.state(identity), shown[0] if shown else None, 201 if new else 200
    )


@operation(
    "DELETE",
    "/v1/consumers/{id}",
    "Delete a consumer, with its attempts and dead letters; its subscriptions only if asked.",
    SUBSCRIBE,
    {204: None},
    query=DeleteQuery,
    problems=(400, 404, 409, 412),
    example="-X DELETE",
)
async def delete_consumer(call: Call) -> Answer:
    """Delete a consumer."""
    identity = call.path["id"]
    await call.tenant.remove_consumer(
        identity,
        expected=expected(call),
        subscriptions=call.query(DeleteQuery).subscriptions == "delete",
        also=[noted(call.key.id, "delete consumer", identity)],
    )
    return Answer(status=204)


@operation(
    "POST",
    "/v1/consumers/{id}/secret",
    "Make a new secret for a webhook, and show it once; the old one counts no more.",
    SUBSCRIBE,
    {200: Consumer},
    problems=(404, 409, 412),
    example="-X POST",
)
async def rotate_secret(call: Call) -> Answer:
    """Make a new secret."""
    state = call.dispatcher.state(call.path["id"])
    if state.said.url is None:
        raise Conflict(f"consumer {state.id!r} has no webhook, and needs no secret")
    secret = new_secret()

    def made(found: StoredConsumer | None) -> ConsumerBody:
        if found is None:
            raise NotFound(f"there is no consumer {state.id!r}")
        return msgspec.structs.replace(found.said, secret=secret)

    also = [noted(call.key.id, "new secret of consumer", state.id)]
    await call.tenant.put_consumer(state.id, made, expected=expected(call), also=also)
    return await _answer(call, state, secret)


async def _answer(call: Call, state: State, secret: str | None = None, status: int = 200) -> Answer:
    (found,) = await views(call, [state], secret)
    return Answer(found, status, {"ETag": f'"{found.revision}"'})


def expected(call: Call) -> int | None:
    """Return the revision that `If-Match` or `If-None-Match` asks for, if any; 0 for none."""
    if call.headers.get("if-none-match", "").strip() == "*":
        return 0
    given = call.headers.get("if-match")
    if given is None or given.strip() == "*":
        return None
    found = _TAG.fullmatch(given.strip())
    if found is None:
        raise Problem(f"If-Match is {given!r}: give the ETag that a consumer was read with", 400)
    return int(found[1])


def checked_name(identity: str) -> str:
    """Check the id of a consumer that is made."""
    try:
        return msgspec.convert(identity, Name)
    except msgspec.ValidationError as error:
        raise Problem(f"{identity!r} cannot be the id of a consumer: {error}", 422) from None
