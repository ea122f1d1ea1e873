"""The dialects of filters: SQL, and those that are translated to it."""

from __future__ import annotations

import re

from headgate.core.subscription import FOREIGN, LABELS, SQL, check_dialect
from headgate.errors import FilterError, SubscriptionError


def to_sql(text: str, dialect: str) -> str:
    """Return the filter of the SQL dialect that means the same.

    >>> to_sql("intersects(tags, 'news')", "labels"), to_sql("age > 30", "sql")
    ("arrays_overlap(tags, array('news'))", 'age > 30')
    >>> to_sql("type LIKE 'com.example.%'", "cesql")
    "type LIKE 'com.example.%'"
    """
    check_dialect(dialect)
    if dialect in FOREIGN:
        from headgate.records.importers.registry import convert

        return convert(text, dialect)
    if dialect not in (SQL, LABELS):
        *most, last = map(repr, (SQL, LABELS, *FOREIGN))
        raise SubscriptionError(
            f"dialect {dialect!r} is not for records: their filters are {', '.join(most)} or {last}"
        )
    if dialect == SQL and _SPARQL.match(text):
        raise FilterError("this is SPARQL: give it the dialect 'sparql'", text, 0)
    if dialect == SQL:
        return text
    from headgate.records.language.labels import labels_to_sql

    return labels_to_sql(text)


_SPARQL = re.compile(r"\s*(?:ASK\s*(?:WHERE\s*)?\{|PREFIX\s+\S*:\s*<|SELECT\s[^{]*\{)", re.IGNORECASE)
