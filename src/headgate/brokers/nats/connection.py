"""A connection to a NATS server: the client's event loop in a thread of its own, calls from outside.

The client answers the server's pings only while its loop runs, and those who read or publish may pause for
minutes between two calls, so the loop has its own thread. The client's own reconnecting is off: it would
hide that requests or messages were lost with a connection. Instead a call that fails for want of a server is
made again on a new connection, for as long as `patience` says; whatever is called that way may happen twice.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headgate.core.machine import need
from headgate.errors import HeadgateError, MachineError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from concurrent.futures import Future
    from types import ModuleType

    from nats.aio.client import Client

    from headgate.brokers.nats.settings import NatsSettings

T = TypeVar("T")

ANSWER, CONNECT = 15.0, 5.0
"""Seconds within which a server that lives answers, however busy its disk is; and is connected to."""
GREETING = 3 * CONNECT
"""Seconds after which the next server is tried."""

_AGAIN, _FAREWELL = 0.2, 1.0
_INFO, _TRANSPORT = "_server_info", "_transport"


class ApiError(Exception):
    """What the server's JetStream said no to, with the number of its reason."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.reason = int(said.get("err_code", 0))
        super().__init__(str(said.get("description", said.get("code", "no reason given"))))


def client_library() -> ModuleType:
    """Import the client, or say how to get it."""
    need("nats")
    import nats
    import nats.aio.client
    import nats.errors

    return nats


class Connection:
    """One connection, made when it is first needed and made anew when it is lost."""

    def __init__(self, settings: NatsSettings) -> None:
        self._nats = client_library()
        self._settings = settings
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._seen = Exception("no reason given")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="headgate-nats", daemon=True)
        self._thread.start()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up and end the thread."""
        if self._loop.is_closed():
            return
        self._submit(self._hang_up()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def ask(self, verb: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Make a request of JetStream's own interface; what it refuses comes as an `ApiError`."""
        return self.call(lambda client: request(client, verb, body))

    def call(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Run `work` with a connection, again if the connection fails; it must be fit for that."""
        return self._submit(self._persistently(work)).result()

    def begin(self, work: Callable[[Client], Awaitable[T]]) -> Future[T]:
        """Begin what `call` does, and let the caller do something else meanwhile."""
        return self._submit(self._persistently(work))

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _persistently(self, work: Callable[[Client], Awaitable[T]]) -> T:
        begun = time.monotonic()
        while True:
            try:
                async with self._connecting:
                    client = await self._connected()
                return await work(client)
            except (OSError, self._nats.errors.Error) as error:
                await self._hang_up()
                refusal = self._told(error)
                if not _passes(error) or time.monotonic() - begun >= self._settings.patience:
                    raise refusal from error
                await asyncio.sleep(_AGAIN)

    async def _connected(self) -> Client:
        if self._client is not None and self._client.is_connected:
            return self._client
        await self._hang_up()
        failed: Exception | None = None
        for server in self._settings.servers:
            client: Client = self._nats.aio.client.Client()
            try:
                await asyncio.wait_for(client.connect(f"nats://{server}", **self._options(client)), GREETING)
                self._guard(client)
            except (OSError, self._nats.errors.Error, HeadgateError) as error:
                await _close(client)
                error = self._seen if isinstance(error, self._nats.errors.NoServersError) else error
                if isinstance(error, HeadgateError) or not _passes(error):
                    raise error from None
                failed = failed or error
            else:
                self._client = client
                return client
        assert failed is not None
        raise failed

    async def _hang_up(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await _close(client)

    async def _see(self, error: Exception) -> None:
        """Keep why a server could not be reached: the client then only says that there is none."""
        self._seen = error

    def _options(self, client: Client) -> dict[str, Any]:
        settings = self._settings
        options: dict[str, Any] = {
            "name": "headgate",
            "allow_reconnect": False,
            "connect_timeout": CONNECT,
            "max_reconnect_attempts": 1,
            "reconnect_time_wait": 0,
            # Else the client logs every error, also those that it raises.
            "error_cb": self._see,
        }
        if settings.encrypted:
            options["tls"] = self._certificates()
        secret = settings.secret
        if settings.user is not None:
            options["user"] = settings.user
        if secret is not None:
            options["password"] = lambda: self._guarded(client, secret)
        token = settings.token
        if token is not None:
            options["token"] = lambda: self._guarded(client, token)
        if settings.creds is not None:
            if not Path(settings.creds).is_file():
                raise MachineError(f"{settings.place}: there is no credentials file {settings.creds}")
            options["user_credentials"] = settings.creds
        return options

    def _certificates(self) -> ssl.SSLContext:
        where = self._settings
        try:
            context = ssl.create_default_context(cafile=where.ca)
            if where.cert is not None:
                context.load_cert_chain(where.cert, where.key)
        except OSError as error:
            named = ", ".join(filter(None, (where.ca, where.cert, where.key)))
            raise MachineError(f"{where.place}: certificates {named}: {error.strerror or error}") from error
        return context

    def _guard(self, client: Client) -> None:
        """Refuse a server that does not encrypt where encryption was asked for."""
        if self._settings.encrypted and not getattr(client, _INFO).get("tls_required"):
            raise MachineError(
                f"{self._settings.place}: the server does not encrypt: turn TLS on there, or leave out "
                "tls, ca and cert"
            )

    def _guarded(self, client: Client, secret: str) -> str:
        """Give a secret away only over a connection that is as safe as was asked for."""
        self._guard(client)
        return secret

    def _told(self, error: Exception) -> HeadgateError:
        """Say in one line why there is no connection or no answer; never with what was secret."""
        where = self._settings.place
        text = str(error).lower()
        if isinstance(error, ssl.SSLError):
            why = getattr(error, "verify_message", "") or error.reason or "it failed"
            return MachineError(f"{where}: the encrypted connection cannot be made: {why}")
        if "authorization" in text or "authentication" in text:
            return MachineError(f"{where}: the server refuses this user, password, token or credentials file")
        if "permissions violation" in text:
            return MachineError(f"{where}: the server does not permit this user to do that: {text}")
        if isinstance(error, self._nats.errors.NoRespondersError):
            return MachineError(f"{where}: the server runs without JetStream: start nats-server with -js")
        if isinstance(error, OSError) and not isinstance(error, TimeoutError):
            return MachineError(
                f"{where}: no NATS server answers there ({error.strerror or type(error).__name__}): "
                "start one, or name another address"
            )
        return MachineError(
            f"{where}: the NATS server does not answer ({str(error) or type(error).__name__})"
        )


async def request(
    client: Client, verb: str, body: dict[str, Any] | None = None, within: float = ANSWER
) -> dict[str, Any]:
    """Make one request of JetStream's interface on a connection; one that is lost ends it at once."""
    payload = b"" if body is None else json.dumps(body).encode()
    sent = asyncio.ensure_future(client.request(f"$JS.API.{verb}", payload, timeout=within))
    try:
        while not (await asyncio.wait([sent], timeout=_AGAIN))[0]:
            _alive(client)
        answer: dict[str, Any] = json.loads(sent.result().data)
    finally:
        sent.cancel()
    if "error" in answer:
        raise ApiError(answer["error"])
    return answer


async def until(client: Client, event: asyncio.Event) -> None:
    """Wait for an event for as long as a server may take to answer; a lost connection ends it at once."""
    over = time.monotonic() + ANSWER
    while not event.is_set():
        try:
            await asyncio.wait_for(event.wait(), _AGAIN)
        except TimeoutError:
            _alive(client)
            if time.monotonic() > over:
                raise


def _alive(client: Client) -> None:
    if not client.is_connected:
        raise ConnectionResetError(None, "the connection was lost") from None


async def _close(client: Client) -> None:
    """Hang up; a client that was never connected cannot do so itself, and one that is may wait too long."""
    if client.is_connected:
        with suppress(TimeoutError):
            await asyncio.wait_for(client.close(), _FAREWELL)
    transport = getattr(client, _TRANSPORT)
    if transport is not None:
        transport.close()


def _passes(error: Exception) -> bool:
    """Whether trying again can help."""
    text = str(error).lower()
    words = ("authorization", "authentication", "permissions violation", "max payload")
    return not isinstance(error, ssl.SSLError) and not any(word in text for word in words)
