"""Filters of the Subscriptions API to SQL.

A filter holds or not: `not` of a filter about an attribute that is missing holds. So each filter is
converted to a condition that is TRUE where it holds, or to one that is TRUE where it does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.errors import FilterError
from headgate.records.importers import sql
from headgate.records.importers.cesql import to_sql as cesql_to_sql
from headgate.records.importers.cesql_reference import REQUIRED
from headgate.records.importers.reading import Refused, convert_json, text_of
from headgate.records.importers.sql import Sql, every, some

if TYPE_CHECKING:
    from headgate.records.importers.reading import DocumentPath

DIALECTS = ("exact", "prefix", "suffix", "all", "any", "not", "sql")
_WHOLE = ("filters", "source", "types")
"""What a subscription says of events; the rest of it is about delivery."""


def to_sql(text: str) -> str:
    """Convert a filter, a list of filters that must all hold, or a subscription with its `filters`.

    >>> to_sql('{"any": [{"exact": {"type": "a"}}, {"not": {"prefix": {"subject": "x"}}}]}')
    "type = 'a' OR subject IS NULL OR subject NOT LIKE 'x%'"
    """
    return convert_json(text, _document, "a filter of the Subscriptions API")


def _document(given: Any) -> Sql:
    if isinstance(given, list):
        return every([_filter(each, (number,), holds=True) for number, each in enumerate(given)])
    if isinstance(given, dict) and "filters" in given:
        return _subscription(given)
    return _filter(given, (), holds=True)


def _subscription(given: dict[str, Any]) -> Sql:
    filters, source, types = (given.get(name) for name in _WHOLE)
    if not isinstance(filters, list):
        raise Refused(("filters",), "filters takes a list of filters")
    conditions = [_filter(each, ("filters", number), holds=True) for number, each in enumerate(filters)]
    if source is not None:
        conditions.append(_compared("exact", "source", source, ("source",), holds=True))
    if types is not None:
        if not isinstance(types, list) or not types:
            raise Refused(("types",), "types takes a list of at least one type of events")
        named = [
            _compared("exact", "type", each, ("types", number), holds=True)
            for number, each in enumerate(types)
        ]
        conditions.append(some(named))
    return every(conditions)


def _filter(given: Any, path: DocumentPath, *, holds: bool) -> Sql:
    if not isinstance(given, dict) or len(given) != 1:
        raise Refused(path, 'a filter is an object of one dialect: write {"exact": {"type": "…"}}')
    ((dialect, value),) = given.items()
    here = (*path, dialect)
    match dialect:
        case "exact" | "prefix" | "suffix":
            if not isinstance(value, dict) or not value:
                raise Refused(here, f"{dialect} takes an object of attributes and texts")
            conditions = [
                _compared(dialect, name, each, (*here, name), holds=holds) for name, each in value.items()
            ]
            return every(conditions) if holds else some(conditions)
        case "all" | "any":
            if not isinstance(value, list) or not value:
                raise Refused(here, f"{dialect} takes a list of at least one filter")
            conditions = [_filter(each, (*here, number), holds=holds) for number, each in enumerate(value)]
            return every(conditions) if (dialect == "all") == holds else some(conditions)
        case "not":
            return _filter(value, here, holds=not holds)
        case "sql":
            return _expression(value, here, holds=holds)
    raise Refused(here, f"{dialect!r} is not a dialect of filters: they are {', '.join(DIALECTS)}")


def _compared(dialect: str, name: str, value: Any, path: DocumentPath, *, holds: bool) -> Sql:
    if not name or not value or not isinstance(value, str):
        raise Refused(path, f"{dialect} compares an attribute with a text that is not empty")
    if not name.isascii() or not name.isalnum() or name != name.lower():
        reason = f"{name!r} is no name of an attribute: CloudEvents have lower-case letters and digits"
        raise Refused(path, reason)
    text_of(value, path)
    own = sql.name(name)
    if dialect == "exact" and holds and not sql.casts(value):
        return sql.one_of(own, [sql.text(value)])
    # LIKE sees numbers and Booleans as the texts that CloudEvents have for them.
    written = sql.as_pattern(value)
    pattern = sql.text({"exact": written, "prefix": f"{written}%", "suffix": f"%{written}"}[dialect])
    if holds:
        return Sql(f"{own} LIKE {pattern}")
    missing = [] if name in REQUIRED else [Sql(f"{own} IS NULL")]
    return some([*missing, Sql(f"{own} NOT LIKE {pattern}")])


def _expression(value: Any, path: DocumentPath, *, holds: bool) -> Sql:
    if not isinstance(value, str):
        raise Refused(path, "sql takes an expression of CloudEvents SQL as a text")
    try:
        condition = sql.parenthesised(cesql_to_sql(value))
    except FilterError as refused:
        raise Refused(path, f"sql: {refused}") from None
    return condition if holds else sql.unless(condition)
