"""Feeds as all kinds know them: namespaces and names, and that a feed is as many events as it has items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.event import Event

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RSS = "http://purl.org/rss/1.0/"
DC = "http://purl.org/dc/elements/1.1/"
DC_TERMS = "http://purl.org/dc/terms/"
CONTENT = "http://purl.org/rss/1.0/modules/content/"
ATOM = "http://www.w3.org/2005/Atom"
XML = "http://www.w3.org/XML/1998/namespace"
RSS_SPACES = frozenset(
    {
        "",
        RSS,
        "http://my.netscape.com/rdf/simple/0.9/",
        "http://channel.netscape.com/rdf/simple/0.9/",
        "http://backend.userland.com/rss",
        "http://backend.userland.com/rss2",
        "http://backend.userland.com/RSS2",
        "http://blogs.law.harvard.edu/tech/rss",
        "http://cyber.law.harvard.edu/rss/rss.html",
    }
)
"""Namespaces whose names are those of RSS; most feeds in RSS 0.91 to 2.0 have none."""
ATOM_SPACES = frozenset({ATOM, "http://purl.org/atom/ns#"})
"""Namespaces of Atom: that of the standard, and of the draft 0.3."""
PREFIXES = {
    "rdf": RDF,
    "rss": RSS,
    "dc": DC,
    "dcterms": DC_TERMS,
    "content": CONTENT,
    "atom": ATOM,
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "taxo": "http://purl.org/rss/1.0/modules/taxonomy/",
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "media": "http://search.yahoo.com/mrss/",
    "wfw": "http://wellformedweb.org/CommentAPI/",
    "georss": "http://www.georss.org/georss",
}
"""Prefixes that feeds use whether or not they declare them."""
DC_NAMES = frozenset(
    {
        "contributor",
        "coverage",
        "creator",
        "date",
        "description",
        "format",
        "identifier",
        "language",
        "publisher",
        "relation",
        "rights",
        "source",
        "subject",
        "title",
        "type",
    }
)
CHANNEL = "channel"
ITEMS = frozenset({"item", "entry"})
ROOTS = frozenset({"rss", "rdf", "feed"})
PLAIN = frozenset({"title", "link", "guid", "id", "pubdate", "updated", "published"})
"""Fields that hold no fields."""


def split_name(name: str) -> tuple[str, str]:
    """Take a name apart: its namespace, and what it is within.

    >>> split_name("{http://www.w3.org/2005/Atom}entry"), split_name("item")
    (('http://www.w3.org/2005/Atom', 'entry'), ('', 'item'))
    """
    space, _, local = name.rpartition("}")
    return space[1:], local


def only(items: Sequence[Event], feed: Event) -> Sequence[Event]:
    """Return the item of a feed that has one; refuses a feed that is asked about as if it were one event."""
    if len(items) != 1:
        raise EventError(
            f"event {feed.id!r} is a feed of {len(items):,} items, and each of them is an event: ask with "
            "Engine.read(event), which lists them"
        )
    return items
