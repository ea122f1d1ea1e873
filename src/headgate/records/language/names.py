"""Which names the parser takes for nothing but attributes, wherever a clause may have one.

The parser knows hundreds of words, and treats some of them in a way of its own before certain others. So a
name is asked about once, in every form of a clause, and the answer is remembered.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.errors import FilterError
from headgate.records.language.model import And, Attribute, Constant, Expression, Not, Or, predicates
from headgate.records.language.parse import parse_filter
from headgate.records.programs.shapes import Bounded

if TYPE_CHECKING:
    from headgate.core.values import Path

MAX_NAMES = 65_536

_PROBE = " AND ".join(
    (
        "{0}",
        "NOT {0}",
        "!{0}",
        "({0} OR\n{0}\tOR ({0}))",
        "{0} = 1",
        "({0}=1)",
        "{0} == 'x'",
        "{0}!=1",
        "{0} <> 1.5",
        "{0} < 1",
        "{0}<1",
        "NOT {0} > -1",
        "{0}>'x'",
        "{0} <= TRUE",
        "{0}>= DATE '2024-01-01'",
        "{0} <=> TIMESTAMP '2024-01-01'",
        "{0} IN (1, 2)",
        "{0} IN('x')",
        "{0} NOT IN (1.5)",
        "{0} BETWEEN 1 AND 2",
        "{0} NOT BETWEEN 'x' AND 'y'",
        "{0} LIKE 'x'",
        "{0} NOT LIKE 'x'",
        "{0} IS NULL",
        "{0} IS NOT NULL",
        "array_contains({0}, 1)",
        "array_contains( {0} ,'x')",
        "arrays_overlap({0}, array('x'))",
        "{0}",
    )
)
_ANY_NAME = "headgate_attribute"

paths: Bounded[str, Path | None] = Bounded(MAX_NAMES)
sighted: Bounded[str, bool] = Bounded(MAX_NAMES)


def path_of(name: str) -> Path | None:
    """Return the folded path of a dotted name that is safe in every clause, else None.

    A name is asked about when it comes for the second time: the answer takes as long as some filters do.
    """
    if name in paths:
        return paths.get(name)
    if name not in sighted:
        sighted[name] = True
        return None
    found = Attribute.of(*name.split(".")).path if is_safe(name) else None
    paths[name] = found
    return found


def is_safe(name: str) -> bool:
    """Ask the parser about a name."""
    parts = tuple(name.split("."))
    try:
        found = parse_filter(_PROBE.format(name))
    except FilterError:
        return False
    if any(predicate.attribute.names != parts for predicate in predicates(found)):
        return False
    return _renamed(found) == parse_filter(_PROBE.format(_ANY_NAME))


def _renamed(node: Expression) -> Expression:
    if isinstance(node, And | Or):
        return type(node)(tuple(map(_renamed, node.children)))
    if isinstance(node, Not):
        return Not(_renamed(node.child))
    return node if isinstance(node, Constant) else replace(node, attribute=Attribute.of(_ANY_NAME))
