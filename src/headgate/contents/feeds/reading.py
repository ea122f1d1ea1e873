"""A feed to its tree: read strictly, or mended first; where its channel and its items are.

lxml reads it. It knows RSS and Atom no better than any other XML, and that is why it is taken: what a library
of feeds makes of an item has lost the element, and with it what the library does not know.

    rss        channel, and in it the items      RSS 0.91 to 2.0
    rdf:RDF    channel, and beside it the items  RSS 0.90, 1.0
    feed       entries, the channel is the feed  Atom
    entry      alone                             Atom
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from xml.sax.saxutils import escape

from lxml import etree

from headgate.contents.feeds.dates import read_date
from headgate.contents.feeds.mending import mend
from headgate.contents.feeds.texts import text_of
from headgate.contents.feeds.vocabulary import (
    ATOM_SPACES,
    CHANNEL,
    DC,
    DC_TERMS,
    ITEMS,
    RDF,
    ROOTS,
    RSS_SPACES,
    split_name,
)
from headgate.core.event import FEED_TYPES, RDF_XML, XML, Event
from headgate.errors import EventError

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

Element: TypeAlias = etree._Element  # noqa: SLF001 -- it has no other name
SHARE = 5
"""How often what a document may hold may come again in its items, because all of them repeat the channel."""
_HTML = "http://www.w3.org/1999/xhtml"
_LOGGED = 20
_TYPES = (*FEED_TYPES.values(), XML, RDF_XML)


@dataclass(frozen=True, slots=True)
class FeedLimits:
    """How much one feed may ask for."""

    size: int = 4 << 20
    """Bytes of the document."""
    depth: int = 100
    """Elements inside elements, of a feed that is not well-formed; lxml takes 256 of one that is."""
    items: int = 10_000
    """Items."""


class FeedTree(NamedTuple):
    """A feed: its text, well-formed by now, its root element, and in there its channel and its items."""

    text: str
    root: Element
    channel: Element | None
    items: list[Element]
    notes: dict[str, None]
    """What was forgiven; nothing if the feed is as it should be."""

    @property
    def rdf(self) -> bool:
        """Tell whether it may be RDF: it says so, and nothing was wrong with it."""
        return not self.notes and self.root.tag == f"{{{RDF}}}RDF"


def read_tree(event: Event, limits: FeedLimits) -> FeedTree:
    """Read the feed of an event; refuses what is none, and what is too much."""
    data = event.data
    if event.content_type not in _TYPES or not isinstance(data, str | bytes):
        names = " or ".join(FEED_TYPES.values())
        raise EventError(f"event {event.id!r} is not a feed: send {names} as text or bytes")
    _check_size(data, limits)
    notes: dict[str, None] = {}
    text, why = text_of(data, notes), ""
    root: Element | None
    try:
        root = _parsed(text)
    except EventError as error:
        why = str(error)
        notes = {f"not well-formed: {why}": None, **notes}
        text = mend(text, limits.depth, limits.items, notes)
        root = _parsed(text, notes) if text else None
    channel, items = (None, []) if root is None else _parts(root)
    if root is None or (channel is None and not items):
        begins = "" if root is None else f", but <{split_name(_name(root))[1][:40]}> around all"
        because = f"; not well-formed: {why}" if why else begins
        raise EventError(f"not a usable feed: there is no channel and no item in it{because}")
    if len(items) > limits.items:
        raise EventError(f"the feed has {len(items):,} items: {limits.items:,} are allowed")
    return FeedTree(text, root, channel, items, notes)


def _check_size(data: str | bytes, limits: FeedLimits) -> None:
    size = len(data)
    if isinstance(data, str) and size <= limits.size < 3 * size and not data.isascii():
        size = len(data.encode(errors="surrogatepass"))
    if size > limits.size:
        raise EventError(f"the document has {size:,} bytes: {limits.size:,} are allowed")


def _parsed(text: str, notes: dict[str, None] | None = None) -> Element:
    """Let lxml read a text: nothing is fetched, and there is no DOCTYPE that could declare an entity.

    With `notes` it passes over what is still wrong with it, and notes that.
    """
    parser = etree.XMLParser(
        encoding="utf-8",
        recover=notes is not None,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError as error:
        raise EventError(_line(error.msg or "it cannot be parsed")) from None
    if notes is not None:
        notes |= {_line(f"{each.message} (line {each.line})"): None for each in parser.error_log[:_LOGGED]}
    if root is None:
        raise EventError("not a usable feed: there is no channel and no item in it, nor any element")
    if root.getroottree().docinfo.internalDTD is not None:
        raise EventError("not a usable feed: a DOCTYPE can declare entities: send it without")
    return root


def _line(text: str) -> str:
    """Bring a text to one line that can be shown."""
    return "".join(sign if sign.isprintable() else " " for sign in text)[:200].strip()


# Channel and items


def _name(element: Element) -> str:
    return str(element.tag)


def family(element: Element) -> tuple[str, str]:
    """Tell whose name an element has, `rss` or `atom` or nothing, and the name itself, in lower case."""
    return _family(_name(element))


@lru_cache(maxsize=4096)
def _family(name: str) -> tuple[str, str]:
    space, local = split_name(name)
    whose = "rss" if space in RSS_SPACES else "atom" if space in ATOM_SPACES else ""
    return whose, local.lower()


def _parts(root: Element) -> tuple[Element | None, list[Element]]:
    """Find the channel, which may be the root, and the items, which are not in other items."""
    whose, local = family(root)
    channel = root if local == "feed" and whose else None
    items: list[Element] = []
    waiting = [root]
    while waiting:
        element = waiting.pop()
        whose, local = family(element)
        if whose and local in ITEMS:
            items.append(element)
            continue
        if whose and local == CHANNEL and channel is None:
            channel = element
        if element is root or local in ROOTS or (whose and local == CHANNEL):
            waiting += reversed(element)
    return channel, items


# What an item says of itself

_DATES = {
    ("rss", "pubdate"): 0,
    ("atom", "published"): 0,
    ("atom", "issued"): 0,
    ("atom", "updated"): 1,
    ("atom", "modified"): 1,
}
_CORE_DATES = {
    f"{{{DC}}}date": 0,
    f"{{{DC_TERMS}}}date": 0,
    f"{{{DC_TERMS}}}issued": 0,
    f"{{{DC_TERMS}}}modified": 1,
}


def time_of(item: Element) -> dt.datetime | None:
    """Find when an item was published, or else when it was changed."""
    found: tuple[int, dt.datetime] | None = None
    for child in item:
        rank = _CORE_DATES.get(_name(child))
        if rank is None:
            rank = _DATES.get(family(child))
        if rank is None or (found is not None and found[0] <= rank):
            continue
        if (time := read_date(text_in(child))) is not None:
            found = rank, time
    return found and found[1]


def text_in(element: Element) -> str:
    """Return all text in an element, without blanks around it."""
    if not len(element):
        return (element.text or "").strip()
    return "".join(map(str, element.itertext())).strip()


def inner_html(field: Element) -> str:
    """Write what is inside the div of XHTML, as HTML would have it."""
    div = next((child for child in field if split_name(_name(child)) == (_HTML, "div")), field)
    parts = [etree.tostring(child, encoding="unicode") for child in div]
    return "".join([escape(div.text or ""), *parts]).replace(f' xmlns="{_HTML}"', "").strip()


def own_id(item: Element) -> str | None:
    """Find what an item is called wherever it comes: its guid or id, else rdf:about, else its link."""
    about = item.get(f"{{{RDF}}}about") or item.get("about")
    ids, links = [], []
    for child in item:
        match family(child):
            case ("rss", "guid") | ("atom", "id"):
                ids.append(text_in(child))
            case ("rss", "link"):
                links.append(text_in(child))
            case ("atom", "link") if child.get("rel", "alternate") == "alternate":
                links.append((child.get("href") or "").strip())
    return next(filter(None, (*ids, about, *links)), None)


def item_ids(event: Event, items: Sequence[Element], *, own: bool) -> list[str]:
    """Name the events of items: by their places, or by what they call themselves if no two are the same."""
    places = [f"{event.id}#{n}" for n in range(1, len(items) + 1)]
    if not own:
        return places
    called = [own_id(item) for item in items]
    often = Counter(called)
    return [
        name if name is not None and often[name] == 1 else place
        for name, place in zip(called, places, strict=True)
    ]
