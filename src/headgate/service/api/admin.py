"""Keys, quotas, who did what, how the service is, its metrics, what it takes of the disk, and snapshots."""

from __future__ import annotations

import asyncio
import datetime as dt
import shutil
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from headgate.core.versions.current import read_current
from headgate.service.api.operation import ADMIN, READ, Call, Items, Page, in_json, is_number, operation
from headgate.service.metrics import MEDIA_TYPE, written
from headgate.service.problems import Busy, NotFound, Problem
from headgate.service.resources import micros_of, moment_of
from headgate.service.settings import Quotas
from headgate.service.storage.audit import AuditEntry, noted
from headgate.service.storage.store import FILE

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.service.security.keys import Key


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


class KeyPage(Items[KeyResource], kw_only=True):
    """The keys of the tenant."""


@operation(
    "POST",
    "/v1/keys",
    ADMIN,
    status=201,
    problems=(507,),
    example=in_json('{"scopes": ["publish"], "note": "the shop"}'),
)
async def create_key(call: Call, body: KeyBody) -> KeyResource:
    """Make a key of this tenant; its text is shown once. The first key of a server has the scope admin."""
    expires = None if body.expires is None else micros_of(body.expires, "expires")
    keys = call.server.keys
    if not len(keys) and "admin" not in body.scopes:
        raise Problem("the first key needs the scope admin: without it nobody could make others", 422)
    key, text = await asyncio.to_thread(
        keys.add, call.key.tenant, body.scopes, expires=expires, note=body.note
    )
    await call.tenant.write(noted(call.key.id, "create key", f"{key.id}: {' '.join(sorted(key.scopes))}"))
    made = _resource(key)
    made.text = text
    return made


@operation("GET", "/v1/keys", ADMIN)
async def list_keys(call: Call, query: Page) -> KeyPage:
    """List the keys of this tenant."""
    keys, more = query.cut(
        [
            key
            for key in sorted(call.server.keys.listed(call.key.tenant), key=lambda each: each.id)
            if key.id > query.after and (query.search or "").casefold() in f"{key.id} {key.note}".casefold()
        ]
    )
    return KeyPage(items=[_resource(key) for key in keys], next=more)


@operation("DELETE", "/v1/keys/{id}", ADMIN, problems=(409, 507))
async def delete_key(call: Call) -> None:
    """Delete a key of this tenant: it counts no more."""
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


def _resource(key: Key) -> KeyResource:
    return KeyResource(
        id=key.id,
        scopes=sorted(key.scopes),
        created=moment_of(key.created),
        expires=None if key.expires is None else moment_of(key.expires),
        note=key.note,
    )


@operation("GET", "/v1/quotas", READ)
async def read_quotas(call: Call) -> Quotas:
    """Read what this tenant may use; only who runs the service sets it, by `headgate service quotas`."""
    return call.tenant.registry.quotas


class AuditPage(Items[AuditEntry], kw_only=True):
    """Some changes, in the order in which they were made."""


class AuditQuery(Page, forbid_unknown_fields=True, kw_only=True):
    """Which changes are wanted."""

    latest: bool = False
    """Whether the latest come first; `after` goes on to earlier ones then."""


@operation("GET", "/v1/audit", ADMIN, example="-G -d search=subscription -d limit=10")
async def list_audit(call: Call, query: AuditQuery) -> AuditPage:
    """List who changed what and when, in order, or the latest first."""
    if query.after and not is_number(query.after):
        raise Problem(f"after is {query.after!r}: give what `next` was in the part before", 400)
    items, more = query.cut(
        await asyncio.to_thread(
            call.tenant.store.audit.page,
            int(query.after or 0),
            query.limit + 1,
            query.search,
            latest=query.latest,
        ),
        lambda each: str(each.number),
    )
    return AuditPage(items=items, next=more)


class Health(msgspec.Struct, kw_only=True):
    """How the service is."""

    status: Literal["ok"]


@operation("GET", "/v1/health", READ, public=True)
async def health(call: Call) -> Health:
    """Tell whether the service runs."""
    del call
    return Health(status="ok")


@operation("GET", "/v1/ready", READ, public=True, problems=(503,))
async def ready(call: Call) -> Health:
    """Tell whether the service takes requests."""
    if call.server.stopping:
        raise Busy("the service is stopping", 5, 503)
    return Health(status="ok")


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


@operation("GET", "/v1/info", READ)
async def info(call: Call) -> Info:
    """Read version, tenant, counts, and the cursors that are kept."""
    tenant = call.tenant
    bounds, size = await asyncio.to_thread(lambda: (tenant.store.log.bounds(), tenant.store.log.size()))
    return Info(
        version=version("headgate"),
        tenant=tenant.name,
        subscriptions=len(tenant.registry.revisions),
        consumers=len(tenant.names.consumers),
        first=bounds.first,
        last=bounds.last,
        bytes=size,
        waiting=tenant.waiting,
        uptime=round(time.time() - call.server.began, 3),
        scopes=sorted(call.key.scopes),
    )


@operation("GET", "/v1/metrics", READ, answer_media=MEDIA_TYPE)
async def metrics(call: Call) -> bytes:
    """Read what is counted, as Prometheus reads it."""
    return await asyncio.to_thread(written, call.server, call.tenant)


class Storage(msgspec.Struct, kw_only=True):
    """What a tenant takes of the disk."""

    free: int
    """Bytes of the disk that are free."""
    spare: int
    """Bytes that stay free: below that events are refused."""
    database: int
    """Bytes of the file that has all: events, subscriptions, consumers, the graph."""
    index: int
    """Bytes of the snapshot of the index."""
    snapshot: dt.datetime | None
    """When that was written."""
    changes: int
    """Changes of subscriptions since: they are repeated when the service starts."""


@operation("GET", "/v1/storage", READ)
async def read_storage(call: Call) -> Storage:
    """Read what the tenant takes of the disk, when its index was saved, and what was changed since."""
    return await asyncio.to_thread(_storage, call)


def _storage(call: Call) -> Storage:
    store, settings = call.tenant.store, call.server.settings
    written_at, size = None, 0
    for folder in call.tenant.index.places(call.tenant.store.index):
        named = read_current(folder) if folder.exists() else None
        if named is not None:
            version = folder / named.name
            moment = dt.datetime.fromtimestamp(version.stat().st_mtime, dt.UTC)
            written_at = moment if written_at is None else min(written_at, moment)
            size += _bytes(version)
    return Storage(
        free=shutil.disk_usage(settings.place).free,
        spare=settings.spare,
        database=sum(each.stat().st_size for each in store.place.glob(f"{FILE}*")),
        index=size,
        snapshot=written_at,
        changes=store.subscriptions.count_changes(),
    )


def _bytes(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


@operation("POST", "/v1/snapshot", ADMIN, problems=(507,), example="-X POST")
async def write_snapshot(call: Call) -> Storage:
    """Write a snapshot of the index now, so that a start repeats no changes; events are matched meanwhile."""
    await call.tenant.save()
    await call.tenant.write(noted(call.key.id, "write snapshot", ""))
    return await asyncio.to_thread(_storage, call)
