"""What is done now and then while the service runs: events are forgotten, memory is given back."""

from __future__ import annotations

import asyncio
import ctypes
import logging
from typing import TYPE_CHECKING

from headgate.errors import HeadgateError
from headgate.service.storage.retention import keep_until, trimming

if TYPE_CHECKING:
    from headgate.service.server import Server
    from headgate.service.tenant.tenant import Tenant

_LOG = logging.getLogger("headgate.service")
EVERY = 30.0
"""Seconds between two looks."""


async def maintain(server: Server, every: float = EVERY) -> None:
    """Look after all tenants that are open, until this is cancelled."""
    while True:
        await asyncio.sleep(every)
        for tenant in list(server.tenants.values()):
            try:
                await forget_old(server, tenant)
            except HeadgateError as error:
                _LOG.error("tenant %s: old events could not be removed: %s", tenant.name, error)
        if server.more.derived is not None:
            await asyncio.to_thread(give_back)


def give_back() -> None:
    """Give free memory back to the system: the C library keeps what lies between parts that are used.

    Whoever allocates waits meanwhile: a matter of microseconds where there is little, as at a site.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


async def forget_old(server: Server, tenant: Tenant) -> int:
    """Forget events of a tenant that are too old or too many; returns the first position that is kept."""
    settings = server.settings
    before = await asyncio.to_thread(keep_until, tenant.store, settings.retention, settings.retention_bytes)
    log = tenant.store.log
    begin = next(log.read(log.bounds().first, 1), None)
    if begin is not None and before > begin.first:
        await server.dispatchers[tenant.name].forget(before, *trimming(tenant.store.log, before))
    return before
