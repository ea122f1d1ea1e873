"""A listener: somebody who is connected, and gets a consumer's deliveries as they come.

Whoever takes nothing for a while is cut off. Its coroutine hangs in `send` then, so that its connection is
ended from
outside: a look at every listener, now and then, sees whether bytes that wait were taken.
"""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.service.delivery.feed import Feed
    from headgate.service.delivery.state import State

_BUFFER = 128 << 10
"""Bytes that the kernel holds for a listener: what is more waits here, where it is seen."""


_RESET = struct.pack("ii", 1, 0)
"""For SO_LINGER: a connection that is closed waits for nobody."""


class Connection:
    """The connection of a request, as its server has it."""

    def __init__(self, receive: Any) -> None:
        # Middleware wraps `send`, and not `receive`: this is the server's own object.
        self._exchange = getattr(receive, "__self__", None)
        self._transport = getattr(self._exchange, "transport", None)
        self._peer = None if self._transport is None else self._transport.get_extra_info("socket")
        if self._peer is not None:
            self._peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)

    def writer(self) -> Callable[[bytes], bool] | None:
        """Return what writes a part of a body that has begun, and returns whether it did.

        It writes nothing while anything waits. None for a body that is not sent in chunks.
        """
        transport = self._transport
        if transport is None or getattr(self._exchange, "chunked_encoding", None) is not True:
            return None
        closing, waits, put = transport.is_closing, transport.get_write_buffer_size, transport.write

        def write(body: bytes) -> bool:
            if closing() or waits():
                return False
            put(b"%x\r\n%b\r\n" % (len(body), body))
            return True

        return write

    def waiting(self) -> int:
        """Return how many bytes wait to be taken."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return 0
        size: int = transport.get_write_buffer_size()
        return size

    def abort(self) -> None:
        """End it at once; what waits is dropped, here and in the kernel, and the client is told."""
        if self._transport is None:
            return
        if self._peer is not None and not self._transport.is_closing():
            self._peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()


class Listener:
    """One listener of a consumer."""

    __slots__ = ("_connection", "_since", "_taken", "acknowledges", "feed", "last", "sent", "state", "way")

    def __init__(
        self, way: str, state: State, feed: Feed, receive: Any, *, acknowledges: bool = False
    ) -> None:
        self.way = way
        self.state = state
        self.feed = feed
        self.acknowledges = acknowledges
        """Whether the cursor moves as events are sent."""
        self.sent = 0
        """Bytes."""
        self.last = feed.hub.loop.time()
        """When something was sent last."""
        self._connection = Connection(receive)
        self._since = self.last
        self._taken = 0

    def writer(self) -> Callable[[bytes], bool] | None:
        """Return what writes at once, if anything can (`Connection.writer`)."""
        return self._connection.writer()

    def stalled(self, now: float) -> float:
        """Return for how many seconds nothing was taken of what waits."""
        waiting = self._connection.waiting()
        taken = self.sent - waiting
        if not waiting or taken > self._taken:
            self._taken, self._since = taken, now
        return now - self._since

    def cut_off(self, reason: str) -> None:
        """End it, with a reason for the log."""
        self.feed.close(reason)
        self._connection.abort()
