"""Another parser of Spark's dialect: what AND, OR and NOT bind, in texts that both take."""

from __future__ import annotations

import contextlib
import random
from typing import TypeAlias

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from headgate.errors import FilterError
from headgate.records.language.model import And, Expression, Not, Or
from headgate.records.language.parse import parse_filter
from tests.records.random_filters import random_filter
from tests.records.soup import chained, changed_filter
from tests.seeds import share

DIALECT = Spark()
Shape: TypeAlias = "tuple[str, *tuple[Shape, ...]]"


def by_sqlglot(text: str) -> Shape:
    (tree,) = DIALECT.parser().parse_into(exp.Condition, DIALECT.tokenize(text), text)
    assert tree is not None
    return shape_of(tree)


def shape_of(node: exp.Expr) -> Shape:
    if isinstance(node, exp.Paren):
        return shape_of(node.this)
    for kind, name in ((exp.And, "and"), (exp.Or, "or")):
        if isinstance(node, kind):
            return (name, *map(shape_of, chain(node, kind)))
    return ("not", shape_of(node.this)) if isinstance(node, exp.Not) else ("predicate",)


def chain(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """Unroll `a AND b AND c`, which sqlglot nests to the left; parentheses stay nested."""
    found: list[exp.Expr] = []
    while isinstance(node, kind):
        found.append(node.expression)
        node = node.this
    return [node, *reversed(found)]


def shape(tree: Expression) -> Shape:
    match tree:
        case And(children):
            return ("and", *map(shape, children))
        case Or(children):
            return ("or", *map(shape, children))
        case Not(child):
            return ("not", shape(child))
    return ("predicate",)


def test_connectives_bind_as_they_do_for_sqlglot() -> None:
    rng = random.Random(3)
    compared = 0
    for _ in range(share(2_000)):
        text = rng.choice([random_filter, chained, changed_filter])(rng)
        with contextlib.suppress(FilterError, SqlglotError):
            found, expected = shape(parse_filter(text)), by_sqlglot(text)
            # LIKE has its NOT within.
            if "LIKE" not in text.upper():
                assert found == expected, text
            compared += 1
    assert compared > share(2_000) / 3
