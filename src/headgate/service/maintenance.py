"""What is done now and then while the service runs: events are forgotten, memory is given back.

Events by age and size, answers by age. A consumer that is behind is told what it missed.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import time
from typing import TYPE_CHECKING

from headgate.errors import HeadgateError
from headgate.service.storage.audit import KEPT, forget

if TYPE_CHECKING:
    from headgate.service.server import Server
    from headgate.service.storage.store import Store
    from headgate.service.tenant.tenant import Tenant


_STEP = 1_000
"""Blocks that are looked at together."""


def keep_until(store: Store, seconds: float, size: int) -> int:
    """Return the position before which events are to be forgotten.

    Older, or beyond the size, counted from the end.
    """
    now = time.time_ns() // 1_000
    by_age = store.log.at_time(now - int(seconds * 1e6))
    return max(by_age, _by_size(store, size))


def _by_size(store: Store, size: int) -> int:
    end, total = 1 << 62, 0
    while True:
        rows = store.database.rows(
            "SELECT first, length(block) FROM blocks WHERE first < ? ORDER BY first DESC LIMIT ?", end, _STEP
        )
        for first, length in rows:
            total += length
            if total > size:
                # The newest block stays, however large it is.
                return first + 1 if end != 1 << 62 else 0
            end = first
        if len(rows) < _STEP:
            return 0


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
        # With answers that are too old to be asked for again.
        answers = forget(time.time_ns() // 1_000 - KEPT * 1_000_000)
        await server.dispatchers[tenant.name].forget(before, log.trimming(before), answers)
    return before
