"""A feed that is not well-formed to one that is, in one pass over its tags.

An element that is not closed ends where its item does, and a title or a link where the next field begins. The
only entities are those of XML and HTML, each of which is one or two characters, so no text grows. Prefixes
that are not declared are those that feeds use. Nothing is fetched. What was forgiven is noted, with the line
where it was met first.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache
from html.entities import html5
from xml.sax.saxutils import escape, quoteattr

from headgate.contents.feeds.vocabulary import CHANNEL, DC, DC_NAMES, ITEMS, PLAIN, PREFIXES, ROOTS
from headgate.errors import EventError

NOTES = 100
"""How many notes there are at most: a document of strangers may have any number of faults."""
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<!\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)"
    r"|<\?.*?(?:\?>|\Z)"
    r"|<!(?P<declared>[A-Za-z]*+)[^>]*+>?"
    r"|<(?P<end>/?)(?P<name>[A-Za-z_][\w.\-]*+(?::[A-Za-z_][\w.\-]*+)?+)"
    r"(?P<attributes>(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+)>",
    re.DOTALL | re.ASCII,
)
_ATTRIBUTE = re.compile(
    r"(?<![\w.\-:])([A-Za-z_][\w.\-]*+(?::[A-Za-z_][\w.\-]*+)?+)\s*+=\s*+"
    r"(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'<>]++))",
    re.ASCII,
)
_DECLARED = re.compile(r"xmlns:([A-Za-z_][\w.\-]*+)\s*+=", re.ASCII)
_ENTITY = re.compile(r"&(#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_BLANKS = frozenset(" \t\n\r\f\v")
_QUIET = re.compile(r"[^&<>\"\n\r\t]*+")
"""Values of attributes that stand between quotation marks as they are."""
_RESERVED = frozenset({"xml", "xmlns"})
"""Prefixes that need no declaration."""
_XML_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_SOUND = re.compile(r"(?:[^&]++|&(?:amp|lt|gt|quot|apos);)*+")
"""Text that is as it should be, if it has no brackets and no control characters."""
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")


def mend(text: str, depth: int, items: int, notes: dict[str, None]) -> str:
    """Return a feed as well-formed XML; refuses what nests too deep, has too many items, or a DOCTYPE.

    >>> mend("<rss><channel><item><title>Fish & chips<link>/1</link>", 100, 9, notes := {})
    '<rss><channel><item><title>Fish &amp; chips</title><link>/1</link></item></channel></rss>'
    >>> list(notes)[0]
    'a bare & is taken for &amp; (line 1)'
    """
    return _Mender(text, depth, items, notes).mended()


class _Mender:
    """What is open, and what was written."""

    def __init__(self, text: str, depth: int, items: int, notes: dict[str, None]) -> None:
        self._text = text
        self._depth = depth
        self._items = self._most = items
        self._notes = notes
        self._noted: set[str] = set()
        self._place = 0
        self._written: list[str] = []
        self._open: list[tuple[str, str]] = []
        """The elements that are open: as they were written by the feed, and by us; nothing if left out."""
        self._named: dict[str, int] = {}
        """How many of each name are open."""
        self._hidden = 0
        """How many of them are left out."""
        self._declared = _declared_in(text) | _RESERVED
        self._clean = _CONTROLS.search(text) is None
        self._used: dict[str, None] = {}

    def mended(self) -> str:
        """Go through the text."""
        text, end = self._text, 0
        for token in _TOKEN.finditer(text):
            self._place, before = token.start(), end
            if self._place > before:
                self._characters(text[before : self._place], raw=True)
            end = token.end()
            cdata, declared, closes, name, attributes = token.groups()
            if closes:
                self._end(name)
            elif name is not None:
                self._begin(name, attributes)
                if attributes and attributes.rstrip().endswith("/"):
                    self._end(name)
            elif cdata is not None:
                self._characters(cdata, raw=False)
            elif declared:
                raise EventError(
                    f"not a usable feed: the {declared[:20]} in line {self._line()} can declare "
                    "entities: send it without"
                )
        self._place = len(text)
        self._characters(text[end:], raw=True)
        if any(_local(name) in ITEMS for name, _ in self._open):
            self._note("the feed ends inside an item")
        while self._open:
            self._close(1 if _local(self._open[-1][0]) in ROOTS else 0)
        return self._with_prefixes("".join(self._written))

    def _with_prefixes(self, written: str) -> str:
        """Declare the prefixes that the feed does not, in its first element."""
        declarations = "".join(f" xmlns:{prefix}={quoteattr(PREFIXES[prefix])}" for prefix in self._used)
        end = written.find(">")
        end -= end > 0 and written[end - 1] == "/"
        return written[:end] + declarations + written[end:] if declarations and end > 0 else written

    # Tags

    def _begin(self, name: str, attributes: str) -> None:
        local = _local(name)
        if not self._open and local not in ROOTS:
            # A channel, an item or anything else alone.
            self._push("", "rss", "")
        if local in _PARTS:
            self._close_to(self._container(local))
            self._items -= local in ITEMS
            if self._items < 0:
                raise EventError(
                    f"the feed has too many items by line {self._line()}: {self._most:,} are allowed"
                )
        elif len(self._open) > 1 and _local(self._open[-1][0]) in PLAIN and self._is_field(name):
            self._close()
        if len(self._open) >= self._depth:
            raise EventError(
                f"not a usable feed: elements nest more than {self._depth} deep in line {self._line()}"
            )
        written = self._name(name)
        self._push(name, written, self._attributes(attributes) if written else "")

    def _container(self, local: str) -> int:
        """Find what a channel or an item that begins is in: the root, or for items the channel."""
        around = ROOTS if local == CHANNEL else {CHANNEL, *ROOTS}
        for depth in range(len(self._open) - 1, 0, -1):
            if _local(self._open[depth][0]) in around:
                return depth
        return 0

    def _is_field(self, name: str) -> bool:
        """Tell whether a tag can only be that of the next field."""
        prefix, _, local = name.rpartition(":")
        return bool(prefix) or local.lower() in _FIELDS

    def _end(self, name: str) -> None:
        if len(self._open) > 1 and self._open[-1][0] == name:
            self._close(1)
            return
        if not self._named.get(name):
            self._note(f"</{name}> closes nothing")
            return
        depth = next(at for at in range(len(self._open) - 1, -1, -1) if self._open[at][0] == name)
        if depth == 0:
            # What comes behind the root is part of it.
            self._close_to(0)
            return
        self._close_to(depth)
        self._close(1)

    def _close_to(self, depth: int) -> None:
        while len(self._open) > depth + 1:
            self._close()

    def _push(self, name: str, written: str, attributes: str) -> None:
        self._open.append((name, written))
        self._named[name] = self._named.get(name, 0) + 1
        if not written:
            self._hidden += 1
        elif not self._hidden:
            self._written.append(f"<{written}{attributes}>")

    def _close(self, said: int = 0) -> None:
        name, written = self._open.pop()
        self._named[name] -= 1
        if not said and name:
            self._note(f"<{name}> is not closed")
        if not written:
            self._hidden -= 1
        elif not self._hidden:
            self._written.append(f"</{written}>")

    # Names

    def _name(self, name: str) -> str:
        """Return a name whose prefix is declared, or will be; nothing if it means nothing."""
        if ":" not in name:
            return name
        prefix, _, local = name.rpartition(":")
        if prefix in self._declared:
            return name
        if prefix in PREFIXES:
            self._use(prefix)
            return name
        if local in DC_NAMES:
            self._note(f"the prefix {prefix} is not declared: taken for {DC}")
            self._used["dc"] = None
            return f"dc:{local}"
        self._note(f"<{name}> is left out: its prefix is not declared")
        return ""

    def _use(self, prefix: str) -> None:
        if prefix not in self._used:
            self._used[prefix] = None
            self._note(f"the prefix {prefix} is not declared: taken for {PREFIXES[prefix]}")

    def _attributes(self, text: str) -> str:
        if "=" not in text:
            return ""
        values: dict[str, str] = {}
        for each in _ATTRIBUTE.finditer(text):
            name, prefix = each[1], each[1].rpartition(":")[0]
            if prefix and prefix not in self._declared:
                if prefix not in PREFIXES:
                    continue
                self._use(prefix)
            values.setdefault(name, self._unescaped(each[2] or each[3] or each[4] or ""))
        return "".join(f" {name}={_quoted(value)}" for name, value in values.items())

    # Texts

    def _characters(self, text: str, *, raw: bool) -> None:
        if not text or self._hidden or not self._open:
            return
        if raw:
            if "<" in text:
                self._note("a bare < is taken for &lt;")
            elif self._clean and ">" not in text and ("&" not in text or _SOUND.fullmatch(text)):
                self._written.append(text)
                return
            text = self._unescaped(text)
        elif _CONTROLS.search(text):
            text = self._without_controls(text)
        self._written.append(escape(text))

    def _unescaped(self, raw: str) -> str:
        if "&" in raw:
            if raw.count("&") > len(_ENTITY.findall(raw)):
                self._note("a bare & is taken for &amp;")
            raw = _ENTITY.sub(self._entity, raw)
        return self._without_controls(raw) if _CONTROLS.search(raw) else raw

    def _without_controls(self, text: str) -> str:
        self._note("a control character is left out")
        return _CONTROLS.sub("", text)

    def _entity(self, match_: re.Match[str]) -> str:
        name = match_[1]
        plain = _XML_ENTITIES.get(name)
        if plain is not None:
            return plain
        if name[0] != "#":
            known = f"{name};" in html5
            self._note(
                f"the entity {match_[0]} is {'that of HTML' if known else 'unknown, and left as it is'}"
            )
        return html.unescape(match_[0])

    # Notes

    def _note(self, note: str) -> None:
        if note not in self._noted and len(self._notes) < NOTES:
            self._noted.add(note)
            self._notes[f"{note} (line {self._line()})"] = None

    def _line(self) -> int:
        return self._text.count("\n", 0, self._place) + 1


_PARTS = frozenset({CHANNEL, *ITEMS})
_FIELDS = PLAIN | {
    "description",
    "author",
    "category",
    "comments",
    "enclosure",
    "source",
    "summary",
    "content",
    "contributor",
    "rights",
    "copyright",
    "language",
    "image",
    "items",
    "textinput",
    "generator",
    "docs",
    "ttl",
    "managingeditor",
    "webmaster",
    "lastbuilddate",
    "subtitle",
}


def _declared_in(text: str) -> frozenset[str]:
    """List the prefixes that a feed declares anywhere."""
    prefixes = ((each[1], each.start()) for each in _DECLARED.finditer(text))
    return frozenset(prefix for prefix, offset in prefixes if text[offset - 1 : offset] in _BLANKS)


def _quoted(value: str) -> str:
    return f'"{value}"' if _QUIET.fullmatch(value) else quoteattr(value)


@lru_cache(maxsize=4096)
def _local(name: str) -> str:
    """Return a name without its prefix, in lower case."""
    return name.rpartition(":")[2].lower()
