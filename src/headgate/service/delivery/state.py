"""What is known of a consumer while the service runs: how far it came, who listens, how its webhook does.

Whoever takes nothing for a while is cut off. Its coroutine hangs in `send` then, so that its connection is
ended from
outside: a look at every listener, now and then, sees whether bytes that wait were taken.
"""

from __future__ import annotations

import random
import socket
import struct
import time
from typing import TYPE_CHECKING, Any, Literal

from headgate.service.security.webhooks import key_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.service.delivery.hub import Feed
    from headgate.service.delivery.webhook import Webhook
    from headgate.service.resources import ConsumerBody
    from headgate.service.storage.consumers import DeadLetter, StoredConsumer


LONGEST = 300.0
"""Seconds between two attempts, at most."""
LONGEST_ASKED = 600.0
"""Seconds that `Retry-After` may ask for; more is taken for this."""
OPENS_AFTER = 5
"""Failures in a row after which the circuit is open."""
_OPEN = 30
"""How many first waits the circuit is open for; twice as many each time that the probe fails."""

Circuit = Literal["closed", "open", "half-open"]


def wait_of(first: float, failures: int, asked: float | None = None) -> float:
    """Return how long to wait after some failed attempts; 50 to 100 % of twice the wait before.

    >>> 2 <= wait_of(1.0, 3) <= 4, wait_of(1.0, 1, 20.0), wait_of(1.0, 1, 1e9)
    (True, 20.0, 600.0)
    """
    wait = min(LONGEST, first * 2.0 ** min(failures - 1, 40)) * random.uniform(0.5, 1.0)
    return wait if asked is None else max(wait, min(asked, LONGEST_ASKED))


class Breaker:
    """The circuit of one consumer.

    >>> breaker = Breaker(1.0)
    >>> for _ in range(OPENS_AFTER): breaker.failed(now=0.0)
    >>> breaker.state(now=1.0), breaker.state(now=31.0)
    ('open', 'half-open')
    >>> breaker.succeeded(); breaker.state(now=31.0)
    'closed'
    """

    def __init__(self, first: float) -> None:
        self._first = first
        self.failures = 0
        """In a row."""
        self.until = 0.0
        """When the next probe may be made, by the monotonic clock."""
        self._probing = False

    def succeeded(self) -> None:
        """Note that an attempt succeeded."""
        self.failures, self.until, self._probing = 0, 0.0, False

    def failed(self, now: float | None = None) -> None:
        """Note that an attempt failed."""
        self.failures += 1
        self._probing = False
        if self.failures >= OPENS_AFTER:
            wait = min(LONGEST, _OPEN * self._first * 2.0 ** min(self.failures - OPENS_AFTER, 40))
            self.until = (time.monotonic() if now is None else now) + wait

    def state(self, now: float | None = None) -> Circuit:
        """Tell how the circuit is."""
        if self.failures < OPENS_AFTER:
            return "closed"
        return "open" if (time.monotonic() if now is None else now) < self.until else "half-open"

    def wait(self, now: float | None = None) -> float:
        """Return for how long no attempt may be made; 0 lets one through, and while it runs no other."""
        if self.failures < OPENS_AFTER:
            return 0.0
        at = time.monotonic() if now is None else now
        if at < self.until:
            return self.until - at
        if self._probing:
            return self._first
        self._probing = True
        return 0.0

    def given_up(self) -> None:
        """Note that a probe was begun and not made."""
        self._probing = False


class LiveConsumer:
    """One consumer. It belongs to the event loop."""

    def __init__(self, stored: StoredConsumer, retry: float) -> None:
        self.id = stored.id
        self.number = stored.number
        self.cursor = stored.cursor
        """The position up to which all is acknowledged, on disk."""
        self.clear = stored.cursor
        """The position up to which, after the cursor, nothing is for it."""
        self.moved = 0
        """How often it was set to another cursor: what was acknowledged before does not count then."""
        self.passed = 0
        """Events that were forgotten before they were delivered."""
        self.listeners: set[Listener] = set()
        self.breaker = Breaker(retry)
        self.webhook: Webhook | None = None
        self.replaying = False
        """Whether its dead letters are being tried again."""
        self.replayed: dict[int, DeadLetter] = {}
        """The dead letters that were tried again last, by position; without a reason those delivered then."""
        self.reason: str | None = None
        """Why its webhook is not called any more, or what it failed with last."""
        self.told(stored)

    def told(self, stored: StoredConsumer) -> None:
        """Take over what a client said of it."""
        self.revision = stored.revision
        self.said: ConsumerBody = stored.said
        self.key = b"" if self.said.secret is None else key_of(self.said.secret)

    def hang_up(self) -> None:
        """End to call its webhook."""
        if self.webhook is not None:
            self.webhook.stop()
            self.webhook = None

    @property
    def called(self) -> bool:
        """Tell whether a webhook is called for it."""
        return self.said.url is not None and self.said.enabled


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
        self, way: str, state: LiveConsumer, feed: Feed, receive: Any, *, acknowledges: bool = False
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
