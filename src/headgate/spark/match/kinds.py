"""What the jobs ask of a content room whose events are documents: how they are named, read and carried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from headgate.core.rooms import RDF, XML
from headgate.spark.tables.document_names import Documents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.event import Event
    from headgate.errors import EventError


class Feeds(NamedTuple):
    """What was read of RSS feeds."""

    feeds: int
    lenient: int
    """How many were not RDF, and read as best we can."""
    notes: int
    """How much was forgiven them."""


class Read(NamedTuple):
    """The events of a document that was read: one, or those of a feed with what was forgiven it."""

    events: Sequence[Event]
    feed: bool = False
    notes: int = 0


class Kind(Documents, Protocol):
    """Documents of one content room; workers find theirs by the room's name."""

    @property
    def most(self) -> int:
        """Return how many bytes a document may have."""

    def read(self, events: Sequence[Event | EventError]) -> list[Read | EventError]:
        """Read documents, each in its place; what could not be read, or is none, as the reason."""

    def packed(self, event: Event) -> bytes:
        """Write what was read of an event."""

    def unpacked(self, packed: bytes) -> tuple[Any, str]:
        """Return the data of such an event, and its content type."""

    def kept(self, given: Event, event: Event) -> tuple[str | bytes, str]:
        """Return the text of an event and its content type; `given` is the document that it was in."""

    def close(self) -> None:
        """End what reading started: Spark keeps its workers, and they would keep theirs."""


def kind_of(content: str) -> Kind:
    """Find the kind of documents that a content room looks at."""
    if content == RDF:
        from headgate.spark.match.rdf_kind import RDF_DOCUMENTS

        return RDF_DOCUMENTS
    if content == XML:
        from headgate.spark.match.xml_kind import XML_DOCUMENTS

        return XML_DOCUMENTS
    raise AssertionError(f"events of {content} are no documents")
