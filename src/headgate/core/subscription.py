"""What subscribers leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.errors import SubscriptionError

if TYPE_CHECKING:
    from headgate.core.event import Id

SQL = "sql"
LABELS = "labels"
DIALECTS = (SQL, LABELS)


def check_dialect(dialect: str) -> None:
    """Refuse a dialect that no room speaks.

    >>> check_dialect("xpath")
    Traceback (most recent call last):
    ...
    headgate.errors.SubscriptionError: dialect 'xpath' is not known: use 'sql' or 'labels'
    """
    if dialect not in DIALECTS:
        known = " or ".join(map(repr, DIALECTS))
        raise SubscriptionError(f"dialect {dialect!r} is not known: use {known}")


@dataclass(frozen=True)
class Subscription:
    """A standing filter and its name; in a graph, the node where it hangs and its score.

    >>> Subscription("s1", "age > 30 AND topic = 'news'").dialect
    'sql'
    """

    id: Id
    filter: str
    dialect: str = SQL
    node: Id | None = None
    score: float = 0.0

    def __post_init__(self) -> None:
        """Refuse dialects that no room speaks."""
        check_dialect(self.dialect)
