"""What subscribers leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.errors import SubscriptionError

if TYPE_CHECKING:
    from headgate.core.event import Id

SQL = "sql"


@dataclass(frozen=True)
class Subscription:
    """A standing filter and its name.

    >>> Subscription("s1", "age > 30 AND topic = 'news'").dialect
    'sql'
    """

    id: Id
    filter: str
    dialect: str = SQL

    def __post_init__(self) -> None:
        """Refuse dialects that no room speaks."""
        if self.dialect != SQL:
            raise SubscriptionError(f"dialect {self.dialect!r} is not known: use {SQL!r}")
