"""Patterns as XPath 1.0 that anybody's engine can ask: whether they hold, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.xml.language.model import CONTAINS, DESCENDANT, ROOT, STARTS_WITH

if TYPE_CHECKING:
    from headgate.xml.language.model import Node, Pattern, Test


def xpath_of(pattern: Pattern) -> str:
    """Write a pattern whose labels are in no namespace.

    >>> from headgate.xml.language.parse import parse_filter
    >>> xpath_of(parse_filter("//a[b{val} > 2]//@c"))
    'boolean(//a[b[. > 2]][.//@c])'
    """
    return " and ".join(f"boolean({_step(pattern, root)})" for root in pattern.roots)


def _step(pattern: Pattern, place: int) -> str:
    node = pattern.nodes[place]
    conditions = [_test(test) for test in node.tests]
    conditions += [_step(pattern, child) for child in pattern.children[place]]
    return _axis(node) + node.label + "".join(f"[{each}]" for each in conditions)


def _axis(node: Node) -> str:
    if node.parent == ROOT:
        return node.axis
    return ".//" if node.axis == DESCENDANT else ""


def _test(test: Test) -> str:
    value = test.value
    if isinstance(value, str):
        if '"' in value and "'" in value:
            raise ValueError(f"XPath 1.0 cannot quote {value!r}: it holds both kinds of quotes")
        written = f"'{value}'" if '"' in value else f'"{value}"'
    else:
        written = f"{value:.17g}"
    if test.sign in (CONTAINS, STARTS_WITH):
        return f"{test.sign}(., {written})"
    return f". {test.sign} {written}"
