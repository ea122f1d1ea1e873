"""What specified workloads draw: attributes, operands, and the values of events.

Predicates and operands have numbers of their own, computed from the filter's row and their place in the
filter, and are drawn for these as columns are for rows (see `hashing`). So only what exists is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.records.programs.programs import starts
from headgate.workloads.hashing import Key, integers, uniform, zipf_rank
from headgate.workloads.records.specification import Operator, text_order, within

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from headgate.workloads.records.specification import Attribute

    Ints = NDArray[np.int64]

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
    found = np.empty((len(key.rows), count), np.int64)
    taken: list[Ints] = []
    for place in range(count):
        given = first if place == 0 else None
        drawn = integers(key, 0, choices - place, draw=place) if given is None else given
        for other in taken:
            # From the lowest up: the n-th free number is found by stepping over those taken.
            drawn = drawn + (drawn >= other)
        found[:, place] = drawn
        _insert(taken, drawn)
    return found


def _insert(ordered: list[Ints], new: Ints) -> None:
    """Add a column to columns that ascend in each row."""
    for at, other in enumerate(ordered):
        ordered[at], new = np.minimum(other, new), np.maximum(other, new)
    ordered.append(new)


def values(attributes: Sequence[Attribute], attribute: Ints, key: Key) -> Ints:
    """Draw a value of the given attribute for each row of the key."""
    found = np.empty(len(attribute), np.int64)
    for number in np.unique(attribute).tolist():
        (at,) = np.nonzero(attribute == number)
        found[at] = _value(attributes[number], key._replace(rows=key.rows[at]))
    return found


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
    attributes: Sequence[Attribute],
    attribute: Ints,
    operator: NDArray[np.uint8],
    key: Key,
    law: OperandLaw,
) -> tuple[Ints, Ints]:
    """Draw the operands of predicates, a row of the key each; return where they start, and them.

    Values of equalities and lists follow the law of their attribute, as those of events do.
    """
    most, narrow, wide = law
    kinds = np.array([0 if each.is_list else 2 if each.is_range else 1 for each in Operator])[operator]
    ends = np.isin(operator, [Operator.GE, Operator.LE])
    (single,) = np.nonzero((kinds == 1) | ends)
    (ranges,) = np.nonzero((kinds == 2) & ~ends)
    (lists,) = np.nonzero(kinds == 0)

    def of(at: Ints, column: str) -> Key:
        return key._replace(column=column, rows=key.rows[at])

    lengths, listed = _lists(attributes, attribute[lists], of(lists, "list"), most)
    counts = np.ones(len(operator), np.int64)
    counts[ranges] = 2
    counts[lists] = lengths
    start = starts(counts)
    found = np.empty(start[-1], np.int64)
    found[start[single]] = values(attributes, attribute[single], of(single, "value"))
    found[np.repeat(start[lists], lengths) + within(lengths)] = listed
    sizes = np.array([each.size for each in attributes], np.int64)[attribute[ranges]]
    own = of(ranges, "range")
    shares = narrow + (wide - narrow) * uniform(own)
    width = np.maximum(np.round(shares * sizes).astype(np.int64), 1)
    low = np.floor(uniform(own, draw=1) * (sizes - width + 1)).astype(np.int64)
    found[start[ranges]], found[start[ranges] + 1] = low, low + width - 1
    return start, found


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
