"""Events to graphs: screened, parsed here or in another process, numbered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from headgate.contents.feeds.vocabulary import only
from headgate.contents.kind import DocumentEvents, check_size
from headgate.core.event import FEED_TYPES, N_TRIPLES, RDF_TYPES, Event
from headgate.errors import EventError
from headgate.rdf.events.isolation import Document, Isolation
from headgate.rdf.events.screening import NAMES, Limits, format_of, screen
from headgate.rdf.events.triples import NumberedTriples, Settings, parse, read_lines
from headgate.rdf.language.model import Graph
from headgate.rdf.language.names import is_iri

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.core.event import Event
    from headgate.rdf.language.model import Term


_TYPES = tuple(RDF_TYPES.values())


def make_graph(statements: Iterable[tuple[Term, Term, Term]]) -> Graph:
    r"""Number the terms of triples in the order in which they come; a triple that comes again is left out.

    >>> graph = make_graph([("<urn:a>", "<urn:p>", "<urn:a>"), ("<urn:a>", "<urn:p>", "<urn:a>")])
    >>> graph.text, graph.triples.tolist()
    (b'<urn:a>\n<urn:p>', [[0, 1, 0]])
    """
    places: dict[Term, int] = {}
    number_of = places.setdefault
    triples = dict.fromkeys(
        (number_of(s, len(places)), number_of(p, len(places)), number_of(o, len(places)))
        for s, p, o in statements
    )
    return Graph("\n".join(places).encode(), np.array(list(triples), np.int32).reshape(-1, 3))


class Reader:
    """Reads documents of all formats into graphs, under limits; threads may share one.

    `isolated`: parse in another process. True is always, False never; None, the default, is for all formats
    but N-Triples, which has no nesting that could harm a parser. `base` is what relative IRIs are relative
    to; without one they are refused.
    """

    def __init__(
        self, *, isolated: bool | None = None, limits: Limits | None = None, base: str | None = None
    ) -> None:
        if base is not None and not is_iri(base):
            raise EventError(f"the base {base!r} is not an IRI: give one like http://example.org/")
        self.limits = limits or Limits()
        self.base = base
        self._isolated = isolated
        self._settings = Settings(base, self.limits.triples, self.limits.term, self.limits.terms)
        self._isolation = Isolation(self._settings, self.limits)

    def read(self, data: str | bytes, content_type: str) -> Graph:
        """Read a document; refuse what is not valid or too much.

        >>> Reader(isolated=False).read("<urn:a> a <urn:b> .", "turtle").statements()
        [('<urn:a>', '<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>', '<urn:b>')]
        """
        (graph,) = self.read_many([(data, content_type)])
        if isinstance(graph, EventError):
            raise graph
        return graph

    def read_many(self, documents: Sequence[tuple[str | bytes, str]]) -> list[Graph | EventError]:
        """Read documents, each with its content type; one that is refused has the reason in its place."""
        results: list[NumberedTriples | Document | EventError] = []
        for data, content_type in documents:
            try:
                results.append(self._here(data, content_type))
            except EventError as error:
                results.append(error)
        waiting = [each for each in results if isinstance(each, Document)]
        answers = iter(self._isolation.parse(waiting)) if waiting else iter(())
        graphs: list[Graph | EventError] = []
        for each in results:
            answer = next(answers) if isinstance(each, Document) else each
            graphs.append(answer if isinstance(answer, EventError) else _graph(answer))
        return graphs

    def close(self) -> None:
        """End the parser process, if there is one; reading goes on with another."""
        self._isolation.close()

    @property
    def pid(self) -> int | None:
        """Return the id of the parser process, if one is running."""
        return self._isolation.pid

    def _here(self, data: str | bytes, content_type: str) -> NumberedTriples | Document:
        """Read a document if that is for this process to do, else screen it for the other."""
        kind = format_of(content_type)
        plain = kind == N_TRIPLES and not self._isolated
        if plain:
            check_size(data, self.limits.size)
            numbered = _quick(data, self._settings)
            if numbered is not None:
                return numbered
        screened = screen(data, kind, self.limits)
        if plain or self._isolated is False:
            return parse(screened, kind, NAMES[kind], self._settings)
        return Document(screened, kind, NAMES[kind])


def graph_of(event: Event, reader: Reader | None = None) -> Graph:
    """Read the graph of an event, once; its data may be a graph already."""
    if event.content_type not in _TYPES:
        raise EventError(
            f"event {event.id!r} is {event.content_type} and these filters look at RDF:"
            f" send one of {', '.join(_TYPES)} as its content type"
        )
    if isinstance(event.data, Graph):
        return event.data
    if event.content_type in FEED_TYPES.values():
        return event.once("graph", lambda event: _only_item(event, reader))
    return event.once("graph", lambda event: (reader or DEFAULT_READER).read(event.data, event.content_type))


def _only_item(event: Event, reader: Reader | None) -> Graph:
    from headgate.rdf.events.feeds import read_feed

    (item,) = only(read_feed(event, reader).items, event)
    graph: Graph = item.data
    return graph


def _quick(data: str | bytes, settings: Settings) -> NumberedTriples | None:
    """Read N-Triples without a parser, if it is plain; what is not UTF-8 is for the slow way to refuse."""
    try:
        return read_lines(data if isinstance(data, str) else data.decode(), settings)
    except UnicodeDecodeError:
        return None


def _graph(numbered: NumberedTriples) -> Graph:
    # A copy can be written to, as every other graph's triples: kernels are compiled for that.
    return Graph(numbered.text, np.frombuffer(numbered.triples, np.int32).reshape(-1, 3).copy())


DEFAULT_READER = Reader()
"""The reader that is used where none is given."""
read_graph, read_graphs = DEFAULT_READER.read, DEFAULT_READER.read_many


READER = Reader(limits=Limits(seconds=5.0))
"""More patient than the default: all cores are busy here, and what takes long is not therefore bad."""
_PACKED: msgspec.msgpack.Decoder[NumberedTriples] = msgspec.msgpack.Decoder(NumberedTriples)


def read_all(events: Sequence[Event | EventError]) -> list[DocumentEvents | EventError]:
    """Read documents: graphs of all that are none of feeds are parsed together."""
    results: list[DocumentEvents | EventError] = []
    plain: list[tuple[int, Event]] = []
    for index, event in enumerate(events):
        if isinstance(event, EventError):
            results.append(event)
        elif event.content_type in FEED_TYPES.values():
            results.append(_feed(event))
        else:
            plain.append((index, event))
            results.append(DocumentEvents(()))
    graphs = READER.read_many([(event.data, event.content_type) for _, event in plain])
    for (index, event), graph in zip(plain, graphs, strict=True):
        results[index] = (
            graph if isinstance(graph, EventError) else DocumentEvents((replace(event, data=graph),))
        )
    return results


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
    return _graph(_PACKED.decode(packed))
