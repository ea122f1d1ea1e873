"""What is kept of requests: who changed what, and answers to those that may be repeated.

By the Idempotency-Key, written together with what the request did.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headgate.service.problems import Conflict, Problem
from headgate.service.resources import moment_of
from headgate.service.storage.database import Table, one, searching

if TYPE_CHECKING:
    from headgate.service.storage.database import Database
    from headgate.service.storage.log import Write


_FIELDS = "number, time, key, action, what"
_LAST = 2**62
"""More than any number."""


class AuditEntry(msgspec.Struct):
    """One change."""

    number: int
    time: dt.datetime
    key: str
    """The id of the key by which it was made; empty where the service asks for none."""
    action: str
    what: str


class Audit(Table):
    """The changes that were noted."""

    def page(
        self, after: int, most: int, search: str | None = None, *, latest: bool = False
    ) -> list[AuditEntry]:
        """List some in order, after one; or the latest first, and then those before one."""
        test, more = searching("key || ' ' || action || ' ' || what", search)
        bound, order = ("<", "number DESC") if latest else (">", "number")
        begin = after or _LAST if latest else after
        query = f"SELECT {_FIELDS} FROM audit WHERE number {bound} ? {test} ORDER BY {order} LIMIT ?"
        rows = self._database.rows(query, begin, *more, most)
        return [AuditEntry(number, moment_of(time), *rest) for number, time, *rest in rows]


def noted(key: str, action: str, what: str) -> Write:
    """Note a change."""
    query = "INSERT INTO audit (time, key, action, what) VALUES (?, ?, ?, ?)"
    return one(query, time.time_ns() // 1_000, key, action, what)


KEPT = 86_400
"""Seconds that an answer is kept."""
_LONGEST = 255


class Kept(NamedTuple):
    """An answer that was given."""

    status: int
    body: bytes


def digest_of(method: str, path: str, query: str, body: bytes) -> bytes:
    """Return what tells a request from others that have its key."""
    digest = hashlib.sha256(f"{method} {path}?{query}\n".encode())
    digest.update(body)
    return digest.digest()


class Answers(Table):
    """The answers of a tenant."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
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
    query = "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)"
    return one(query, key, request, time.time_ns() // 1_000, kept.status, kept.body)


def forget(before: int) -> Write:
    """Forget answers that were given before a time, in microseconds."""
    return one("DELETE FROM answers WHERE time < ?", before)
