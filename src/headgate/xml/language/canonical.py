"""Views that are written differently and give the same get one form.

Children are sorted and written once: the order of branches says nothing, and two equal branches stand for the
same nodes of every document. What a branch implies of another is kept, since each node's ids are part of what
a view gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from headgate.xml.language.model import RETURNS, ROOT, Node, Pattern, Test

if TYPE_CHECKING:
    from collections.abc import Sequence

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
