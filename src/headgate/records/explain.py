"""Why a filter holds for an event or not, clause by clause, with the nearest miss.

The verdict and every clause come from the reference, so an explanation is exact for every operator.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING

from headgate.core.values import dotted
from headgate.records.model import (
    NULL,
    And,
    ArrayContains,
    ArraysOverlap,
    Between,
    Comparison,
    Constant,
    Expression,
    In,
    Literal,
    Not,
    Op,
    Or,
)
from headgate.records.printing import print_filter, print_literal
from headgate.records.reference import compare, evaluate
from headgate.records.rewrite import push_not

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.core.values import Path
    from headgate.records.model import Predicate

# The widest difference is of a whole number of 19 digits and a decimal with 18 after the point.
_EXACT = Context(prec=60)


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
    """The verdict, the clauses from left to right, and the fewest clauses that would have to change."""

    matches: bool
    filter: str
    clauses: tuple[Clause, ...]
    nearest_miss: tuple[Clause, ...]


def explain(expression: Expression, attributes: Mapping[Path, object]) -> Explanation:
    """Explain one filter and one event.

    >>> from headgate.records.parse import parse_filter
    >>> found = explain(parse_filter("age > 30 AND topic = 'news'"), {("age",): 35, ("topic",): "sport"})
    >>> found.matches, [clause.held for clause in found.clauses], found.nearest_miss[0].text
    (False, [True, False], "topic = 'news'")
    """
    pushed = push_not(expression)
    clauses: list[Clause] = []
    _collect(pushed, attributes, clauses)
    return Explanation(
        matches=evaluate(expression, attributes) is True,
        filter=print_filter(expression),
        clauses=tuple(clauses),
        nearest_miss=_misses(pushed, attributes) or (),
    )


def _collect(node: Expression, attributes: Mapping[Path, object], found: list[Clause]) -> None:
    if isinstance(node, And | Or):
        for child in node.children:
            _collect(child, attributes, found)
    else:
        found.append(_clause(node, attributes))


def _misses(node: Expression, attributes: Mapping[Path, object]) -> tuple[Clause, ...] | None:
    """Return the fewest clauses whose change would make the node TRUE; None if nothing can."""
    if isinstance(node, And):
        parts = [_misses(child, attributes) for child in node.children]
        if any(part is None for part in parts):
            return None
        return tuple(clause for part in parts if part for clause in part)
    if isinstance(node, Or):
        able = [part for part in (_misses(child, attributes) for child in node.children) if part is not None]
        return min(able, key=len, default=None)
    if isinstance(node, Constant):
        return () if node.value is True else None
    clause = _clause(node, attributes)
    return () if clause.held is True else (clause,)


def _clause(node: Expression, attributes: Mapping[Path, object]) -> Clause:
    if isinstance(node, Constant):
        return Clause(print_filter(node), "", None, node.value)
    predicate = node.child if isinstance(node, Not) else node
    assert not isinstance(predicate, And | Or | Not | Constant)
    path = predicate.attribute.path
    value = attributes.get(path)
    held = evaluate(node, attributes)
    note = "" if held else _note(predicate, value, held, present=path in attributes)
    return Clause(print_filter(node), dotted(path), value, held, note)


def _note(predicate: Predicate, value: object, held: bool | None, *, present: bool) -> str:
    """Say in words what was missing."""
    if value is None:
        return "the event has no such attribute" if not present else "the attribute is NULL"
    if held is None:
        if isinstance(value, list | tuple) and None in value:
            return "unknown: the array has a NULL element"
        if any(literal == NULL for literal in _literals(predicate)):
            return "unknown: compared with NULL"
        return f"unknown: {_show(value)} cannot be compared here"
    distance = _distance(predicate, value)
    return f"off by {distance}" if distance else ""


def _literals(predicate: Predicate) -> tuple[Literal, ...]:
    match predicate:
        case Comparison(_, _, literal):
            return (literal,)
        case Between(_, low, high):
            return (low, high)
        case In(_, literals) | ArraysOverlap(_, literals):
            return literals
        case ArrayContains(_, literal):
            return (literal,)
    return ()


def _distance(predicate: Predicate, value: object) -> str:
    """Measure how far a number or a moment is from the nearest literal, where that means something."""
    if isinstance(predicate, Comparison) and predicate.op is Op.NE:
        return ""
    gaps: list[Decimal | float | dt.timedelta] = []
    for literal in _literals(predicate):
        if compare(value, literal) is None or isinstance(literal.value, bool | str | None):
            continue
        if isinstance(value, int) and isinstance(literal.value, int | Decimal):
            gaps.append(_EXACT.subtract(Decimal(value), Decimal(literal.value)).copy_abs())
        elif isinstance(value, int | float):
            gaps.append(abs(float(value) - float(literal.value)))
        elif isinstance(value, dt.datetime) and isinstance(literal.value, int):
            epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
            moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            gaps.append(abs(moment - epoch - dt.timedelta(microseconds=literal.value)))
    # A value that equals a literal is not off, and NaN is far from everything.
    if not gaps or not all(gaps) or any(isinstance(gap, float) and math.isnan(gap) for gap in gaps):
        return ""
    nearest = min(gaps, key=lambda gap: gap.total_seconds() if isinstance(gap, dt.timedelta) else float(gap))
    if isinstance(nearest, dt.timedelta):
        return str(nearest)
    return f"{nearest:g}" if isinstance(nearest, float) else f"{nearest:f}"


def _show(value: object) -> str:
    return print_literal(NULL) if value is None else repr(value)
