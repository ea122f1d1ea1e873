"""Feeds that are not RDF, or not even XML: what they seem to mean, in the vocabularies of RSS 1.0.

Prefixes that are not declared are those that feeds use; names of RSS 0.9x and 2.0 become those of RSS 1.0 and
Dublin Core; an item without rdf:about is named by its link. Nothing is fetched. What was forgiven is noted.
"""

from __future__ import annotations

import codecs
import datetime as dt
import re
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeAlias

from headgate.core.event import SECOND_MARK
from headgate.errors import EventError
from headgate.rdf.events.feed_tags import LANGUAGE, local_name, scan
from headgate.rdf.events.screening import check_size
from headgate.rdf.language.model import RDF, TYPE, iri, literal
from headgate.rdf.language.names import is_absolute, is_iri, resolve

if TYPE_CHECKING:
    from headgate.rdf.events.feed_tags import Field, Part, Scan
    from headgate.rdf.events.screening import Limits
    from headgate.rdf.language.model import Term

    Statement: TypeAlias = tuple[Term, Term, Term]


_W3C = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d)(?:T.*)?)?", re.ASCII | re.DOTALL)
_LONGEST = 64


def read_date(text: str) -> dt.datetime | None:
    """Read a W3C date, which may be short of a part, or the date of a mail; without a zone it is in UTC.

    >>> read_date("2005-05").isoformat(), read_date("Tue, 10 May 2005 09:30:00 GMT").isoformat()
    ('2005-05-01T00:00:00+00:00', '2005-05-10T09:30:00+00:00')
    >>> read_date("yesterday")
    """
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    try:
        if found := _W3C.fullmatch(text):
            full = text if found[3] else f"{found[1]}-{found[2] or '01'}-01"
            time = dt.datetime.fromisoformat(full)
        else:
            time = parsedate_to_datetime(text)
    except (ValueError, IndexError, OverflowError):
        return None
    return time if time.tzinfo else time.replace(tzinfo=dt.UTC)


RSS_SPACE = "http://purl.org/rss/1.0/"
DC = "http://purl.org/dc/elements/1.1/"
_SPACES = {
    "dc": DC,
    "dcterms": "http://purl.org/dc/terms/",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "taxo": "http://purl.org/rss/1.0/modules/taxonomy/",
    "rdf": RDF,
}
"""Prefixes that feeds use whether or not they declare them."""
_RSS_SPACES = (
    RSS_SPACE,
    "http://my.netscape.com/rdf/simple/0.9/",
    "http://channel.netscape.com/rdf/simple/0.9/",
    "http://backend.userland.com/rss2",
)
"""Namespaces whose names are those of RSS."""
_MEANT = {
    "pubdate": f"{DC}date",
    "author": f"{DC}creator",
    "category": f"{DC}subject",
    "language": f"{DC}language",
    "copyright": f"{DC}rights",
    "managingeditor": f"{DC}publisher",
    "guid": f"{DC}identifier",
    "source": f"{DC}source",
    "enclosure": "http://purl.oclc.org/net/rss_2.0/enc#enclosure",
}
"""Names of RSS 0.9x and 2.0 that RSS 1.0 leaves to Dublin Core and others."""
_CORE = (
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
)
_LIST = "_:list"
_MARKS = 2 * codecs.BOM_UTF8


def forgive(
    data: str | bytes, why: str, limits: Limits, base: str | None = None
) -> tuple[list[Statement], tuple[str, ...]]:
    """Read a feed as best we can; `why` is what the strict way said. Gives triples and what was forgiven."""
    check_size(data, limits)
    notes = {f"not read as RDF: {why}": None}
    text = _decoded(data, notes)
    found = scan(text)
    if found.channel is None and not found.items:
        raise EventError(f"not usable RSS 1.0: there is no channel and no item in it; {why}")
    notes |= found.notes
    parts = [part for part in (found.channel, *found.items) if part is not None]
    if sum(2 + len(part.fields) for part in parts) > limits.triples:
        raise EventError(f"not usable RSS 1.0: it has more than {limits.triples:,} triples")
    meaning = _Meaning(found, notes, base)
    meaning.add_channel()
    for n, item in enumerate(found.items, 1):
        meaning.add_item(n, item)
    return meaning.statements, tuple(notes)


def _decoded(data: str | bytes, notes: dict[str, None]) -> str:
    """Return the text of a feed, with nothing in it that UTF-8 cannot hold."""
    marked = data.startswith("\ufeff\ufeff") if isinstance(data, str) else data.startswith(_MARKS)
    if marked:
        raise EventError(f"not usable RSS 1.0: {SECOND_MARK}")
    if isinstance(data, str):
        return data.encode(errors="replace").decode()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data:
        raise EventError("not usable RSS 1.0: the document is in UTF-16, or has NULs: send UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        notes["it is not UTF-8: read as windows-1252"] = None
        return data.decode("cp1252", errors="replace")


class _Meaning:
    """A scan to triples."""

    def __init__(self, found: Scan, notes: dict[str, None], base: str | None) -> None:
        self.statements: list[Statement] = []
        self._found = found
        self._notes = notes
        self._base = base
        self._channel: Term | None = None
        self._properties: dict[str, Term | None] = {}

    def add_channel(self) -> None:
        """Say what the feed says of its channel."""
        channel = self._found.channel
        if channel is None:
            self._note("there is no channel")
            return
        self._channel = self._name("the channel", channel) or "_:channel"
        if self._base is None and self._channel.startswith("<"):
            self._base = self._channel[1:-1]
        self.statements += [
            (self._channel, TYPE, iri(f"{RSS_SPACE}channel")),
            (self._channel, iri(f"{RSS_SPACE}items"), _LIST),
            (_LIST, TYPE, iri(f"{RDF}Seq")),
        ]
        self._add_fields(self._channel, channel)

    def add_item(self, n: int, item: Part) -> None:
        """Say what the feed says of an item."""
        subject = self._name(f"item {n}", item) or f"_:item{n}"
        self.statements.append((subject, TYPE, iri(f"{RSS_SPACE}item")))
        self._add_fields(subject, item)
        if self._channel is not None:
            self.statements.append((_LIST, iri(f"{RDF}_{n}"), subject))

    def _name(self, which: str, part: Part) -> Term | None:
        """Find the IRI that names a part."""
        about = part.attributes.get("rdf:about") or part.attributes.get("about")
        if about and (name := self._iri(about)):
            return name
        links = [field.text for field in part.fields if local_name(field.name) == "link"]
        links += [field.text for field in part.fields if local_name(field.name) == "guid"]
        for link in links:
            if name := self._iri(link):
                self._note(f"{which} has no rdf:about: it is named by its link")
                return name
        self._note(f"{which} has no rdf:about and no link: it has no name")
        return None

    def _iri(self, text: str) -> Term | None:
        """Make an IRI of a text, if it is one."""
        text = text.strip()
        if text and not is_absolute(text) and self._base is not None:
            text = resolve(self._base, text)
        return iri(text) if is_absolute(text) and is_iri(text) else None

    def _add_fields(self, subject: Term, part: Part) -> None:
        language = part.attributes.get(LANGUAGE, self._found.language)
        for field in part.fields:
            if field.name not in self._properties:
                self._properties[field.name] = self._property(field)
            name, value = self._properties[field.name], self._object(field, language)
            if name is not None and value is not None:
                self.statements.append((subject, name, value))

    def _property(self, field: Field) -> Term | None:
        """Find the property that a field means."""
        prefix, _, local = field.name.rpartition(":")
        space = self._found.prefixes.get(prefix) if prefix else RSS_SPACE
        if space is None:
            space = _SPACES.get(prefix) or (DC if local in _CORE else None)
            if space is None:
                self._note(f"<{field.name}> is left out: its prefix is not declared")
                return None
            self._note(f"the prefix {prefix} is not declared: taken for {space}")
        if space in _RSS_SPACES:
            name = _MEANT.get(local.lower()) or f"{RSS_SPACE}{local}"
        else:
            name = f"{space}{local}"
        if not is_iri(name):
            self._note(f"<{field.name}> is left out: {name!r} is not an IRI")
            return None
        return iri(name)

    def _object(self, field: Field, language: str) -> Term | None:
        """Find what a field says: a resource, or its text; nothing if it is empty."""
        for key in ("rdf:resource", "resource", "url"):
            if named := self._iri(field.attributes.get(key, "")):
                return named
        if not field.text:
            return None
        if local_name(field.name) == "pubdate" and (time := read_date(field.text)):
            return literal(time.isoformat())
        language = field.attributes.get(LANGUAGE, language)
        return literal(field.text, language=language if _is_language(language) else "")

    def _note(self, note: str) -> None:
        self._notes[note] = None


def _is_language(text: str) -> bool:
    """Tell whether a text is a language tag."""
    return text.isascii() and all(0 < len(part) <= 8 and part.isalnum() for part in text.split("-"))
