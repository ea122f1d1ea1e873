"""HTTP as uvicorn speaks it, with limits on headers: their size, and the time that they take to come.

httptools takes headers of any length, and uvicorn waits for them as long as they take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

HEADERS = 64 << 10
"""Bytes of the headers of a request."""
SECONDS = 30.0
"""How long they may take to come."""
_ANSWER = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/problem+json\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%s"
)
_DETAIL = (
    b'{"type":"about:blank","title":"Request Header Fields Too Large","status":431,'
    b'"detail":"the headers have more than %d bytes: send less","instance":"/"}'
)


class LimitedProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._begun = False
        self._size = 0
        self._watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request; headers that are too long are refused."""
        before = self._begun
        super().data_received(data)
        if not self._begun:
            self._size = 0
            return
        self._size = self._size + len(data) if before else len(data)
        if self._size > HEADERS:
            self._refuse()

    def on_message_begin(self) -> None:
        """Begin to count."""
        super().on_message_begin()
        self._begun = True
        self._wait()

    def on_headers_complete(self) -> None:
        """End counting."""
        self._begun = False
        self._stop()
        super().on_headers_complete()

    def _wait(self) -> None:
        self._stop()
        self._watch = self.loop.call_later(SECONDS, self._late)

    def _stop(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _late(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _refuse(self) -> None:
        if not self.transport.is_closing():
            detail = _DETAIL % HEADERS
            self.transport.write(_ANSWER % (len(detail), detail))
            self.transport.close()
