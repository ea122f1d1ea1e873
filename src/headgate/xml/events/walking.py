"""The parser's tree to arrays, the obvious way: for namespaces that are declared inside, and for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.xml.events.document import Document
from headgate.xml.language.model import ROOT, TEXT

if TYPE_CHECKING:
    from lxml.etree import _Element

    from headgate.xml.language.model import Label


class _Writer:
    """The columns of a document, as they grow."""

    def __init__(self) -> None:
        self.names: dict[Label, int] = {}
        self.rows: list[list[int]] = []
        """label, parent, end, level, begin, stop of each node."""
        self.texts: list[bytes] = []
        self.length = 0
        self.values: list[bytes] = []
        self.valued = 0
        self.attributes: list[int] = []

    def node(self, label: Label, parent: int, level: int) -> int:
        """Begin a node."""
        place = len(self.rows)
        number = self.names.setdefault(label, len(self.names))
        self.rows.append([number, parent, place, level, self.length, self.length])
        return place

    def text(self, text: str | None, parent: int, level: int) -> None:
        """Write a text, if there is one."""
        if text:
            place = self.node(TEXT, parent, level)
            self.texts.append(text.encode())
            self.length += len(self.texts[-1])
            self.rows[place][5] = self.length

    def attribute(self, name: str, value: str, parent: int, level: int) -> None:
        """Write an attribute; where its value begins is counted from the first one's."""
        place = self.node(f"@{name}", parent, level)
        self.attributes.append(place)
        self.values.append(value.encode())
        self.rows[place][4] = self.valued
        self.valued += len(self.values[-1])
        self.rows[place][5] = self.valued

    def element(self, element: _Element, parent: int, level: int) -> None:
        """Write an element with all that is in it; what nests too deep has been refused."""
        place = self.node(str(element.tag), parent, level)
        for name, value in element.attrib.items():
            self.attribute(str(name), str(value), place, level + 1)
        self.text(element.text, place, level + 1)
        for child in element:
            self.element(child, place, level + 1)
            self.text(child.tail, place, level + 1)
        self.rows[place][2] = len(self.rows) - 1
        self.rows[place][5] = self.length


def walk(root: _Element) -> Document:
    """Read a tree without comments and instructions."""
    writer = _Writer()
    writer.element(root, ROOT, 0)
    columns = np.array(writer.rows, np.int32).T.copy()
    columns[4:, writer.attributes] += writer.length
    text = np.frombuffer(b"".join([*writer.texts, *writer.values]), np.uint8).copy()
    labels, parents, ends, levels, begins, stops = columns
    return Document(tuple(writer.names), labels, parents, ends, levels, begins, stops, text)
