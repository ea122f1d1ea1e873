"""In words: nodes of patterns and documents, and why nothing of a document stands for a node of a pattern."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from headgate.xml.language.model import (
    CHILD,
    CONTAINS,
    DESCENDANT,
    ROOT,
    STARTS_WITH,
    TEXT,
    Node,
    covers,
    is_attribute,
)
from headgate.xml.language.printing import print_label, print_number
from headgate.xml.language.values import holds, number
from headgate.xml.reference import reachable

if TYPE_CHECKING:
    from headgate.xml.events.document import Document
    from headgate.xml.language.model import Label, Test

_LONGEST = 60
_MOST_NAMES = 6


def shown(text: str) -> str:
    """Quote a text, on one line and not too long; blanks that look like others are escaped."""
    cut = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    written = (sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in cut)
    return f"'{''.join(written)}'"


def step(node: Node) -> str:
    """Write a node of a pattern as a step of a path.

    >>> from headgate.xml.language.model import Test
    >>> step(Node("{urn:x}a", "//", tests=(Test(">", 2.5), Test("contains", "b"))))
    "//Q{urn:x}a[. > 2.5][contains(., 'b')]"
    """
    return f"{node.axis}{print_label(node.label)}{''.join(f'[{condition(test)}]' for test in node.tests)}"


def condition(test: Test) -> str:
    """Write a test."""
    value = shown(test.value) if isinstance(test.value, str) else print_number(test.value)
    return f"{test.sign}(., {value})" if test.sign in {CONTAINS, STARTS_WITH} else f". {test.sign} {value}"


def path(document: Document, node: int) -> str:
    """Say where a node is: the names from the root element on, with places among siblings of one name."""
    steps = []
    while node != ROOT:
        above = int(document.parents[node])
        label = document.labels[node]
        alike = [] if above == ROOT else [c for c in document.children(above) if document.labels[c] == label]
        place = f"[{alike.index(node) + 1}]" if len(alike) > 1 else ""
        steps.append(f"/{print_label(document.names[label])}{place}")
        node = above
    return "".join(reversed(steps))


def failed_note(tests: tuple[Test, ...], val: str) -> str:
    """Say which test a value fails, and by how much."""
    test = next(test for test in tests if not holds(test, val))
    return f"{condition(test)} fails for {shown(val)}{_distance(test, val)}"


def _distance(test: Test, val: str) -> str:
    if not isinstance(test.value, str):
        found = number(val)
        if math.isnan(found):
            return ", which is no number"
        gap = abs(found - test.value)
        word = {">": "short by", ">=": "short by", "<": "over by", "<=": "over by"}.get(test.sign, "off by")
        return f": {word} {gap:g}" if gap else ""
    folded = val.casefold(), test.value.casefold()
    if test.sign == "=" and folded[0].strip() == folded[1].strip():
        return ", but for blanks around it" if val.strip() == test.value.strip() else ", but for case"
    if (test.sign == CONTAINS and folded[1] in folded[0]) or (
        test.sign == STARTS_WITH and folded[0].startswith(folded[1])
    ):
        return ", but for case"
    return ""


def missing_note(node: Node, above: int, document: Document) -> str:
    """Say why no node below the image of the parent has the label, and what comes close."""
    if above == ROOT and node.axis == CHILD:
        found = f"the root element is {print_label(document.label(0))}"
    else:
        place = "the document has" if above == ROOT else f"{path(document, above)} has"
        kind = "child" if node.axis == CHILD else "descendant" if above != ROOT else "node"
        found = f"{place} no {kind} {print_label(node.label)}"
    deeper = Node(node.label, DESCENDANT)
    if node.axis == CHILD:
        for image in reachable(deeper, above, document):
            if covers(node.label, document.label(image)):
                return f"{found}, but {path(document, image)} is deeper: // would find it"
    names = dict.fromkeys(document.label(image) for image in reachable(node, above, document))
    for name in names:
        if near := _near(node.label, name):
            return f"{found}, but {print_label(name)}: {near}"
    if above == ROOT and node.axis == CHILD:
        return found
    return f"{found}; {_listed(list(names))}"


def _near(wanted: Label, name: Label) -> str:
    """Say what keeps a label apart from one that looks like it; nothing if it does not."""
    if TEXT in {name, wanted}:
        return ""
    local, other = (label.removeprefix("@").rpartition("}")[2].removeprefix("*:") for label in (wanted, name))
    if local == other and is_attribute(wanted) != is_attribute(name):
        return "an attribute is written with @, an element without"
    if local == other:
        return f"another namespace, {'@' * is_attribute(wanted)}*:{local} would find it"
    return "names differ in case" if local.casefold() == other.casefold() else ""


def _listed(names: list[Label]) -> str:
    if not names:
        return "there is nothing below it"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"there are {', '.join(print_label(name) for name in names[:_MOST_NAMES])}{more}"
