"""Calling webhooks: one client and one pool of connections for all of them."""

from __future__ import annotations

import asyncio
import email.utils
import os
import socket
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
from aiohttp.abc import AbstractResolver

from headgate.service.security.addresses import AddressError, check_address, check_host, check_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp.abc import ResolveResult

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
                said = await answer.content.read(_READ)
                reason = None if 200 <= status < 300 else _why(status, said)
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


def _why(status: int, said: bytes) -> str:
    if 300 <= status < 400:
        return f"the answer was {status}: redirects are not followed; give the URL that they lead to"
    text = " ".join(said.decode("utf-8", "replace").split())[:_SHOWN]
    return f"the answer was {status}" + (f": {text}" if text else "")


def _after(given: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which has seconds or a date."""
    if given is None:
        return None
    if given.isascii() and given.strip().isdigit():
        return float(given.strip()[:9])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(given).timestamp() - time.time())
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
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)
        results: list[ResolveResult] = []
        for kind, _, proto, _, place in found:
            address = str(place[0])
            check_address(address, private=self._private)
            results.append(
                {
                    "hostname": host,
                    "host": address,
                    "port": int(place[1]),
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
    family, kind, proto, _, place = info
    check_address(str(place[0]).partition("%")[0], private=private)
    found = socket.socket(family, kind, proto)
    found.setblocking(False)
    return found
