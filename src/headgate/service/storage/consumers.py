"""Consumers as they are stored: what they are, how far they came, what could not be delivered to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headgate.service.resources import ConsumerBody
from headgate.service.storage.database import Table, many, one, searching, together

if TYPE_CHECKING:
    from headgate.service.storage.log import Write

_FIELDS = "id, number, revision, cursor, body"
_LETTER = "consumer, position, time, attempts, reason, again"
_BODY = msgspec.json.Decoder(ConsumerBody)
_PASSED = "passed:"
_KEPT_ATTEMPTS = 100
"""Attempts of each consumer that can be read."""


class StoredConsumer(NamedTuple):
    """A consumer as it is stored."""

    id: str
    number: int
    revision: int
    cursor: int
    """The position up to which all is acknowledged."""
    body: bytes

    @property
    def said(self) -> ConsumerBody:
        """Return what a client said of it."""
        return _BODY.decode(self.body)


class DeadLetter(NamedTuple):
    """An event that could not be delivered to a consumer."""

    consumer: str
    position: int
    time: int
    attempts: int
    reason: str
    again: bool = False
    """Whether it waits to be tried again."""


class Attempt(NamedTuple):
    """One try to deliver an event to a webhook."""

    consumer: str
    position: int
    time: int
    status: int | None
    milliseconds: int
    reason: str | None


class Consumers(Table):
    """The stored consumers."""

    def get(self, identity: str) -> StoredConsumer | None:
        """Find one."""
        row = self._database.row(f"SELECT {_FIELDS} FROM consumers WHERE id = ?", identity)
        return None if row is None else StoredConsumer(*row)

    def all(self) -> list[StoredConsumer]:
        """List all of them."""
        return [StoredConsumer(*row) for row in self._database.rows(f"SELECT {_FIELDS} FROM consumers")]

    def any_called(self) -> bool:
        """Tell whether one of them is a webhook."""
        query = "SELECT 1 FROM consumers WHERE json_extract(CAST(body AS TEXT), '$.url') IS NOT NULL LIMIT 1"
        return self._database.row(query) is not None

    def page(self, after: str, most: int, search: str | None = None) -> list[StoredConsumer]:
        """List some in the order of their ids, after one."""
        test, more = searching("id", search)
        query = f"SELECT {_FIELDS} FROM consumers WHERE id > ? {test} ORDER BY id LIMIT ?"
        return [StoredConsumer(*row) for row in self._database.rows(query, after, *more, most)]

    def dead_letters(self, consumer: str, after: int, most: int) -> list[DeadLetter]:
        """List what could not be delivered to a consumer, in order."""
        wanted = "consumer = ? AND position > ? ORDER BY position LIMIT ?"
        query = f"SELECT {_LETTER} FROM dead_letters WHERE {wanted}"
        return [DeadLetter(*row) for row in self._database.rows(query, consumer, after, most)]

    def next_replay(self, consumer: str) -> DeadLetter | None:
        """Return the first dead letter that is to be tried again, if there is one."""
        query = f"SELECT {_LETTER} FROM dead_letters WHERE consumer = ? AND again ORDER BY position LIMIT 1"
        row = self._database.row(query, consumer)
        return None if row is None else DeadLetter(*row)

    def passed(self) -> dict[str, int]:
        """Count by consumer the events that were forgotten before they were delivered."""
        rows = self._database.rows("SELECT name, value FROM meta WHERE name GLOB ?", _PASSED + "*")
        return {name.removeprefix(_PASSED): count for name, count in rows}

    def count_dead(self) -> dict[str, int]:
        """Count dead letters by consumer."""
        query = "SELECT consumer, count(*) FROM dead_letters GROUP BY consumer"
        return dict(self._database.rows(query))

    def attempts(self, consumer: str, before: int, most: int) -> list[tuple[int, Attempt]]:
        """List attempts of a webhook with their numbers, the latest first."""
        query = (
            "SELECT number, consumer, position, time, status, milliseconds, reason FROM attempts "
            "WHERE consumer = ? AND number < ? ORDER BY number DESC LIMIT ?"
        )
        rows = self._database.rows(query, consumer, before, most)
        return [(number, Attempt(*rest)) for number, *rest in rows]


def put(stored: StoredConsumer) -> Write:
    """Have a consumer; the cursor of one that is there stays."""
    query = (
        f"INSERT INTO consumers ({_FIELDS}) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
        "revision = excluded.revision, body = excluded.body"
    )
    return one(query, *stored)


def remove(identity: str) -> Write:
    """Have no consumer of an id, and nothing that was kept about it."""
    return together(
        one("DELETE FROM consumers WHERE id = ?", identity),
        one("DELETE FROM dead_letters WHERE consumer = ?", identity),
        one("DELETE FROM attempts WHERE consumer = ?", identity),
        one("DELETE FROM meta WHERE name = ?", _PASSED + identity),
    )


def move(identity: str, cursor: int) -> Write:
    """Have a consumer go on after a position."""
    return one("UPDATE consumers SET cursor = ? WHERE id = ?", cursor, identity)


def pass_by(counts: dict[str, int]) -> Write:
    """Count events that are forgotten before they were delivered to consumers."""
    query = "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value"
    return many(query, [(_PASSED + identity, count) for identity, count in counts.items()])


def advance(cursors: dict[str, int]) -> Write:
    """Have consumers go on after positions, none before where it is."""
    return many("UPDATE consumers SET cursor = ?2 WHERE id = ?1 AND cursor < ?2", list(cursors.items()))


def bury(letters: list[DeadLetter]) -> Write:
    """Keep dead letters."""
    return many(f"INSERT OR REPLACE INTO dead_letters ({_LETTER}) VALUES (?, ?, ?, ?, ?, ?)", letters)


def unbury(consumer: str, positions: list[int]) -> Write:
    """Forget dead letters."""
    query = "DELETE FROM dead_letters WHERE consumer = ? AND position = ?"
    return many(query, [(consumer, position) for position in positions])


def mark(consumer: str, positions: list[int]) -> Write:
    """Have dead letters tried again."""
    query = "UPDATE dead_letters SET again = 1 WHERE consumer = ? AND position = ?"
    return many(query, [(consumer, position) for position in positions])


def fail_again(letter: DeadLetter) -> Write:
    """Keep why a dead letter failed again, if nobody has dropped it."""
    query = "UPDATE dead_letters SET again = 0, attempts = ?, reason = ? WHERE consumer = ? AND position = ?"
    return one(query, letter.attempts, letter.reason, letter.consumer, letter.position)


def note(attempts: list[Attempt]) -> Write:
    """Keep attempts, the latest of each consumer."""
    keeping = (
        "INSERT INTO attempts (consumer, position, time, status, milliseconds, reason) "
        "VALUES (?, ?, ?, ?, ?, ?)"
    )
    forgetting = (
        "DELETE FROM attempts WHERE consumer = ?1 AND number <= (SELECT number FROM attempts "
        "WHERE consumer = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)"
    )
    consumers = {attempt.consumer for attempt in attempts}
    return together(many(keeping, attempts), many(forgetting, [(each, _KEPT_ATTEMPTS) for each in consumers]))
