"""A webhook: delivers a consumer's events to its URL, one after another or some at once.

    attempt ─► 2xx: done      410: the consumer is disabled      otherwise: again after a wait, or a dead
    letter at last

The cursor moves when an event and all before it are done. Events are delivered at least once: what was
under way when the
service stopped is sent again, with the same `webhook-id`.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import logging
import os
import socket
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
from aiohttp.abc import AbstractResolver

from headgate.core import __version__
from headgate.errors import HeadgateError
from headgate.service.delivery.hub import Closed
from headgate.service.delivery.state import wait_of
from headgate.service.envelope import STRUCTURED
from headgate.service.security.webhooks import (
    AddressError,
    check_address,
    check_host,
    check_url,
    headers_of,
    message_id,
)
from headgate.service.storage.consumers import Attempt, DeadLetter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp.abc import ResolveResult

    from headgate.service.delivery.dispatcher import Dispatcher
    from headgate.service.delivery.state import LiveConsumer
    from headgate.service.tenant.names import Delivery


_CONNECTIONS = 256
_A_HOST = 64
_READ = 1_024
"""Bytes of an answer that are looked at."""
_SHOWN = 200


class Outcome(NamedTuple):
    """What became of an attempt."""

    status: int | None
    milliseconds: int
    reason: str | None
    """Why it failed; None if it did not."""
    after: float | None = None
    """Seconds after which the endpoint asks to be tried again."""


class Sender:
    """The client that calls webhooks."""

    def __init__(self, *, private: bool) -> None:
        self._private = private
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=_CONNECTIONS,
                limit_per_host=_A_HOST,
                resolver=CheckedResolver(private=private),
                # A name is resolved for each connection, and what was resolved is checked then.
                use_dns_cache=False,
                socket_factory=partial(make_socket, private=private),
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
        )

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> Outcome:
        """Post a body once; redirects are not followed."""
        began = time.monotonic()
        status, after = None, None
        try:
            checked = check_url(url, private=self._private)
            async with self._session.post(
                checked,
                data=body,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=timeout),
            ) as answer:
                status, after = answer.status, _after(answer.headers.get("Retry-After"))
                read = await answer.content.read(_READ)
                reason = None if 200 <= status < 300 else _why(status, read)
        except AddressError as error:
            reason = str(error)
        except TimeoutError:
            reason = f"there was no answer within {timeout:g} s"
        except aiohttp.ClientConnectorError as error:
            cause = os.strerror(error.os_error.errno) if error.os_error.errno else str(error.os_error)
            reason = f"no connection to {error.host}:{error.port}: {cause}"[:_SHOWN]
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"[:_SHOWN]
        return Outcome(status, round(1_000 * (time.monotonic() - began)), reason, after)

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()


def _why(status: int, body: bytes) -> str:
    if 300 <= status < 400:
        return f"the answer was {status}: redirects are not followed; give the URL that they lead to"
    text = " ".join(body.decode("utf-8", "replace").split())[:_SHOWN]
    return f"the answer was {status}" + (f": {text}" if text else "")


def _after(header: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which has seconds or a date."""
    if header is None:
        return None
    if header.isascii() and header.strip().isdigit():
        return float(header.strip()[:9])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


class CheckedResolver(AbstractResolver):
    """Resolves a name, and refuses it if any of its addresses is one where webhooks do not go."""

    def __init__(self, *, private: bool = False) -> None:
        self._private = private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Resolve a name."""
        check_host(host, private=self._private)
        loop = asyncio.get_running_loop()
        infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)
        results: list[ResolveResult] = []
        for kind, _, proto, _, sockaddr in infos:
            address = str(sockaddr[0])
            check_address(address, private=self._private)
            results.append(
                {
                    "hostname": host,
                    "host": address,
                    "port": int(sockaddr[1]),
                    "family": kind,
                    "proto": proto,
                    "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                }
            )
        if not results:
            raise OSError(f"{host} has no address")
        return results

    async def close(self) -> None:
        """Nothing is held."""


def make_socket(info: Any, *, private: bool = False) -> socket.socket:
    """Make the socket of a connection; refuses one to an address where webhooks do not go."""
    family, kind, proto, _, sockaddr = info
    check_address(str(sockaddr[0]).partition("%")[0], private=private)
    connection = socket.socket(family, kind, proto)
    connection.setblocking(False)
    return connection


_LOG = logging.getLogger("headgate.service")
_LOOK = 1.0
"""Seconds between two looks at a circuit that is open."""
_GONE = 410
_BATCH = 256
_LISTED = 4_096
"""Bytes of ids that the header of subscriptions has, at most."""
_AGENT = f"Headgate/{__version__}"


class Webhook:
    """The deliveries to one URL, as a task."""

    def __init__(self, dispatcher: Dispatcher, state: LiveConsumer) -> None:
        self._dispatcher = dispatcher
        self._state = state
        self._feed = dispatcher.hub.feed(state.number, state.cursor)
        self._under_way: dict[int, None] = {}
        self._begun = 0
        self._last = 0
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """End; what is under way is sent again by another one."""
        self._feed.close("the webhook was stopped")
        self._task.cancel()

    async def _run(self) -> None:
        state = self._state
        try:
            async with asyncio.TaskGroup() as group:
                room = asyncio.Semaphore(state.said.parallel)
                while True:
                    for delivery in await self._feed.next(_BATCH):
                        if state.said.order == "ordered":
                            self._begin(delivery)
                            await self._deliver(delivery)
                            del self._under_way[delivery.position]
                            self._dispatcher.journal.advance(state, delivery.position)
                        else:
                            await room.acquire()
                            self._begin(delivery)
                            group.create_task(self._beside(delivery, room))
        except* Closed:
            pass
        except* HeadgateError as errors:
            _LOG.error("consumer %s: its webhook stopped: %s", state.id, errors.exceptions[0])
        finally:
            self._feed.close("the webhook was stopped")

    def _begin(self, delivery: Delivery) -> None:
        self._begun = delivery.position
        self._under_way[delivery.position] = None

    def is_done(self, position: int) -> bool:
        """Tell whether an event was delivered or given up, though the cursor may stand before it."""
        return position <= self._begun and position not in self._under_way

    async def _beside(self, delivery: Delivery, room: asyncio.Semaphore) -> None:
        """Deliver one of some at once; the cursor moves up to the first that is not done."""
        try:
            await self._deliver(delivery)
        finally:
            room.release()
        del self._under_way[delivery.position]
        first = next(iter(self._under_way), None)
        # What is begun later stands after what is under way, or after this if nothing is.
        self._last = max(self._last, delivery.position)
        self._dispatcher.journal.advance(self._state, self._last if first is None else first - 1)

    async def _deliver(self, delivery: Delivery) -> None:
        """Deliver an event, whatever the number of attempts, or bury it."""
        state, journal = self._state, self._dispatcher.journal
        attempts = 0
        while True:
            outcome = await attempt(self._dispatcher, state, delivery)
            attempts += 1
            if outcome.reason is None:
                return
            if outcome.status == _GONE:
                self._dispatcher.disable(state, "the endpoint answered 410 Gone")
                raise Closed("the endpoint is gone")
            if attempts >= state.said.attempts:
                self._dispatcher.counts["dead letters"] += 1
                now = time.time_ns() // 1_000
                journal.bury(DeadLetter(state.id, delivery.position, now, attempts, outcome.reason))
                _LOG.warning(
                    "consumer %s: event %d is a dead letter after %d attempts: %s",
                    state.id, delivery.position, attempts, outcome.reason,
                )  # fmt: skip
                return
            await asyncio.sleep(wait_of(self._dispatcher.settings.retry, attempts, outcome.after))


async def attempt(dispatcher: Dispatcher, state: LiveConsumer, delivery: Delivery) -> Outcome:
    """Try to deliver an event once, when the circuit lets it through, and note what became of it."""
    breaker = state.breaker
    while wait := breaker.wait():
        # Somebody may change the consumer meanwhile, which closes the circuit.
        await asyncio.sleep(min(wait, _LOOK))
    try:
        outcome = await post(dispatcher, state, delivery)
    except BaseException:
        breaker.given_up()
        raise
    now = time.time_ns() // 1_000
    dispatcher.journal.note(
        Attempt(state.id, delivery.position, now, outcome.status, outcome.milliseconds, outcome.reason)
    )
    state.reason = outcome.reason
    if outcome.reason is None:
        dispatcher.counts["webhook"] += 1
        breaker.succeeded()
    else:
        dispatcher.counts["webhook failures"] += 1
        breaker.failed()
    return outcome


async def post(dispatcher: Dispatcher, state: LiveConsumer, delivery: Delivery) -> Outcome:
    """Sign an event, and post it."""
    identity = message_id(dispatcher.tenant.name, state.id, delivery.position)
    headers = {
        "content-type": f"{STRUCTURED}; charset=utf-8",
        "user-agent": _AGENT,
        "headgate-cursor": str(delivery.position),
        **_listed(delivery.subscriptions),
        **headers_of(state.key, identity, int(time.time()), delivery.text),
    }
    return await dispatcher.sender.post(str(state.said.url), headers, delivery.text, state.said.timeout)


def _listed(subscriptions: list[str]) -> dict[str, str]:
    """Name the subscriptions in a header, as many as it has room for."""
    size, shown = 2, []
    for each in subscriptions:
        text = json.dumps(each)
        size += len(text) + 1
        if size > _LISTED:
            break
        shown.append(text)
    headers = {"headgate-subscriptions": f"[{','.join(shown)}]"}
    if len(shown) < len(subscriptions):
        headers["headgate-subscriptions-more"] = str(len(subscriptions) - len(shown))
    return headers
