"""XML events in the jobs: documents to flat arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from headgate.core.event import XML, Event
from headgate.errors import EventError
from headgate.spark.match.kinds import Read
from headgate.spark.tables.document_names import XML_NAMES
from headgate.xml.events.document import Document, Limits
from headgate.xml.events.reading import read_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PACKED: msgspec.msgpack.Decoder[tuple[tuple[str, ...], list[tuple[str, bytes]]]] = msgspec.msgpack.Decoder(
    tuple[tuple[str, ...], list[tuple[str, bytes]]]
)


@dataclass(frozen=True)
class XmlKind:
    """Documents that are XML."""

    title: str = XML_NAMES.title
    types: Mapping[str, str] = field(default_factory=lambda: XML_NAMES.types)
    suffixes: Mapping[str, str] = field(default_factory=lambda: XML_NAMES.suffixes)
    most: int = Limits().size

    def read(self, events: Sequence[Event | EventError]) -> list[Read | EventError]:
        """Read documents."""
        return [_document(event) for event in events]

    def packed(self, event: Event) -> bytes:
        """Write the document of an event."""
        document: Document = event.data
        arrays: list[tuple[str, bytes]] = [(array.dtype.str, array.tobytes()) for array in document[1:]]
        return msgspec.msgpack.encode((document.names, arrays))

    def unpacked(self, packed: bytes) -> tuple[Document, str]:
        """Return the document of an event."""
        names, arrays = _PACKED.decode(packed)
        # A copy can be written to, as every other document's arrays: kernels are compiled for that.
        found: list[Any] = [np.frombuffer(data, kind).copy() for kind, data in arrays]
        return Document(names, *found), XML

    def kept(self, given: Event, event: Event) -> tuple[str | bytes, str]:
        """Return the text of an event, as it came."""
        del event
        return given.data, given.content_type

    def close(self) -> None:
        """Have started nothing."""


XML_DOCUMENTS = XmlKind()


def _document(event: Event | EventError) -> Read | EventError:
    if isinstance(event, EventError):
        return event
    try:
        return Read((replace(event, data=read_document(event.data)),))
    except EventError as error:
        return error
