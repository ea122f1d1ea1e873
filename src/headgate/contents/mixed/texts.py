"""The texts of filters of several kinds: each begins with the dialect that it is written in.

What stands above the contents, a graph or a ranking, keeps the texts of filters and hands them back later. It
does so in the one dialect of the content; here that is `MIXED`, whose texts say which dialect they are in:

    sql: age > 30
    sparql: ASK { ?x a <urn:Art> }
    *                                   every event of every kind
"""

from __future__ import annotations

from headgate.core.subscription import MIXED, check_dialect
from headgate.errors import SubscriptionError

ALWAYS = "*"
"""The filter that every event matches, whatever its kind."""
_MARK = ": "


def with_dialect(text: str, dialect: str) -> str:
    """Write a filter with its dialect.

    >>> with_dialect("age > 30", "sql")
    'sql: age > 30'
    """
    return f"{dialect}{_MARK}{text}"


def read_dialect(text: str, dialect: str) -> tuple[str, str]:
    """Return a filter in its own dialect, and that; refuses a text that does not say it.

    >>> read_dialect("sql: age > 30", "mixed"), read_dialect("age > 30", "sql")
    (('age > 30', 'sql'), ('age > 30', 'sql'))
    """
    if dialect != MIXED:
        return text, dialect
    spoken, mark, rest = text.partition(_MARK)
    if not mark:
        raise SubscriptionError(
            f"the filter {text!r} does not say its dialect: write it as 'sql: age > 30'", names_it=False
        )
    check_dialect(spoken)
    return rest, spoken
