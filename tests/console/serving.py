"""Servers with a console, in threads of the tests, and a visitor who uses them without a browser."""

from __future__ import annotations

import http.client
import http.server
import re
import socket
import threading
import time
from contextlib import contextmanager
from html import unescape
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from headgate import Client
from headgate.console.extension import Console
from headgate.service.running import Running
from headgate.service.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_PATIENCE = 30.0
_TOKEN = re.compile(r'name="token" value="([0-9a-f]+)"')


class Served:
    """A server that runs."""

    def __init__(self, running: Running, console: Console) -> None:
        self.running = running
        self.console = console
        self.address = running.address

    def client(self, key: str | None = None) -> Client:
        """Return a client of its API."""
        return Client(self.address, key=key)

    def visitor(self) -> Visitor:
        """Return somebody who uses its console."""
        return Visitor(self.address)


def until(test: Callable[[], Any]) -> Any:
    """Wait for something."""
    end = time.monotonic() + _PATIENCE
    while not (found := test()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return found


@contextmanager
def serving(data: Path, console: Console | None = None, **settings: Any) -> Iterator[Served]:
    """Run a server with a console in a thread."""
    shown = console or Console()
    running = Running(ServiceSettings(data=str(data), port=0, **settings), shown)
    ready = threading.Event()
    thread = threading.Thread(target=lambda: running.run(lambda _: ready.set()), daemon=True)
    thread.start()
    assert ready.wait(_PATIENCE), "the server did not start"
    try:
        yield Served(running, shown)
    finally:
        running.stop()
        thread.join(_PATIENCE)
        assert not thread.is_alive(), "the server did not stop"


class Seen(NamedTuple):
    """What a server answered."""

    status: int
    headers: http.client.HTTPMessage
    body: str

    @property
    def text(self) -> str:
        """Return what people read of it."""
        bare = re.sub(r"<(script|style)\b.*?</\1>", " ", self.body, flags=re.DOTALL)
        return " ".join(unescape(re.sub(r"<[^>]+>", " ", bare)).split())


class Visitor:
    """Somebody with cookies, who follows redirects, and sends forms of the page that was last shown."""

    def __init__(self, address: str) -> None:
        self.host = urlsplit(address).netloc
        self.cookies: dict[str, str] = {}
        self.token = ""
        self.place = ""

    def get(self, path: str, **headers: str) -> Seen:
        """Look at a page."""
        return self._ask("GET", path, None, headers)

    def post(self, path: str, form: dict[str, Any] | None = None, **headers: str) -> Seen:
        """Send a form, as the pages' own do."""
        given = {"token": self.token, **(form or {})}
        own = {"Origin": f"http://{self.host}", "Sec-Fetch-Site": "same-origin"}
        return self._ask("POST", path, given, {**own, **headers})

    def _ask(self, method: str, path: str, form: dict[str, Any] | None, headers: dict[str, str]) -> Seen:
        for _ in range(5):
            seen = self.once(method, path, form, headers)
            if seen.status not in {303, 307}:
                self.place = path
                found = _TOKEN.search(seen.body)
                self.token = found[1] if found else self.token
                return seen
            method, path, form = "GET", seen.headers["Location"], None
        raise AssertionError(f"{path} leads in circles")

    def once(
        self,
        method: str,
        path: str,
        form: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Seen:
        """Ask without following redirects."""
        connection = http.client.HTTPConnection(self.host, timeout=_PATIENCE)
        named = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
        if self.cookies:
            named["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        body = None
        if form is not None:
            body = urlencode(form)
            named["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        text = answer.read().decode()
        for cookie in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value.strip('"')
        connection.close()
        return Seen(answer.status, answer.headers, text)


@contextmanager
def closed_port() -> Iterator[int]:
    """Return a port of this machine at which nobody listens, and nobody else can begin to."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@contextmanager
def answering(fails: threading.Event | None = None) -> Iterator[tuple[int, threading.Event]]:
    """Run an endpoint of webhooks that takes everything, unless it fails; says when it was asked."""
    taken = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(503 if fails is not None and fails.is_set() else 204)
            self.end_headers()
            taken.set()

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join(_PATIENCE)
