"""What is looked at before a parser sees a document: format, size, encoding, how deep it nests.

The parsers take nesting by recursion, or in time that grows with its square, so a short text could end the
process or keep it busy. Everything here takes time in proportion to the text, whatever the text is.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.parsers import expat

import numpy as np

from headgate.contents.kind import check_size
from headgate.core.event import JSON_LD, N_TRIPLES, RDF_TYPES, RDF_XML, RSS, SECOND_MARK, TURTLE, media_type
from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Mapping


NAMES = {
    TURTLE: "Turtle",
    N_TRIPLES: "N-Triples",
    RDF_XML: "RDF/XML",
    JSON_LD: "JSON-LD",
    RSS: "RSS 1.0",
}
"""What people call them."""
XML = (RDF_XML, RSS)


def format_of(content_type: str) -> str:
    """Find the media type of a content type, which may be a short name; refuse what is not RDF.

    >>> format_of("turtle"), format_of("application/n-triples; charset=utf-8")
    ('text/turtle', 'application/n-triples')
    """
    kind = media_type(content_type)
    if kind not in NAMES:
        names = ", ".join(f"{kind} ({short})" for short, kind in RDF_TYPES.items())
        raise EventError(f"content type {content_type!r} is not RDF: send one of {names}")
    return kind


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one document may ask for."""

    size: int = 4 << 20
    """Bytes of the document."""
    depth: int = 100
    """Brackets inside brackets, or elements inside elements."""
    triples: int = 100_000
    """Triples, counted as they are written."""
    term: int = 1 << 20
    """Characters of one IRI or one literal."""
    terms: int = 32 << 20
    """Characters of all different terms together: prefixes and bases make a short document long."""
    attributes: int = 256
    """Attributes of one XML element; namespaces count, and the parser takes time with the square of it."""
    seconds: float = 0.4
    """Time by the clock for a document in a parser process, and then as much again of a processor's."""
    seconds_a_mebibyte: float = 0.5
    """More of it for larger ones."""
    memory: int = 1 << 30
    """Bytes of address space of a parser process."""

    def patience(self, size: int) -> float:
        """Return the seconds that a document of some bytes may take."""
        return self.seconds + self.seconds_a_mebibyte * size / (1 << 20)


def screen(data: str | bytes, kind: str, limits: Limits) -> bytes:
    """Return a document as UTF-8 without anything that a parser should not see; refuse it where there is."""
    encoded = _utf8(data, kind, limits)
    if len(encoded) > _LARGE and (match_ := _long_base(kind).search(encoded)):
        raise EventError(
            f"not usable {NAMES[kind]}: the base or prefix at byte {match_.start() + 1} has more than"
            f" {_LONGEST_BASE:,} characters"
        )
    if kind in XML:
        _screen_xml(encoded, kind, limits)
        return _plain_xml(encoded)
    if kind == JSON_LD:
        _check_depth(_json_structure(encoded), NAMES[kind], limits.depth)
        return encoded
    structure = _TURTLE_TEXT.sub(b"", encoded)
    if b"<" in structure and (offset := _triple_term(encoded)) is not None:
        line = encoded.count(b"\n", 0, offset) + 1
        raise EventError(
            f"not usable {NAMES[kind]}: a triple inside << >> in line {line} is RDF 1.2: send RDF 1.1"
        )
    _check_depth(structure, NAMES[kind], limits.depth)
    return encoded


# Encodings

_DECLARATION = re.compile(rb"\s*+<\?xml\s[^>]*+>")
_ENCODING = re.compile(rb"""\sencoding\s*=\s*["']([A-Za-z0-9._\-]*)["']""")
_DECODERS = {"utf-8": "utf-8", "us-ascii": "ascii", "ascii": "ascii", "iso-8859-1": "latin-1"}
_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def _utf8(data: str | bytes, kind: str, limits: Limits) -> bytes:
    """Bring a document to UTF-8, without a byte order mark or an XML declaration."""
    check_size(data, limits.size)
    name = NAMES[kind]
    if isinstance(data, str):
        try:
            encoded = data.removeprefix("\ufeff").encode()
        except UnicodeEncodeError as error:
            raise EventError(
                f"not valid {name}: character {error.start + 1} is half of a surrogate pair"
            ) from None
    else:
        for mark, encoding in _MARKS.items():
            if data.startswith(mark):
                raise EventError(f"not usable {name}: the document is in {encoding}: send UTF-8")
        encoded = data.removeprefix(codecs.BOM_UTF8)
    if b"\0" in encoded:
        offset = encoded.index(b"\0") + 1
        raise EventError(f"not usable {name}: byte {offset} is NUL: send UTF-8 without NULs")
    if kind in XML and (declaration := _DECLARATION.match(encoded)):
        written = _ENCODING.search(declaration[0])
        encoded = encoded[declaration.end() :]
        if isinstance(data, bytes) and written:
            encoded = _decoded(encoded, written[1].decode(), name).encode()
            check_size(encoded, limits.size)
    # Also behind the declaration: a parser would take it for the first.
    if encoded.startswith(codecs.BOM_UTF8):
        raise EventError(f"not valid {name}: {SECOND_MARK}")
    if not encoded.isascii():
        _decoded(encoded, "utf-8", name)
    return encoded


def _decoded(data: bytes, encoding: str, name: str) -> str:
    decoder = _DECODERS.get(encoding.lower())
    if decoder is None:
        raise EventError(f"not usable {name}: the encoding {encoding!r} is not read: send UTF-8")
    try:
        return data.decode(decoder)
    except UnicodeDecodeError as error:
        raise EventError(f"not valid {name}: byte {error.start + 1} is not {encoding.upper()}") from None


# Nesting

_ESCAPE = re.compile(rb"\\.", re.DOTALL)
# A string without an end takes the rest, so that no byte is looked at twice; an IRI ends before the next <.
_TURTLE_TEXT = re.compile(
    rb'"""(?:[^"\\]++|\\.|""?+(?!"))*+(?:"""|\Z)'
    rb"|'''(?:[^'\\]++|\\.|''?+(?!'))*+(?:'''|\Z)"
    rb'|"[^"\\\n\r]*+(?:\\.[^"\\\n\r]*+)*+"?'
    rb"|'[^'\\\n\r]*+(?:\\.[^'\\\n\r]*+)*+'?"
    rb"|<[^<>\"{}|^`\\\x00-\x20]*+(?:\\[uU][0-9A-Fa-f]++[^<>\"{}|^`\\\x00-\x20]*+)*+>"
    rb"|\#[^\n\r]*+"
    rb"|\\.",
    re.DOTALL,
)
_BRACKETS = b"()[]{}"
_OTHERS = bytes(set(range(256)) - set(_BRACKETS))
_STEPS = np.zeros(256, np.int32)
_STEPS[list(b"([{")] = 1
_STEPS[list(b")]}")] = -1


def _json_structure(encoded: bytes) -> bytes:
    """Leave out the strings: without escapes, every other quote begins one."""
    plain = _ESCAPE.sub(b"", encoded) if b"\\" in encoded else encoded
    return b"".join(plain.split(b'"')[::2])


def _check_depth(structure: bytes, name: str, most: int) -> None:
    """Refuse brackets that nest too deep, in a text without strings."""
    brackets = structure.translate(None, _OTHERS)
    if len(brackets) <= most:
        return
    depth = int(np.cumsum(_STEPS[np.frombuffer(brackets, np.uint8)]).max())
    if depth > most:
        raise EventError(f"not usable {name}: it nests {depth:,} deep: {most} are allowed")


def _triple_term(encoded: bytes) -> int | None:
    """Find a << that is not part of a string or a comment."""
    masked = _TURTLE_TEXT.sub(lambda found: b" " * len(found[0]), encoded)
    at = masked.find(b"<")
    return at if at >= 0 and encoded[at : at + 2] == b"<<" else None


# Bases and prefixes: a long one makes every name long, and a large document has many names.

_LARGE = 1 << 16
_LONGEST_BASE = 2048
_LONG = (
    re.compile(rb"(?i:base\s*+|prefix\s++[^\s:<]{0,256}+:\s*+)<[^<>]{%d}" % (_LONGEST_BASE + 1)),
    re.compile(rb"\sxml(?:ns[^\s=]{0,256}+|:base)\s*+=\s*+[\"'][^\"']{%d}" % (_LONGEST_BASE + 1)),
    re.compile(rb'"@(?:vocab|base)"\s*+:\s*+"[^"]{%d}' % (_LONGEST_BASE + 1)),
)


def _long_base(kind: str) -> re.Pattern[bytes]:
    return _LONG[1 if kind in XML else 2 if kind == JSON_LD else 0]


# XML


def _screen_xml(encoded: bytes, kind: str, limits: Limits) -> None:
    """Go through the elements with expat, which does not recurse; it sees no entity but XML's own five."""
    name = NAMES[kind]
    parser = expat.ParserCreate("utf-8")
    depth = 0

    def start(_: str, attributes: Mapping[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > limits.depth:
            raise EventError(f"not usable {name}: elements nest more than {limits.depth} deep")
        if len(attributes) > limits.attributes:
            raise EventError(
                f"not usable {name}: an element has {len(attributes):,} attributes:"
                f" {limits.attributes} are allowed"
            )

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def doctype(*_: object) -> None:
        raise EventError(f"not usable {name}: a DOCTYPE can declare entities: send it without")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(encoded, True)
    except expat.ExpatError as error:
        raise EventError(f"not valid {name}: {error}") from None


_UNSEEN = re.compile(rb"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[(.*?)\]\]>", re.DOTALL)


def _plain_xml(encoded: bytes) -> bytes:
    """Leave out of a well-formed document what pyoxigraph stumbles over, without a change of its meaning.

    It refuses a text with a comment or a CDATA section in it, forgets blanks beside one, and keeps line ends
    that XML has as one character.
    """
    if b"\r" in encoded:
        encoded = encoded.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return _UNSEEN.sub(_seen, encoded) if b"<!" in encoded or b"<?" in encoded else encoded


def _seen(match_: re.Match[bytes]) -> bytes:
    characters = match_[1] or b""
    return characters.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")
