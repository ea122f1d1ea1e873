"""RSS 1.0 feeds: one event for each item.

The event of an item holds what the feed says about it, and about the channel that it is in:

    <item>     every triple about it, and about the blank nodes that these lead to
    <channel>  the same, but of its list of items only the place of this one:
               <channel> rss:items _:list . _:list rdf:type rdf:Seq . _:list rdf:_3 <item>

So a filter may ask for the channel's title beside the item's, with or without the way from one to the other,
and nothing is there that the feed does not say.

A feed that is not RDF is read by `forgiving`, and what was forgiven is noted.

Documents of all kinds are read here where many come together: by one parser process, and carried from one
process to another.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec
import numpy as np

from headgate.contents.kind import DocumentEvents
from headgate.core.event import N_TRIPLES, RSS, Event
from headgate.errors import EventError
from headgate.rdf.events.forgiving import DC, RSS_SPACE, forgive, read_date
from headgate.rdf.events.reading import Reader, default_reader, make_graph
from headgate.rdf.events.screening import Limits
from headgate.rdf.language.model import RDF, TYPE, Graph, is_blank, is_literal, parts

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping, Sequence

    from headgate.rdf.language.model import Term


Statement: TypeAlias = "tuple[Term, Term, Term]"

ITEM = f"<{RSS_SPACE}item>"
CHANNEL = f"<{RSS_SPACE}channel>"
ITEMS = f"<{RSS_SPACE}items>"
DATES = (f"<{DC}date>", "<http://purl.org/dc/terms/date>", "<http://purl.org/dc/terms/modified>")
_MEMBER = f"<{RDF}_"
_SHARE = 5
"""How often the triples of a feed may come again in its items, because all of them repeat the channel's."""


class Feed(NamedTuple):
    """The events of a feed's items in the order of the document, and what was forgiven on the way."""

    items: tuple[Event, ...]
    notes: tuple[str, ...]


def feed_events(event: Event, reader: Reader | None = None) -> list[Event]:
    """List the items of a feed as events: see `read_feed`."""
    return list(read_feed(event, reader).items)


def read_feed(event: Event, reader: Reader | None = None) -> Feed:
    """Take a feed apart; the event of item n has the feed's id with `#n` behind it, counted from 1.

    The source is the feed's; the time is the item's date if it gives one, else the feed's. A feed that is not
    well-formed RDF is read leniently; one in which no channel and no item can be found is refused.
    """
    if event.content_type != RSS or not isinstance(event.data, str | bytes):
        raise EventError(f"event {event.id!r} is not a feed: send {RSS} as text or bytes")
    reader = reader or default_reader()
    notes: tuple[str, ...] = ()
    try:
        triples = reader.read(event.data, RSS).statements()
    except EventError as error:
        triples, why = [], str(error)
    else:
        why = "as RDF it has no rss:item"
    if not any(triple[1:] == (TYPE, ITEM) for triple in triples):
        statements, notes = forgive(event.data, why, reader.limits, reader.base)
        triples = make_graph(statements).statements()
    items = _items(triples, _SHARE * reader.limits.triples)
    return Feed(
        tuple(
            Event(f"{event.id}#{n}", graph, _time(item, graph) or event.time, event.source, N_TRIPLES)
            for n, (item, graph) in enumerate(items, 1)
        ),
        notes,
    )


def _items(triples: list[Statement], most: int) -> list[tuple[Term, Graph]]:
    """List the items, each with its graph; refuse more triples than `most` in all."""
    about: dict[Term, list[Statement]] = {}
    for triple in triples:
        about.setdefault(triple[0], []).append(triple)
    channels = dict.fromkeys(s for s, p, o in triples if p == TYPE and o == CHANNEL)
    lists = {o for s, p, o in triples if p == ITEMS and s in channels}
    shared = [triple for triple in _reached(about, channels, lists) if triple[0] not in lists]
    places: dict[Term, list[Statement]] = {}
    heads: list[Statement] = []
    for each in lists:
        for triple in about.get(each, ()):
            if triple[1].startswith(_MEMBER):
                places.setdefault(triple[2], []).append(triple)
            else:
                heads.append(triple)
    found: list[tuple[Term, Graph]] = []
    items = dict.fromkeys(s for s, p, o in triples if p == TYPE and o == ITEM)
    size = len(items) * (len(shared) + len(heads))
    for item in items:
        own = [*_reached(about, [item], lists), *places.get(item, ())]
        size += len(own)
        if size > most:
            raise EventError(f"not usable RSS 1.0: its items have more than {most:,} triples together")
        found.append((item, make_graph([*own, *shared, *heads])))
    return found


def _reached(
    about: Mapping[Term, list[Statement]], subjects: Iterable[Term], without: set[Term]
) -> list[Statement]:
    """List the triples about subjects, and about the blank nodes that they lead to."""
    found: list[Statement] = []
    waiting = list(subjects)
    seen = {*waiting, *without}
    while waiting:
        for triple in about.get(waiting.pop(), ()):
            found.append(triple)
            if is_blank(triple[2]) and triple[2] not in seen:
                seen.add(triple[2])
                waiting.append(triple[2])
    return found


def _time(item: Term, graph: Graph) -> dt.datetime | None:
    """Find the date of an item."""
    for s, p, o in graph.statements():
        if s == item and p in DATES and is_literal(o) and (time := read_date(parts(o).lexical)):
            return time
    return None


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
        elif event.content_type == RSS:
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
