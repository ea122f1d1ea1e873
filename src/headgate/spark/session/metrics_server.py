"""A small HTTP server for one page of text: /metrics, for Prometheus to scrape."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple

from headgate.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATH = "/metrics"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE = 10.0
"""Seconds that a client may take to send its request: one that hangs must not hold a thread for ever."""


class Served(NamedTuple):
    """Where the metrics are."""

    url: str
    port: int


@contextmanager
def serving(text: Callable[[], str], port: int, host: str) -> Iterator[Served]:
    """Serve what `text` returns while the body runs, in a thread that holds nothing up."""

    class Handler(_Handler):
        page = staticmethod(text)

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise MachineError(
            f"metrics cannot be served at {host}:{port}: {why}; choose another port, or 0 for a free one"
        ) from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        real = int(server.server_address[1])
        yield Served(f"http://{host}:{real}{PATH}", real)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE
    page: Callable[[], str]

    def do_GET(self) -> None:
        """Send the page, or say that there is no other."""
        self._send(body=True)

    def do_HEAD(self) -> None:
        """Send what would come before the page."""
        self._send(body=False)

    def _send(self, *, body: bool) -> None:
        found = self.path.partition("?")[0] == PATH
        text = self.page() if found else f"nothing is here: the metrics are at {PATH}\n"
        data = text.encode("utf-8", "replace")
        self.send_response(HTTPStatus.OK if found else HTTPStatus.NOT_FOUND)
        self.send_header("Content-Type", CONTENT_TYPE if found else "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: a scrape every few seconds is not news."""
