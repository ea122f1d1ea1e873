"""A server on loopback, in a thread of this process, and a client that says what was answered."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import uvicorn

from headgate.service.api.app import make_app
from headgate.service.security.protocol import LimitedProtocol
from headgate.service.server import Server
from headgate.service.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


class Got(NamedTuple):
    """What was answered."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        """Return the body."""
        return json.loads(self.raw)

    @property
    def detail(self) -> str:
        """Return what a problem says; it must be one."""
        assert self.headers["content-type"] == "application/problem+json", self
        found = self.json
        assert found["status"] == self.status
        assert "\n" not in found["detail"]
        return str(found["detail"])


class Api:
    """Asks a server."""

    def __init__(self, port: int, server: Server, key: str | None = None) -> None:
        self.port = port
        self.server = server
        self.key = key

    def __call__(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, **headers: str
    ) -> Got:
        """Ask; what is no bytes is sent as JSON. Underscores in names of headers are dashes."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            given.setdefault("Content-Type", "application/json")
        if (key := key or self.key) is not None:
            given["Authorization"] = f"Bearer {key}"
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            line.request(method, path, body, given)
            got = line.getresponse()
            return Got(got.status, {name.lower(): value for name, value in got.getheaders()}, got.read())
        finally:
            line.close()

    def publish(self, *events: Any) -> list[list[str]]:
        """Publish events; returns who matched each."""
        got = self("POST", "/v1/events?matches=true", list(events))
        assert got.status == 200, got
        return [each.get("matches", []) for each in got.json["events"]]


@contextmanager
def serving(place: Path, **settings: Any) -> Iterator[Api]:
    """Run a server until this is left."""
    server = Server(ServiceSettings(str(place), **settings))
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        make_app(server), http=LimitedProtocol, log_level="warning", access_log=False, lifespan="on"
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, args=([listening],), daemon=True)
    thread.start()
    while not running.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield Api(listening.getsockname()[1], server)
    finally:
        running.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
