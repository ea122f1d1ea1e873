"""Operations of the API, asked in process as over the wire, and shown as a command or a program."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import msgspec
from starlette.requests import Request

from headgate.core.event import JSON
from headgate.errors import HeadgateError
from headgate.service.api.operation import OPERATIONS, Answer, Call
from headgate.service.problems import problem_of
from headgate.service.security.keys import check_scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.service.api.operation import Operation
    from headgate.service.security.keys import Key
    from headgate.service.server import Server

_KEY = "HEADGATE_KEY"


@dataclass(frozen=True)
class Asked:
    """A request as somebody could send it."""

    method: str
    path: str
    """With what stands after the question mark."""
    body: Any = None

    def curl(self, address: str) -> str:
        """Write it as a command; the key is in the environment.

        >>> print(Asked("GET", "/v1/info").curl("http://localhost:8080"))
        curl -H "Authorization: Bearer $HEADGATE_KEY" http://localhost:8080/v1/info
        """
        parts = ["curl"]
        if self.method != "GET":
            parts.append(f"-X {self.method}")
        parts.append(f'-H "Authorization: Bearer ${_KEY}"')
        if self.body is not None:
            parts.append(
                f"-H 'Content-Type: {JSON}' -d {shlex.quote(msgspec.json.encode(self.body).decode())}"
            )
        parts.append(shlex.quote(address + self.path))
        return " ".join(parts)

    def python(self, address: str) -> str:
        """Write it as a program; the client finds the key in the environment.

        >>> Asked("GET", "/v1/info").python("http://localhost:8080").splitlines()[-1].strip()
        "print(client.ask('GET', '/v1/info'))"
        """
        said = "" if self.body is None else f", {msgspec.json.decode(msgspec.json.encode(self.body))!r}"
        return (
            "from headgate import Client\n\n"
            f"with Client({address!r}) as client:\n"
            f"    print(client.ask({self.method!r}, {self.path!r}{said}))"
        )


class Asker:
    """Asks operations for one key."""

    def __init__(self, server: Server, key: Key) -> None:
        self._server = server
        self._key = key
        self.asked: list[Asked] = []
        """What was asked, in order."""

    async def answer(
        self,
        name: str,
        path: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask an operation by its name; refuses what the key does not allow."""
        operation = _operation(name)
        given = {each: str(value) for each, value in (path or {}).items()}
        after = urlencode({each: value for each, value in (query or {}).items() if value is not None})
        place = operation.path
        for each, value in given.items():
            place = place.replace(f"{{{each}}}", quote(value, safe=""))
        self.asked.append(Asked(operation.method, place + (f"?{after}" if after else ""), body))
        check_scope(self._key, operation.scope)
        tenant = await self._server.tenant(self._key.tenant)
        named = [(b"content-type", JSON.encode())]
        named += [(each.casefold().encode(), value.encode()) for each, value in (headers or {}).items()]
        request = Request(
            {
                "type": "http",
                "method": operation.method,
                "path": place,
                "query_string": after.encode(),
                "headers": named,
                "path_params": given,
                "scheme": "http",
                "server": ("localhost", 80),
            }
        )
        text = b"" if body is None else msgspec.json.encode(body)
        began, status = time.perf_counter(), 500
        try:
            found = await operation.handler(Call(self._server, tenant, self._key, request, text))
            assert isinstance(found, Answer)
            status = found.status
        except HeadgateError as error:
            status = problem_of(error).status
            raise
        finally:
            tenant.counters.requested(name, status, time.perf_counter() - began)
        return found


_BY_NAME: dict[str, Operation] = {}


def _operation(name: str) -> Operation:
    if name not in _BY_NAME:
        _BY_NAME.update({each.name: each for each in OPERATIONS})
    return _BY_NAME[name]
