"""Events over the wire: CloudEvents in their three modes, and plain rows.

    structured   application/cloudevents+json          one envelope
    batch        application/cloudevents-batch+json    a list of envelopes
    binary       `ce-` headers, the data as the body
    rows         application/json, application/x-ndjson    objects as the library takes them

What is kept of an event is its envelope, as JSON. Filters of records look at one record:

    the attributes of `data`, if it is an object; over them the context attributes (`id`, `source`, `type`,
    …); and `data` as a whole, so that `data.type` is there where the context has a `type` as well

A row is the record by itself. Its envelope has the extension `headgate: row`.
"""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import msgspec

from headgate.client.log import MARK, NOWHERE, ROW, is_json
from headgate.core.event import ID, JSON, Event, media_type, read_object, read_time
from headgate.core.values import fold
from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
NDJSON = "application/x-ndjson"
SPECVERSION = "1.0"
_REQUIRED = ("id", "source", "type")
_PLAIN = frozenset(("specversion", *_REQUIRED, "data"))
"""What most events have, and nothing that must be looked at beyond these."""
_NAME = re.compile(r"[a-z0-9]+")
_TEXTS = ("subject", "time", "datacontenttype", "dataschema")
_KNOWN = frozenset((*_PLAIN, *_TEXTS, "data_base64"))
"""The attributes of CloudEvents, and their data; all else are extensions."""
_raws = msgspec.json.Decoder(list[msgspec.Raw])
_objects = msgspec.json.Decoder(list[dict[str, Any]])
_encode = msgspec.json.Encoder().encode


class EnvelopeTypeError(EventError):
    """Refuse a request whose content type holds no events."""


class Sent(NamedTuple):
    """An event that was sent: what is matched, and the text that is kept."""

    event: Event
    text: bytes


def read_sent(body: bytes, content_type: str, headers: Mapping[str, str]) -> list[Sent]:
    """Read the events of a request."""
    kind = content_type.partition(";")[0].strip().casefold()
    if kind == STRUCTURED:
        return [read_envelope(body)]
    if kind == BATCH:
        return read_batch(body)
    if "ce-specversion" in headers or "ce-id" in headers or "ce-type" in headers:
        return [read_binary(body, content_type, headers)]
    if kind == NDJSON:
        return [_read_line(line, number) for number, line in enumerate(body.splitlines(), 1) if line.strip()]
    if kind == JSON:
        return _read_rows(body)
    raise EnvelopeTypeError(
        f"the content type is {content_type!r}: send {STRUCTURED}, {BATCH}, {JSON}, {NDJSON}, or "
        "binary mode with "
        "`ce-` headers"
    )


def read_events(body: bytes, content_type: str, headers: Mapping[str, str]) -> list[Event]:
    """Read the events of a request of which no text is kept."""
    if content_type == BATCH:
        events = _read_together(body)
        if events is not None:
            return events
    return [each.event for each in read_sent(body, content_type, headers)]


def _read_together(body: bytes) -> list[Event] | None:
    """Read a list of envelopes at once; None if one is wrong, which reading them one by one tells."""
    try:
        return [event_of(fields) for fields in _objects.decode(body)]
    except (msgspec.DecodeError, UnicodeError, RecursionError, EventError):
        return None


def read_batch(body: bytes) -> list[Sent]:
    """Read a list of envelopes."""
    try:
        raws = _raws.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise EventError(f"the batch is no JSON list of events: {error}") from None
    events = _read_together(body)
    if events is not None:
        return list(map(Sent, events, map(bytes, raws)))
    sent = []
    for position, raw in enumerate(raws):
        try:
            sent.append(read_envelope(bytes(raw)))
        except EventError as error:
            raise EventError(f"event {position} of the batch: {error}") from None
    return sent


def read_envelope(text: bytes) -> Sent:
    """Read an envelope.

    >>> sent = read_envelope(b'{"specversion":"1.0","id":"e1","source":"/a","type":"t","data":{"age":35}}')
    >>> sent.event.data["age"], sent.event.data["type"], sent.event.source
    (35, 't', '/a')
    """
    fields = read_object(text)
    return Sent(event_of(fields), text)


def event_of(fields: dict[str, Any]) -> Event:
    """Make the event of an envelope; refuses what is no CloudEvent."""
    _check(fields)
    kind = fields.get("datacontenttype", JSON)
    if kind == JSON or is_json(kind):
        return _record(fields)
    return Event(
        fields["id"], _document(fields), read_time(fields["id"], fields.get("time")), fields["source"], kind
    )


def _check(fields: dict[str, Any]) -> None:
    """Refuse what is no CloudEvent."""
    if fields.get("specversion") != SPECVERSION:
        raise EventError(f"specversion is {fields.get('specversion')!r}: give '1.0', which CloudEvents have")
    for name in _REQUIRED:
        value = fields.get(name)
        if not isinstance(value, str) or not value:
            raise EventError(f"{name} is {value!r}: a CloudEvent has {name!r}, as text that is not empty")
    if _PLAIN.issuperset(fields):
        return
    _check_extensions(fields)
    for name in _TEXTS:
        value = fields.get(name)
        if value is not None and (not isinstance(value, str) or not value):
            raise EventError(f"{name} is {value!r}: give text that is not empty, or leave it out")
    if "data" in fields and "data_base64" in fields:
        raise EventError("there are both `data` and `data_base64`: give one of them")


def _record(fields: dict[str, Any]) -> Event:
    data = fields.get("data")
    if data is None and "data_base64" in fields:
        data = _json(_bytes(fields))
    if fields.get(MARK) == ROW and isinstance(data, dict):
        return Event.record(fields["id"], data, None if fields["source"] == NOWHERE else fields["source"])
    record = {**data, **fields} if isinstance(data, dict) else dict(fields)
    if "data_base64" in record:
        del record["data_base64"]
        record["data"] = data
    if "time" in fields:
        return Event(fields["id"], record, read_time(fields["id"], fields.get("time")), fields["source"])
    return Event.record(fields["id"], record, fields["source"])


def _document(fields: dict[str, Any]) -> str | bytes:
    kind = fields["datacontenttype"]
    if media_type(kind) is None:
        # A type that no filter looks at is carried all the same.
        return b""
    data = fields.get("data")
    if "data_base64" in fields:
        return _bytes(fields)
    if not isinstance(data, str):
        raise EventError(f"event {fields['id']!r} is {kind}: its data is text, or `data_base64`")
    return data


def _bytes(fields: dict[str, Any]) -> bytes:
    try:
        return base64.b64decode(fields["data_base64"], validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise EventError(f"`data_base64` is not base64: {error}") from None


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise EventError(f"the data is not valid JSON: {error}") from None


def _check_extensions(fields: dict[str, Any]) -> None:
    for name in fields.keys() - _KNOWN:
        if not _NAME.fullmatch(name):
            raise EventError(
                f"the attribute name {name!r} is not one of CloudEvents: use small letters and "
                "digits; attributes "
                "of your own belong into `data`"
            )
        value = fields[name]
        if not isinstance(value, str | bool | int) or (
            isinstance(value, int) and not -(2**31) <= value < 2**31
        ):
            raise EventError(
                f"the extension {name!r} is {value!r}: give text, a Boolean or a whole number of 32 "
                "bits; other "
                "values belong into `data`"
            )


def read_binary(body: bytes, content_type: str, headers: Mapping[str, str]) -> Sent:
    """Read an event in binary mode; it is kept as an envelope."""
    fields: dict[str, Any] = {}
    for name, value in headers.items():
        if name.startswith("ce-"):
            fields[name[3:]] = _unescaped(name, value) if "%" in value else value
    if content_type:
        fields["datacontenttype"] = content_type
    kept: dict[str, Any] = dict(fields)
    if body:
        if is_json(fields.get("datacontenttype", JSON)):
            kept["data"] = msgspec.Raw(body)
            fields["data"] = _json(body)
        else:
            try:
                kept["data"] = fields["data"] = body.decode()
            except UnicodeDecodeError:
                kept["data_base64"] = fields["data_base64"] = base64.b64encode(body).decode()
    return Sent(event_of(fields), _encode(kept))


def _unescaped(name: str, value: str) -> str:
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise EventError(f"the header {name!r} is {value!r}: what is escaped in it is not UTF-8") from None


def _read_rows(body: bytes) -> list[Sent]:
    if body.lstrip()[:1] != b"[":
        return [_read_line(body, None)]
    try:
        raws = _raws.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise EventError(f"the body is no JSON list of events: {error}") from None
    return [_read_line(bytes(raw), number) for number, raw in enumerate(raws, 1)]


def _read_line(line: bytes, number: int | None) -> Sent:
    try:
        row = read_object(line)
        if "specversion" in row:
            return Sent(event_of(row), line.strip())
        return sent_row(row, line.strip())
    except EventError as error:
        if number is None:
            raise
        raise EventError(f"event {number}: {error}") from None


def sent_row(row: dict[str, Any], text: bytes | None = None) -> Sent:
    """Make an event of a row; one without an id gets one."""
    known = row.get(ID) is not None or any(fold(name) == ID and row[name] is not None for name in row)
    event = Event.from_row(row if known else {**row, ID: str(uuid.uuid4())})
    if event.content_type != JSON:
        return _sent_document(event)
    identity, source = str(event.id), None if event.source in {None, ""} else str(event.source)
    data = row if text is None else msgspec.Raw(text)
    kept = write_envelope(identity, source or NOWHERE, "headgate.row", data, **{MARK: ROW})
    return Sent(Event.record(identity, row, source), kept)


def write_envelope(identity: str, source: str, kind: str, data: object, **more: object) -> bytes:
    """Write an envelope; `more` are its other attributes."""
    fields = {"specversion": SPECVERSION, "id": identity, "source": source, "type": kind, **more}
    return _encode({**fields, "data": data})


def _sent_document(event: Event) -> Sent:
    source = str(event.source) if event.source is not None else NOWHERE
    about = {"datacontenttype": event.content_type}
    if event.time is not None:
        about["time"] = event.time.isoformat()
    return Sent(event, write_envelope(str(event.id), source, "headgate.document", event.data, **about))


def stored_events(texts: Iterable[bytes]) -> Sequence[Event]:
    """Make the events of texts that were kept."""
    return [event_of(msgspec.json.decode(text)) for text in texts]
