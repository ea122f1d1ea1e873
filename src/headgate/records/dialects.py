"""The dialects that filters may be written in; behind this module there is SQL only."""

from __future__ import annotations

from headgate.core.subscription import LABELS, check_dialect
from headgate.records.labels import labels_to_sql


def to_sql(text: str, dialect: str) -> str:
    """Return the filter of the SQL dialect that means the same.

    >>> to_sql("intersects(tags, 'news')", "labels"), to_sql("age > 30", "sql")
    ("arrays_overlap(tags, array('news'))", 'age > 30')
    """
    check_dialect(dialect)
    return labels_to_sql(text) if dialect == LABELS else text
