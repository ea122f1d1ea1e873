"""What a predicate of Vespa means, slowly and obviously.

What a query gives to Vespa is the event here: attributes with one text or many, and numbers for ranges.
An attribute that is not given is in no set and in no range.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headgate.records.importers.vespa import Constant, InRange, InSet, Join, Not

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.records.importers.vespa import Node


def holds(node: Node, event: Mapping[str, Any]) -> bool:
    """Tell whether a predicate holds.

    >>> from headgate.records.importers.vespa import parse
    >>> holds(parse("hobby in [golf] and not (age in [..20])"), {"hobby": ["chess", "golf"]})
    True
    """
    match node:
        case Constant(value):
            return value
        case Not(child):
            return not holds(child, event)
        case Join(both, children):
            return (all if both else any)(holds(each, event) for each in children)
        case InSet(name, values):
            return any(_text(each) in values for each in _given(event, name))
        case InRange(name, low, high):
            numbers = [number for each in _given(event, name) if (number := _number(each)) is not None]
            return any((low is None or low <= each) and (high is None or each <= high) for each in numbers)


def _given(event: Mapping[str, Any], name: str) -> list[Any]:
    value = event.get(name)
    return [each for each in (value if isinstance(value, list) else [value]) if each is not None]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(value: Any) -> int | float | None:
    if isinstance(value, str):
        return int(value) if re.fullmatch("[+-]?[0-9]+", value) else None
    return None if isinstance(value, bool) else value
