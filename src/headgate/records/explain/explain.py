"""Why a filter holds for an event or not, clause by clause, with the nearest miss.

The verdict and every clause come from the reference, so an explanation is exact for every operator.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.core.values import dotted
from headgate.records.explain.notes import note
from headgate.records.language.model import And, Constant, Expression, Not, Or
from headgate.records.language.printing import print_filter
from headgate.records.language.rewrite import push_not
from headgate.records.reference import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.core.values import Path


@dataclass(frozen=True)
class Clause:
    """One predicate of the filter (negated or not), the event's value, and whether it held (None: NULL)."""

    text: str
    attribute: str
    value: object
    held: bool | None
    note: str = ""


@dataclass(frozen=True)
class Explanation:
    """The verdict, the clauses from left to right, and the fewest clauses that would have to change.

    With the clauses of the nearest miss replaced by TRUE the filter matches, and with fewer it does not. It
    is empty if the filter matches, and if it does not whatever becomes of its clauses, as in `a AND FALSE`.
    """

    matches: bool
    filter: str
    clauses: tuple[Clause, ...]
    nearest_miss: tuple[Clause, ...]

    def lines(self) -> list[str]:
        """Say it for people: the verdict, a line for each clause, and the nearest miss."""
        lines = ["match" if self.matches else "no match", *clause_lines(self.clauses)]
        if not self.matches:
            missing = " AND ".join(clause.text for clause in self.nearest_miss)
            lines.append(f"nearest miss: {missing or 'none, no event can match this filter'}")
        return lines


def explain(expression: Expression, attributes: Mapping[Path, object]) -> Explanation:
    """Explain one filter and one event.

    >>> from headgate.records.language.parse import parse_filter
    >>> found = explain(parse_filter("age > 30 AND topic = 'news'"), {("age",): 35, ("topic",): "sport"})
    >>> found.matches, [clause.held for clause in found.clauses], found.nearest_miss[0].text
    (False, [True, False], "topic = 'news'")
    """
    pushed = push_not(expression)
    return Explanation(
        matches=evaluate(expression, attributes) is True,
        filter=print_filter(expression),
        clauses=tuple(clause_of(node, attributes) for node in _leaves(pushed)),
        nearest_miss=tuple(clause_of(node, attributes) for node in fewest(pushed, attributes) or ()),
    )


def clause_lines(clauses: tuple[Clause, ...]) -> list[str]:
    """Say for people whether clauses held, one below the other."""
    signs = {True: "held", False: "failed", None: "unknown"}
    width = max((len(clause.text) for clause in clauses), default=0)
    lines = []
    for clause in clauses:
        value = f"{clause.attribute} = {_shown(clause.value)}" if clause.attribute else ""
        note = f" ({clause.note})" if clause.note else ""
        lines.append(f"  {signs[clause.held]:8}{clause.text:{width}}   {value}{note}".rstrip())
    return lines


def _shown(value: object) -> str:
    return "NULL" if value is None else json.dumps(value, default=str, ensure_ascii=False)


def _leaves(node: Expression) -> list[Expression]:
    if isinstance(node, And | Or):
        return [leaf for child in node.children for leaf in _leaves(child)]
    return [node]


def fewest(node: Expression, attributes: Mapping[Path, object]) -> tuple[Expression, ...] | None:
    """Find the fewest predicates whose change would make a node TRUE; None if nothing can.

    Only for expressions that `push_not` has been over: there AND needs all of its children, and OR the one
    that is nearest.
    """
    if isinstance(node, And):
        parts = [fewest(child, attributes) for child in node.children]
        able = [part for part in parts if part is not None]
        return tuple(leaf for part in able for leaf in part) if len(able) == len(parts) else None
    if isinstance(node, Or):
        parts = [fewest(child, attributes) for child in node.children]
        return min((part for part in parts if part is not None), key=len, default=None)
    if evaluate(node, attributes) is True:
        return ()
    return None if isinstance(node, Constant) else (node,)


def clause_of(node: Expression, attributes: Mapping[Path, object]) -> Clause:
    """Describe a predicate, negated or not, or a constant."""
    if isinstance(node, Constant):
        return Clause(print_filter(node), "", None, node.value)
    negated = isinstance(node, Not)
    predicate = node.child if isinstance(node, Not) else node
    assert not isinstance(predicate, And | Or | Not | Constant), "push_not comes first"
    path = predicate.attribute.path
    value = attributes.get(path)
    held = evaluate(node, attributes)
    missing = "" if held else note(predicate, value, negated=negated, held=held, present=path in attributes)
    return Clause(print_filter(node), dotted(path), value, held, missing)
