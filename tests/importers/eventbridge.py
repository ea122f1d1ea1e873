"""What an event pattern means, slowly and obviously, by the documentation of EventBridge and Event Ruler.

The pattern is the JSON that was read, the event a dict. Names have case, null is a value, and an array is
each of its elements, also in arrays of objects and of arrays; there records differ, see
`docs/importers.md`.
"""

from __future__ import annotations

import ipaddress
import re
from decimal import Decimal
from typing import Any


def matches(pattern: dict[str, Any], event: dict[str, Any]) -> bool:
    """Tell whether an event fits a pattern.

    >>> matches({"a": [{"prefix": "x"}], "b": {"c": [1, None]}}, {"a": ["y", "xy"], "b": {"c": 1.0}})
    True
    """
    return all(_field(key, wanted, event) for key, wanted in pattern.items())


def _field(key: str, wanted: Any, event: dict[str, Any]) -> bool:
    if key == "$or":
        return any(matches(each, event) for each in wanted)
    if isinstance(wanted, dict):
        found = event.get(key)
        return any(matches(wanted, each) for each in _flat(found) if isinstance(each, dict)) or (
            # Deeper, nothing is there: that may be what is asked for.
            not any(isinstance(each, dict) for each in _flat(found)) and matches(wanted, {})
        )
    values = [each for each in _flat(event[key]) if not isinstance(each, dict)] if key in event else []
    return any(_fits(each, values) for each in wanted)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [leaf for each in value for leaf in _flat(each)]
    return [value]


def _fits(wanted: Any, values: list[Any]) -> bool:
    if isinstance(wanted, dict) and "exists" in wanted:
        return bool(values) == bool(wanted["exists"])
    return any(_one(wanted, value) for value in values)


def _one(wanted: Any, value: Any) -> bool:
    """Ask one value."""
    if not isinstance(wanted, dict):
        return _equal(wanted, value)
    ((operator, given),) = wanted.items()
    match operator:
        case "anything-but" if isinstance(given, dict):
            ((inner, texts),) = given.items()
            return not any(
                _one({inner: text}, value) for text in (texts if isinstance(texts, list) else [texts])
            )
        case "anything-but":
            return not any(_equal(each, value) for each in (given if isinstance(given, list) else [given]))
        case "numeric":
            return _is_number(value) and all(
                _compared(sign, value, bound) for sign, bound in zip(given[::2], given[1::2], strict=True)
            )
    return isinstance(value, str) and _text(operator, given, value)


def _text(operator: str, given: Any, value: str) -> bool:
    if isinstance(given, dict):
        return _text(operator, given["equals-ignore-case"].lower(), value.lower())
    match operator:
        case "prefix":
            return value.startswith(str(given))
        case "suffix":
            return value.endswith(str(given))
        case "equals-ignore-case":
            return value.lower() == str(given).lower()
        case "wildcard":
            parts = re.findall(r"\\.|[^\\]", given, re.DOTALL)
            pattern = "".join(".*" if part == "*" else re.escape(part[-1]) for part in parts)
            return re.fullmatch(pattern, value, re.DOTALL) is not None
        case "cidr":
            try:
                return ipaddress.ip_address(value) in ipaddress.ip_network(given, strict=False)
            except ValueError:
                return False
    raise AssertionError(operator)


def _equal(wanted: Any, value: Any) -> bool:
    if _is_number(wanted) and _is_number(value):
        return float(wanted) == float(value)
    return type(wanted) is type(value) and wanted == value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _compared(sign: str, value: Any, bound: Any) -> bool:
    left, right = float(value), float(bound)
    return {
        "=": left == right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[sign]
