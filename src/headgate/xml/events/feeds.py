"""Feeds as XML: one document for each item.

The document of an item is the feed itself, without the other items. So an expression that fits a feed of a
format fits its items: `/rss/channel/item[title = 'x']`, and the channel's title is where it was.

    <rss><channel> title, link, …  <item/> <item/> <item/> </channel></rss>
                      │
                      └──► <rss><channel> title, link, …  <item/> </channel></rss>, three times

Of the list of items in RSS 1.0 only the place of this one stays. Comments and instructions are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lxml import etree

from headgate.contents.feeds.reading import SHARE, Feed, FeedLimits, item_ids, read_tree, time_of
from headgate.contents.feeds.vocabulary import RDF
from headgate.core.event import XML, Event
from headgate.errors import EventError
from headgate.xml.events.document import Limits
from headgate.xml.events.reading import read_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.contents.feeds.reading import Element, FeedTree

_LIMITS = Limits()
_ABOUT, _MEMBER, _RESOURCE = f"{{{RDF}}}about", f"{{{RDF}}}li", f"{{{RDF}}}resource"


def read_feed(event: Event, limits: Limits = _LIMITS, *, own_ids: bool = False) -> Feed:
    """Take a feed apart; the event of item n has the feed's id with `#n` behind it, counted from 1.

    With `own_ids` its id is what the item is called wherever it comes: its guid or id, its address; if it has
    none, or another item has the same, it is `#n` as ever. The source is the feed's; the time is the item's
    date if it gives one, else the feed's.

    >>> feed = "<rss><channel><title>News</title><item><title>A</title></item><item/></channel></rss>"
    >>> [item.data.names for item in read_feed(Event("f", feed, content_type="rss")).items]
    [('rss', 'channel', 'title', 'text()', 'item'), ('rss', 'channel', 'title', 'text()', 'item')]
    """
    tree = read_tree(event, FeedLimits(limits.size, limits.depth))
    names = item_ids(event, tree.items, own=own_ids)
    times = [time_of(item) or event.time for item in tree.items]
    events = []
    size = 0
    for n, (name, time, text) in enumerate(zip(names, times, _alone(tree), strict=True), 1):
        size += len(text)
        if size > SHARE * limits.size:
            raise EventError(
                f"not a usable feed: its items have more than {SHARE * limits.size:,} bytes together"
            )
        try:
            document = read_document(text, limits)
        except EventError as error:
            raise EventError(f"not a usable feed: item {n}: {error}") from None
        events.append(Event(name, document, time, event.source, XML))
    return Feed(tuple(events), tuple(tree.notes))


def _alone(tree: FeedTree) -> Iterator[bytes]:
    """Write the feed once for each item, with no other in it."""
    if tree.root in tree.items:
        yield _written(tree.root)
        return
    places = [(item, _parent(item)) for item in tree.items]
    members = {each: (each.get(_RESOURCE), _parent(each)) for each in tree.root.iter(_MEMBER)}
    for item, around in places:
        item.tail = None
        around.remove(item)
    for each, (_, around) in members.items():
        each.tail = None
        around.remove(each)
    by_name: dict[str | None, list[Element]] = {}
    for each, (name, _) in members.items():
        by_name.setdefault(name, []).append(each)
    for item, around in places:
        listed = by_name.get(item.get(_ABOUT), []) if item.get(_ABOUT) else []
        around.append(item)
        for each in listed:
            members[each][1].append(each)
        yield _written(tree.root)
        around.remove(item)
        for each in listed:
            members[each][1].remove(each)


def _parent(element: Element) -> Element:
    parent = element.getparent()
    assert parent is not None, "only the root has none"
    return parent


def _written(root: Element) -> bytes:
    encoded: bytes = etree.tostring(root, encoding="utf-8", xml_declaration=False)
    return encoded
