"""The log of events that a service keeps: where it is, how it is read, and its events as rows.

    a row that was published      the row; its id is that of the envelope, if it has none
    a CloudEvent of JSON          the attributes of `data`, over them the context attributes, and `data`
    any other CloudEvent          the envelope: `id`, `source`, `time`, `datacontenttype`, and `data` as text

Values are taken over as they are written: no number is read and written again.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import msgspec

from headgate.client.asking import address_of
from headgate.core.event import CONTENT_TYPE, DATA, ID, JSON, SOURCE, media_type
from headgate.core.values import fold
from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Mapping


FAIL, GO_ON = "fail", "go-on"
FIRST, NEW = "first", "new"
BEYOND = 1 << 62
"""A position that no event has."""


@dataclass(frozen=True)
class LogSettings:
    """Where a log is, and how it is read; all but the first and the key may stand behind the address."""

    address: str
    """Where the service is."""
    start: str = FIRST
    """Where a new reader begins: `first`, `new`, or the cursor of the first event that it reads."""
    max_rows: int = 50_000
    """How many positions a batch has at most."""
    partitions: int = 0
    """How many tasks share a batch; 0 is one a core of the driver's machine."""
    on_loss: str = FAIL
    """If events were forgotten that are still to be read: `fail`, or `go-on` without them."""
    key: str | None = field(default=None, repr=False)
    """The key of the service; without one it is that of `HEADGATE_KEY`. It is never shown."""

    @classmethod
    def of(
        cls, address: str, shared: Mapping[str, str] | None = None, **more: str | int | None
    ) -> LogSettings:
        """Read an address; what is given by name goes before what it says, and that before what is `shared`.

        >>> LogSettings.of("http://localhost:8080?start=new", {"max_rows": "10"})
        LogSettings(address='http://localhost:8080', start='new', max_rows=10, partitions=0, on_loss='fail')
        """
        server, _, query = address.partition("?")
        if "@" in address:
            # What stands before it may be a password, so nothing of it is shown.
            raise TableError(
                "the address of a service has no user, password or @: its key is in HEADGATE_KEY, or in the "
                "option service.key"
            )
        texts = {**(shared or {}), **_query(query)}
        texts |= {name: str(value) for name, value in more.items() if value is not None}
        return cls(address_of(server), **_typed(server, texts))

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        if self.on_loss not in {FAIL, GO_ON}:
            raise TableError(f"{self.address}: on_loss is fail or go-on, not {self.on_loss!r}")
        if self.start not in {FIRST, NEW} and not (self.start.isdecimal() and 0 < int(self.start) < BEYOND):
            raise TableError(f"{self.address}: start is first, new or a cursor, not {self.start!r}")
        for name, least in (("max_rows", 1), ("partitions", 0)):
            if getattr(self, name) < least:
                raise TableError(f"{self.address}: {name} is at least {least}, not {getattr(self, name)}")


def _query(text: str) -> dict[str, str]:
    texts = {}
    for part in filter(None, text.split("&")):
        name, equals, value = part.partition("=")
        if name == "key":
            raise TableError(
                "the address of a service has no key: put it into HEADGATE_KEY, or the option service.key"
            )
        if not equals:
            raise TableError(
                f"settings of a service's address are name=value, joined by &: {name!r} has no value"
            )
        texts[name] = unquote(value)
    return texts


def _typed(server: str, texts: Mapping[str, str]) -> dict[str, Any]:
    defaults = {each.name: each.default for each in fields(LogSettings)[1:]}
    values: dict[str, Any] = {}
    for name, text in texts.items():
        if name not in defaults:
            known = ", ".join(each for each in defaults if each != "key")
            raise TableError(f"{server}: there is no setting {name!r} of a service: known are {known}")
        if isinstance(defaults[name], int):
            if not text.isdecimal():
                raise TableError(f"{server}: {name} is a whole number, not {text!r}")
            values[name] = int(text)
        else:
            values[name] = text
    return values


ROW, MARK, NOWHERE = "row", "headgate", "/"
"""How the service marks rows that were published, and the source of those that have none."""
BASE64 = "data_base64"
_ROW = f'"{ROW}"'.encode()

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
    return _record(fields) if is_json(_text(fields, CONTENT_TYPE) or JSON) else text


def row_of(text: bytes) -> KeptRow:
    """Make a row of a CloudEvent that is kept."""
    fields = _raws(text)
    kind = _text(fields, CONTENT_TYPE) or JSON
    data: str | None
    if is_json(kind):
        data = _record(fields).decode()
    elif BASE64 in fields:
        data = _decoded(_bytes(fields))
    else:
        data = _text(fields, DATA)
    source = _text(fields, SOURCE)
    alone = source == NOWHERE and bytes(fields.get(MARK, b"")) == _ROW
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
    if bytes(fields.get(MARK, b"")) != _ROW:
        return _encode({**inside, **fields})
    if any(fold(name) == ID and bytes(value) != b"null" for name, value in inside.items()):
        return data
    return _encode({ID: fields[ID], **{name: raw for name, raw in inside.items() if fold(name) != ID}})


def is_json(kind: str) -> bool:
    """Tell whether a content type is one of JSON, and no document of another kind."""
    head = kind.partition(";")[0].strip().casefold()
    return head == JSON or (head.endswith("+json") and media_type(head) is None)


def _text(fields: dict[str, msgspec.Raw], name: str) -> str | None:
    if name not in fields:
        return None
    text = msgspec.json.decode(fields[name])
    return text if isinstance(text, str) else None


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
