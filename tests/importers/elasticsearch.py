"""What a percolator query means, slowly and obviously, by the documentation of Elasticsearch.

Fields have the types of their values; texts are keywords, and dates are texts of ISO 8601 in ranges of such.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from fnmatch import translate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def matches(query: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Tell whether a document fits a query.

    >>> matches({"bool": {"must_not": {"term": {"tags": "x"}}}}, {"tags": ["y", None]})
    True
    """
    ((kind, body),) = query.items()
    match kind:
        case "bool":
            return _bool(body, document)
        case "constant_score":
            return matches(body["filter"], document)
        case "dis_max":
            return any(matches(each, document) for each in body["queries"])
        case "match_all" | "match_none":
            return bool(kind == "match_all")
        case "exists":
            return bool(values(document, body["field"]))
        case "ids":
            return document.get("id") in body["values"]
    ((field, wanted),) = body.items()
    return any(_fits(kind, wanted, value) for value in values(document, field))


def _bool(body: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    parts = {name: _listed(body.get(name)) for name in ("must", "filter", "must_not", "should")}
    if not all(matches(each, document) for each in (*parts["must"], *parts["filter"])):
        return False
    if any(matches(each, document) for each in parts["must_not"]):
        return False
    should = parts["should"]
    if not should:
        return True
    given = body.get("minimum_should_match", 0 if parts["must"] or parts["filter"] else 1)
    text = str(given)
    least = int(len(should) * int(text[:-1]) / 100) if text.endswith("%") else int(text)
    least = len(should) + least if text.startswith("-") else least
    return sum(matches(each, document) for each in should) >= least


def _listed(given: Any) -> list[Any]:
    return [] if given is None else given if isinstance(given, list) else [given]


def values(document: Mapping[str, Any], field: str) -> list[Any]:
    """List the values of a field: arrays are what is in them, null is none."""
    found: list[Any] = [document]
    for name in field.removesuffix(".keyword").split("."):
        found = [each.get(name) for each in _flat(found) if isinstance(each, dict)]
    return [each for each in _flat(found) if each is not None]


def _flat(found: list[Any]) -> list[Any]:
    return [leaf for each in found for leaf in (_flat(each) if isinstance(each, list) else [each])]


def _fits(kind: str, wanted: Any, value: Any) -> bool:
    folded = False
    if isinstance(wanted, dict) and kind != "range":
        folded = wanted.get("case_insensitive", False)
        wanted = wanted["query" if kind == "match" else "value"]
    if folded and isinstance(value, str):
        wanted, value = wanted.lower(), value.lower()
    match kind:
        case "term" | "match":
            return _equal(wanted, value)
        case "terms":
            return any(_equal(each, value) for each in wanted)
        case "range":
            return all(_within(sign, bound, value) for sign, bound in wanted.items())
        case "prefix":
            return isinstance(value, str) and value.startswith(wanted)
        case "wildcard":
            return (
                isinstance(value, str) and re.match(translate(wanted.replace("[", "[[]")), value) is not None
            )
        case "regexp":
            return isinstance(value, str) and re.fullmatch(wanted, value, re.DOTALL) is not None
    raise AssertionError(kind)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _equal(wanted: Any, value: Any) -> bool:
    if _is_number(wanted) and _is_number(value):
        return float(wanted) == float(value)
    return type(wanted) is type(value) and wanted == value


def _within(sign: str, bound: Any, value: Any) -> bool:
    if isinstance(bound, str) != isinstance(value, str) or isinstance(value, bool):
        return False
    if isinstance(bound, str) and re.match(r"[0-9]{4}(-|\Z)", bound):
        begin, end = _day(bound)
        try:
            at = dt.datetime.fromisoformat(value).replace(tzinfo=None)
        except ValueError:
            return False
        return {"gt": at >= end, "gte": at >= begin, "lt": at < begin, "lte": at < end}[sign]
    left: Any = value if isinstance(bound, str) else float(value)
    right: Any = bound if isinstance(bound, str) else float(bound)
    return bool({"gt": left > right, "gte": left >= right, "lt": left < right, "lte": left <= right}[sign])


def _day(bound: str) -> tuple[dt.datetime, dt.datetime]:
    """Return where a year, a month, a day or a second begins, and where it ends."""
    parts = [int(each) for each in re.split("[-T:]", bound)]
    year, month, day, hour, minute, second = (*parts, *(0, 1, 1, 0, 0, 0)[len(parts) :])
    begin = dt.datetime(year, month, day, hour, minute, second)
    if len(parts) == 1:
        return begin, begin.replace(year=begin.year + 1)
    if len(parts) == 2:
        return begin, (begin + dt.timedelta(days=32)).replace(day=1)
    return begin, begin + (dt.timedelta(days=1) if len(parts) == 3 else dt.timedelta(seconds=1))
