"""What tests of importers share: converted filters against the references of their languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from headgate import Event, Subscription
from headgate.errors import FilterError
from headgate.records.index.index import RecordIndex
from headgate.records.language.dialects import to_sql
from headgate.records.language.parse import parse_filter
from headgate.records.names import USUAL
from headgate.records.reference import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.records.names import NameSettings

COMPUTED = True
"""Whether filters may hold expressions (`typeof(a)`, `exists(a, x -> …)`); a test says if this is wrong."""


def expressions_are_there() -> bool:
    """Tell whether the parser takes expressions."""
    try:
        parse_filter("typeof(a) = 'string'")
    except FilterError:
        return False
    return True


def taken(text: str, dialect: str, settings: NameSettings) -> bool:
    """Tell whether a filter can be indexed; where it is refused, it must need expressions."""
    sql = to_sql(text, dialect, settings)
    try:
        parse_filter(sql)
    except FilterError:
        needs = ("typeof(", "exists(", "RLIKE", "coalesce(", "CAST(", "CASE ", " div ", "length(", "concat(")
        assert not COMPUTED, sql
        assert any(each in sql for each in needs), sql
        return False
    return True


def agree(
    dialect: str,
    filters: Sequence[str],
    events: Sequence[Any],
    holds: Callable[[str, Any], bool],
    least: int = 1,
    settings: NameSettings = USUAL,
) -> int:
    """Hold filters, and what they become, against their reference over events; count those that hold."""
    known = {number: text for number, text in enumerate(filters) if taken(text, dialect, settings)}
    assert len(known) >= least
    trees = {number: parse_filter(to_sql(text, dialect, settings)) for number, text in known.items()}
    given = [Subscription(number, text, dialect) for number, text in known.items()]
    index = RecordIndex.build(given, settings=settings)
    count = 0
    for event in events:
        row = Event("e", event)
        found = set(index.match(row))
        for number, text in known.items():
            expected = holds(text, event)
            count += expected
            flat = row.attributes_as(settings.mark)
            if matches(trees[number], flat) != expected or (number in found) != expected:
                pytest.fail(f"{text}\n{to_sql(text, dialect, settings)}\n{event}\nshould be {expected}")
    return count
