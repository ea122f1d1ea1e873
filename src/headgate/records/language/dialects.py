"""The dialects of filters: SQL, and those that are translated to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headgate.core.subscription import FOREIGN, LABELS, SQL, check_dialect
from headgate.errors import FilterError
from headgate.records.names import USUAL

if TYPE_CHECKING:
    from headgate.records.names import NameSettings


def to_sql(text: str, dialect: str, settings: NameSettings = USUAL) -> str:
    """Return the filter of the SQL dialect that means the same, as an index keeps it.

    >>> to_sql("intersects(tags, 'news')", "labels"), to_sql("age > 30", "sql")
    ("arrays_overlap(tags, array('news'))", 'age > 30')
    >>> to_sql("type LIKE 'com.example.%'", "cesql")
    "type LIKE 'com.example.%'"
    """
    check_dialect(dialect, (SQL, LABELS, *FOREIGN), "records")
    if dialect in FOREIGN:
        from headgate.records.importers.registry import convert

        return convert(text, dialect, settings)
    if dialect == SQL and _SPARQL.match(text):
        raise FilterError("this is SPARQL: give it the dialect 'sparql'", text, 0)
    if dialect == SQL:
        return settings.to_marked(text)
    from headgate.records.language.labels import labels_to_sql

    return settings.to_marked(labels_to_sql(text))


_SPARQL = re.compile(r"\s*(?:ASK\s*(?:WHERE\s*)?\{|PREFIX\s+\S*:\s*<|SELECT\s[^{]*\{)", re.IGNORECASE)
