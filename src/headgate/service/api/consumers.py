"""Consumers as resources: made, read with how far behind they are, changed, deleted."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from headgate.service.api.operation import (
    READ,
    SUBSCRIBE,
    Answer,
    Call,
    Items,
    Page,
    fit,
    merged,
    operation,
    read_name,
)
from headgate.service.problems import Conflict, Problem, existing
from headgate.service.resources import ConsumerBody
from headgate.service.security.webhooks import check_url, key_of, new_secret
from headgate.service.storage.audit import noted

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.service.delivery.journal import Behind
    from headgate.service.delivery.state import LiveConsumer
    from headgate.service.storage.consumers import StoredConsumer

    Make = Callable[[StoredConsumer | None], ConsumerBody]


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


class Consumers(Items[Consumer], kw_only=True):
    """Some of the consumers, in the order of their ids."""


class DeleteQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What goes with a consumer."""

    subscriptions: Literal["keep", "delete"] = "keep"


async def views(call: Call, states: list[LiveConsumer], secret: str | None = None) -> list[Consumer]:
    """Return consumers as they are read."""
    dispatcher = call.dispatcher
    behind = await dispatcher.behind(states)
    dead = await asyncio.to_thread(call.tenant.store.consumers.count_dead)
    return [_view(call, state, *behind[state], dead.get(state.id, 0), secret) for state in states]


def _view(
    call: Call, state: LiveConsumer, behind: Behind, exact: bool, dead: int, secret: str | None
) -> Consumer:
    body = state.said
    waited = 0.0 if behind.since is None else max(0.0, round(time.time() - behind.since / 1e6, 3))
    called = body.url is not None
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
        subscriptions=len(call.tenant.names.present(state.number)),
        url=body.url,
        order=body.order if called else None,
        parallel=body.parallel if called and body.order == "parallel" else None,
        attempts=body.attempts if called else None,
        timeout=body.timeout if called else None,
        enabled=body.enabled if called else None,
        metadata=body.metadata,
        secret=secret,
    )


@operation("GET", "/v1/consumers", READ, example="-G -d limit=10")
async def list_consumers(call: Call, query: Page) -> Consumers:
    """List consumers: how far behind each is, who listens, how its webhook does."""
    stored, more = query.cut(call.tenant.store.consumers.page(query.after, query.limit + 1, query.search))
    states = [call.dispatcher.states[each.id] for each in stored if each.id in call.dispatcher.states]
    return Consumers(items=await views(call, states), next=more)


@operation("GET", "/v1/consumers/{id}", READ)
async def read_consumer(call: Call) -> Consumer:
    """Read a consumer: how far behind it is, who listens, how its webhook does."""
    return await _read(call, call.dispatcher.state(call.path["id"]))


@operation(
    "PUT",
    "/v1/consumers/{id}",
    SUBSCRIBE,
    answers={200: Consumer, 201: Consumer},
    headers=("If-Match", "If-None-Match"),
    problems=(412,),
    example="-X PUT -H 'Content-Type: application/json' -d '{\"url\": \"https://example.com/hook\"}'",
)
async def put_consumer(call: Call, body: ConsumerBody) -> Answer:
    """Make a consumer, or replace what is said of it; its cursor stays."""
    consumer, new = await _put(call, body.id, lambda _: body, "replace consumer")
    return Answer(consumer, 201 if new else 200)


@operation(
    "PATCH",
    "/v1/consumers/{id}",
    SUBSCRIBE,
    media=("application/merge-patch+json", "application/json"),
    headers=("If-Match",),
    problems=(412,),
    example="-X PATCH -H 'Content-Type: application/json' -d '{\"enabled\": true}'",
)
async def patch_consumer(call: Call, body: dict[str, Any]) -> Consumer:
    """Change some of what is said of a consumer; null takes a member away."""
    if "id" in body:
        raise Problem("the id of a consumer cannot be changed: make another one", 422)
    call.dispatcher.state(call.path["id"])

    def patched(stored: StoredConsumer | None) -> ConsumerBody:
        before = existing(stored, f"consumer {call.path['id']!r}").body
        return fit(merged(msgspec.json.decode(before), body), ConsumerBody)

    consumer, _ = await _put(call, None, patched, "patch consumer")
    return consumer


async def _put(call: Call, within: str | None, make: Make, action: str) -> tuple[Consumer, bool]:
    identity = read_name(call.path["id"], "consumer", within)
    shown: list[str] = []

    def made(stored: StoredConsumer | None) -> ConsumerBody:
        body = make(stored)
        old = None if stored is None else stored.said.secret
        if body.url is not None:
            check_url(body.url, private=call.server.settings.private_webhooks)
        secret = body.secret or old
        if secret is None and body.url is not None:
            secret = new_secret()
        if secret is not None:
            key_of(secret)
            if secret != old:
                shown.append(secret)
        return msgspec.structs.replace(body, id=identity, secret=secret)

    also = [noted(call.key.id, action, identity)]
    _, new = await call.tenant.put_consumer(identity, made, expected=_expected(call), also=also)
    return await _read(call, call.dispatcher.state(identity), shown[0] if shown else None), new


@operation("DELETE", "/v1/consumers/{id}", SUBSCRIBE, problems=(409, 412), example="-X DELETE")
async def delete_consumer(call: Call, query: DeleteQuery) -> None:
    """Delete a consumer, with its attempts and dead letters; its subscriptions only if asked."""
    identity = call.path["id"]
    await call.tenant.remove_consumer(
        identity,
        expected=_expected(call),
        subscriptions=query.subscriptions == "delete",
        also=[noted(call.key.id, "delete consumer", identity)],
    )


@operation("POST", "/v1/consumers/{id}/secret", SUBSCRIBE, problems=(409, 412), example="-X POST")
async def rotate_secret(call: Call) -> Consumer:
    """Make a new secret for a webhook, and show it once; the old one counts no more."""
    state = call.dispatcher.state(call.path["id"])
    if state.said.url is None:
        raise Conflict(f"consumer {state.id!r} has no webhook, and needs no secret")
    secret = new_secret()

    def made(stored: StoredConsumer | None) -> ConsumerBody:
        before = existing(stored, f"consumer {state.id!r}").said
        return msgspec.structs.replace(before, secret=secret)

    also = [noted(call.key.id, "new secret of consumer", state.id)]
    await call.tenant.put_consumer(state.id, made, expected=_expected(call), also=also)
    return await _read(call, state, secret)


async def _read(call: Call, state: LiveConsumer, secret: str | None = None) -> Consumer:
    (consumer,) = await views(call, [state], secret)
    return consumer


def _expected(call: Call) -> int | None:
    state = call.dispatcher.states.get(call.path["id"])
    return call.expected(0 if state is None else state.revision)
