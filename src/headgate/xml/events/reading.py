"""Events to documents: screened, judged by the parser, read into arrays.

A loop over the bytes reads the document and finds out about limits, before the parser sees it. The parser,
lxml, judges whether it is well-formed. If it is, what the loop read is the document; if namespaces are
declared below the root element, names are those of the parser's tree.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from lxml import etree

from headgate.contents.feeds.vocabulary import only
from headgate.core.event import SECOND_MARK, XML, XML_TYPES
from headgate.errors import EventError
from headgate.xml.events import scanning
from headgate.xml.events.document import Document, Limits, SourcedDocument, with_source
from headgate.xml.events.scanning import scan
from headgate.xml.language.model import TEXT

if TYPE_CHECKING:
    from headgate.core.event import Event
    from headgate.xml.events.scanning import ScanResult
    from headgate.xml.language.model import Label


XINCLUDE = "http://www.w3.org/2001/XInclude"
XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"

_LIMITS = Limits()
_TYPES = frozenset(XML_TYPES.values())
_ENCODING = re.compile(rb"""<\?xml\s[^>]*?\sencoding\s*=\s*["']([^"']*)["']""")
_HIDING = {"utf-7", "unicode-1-1-utf-7", "csunicode11utf7"}
"""Encodings in which markup looks like text; no one sends them without a purpose."""
_PLAIN = {"utf-8", "utf8", "us-ascii", "ascii"}
_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


_WIDE = (b"<\0?\0", b"\0<\0?")
"""How a document begins that is UTF-16 without a mark, and says so."""


def read_document(data: str | bytes, limits: Limits = _LIMITS) -> Document:
    """Read a document; refuse what is not well-formed, not safe, or too much.

    >>> document = read_document('<a x="1">yes<b>no</b></a>')
    >>> document.names, document.val(0), document.val(1)
    (('a', '@x', 'text()', 'b'), 'yesno', '1')
    """
    encoded = _utf8(data, limits)
    scanned = _scan(encoded, limits)
    if scanned.status > scanning.STRANGE:
        raise EventError(_reason(scanned, encoded, limits))
    root = parse(encoded)
    if scanned.status == scanning.STRANGE:
        raise EventError("not valid XML: it cannot be read")
    document = _document(scanned, encoded, root)
    if any(XINCLUDE in name and name.startswith("{" + XINCLUDE) for name in document.names):
        raise EventError(
            "not usable XML: an element of XInclude would fetch another document: include it first"
        )
    return with_source(document, encoded)


def document_of(event: Event) -> Document:
    """Read the document of an event, once; its data may be a document already."""
    if event.content_type not in _TYPES:
        raise EventError(
            f"event {event.id!r} is {event.content_type} and these filters look at XML: send {XML}"
        )
    if isinstance(event.data, Document):
        return event.data
    if event.content_type != XML:
        return event.once("document", _only_item)
    return event.once("document", lambda event: read_document(event.data))


def _only_item(event: Event) -> Document:
    from headgate.xml.events.feeds import read_feed

    (item,) = only(read_feed(event).items, event)
    document: Document = item.data
    return document


def parse(data: bytes, encoding: str | None = "utf-8", *, whole: bool = False) -> etree._Element:
    """Let the parser judge UTF-8; nothing is fetched, and no entity is replaced by what a document says.

    Without an encoding, the document says what it is in. A whole tree has its comments and instructions, and
    knows the ids of `xml:id`.
    """
    parser = etree.XMLParser(
        encoding=encoding,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=not whole,
        remove_pis=not whole,
        collect_ids=whole,
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, LookupError) as error:
        reason = getattr(error, "msg", None) or str(error) or "it cannot be parsed"
        raise EventError(f"not valid XML: {_line(reason)}") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise EventError(_DOCTYPE)
    return root


# Encodings


def _utf8(data: str | bytes, limits: Limits) -> bytes:
    """Bring a document to UTF-8 without a byte order mark; what it says about its encoding is void then."""
    if isinstance(data, str):
        _check_size(len(data), limits)
        try:
            encoded = data.removeprefix("\ufeff").encode()
        except UnicodeEncodeError as error:
            raise EventError(
                f"not valid XML: character {error.start + 1} is half of a surrogate pair"
            ) from None
    elif isinstance(data, bytes):
        _check_size(len(data) // 2, limits)
        encoded = _decoded(data)
    else:
        raise EventError(f"not usable XML: the document is {type(data).__name__}: send text or bytes")
    _check_size(len(encoded), limits)
    if encoded.startswith(codecs.BOM_UTF8):
        raise EventError(f"not valid XML: {SECOND_MARK}")
    if (offset := encoded.find(b"\0")) >= 0:
        raise EventError(f"not usable XML: byte {offset + 1} is NUL: send UTF-8, or UTF-16 with its mark")
    return encoded


def _decoded(data: bytes) -> bytes:
    for mark, encoding in _MARKS.items():
        if not data.startswith(mark):
            continue
        if encoding == "UTF-32":
            return _by_parser(data)
        try:
            encoded = data[len(mark) :].decode(encoding).encode()
        except UnicodeDecodeError as error:
            raise EventError(f"not valid XML: byte {len(mark) + error.start + 1} is not UTF-16") from None
        declared = _declared(encoded)
        if declared and declared not in {"utf-16", encoding, encoding.replace("-16-", "-16")}:
            raise EventError(
                f"not valid XML: the document says that it is {declared}, and it begins as UTF-16: "
                "leave the declaration out"
            )
        return encoded
    encoded = data.removeprefix(codecs.BOM_UTF8)
    declared = _declared(encoded)
    if declared in _HIDING:
        raise EventError(f"not usable XML: the encoding {declared!r} is not read: send UTF-8")
    if (declared and declared not in _PLAIN) or data[:4] in _WIDE:
        return _by_parser(data)
    if declared in {"us-ascii", "ascii"} and not encoded.isascii():
        offset = next(offset for offset, byte in enumerate(data) if byte > 127)
        raise EventError(f"not valid XML: byte {offset + 1} is not ASCII, which the document says it is")
    return encoded


def _declared(encoded: bytes) -> str:
    """Return the encoding that a document declares, in lower case."""
    if not encoded.startswith(b"<?xml") or not (match_ := _ENCODING.match(encoded)):
        return ""
    return _line(match_[1].decode(errors="replace")).lower()


def _by_parser(data: bytes) -> bytes:
    """Bring a document to UTF-8 as the parser reads it; all that is refused of UTF-8 is refused then."""
    declared = _declared(data)
    try:
        tree = parse(data, None, whole=True).getroottree()
    except EventError as error:
        if declared and "nsupported encoding" in str(error):
            raise EventError(f"not usable XML: the encoding {declared!r} is not read: send UTF-8") from None
        raise
    encoded: bytes = etree.tostring(tree, encoding="utf-8", xml_declaration=False)
    return encoded


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.size:
        raise EventError(f"the document has {size:,} bytes: {limits.size:,} are allowed")


# Reading

_DOCTYPE = "not usable XML: a DOCTYPE can declare entities: send the document without it"


def _scan(encoded: bytes, limits: Limits) -> ScanResult:
    # Every node begins with a < or a =, or is a text behind a >.
    room = 2 * encoded.count(b"<") + encoded.count(b"=") + 1
    return scan(
        np.frombuffer(encoded, np.uint8),
        room,
        limits.depth,
        limits.attributes,
        limits.children,
        limits.nodes,
        limits.names,
        limits.text,
    )


def _document(scanned: ScanResult, encoded: bytes, root: etree._Element) -> Document:
    """Make the document of what the loop read."""
    written = _labels_in(scanned, root) if scanned.scoped else _labels_of(scanned, encoded, root)
    places: dict[Label, int] = {}
    numbers = [places.setdefault(label, len(places)) for label in written]
    labels = scanned.labels
    if scanned.scoped:
        labels = np.array(numbers, np.int32)
    elif len(places) < len(written):  # two prefixes of one namespace
        labels = np.array(numbers, np.int32)[labels]
    return Document(
        tuple(places),
        labels,
        scanned.parents,
        scanned.ends,
        scanned.levels,
        scanned.begins,
        scanned.stops,
        scanned.text,
    )


def _labels_of(scanned: ScanResult, encoded: bytes, root: etree._Element) -> list[Label]:
    """List the labels of names, whose prefixes mean what the root element declares."""
    spaces = {prefix or "": uri for prefix, uri in root.nsmap.items()} if scanned.declared else {}
    spaces["xml"] = XML_NAMESPACE
    columns = (scanned.name_starts, scanned.name_stops, scanned.name_kinds)
    return [
        _label(encoded[start:stop].decode(), kind, spaces)
        for start, stop, kind in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _labels_in(scanned: ScanResult, root: etree._Element) -> list[Label]:
    """List the labels of nodes as the parser's tree has them: prefixes mean different things in places."""
    named = (
        label
        for element in root.iter()
        for label in (element.tag, *(f"@{name!s}" for name in element.attrib))
    )
    kinds = scanned.name_kinds[scanned.labels].tolist()
    return [TEXT if kind == scanning.NO_NAME else next(named) for kind in kinds]


def _label(name: str, kind: int, spaces: dict[str, str]) -> Label:
    if kind == scanning.NO_NAME:
        return TEXT
    prefix, colon, local = name.rpartition(":")
    # An attribute without a prefix is in no namespace, whatever the default is.
    space = spaces.get(prefix, "") if colon or kind == scanning.ELEMENT_NAME else ""
    label = f"{{{space}}}{local}" if space else local
    return f"@{label}" if kind == scanning.ATTRIBUTE_NAME else label


def _reason(scanned: ScanResult, encoded: bytes, limits: Limits) -> str:
    line = encoded.count(b"\n", 0, scanned.place) + 1
    match scanned.status:
        case scanning.DOCTYPE:
            if encoded[scanned.place : scanned.place + 9].upper() != b"<!DOCTYPE":
                return f"not valid XML: <! in line {line} begins neither a comment nor a section"
            return _DOCTYPE
        case scanning.ENTITY:
            text = encoded[scanned.place : scanned.place + 40].decode(errors="replace")
            shown = _line(text.partition(";")[0] + ";" if ";" in text else text[:10])
            return (
                f"not usable XML: {shown} in line {line} is not a reference: "
                "send the character, or &amp; for &"
            )
        case scanning.DEEP:
            return f"the elements in line {line} nest too deep: {limits.depth} levels are allowed"
        case scanning.ATTRIBUTES:
            return f"the element in line {line} has too many attributes: {limits.attributes:,} are allowed"
        case scanning.CHILDREN:
            return f"an element has too many children by line {line}: {limits.children:,} are allowed"
        case scanning.NODES:
            return f"the document has too many nodes by line {line}: {limits.nodes:,} are allowed"
        case scanning.NAMES:
            return f"the document has too many different names by line {line}: {limits.names:,} are allowed"
        case _:
            return f"the document has too much text by line {line}: {limits.text:,} bytes are allowed"


def _line(text: str) -> str:
    """Bring a text to one line that can be shown."""
    return "".join(sign if sign.isprintable() else " " for sign in text)[:200].strip()


_Packed = tuple[tuple[str, ...], list[tuple[str, bytes]], int, bytes]
_PACKED: msgspec.msgpack.Decoder[_Packed] = msgspec.msgpack.Decoder(_Packed)
_CODEC: Final = "lz4_raw"


def pack(document: Document) -> bytes:
    """Write a document, to be carried to another process."""
    arrays: list[tuple[str, bytes]] = [(array.dtype.str, array.tobytes()) for array in document[1:]]
    source = document.source if isinstance(document, SourcedDocument) else b""
    small = pa.compress(source, _CODEC, asbytes=True)
    return msgspec.msgpack.encode((document.names, arrays, len(source), small))


def unpack(packed: bytes) -> Document:
    """Return a document."""
    names, arrays, size, small = _PACKED.decode(packed)
    # A copy can be written to, as every other document's arrays: kernels are compiled for that.
    columns: list[Any] = [np.frombuffer(data, kind).copy() for kind, data in arrays]
    document = Document(names, *columns)
    return with_source(document, pa.decompress(small, size, _CODEC, asbytes=True)) if size else document
