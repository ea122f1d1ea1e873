"""What a filter of the Subscriptions API means, slowly and obviously."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.records.importers import cesql_reference as reference
from headgate.records.importers.cesql_parse import parse

if TYPE_CHECKING:
    from collections.abc import Mapping


def holds(given: Any, event: Mapping[str, Any]) -> bool:
    """Tell whether an event passes a filter, or all of a list.

    >>> holds([{"prefix": {"type": "a"}}, {"not": {"exact": {"subject": "x"}}}], {"type": "ab"})
    True
    """
    if isinstance(given, list):
        return all(holds(each, event) for each in given)
    ((dialect, value),) = given.items()
    match dialect:
        case "all":
            return all(holds(each, event) for each in value)
        case "any":
            return any(holds(each, event) for each in value)
        case "not":
            return not holds(value, event)
        case "sql":
            return reference.holds(parse(value), event)
    return all(_compared(dialect, event.get(name), text) for name, text in value.items())


def _compared(dialect: str, value: Any, text: str) -> bool:
    if value is None:
        return False
    own = reference.to_text(value)
    return {"exact": own == text, "prefix": own.startswith(text), "suffix": own.endswith(text)}[dialect]
