"""Answers to requests that may be repeated.

By the Idempotency-Key, written together with what the request did.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, NamedTuple

from headgate.service.problems import Conflict, Problem

if TYPE_CHECKING:
    import apsw

    from headgate.service.storage.database import Database
    from headgate.service.storage.log import Write

KEPT = 86_400
"""Seconds that an answer is kept."""
_LONGEST = 255


class Kept(NamedTuple):
    """An answer that was given."""

    status: int
    body: bytes


def digest_of(method: str, path: str, query: str, body: bytes) -> bytes:
    """Return what tells a request from others that have its key."""
    found = hashlib.sha256(f"{method} {path}?{query}\n".encode())
    found.update(body)
    return found.digest()


class Answers:
    """The answers of a tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._begun: set[str] = set()

    def begin(self, key: str, request: bytes) -> Kept | None:
        """Return the answer that a request got before; refuses a key of another request, or one in work."""
        if not 0 < len(key) <= _LONGEST:
            raise Problem(f"the Idempotency-Key has {len(key)} characters: give 1 to {_LONGEST}", 400)
        row = self._database.row("SELECT request, status, body FROM answers WHERE key = ?", key)
        if row is not None:
            if row[0] != request:
                raise Problem(
                    "the Idempotency-Key was used for another request: choose a new one for each", 422
                )
            return Kept(row[1], row[2])
        if key in self._begun:
            raise Conflict("a request with this Idempotency-Key is being worked on: wait for its answer")
        self._begun.add(key)
        return None

    def end(self, key: str) -> None:
        """Tell that a request is done, whether it was answered or not."""
        self._begun.discard(key)


def remember(key: str, request: bytes, kept: Kept) -> Write:
    """Keep an answer."""
    now = time.time_ns() // 1_000

    def write(writer: apsw.Connection) -> None:
        writer.execute(
            "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)",
            (key, request, now, kept.status, kept.body),
        )

    return write


def forget(before: int) -> Write:
    """Forget answers that were given before a time, in microseconds."""

    def write(writer: apsw.Connection) -> None:
        writer.execute("DELETE FROM answers WHERE time < ?", (before,))

    return write
