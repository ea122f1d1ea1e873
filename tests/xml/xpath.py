"""Patterns as XPath 1.0, for lxml to evaluate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.xml.language.model import (
    ANY,
    ANY_ATTRIBUTE,
    CHILD,
    CONTAINS,
    ROOT,
    STARTS_WITH,
    TEXT,
    WORD,
    is_attribute,
)

if TYPE_CHECKING:
    from headgate.xml.language.model import Label, Pattern, Test


NAMESPACES = {"re": "http://exslt.org/regular-expressions"}
"""The prefix that expressions use for EXSLT."""


def holds_expression(pattern: Pattern) -> str:
    """Write an expression that is true if a pattern holds."""
    trees = [f"boolean({_absolute(pattern, root)})" for root in pattern.roots]
    return " and ".join(trees)


def node_expression(pattern: Pattern, place: int) -> str:
    """Write an expression for the nodes that stand for one node of a pattern in some embedding.

    The path from the root to the node; what branches off is in brackets. Other trees must hold too.
    """
    spine = [place]
    while pattern.nodes[spine[0]].parent != ROOT:
        spine.insert(0, pattern.nodes[spine[0]].parent)
    others = [f"boolean({_absolute(pattern, root)})" for root in pattern.roots if root != spine[0]]
    steps = []
    for number, each in enumerate(spine):
        inside = [child for child in pattern.children[each] if child not in spine]
        brackets = [f"[{_relative(pattern, child)}]" for child in inside]
        if number == len(spine) - 1:
            brackets += [f"[{other}]" for other in others]
        steps.append(_step(pattern, each) + "".join(brackets))
    return "".join(steps)


def _absolute(pattern: Pattern, root: int) -> str:
    return _step(pattern, root) + _branches(pattern, root)


def _relative(pattern: Pattern, place: int) -> str:
    return "." + _step(pattern, place) + _branches(pattern, place)


def _branches(pattern: Pattern, place: int) -> str:
    return "".join(f"[{_relative(pattern, child)}]" for child in pattern.children[place])


def _step(pattern: Pattern, place: int) -> str:
    node = pattern.nodes[place]
    slashes = "/" if node.axis == CHILD else "//"
    # The abbreviation // means descendant-or-self::node()/, so a node's own attributes are among them.
    return slashes + _label(node.label) + "".join(f"[{_test(test)}]" for test in node.tests)


def _label(label: Label) -> str:
    if label in {TEXT, ANY, ANY_ATTRIBUTE}:
        return label
    axis = "attribute::*" if is_attribute(label) else "*"
    name = label.removeprefix("@")
    if name.startswith("*:"):
        return f"{axis}[local-name() = '{name[2:]}']"
    uri, _, local = name[1:].rpartition("}") if name.startswith("{") else ("", "", name)
    return f"{axis}[local-name() = '{local}' and namespace-uri() = '{uri}']"


def _test(test: Test) -> str:
    if isinstance(test.value, float):
        # The library reads exponents too, which XPath 1.0 does not have.
        return f"number(translate(., 'e', 'x')) {test.sign} {test.value}"
    if test.sign == WORD:
        return rf"re:test(string(.), '\b{test.value}\b', 'i')"
    parts = ', "\'", '.join(f"'{part}'" for part in test.value.split("'"))
    literal = f"concat('', {parts})"
    if test.sign in {CONTAINS, STARTS_WITH}:
        return f"{test.sign}(., {literal})"
    return f"string(.) {test.sign} {literal}"
