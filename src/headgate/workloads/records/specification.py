"""Filters as numbers, which a workload draws first, and as text in Spark SQL.

A filter is conjunctions joined by OR, a conjunction is predicates joined by AND, a predicate is an
attribute, an operator and operands. All of them lie in flat arrays, so that ten million filters are drawn
without a Python object each; `texts` writes them.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.workloads.columns import choose, digits, glue, joined

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes
    from headgate.workloads.columns import Bools, Ints, Texts


class Attribute(NamedTuple):
    """Name an attribute, and say how its values are distributed: 0 up to `size`.

    Value n of a text attribute is 'vn', which no cast takes for a number, a Boolean or a time. Value r is
    drawn as often as (r + 1) ** -exponent says; 0 is the uniform law. An event has the attribute with
    probability `presence`.
    """

    name: str
    is_text: bool
    size: int
    exponent: float = 0.0
    presence: float = 1.0


class Operator(IntEnum):
    """How a predicate compares; the last three negate the first three."""

    EQ = 0
    IN = 1
    BETWEEN = 2
    GE = 3
    LE = 4
    NE = 5
    NOT_IN = 6
    NOT_BETWEEN = 7

    @property
    def is_negation(self) -> bool:
        """Tell whether a value that the operands name makes the predicate false."""
        return self >= Operator.NE

    @property
    def is_range(self) -> bool:
        """Tell whether the operands are ends of a range; such a predicate is about a number."""
        return self in {Operator.BETWEEN, Operator.GE, Operator.LE, Operator.NOT_BETWEEN}


class Specification(NamedTuple):
    """Filters, in columns.

        filter f        conjunctions conjunction_start[f]:conjunction_start[f + 1], joined by OR
        conjunction c   predicates predicate_start[c]:predicate_start[c + 1], joined by AND
        predicate p     attributes[attribute[p]], operator[p], operands operand_start[p]:operand_start[p + 1]

    The attributes of a conjunction differ. Where a filter has several conjunctions, each has two predicates
    or more, and they begin with different attributes, so that no two of them are equal. Operands are values
    of the attribute; those of a list differ and ascend, as texts or as numbers.
    """

    attributes: tuple[Attribute, ...]
    conjunction_start: Ints
    predicate_start: Ints
    attribute: Ints
    operator: Bytes
    operand_start: Ints
    operands: Ints

    @property
    def filters(self) -> int:
        """Count the filters."""
        return len(self.conjunction_start) - 1

    @property
    def predicates(self) -> int:
        """Count the predicates."""
        return len(self.attribute)

    def is_operator(self, *operators: Operator) -> Bools:
        """Mark the predicates with one of the operators."""
        return np.array([each in operators for each in Operator])[self.operator]


@lru_cache(maxsize=8)
def text_order(size: int) -> Ints:
    """Return the place of each of the first values among their texts: v10 comes before v2.

    >>> text_order(12).tolist()
    [0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 2, 3]
    """
    texts = np.arange(size).astype(np.str_)
    places = np.empty(size, np.int64)
    places[np.argsort(texts, kind="stable")] = np.arange(size)
    places.setflags(write=False)
    return places


def within(counts: Ints) -> Ints:
    """Count from 0 in each of some runs.

    >>> within(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    places: Ints = np.arange(total) - np.repeat(ends - counts, counts)
    return places


def rank(marked: Bools, counts: Ints) -> Ints:
    """Count the marked ones before each, in runs of the given sizes.

    >>> rank(np.array([True, True, False, True, True]), np.array([3, 2])).tolist()
    [0, 1, 2, 0, 1]
    """
    ones = marked.astype(np.int64)
    before = np.cumsum(ones) - ones
    first = np.cumsum(counts) - counts
    ranks: Ints = before - np.repeat(before[first] if len(before) else first, counts)
    return ranks


_FORMS = {
    Operator.EQ: (" = ", "", ""),
    Operator.IN: (" IN (", ", ", ")"),
    Operator.BETWEEN: (" BETWEEN ", " AND ", ""),
    Operator.GE: (" >= ", "", ""),
    Operator.LE: (" <= ", "", ""),
    Operator.NE: (" <> ", "", ""),
    Operator.NOT_IN: (" NOT IN (", ", ", ")"),
    Operator.NOT_BETWEEN: (" NOT BETWEEN ", " AND ", ""),
}
"""What stands before the operands, between them and after them."""


def texts(spec: Specification) -> Texts:
    """Write each filter."""
    if not spec.filters:
        return pa.array([], pa.string())
    conjunctions = joined(spec.predicate_start, _predicates(spec), " AND ")
    counts = np.diff(spec.conjunction_start)
    nested = np.repeat(counts > 1, counts).astype(np.int64)
    written = glue(choose(["", "("], nested), conjunctions, choose(["", ")"], nested))
    return joined(spec.conjunction_start, written, " OR ")


def _predicates(spec: Specification) -> Texts:
    before, between, after = zip(*(_FORMS[each] for each in Operator), strict=True)
    operator = spec.operator.astype(np.int64)
    openings = [each.name + sign for each in spec.attributes for sign in before]
    return glue(
        choose(openings, spec.attribute * len(Operator) + operator),
        joined(spec.operand_start, _operands(spec), choose(between, operator)),
        choose(after, operator),
    )


def _operands(spec: Specification) -> Texts:
    quote = np.array([each.is_text for each in spec.attributes])[spec.attribute]
    quoted = np.repeat(quote, np.diff(spec.operand_start)).astype(np.int64)
    return glue(choose(["", "'v"], quoted), digits(spec.operands), choose(["", "'"], quoted))
