"""Rows of other systems: which filter a row holds, and whose it is.

A row has `id` and `filter`, as any table of subscriptions, or is what the system itself exports:

    eventbridge    {"Name": "…", "EventPattern": "…"}, and {"Rules": […]} of them
    elasticsearch  {"_id": "…", "_source": {"query": {…}}}, and {"hits": {"hits": […]}} of them
    cloudevents    a subscription: {"id": "…", "filters": […]}
    vespa          {"put": "…", "fields": {"predicate": "…"}}
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from headgate.core.subscription import CESQL, CLOUDEVENTS, ELASTICSEARCH, EVENTBRIDGE, VESPA
from headgate.errors import SubscriptionError

_EXPECTED = {
    EVENTBRIDGE: "a row has id and filter, or Name and EventPattern",
    CLOUDEVENTS: "a row has id and filter, or id and filters",
    CESQL: "a row has id and filter",
    ELASTICSEARCH: "a row has id and filter, or _id and _source with the query",
    VESPA: "a row has id and filter, or put and fields with one predicate",
}


class Row(NamedTuple):
    """A filter, whose it is, and what else a table of subscriptions has of it."""

    id: Any
    filter: str
    others: dict[str, Any]


def rows_in(document: Any) -> list[Any]:
    """List the rows of a document that holds many; of any other, itself.

    >>> rows_in({"Rules": [{"Name": "a"}]}), rows_in({"id": 1})
    ([{'Name': 'a'}], [{'id': 1}])
    """
    match document:
        case list():
            return document
        case {"Rules": list(rows)} | {"hits": {"hits": list(rows)}}:
            return rows
    return [document]


def row_of(given: Any, dialect: str) -> Row:
    """Find the filter of a row.

    >>> row_of({"Name": "a", "EventPattern": '{"source": ["x"]}', "State": "ENABLED"}, "eventbridge")
    Row(id='a', filter='{"source": ["x"]}', others={})
    """
    if not isinstance(given, dict):
        raise SubscriptionError(f"{_EXPECTED[dialect]}: this is no object")
    identity, written, others = _found(given, dialect)
    if identity is None or written is None:
        raise SubscriptionError(f"{_EXPECTED[dialect]}: this has {', '.join(map(str, given)) or 'nothing'}")
    if not isinstance(written, str):
        written = json.dumps(written, ensure_ascii=False)
    return Row(identity, written, others)


def _found(given: dict[str, Any], dialect: str) -> tuple[Any, Any, dict[str, Any]]:
    if "filter" in given:
        left = ("id", "filter", "dialect")
        return (
            given.get("id"),
            given["filter"],
            {name: each for name, each in given.items() if name not in left},
        )
    match dialect, given:
        case "eventbridge", {"Name": name}:
            return name, given.get("EventPattern"), {}
        case "cloudevents", {"id": name, "filters": _}:
            about = ("filters", "source", "types")
            return name, {each: given[each] for each in about if each in given}, {}
        case "elasticsearch", {"_id": name, "_source": {"query": query}}:
            return name, query, {}
        case "vespa", {"fields": dict(fields)}:
            texts = [each for each in fields.values() if isinstance(each, str)]
            found = fields.get("predicate", texts[0] if len(texts) == 1 else None)
            return given.get("put", given.get("id")), found, {}
    return None, None, {}
