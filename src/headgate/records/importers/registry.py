"""Which languages of other systems there are, what converts each, and which filter a row holds, and whose.

A row has `id` and `filter`, as any table of subscriptions, or is what the system itself exports:

    eventbridge    {"Name": "…", "EventPattern": "…"}, and {"Rules": […]} of them
    elasticsearch  {"_id": "…", "_source": {"query": {…}}}, and {"hits": {"hits": […]}} of them
    cloudevents    a subscription: {"id": "…", "filters": […]}
    vespa          {"put": "…", "fields": {"predicate": "…"}}
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.core.subscription import CESQL, CLOUDEVENTS, ELASTICSEARCH, EVENTBRIDGE, FOREIGN, VESPA
from headgate.errors import SubscriptionError
from headgate.records.importers.sql import naming
from headgate.records.names import EITHER, EXACT_NAMES, TOLD, USUAL, NameSettings

if TYPE_CHECKING:
    from collections.abc import Callable

_CONVERT = "headgate.records.importers.{}"


def convert(text: str, dialect: str, settings: NameSettings = USUAL) -> str:
    """Return the SQL filter that means the same; refuse what cannot be said in SQL, with its place.

    Where a language tells apart what the settings do not, the filter means what they can say.

    >>> convert('{"source": ["aws.ec2"]}', "eventbridge")
    "source = 'aws.ec2' OR array_contains(source, 'aws.ec2')"
    """
    converter = _loaded.get(dialect)
    if converter is None:
        assert dialect in FOREIGN
        converter = _loaded[dialect] = import_module(_CONVERT.format(dialect)).to_sql
    if settings.usual:
        return converter(text)
    with naming(settings):
        return converter(text)


EXACTLY = {
    EVENTBRIDGE: NameSettings(TOLD, EXACT_NAMES, EITHER),
    CLOUDEVENTS: NameSettings(names=EXACT_NAMES),
    CESQL: NameSettings(names=EXACT_NAMES),
    ELASTICSEARCH: NameSettings(names=EXACT_NAMES, dots=EITHER),
    VESPA: NameSettings(names=EXACT_NAMES),
}
"""What names mean in each language: the settings with which filters mean what they mean there."""
_loaded: dict[str, Callable[[str], str]] = {}

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
            predicate = fields.get("predicate", texts[0] if len(texts) == 1 else None)
            return given.get("put", given.get("id")), predicate, {}
    return None, None, {}
