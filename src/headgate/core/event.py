"""What publishers send."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from headgate.core.values import flatten, fold
from headgate.errors import EventError

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

    from headgate.core.values import Path

Id: TypeAlias = str | int
"""How users name events and subscriptions: text or an int64, one of the two within a table."""

JSON = "application/json"
ID = "id"
"""The field or column that holds the id, of events and of subscriptions."""
SOURCE = "source"
"""The field or column that names the node where an event enters the graph."""

_LONE_SURROGATE = re.compile(
    r"(?<!\\)\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


@dataclass(frozen=True)
class Event:
    """One event in the CloudEvents envelope; `data` is the record that filters look at.

    >>> Event("e1", {"topic": "news"}).attributes
    {('topic',): 'news'}
    """

    id: Id
    data: Mapping[str, object]
    time: dt.datetime | None = None
    source: Id | None = None
    content_type: str = JSON

    def __post_init__(self) -> None:
        """Refuse what is not a record."""
        if self.content_type != JSON:
            raise EventError(f"content type {self.content_type!r} is not supported: send {JSON}")

    @cached_property
    def attributes(self) -> dict[Path, object]:
        """List the values by folded path."""
        return flatten(self.data)

    @classmethod
    def from_row(cls, row: Mapping[str, object]) -> Event:
        """Make an event of a table's row: `id`, perhaps `source`, and the attributes (these are two of them).

        >>> Event.from_row({"id": 7, "topic": "news"}).id
        7
        """
        identity = row.get(ID)
        if identity is None:
            identity = next((value for name, value in row.items() if fold(name) == ID), None)
        if isinstance(identity, bool) or not isinstance(identity, str | int):
            found = "no id" if identity is None else f"id {identity!r}"
            raise EventError(f"the event has {found}: give the field 'id' as text or a whole number")
        return cls(identity, row, source=_source(row))

    @classmethod
    def from_json(cls, text: str | bytes) -> Event:
        """Read one JSON object: the field `id` and the attributes.

        >>> Event.from_json('{"id": "e1", "topic": "news"}').data
        {'id': 'e1', 'topic': 'news'}
        """
        return cls.from_row(read_object(text))


def _source(row: Mapping[str, object]) -> Id | None:
    """Find the node that an event comes from, if the row names one."""
    source = row.get(SOURCE)
    if source is None:
        source = next((value for name, value in row.items() if fold(name) == SOURCE), None)
    return source if isinstance(source, str | int) and not isinstance(source, bool) else None


def read_object(text: str | bytes) -> dict[str, object]:
    """Read a JSON object; refuse anything else in one line."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        lone = _LONE_SURROGATE.search(text if isinstance(text, str) else text.decode(errors="replace"))
        reason = f"the escape {lone[0]} is a lone surrogate" if lone else str(error)
        raise EventError(f"not valid JSON: {reason}") from None
    except UnicodeError as error:
        raise EventError(f"not valid JSON: {error}") from None
    except RecursionError:
        raise EventError("not usable JSON: it nests too deep") from None
    if not isinstance(value, dict):
        raise EventError(f"expected a JSON object, found {type(value).__name__}")
    return value
