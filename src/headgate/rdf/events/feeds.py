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

from headgate.contents.feeds import reading as feeds
from headgate.contents.feeds.vocabulary import CONTENT, DC, DC_TERMS, ITEMS, XML, split_name
from headgate.contents.feeds.vocabulary import RSS as RSS_SPACE
from headgate.core.event import N_TRIPLES, RSS, Event
from headgate.errors import EventError
from headgate.rdf.events.reading import DEFAULT_READER, make_graph
from headgate.rdf.language.model import RDF, TYPE, Graph, iri, is_blank, is_literal, literal, parts
from headgate.rdf.language.names import is_absolute, is_iri, resolve

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping

    from headgate.contents.feeds.reading import Element, FeedTree
    from headgate.rdf.events.reading import Reader
    from headgate.rdf.events.screening import Limits
    from headgate.rdf.language.model import Term

    Statement: TypeAlias = tuple[Term, Term, Term]


ENCLOSURES = "http://purl.oclc.org/net/rss_2.0/enc#"
RELATIONS = "http://www.iana.org/assignments/relation/"
"""Where the relations of links are that Atom names by one word."""
_BASE, _LANGUAGE = f"{{{XML}}}base", f"{{{XML}}}lang"
_LIST = "_:list"
_LONGEST_BASE = 2048
_TEXT, _PLAIN, _LINK, _DATE = range(4)
_RSS = {
    "link": (f"{RSS_SPACE}link", _LINK),
    "comments": (f"{RSS_SPACE}comments", _LINK),
    "docs": (f"{RSS_SPACE}docs", _LINK),
    "pubdate": (f"{DC}date", _DATE),
    "lastbuilddate": (f"{DC_TERMS}modified", _DATE),
    "author": (f"{DC}creator", _PLAIN),
    "category": (f"{DC}subject", _PLAIN),
    "language": (f"{DC}language", _PLAIN),
    "copyright": (f"{DC}rights", _TEXT),
    "managingeditor": (f"{DC}publisher", _PLAIN),
    "guid": (f"{DC}identifier", _PLAIN),
    "source": (f"{DC}source", _PLAIN),
    "ttl": (f"{RSS_SPACE}ttl", _PLAIN),
}
"""Names of RSS that are not those of RSS 1.0, or not of texts; all others are."""
_ATOM = {
    "title": (f"{RSS_SPACE}title", _TEXT),
    "subtitle": (f"{RSS_SPACE}description", _TEXT),
    "tagline": (f"{RSS_SPACE}description", _TEXT),
    "summary": (f"{RSS_SPACE}description", _TEXT),
    "id": (f"{DC}identifier", _PLAIN),
    "published": (f"{DC}date", _DATE),
    "issued": (f"{DC}date", _DATE),
    "updated": (f"{DC_TERMS}modified", _DATE),
    "modified": (f"{DC_TERMS}modified", _DATE),
    "rights": (f"{DC}rights", _TEXT),
    "copyright": (f"{DC}rights", _TEXT),
    "generator": (f"{RSS_SPACE}generator", _TEXT),
}
_TEXTS = frozenset({"title", "description", "subtitle", "summary", "encoded", "rights", "abstract"})
"""Names in other vocabularies of what is written in a language; names and topics are the same in all."""
_PERSONS = {"author": f"{DC}creator", "contributor": f"{DC}contributor"}
_CONTENT_TYPES = {"text": "text/plain", "html": "text/html", "xhtml": "application/xhtml+xml"}
_DATED, _CHANGED = iri(f"{DC}date"), iri(f"{DC_TERMS}modified")
_RESOURCES = (f"{{{RDF}}}resource", "resource", "url", "href")


class _Within(NamedTuple):
    """The channel or the item that is read: its base, and its language."""

    part: Element
    base: str | None
    language: str


class FeedTerms:
    """The triples of a feed, those of its channel once; `notes` has what was forgiven."""

    def __init__(self, tree: FeedTree, limits: Limits, base: str | None) -> None:
        self._tree = tree
        self._limits = limits
        self._base = base
        self._left = limits.terms
        self._fields = 0
        self._names: dict[str, Term | None] = {}
        self._within = _Within(tree.root, base, "")
        self.channel: Term | None = None
        self.shared: list[Statement] = []
        if tree.channel is not None:
            self._add_channel(tree.channel)
        elif len(tree.items) > 1:
            self._note("there is no channel")

    def _add_channel(self, channel: Element) -> None:
        self._enter(channel)
        self.channel = self._subject(channel, "the channel") or "_:channel"
        if self._base is None and self.channel.startswith("<"):
            self._base = self.channel[1:-1]
            self._enter(channel)
        own = self._described(self.channel, channel, "channel")
        self.shared = [
            *own,
            (self.channel, iri(f"{RSS_SPACE}items"), _LIST),
            (_LIST, TYPE, iri(f"{RDF}Seq")),
        ]

    def of_item(self, n: int) -> list[Statement]:
        """List the triples about an item, counted from 1, and its place in the channel's list."""
        item = self._tree.items[n - 1]
        self._enter(item)
        subject = self._subject(item, f"item {n}") or f"_:item{n}"
        own = self._described(subject, item, "item")
        if self.channel is not None:
            own.append((_LIST, iri(f"{RDF}_{n}"), subject))
        return own

    # Names

    def _subject(self, part: Element, which: str) -> Term | None:
        """Find the IRI that names a channel or an item: rdf:about, its link, its identifier."""
        about = part.get(f"{{{RDF}}}about") or part.get("about") or ""
        name = self._named(part, about)
        if not about and part.tag == f"{{{RSS_SPACE}}}{feeds.family(part)[1]}":
            how = "a blank node" if name is None else f"named {name}"
            self._note(f"{which} has no rdf:about: it is {how}")
        return name

    def _named(self, part: Element, about: str) -> Term | None:
        texts = [about]
        identifiers = []
        for child in part:
            match feeds.family(child):
                case ("rss", "link"):
                    texts.append(feeds.text_in(child))
                case ("atom", "link") if child.get("rel", "alternate") == "alternate":
                    texts.append(self._resolved(child.get("href") or "", child) or "")
                case ("rss", "guid") | ("atom", "id"):
                    identifiers.append(feeds.text_in(child))
        for each in (*texts, *identifiers):
            name = self._iri(each, part)
            # Some feeds give all items the link of the channel.
            if name is not None and name != self.channel:
                return name
        return None

    def _iri(self, text: str, element: Element) -> Term | None:
        """Make an IRI of a text, if it is one."""
        text = self._resolved(text, element) or ""
        return iri(text) if text and is_absolute(text) and is_iri(text) else None

    def _resolved(self, text: str, element: Element) -> str | None:
        """Resolve a link against xml:base, else against the base of the feed."""
        text = text.strip()
        if not text or is_absolute(text):
            return text or None
        base = self._within.base if element is self._within.part else self._deeper(self._within.base, element)
        return text if base is None else resolve(base, text)

    def _enter(self, part: Element) -> None:
        """Find the base and the language of a channel or an item: those of what is around it, and its own."""
        around: list[Element] = [part, *part.iterancestors()]
        base, language = self._base, ""
        for element in reversed(around):
            base = self._deeper(base, element)
            language = element.get(_LANGUAGE, language)
        self._within = _Within(part, base, language)

    def _deeper(self, base: str | None, element: Element) -> str | None:
        """Find the base inside an element."""
        own = (element.get(_BASE) or "").strip()
        if not own:
            return base
        if len(own) > _LONGEST_BASE:
            raise EventError(
                f"not a usable feed: the base in line {element.sourceline} has more than "
                f"{_LONGEST_BASE:,} characters"
            )
        if not is_absolute(own):
            return base if base is None else resolve(base, own)[:_LONGEST_BASE]
        return own

    def _property(self, element: Element) -> Term | None:
        """Find the property that an element of another vocabulary means."""
        name = str(element.tag)
        if name not in self._names:
            space, local = split_name(name)
            value = f"{space}{local}"
            self._names[name] = iri(value) if is_absolute(value) and is_iri(value) else None
            if self._names[name] is None:
                self._note(f"<{local}> in line {element.sourceline} is left out: {value!r} is not an IRI")
        return self._names[name]

    # What is said

    def _described(self, subject: Term, part: Element, kind: str) -> list[Statement]:
        """List what a channel or an item says of itself."""
        statements: list[Statement] = [(subject, TYPE, iri(f"{RSS_SPACE}{kind}"))]
        for child in part:
            whose, local = feeds.family(child)
            self._count()
            if whose and (local in ITEMS or local in {"channel", "textinput", "items"}):
                continue
            if whose == "atom":
                self._add_atom(statements, subject, child, local)
            elif whose == "rss":
                self._add_rss(statements, subject, child, local)
            elif (name := self._property(child)) is not None:
                value = self._value(child, _TEXT if local in _TEXTS else _PLAIN)
                self._add(statements, subject, name, value)
        names = {statement[1] for statement in statements}
        if _DATED not in names:
            changed = next((each for each in statements if each[1] == _CHANGED), None)
            if changed is not None:
                statements.append((subject, _DATED, changed[2]))
        language = part.get(_LANGUAGE, "")
        if kind == "channel" and feeds.family(part)[0] == "atom" and _is_language(language):
            statements.append((subject, iri(f"{DC}language"), literal(language)))
        return statements

    def _add_rss(self, statements: list[Statement], subject: Term, field: Element, local: str) -> None:
        if local == "enclosure":
            self._add_enclosure(statements, subject, field, "url")
            return
        if local == "image":
            named = next((child for child in field if feeds.family(child)[1] == "url"), None)
            address = field.get(_RESOURCES[0]) if named is None else feeds.text_in(named)
            self._add(statements, subject, iri(f"{RSS_SPACE}image"), self._iri(address or "", field))
            return
        name, kind = _RSS.get(local) or (f"{RSS_SPACE}{split_name(str(field.tag))[1]}", _TEXT)
        self._add(statements, subject, iri(name) if is_iri(name) else None, self._value(field, kind))

    def _add_atom(self, statements: list[Statement], subject: Term, field: Element, local: str) -> None:
        if local in _ATOM:
            name, kind = _ATOM[local]
            self._add(statements, subject, iri(name), self._value(field, kind))
        elif local in _PERSONS:
            self._add(statements, subject, iri(_PERSONS[local]), self._person(field))
        elif local == "link":
            self._add_link(statements, subject, field)
        elif local == "content":
            self._add_content(statements, subject, field)
        elif local == "category":
            for text in filter(None, (field.get("term"), feeds.text_in(field))):
                self._add(statements, subject, iri(f"{DC}subject"), literal(text.strip()))
            label = (field.get("label") or "").strip()
            if label != (field.get("term") or "").strip():
                self._add(statements, subject, iri(f"{DC}subject"), self._literal(label, field))
        elif local in {"logo", "icon"}:
            self._add(statements, subject, iri(f"{RSS_SPACE}image"), self._iri(feeds.text_in(field), field))
        elif local == "source":
            titles = [child for child in field if feeds.family(child)[1] in {"title", "id"}]
            titles.sort(key=lambda child: feeds.family(child)[1] != "title")
            if titles:
                self._add(
                    statements,
                    subject,
                    iri(f"{DC}source"),
                    self._literal(feeds.text_in(titles[0]), titles[0]),
                )

    def _add_link(self, statements: list[Statement], subject: Term, field: Element) -> None:
        relation, address = field.get("rel", "alternate").strip(), field.get("href") or ""
        if relation == "enclosure":
            self._add_enclosure(statements, subject, field, "href")
        elif relation == "alternate":
            link = self._resolved(address, field)
            self._add(statements, subject, iri(f"{RSS_SPACE}link"), literal(link) if link else None)
        else:
            name = relation if is_absolute(relation) else f"{RELATIONS}{relation}"
            self._add(statements, subject, iri(name) if is_iri(name) else None, self._iri(address, field))

    def _add_enclosure(self, statements: list[Statement], subject: Term, field: Element, key: str) -> None:
        address = self._iri(field.get(key) or "", field)
        self._add(statements, subject, iri(f"{ENCLOSURES}enclosure"), address)
        for name in ("type", "length"):
            if address is not None and (text := (field.get(name) or "").strip()):
                self._add(statements, address, iri(f"{ENCLOSURES}{name}"), literal(text))

    def _add_content(self, statements: list[Statement], subject: Term, field: Element) -> None:
        kind = (field.get("type") or "text").strip()
        if address := field.get("src"):
            self._add(statements, subject, iri(f"{DC_TERMS}hasFormat"), self._iri(address, field))
        else:
            self._add(statements, subject, iri(f"{CONTENT}encoded"), self._value(field, _TEXT))
        self._add(statements, subject, iri(f"{DC}format"), literal(_CONTENT_TYPES.get(kind, kind)))

    def _add(self, statements: list[Statement], subject: Term, name: Term | None, value: Term | None) -> None:
        if name is None or value is None:
            return
        self._count()
        self._left -= len(name) + len(value)
        if len(value) > self._limits.term:
            raise EventError(
                f"not a usable feed: a text has {len(value):,} characters: {self._limits.term:,} are allowed"
            )
        if self._left < 0:
            raise EventError(f"not a usable feed: its texts have more than {self._limits.terms:,} characters")
        statements.append((subject, name, value))

    def _count(self) -> None:
        self._fields += 1
        if self._fields > 2 * self._limits.triples:
            raise EventError(f"not a usable feed: it has more than {self._limits.triples:,} triples")

    # Values

    def _value(self, field: Element, kind: int) -> Term | None:
        """Find what a field says: a resource, or its text; nothing if it is empty."""
        for key in _RESOURCES:
            if (address := field.get(key)) and (named := self._iri(address, field)):
                return named
        text = feeds.inner_html(field) if field.get("type") == "xhtml" else feeds.text_in(field)
        if not text:
            return None
        if kind == _LINK:
            return literal(self._resolved(text, field) or text)
        if kind == _DATE:
            time = feeds.read_date(text)
            return literal(text if time is None else time.isoformat())
        return literal(text) if kind == _PLAIN else self._literal(text, field)

    def _person(self, field: Element) -> Term | None:
        said = {feeds.family(child)[1]: feeds.text_in(child) for child in field}
        text = said.get("name") or said.get("email") or said.get("uri") or said.get("url")
        text = text or ("" if said else feeds.text_in(field))
        return literal(text) if text else None

    def _literal(self, text: str, field: Element) -> Term | None:
        if not text:
            return None
        language = field.get(_LANGUAGE, self._within.language)
        return literal(text, language=language if _is_language(language) else "")

    def _note(self, note: str) -> None:
        self._tree.notes[note] = None


def _is_language(text: str) -> bool:
    """Tell whether a text is a language tag."""
    return text.isascii() and all(0 < len(part) <= 8 and part.isalnum() for part in text.split("-"))


ITEM = f"<{RSS_SPACE}item>"
CHANNEL = f"<{RSS_SPACE}channel>"
HAS_ITEMS = f"<{RSS_SPACE}items>"
DATES = (f"<{DC}date>", f"<{DC_TERMS}date>", f"<{DC_TERMS}issued>", f"<{DC_TERMS}modified>")
_MEMBER = f"<{RDF}_"


class _Item(NamedTuple):
    """An item, and its date if it gives one."""

    graph: Graph
    time: dt.datetime | None


def read_feed(event: Event, reader: Reader | None = None, *, own_ids: bool = False) -> feeds.Feed:
    """Take a feed apart; the event of item n has the feed's id with `#n` behind it, counted from 1.

    With `own_ids` its id is what the item is called wherever it comes: its guid or id, its address; if it has
    none, or another item has the same, it is `#n` as ever.

    The source is the feed's; the time is the item's date if it gives one, else the feed's. A feed that is not
    well-formed is read leniently; one in which no channel and no item can be found is refused.
    """
    reader = reader or DEFAULT_READER
    tree = feeds.read_tree(event, feeds.FeedLimits(reader.limits.size, reader.limits.depth))
    items = _strict(tree, reader) if tree.rdf else None
    if items is None:
        items = _by_elements(tree, reader)
    # Items of one address are one item in RDF, and may be described in several places.
    names = feeds.item_ids(event, tree.items, own=own_ids and len(items) == len(tree.items))
    names += [f"{event.id}#{n}" for n in range(len(names) + 1, len(items) + 1)]
    return feeds.Feed(
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
    items = _items(triples, feeds.SHARE * reader.limits.triples)
    return [_Item(graph, _time(item, graph)) for item, graph in items]


def _by_elements(tree: FeedTree, reader: Reader) -> list[_Item]:
    """Read all other feeds by what their elements mean."""
    terms = FeedTerms(tree, reader.limits, reader.base)
    most = feeds.SHARE * reader.limits.triples
    size = len(tree.items) * len(terms.shared)
    items: list[_Item] = []
    for n, element in enumerate(tree.items, 1):
        own = terms.of_item(n)
        size += len(own)
        if size > most:
            raise EventError(f"not a usable feed: its items have more than {most:,} triples together")
        items.append(_Item(make_graph([*own, *terms.shared]), feeds.time_of(element)))
    return items


def _items(triples: list[Statement], most: int) -> list[tuple[Term, Graph]]:
    """List the items, each with its graph; refuse more triples than `most` in all."""
    about: dict[Term, list[Statement]] = {}
    for triple in triples:
        about.setdefault(triple[0], []).append(triple)
    channels = dict.fromkeys(s for s, p, o in triples if p == TYPE and o == CHANNEL)
    lists = {o for s, p, o in triples if p == HAS_ITEMS and s in channels}
    shared = [triple for triple in _reached(about, channels, lists) if triple[0] not in lists]
    places: dict[Term, list[Statement]] = {}
    heads: list[Statement] = []
    for each in lists:
        for triple in about.get(each, ()):
            if triple[1].startswith(_MEMBER):
                places.setdefault(triple[2], []).append(triple)
            else:
                heads.append(triple)
    graphs: list[tuple[Term, Graph]] = []
    items = dict.fromkeys(s for s, p, o in triples if p == TYPE and o == ITEM)
    size = len(items) * (len(shared) + len(heads))
    for item in items:
        own = [*_reached(about, [item], lists), *places.get(item, ())]
        size += len(own)
        if size > most:
            raise EventError(f"not a usable feed: its items have more than {most:,} triples together")
        graphs.append((item, make_graph([*own, *shared, *heads])))
    return graphs


def _reached(
    about: Mapping[Term, list[Statement]], subjects: Iterable[Term], without: set[Term]
) -> list[Statement]:
    """List the triples about subjects, and about the blank nodes that they lead to."""
    statements: list[Statement] = []
    waiting = list(subjects)
    seen = {*waiting, *without}
    while waiting:
        for triple in about.get(waiting.pop(), ()):
            statements.append(triple)
            if is_blank(triple[2]) and triple[2] not in seen:
                seen.add(triple[2])
                waiting.append(triple[2])
    return statements


def _time(item: Term, graph: Graph) -> dt.datetime | None:
    """Find the date of an item."""
    said = {p: o for s, p, o in reversed(graph.statements()) if s == item and p in DATES and is_literal(o)}
    times = (feeds.read_date(parts(said[name]).lexical) for name in DATES if name in said)
    return next(filter(None, times), None)
