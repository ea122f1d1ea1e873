"""When a webhook is tried again: waits that grow, and a circuit breaker that spares what fails."""

from __future__ import annotations

import random
import time
from typing import Literal

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
