"""A filter in clauses: the parts that its topmost ANDs join, each a filter of its own.

An AND holds if and only if all that it joins holds, whatever is NULL, so the clauses say together what the
filter says. Anything else than AND is one clause: `NOT (a OR b)` is, and so is BETWEEN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.contents.protocol import Clause
from headgate.core.text.cutting import BoundedCache
from headgate.core.values import dotted, fold
from headgate.records.language.dialects import to_sql
from headgate.records.language.model import And, predicates
from headgate.records.language.printing import print_filter
from headgate.records.names import USUAL
from headgate.records.programs.binding import parse_text
from headgate.records.programs.clauses import MAX_LENGTH, model_of
from headgate.records.programs.shapes import MAX_TEXT, cut

if TYPE_CHECKING:
    from headgate.records.language.model import Expression
    from headgate.records.names import NameSettings

_BLANKS = " \t\n\r"


def split(text: str, dialect: str, settings: NameSettings = USUAL) -> tuple[Clause, ...]:
    """Take a filter apart, in the order in which it is written; equal clauses are written alike.

    >>> for clause in split("age > 30 AND (topic='news' AND NOT (a = 1 OR b = 2))", "sql"):
    ...     print(clause)
    Clause(filter='age > 30', names=('age',))
    Clause(filter="topic = 'news'", names=('topic',))
    Clause(filter='NOT (a = 1 OR b = 2)', names=('a', 'b'))
    """
    sql = to_sql(text, dialect, settings)
    return _plainly(sql) or tuple(clause_of(each) for each in _joined(parse_text(sql)))


def _plainly(text: str) -> tuple[Clause, ...] | None:
    """Take a filter apart that is plain clauses joined by AND; None for any other, and for the parser to say.

    The same as the long way, which is mostly printing, without a second time for a clause that was seen.
    """
    pieces = plain_clauses(text)
    if pieces is None:
        return None
    clauses = []
    for piece in pieces:
        clause = _plain_clause_of[piece]
        if clause is None:
            return None
        clauses.append(clause)
    return tuple(clauses)


def _plain_clause(text: str) -> Clause | None:
    expression = model_of[text]
    return None if expression is None else clause_of(expression)


_plain_clause_of = BoundedCache(_plain_clause, longest=MAX_LENGTH)


def plain_clauses(text: str) -> list[str] | None:
    """Cut a filter that is plain clauses joined by AND; None for any other."""
    if len(text) > MAX_TEXT:
        return None
    parts = cut(text)
    between = [joint.strip(_BLANKS).upper() for joint in parts[::2]]
    if between != ["", *["AND"] * (len(between) - 2), ""] or len(parts) < 3:
        return None
    return parts[1::2]


def _joined(expression: Expression) -> list[Expression]:
    """List what the topmost ANDs join, from left to right."""
    parts: list[Expression] = []
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, And):
            stack.extend(reversed(node.children))
        else:
            parts.append(node)
    return parts


def clause_of(expression: Expression) -> Clause:
    """Write a part of a filter as a clause."""
    names = (dotted(path) for each in predicates(expression) for path in each.attribute.sources)
    # Weights are given to names in any case.
    return Clause(print_filter(expression), tuple(dict.fromkeys(map(fold, names))))
