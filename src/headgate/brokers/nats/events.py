"""Messages as rows of events: what their headers say goes into the row.

plain        one JSON object, as it is
binary       CloudEvents: id, source and time are headers `ce-…`, the data is the message's
structured   CloudEvents: all of it is one JSON object, `application/cloudevents+json`
a document   any other content type: its text, with an id, in a row as tables of documents have them
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

if TYPE_CHECKING:
    from headgate.brokers.nats.reading import Message

JSON, STRUCTURED = "application/json", "application/cloudevents+json"
TYPES = ("content-type", "ce-datacontenttype", "datacontenttype")
MESSAGE_ID = "nats-msg-id"

_ENVELOPE = ("id", "source", "time")
_PREFIX = "ce-"


class Row(NamedTuple):
    """The columns of an event but for the time of its arrival."""

    value: bytes
    content_type: str | None
    origin: str


def as_row(message: Message) -> Row:
    """Make a row of a message."""
    as_it_is = Row(message.data, None, message.subject)
    if not message.headers:
        return as_it_is
    # Names of headers are written in any case.
    known = {name.lower(): value for name, value in message.headers.items()}
    kind = content_type(known)
    media = (kind or JSON).partition(";")[0].strip().lower()
    if media == STRUCTURED:
        return as_it_is._replace(value=_opened(message.data))
    given = {name: unquote(known[_PREFIX + name]) for name in _ENVELOPE if known.get(_PREFIX + name)}
    if media == JSON:
        return as_it_is._replace(value=_filled(message.data, given)) if given else as_it_is
    place = f"{message.subject}/{message.sequence}"
    try:
        text = message.data.decode()
    except UnicodeDecodeError:
        # The parser knows better what it is written in; but then only its place can be its id.
        return Row(message.data, kind, place)
    row = {"id": known.get(MESSAGE_ID) or place, **given, "datacontenttype": kind, "data": text}
    return as_it_is._replace(value=_written(row))


def content_type(headers: dict[str, str]) -> str | None:
    """Find the media type among headers with names in lower case."""
    return next((headers[name] for name in TYPES if headers.get(name)), None)


def _filled(data: bytes, given: dict[str, str]) -> bytes:
    """Add to a record what it does not say of itself; what is no record stays as it is, and is refused."""
    found = _object(data)
    return data if found is None else _written({**given, **found})


def _opened(data: bytes) -> bytes:
    """Take a record out of its envelope, with the envelope's id, source and time; a document stays in it.

    Where the record has an id, source or time of its own, the envelope's goes before it.
    """
    found = _object(data)
    if found is None or not isinstance(found.get("data"), dict):
        return data
    return _written({**found["data"], **{name: found[name] for name in _ENVELOPE if name in found}})


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _written(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode()
