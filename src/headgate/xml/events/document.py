"""A document as flat arrays, in document order, and how much one may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from headgate.xml.language.model import StructuralId

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes, Ints32
    from headgate.xml.language.model import Label

LABELS, PARENTS, ENDS, LEVELS, BEGINS, STOPS = range(6)
"""The columns of a document in one array."""
DEEPEST = 255
"""What the parser takes at most, whatever the limit is."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one document may ask for. Time and memory are in proportion to these."""

    size: int = 8 << 20
    """Bytes of the document as UTF-8."""
    depth: int = 128
    """Elements inside elements; at most 255."""
    attributes: int = 256
    """Attributes of one element; namespace declarations count."""
    children: int = 100_000
    """Elements and texts directly inside one element."""
    nodes: int = 1_000_000
    """Elements, attributes and texts in all."""
    names: int = 10_000
    """Different names of elements and attributes."""
    text: int = 4 << 20
    """Bytes of all texts and attributes together."""

    def __post_init__(self) -> None:
        """Refuse a depth that the parser refuses."""
        if not 1 <= self.depth <= DEEPEST:
            raise ValueError(f"the limit of depth is {self.depth}: give one from 1 to {DEEPEST}")


class Document(NamedTuple):
    """A tree of elements, attributes and texts.

        <a x="1">yes<b>no</b></a>       names    a  @x  text()  b

        node      0 a    1 @x   2 yes  3 b    4 no
        labels    0      1      2      3      2         places among names
        parents  -1      0      0      0      3
        ends      4      1      2      4      4         the last node of the subtree
        levels    0      1      1      1      2
        begins    0      5      0      3      3         the val is text[begins:stops]
        stops     5      6      3      5      5
        text      y e s n o 1                           the texts in order, then the values of attributes

    A node's number is its `pre`; its `post` is `ends - levels`. Names are distinct, in the order in which
    they first appear. No text is empty; two texts are never neighbours.
    """

    names: tuple[Label, ...]
    labels: Ints32
    parents: Ints32
    ends: Ints32
    levels: Ints32
    begins: Ints32
    stops: Ints32
    text: Bytes

    def label(self, node: int) -> Label:
        """Return the label of a node."""
        return self.names[int(self.labels[node])]

    def val(self, node: int) -> str:
        """Return the string value of a node."""
        encoded: bytes = self.text[self.begins[node] : self.stops[node]].tobytes()
        return encoded.decode()

    def id(self, node: int) -> StructuralId:
        """Return the structural id of a node."""
        level = int(self.levels[node])
        return StructuralId(node, int(self.ends[node]) - level, level)

    def children(self, node: int) -> list[int]:
        """List the children of a node: attributes, then elements and texts."""
        children = []
        child, end = node + 1, int(self.ends[node])
        while child <= end:
            children.append(child)
            child = int(self.ends[child]) + 1
        return children


class SourcedDocument(Document):
    """A document with what it was read from, as UTF-8: for what arrays do not tell, such as comments."""

    source: bytes


def with_source(document: Document, source: bytes) -> SourcedDocument:
    """Note what a document was read from."""
    sourced = SourcedDocument(*document)
    sourced.source = source
    return sourced
