"""Running the service: one process, its log, TLS, signals, and an end that loses nothing."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec
import uvicorn

from headgate.errors import MachineError, StorageError, TableError
from headgate.service.api.app import make_app
from headgate.service.maintenance import maintain
from headgate.service.security.keys import is_loopback
from headgate.service.security.protocol import LimitedProtocol
from headgate.service.server import Server
from headgate.service.settings import LINES

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.service.server import Extension
    from headgate.service.settings import ServiceSettings

_LOG = logging.getLogger("headgate.service")
_GRACE = 20
"""Seconds that requests have to end when the service is stopped."""
_HEADERS = 32 << 10
"""Bytes that the headers of a request may have."""


class _JsonLines(logging.Formatter):
    """A line of the log as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": record.created,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(fields).decode()


def set_up_log(form: str) -> None:
    """Write the log to standard error, as text or as lines of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(_JsonLines() if form == LINES else text)
    root = logging.getLogger("headgate")
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    root.propagate = False


def check_settings(settings: ServiceSettings, keys: int) -> None:
    """Refuse to be open to the world without keys, and files of TLS that cannot be used."""
    if not keys and not is_loopback(settings.host):
        raise MachineError(
            f"{settings.host} can be reached by others, and there are no keys: make one first with "
            "`headgate service "
            f"key add --data {settings.data} --scope admin`, or listen at 127.0.0.1"
        )
    if settings.certificate is None:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            settings.certificate, settings.private_key
        )
    except (OSError, ssl.SSLError) as error:
        raise TableError(f"TLS cannot be set up with {settings.certificate}: {error}") from None


class _Uvicorn(uvicorn.Server):
    """The web server; when it stops, those who listen are told first, or it would wait for them."""

    def __init__(self, config: uvicorn.Config, server: Server) -> None:
        super().__init__(config)
        self._server = server

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop."""
        self._server.end_listeners()
        await super().shutdown(sockets)


class Running:
    """A service that listens."""

    def __init__(self, settings: ServiceSettings, more: Extension | None = None) -> None:
        self.server = Server(settings, more)
        try:
            check_settings(settings, len(self.server.keys))
            self._socket = _listen(settings)
        except BaseException:
            self.server.release()
            raise
        tls: dict[str, Any] = {}
        if settings.certificate is not None:
            tls = {"ssl_certfile": settings.certificate, "ssl_keyfile": settings.private_key}
        self._uvicorn = _Uvicorn(
            uvicorn.Config(
                make_app(self.server),
                loop="uvloop",
                http=LimitedProtocol,
                ws="websockets-sansio",
                ws_max_size=1 << 20,
                lifespan="on",
                log_config=None,
                access_log=False,
                limit_concurrency=settings.connections,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=_GRACE,
                h11_max_incomplete_event_size=_HEADERS,
                server_header=False,
                **tls,
            ),
            self.server,
        )
        self.port: int = self._socket.getsockname()[1]

    @property
    def address(self) -> str:
        """Return where it can be reached."""
        settings = self.server.settings
        scheme = "http" if settings.certificate is None else "https"
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        return f"{scheme}://{host}:{self.port}"

    def stop(self) -> None:
        """Have it end: requests are finished, and everything that waits is written."""
        self._uvicorn.should_exit = True

    def run(self, ready: Callable[[str], None] = lambda _: None) -> None:
        """Serve until it is stopped; `ready` is called with the address."""
        began = time.monotonic()

        async def serve() -> None:
            # The tenant of those who have no key is open before anybody asks.
            await self.server.open_known()
            await self.server.more.start(self.server)
            loop = asyncio.get_running_loop()
            tasks = [
                loop.create_task(maintain(self.server)),
                loop.create_task(self.server.open_called()),
            ]
            _LOG.info("listening at %s after %.1f s", self.address, time.monotonic() - began)
            ready(self.address)
            try:
                await self._uvicorn.serve(sockets=[self._socket])
            finally:
                for task in tasks:
                    task.cancel()

        import uvloop

        uvloop.run(serve())


def load() -> None:
    """Load what is loaded late otherwise, for processes that are forked."""
    import httptools
    import uvloop
    from uvicorn.lifespan import on
    from uvicorn.protocols.websockets import websockets_sansio_impl

    del httptools, uvloop, on, websockets_sansio_impl


def _listen(settings: ServiceSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        # Who connects before the loop runs waits, and is not refused.
        listener.listen(2_048)
    except OSError as error:
        listener.close()
        raise StorageError(
            f"port {settings.port} of {settings.host} cannot be listened at: {error.strerror}; choose "
            "another with --port"
        ) from None
    listener.setblocking(False)
    return listener
