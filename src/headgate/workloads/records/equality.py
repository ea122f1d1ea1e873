"""W-eq: filters that each hold two equalities or more, so that some value of the event selects them.

An event has 20 categories of 4 to 50,000 values, by Zipf's law, and 10 numbers with 10 to 100,000 values,
each with probability 0.83, so 25 of the 30. A conjunction has 2 to 4 equalities or lists over categories,
and up to 3 other predicates. One filter in five joins 2 or 3 conjunctions with OR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headgate.records.programs.programs import starts
from headgate.workloads.columns import Key, integers, weighted
from headgate.workloads.records.specification import Attribute, Operator, Specification, rank, within
from headgate.workloads.records.synthetic import Synthetic, distinct, operands

if TYPE_CHECKING:
    from headgate.workloads.columns import Ints


_PRESENCE = 0.83


def _sizes(low: int, high: int, count: int) -> list[int]:
    sizes: list[int] = np.geomspace(low, high, count).round().astype(int).tolist()
    return sizes


_CATEGORIES = tuple(
    Attribute(f"cat{number:02}", True, size, 0.95, _PRESENCE)
    for number, size in enumerate(_sizes(4, 50_000, 20))
)
_NUMBERS = tuple(
    Attribute(f"num{number:02}", False, size, 0.0, _PRESENCE)
    for number, size in enumerate(_sizes(10, 100_000, 10))
)

_BY_CONJUNCTIONS = (0, 80, 14, 6)
_BY_EQUALITIES = (0, 0, 5, 40, 55)
_BY_OTHERS = (15, 45, 30, 10)
_EQUALITIES = (Operator.EQ, Operator.IN)
_BY_EQUALITY = (80, 20)
_OTHERS = (Operator.BETWEEN, Operator.GE, Operator.LE, Operator.NE, Operator.NOT_IN)
_BY_OTHER = (45, 20, 20, 10, 5)
_LAW = (5, 0.05, 0.5)
_MOST_CATEGORIES = len(_BY_EQUALITIES) - 1 + len(_BY_OTHERS) - 1
_MOST_NUMBERS = len(_BY_OTHERS) - 1
_CONJUNCTIONS, _PLACES = 4, 8
"""Numbers kept for the conjunctions of one filter, and for the predicates of one conjunction."""


@dataclass(frozen=True)
class Equality(Synthetic):
    """W-eq."""

    table = "equality"
    attributes = (*_CATEGORIES, *_NUMBERS)

    def specification(self, rows: Ints, seed: int) -> Specification:
        """Draw the filters with the given row numbers."""
        rows = np.asarray(rows, np.int64)

        def key(column: str, rows: Ints) -> Key:
            return Key(seed, f"{self.table} filters", column, rows)

        conjunctions = weighted(key("conjunctions", rows), _BY_CONJUNCTIONS)
        turn = within(conjunctions)
        conjunction = np.repeat(rows, conjunctions) * _CONJUNCTIONS + turn
        # Another first attribute in each conjunction of a filter: the step and the number of categories
        # have no common divisor.
        first = np.repeat(integers(key("first", rows), 0, len(_CATEGORIES)), conjunctions) + 7 * turn
        equalities = weighted(key("equalities", conjunction), _BY_EQUALITIES)
        sizes = equalities + weighted(key("others", conjunction), _BY_OTHERS)
        owner, position = np.repeat(np.arange(len(sizes)), sizes), within(sizes)
        address = conjunction[owner] * _PLACES + position
        equal = np.array(_EQUALITIES)[weighted(key("equality", address), _BY_EQUALITY)]
        other = np.array(_OTHERS)[weighted(key("other", address), _BY_OTHER)]
        operator = np.where(position < equalities[owner], equal, other).astype(np.uint8)
        is_range = np.isin(operator, [each for each in Operator if each.is_range])
        number = rank(is_range, sizes)
        categories = distinct(
            key("categories", conjunction), _MOST_CATEGORIES, len(_CATEGORIES), first % len(_CATEGORIES)
        )
        numbers = distinct(key("numbers", conjunction), _MOST_NUMBERS, len(_NUMBERS))
        attribute = np.where(
            is_range,
            len(_CATEGORIES) + numbers[owner, number % _MOST_NUMBERS],
            categories[owner, position - number],
        )
        start, values = operands(self.attributes, attribute, operator, key("", address), _LAW)
        return Specification(
            self.attributes, starts(conjunctions), starts(sizes), attribute, operator, start, values
        )
