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
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, TypeAlias

from msgspec import Struct

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
WORD = "re:test"
"""The `val` has a word, which is folded (`core/text/alphabets.py`)."""
WORD_MARK = "~"
"""Before a word where it stands for a label, in an index: no label begins so."""
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
SIGNS = (*COMPARISONS, CONTAINS, STARTS_WITH, WORD)

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


class Test(Struct, frozen=True, gc=False):
    """A condition on a node's `val`: `val sign value`, or the function of that name.

    With a number the `val` is read as one, as XPath 1.0 does; what is none compares as NaN: only != holds.
    With a text, `=` and `!=` compare texts; the other comparisons need a number. WORD takes a word.
    """

    sign: str
    value: str | float


class Node(Struct, frozen=True, gc=False):
    """A node of a pattern. `axis` leads to it from its parent, which is a place among the nodes, or ROOT.

    Below ROOT, CHILD leads to the document's root element and DESCENDANT to any node.
    """

    label: Label
    axis: str = CHILD
    parent: int = ROOT
    tests: tuple[Test, ...] = ()
    returns: tuple[str, ...] = ()


class Pattern(Struct, frozen=True, dict=True):
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
        children: list[list[int]] = [[] for _ in self.nodes]
        for index, node in enumerate(self.nodes):
            if node.parent != ROOT:
                children[node.parent].append(index)
        return tuple(tuple(each) for each in children)

    @property
    def roots(self) -> tuple[int, ...]:
        """List the nodes below the document."""
        return tuple(index for index, node in enumerate(self.nodes) if node.parent == ROOT)

    @property
    def returning(self) -> tuple[int, ...]:
        """List the nodes that return something."""
        return tuple(index for index, node in enumerate(self.nodes) if node.returns)


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
