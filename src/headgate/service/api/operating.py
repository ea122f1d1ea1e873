"""What those who run the service ask: its metrics, what it takes of the disk, and a snapshot of the index."""

from __future__ import annotations

import asyncio
import datetime as dt
import shutil
from typing import TYPE_CHECKING

import msgspec

from headgate.core.versions.current import read_current
from headgate.service.api.operation import ADMIN, READ, Answer, Call, operation
from headgate.service.metrics import MEDIA_TYPE, written
from headgate.service.storage.audit import noted
from headgate.service.storage.store import FILE

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.service.tenant.tenant import Tenant


@operation(
    "GET",
    "/v1/metrics",
    "Read what is counted, as Prometheus reads it.",
    READ,
    {200: bytes},
    answer_media=MEDIA_TYPE,
)
async def metrics(call: Call) -> Answer:
    """Read what is counted."""
    text = await asyncio.to_thread(written, call.server, call.tenant)
    return Answer(text, media_type=MEDIA_TYPE)


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


@operation(
    "GET",
    "/v1/storage",
    "Read what the tenant takes of the disk, when its index was saved, and what was changed since.",
    READ,
    {200: Storage},
)
async def read_storage(call: Call) -> Answer:
    """Read what is on the disk."""
    return Answer(await asyncio.to_thread(_storage, call))


def _storage(call: Call) -> Storage:
    store, settings = call.tenant.store, call.server.settings
    written_at, size = None, 0
    for place in call.tenant.index_places():
        named = read_current(place) if place.exists() else None
        if named is not None:
            version = place / named.name
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


def _bytes(place: Path) -> int:
    return sum(each.stat().st_size for each in place.rglob("*") if each.is_file())


@operation(
    "POST",
    "/v1/snapshot",
    "Write a snapshot of the index now, so that a start repeats no changes; events are matched meanwhile.",
    ADMIN,
    {200: Storage},
    problems=(507,),
    example="-X POST",
)
async def write_snapshot(call: Call) -> Answer:
    """Write a snapshot."""
    tenant: Tenant = call.tenant
    await tenant.save()
    await tenant.write(noted(call.key.id, "write snapshot", ""))
    return Answer(await asyncio.to_thread(_storage, call))
