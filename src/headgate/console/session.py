"""Sessions of people who are signed in.

    cookie     256 random bits, HTTP-only, same-site; only their hash is kept
    rotated    another cookie takes its place from time to time; the old one counts until that has arrived
               and a moment longer
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
ABSENT = {"If-None-Match": "*"}
"""What brings something back is refused where somebody has made it again."""
IDLE = 8 * 3_600.0
"""Seconds after which a session that is not used ends."""
LONGEST = 24 * 3_600.0
"""Seconds after which a session ends."""
ROTATED = 15 * 60.0
"""Seconds after which a session has another cookie."""
_GRACE = 60.0
"""Seconds that the cookie before counts: pages may have been asked for with it."""
_MOST = 10_000
_OF_KEY = 100
"""Sessions of one key: nobody who has one can put those of others out."""
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
    """Operation, path and body of each, and its query and headers if it has some."""


@dataclass
class Session:
    """Somebody who is signed in; without keys, somebody."""

    key: str | None
    """The id of the key."""
    began: float
    used: float
    rotated: float
    place: bytes
    """The hash of its cookie."""
    secret: bytes
    """What tokens of forms are made of."""
    messages: deque[Message] = field(default_factory=lambda: deque(maxlen=5))
    deleted: dict[str, Restoring] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    """What pages keep for their next request, by the page's name."""
    former: bytes | None = None
    """The hash of the cookie before."""
    until: float | None = None
    """Until when that counts; None while the browser has not used the one after it."""
    ended: bool = False

    @property
    def token(self) -> str:
        """Return what forms of this session carry."""
        return hmac.new(self.secret, b"form", hashlib.sha256).hexdigest()

    def has_token(self, token: str) -> bool:
        """Tell whether a form is one of this session."""
        return hmac.compare_digest(self.token.encode(), token.encode(errors="replace"))

    def can_restore(self, what: str, *requests: tuple[Any, ...]) -> str:
        """Keep what brings something back; returns its name."""
        name = secrets.token_hex(8)
        now = time.monotonic()
        self.deleted = {each: kept for each, kept in self.deleted.items() if kept.until >= now}
        self.deleted[name] = Restoring(now + _UNDO, what, requests)
        while len(self.deleted) > _UNDONE:
            del self.deleted[next(iter(self.deleted))]
        return name

    def has_restored(self, name: str, restoring: Restoring, done: int) -> None:
        """Keep the requests that were not made, to be tried again."""
        self.deleted[name] = restoring._replace(requests=restoring.requests[done:])

    def restoring(self, name: str) -> Restoring | None:
        """Take what brings something back, if that is still possible."""
        restoring = self.deleted.pop(name, None)
        return None if restoring is None or restoring.until < time.monotonic() else restoring


class Sessions:
    """All that are open, in memory: after a restart people sign in again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[bytes, Session] = {}
        """By the hash of the cookie, and of the one before while that counts."""
        self._failures: dict[str, deque[float]] = {}

    def __len__(self) -> int:
        """Count them."""
        return sum(digest == each.place for digest, each in self._open.items())

    def begin(self, key: Key | None) -> tuple[Session, str]:
        """Open a session; returns it and its cookie."""
        self._forget(None if key is None else key.id)
        session, cookie = self.passing(key)
        self._open[session.place] = session
        return session, cookie

    def passing(self, key: Key | None = None) -> tuple[Session, str]:
        """Return a session that is not kept: that of somebody who is not signed in."""
        now, cookie = self._clock(), secrets.token_urlsafe(32)
        identity = None if key is None else key.id
        return Session(identity, now, now, now, _hash(cookie), secrets.token_bytes(32)), cookie

    def find(self, cookie: str | None) -> Session | None:
        """Return the session of a cookie, if it counts."""
        if not cookie:
            return None
        now, digest = self._clock(), _hash(cookie)
        session = self._open.get(digest)
        if session is None:
            return None
        if self._is_over(session):
            self._drop(session)
            return None
        if digest == session.former:
            if session.until is not None and session.until < now:
                del self._open[digest]
                session.former = None
                return None
        elif session.former is not None and session.until is None:
            # The browser has the new one: those who have the old one alone are out soon.
            session.until = now + _GRACE
        session.used = now
        return session

    def is_open(self, session: Session) -> bool:
        """Tell whether a session counts still; who looks at what comes live uses it."""
        if session.ended or self._is_over(session):
            return False
        session.used = self._clock()
        return True

    def rotate(self, cookie: str) -> str | None:
        """Return another cookie for a session if it is time for one."""
        now, digest = self._clock(), _hash(cookie)
        session = self._open.get(digest)
        if session is None:
            return None
        if digest == session.former:
            # An answer can be lost, and the cookie with it: then there is another one.
            if session.until is not None or now - session.rotated < _GRACE:
                return None
            del self._open[session.place]
        elif now - session.rotated < ROTATED:
            return None
        else:
            if session.former is not None:
                self._open.pop(session.former, None)
            session.former, session.until = digest, None
        fresh = secrets.token_urlsafe(32)
        session.place, session.rotated = _hash(fresh), now
        self._open[session.place] = session
        return fresh

    def end(self, cookie: str | None) -> None:
        """Close the session of a cookie."""
        session = self._open.get(_hash(cookie)) if cookie else None
        if session is not None:
            self._drop(session)

    def _is_over(self, session: Session) -> bool:
        now = self._clock()
        return now - session.used > IDLE or now - session.began > LONGEST

    def _drop(self, session: Session) -> None:
        session.ended = True
        for digest in (session.place, session.former):
            if digest is not None:
                self._open.pop(digest, None)

    def _forget(self, key: str | None) -> None:
        """Make room for one more: without those that are over, and the longest unused if there are many."""
        for each in [each for each in self._open.values() if self._is_over(each)]:
            self._drop(each)
        there = sorted({id(each): each for each in self._open.values()}.values(), key=lambda each: each.used)
        own = [each for each in there if each.key == key] if key is not None else []
        for each in [*own[: max(0, len(own) - _OF_KEY + 1)], *there[: max(0, len(there) - _MOST + 1)]]:
            self._drop(each)

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
