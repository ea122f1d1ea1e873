"""Workloads that are drawn as a specification: their tables of subscriptions and events.

subscriptions   id "filter-0000123", filter: the specified filter, as Spark SQL
events          id "event-0000042", and the attributes, NULL where the event lacks one

Predicates and operands have numbers of their own, computed from the filter's row and their place in the
filter, and are drawn for these as columns are for rows (see `columns`). So only what exists is drawn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.records.programs.programs import starts
from headgate.workloads.columns import Key, glue, integers, numbered, uniform, zipf_rank
from headgate.workloads.records.specification import Operator, text_order, texts, within

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.core.arrays import Bytes
    from headgate.workloads.columns import Ints
    from headgate.workloads.records.specification import Attribute, Specification


LONGEST = 8
"""The most values that a list may have."""

OperandLaw = tuple[int, float, float]
"""The most values of a list, and the least and the greatest part of the domain that a range covers."""


def distinct(key: Key, count: int, choices: int, first: Ints | None = None) -> Ints:
    """Draw `count` different numbers below `choices` for each row, each set and order equally likely.

    `first` fixes the first of them.

    >>> distinct(Key(1, "t", "c", np.arange(3)), 4, 4).tolist()
    [[1, 2, 3, 0], [0, 3, 1, 2], [3, 2, 0, 1]]
    """
    columns = np.empty((len(key.rows), count), np.int64)
    taken: list[Ints] = []
    for column in range(count):
        given = first if column == 0 else None
        drawn = integers(key, 0, choices - column, draw=column) if given is None else given
        for other in taken:
            # From the lowest up: the n-th free number is found by stepping over those taken.
            drawn = drawn + (drawn >= other)
        columns[:, column] = drawn
        _insert(taken, drawn)
    return columns


def _insert(ordered: list[Ints], new: Ints) -> None:
    """Add a column to columns that ascend in each row."""
    for at, other in enumerate(ordered):
        ordered[at], new = np.minimum(other, new), np.maximum(other, new)
    ordered.append(new)


def values(attributes: Sequence[Attribute], attribute: Ints, key: Key) -> Ints:
    """Draw a value of the given attribute for each row of the key."""
    drawn = np.empty(len(attribute), np.int64)
    for number in np.unique(attribute).tolist():
        (at,) = np.nonzero(attribute == number)
        drawn[at] = _value(attributes[number], key._replace(rows=key.rows[at]))
    return drawn


def _value(attribute: Attribute, key: Key) -> Ints:
    if attribute.exponent == 0:
        return integers(key, 0, attribute.size)
    return zipf_rank(key, attribute.size, attribute.exponent)


def numbers(attributes: Sequence[Attribute], key: Callable[[str], Key]) -> Ints:
    """Draw events: a row each, with the value of each attribute, or -1 where the event lacks it."""
    columns = []
    for attribute in attributes:
        own = key(attribute.name)
        present = uniform(own, draw=1) < attribute.presence
        columns.append(np.where(present, _value(attribute, own), -1))
    return np.stack(columns, axis=1)


def operands(
    attributes: Sequence[Attribute], attribute: Ints, operator: Bytes, key: Key, law: OperandLaw
) -> tuple[Ints, Ints]:
    """Draw the operands of predicates, a row of the key each; return where they start, and them.

    Values of equalities and lists follow the law of their attribute, as those of events do.
    """
    most, narrow, wide = law
    (single,) = np.nonzero(np.isin(operator, [Operator.EQ, Operator.NE, Operator.GE, Operator.LE]))
    (ranges,) = np.nonzero(np.isin(operator, [Operator.BETWEEN, Operator.NOT_BETWEEN]))
    (lists,) = np.nonzero(np.isin(operator, [Operator.IN, Operator.NOT_IN]))

    def of(at: Ints, column: str) -> Key:
        return key._replace(column=column, rows=key.rows[at])

    lengths, listed = _lists(attributes, attribute[lists], of(lists, "list"), most)
    counts = np.ones(len(operator), np.int64)
    counts[ranges] = 2
    counts[lists] = lengths
    start = starts(counts)
    drawn = np.empty(start[-1], np.int64)
    drawn[start[single]] = values(attributes, attribute[single], of(single, "value"))
    drawn[np.repeat(start[lists], lengths) + within(lengths)] = listed
    sizes = np.array([each.size for each in attributes], np.int64)[attribute[ranges]]
    own = of(ranges, "range")
    shares = narrow + (wide - narrow) * uniform(own)
    width = np.maximum(np.round(shares * sizes).astype(np.int64), 1)
    low = np.floor(uniform(own, draw=1) * (sizes - width + 1)).astype(np.int64)
    drawn[start[ranges]], drawn[start[ranges] + 1] = low, low + width - 1
    return start, drawn


def _lists(attributes: Sequence[Attribute], attribute: Ints, key: Key, most: int) -> tuple[Ints, Ints]:
    """Draw lists of 2 to `most` values; return their lengths, and the values, ascending in each list.

    A value drawn again is dropped, but a list keeps two.
    """
    wanted = integers(key, 2, most + 1)
    address = np.repeat(key.rows * LONGEST, wanted) + within(wanted)
    drawn = values(
        attributes, np.repeat(attribute, wanted), key._replace(column=f"{key.column} value", rows=address)
    )
    end = 1 << 40
    table = np.full((len(attribute), LONGEST), end, np.int64)
    table[np.arange(LONGEST) < wanted[:, None]] = drawn
    sizes = np.array([each.size for each in attributes], np.int64)[attribute]
    table[:, 1] = np.where(table[:, 1] == table[:, 0], (table[:, 0] + 1) % sizes, table[:, 1])
    order, back = _orders(attributes)
    real = table < end
    is_text = np.array([each.is_text for each in attributes])[attribute][:, None] & real
    table[is_text] = order[table[is_text]]
    table.sort(axis=1)
    kept = table < end
    kept[:, 1:] &= table[:, 1:] != table[:, :-1]
    is_text = np.broadcast_to(is_text[:, :1], table.shape) & kept
    table[is_text] = back[table[is_text]]
    return kept.sum(axis=1), table[kept]


def _orders(attributes: Sequence[Attribute]) -> tuple[Ints, Ints]:
    """Return the place of each value among the texts, and the value at each place."""
    order = text_order(max(each.size for each in attributes))
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return order, back


SUBSCRIPTION_SCHEMA = pa.schema(
    [pa.field("id", pa.string(), nullable=False), pa.field("filter", pa.string(), nullable=False)]
)


class SpecifiedWorkload(ABC):
    """Filters and events over attributes; each row depends on its number and the seed alone."""

    table: ClassVar[str]
    """The name of the tables that values are drawn for; variants of one name share their draws."""

    @property
    @abstractmethod
    def attributes(self) -> tuple[Attribute, ...]:
        """List the attributes of events, in the order of the specification."""

    @abstractmethod
    def specification(self, rows: Ints, seed: int) -> Specification:
        """Draw the filters with the given row numbers."""

    def numbers(self, rows: Ints, seed: int) -> Ints:
        """Draw events as numbers: a row each, a column for each attribute, -1 where the event lacks it."""
        rows = np.asarray(rows, np.int64)
        return numbers(self.attributes, lambda column: Key(seed, f"{self.table} events", column, rows))

    def values(self, rows: Ints, seed: int) -> list[pa.Array[Any]]:
        """Draw the columns of events that are attributes."""
        columns = []
        for attribute, drawn in zip(self.attributes, self.numbers(rows, seed).T, strict=True):
            column: pa.Array[Any] = pa.array(drawn, mask=drawn < 0)
            columns.append(glue("v", pc.cast(column, pa.string())) if attribute.is_text else column)
        return columns

    def schema_with(self, *names: str) -> pa.Schema:
        """Describe the columns of events: some texts, then the attributes."""
        fields = [
            pa.field(each.name, pa.string() if each.is_text else pa.int64()) for each in self.attributes
        ]
        return pa.schema([*(pa.field(name, pa.string(), nullable=False) for name in names), *fields])


class Synthetic(SpecifiedWorkload):
    """A workload of nothing but subscriptions and events."""

    def subscriptions(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the subscriptions with the given row numbers."""
        rows = np.asarray(rows, np.int64)
        filters = texts(self.specification(rows, seed))
        return pa.RecordBatch.from_arrays([numbered("filter-", rows, 7), filters], schema=SUBSCRIPTION_SCHEMA)

    def subscription_schema(self) -> pa.Schema:
        """Describe the columns of `subscriptions`."""
        return SUBSCRIPTION_SCHEMA

    def events(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the events with the given row numbers."""
        rows = np.asarray(rows, np.int64)
        columns = [numbered("event-", rows, 7), *self.values(rows, seed)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema())

    def schema(self) -> pa.Schema:
        """Describe the columns of `events`."""
        return self.schema_with("id")
