"""Scores that are expressions over attributes, taken apart: a form, numbers, and what events are asked for.

The operators that forms have, at the top of an expression, are computed in doubles, with the number of each
subscription in its place. All below them, whatever it is, is a term: computed as in filters, once an event.

    0.3 * price + length(name) / 2      ? * t0 + t1 / ?       terms price, length(name)
    least(bid, 5) * CASE … END          least(t0, ?) * t1     terms bid, CASE … END
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headgate.contents.scores import NEGATE, NUMBER, OPERATIONS, TERM, Form, Scoring, Step
from headgate.core.event import JSON
from headgate.core.ranks import double
from headgate.core.values import mark_of
from headgate.errors import FilterError
from headgate.records.computed import sources
from headgate.records.events.columns import BatchColumns, python_values
from headgate.records.expressions.expression import Expression
from headgate.records.expressions.model import Call, Name, Value
from headgate.records.expressions.parse import parse_node
from headgate.records.expressions.printing import print_node
from headgate.records.language.model import NUMBERS
from headgate.records.names import USUAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.core.event import Event
    from headgate.core.values import Path
    from headgate.records.expressions.model import Node
    from headgate.records.names import NameSettings

    Doubles = NDArray[np.float64]


def parse_score(text: str, settings: NameSettings = USUAL) -> Scoring:
    """Parse a score.

    >>> scoring = parse_score("0.3 * price + length(name)")
    >>> scoring.form.terms, scoring.numbers
    (('price', 'length(name)'), (0.3,))
    >>> [step.what for step in scoring.form.steps]
    ['number', 'term', '*', 'term', '+']
    """
    steps: list[Step] = []
    terms: dict[str, int] = {}
    numbers: list[float] = []

    def add(node: Node) -> None:
        if isinstance(node, Call) and node.name in OPERATIONS:
            add(node.arguments[0])
            if node.name == NEGATE:
                steps.append(Step(NEGATE))
            for argument in node.arguments[1:]:
                add(argument)
                steps.append(Step(node.name))
        elif isinstance(node, Value):
            literal = node.literal
            number = float(literal.value) if literal.type in NUMBERS and literal.value is not None else None
            if number is None or not np.isfinite(number):
                raise FilterError(
                    f"a score is a number, and {print_node(node)} is none: give a number", text, None
                )
            steps.append(Step(NUMBER, len(numbers)))
            numbers.append(number)
        else:
            steps.append(Step(TERM, terms.setdefault(print_node(node), len(terms))))

    add(Expression.parse(text).node if settings.usual else parse_node(text, settings))
    return Scoring(Form(tuple(steps), tuple(terms), len(numbers)), tuple(numbers))


def print_score(scoring: Scoring) -> str:
    """Write a score as text.

    >>> print_score(parse_score("-(0.3 * price) + least(bid, 2)"))
    '(- (0.3e0 * price)) + (least(bid, 2.0e0))'
    """
    stack: list[str] = []
    for what, index in scoring.form.steps:
        if what == NUMBER:
            number = repr(scoring.numbers[index])
            stack.append(number if "e" in number else f"{number}e0")
        elif what == TERM:
            stack.append(scoring.form.terms[index])
        elif what == NEGATE:
            stack.append(f"- {_operand(stack.pop())}")
        else:
            right, left = stack.pop(), stack.pop()
            if what in {"least", "greatest"}:
                stack.append(f"{what}({left}, {right})")
            else:
                stack.append(f"{_operand(left)} {what} {_operand(right)}")
    return stack.pop()


def _operand(text: str) -> str:
    return f"({text})" if " " in text else text


class RecordTerms:
    """What computes the terms of scores for records."""

    def __init__(self, terms: Sequence[str]) -> None:
        self._expressions = [Expression.parse(term) for term in terms]
        self._mark = mark_of(path for each in self._expressions for path in each.attributes)

    @property
    def attributes(self) -> set[Path]:
        """Return what of events the terms look at."""
        return {own for each in self._expressions for path in each.attributes for own in sources(path)}

    def one(self, event: Event) -> Doubles:
        """Compute them for one event."""
        attributes = _attributes(event, self._mark)
        return np.array([_number(each.of_attributes(attributes)) for each in self._expressions], np.float64)

    def many(self, events: pa.RecordBatch | Sequence[Event]) -> Doubles:
        """Compute them for many events, one column each."""
        values = np.full((len(self._expressions), len(events)), np.nan)
        for line, each in zip(values, self._expressions, strict=True):
            if isinstance(events, pa.RecordBatch):
                _fill(line, each, events)
            else:
                line[:] = [_number(each.of_attributes(_attributes(event, self._mark))) for event in events]
        return values


def _attributes(event: Event, mark: str) -> Mapping[Path, object]:
    """Return the attributes of an event; documents have none."""
    return event.attributes_as(mark) if event.content_type == JSON else {}


def _fill(line: Doubles, expression: Expression, batch: pa.RecordBatch) -> None:
    """Evaluate an expression for all rows of a batch."""
    columns = list(map(BatchColumns(batch).array, expression.attributes))
    if isinstance(expression.node, Name):
        (column,) = columns
        if column is None:
            return
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            line[:] = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            return
    given = [[None] * len(line) if each is None else python_values(each) for each in columns]
    rows = zip(*given, strict=True) if given else ([] for _ in line)
    line[:] = [_number(expression.of_values(row)) for row in rows]


def _number(value: object) -> float:
    """Return a value as a double; NaN for what is no number."""
    number = double(value)
    return np.nan if number is None else number
