"""W-mix: conjunctions of equalities, lists and ranges, of which few are selective by themselves.

An event has 16 categories of 5 to 10,000 values, by Zipf's law, and 14 numbers from 0 to 9,999, each with
probability 0.83. A filter asks for 3 to 6 of them; one in 25 has ranges only. The variants:

    mixed       43 % of predicates are equalities, 26 % lists of 2 to 8 values, 30 % ranges that cover
                0.5 to 25 % of the domain
    ranges      all are ranges
    negations   two thirds are <>, NOT IN and NOT BETWEEN, in the proportions of `mixed`; one filter in ten
                has nothing else
    growth      as `mixed`, and each filter is about one account; there is one account for 100,000 filters,
                so events match as many filters of ten million as of 100,000
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headgate.errors import HeadgateError
from headgate.records.programs.programs import starts
from headgate.workloads.columns import Key, uniform, weighted
from headgate.workloads.records.specification import Attribute, Operator, Specification, rank, within
from headgate.workloads.records.synthetic import Synthetic, distinct, operands

if TYPE_CHECKING:
    from headgate.workloads.columns import Ints


VARIANTS = ("mixed", "ranges", "negations", "growth")
FILTERS_PER_ACCOUNT = 100_000

_PRESENCE = 0.83
_CATEGORIES = tuple(
    Attribute(f"cat{number:02}", True, size, 0.85, _PRESENCE)
    for number, size in enumerate(np.geomspace(5, 10_000, 16).round().astype(int).tolist())
)
_NUMBERS = tuple(Attribute(f"num{number:02}", False, 10_000, 0.0, _PRESENCE) for number in range(14))
_ATTRIBUTES = (*_CATEGORIES, *_NUMBERS)
_ACCOUNT = len(_ATTRIBUTES)

_BY_SIZE = (0, 0, 0, 27, 25, 24, 24)
_MOST = len(_BY_SIZE) - 1
_RANGES_ONLY = 0.03
# With the filters that have ranges only, these come to 43 : 26 : 30.
_BY_OPERATOR = (44.8, 27.1, 28.1)
_BY_POSITIVE = (10, 35, 45, 10)
_LAW = (8, 0.005, 0.25)
_PLACES = 8
"""Numbers kept for the predicates of one filter."""
_NEGATED = np.array([Operator.NE, Operator.NOT_IN, Operator.NOT_BETWEEN])
"""The negations of EQ, IN and BETWEEN, by their numbers."""


@dataclass(frozen=True)
class Mixed(Synthetic):
    """W-mix and its variants; `total` is how many filters there will be, for the accounts of `growth`."""

    table = "mixed"

    variant: str = "mixed"
    total: int = FILTERS_PER_ACCOUNT

    def __post_init__(self) -> None:
        """Refuse what is no variant."""
        if self.variant not in VARIANTS:
            raise HeadgateError(f"W-mix has no variant {self.variant!r}; there are {', '.join(VARIANTS)}")

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """List the attributes: categories, numbers and, for `growth`, the account."""
        if self.variant != "growth":
            return _ATTRIBUTES
        accounts = max(1, self.total // FILTERS_PER_ACCOUNT)
        return (*_ATTRIBUTES, Attribute("account", True, accounts, 0.0, 1.0))

    def specification(self, rows: Ints, seed: int) -> Specification:
        """Draw the filters with the given row numbers."""
        rows = np.asarray(rows, np.int64)

        def key(column: str, rows: Ints = rows) -> Key:
            return Key(seed, f"{self.table} filters", column, rows)

        drawn = weighted(key("size"), _BY_SIZE)
        sizes = drawn + 1 if self.variant == "growth" else drawn
        owner, position = np.repeat(np.arange(len(rows)), sizes), within(sizes)
        address = rows[owner] * _PLACES + position
        operator = weighted(key("operator", address), _BY_OPERATOR)
        only = np.full(len(rows), True) if self.variant == "ranges" else uniform(key("only")) < _RANGES_ONLY
        operator[only[owner]] = Operator.BETWEEN
        # The account of `growth` comes after what other variants draw, so that it changes nothing there.
        extra = position == drawn[owner]
        operator[extra] = Operator.EQ
        is_range = operator == Operator.BETWEEN
        number = rank(is_range, sizes)
        category = position - number
        attribute = np.where(
            is_range,
            len(_CATEGORIES) + distinct(key("numbers"), _MOST, len(_NUMBERS))[owner, number % _MOST],
            distinct(key("categories"), _MOST, len(_CATEGORIES))[owner, category % _MOST],
        )
        attribute[extra] = _ACCOUNT
        if self.variant == "negations":
            positive = np.minimum(weighted(key("positive"), _BY_POSITIVE), drawn - 1)
            operator = np.where(position < positive[owner], operator, _NEGATED[operator])
        kinds = operator.astype(np.uint8)
        start, values = operands(self.attributes, attribute, kinds, key("", address), _LAW)
        return Specification(
            self.attributes, np.arange(len(rows) + 1), starts(sizes), attribute, kinds, start, values
        )
