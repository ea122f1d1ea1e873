"""Sessions of people who are signed in.

    cookie     256 random bits, HTTP-only, same-site; only their hash is kept
    rotated    another cookie takes its place from time to time; the old one counts a moment longer
    ends       when nobody used it for long, after a day, with the key, and with the process

A session has a key's id and never its text. Forms carry a token of the session, which is worth nothing
without the cookie.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.service.problems import Busy

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.service.security.keys import Key

COOKIE = "headgate-session"
IDLE = 8 * 3_600.0
"""Seconds after which a session that is not used ends."""
LONGEST = 24 * 3_600.0
"""Seconds after which a session ends."""
ROTATED = 15 * 60.0
"""Seconds after which a session has another cookie."""
_GRACE = 60.0
"""Seconds that the cookie before counts: pages may have been asked for with it."""
_MOST = 10_000
_UNDONE = 20
"""Deletions of a session that can be undone."""
_UNDO = 10 * 60.0
"""Seconds in which something can be undone."""
_FAILURES = 10
"""Keys that an address may get wrong in a minute."""


class Message(NamedTuple):
    """What a page tells of what was done."""

    text: str
    good: bool = True
    undo: str | None = None
    """What undoes it."""


class Restoring(NamedTuple):
    """Requests that bring back what was deleted."""

    until: float
    what: str
    requests: tuple[tuple[Any, ...], ...]
    """Operation, path and body of each, and its query if it has one."""


@dataclass
class Session:
    """Somebody who is signed in; without keys, somebody."""

    key: str | None
    """The id of the key."""
    began: float
    used: float
    rotated: float
    secret: bytes
    """What tokens of forms are made of."""
    messages: deque[Message] = field(default_factory=lambda: deque(maxlen=5))
    deleted: dict[str, Restoring] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    """What pages keep for their next request, by the page's name."""

    @property
    def token(self) -> str:
        """Return what forms of this session carry."""
        return hmac.new(self.secret, b"form", hashlib.sha256).hexdigest()

    def has_token(self, given: str) -> bool:
        """Tell whether a form is one of this session."""
        return hmac.compare_digest(self.token.encode(), given.encode(errors="replace"))

    def can_restore(self, what: str, *requests: tuple[Any, ...]) -> str:
        """Keep what brings something back; returns its name."""
        name = secrets.token_hex(8)
        self.deleted[name] = Restoring(time.monotonic() + _UNDO, what, requests)
        while len(self.deleted) > _UNDONE:
            del self.deleted[next(iter(self.deleted))]
        return name

    def restoring(self, name: str) -> Restoring | None:
        """Take what brings something back, if that is still possible."""
        found = self.deleted.pop(name, None)
        return None if found is None or found.until < time.monotonic() else found


class Sessions:
    """All that are open, in memory: after a restart people sign in again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[bytes, Session] = {}
        self._before: dict[bytes, tuple[float, bytes]] = {}
        """Cookies that were rotated away: until when they count, and for which."""
        self._failures: dict[str, deque[float]] = {}

    def __len__(self) -> int:
        """Count them."""
        return len(self._open)

    def begin(self, key: Key | None) -> tuple[Session, str]:
        """Open a session; returns it and its cookie."""
        now = self._clock()
        self._forget(now)
        session = Session(None if key is None else key.id, now, now, now, secrets.token_bytes(32))
        cookie = secrets.token_urlsafe(32)
        self._open[_hash(cookie)] = session
        return session, cookie

    def find(self, cookie: str | None) -> Session | None:
        """Return the session of a cookie, if it counts."""
        if not cookie:
            return None
        now, place = self._clock(), _hash(cookie)
        until, after = self._before.get(place, (0.0, place))
        if after != place and until < now:
            del self._before[place]
            return None
        session = self._open.get(after)
        if session is None:
            return None
        if now - session.used > IDLE or now - session.began > LONGEST:
            del self._open[after]
            return None
        session.used = now
        return session

    def rotate(self, cookie: str) -> str | None:
        """Return another cookie for a session if it is time for one."""
        now, place = self._clock(), _hash(cookie)
        session = self._open.get(place)
        if session is None or now - session.rotated < ROTATED:
            return None
        fresh = secrets.token_urlsafe(32)
        session.rotated = now
        self._open[_hash(fresh)] = self._open.pop(place)
        self._before[place] = now + _GRACE, _hash(fresh)
        return fresh

    def end(self, cookie: str | None) -> None:
        """Close the session of a cookie."""
        if cookie:
            place = _hash(cookie)
            self._open.pop(self._before.pop(place, (0.0, place))[1], None)

    def _forget(self, now: float) -> None:
        old = [
            place
            for place, each in self._open.items()
            if now - each.used > IDLE or now - each.began > LONGEST
        ]
        for place in old:
            del self._open[place]
        while len(self._open) >= _MOST:
            del self._open[min(self._open, key=lambda place: self._open[place].used)]
        self._before = {place: each for place, each in self._before.items() if each[0] >= now}

    # Keys that were wrong

    def check_patience(self, address: str) -> None:
        """Refuse an address that got too many keys wrong in the last minute."""
        now = self._clock()
        failures = self._failures.get(address)
        if failures is not None and len(failures) == _FAILURES and now - failures[0] < 60.0:
            raise Busy(f"{_FAILURES} keys from here were wrong within a minute: wait a minute", 60)

    def note_failure(self, address: str) -> None:
        """Remember that an address got a key wrong."""
        if address not in self._failures and len(self._failures) >= _MOST:
            del self._failures[next(iter(self._failures))]
        self._failures.setdefault(address, deque(maxlen=_FAILURES)).append(self._clock())


def _hash(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode(errors="replace")).digest()
