"""Documents and filters of the room, as frozen values.

A document is a tree of elements, attributes and texts. An attribute is a child of its element, before what
the element contains. Labels are texts:

    a           an element in no namespace
    {urn:x}a    an element in the namespace urn:x
    @a @{urn:x}a    an attribute
    text()      a text between tags

Those of patterns also:

    *           any element           *:a     an element of that name in any namespace, or in none
    @*          any attribute         @*:a    an attribute of that name in any namespace, or in none

Patterns that are written differently and give the same have one canonical form: children are sorted and
written once. The order of branches says nothing, and two equal branches stand for the same nodes of every
document. What a branch implies of another is kept, since each node's ids are part of what a view gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence


Label: TypeAlias = str

CHILD = "/"
DESCENDANT = "//"
AXES = (CHILD, DESCENDANT)

ID = "id"
VAL = "val"
CONT = "cont"
RETURNS = (ID, VAL, CONT)
"""What a node of a pattern can return, in the order in which it is written."""

CONTAINS = "contains"
STARTS_WITH = "starts-with"
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
SIGNS = (*COMPARISONS, CONTAINS, STARTS_WITH)

TEXT = "text()"
ANY = "*"
ANY_ATTRIBUTE = "@*"
ROOT = -1
"""The parent of a node that hangs below the document itself."""


class StructuralId(NamedTuple):
    """Where a node is: places in the order of beginnings and of ends, and depth; the root element is at 0.

    `a` is above `b` if it begins before it and ends after it; it is the parent if it is also one level up.
    """

    pre: int
    post: int
    level: int

    def above(self, other: StructuralId) -> bool:
        """Tell whether the other is a descendant."""
        return self.pre < other.pre and self.post > other.post

    def parent_of(self, other: StructuralId) -> bool:
        """Tell whether the other is a child."""
        return self.above(other) and self.level + 1 == other.level


@dataclass(frozen=True, slots=True)
class Test:
    """A condition on a node's `val`: `val sign value`, or the function of that name.

    With a number the `val` is read as one, as XPath 1.0 does; what is none compares as NaN: only != holds.
    With a text, `=` and `!=` compare texts; the other comparisons need a number.
    """

    sign: str
    value: str | float


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a pattern. `axis` leads to it from its parent, which is a place among the nodes, or ROOT.

    Below ROOT, CHILD leads to the document's root element and DESCENDANT to any node.
    """

    label: Label
    axis: str = CHILD
    parent: int = ROOT
    tests: tuple[Test, ...] = ()
    returns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pattern:
    """A filter and a view: trees of nodes, each node behind its parent (document order: preorder).

    It holds for a document if there is an embedding: a node of the document for each node of the pattern, so
    that labels, axes and tests hold. Different nodes of the pattern may stand for one node of the document.
    Several trees (several nodes below ROOT) must all embed. What it gives is, for each embedding, what the
    nodes with `returns` return; embeddings that agree in all of these nodes count once.
    """

    nodes: tuple[Node, ...]

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """List the children of each node."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for place, node in enumerate(self.nodes):
            if node.parent != ROOT:
                found[node.parent].append(place)
        return tuple(tuple(each) for each in found)

    @property
    def roots(self) -> tuple[int, ...]:
        """List the nodes below the document."""
        return tuple(place for place, node in enumerate(self.nodes) if node.parent == ROOT)

    @property
    def returning(self) -> tuple[int, ...]:
        """List the nodes that return something."""
        return tuple(place for place, node in enumerate(self.nodes) if node.returns)


def is_attribute(label: Label) -> bool:
    """Tell whether a label is one of attributes."""
    return label.startswith("@")


def covers(general: Label, special: Label) -> bool:
    """Tell whether every node that has the label `special` has `general` too; both may be of patterns.

    >>> covers("*", "{urn:x}a"), covers("*:a", "{urn:x}a"), covers("a", "{urn:x}a"), covers("*", "@a")
    (True, True, False, False)
    """
    if general == special:
        return True
    if TEXT in (general, special) or is_attribute(general) != is_attribute(special):
        return False
    if is_attribute(general):
        general, special = general[1:], special[1:]
    if general == ANY:
        return True
    if not general.startswith("*:"):
        return False
    local = special[2:] if special.startswith("*:") else special.rpartition("}")[2]
    return local == general[2:]


_Key: TypeAlias = tuple[object, ...]


class Canonical(NamedTuple):
    """The form, and for each node of the pattern as it was written its place there."""

    pattern: Pattern
    places: tuple[int, ...]


def canonical(pattern: Pattern) -> Canonical:
    """Write a pattern in its one form.

    >>> nodes = (Node("a"), Node("c", parent=0), Node("b", parent=0), Node("c", parent=0))
    >>> form, places = canonical(Pattern(nodes))
    >>> [node.label for node in form.nodes], places
    (['a', 'b', 'c'], (0, 2, 1, 2))
    """
    children = pattern.children
    keys: list[_Key] = [()] * len(pattern.nodes)
    for place in reversed(range(len(pattern.nodes))):
        inner = tuple(sorted({keys[child] for child in children[place]})) if children[place] else ()
        keys[place] = (*_own(pattern.nodes[place]), inner)
    written: list[Node] = []
    places = [0] * len(pattern.nodes)
    # A group is branches that are equal, below what is equal: they are written once.
    todo = _groups(pattern.roots, ROOT, keys)
    while todo:
        group, parent = todo.pop()
        here = len(written)
        written.append(_node(pattern.nodes[group[0]], parent))
        for place in group:
            places[place] = here
        if children[group[0]]:
            below = (
                children[group[0]]
                if len(group) == 1
                else [each for place in group for each in children[place]]
            )
            todo += _groups(below, here, keys)
    return Canonical(Pattern(tuple(written)), tuple(places))


def _groups(siblings: Sequence[int], parent: int, keys: list[_Key]) -> list[tuple[list[int], int]]:
    """Group siblings that are alike, the last of the order first, each group with the place of its parent."""
    if len(siblings) == 1:
        return [([siblings[0]], parent)]
    alike: dict[_Key, list[int]] = {}
    for place in siblings:
        alike.setdefault(keys[place], []).append(place)
    return [(alike[key], parent) for key in sorted(alike, reverse=True)]


def _node(node: Node, parent: int) -> Node:
    tests = tests_of(node)
    returns = (
        node.returns if len(node.returns) < 2 else tuple(each for each in RETURNS if each in node.returns)
    )
    if (node.parent, node.tests, node.returns) == (parent, tests, returns):
        return node
    return Node(node.label, node.axis, parent, tests, returns)


def tests_of(node: Node) -> tuple[Test, ...]:
    """List the tests of a node, each once, in one order."""
    if len(node.tests) < 2:
        return node.tests
    return tuple(sorted(set(node.tests), key=_test_key))


def _test_key(test: Test) -> tuple[str, str, str]:
    return test.sign, type(test.value).__name__, repr(test.value)


def _own(node: Node) -> _Key:
    tests = tuple([_test_key(test) for test in tests_of(node)]) if node.tests else ()
    returns = tuple(sorted(set(node.returns))) if node.returns else ()
    return node.axis, node.label, tests, returns
