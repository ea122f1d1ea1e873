"""Pure passes from model to model, in the order of `PASSES`.

All but the last two keep the value (TRUE, FALSE or NULL) of every expression on every event. After
`push_not`, NOT stands at predicates only, and then AND and OR are monotone: whether the whole is TRUE
depends only on which predicates (negated or not) are TRUE. So `drop_unknown` may turn NULL into FALSE,
and everything after it is two-valued.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING

from headgate.records.language.model import (
    NULL,
    And,
    Between,
    Comparison,
    Constant,
    Expression,
    In,
    IsNull,
    Not,
    Op,
    Or,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Pass = Callable[[Expression], Expression]


_FALSE = Constant(value=False)
_TRUE = Constant(value=True)


def _everywhere(change: Pass) -> Pass:
    """Make a pass of what is done to each node, the children first."""

    @wraps(change)
    def run(expression: Expression) -> Expression:
        if isinstance(expression, And | Or):
            expression = type(expression)(tuple(map(run, expression.children)))
        elif isinstance(expression, Not):
            expression = Not(run(expression.child))
        return change(expression)

    return run


@_everywhere
def expand_between(node: Expression) -> Expression:
    """Turn `a BETWEEN x AND y` into `a >= x AND a <= y`, as Spark does."""
    if not isinstance(node, Between):
        return node
    low = Comparison(Op.GE, node.attribute, node.low)
    return And((low, Comparison(Op.LE, node.attribute, node.high)))


@_everywhere
def resolve_nulls(node: Expression) -> Expression:
    """Turn comparisons with NULL into NULL, and `a <=> NULL` into `a IS NULL`."""
    if isinstance(node, Comparison) and node.literal == NULL:
        return IsNull(node.attribute) if node.op is Op.NULL_SAFE_EQ else Constant(None)
    if isinstance(node, In) and all(literal == NULL for literal in node.literals):
        return Constant(None)
    return node


def push_not(expression: Expression) -> Expression:
    """Move NOT down to the predicates, by De Morgan's laws, which hold for NULL too."""
    return _push_not(expression, negated=False)


def _push_not(node: Expression, *, negated: bool) -> Expression:
    if isinstance(node, Not):
        return _push_not(node.child, negated=not negated)
    if isinstance(node, And | Or):
        children = tuple(_push_not(child, negated=negated) for child in node.children)
        return And(children) if isinstance(node, And) != negated else Or(children)
    if isinstance(node, Constant):
        return Constant(None if node.value is None else node.value != negated)
    return Not(node) if negated else node


@_everywhere
def drop_unknown(node: Expression) -> Expression:
    """Turn NULL into FALSE and fold constants; only for expressions that `push_not` has been over."""
    if isinstance(node, Constant):
        return Constant(node.value is True)
    if not isinstance(node, And | Or):
        return node
    neutral, final = (_TRUE, _FALSE) if isinstance(node, And) else (_FALSE, _TRUE)
    rest = tuple(child for child in node.children if child != neutral)
    return final if final in rest else _join(type(node), rest, neutral)


@_everywhere
def flatten(node: Expression) -> Expression:
    """Merge AND in AND and OR in OR, and drop repeated children."""
    if not isinstance(node, And | Or):
        return node
    kind = type(node)
    merged: list[Expression] = []
    for child in node.children:
        merged.extend(child.children if isinstance(child, kind) else (child,))
    return _join(kind, tuple(dict.fromkeys(merged)), _TRUE)


def _join(kind: type[And | Or], children: tuple[Expression, ...], empty: Expression) -> Expression:
    if len(children) > 1:
        return kind(children)
    return children[0] if children else empty


PASSES: tuple[Pass, ...] = (expand_between, resolve_nulls, push_not, drop_unknown, flatten)


def normalise(expression: Expression) -> Expression:
    """Apply all passes: the result is TRUE for the same events.

    >>> from headgate.records.language.parse import parse_filter
    >>> from headgate.records.language.printing import print_filter
    >>> print_filter(normalise(parse_filter("NOT (a BETWEEN 1 AND NULL OR b IN (1))")))
    'NOT a >= 1 AND b NOT IN (1)'
    """
    for rewrite in PASSES:
        expression = rewrite(expression)
    return expression
