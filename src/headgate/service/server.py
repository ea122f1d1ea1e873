"""The server: its settings and keys, the tenants that are open, and what may be taken of each now."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import re
import shutil
import time
from typing import TYPE_CHECKING

import msgspec

from headgate.errors import HeadgateError, StorageError
from headgate.service.delivery.dispatcher import Dispatcher
from headgate.service.problems import Busy, NotFound, Problem
from headgate.service.security.keys import DEFAULT_TENANT, Keys
from headgate.service.storage.audit import noted
from headgate.service.storage.store import is_called
from headgate.service.tenant.tenant import NO_QUOTAS, Tenant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from headgate.service.api.operation import Operation
    from headgate.service.delivery.webhook import Sender
    from headgate.service.settings import Quotas, ServiceSettings


class Extension:
    """More operations, and something that runs beside them; this one has nothing."""

    operations: Sequence[Operation] = ()
    derived: str | None = None
    """A tenant whose events can be had again from elsewhere: its writes are not forced to disk one by one."""

    def routes(self, server: Server) -> Sequence[BaseRoute]:
        """List what is answered besides operations of the API."""
        del server
        return ()

    async def failed(self, request: Request, problem: Problem) -> Response | None:
        """Answer a request at which the service failed; None leaves it to the API."""
        del request, problem
        return None

    def end_listeners(self) -> None:
        """Have who listens be told that the service stops."""

    async def start(self, server: Server) -> None:
        """Begin, when the server is about to answer."""

    async def close(self) -> None:
        """End, before the tenants are closed."""


_LOG = logging.getLogger("headgate.service")
FORMAT = "headgate service data, format 1\n"
_TENANT = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
_PATIENCE = 1.0
"""Seconds that another process has to let the data go."""
_LOOK = 2.0
"""Seconds between looks at how much of the disk is free."""


class Server:
    """One process over one data directory."""

    def __init__(self, settings: ServiceSettings, more: Extension | None = None) -> None:
        self.settings = settings
        self.more = more or Extension()
        self._lock = _take(settings.place)
        self.keys = Keys(settings.place)
        self.tenants: dict[str, Tenant] = {}
        self.dispatchers: dict[str, Dispatcher] = {}
        """What delivers the events of each tenant that is open."""
        self._sender: Sender | None = None
        self._opening: dict[str, asyncio.Task[Tenant]] = {}
        self.quotas: dict[str, Quotas] = {}
        """What tenants that are open may use."""
        self._asked: dict[str, Quotas] = {}
        self._buckets: dict[str, tuple[float, float, float]] = {}
        self._looked = 0.0
        self._free = 1 << 62
        self.began = time.time()
        self.stopping = False

    # Tenants

    async def tenant(self, name: str) -> Tenant:
        """Return a tenant; it is opened when it is first asked for."""
        tenant = self.tenants.get(name)
        if tenant is not None:
            if self.keys.quotas.get(name, NO_QUOTAS) is not self._asked.get(name):
                await self._requote(tenant)
            return tenant
        if self.stopping:
            raise Busy("the service is stopping", 5, 503)
        task = self._opening.get(name)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._open(name))
            self._opening[name] = task
        try:
            return await asyncio.shield(task)
        finally:
            if task.done():
                self._opening.pop(name, None)

    async def _open(self, name: str) -> Tenant:
        if not _TENANT.fullmatch(name):
            raise NotFound(f"{name!r} is no name of a tenant: use small letters, digits, '.', '_' and '-'")
        began = time.monotonic()
        quotas = self.quotas[name] = self._asked[name] = self.keys.quotas.get(name, NO_QUOTAS)
        folder = self.settings.place / "tenants" / name
        tenant = await Tenant.open(name, folder, quotas, forced=name != self.more.derived)
        self.dispatchers[name] = Dispatcher(tenant, self.settings, self.sender)
        self.tenants[name] = tenant
        _LOG.info(
            "tenant %s is open: %s subscriptions, %.1f s",
            name,
            f"{len(tenant.names):,}",
            time.monotonic() - began,
        )
        return tenant

    async def open_known(self) -> None:
        """Open the tenant of those who have no key, if it is there."""
        if (self.settings.place / "tenants" / DEFAULT_TENANT).exists():
            await self.tenant(DEFAULT_TENANT)

    async def open_called(self) -> None:
        """Open the tenants that have webhooks: what they did not get before goes on to be sent."""
        for folder in sorted((self.settings.place / "tenants").glob("*")):
            if self.stopping or folder.name in self.tenants:
                continue
            try:
                if await asyncio.to_thread(is_called, folder):
                    await self.tenant(folder.name)
            except HeadgateError as error:
                _LOG.error("tenant %s could not be opened: %s", folder.name, error)

    async def _requote(self, tenant: Tenant) -> None:
        """Have the quotas that whoever runs the service has set since."""
        name = tenant.name
        before, wanted = self._asked.get(name), self.keys.quotas.get(name, NO_QUOTAS)
        # At once: requests that come meanwhile do not do the same.
        self._asked[name] = wanted
        if wanted == before:
            return
        note = noted("", "set quotas", msgspec.json.encode(wanted).decode())
        granted = wanted
        try:
            try:
                await tenant.requote(granted, [note])
            except StorageError:
                raise
            except HeadgateError as error:
                # Only the index can refuse it, built without leave for filters that are there.
                _LOG.warning("tenant %s: filters that are there stay allowed: %s", name, error)
                granted = msgspec.structs.replace(wanted, unindexed=True)
                await tenant.requote(granted, [note])
        except HeadgateError as error:
            _LOG.error("tenant %s: its quotas could not be set: %s", name, error)
            self._asked.pop(name, None)
            return
        self.quotas[name] = granted
        self._buckets.pop(name, None)

    async def close(self) -> None:
        """Finish what waits in each tenant, and close."""
        self.stopping = True
        for dispatcher in self.dispatchers.values():
            await dispatcher.close()
        self.dispatchers.clear()
        if self._sender is not None:
            await self._sender.close()
        for tenant in list(self.tenants.values()):
            await tenant.close()
        self.tenants.clear()
        self.release()

    def release(self) -> None:
        """Let another process have the data."""
        self.keys.close()
        os.close(self._lock)

    def sender(self) -> Sender:
        """Return the client that calls webhooks, one for all tenants."""
        if self._sender is None:
            from headgate.service.delivery.webhook import Sender

            self._sender = Sender(private=self.settings.private_webhooks)
        return self._sender

    def end_listeners(self) -> None:
        """Have all who listen be told that the service stops; they would hold it up."""
        self.more.end_listeners()
        for dispatcher in self.dispatchers.values():
            dispatcher.end_listeners()

    # What may be taken now

    def admit(self, tenant: Tenant, events: int, size: int) -> None:
        """Refuse events that could not be written soon, or that a tenant has no quota for."""
        settings = self.settings
        if tenant.waiting + size > settings.waiting and tenant.waiting:
            raise Busy(
                f"{tenant.waiting >> 20} MiB of events wait to be written, and "
                f"{settings.waiting >> 20} are allowed: "
                "send them again later"
            )
        now = time.monotonic()
        if now - self._looked > _LOOK:
            self._looked, self._free = now, shutil.disk_usage(settings.place).free
        if self._free < settings.spare:
            raise Busy(
                f"the disk has {self._free >> 20} MiB left, and {settings.spare >> 20} stay free: "
                "free some space, or "
                "keep events for a shorter time",
                30,
                507,
            )
        self._spend(tenant.name, events, size, now)

    def _spend(self, name: str, events: int, size: int, now: float) -> None:
        quotas = self.quotas.get(name)
        if quotas is None or (quotas.events_a_second is None and quotas.bytes_a_second is None):
            return
        some, many = quotas.events_a_second or float("inf"), quotas.bytes_a_second or float("inf")
        left, room, last = self._buckets.get(name, (some, many, now))
        # A second's worth may come at once.
        left, room = min(some, left + (now - last) * some), min(many, room + (now - last) * many)
        if left <= 0 or room <= 0:
            self._buckets[name] = left, room, now
            lacking, rate, unit = (left, some, "events") if left <= 0 else (room, many, "bytes")
            raise Busy(f"the quota is {rate:,.0f} {unit} a second, and it is used up", 1 - lacking / rate)
        self._buckets[name] = left - events, room - size, now


def check_format(data: Path) -> None:
    """Refuse a directory that is none of the service, or of a version that this one cannot read."""
    try:
        written = (data / "format").read_text("utf-8", "replace")
    except OSError:
        raise StorageError(
            f"{data} is no data directory of the service: give the one of `headgate serve --data`"
        ) from None
    if written != FORMAT:
        raise StorageError(
            f"{data} has the format {written.strip()[:60]!r}, and this version of Headgate reads "
            f"{FORMAT.strip()!r}: use the Headgate that wrote it, or a later one"
        )


def make_place(data: Path) -> None:
    """Make a data directory, or make sure that it is one that this version can read."""
    note = data / "format"
    try:
        data.mkdir(parents=True, exist_ok=True)
        if note.exists():
            check_format(data)
        elif any(data.iterdir()):
            raise StorageError(
                f"{data} has other files in it: give an empty directory, or one of the service"
            )
        else:
            note.write_text(FORMAT, "utf-8")
    except OSError as error:
        raise StorageError(f"{data} cannot be used: {error.strerror}") from None


def _take(data: Path) -> int:
    """Make sure that no other process has the data."""
    make_place(data)
    try:
        lock = os.open(data / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StorageError(f"{data} cannot be used: {error.strerror}") from None
    # Of a process that was killed a thread may be there a moment longer.
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() < deadline:
                time.sleep(0.02)
                continue
            os.close(lock)
            raise StorageError(
                f"{data} is used by another process: stop that one, or give another directory"
            ) from None
        return lock
