"""What time asks for: subscriptions that end, and digests of what was held back."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import time
import uuid
from typing import TYPE_CHECKING

import msgspec

from headgate.errors import HeadgateError
from headgate.service.envelope import SPECVERSION
from headgate.service.tenant.matcher import Told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headgate.service.tenant.limits import Digest
    from headgate.service.tenant.tenant import Tenant

_LOG = logging.getLogger("headgate.service")
DIGEST = "headgate.digest"
SOURCE = "/headgate"
_LOOK = 0.25
"""Seconds between looks at what is due."""


async def run_timers(tenant: Tenant) -> None:
    """Do what is due, until this is cancelled."""
    while True:
        await asyncio.sleep(_LOOK)
        try:
            end = tenant.next_end
            if end is not None and end <= time.time_ns() // 1_000:
                await tenant.end_due()
            if tenant.limits.digests:
                await tenant.tell_due()
        except HeadgateError as error:
            _LOG.error("tenant %s: what is due could not be done: %s", tenant.name, error)
            await asyncio.sleep(5)


def digests_of(due: Iterable[Digest], ids_of: Callable[[Iterable[int]], list[str]]) -> list[Told]:
    """Make the events that tell subscriptions of what was held back from them."""
    found = []
    for digest in due:
        names = ids_of([digest.subscription])
        if not names:
            continue
        identity = str(uuid.uuid4())
        began, ended = _moment(digest.began), _moment(digest.ended)
        data = {"subscription": names[0], "held": digest.held, "from": began, "to": ended}
        fields = {
            "specversion": SPECVERSION,
            "id": identity,
            "source": SOURCE,
            "type": DIGEST,
            "time": _moment(time.time_ns() // 1_000),
            "subject": names[0],
            "datacontenttype": "application/json",
            "data": data,
        }
        found.append(Told(identity, msgspec.json.encode(fields), [digest.subscription]))
    return found


def _moment(micros: int) -> str:
    return dt.datetime.fromtimestamp(micros / 1e6, dt.UTC).isoformat().replace("+00:00", "Z")
