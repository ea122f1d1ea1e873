"""Keys, quotas, who did what, and how the service is."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from importlib.metadata import version
from typing import Annotated, Literal

import msgspec

from headgate.service.api.operation import ADMIN, READ, Answer, Call, Page, in_json, is_number, operation
from headgate.service.problems import Busy, NotFound, Problem
from headgate.service.settings import Quotas
from headgate.service.storage.audit import noted

Scopes = Annotated[
    list[Literal["publish", "subscribe", "read", "admin"]], msgspec.Meta(min_length=1, max_length=4)
]


class KeyBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A key to be made."""

    scopes: Scopes
    expires: dt.datetime | None = None
    note: Annotated[str, msgspec.Meta(max_length=200)] = ""


class KeyResource(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A key, without its text."""

    id: str
    scopes: list[str]
    created: dt.datetime
    expires: dt.datetime | None = None
    note: str = ""
    text: str | None = None
    """What is sent as `Authorization: Bearer …`; only when it is made, and never again."""


class KeyPage(msgspec.Struct, kw_only=True):
    """The keys of the tenant."""

    items: list[KeyResource]
    next: str | None


@operation(
    "POST",
    "/v1/keys",
    "Make a key of this tenant; its text is shown once. The first key of a server has the scope admin.",
    ADMIN,
    {201: KeyResource},
    body=KeyBody,
    problems=(400, 507),
    example=in_json('{"scopes": ["publish"], "note": "the shop"}'),
)
async def create_key(call: Call) -> Answer:
    """Make a key."""
    said = call.said(KeyBody)
    expires = None
    if said.expires is not None:
        if said.expires.tzinfo is None:
            raise Problem(f"`expires` {said.expires.isoformat()} has no zone: add Z or +01:00", 422)
        expires = int(said.expires.timestamp() * 1e6)
    keys = call.server.keys
    if not len(keys) and "admin" not in said.scopes:
        raise Problem("the first key needs the scope admin: without it nobody could make others", 422)
    key, text = await asyncio.to_thread(
        keys.add, call.key.tenant, said.scopes, expires=expires, note=said.note
    )
    await call.tenant.write(noted(call.key.id, "create key", f"{key.id}: {' '.join(sorted(key.scopes))}"))
    made = _resource(key)
    made.text = text
    return Answer(made, 201)


@operation(
    "GET", "/v1/keys", "List the keys of this tenant.", ADMIN, {200: KeyPage}, query=Page, problems=(400,)
)
async def list_keys(call: Call) -> Answer:
    """List keys."""
    query = call.query(Page)
    most = query.most()
    found = [
        key
        for key in sorted(call.server.keys.listed(call.key.tenant), key=lambda each: each.id)
        if key.id > query.after and (query.search or "").casefold() in f"{key.id} {key.note}".casefold()
    ]
    more = found[most - 1].id if len(found) > most else None
    return Answer(KeyPage(items=[_resource(key) for key in found[:most]], next=more))


@operation(
    "DELETE",
    "/v1/keys/{id}",
    "Delete a key of this tenant: it counts no more.",
    ADMIN,
    {204: None},
    problems=(404, 409, 507),
)
async def delete_key(call: Call) -> Answer:
    """Delete a key."""
    identity = call.path["id"]
    keys = call.server.keys
    own = keys.listed(call.key.tenant)
    rest = [key for key in own if key.id != identity]
    if len(rest) == len(own):
        raise NotFound(f"there is no key {identity!r}")
    if not any("admin" in key.scopes for key in rest):
        raise Problem(f"key {identity!r} is the last one with the scope admin: make another one first", 409)
    await asyncio.to_thread(keys.remove, call.key.tenant, identity)
    await call.tenant.write(noted(call.key.id, "delete key", identity))
    return Answer(None, 204)


def _resource(key: object) -> KeyResource:
    from headgate.service.security.keys import Key

    assert isinstance(key, Key)
    return KeyResource(
        id=key.id,
        scopes=sorted(key.scopes),
        created=_moment(key.created),
        expires=None if key.expires is None else _moment(key.expires),
        note=key.note,
    )


def _moment(micros: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(micros / 1e6, dt.UTC)


@operation(
    "GET",
    "/v1/quotas",
    "Read what this tenant may use; only who runs the service sets it, by `headgate service quotas`.",
    READ,
    {200: Quotas},
)
async def read_quotas(call: Call) -> Answer:
    """Read the quotas."""
    return Answer(call.tenant.quotas)


class AuditEntry(msgspec.Struct, kw_only=True):
    """One change."""

    number: int
    time: dt.datetime
    key: str
    """The id of the key by which it was made; empty where the service asks for none."""
    action: str
    what: str


class AuditPage(msgspec.Struct, kw_only=True):
    """Some changes, in the order in which they were made."""

    items: list[AuditEntry]
    next: str | None


class AuditQuery(Page, forbid_unknown_fields=True, kw_only=True):
    """Which changes are wanted."""

    latest: bool = False
    """Whether the latest come first; `after` goes on to earlier ones then."""


@operation(
    "GET",
    "/v1/audit",
    "List who changed what and when, in order, or the latest first.",
    ADMIN,
    {200: AuditPage},
    query=AuditQuery,
    problems=(400,),
    example="-G -d search=subscription -d limit=10",
)
async def list_audit(call: Call) -> Answer:
    """List changes."""
    query = call.query(AuditQuery)
    most = query.most()
    if query.after and not is_number(query.after):
        raise Problem(f"after is {query.after!r}: give what `next` was in the part before", 400)
    found = await asyncio.to_thread(
        call.tenant.store.audit.page, int(query.after or 0), most + 1, query.search, latest=query.latest
    )
    items = [
        AuditEntry(
            number=each.number, time=_moment(each.time), key=each.key, action=each.action, what=each.what
        )
        for each in found[:most]
    ]
    return Answer(AuditPage(items=items, next=str(items[-1].number) if len(found) > most else None))


class Health(msgspec.Struct, kw_only=True):
    """How the service is."""

    status: Literal["ok"]


@operation("GET", "/v1/health", "Tell whether the service runs.", READ, {200: Health}, public=True)
async def health(call: Call) -> Answer:
    """Tell whether it runs."""
    del call
    return Answer(Health(status="ok"))


@operation(
    "GET",
    "/v1/ready",
    "Tell whether the service takes requests.",
    READ,
    {200: Health},
    public=True,
    problems=(503,),
)
async def ready(call: Call) -> Answer:
    """Tell whether requests are taken."""
    if call.server.stopping:
        raise Busy("the service is stopping", 5, 503)
    return Answer(Health(status="ok"))


class Info(msgspec.Struct, kw_only=True):
    """The service and the tenant."""

    version: str
    tenant: str
    subscriptions: int
    consumers: int
    first: int
    """The cursor of the first event that is kept."""
    last: int
    bytes: int
    """What the events take."""
    waiting: int
    """Bytes of events that wait to be written."""
    uptime: float
    """Seconds."""
    scopes: list[str]
    """Of the key that asks."""


@operation(
    "GET", "/v1/info", "Read version, tenant, counts, and the cursors that are kept.", READ, {200: Info}
)
async def info(call: Call) -> Answer:
    """Read what there is."""
    tenant = call.tenant
    bounds, size = await asyncio.to_thread(lambda: (tenant.store.log.bounds(), tenant.store.log.size()))
    return Answer(
        Info(
            version=version("headgate"),
            tenant=tenant.name,
            subscriptions=len(tenant.revisions),
            consumers=len(tenant.names.consumers),
            first=bounds.first,
            last=bounds.last,
            bytes=size,
            waiting=tenant.waiting,
            uptime=round(time.time() - call.server.began, 3),
            scopes=sorted(call.key.scopes),
        )
    )
