"""A feed to its tree: read strictly, or mended first; where its channel and its items are.

lxml reads it. It knows RSS and Atom no better than any other XML, and that is why it is taken: what a library
of feeds makes of an item has lost the element, and with it what the library does not know.

    rss        channel, and in it the items      RSS 0.91 to 2.0
    rdf:RDF    channel, and beside it the items  RSS 0.90, 1.0
    feed       entries, the channel is the feed  Atom
    entry      alone                             Atom
"""

from __future__ import annotations

import codecs
import datetime as dt
import re
from collections import Counter
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from xml.sax.saxutils import escape

from lxml import etree

from headgate.contents.feeds.mending import mend
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
from headgate.contents.kind import check_size
from headgate.core.event import FEED_TYPES, RDF_XML, SECOND_MARK, XML, Event
from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Sequence


WINDOWS = "cp1252"
"""What bytes are taken for that are not what they say: most often they are."""
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_WIDE = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
"""How a document begins that is UTF-16 without a mark."""
_WIDE_NAMES = ("utf16", "utf32", "ucs", "iso10646ucs")
_DECLARED = re.compile(rb"""\s*+<\?xml\s[^>]{0,200}?\sencoding\s*=\s*["']([A-Za-z0-9._:\-]{1,40})["']""")
_HIDING = {"utf-7", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"}
"""Codecs in which markup can look like text, or that are about something else than text."""
_DECLARATION = re.compile(r"\s*+<\?xml\s[^>]*+>")
_PROLOG = re.compile(r"(?:\s++|<\?.*?\?>|<!--.*?-->)++", re.DOTALL)
_DOCTYPE = re.compile(r"<!DOCTYPE(?:[^\[\]<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+", re.IGNORECASE)


def text_of(data: str | bytes, notes: dict[str, None]) -> str:
    r"""Return the text of a feed without its XML declaration and its DOCTYPE; `notes` has what was forgiven.

    >>> text_of(b'<?xml version="1.0" encoding="ISO-8859-1"?><a>\xe9</a>', {})
    '<a>é</a>'
    """
    text = _readable(data, notes) if isinstance(data, str) else _decoded(data, notes)
    if text.startswith("\ufeff"):
        raise EventError(f"not a usable feed: {SECOND_MARK}")
    if "\0" in text:
        offset = text.index("\0")
        raise EventError(f"not a usable feed: character {offset + 1:,} is NUL: send text without NULs")
    if match_ := _DECLARATION.match(text):
        text = _blank(text, 0, match_.end())
    return _without_doctype(text)


def _readable(text: str, notes: dict[str, None]) -> str:
    """Leave out what no encoding holds."""
    text = text.removeprefix("\ufeff")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        notes[f"character {error.start + 1:,} is half of a surrogate pair: read as ?"] = None
        return text.encode(errors="replace").decode()
    return text


def _decoded(data: bytes, notes: dict[str, None]) -> str:
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return _decode(data[len(mark) :], encoding, notes)
    encoding = _WIDE.get(data[:2], "")
    if not encoding:
        match_ = _DECLARED.match(data)
        encoding = match_[1].decode().lower() if match_ else "utf-8"
        if encoding.replace("-", "").startswith(_WIDE_NAMES):
            # It could not be read up to here.
            notes[f"it is not {encoding.upper()}: taken for UTF-8"] = None
            encoding = "utf-8"
    return _decode(data, encoding, notes)


def _decode(data: bytes, encoding: str, notes: dict[str, None]) -> str:
    known = _codec(encoding)
    if known is None:
        notes[f"the encoding {encoding!r} is not read: taken for UTF-8"] = None
        known, encoding = "utf-8", "utf-8"
    try:
        return data.decode(known)
    except UnicodeError:
        notes[f"it is not {encoding.upper()}: read as windows-1252"] = None
        return data.decode(WINDOWS, errors="replace")


def _codec(encoding: str) -> str | None:
    """Find the codec of a declared encoding, if it is one of texts."""
    try:
        codec = codecs.lookup(encoding)
        # Some codecs turn bytes to bytes: no text comes of them.
        sound = isinstance(codec.decode(b"")[0], str) and codec.name not in _HIDING
    except (LookupError, ValueError, UnicodeError):
        return None
    return codec.name if sound else None


def _without_doctype(text: str) -> str:
    """Leave out a DOCTYPE that names a file, which is never fetched; refuse one that declares something."""
    start = prolog.end() if (prolog := _PROLOG.match(text)) else 0
    doctype = _DOCTYPE.match(text, start)
    if doctype is None:
        return text
    end = doctype.end()
    if text[end : end + 1] != ">":
        line = text.count("\n", 0, start) + 1
        raise EventError(
            f"not a usable feed: the DOCTYPE in line {line} can declare entities: send it without"
        )
    return _blank(text, start, end + 1)


def _blank(text: str, start: int, end: int) -> str:
    """Take a part out, but for its line ends."""
    return text[:start] + "\n" * text.count("\n", start, end) + text[end:]


_W3C = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d)(?:[Tt ].*)?)?", re.ASCII | re.DOTALL)
_LONGEST = 64


def read_date(text: str) -> dt.datetime | None:
    """Read a W3C date, which may be short of a part, or the date of a mail; without a zone it is in UTC.

    >>> read_date("2005-05").isoformat(), read_date("Tue, 10 May 2005 09:30:00 GMT").isoformat()
    ('2005-05-01T00:00:00+00:00', '2005-05-10T09:30:00+00:00')
    >>> read_date("yesterday")
    """
    text = text.strip()
    return None if len(text) > _LONGEST else _read(text)


# That of an item is read for its event, and again for what it says.
@lru_cache(maxsize=1024)
def _read(text: str) -> dt.datetime | None:
    try:
        if match_ := _W3C.fullmatch(text):
            full = text if match_[3] else f"{match_[1]}-{match_[2] or '01'}-01"
            time = dt.datetime.fromisoformat(full)
        else:
            time = parsedate_to_datetime(text)
    except (ValueError, IndexError, OverflowError, TypeError):
        return None
    return time if time.tzinfo else time.replace(tzinfo=dt.UTC)


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
    check_size(data, limits.size)
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
    best: tuple[int, dt.datetime] | None = None
    for child in item:
        rank = _CORE_DATES.get(_name(child))
        if rank is None:
            rank = _DATES.get(family(child))
        if rank is None or (best is not None and best[0] <= rank):
            continue
        if (time := read_date(text_in(child))) is not None:
            best = rank, time
    return best and best[1]


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
        name if name is not None and often[name] == 1 else numbered
        for name, numbered in zip(called, places, strict=True)
    ]


class Feed(NamedTuple):
    """The events of a feed's items in the order of the document, and what was forgiven on the way."""

    items: tuple[Event, ...]
    notes: tuple[str, ...]
