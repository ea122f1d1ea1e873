"""How subscriptions are cut into shards: how many there are, and which rule says where each one lies.

    hash      by the hash of the id
    tenant    by the hash of a column of the table, so that one tenant's lie together
    access    by what the filter demands, so that events pass the shards by that none of their values lead to

Whatever the rule, a subscription is on one shard, and the answers are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headgate.contents.registry import kind_of
from headgate.core.event import SOURCE
from headgate.core.settings import AUTO
from headgate.core.values import fold
from headgate.errors import TableError
from headgate.graph.model import MOST_SHARDS, check_count

if TYPE_CHECKING:
    from headgate.core.values import Path


BUILDING = 4 << 10
"""Bytes that building takes for a subscription, about; more than what is mapped for it to match."""
HASH, TENANT, ACCESS = RULES = ("hash", "tenant", "access")
TENANTS = "tenant"
"""The column of the rule `tenant`, if none is named."""


@dataclass(frozen=True)
class Sharding:
    """A number of shards and a rule.

    `column` is that of the table for `tenant`, and an attribute of events for `access`. A count of 0 is as
    many as memory asks for.
    """

    count: int = 1
    by: str = HASH
    column: str | None = None

    @classmethod
    def of(cls, count: int | str, by: str = HASH, column: str | None = None) -> Sharding:
        """Refuse what cannot be.

        >>> Sharding.of(4, "tenant").column
        'tenant'
        """
        if isinstance(count, str):
            if count != AUTO:
                raise TableError(f"{count!r} shards: give a number, or {AUTO!r}")
            count = 0
        else:
            check_count(count)
        if by not in RULES:
            raise TableError(f"there is no rule {by!r} for shards: use {', '.join(map(repr, RULES))}")
        if column is not None and not all(column.split(".")):
            raise TableError(f"{column!r} is not a name of a column: give a name, or names with dots")
        if by == HASH and column is not None:
            raise TableError(
                f"shards by hash look at ids alone: leave out the column {column!r}, or use access"
            )
        return cls(count, by, TENANTS if by == TENANT and column is None else column)

    def fitted(self, subscriptions: int, memory: int) -> Sharding:
        """Choose the number, if it is open: each shard is built in so many bytes.

        >>> Sharding.of("auto").fitted(10_000_000, 6 << 30).count
        7
        """
        if self.count:
            return self
        needed = -(-subscriptions * BUILDING // memory)
        return replace(self, count=min(max(1, needed), MOST_SHARDS))

    def routed_by(self, content: str) -> Path | None:
        """Name the attribute of events that leads to shards; none if there is none, or for documents.

        >>> Sharding(4, "access", "User.Country").routed_by("records")
        ('user', 'country')
        """
        if kind_of(content).documents or self.column is None:
            return None
        path = tuple(map(fold, self.column.split(".")))
        # What a graph makes of a source is not what the filter sees.
        return None if path == (SOURCE,) else path

    def demands(self, content: str) -> bool:
        """Tell whether filters lie by what they demand of documents, which have no attributes.

        >>> Sharding(4, "access").demands("records")
        False
        """
        return self.by == ACCESS and kind_of(content).documents

    def check_content(self, content: str) -> None:
        """Refuse `access` without an attribute, for records: they have many, and none comes first."""
        kind = kind_of(content)
        if self.count != 1 and self.by == ACCESS and not kind.documents and self.column is None:
            raise TableError(
                f"shards by access of {kind.title} need the attribute that leads to them: give --shard-column"
            )
        if self.by == ACCESS and kind.documents and self.column is not None:
            raise TableError(
                f"shards by access of documents go by what their patterns name, and {self.column!r} is an "
                "attribute of records: leave out --shard-column"
            )
