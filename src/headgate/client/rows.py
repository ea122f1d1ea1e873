"""Events that a service keeps, as rows of a table or lines of JSON: filters see in them what they see there.

    a row that was published      the row; its id is that of the envelope, if it has none
    a CloudEvent of JSON          the attributes of `data`, over them the context attributes, and `data`
    any other CloudEvent          the envelope: `id`, `source`, `time`, `datacontenttype`, and `data` as text

Values are taken over as they are written: no number is read and written again.
"""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

import msgspec

from headgate.core.event import CONTENT_TYPE, DATA, ID, JSON, SOURCE, media_type
from headgate.core.values import fold

ROW, MARK, NOWHERE = b'"row"', "headgate", "/"
"""How the service marks rows that were published, and the source of those that have none."""
BASE64 = "data_base64"

_raws = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.encode


class KeptRow(NamedTuple):
    """What a row of a table has of an event."""

    id: str
    source: str | None
    type: str
    time: str | None
    content_type: str
    data: str | None
    """A record as JSON, or the text of a document; None of one that is not UTF-8."""


def line_of(text: bytes) -> bytes:
    """Make a line of JSON of a CloudEvent that is kept, as files of events have them.

    >>> line_of(b'{"id":"e1","source":"/","type":"headgate.row","headgate":"row","data":{"id":7,"n":1.50}}')
    b'{"id":7,"n":1.50}'
    >>> line_of(b'{"id":"e2","source":"/a","type":"t","data":{"n":1,"type":"x"}}')
    b'{"n":1,"type":"t","id":"e2","source":"/a","data":{"n":1,"type":"x"}}'
    """
    fields = _raws(text)
    return _record(fields) if _is_json(_text(fields, CONTENT_TYPE) or JSON) else text


def row_of(text: bytes) -> KeptRow:
    """Make a row of a CloudEvent that is kept."""
    fields = _raws(text)
    kind = _text(fields, CONTENT_TYPE) or JSON
    data: str | None
    if _is_json(kind):
        data = _record(fields).decode()
    elif BASE64 in fields:
        data = _decoded(_bytes(fields))
    else:
        data = _text(fields, DATA)
    source = _text(fields, SOURCE)
    alone = source == NOWHERE and bytes(fields.get(MARK, b"")) == ROW
    identity, named = _text(fields, ID), _text(fields, "type")
    return KeptRow(str(identity), None if alone else source, str(named), _text(fields, "time"), kind, data)


def _record(fields: dict[str, msgspec.Raw]) -> bytes:
    """Write the record of a CloudEvent of JSON."""
    fields = dict(fields)
    if BASE64 in fields:
        fields[DATA] = msgspec.Raw(_bytes(fields))
        del fields[BASE64]
    data = bytes(fields.get(DATA, b"null"))
    inside = _raws(data) if data.lstrip()[:1] == b"{" else None
    if inside is None:
        return _encode(fields)
    if bytes(fields.get(MARK, b"")) != ROW:
        return _encode({**inside, **fields})
    if any(fold(name) == ID and bytes(value) != b"null" for name, value in inside.items()):
        return data
    return _encode({ID: fields[ID], **{name: raw for name, raw in inside.items() if fold(name) != ID}})


def _is_json(kind: str) -> bool:
    head = kind.partition(";")[0].strip().casefold()
    return head == JSON or (head.endswith("+json") and media_type(head) is None)


def _text(fields: dict[str, msgspec.Raw], name: str) -> str | None:
    if name not in fields:
        return None
    found = msgspec.json.decode(fields[name])
    return found if isinstance(found, str) else None


def _bytes(fields: dict[str, msgspec.Raw]) -> bytes:
    try:
        return base64.b64decode(_text(fields, BASE64) or "", validate=True)
    except binascii.Error:
        return b""


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
