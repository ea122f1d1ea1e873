"""Who changed what, and when: a row for each change, written together with it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import apsw

    from headgate.service.storage.database import Database
    from headgate.service.storage.log import Write

_FIELDS = "number, time, key, action, what"
_LAST = 2**62
"""More than any number."""


class Noted(NamedTuple):
    """One change."""

    number: int
    time: int
    """In microseconds since 1970."""
    key: str
    """The id of the key by which it was made; empty where the service asks for none."""
    action: str
    what: str


class Audit:
    """The changes that were noted."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(self, after: int, most: int, search: str | None = None, *, latest: bool = False) -> list[Noted]:
        """List some in order, after one; or the latest first, and then those before one."""
        test, more = (
            ("AND instr(lower(key || ' ' || action || ' ' || what), ?)", [search.casefold()])
            if search
            else ("", [])
        )
        bound, order = ("<", "number DESC") if latest else (">", "number")
        begin = after or _LAST if latest else after
        query = f"SELECT {_FIELDS} FROM audit WHERE number {bound} ? {test} ORDER BY {order} LIMIT ?"
        return [Noted(*row) for row in self._database.rows(query, begin, *more, most)]


def noted(key: str, action: str, what: str) -> Write:
    """Note a change."""

    def write(writer: apsw.Connection) -> None:
        writer.execute(
            "INSERT INTO audit (time, key, action, what) VALUES (?, ?, ?, ?)",
            (time.time_ns() // 1_000, key, action, what),
        )

    return write
