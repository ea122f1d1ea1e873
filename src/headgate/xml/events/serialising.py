"""Subtrees as XML text, the same text for the same subtree: what `cont` is.

    <n0:a xmlns:n0="urn:x" x="1">yes<b/></n0:a>

Namespaces are called n0, n1 and so on in the order in which they appear, and declared in the outermost
element. Attributes are in document order; an element without content is one tag.
"""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from lxml import etree

from headgate.core.jit import inner, kernel
from headgate.errors import EventError
from headgate.xml.language.model import TEXT, is_attribute

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes, Ints, Ints32
    from headgate.xml.events.document import Document
    from headgate.xml.language.model import Label

_XML = "http://www.w3.org/XML/1998/namespace"
_MEANS = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&#13;": "\r", "&quot;": '"', "&#9;": "\t", "&#10;": "\n"}
_REFERENCES = str.maketrans({sign: reference for reference, sign in _MEANS.items()})
_QUOTED = 4
"""From here on references are for attributes only."""
_POOL = np.frombuffer("".join(_MEANS).encode(), np.uint8).copy()
_STARTS = (0, *accumulate(map(len, _MEANS)))
_CODES = tuple(
    {ord(sign): code for code, sign in enumerate(_MEANS.values())}.get(byte, -1) for byte in range(64)
)
"""The number of the reference for each byte, or -1."""
_AT = 64
LARGEST = 256 << 20
"""Bytes of all that is returned by one node of a filter."""


def content(document: Document, node: int) -> str:
    """Return the `cont` of a node: of an element its subtree as XML text, else its `val`.

    >>> from headgate.xml.events.reading import read_document
    >>> content(read_document("<a><b x='1'>3 &lt; 4</b></a>"), 1)
    '<b x="1">3 &lt; 4</b>'
    """
    return Texts(document).contents(np.array([node], np.int32))[0]


class Texts:
    """What the nodes of one document return; it is written once, however often it is asked for."""

    def __init__(self, document: Document) -> None:
        """Write nothing yet."""
        self._document = document
        self._vals: dict[int, str] = {}
        self._contents: dict[int, str] = {}

    def vals(self, nodes: Ints32) -> tuple[str, ...]:
        """Return the `val` of each of some nodes; refuse documents that come out many times over."""
        document, known = self._document, self._vals
        # No val is longer than all text.
        if len(nodes) * len(document.text) > LARGEST:
            _check(int(np.sum(document.stops[nodes] - document.begins[nodes], dtype=np.int64)))
        numbers = nodes.tolist()
        for node in numbers:
            if node not in known:
                known[node] = document.val(node)
        return tuple([known[node] for node in numbers])

    def contents(self, nodes: Ints32) -> tuple[str, ...]:
        """Return the `cont` of each of some nodes; refuse documents that come out many times over."""
        known = self._contents
        texts = []
        total = 0
        for node in nodes.tolist():
            written = known.get(node)
            if written is None:
                written = known[node] = self._content(node)
            total += len(written)
            _check(total)
            texts.append(written)
        return tuple(texts)

    def _content(self, node: int) -> str:
        document = self._document
        label = document.label(node)
        if label == TEXT or is_attribute(label):
            return self.vals(np.array([node], np.int32))[0]
        names, declared = self._names, ""
        if self._spaced:
            labels = document.labels[node : int(document.ends[node]) + 1]
            written, spaces = _prefixed(document, labels.tolist())
            names.put(written)
            declared = "".join(
                f' xmlns:{name}="{uri.translate(_REFERENCES)}"' for uri, name in spaces.items()
            )
        return (
            _write(
                document.labels,
                document.ends,
                document.begins,
                document.stops,
                document.text,
                names.starts,
                names.stops,
                names.pool,
                np.frombuffer(bytearray(declared.encode()), np.uint8),
                node,
            )
            .tobytes()
            .decode()
        )

    @cached_property
    def _spaced(self) -> bool:
        return any("{" in name for name in self._document.names)

    @cached_property
    def _names(self) -> _Names:
        names = _Names(len(self._document.names))
        if not self._spaced:
            names.put(dict(enumerate(self._document.names)))
        return names


class _Names:
    """Names as bytes by label, from `starts` to `stops` in `pool`; that of texts is empty."""

    def __init__(self, labels: int) -> None:
        self.starts, self.stops = np.zeros(labels, np.int64), np.zeros(labels, np.int64)
        self.pool = np.zeros(0, np.uint8)

    def put(self, names: dict[int, str]) -> None:
        """Take other names; those of labels that are not given are of no use from now on."""
        encoded = [b"" if name == TEXT else name.encode() for name in names.values()]
        which = np.fromiter(names, np.int64, len(names))
        stops = np.cumsum([len(each) for each in encoded])
        self.stops[which] = stops
        self.starts[which] = stops - [len(each) for each in encoded]
        self.pool = np.frombuffer(bytearray(b"".join(encoded)), np.uint8)


def _check(total: int) -> None:
    if total > LARGEST:
        raise EventError(
            f"what a filter returns of the document has more than {LARGEST:,} bytes: elements are returned"
            " together with those that they are in"
        )


@kernel
def _write(
    labels: Ints32,
    ends: Ints32,
    begins: Ints32,
    stops: Ints32,
    text: Bytes,
    name_starts: Ints,
    name_stops: Ints,
    pool: Bytes,
    declared: Bytes,
    node: int,
) -> Bytes:
    """Write an element with all that is in it. Names of attributes begin with @, that of texts is empty."""
    end = ends[node]
    room = len(declared)
    for one in range(node, end + 1):
        wide = name_stops[labels[one]] - name_starts[labels[one]]
        # An element's name twice with <></>, an attribute's with a blank, = and quotes.
        room += 2 * wide + 5
        if wide == 0 or pool[name_starts[labels[one]]] == _AT:
            room += _longer(text, begins[one], stops[one])
    out = np.empty(room, np.uint8)
    path = np.empty(end - node + 1, np.int32)  # the open elements
    depth = 0
    length = 0
    tagged = False  # the tag of the innermost one goes on
    for one in range(node, end + 1):
        start, stop = name_starts[labels[one]], name_stops[labels[one]]
        if start < stop and pool[start] == _AT:
            out[length] = 32
            length = _copy(pool, start + 1, stop, out, length + 1)
            out[length] = 61
            out[length + 1] = 34
            length = _escape(text, begins[one], stops[one], True, out, length + 2)
            out[length] = 34
            length += 1
            continue
        while depth > 0 and ends[path[depth - 1]] < one:
            depth -= 1
            name = labels[path[depth]]
            length = _close(name_starts[name], name_stops[name], tagged, pool, out, length)
            tagged = False
        if tagged:
            out[length] = 62
            length += 1
            tagged = False
        if start == stop:
            length = _escape(text, begins[one], stops[one], False, out, length)
            continue
        out[length] = 60
        length = _copy(pool, start, stop, out, length + 1)
        if one == node:
            length = _copy(declared, 0, len(declared), out, length)
        path[depth] = one
        depth += 1
        tagged = True
    while depth > 0:
        depth -= 1
        name = labels[path[depth]]
        length = _close(name_starts[name], name_stops[name], tagged, pool, out, length)
        tagged = False
    return out[:length]


@inner
def _close(start: int, stop: int, tagged: bool, pool: Bytes, out: Bytes, length: int) -> int:
    if tagged:
        out[length] = 47
        out[length + 1] = 62
        return length + 2
    out[length] = 60
    out[length + 1] = 47
    length = _copy(pool, start, stop, out, length + 2)
    out[length] = 62
    return length + 1


@inner
def _copy(data: Bytes, start: int, stop: int, out: Bytes, length: int) -> int:
    for at in range(start, stop):
        out[length] = data[at]
        length += 1
    return length


@inner
def _longer(text: Bytes, begin: int, stop: int) -> int:
    """Bound how long a text is with its references; the longest has six bytes."""
    length = stop - begin
    for at in range(begin, stop):
        byte = text[at]
        if byte < 64 and _CODES[byte] >= 0:
            length += 5
    return length


@inner
def _escape(text: Bytes, begin: int, stop: int, quoted: bool, out: Bytes, length: int) -> int:
    """Write a text with references for what is special: between tags, quotes and most blanks are not."""
    for at in range(begin, stop):
        byte = text[at]
        code = _CODES[byte] if byte < 64 else -1
        if code < 0 or (not quoted and code >= _QUOTED):
            out[length] = byte
            length += 1
        else:
            length = _copy(_POOL, _STARTS[code], _STARTS[code + 1], out, length)
    return length


def _prefixed(document: Document, numbers: list[int]) -> tuple[dict[int, str], dict[str, str]]:
    """Return the names with prefixes that labels are written as, and the prefixes of namespaces."""
    names: dict[int, str] = {}
    spaces: dict[str, str] = {}
    for number in dict.fromkeys(numbers):
        label = document.names[number]
        bare = label.removeprefix("@")
        if bare.startswith("{"):
            uri, _, local = bare[1:].rpartition("}")
            prefix = "xml" if uri == _XML else spaces.setdefault(uri, f"n{len(spaces)}")
            bare = f"{prefix}:{local}"
        names[number] = f"@{bare}" if is_attribute(label) else bare
    return names, spaces


def value_of_content(text: str) -> str:
    """Return the `val` of an element whose `cont` is given.

    >>> value_of_content('<b x="1">3 &lt; <i>4</i></b>')
    '3 < 4'
    """
    return "".join(map(str, _parsed(text).itertext()))


def label_of_content(text: str) -> Label:
    """Return the label of an element whose `cont` is given.

    >>> label_of_content('<n0:b xmlns:n0="urn:x"/>')
    '{urn:x}b'
    """
    return str(_parsed(text).tag)


def _parsed(text: str) -> etree._Element:
    try:
        return etree.fromstring(text, etree.XMLParser(huge_tree=True, resolve_entities=False))
    except etree.XMLSyntaxError:
        raise ValueError(f"this is the cont of no element: {text[:40]!r}") from None
