"""Feeds as RDF: one event for each item.

The event of an item holds what the feed says about it, and about the channel that it is in:

    <item>     every triple about it, and about the blank nodes that these lead to
    <channel>  the same, but of its list of items only the place of this one:
               <channel> rss:items _:list . _:list rdf:type rdf:Seq . _:list rdf:_3 <item>

So a filter may ask for the channel's title beside the item's, with or without the way from one to the other.
RSS 1.0 is RDF, and nothing is there that the feed does not say. All other feeds, and those in RSS 1.0 that
are not sound, are read by their elements: see `feed_terms`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from headgate.contents.feeds.dates import read_date
from headgate.contents.feeds.items import Feed
from headgate.contents.feeds.reading import SHARE, FeedLimits, item_ids, read_tree, time_of
from headgate.contents.feeds.vocabulary import DC, DC_TERMS
from headgate.contents.feeds.vocabulary import RSS as RSS_SPACE
from headgate.core.event import N_TRIPLES, RSS, Event
from headgate.errors import EventError
from headgate.rdf.events.feed_terms import FeedTerms
from headgate.rdf.events.reading import default_reader, make_graph
from headgate.rdf.language.model import RDF, TYPE, Graph, is_blank, is_literal, parts

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping

    from headgate.contents.feeds.reading import FeedTree
    from headgate.rdf.events.reading import Reader
    from headgate.rdf.language.model import Term


Statement: TypeAlias = "tuple[Term, Term, Term]"

ITEM = f"<{RSS_SPACE}item>"
CHANNEL = f"<{RSS_SPACE}channel>"
ITEMS = f"<{RSS_SPACE}items>"
DATES = (f"<{DC}date>", f"<{DC_TERMS}date>", f"<{DC_TERMS}issued>", f"<{DC_TERMS}modified>")
_MEMBER = f"<{RDF}_"


class _Item(NamedTuple):
    """An item, and its date if it gives one."""

    graph: Graph
    time: dt.datetime | None


def feed_events(event: Event, reader: Reader | None = None) -> list[Event]:
    """List the items of a feed as events: see `read_feed`."""
    return list(read_feed(event, reader).items)


def read_feed(event: Event, reader: Reader | None = None, *, own_ids: bool = False) -> Feed:
    """Take a feed apart; the event of item n has the feed's id with `#n` behind it, counted from 1.

    With `own_ids` its id is what the item is called wherever it comes: its guid or id, its address; if it has
    none, or another item has the same, it is `#n` as ever.

    The source is the feed's; the time is the item's date if it gives one, else the feed's. A feed that is not
    well-formed is read leniently; one in which no channel and no item can be found is refused.
    """
    reader = reader or default_reader()
    tree = read_tree(event, FeedLimits(reader.limits.size, reader.limits.depth))
    items = _strict(tree, reader) if tree.rdf else None
    if items is None:
        items = _by_elements(tree, reader)
    # Items of one address are one item in RDF, and may be described in several places.
    names = item_ids(event, tree.items, own=own_ids and len(items) == len(tree.items))
    names += [f"{event.id}#{n}" for n in range(len(names) + 1, len(items) + 1)]
    return Feed(
        tuple(
            Event(name, item.graph, item.time or event.time, event.source, N_TRIPLES)
            for name, item in zip(names, items, strict=False)
        ),
        tuple(tree.notes),
    )


def _strict(tree: FeedTree, reader: Reader) -> list[_Item] | None:
    """Read RSS 1.0 as the RDF that it is; nothing if it is none."""
    try:
        triples = reader.read(tree.text, RSS).statements()
    except EventError as error:
        tree.notes[f"not read as RDF: {error}"] = None
        return None
    if not any(triple[1:] == (TYPE, ITEM) for triple in triples):
        return None
    found = _items(triples, SHARE * reader.limits.triples)
    return [_Item(graph, _time(item, graph)) for item, graph in found]


def _by_elements(tree: FeedTree, reader: Reader) -> list[_Item]:
    """Read all other feeds by what their elements mean."""
    terms = FeedTerms(tree, reader.limits, reader.base)
    most = SHARE * reader.limits.triples
    size = len(tree.items) * len(terms.shared)
    found: list[_Item] = []
    for n, element in enumerate(tree.items, 1):
        own = terms.of_item(n)
        size += len(own)
        if size > most:
            raise EventError(f"not a usable feed: its items have more than {most:,} triples together")
        found.append(_Item(make_graph([*own, *terms.shared]), time_of(element)))
    return found


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
            raise EventError(f"not a usable feed: its items have more than {most:,} triples together")
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
    said = {p: o for s, p, o in reversed(graph.statements()) if s == item and p in DATES and is_literal(o)}
    times = (read_date(parts(said[name]).lexical) for name in DATES if name in said)
    return next(filter(None, times), None)
