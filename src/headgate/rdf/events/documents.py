"""Documents where many come together: read by one parser process, and carried from one process to another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from headgate.contents.kind import DocumentEvents
from headgate.core.event import FEED_TYPES, Event
from headgate.errors import EventError
from headgate.rdf.events.reading import Reader
from headgate.rdf.events.screening import Limits
from headgate.rdf.language.model import Graph

if TYPE_CHECKING:
    from collections.abc import Sequence

READER = Reader(limits=Limits(seconds=5.0))
"""More patient than the default: all cores are busy here, and what takes long is not therefore bad."""
_PACKED: msgspec.msgpack.Decoder[tuple[bytes, bytes]] = msgspec.msgpack.Decoder(tuple[bytes, bytes])


def read_all(events: Sequence[Event | EventError]) -> list[DocumentEvents | EventError]:
    """Read documents: graphs of all that are none of feeds are parsed together."""
    found: list[DocumentEvents | EventError] = []
    plain: list[tuple[int, Event]] = []
    for place, event in enumerate(events):
        if isinstance(event, EventError):
            found.append(event)
        elif event.content_type in FEED_TYPES.values():
            found.append(_feed(event))
        else:
            plain.append((place, event))
            found.append(DocumentEvents(()))
    graphs = READER.read_many([(event.data, event.content_type) for _, event in plain])
    for (place, event), graph in zip(plain, graphs, strict=True):
        found[place] = (
            graph if isinstance(graph, EventError) else DocumentEvents((replace(event, data=graph),))
        )
    return found


def _feed(event: Event) -> DocumentEvents | EventError:
    # It brings lxml, and most documents are no feeds.
    from headgate.rdf.events.feeds import read_feed

    try:
        feed = read_feed(event, READER)
    except EventError as error:
        return error
    return DocumentEvents(feed.items, feed=True, notes=len(feed.notes))


def pack(graph: Graph) -> bytes:
    """Write a graph."""
    return msgspec.msgpack.encode((graph.text, np.asarray(graph.triples, np.int32).tobytes()))


def unpack(packed: bytes) -> Graph:
    """Return a graph."""
    terms, triples = _PACKED.decode(packed)
    # A copy can be written to, as every other graph's triples: kernels are compiled for that.
    return Graph(terms, np.frombuffer(triples, np.int32).reshape(-1, 3).copy())
