"""Nodes of a pattern that is being made, and what a step says of one."""

from __future__ import annotations

from typing import TypeAlias

from headgate.xml.language.model import ANY, ANY_ATTRIBUTE, TEXT, Test, covers
from headgate.xml.whole.syntax import ANY_NODE, NAMED, TEXTS, NodeTest


class Free:
    """Some node, of which nothing is known."""


class Document:
    """The document itself."""


FREE, DOCUMENT = Free(), Document()
KINDLESS, OTHER = "node()", "comment()"
"""In place of a label: any node, and one that no pattern has."""


class Place:
    """A node of a pattern that is being made. `label` is None for a node of any kind."""

    def __init__(self, label: str | None, axis: str, parent: Place | None) -> None:
        self.label = label
        self.axis = axis
        self.parent = parent
        """None for the document."""
        self.tests: list[Test] = []
        self.below: list[Place] = []
        self.element = False
        """Whether something below it says that it is an element."""


Spot: TypeAlias = "Place | Free | Document"


class NeverError(Exception):
    """What is walked can never be true."""


def label_of(axis: str, test: NodeTest) -> str:
    """Return the label that a step asks for; `KINDLESS` or `OTHER` where there is none."""
    if test.kind == ANY_NODE:
        return ANY_ATTRIBUTE if axis == "attribute" else KINDLESS
    if test.kind != NAMED:
        if axis == "attribute":
            raise NeverError
        return TEXT if test.kind == TEXTS else OTHER
    sign = "@" if axis == "attribute" else ""
    if test.local is None:
        return f"{sign}{ANY}"
    if test.space is None:
        return f"{sign}*:{test.local}"
    return f"{sign}{{{test.space}}}{test.local}" if test.space else f"{sign}{test.local}"


def restrict(place: Place, label: str) -> None:
    """Note that a node has another label too."""
    if place.label is None:
        if place.element and label == TEXT:
            raise NeverError
        place.label = label
    elif covers(place.label, label):
        place.label = label
    elif not covers(label, place.label):
        raise NeverError


def name_of(place: Place, local: str) -> None:
    """Note the local name of a node, if its label leaves it open."""
    if place.label in (ANY, ANY_ATTRIBUTE) and local and local.isprintable() and "*" not in local:
        place.label = place.label[:-1] + f"*:{local}"
