"""Documents of events: read, and carried from one process to another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from headgate.contents.kind import Read
from headgate.errors import EventError
from headgate.xml.events.document import Document
from headgate.xml.events.reading import read_document

if TYPE_CHECKING:
    from headgate.core.event import Event

_PACKED: msgspec.msgpack.Decoder[tuple[tuple[str, ...], list[tuple[str, bytes]]]] = msgspec.msgpack.Decoder(
    tuple[tuple[str, ...], list[tuple[str, bytes]]]
)


def read_one(event: Event) -> Read | EventError:
    """Read the document of an event."""
    try:
        return Read((replace(event, data=read_document(event.data)),))
    except EventError as error:
        return error


def pack(document: Document) -> bytes:
    """Write a document."""
    arrays: list[tuple[str, bytes]] = [(array.dtype.str, array.tobytes()) for array in document[1:]]
    return msgspec.msgpack.encode((document.names, arrays))


def unpack(packed: bytes) -> Document:
    """Return a document."""
    names, arrays = _PACKED.decode(packed)
    # A copy can be written to, as every other document's arrays: kernels are compiled for that.
    found: list[Any] = [np.frombuffer(data, kind).copy() for kind, data in arrays]
    return Document(names, *found)
