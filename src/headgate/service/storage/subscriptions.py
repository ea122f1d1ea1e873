"""Subscriptions as they are stored, and the changes of the index that its snapshot does not contain yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headgate.core.subscription import SQL
from headgate.runtime.operations import OP, UNSUBSCRIBE, UPSERT, read_change
from headgate.service.resources import SubscriptionBody
from headgate.service.storage.database import Table, many, one, together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.core.subscription import Subscription
    from headgate.runtime.operations import Change
    from headgate.service.storage.log import Write

_FIELDS = "number, id, consumer, revision, expires, body"
_INSERT = f"INSERT INTO subscriptions ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?)"
_SEARCH = "(instr(lower(id), ?) OR instr(lower(CAST(body AS TEXT)), ?))"
_BODY = msgspec.json.Decoder(SubscriptionBody)


class Stored(NamedTuple):
    """A subscription as it is stored."""

    number: int
    """What blocks call it. One that is replaced keeps it, unless its consumer is another one."""
    id: str
    consumer: str
    revision: int
    """Rises with each change of it: its entity tag."""
    expires: int | None
    """When it ends, in microseconds since 1970."""
    body: bytes

    @property
    def said(self) -> SubscriptionBody:
        """Return what a client said of it."""
        return _BODY.decode(self.body)

    @property
    def indexed(self) -> Subscription:
        """Return what is indexed."""
        return self.said.subscription(self.id)


class Subscriptions(Table):
    """The stored subscriptions."""

    def get(self, identity: str) -> Stored | None:
        """Find one."""
        row = self._database.row(f"SELECT {_FIELDS} FROM subscriptions WHERE id = ?", identity)
        return None if row is None else Stored(*row)

    def by_number(self, number: int) -> Stored | None:
        """Find one by what blocks call it."""
        row = self._database.row(f"SELECT {_FIELDS} FROM subscriptions WHERE number = ?", number)
        return None if row is None else Stored(*row)

    def page(
        self, after: str, most: int, *, search: str | None = None, consumer: str | None = None
    ) -> list[Stored]:
        """List some in the order of their ids, after one; those whose id or text has what is searched for."""
        tests, values = ["id > ?"], [after]
        if consumer is not None:
            tests.append("consumer = ?")
            values.append(consumer)
        if search is not None:
            tests.append(_SEARCH)
            values += [search.casefold()] * 2
        query = f"SELECT {_FIELDS} FROM subscriptions WHERE {' AND '.join(tests)} ORDER BY id LIMIT ?"
        return [Stored(*row) for row in self._database.rows(query, *values, most)]

    def found(self, search: str) -> list[int]:
        """List the numbers of those whose id or text has what is searched for."""
        query = "SELECT number FROM subscriptions WHERE " + _SEARCH
        return [number for (number,) in self._database.rows(query, *[search.casefold()] * 2)]

    def all(self) -> Iterator[Stored]:
        """List all of them, in the order of their numbers."""
        after = 0
        while rows := self._database.rows(
            f"SELECT {_FIELDS} FROM subscriptions WHERE number > ? ORDER BY number LIMIT 10000", after
        ):
            yield from (Stored(*row) for row in rows)
            after = rows[-1][0]

    def names(self) -> list[tuple[int, str, str, int, int | None]]:
        """List number, id, consumer, revision and end of each."""
        query = "SELECT number, id, consumer, revision, expires FROM subscriptions ORDER BY number"
        rows = self._database.rows(query)
        return [
            (number, identity, consumer, revision, end) for number, identity, consumer, revision, end in rows
        ]

    def next_number(self) -> int:
        """Return a number that no subscription ever had."""
        return self._last("subscriptions") + 1

    def changes(self, after: int) -> list[Change]:
        """List changes of the index after a position."""
        rows = self._database.rows("SELECT row FROM changes WHERE position > ? ORDER BY position", after)
        return [read_change(msgspec.json.decode(row), SQL) for (row,) in rows]

    def count_changes(self) -> int:
        """Count changes of the index that its snapshot does not contain."""
        return int(self._database.value("SELECT count(*) FROM changes"))

    def position(self) -> int:
        """Return the position of the last change."""
        return self._last("changes")

    def _last(self, table: str) -> int:
        return self._database.value("SELECT seq FROM sqlite_sequence WHERE name = ?", table) or 0


def put(stored: Stored, indexed: Subscription) -> Write:
    """Have a subscription, in the place of another of its id or not."""
    return together(
        one("DELETE FROM subscriptions WHERE id = ?", stored.id),
        one(_INSERT, *stored),
        one("INSERT INTO changes (row) VALUES (?)", _row(UPSERT, indexed)),
    )


def remove(identity: str) -> Write:
    """Have no subscription of an id."""
    change = msgspec.json.encode({OP: UNSUBSCRIBE, "id": identity})
    return together(
        one("DELETE FROM subscriptions WHERE id = ?", identity),
        one("INSERT INTO changes (row) VALUES (?)", change),
    )


def put_many(rows: list[Stored]) -> Write:
    """Have many subscriptions; whoever does this has the index built anew."""
    return together(
        many("DELETE FROM subscriptions WHERE id = ?", [(each.id,) for each in rows]), many(_INSERT, rows)
    )


def contained(position: int) -> Write:
    """Forget changes that a snapshot contains."""
    return one("DELETE FROM changes WHERE position <= ?", position)


def _row(op: str, wanted: Subscription) -> bytes:
    fields = {
        OP: op,
        "id": wanted.id,
        "filter": wanted.filter,
        "dialect": wanted.dialect,
        "node": wanted.node,
        "score": wanted.score,
        "weights": wanted.weights,
    }
    return msgspec.json.encode({name: value for name, value in fields.items() if value is not None})
