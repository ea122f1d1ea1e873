"""The channel and the items of a feed by its tags alone, in one pass and without a tree.

A field that is not closed ends where another plainly begins, or with its item. The only entities are those of
XML and HTML, each of which is one or two characters, so no text grows.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from html.entities import html5
from typing import NamedTuple

from headgate.errors import EventError

LANGUAGE = "xml:lang"


class Field(NamedTuple):
    """An element inside a channel or an item: its name as it is written, its attributes, its text."""

    name: str
    attributes: dict[str, str]
    text: str


@dataclass
class Part:
    """A channel or an item."""

    attributes: dict[str, str]
    fields: list[Field] = field(default_factory=list)


@dataclass
class Scan:
    """What was found; `prefixes` are those that were declared, `notes` what is not as it should be."""

    channel: Part | None = None
    items: list[Part] = field(default_factory=list)
    prefixes: dict[str, str] = field(default_factory=dict)
    language: str = ""
    notes: dict[str, None] = field(default_factory=dict)


_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<!\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)"
    r"|<\?.*?(?:\?>|\Z)"
    r"|<!(?P<declared>[A-Za-z]*+)[^>]*+>?"
    r"|<(?P<end>/?)(?P<name>[^\W\d][\w.\-]*+(?::[\w.\-]++)?+)"
    r"(?P<attributes>(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+)>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"(?<![\w.\-:])([\w.\-:]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'<>]++))")
_ENTITY = re.compile(r"&(#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_XML_ENTITIES = ("amp", "lt", "gt", "quot", "apos")
_PARTS = ("channel", "item")
_PLAIN = ("title", "link")
"""Fields that hold no tags of their own."""
_SKIPPED = ("image", "textinput", "items")
"""Elements of a channel that hold elements of others."""


def scan(text: str) -> Scan:
    """Find the channel and the items of a feed.

    >>> found = scan("<channel><title>News</title></channel><item about='urn:1'><title>Fish &amp; chips")
    >>> found.channel.fields, found.items[0].fields[0].text
    ([Field(name='title', attributes={}, text='News')], 'Fish & chips')
    """
    scanner = _Scanner()
    end = 0
    for token in _TOKEN.finditer(text):
        scanner.text(text[end : token.start()])
        end = token.end()
        if token["name"] is not None:
            name, attributes = token["name"], token["attributes"]
            if not token["end"]:
                scanner.begin(name, attributes)
            if token["end"] or attributes.rstrip().endswith("/"):
                scanner.end(name)
        elif token["cdata"] is not None:
            scanner.characters(token["cdata"])
        elif token["declared"]:
            raise EventError(
                f"not usable RSS 1.0: a {token['declared']} can declare entities: send it without"
            )
    scanner.text(text[end:])
    return scanner.finish()


class _Scanner:
    """Where we are between two tags."""

    def __init__(self) -> None:
        self._found = Scan()
        self._part: Part | None = None
        self._name = ""
        self._attributes: dict[str, str] = {}
        self._pieces: list[str] = []
        self._skipping = ""

    def text(self, raw: str) -> None:
        """Take what stands between two tags."""
        if self._name and raw:
            self.characters(self._unescaped(raw))

    def characters(self, text: str) -> None:
        """Take text without entities."""
        if self._name:
            self._pieces.append(text)

    def begin(self, name: str, attributes: str) -> None:
        """Take the tag that begins an element."""
        local = local_name(name)
        given = {
            found[1]: self._unescaped(found[2] or found[3] or found[4] or "")
            for found in _ATTRIBUTE.finditer(attributes)
        }
        self._found.prefixes |= {key[6:]: value for key, value in given.items() if key.startswith("xmlns:")}
        if local in _PARTS:
            self._begin_part(local, given)
        elif self._skipping:
            return
        elif self._part is None:
            self._found.language = given.get(LANGUAGE, self._found.language)
        elif self._name and (local not in _PLAIN or local_name(self._name) not in _PLAIN):
            self._note(f"tags inside <{self._name}> are left out")
        elif local in _SKIPPED and not given:
            self._skipping = local
        else:
            self._end_field()
            self._name, self._attributes, self._pieces = name, given, []

    def end(self, name: str) -> None:
        """Take the tag that ends an element."""
        local = local_name(name)
        if local in _PARTS:
            self._end_field()
            # In RSS 2.0 items stand inside the channel.
            inside = local == "item" and self._found.channel is not self._part
            self._part = self._found.channel if inside else None
            self._skipping = ""
        elif local == self._skipping:
            self._skipping = ""
        elif name == self._name:
            self._name, ended = "", self._name
            self._keep(ended)

    def finish(self) -> Scan:
        """Close what is open."""
        if self._part is not None and self._part is not self._found.channel:
            self._note("the feed ends inside an item")
        self._end_field()
        return self._found

    def _begin_part(self, local: str, attributes: dict[str, str]) -> None:
        self._end_field()
        self._skipping = ""
        if self._part is not None and self._part is self._found.channel:
            attributes = {LANGUAGE: self._part.attributes.get(LANGUAGE, self._found.language)} | attributes
        self._part = Part(attributes)
        if local == "item":
            self._found.items.append(self._part)
        elif self._found.channel is None:
            self._found.channel = self._part
        else:
            self._note("a second channel is left out")

    def _end_field(self) -> None:
        if self._name:
            self._note(f"<{self._name}> is not closed")
            self._name, ended = "", self._name
            self._keep(ended)

    def _keep(self, name: str) -> None:
        assert self._part is not None
        self._part.fields.append(Field(name, self._attributes, "".join(self._pieces).strip()))

    def _unescaped(self, raw: str) -> str:
        if "&" not in raw:
            return raw
        if raw.count("&") > len(_ENTITY.findall(raw)):
            self._note("a bare & is taken for &amp;")
        return _ENTITY.sub(self._entity, raw)

    def _entity(self, found: re.Match[str]) -> str:
        name = found[1]
        if name[0] != "#" and name not in _XML_ENTITIES:
            known = f"{name};" in html5
            self._note(
                f"the entity {found[0]} is {'that of HTML' if known else 'unknown, and left as it is'}"
            )
        return html.unescape(found[0])

    def _note(self, note: str) -> None:
        self._found.notes[note] = None


def local_name(name: str) -> str:
    """Return a name without its prefix, in lower case.

    >>> local_name("rss:pubDate")
    'pubdate'
    """
    return name.rpartition(":")[2].lower()
