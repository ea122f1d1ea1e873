"""RDF events in the jobs: documents of all formats to graphs, feeds to one event for each item."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from headgate.core.event import N_TRIPLES, RSS, Event
from headgate.errors import EventError
from headgate.rdf.events.feeds import read_feed
from headgate.rdf.events.ntriples import write_lines
from headgate.rdf.events.reading import Reader
from headgate.rdf.events.screening import Limits
from headgate.rdf.language.model import Graph
from headgate.spark.match.kinds import Read
from headgate.spark.tables.document_names import RDF_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

READER = Reader(limits=Limits(seconds=5.0))
"""More patient than the default: all cores are busy here, and what takes long is not therefore bad."""
_PACKED: msgspec.msgpack.Decoder[tuple[bytes, bytes]] = msgspec.msgpack.Decoder(tuple[bytes, bytes])


@dataclass(frozen=True)
class RdfKind:
    """Documents that are RDF."""

    title: str = RDF_NAMES.title
    types: Mapping[str, str] = field(default_factory=lambda: RDF_NAMES.types)
    suffixes: Mapping[str, str] = field(default_factory=lambda: RDF_NAMES.suffixes)
    most: int = Limits().size

    def read(self, events: Sequence[Event | EventError]) -> list[Read | EventError]:
        """Read documents: graphs of all that are none of feeds are parsed together."""
        found: list[Read | EventError] = []
        plain: list[tuple[int, Event]] = []
        for place, event in enumerate(events):
            if isinstance(event, EventError):
                found.append(event)
            elif event.content_type == RSS:
                found.append(_feed(event))
            else:
                plain.append((place, event))
                found.append(Read(()))
        graphs = READER.read_many([(event.data, event.content_type) for _, event in plain])
        for (place, event), graph in zip(plain, graphs, strict=True):
            found[place] = graph if isinstance(graph, EventError) else Read((replace(event, data=graph),))
        return found

    def packed(self, event: Event) -> bytes:
        """Write the graph of an event."""
        graph: Graph = event.data
        return msgspec.msgpack.encode((graph.text, np.asarray(graph.triples, np.int32).tobytes()))

    def unpacked(self, packed: bytes) -> tuple[Graph, str]:
        """Return the graph of an event."""
        terms, triples = _PACKED.decode(packed)
        # A copy can be written to, as every other graph's triples: kernels are compiled for that.
        return Graph(terms, np.frombuffer(triples, np.int32).reshape(-1, 3).copy()), N_TRIPLES

    def kept(self, given: Event, event: Event) -> tuple[str | bytes, str]:
        """Return the text of an event: as it came, or an item of a feed as N-Triples."""
        if given.content_type == RSS:
            return write_lines(event.data), N_TRIPLES
        return given.data, given.content_type

    def close(self) -> None:
        """End the parser process."""
        READER.close()


RDF_DOCUMENTS = RdfKind()


def _feed(event: Event) -> Read | EventError:
    try:
        feed = read_feed(event, READER)
    except EventError as error:
        return error
    return Read(feed.items, feed=True, notes=len(feed.notes))
