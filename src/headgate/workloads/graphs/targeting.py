"""Filters of a wanted selectivity: what networks, advertisers and readers ask of an event.

A filter has one to three conjunctions, a conjunction two or three predicates over different attributes. A
filter is to hold for the part s of events, so each of its k conjunctions for q = 1 - (1 - s) ** (1 / k), and
each of the m predicates of a conjunction for q ** (1 / m). A predicate names whole values, so it misses
that; the attributes are taken from the fewest values to the most, and each makes up for those before.

    topic IN ('v3', 'v31', 'v8') AND hour BETWEEN 7 AND 15
    (age >= 30 AND gender = 'v2') OR (hour NOT BETWEEN 6 AND 21 AND device IN ('v0', 'v5'))

Lists and ranges begin anywhere and go around the end, where a range becomes NOT BETWEEN. So each value is
named as often as any other, and events differ little in how many filters they match.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.records.programs.programs import starts
from headgate.workloads.columns import Key, bits, integers, uniform, weighted
from headgate.workloads.records.specification import Operator, Specification, text_order, within
from headgate.workloads.records.synthetic import distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.arrays import Bytes
    from headgate.workloads.columns import Floats, Ints
    from headgate.workloads.records.specification import Attribute


LISTED = 128
"""A text attribute with more values cannot be narrowed by a list of reasonable length."""

_BY_CONJUNCTIONS = (0, 50, 30, 20)
_BY_PREDICATES = (0, 0, 55, 45)
_CONJUNCTIONS, _PLACES = 4, 4
"""Numbers kept for the conjunctions of one filter, and for the predicates of one conjunction."""
_MOST_REFUSED = 8
_SHUFFLES = 1024


class _Predicates(NamedTuple):
    """Predicates before they are written: where they are drawn, over what, and how many values they name."""

    address: Ints
    attribute: Ints
    width: Ints


def targeting(attributes: Sequence[Attribute], selectivity: float, key: Key) -> Specification:
    """Draw a filter for each row of the key; events match the given part of them on average.

    The law of events must be uniform, with every attribute present. Three attributes at least must be
    numbers, or texts with no more than `LISTED` values.
    """
    rows = key.rows

    def of(column: str, rows: Ints) -> Key:
        return key._replace(column=column, rows=rows)

    conjunctions = weighted(of("conjunctions", rows), _BY_CONJUNCTIONS)
    turn = within(conjunctions)
    conjunction = np.repeat(rows, conjunctions) * _CONJUNCTIONS + turn
    sizes = weighted(of("predicates", conjunction), _BY_PREDICATES)
    able = np.array([n for n, each in enumerate(attributes) if _narrows(each)])
    # Conjunctions of a filter begin with different attributes, and each with one that can be narrowed.
    begins = distinct(of("begin", rows), len(_BY_CONJUNCTIONS) - 1, len(able))
    first = able[begins[np.repeat(np.arange(len(rows)), conjunctions), turn]]
    chosen = distinct(of("attributes", conjunction), len(_BY_PREDICATES) - 1, len(attributes), first)
    owner, position = np.repeat(np.arange(len(sizes)), sizes), within(sizes)
    attribute, address = chosen[owner, position], conjunction[owner] * _PLACES + position
    wanted = 1 - (1 - selectivity) ** (1 / np.repeat(conjunctions, conjunctions))
    width = _widths(attributes, attribute, owner, wanted, uniform(of("width", address)))
    operator, start, values = _operands(attributes, _Predicates(address, attribute, width), key)
    return Specification(
        tuple(attributes), starts(conjunctions), starts(sizes), attribute, operator, start, values
    )


def _narrows(attribute: Attribute) -> bool:
    return not attribute.is_text or attribute.size <= LISTED


def _widths(
    attributes: Sequence[Attribute], attribute: Ints, owner: Ints, wanted: Floats, points: Floats
) -> Ints:
    """Say how many values each predicate names, so that each conjunction holds as often as is wanted.

    For a text that cannot be narrowed it is how many values it refuses.
    """
    width = np.empty(len(attribute), np.int64)
    left, remaining = np.bincount(owner, minlength=len(wanted)), wanted.copy()
    for number in sorted(
        range(len(attributes)), key=lambda n: attributes[n].size if _narrows(attributes[n]) else 0
    ):
        size = attributes[number].size
        (at,) = np.nonzero(attribute == number)
        mine = owner[at]
        if _narrows(attributes[number]):
            share = np.minimum(remaining[mine], 1) ** (1 / left[mine])
            # Rounded up as often as what is left over says, so that the mean is right.
            width[at] = np.clip(np.floor(share * size + points[at]), 1, size - 1)
            held = width[at] / size
        else:
            width[at] = 1 + np.floor(points[at] * _MOST_REFUSED)
            held = 1 - width[at] / size
        remaining[mine] /= held
        left[mine] -= 1
    return width


def _operands(attributes: Sequence[Attribute], predicates: _Predicates, key: Key) -> tuple[Bytes, Ints, Ints]:
    """Draw what predicates compare with; return their operators, where operands start, and them."""
    operator = np.empty(len(predicates.attribute), np.uint8)
    counts = np.empty(len(predicates.attribute), np.int64)
    drawn: list[tuple[Ints, Ints]] = []
    for number, attribute in enumerate(attributes):
        (at,) = np.nonzero(predicates.attribute == number)
        own = key._replace(column=f"{attribute.name} values", rows=predicates.address[at])
        width = predicates.width[at]
        if attribute.is_text:
            yes = (Operator.EQ, Operator.IN) if _narrows(attribute) else (Operator.NE, Operator.NOT_IN)
            operator[at] = np.where(width == 1, *yes)
            counts[at] = width
            values = (_listed if _narrows(attribute) else _refused)(own, width, attribute.size)
        else:
            operator[at], counts[at], values = _ranged(own, width, attribute.size)
        drawn.append((at, values))
    start = starts(counts)
    operands = np.empty(start[-1], np.int64)
    for at, values in drawn:
        operands[np.repeat(start[at], counts[at]) + within(counts[at])] = values
    return operator, start, operands


def _ranged(key: Key, width: Ints, size: int) -> tuple[Bytes, Ints, Ints]:
    low = integers(key, 0, size)
    high = low + width - 1
    around = high >= size
    operator = np.full(len(low), Operator.BETWEEN, np.uint8)
    operator[around] = Operator.NOT_BETWEEN
    operator[low == 0] = Operator.LE
    operator[high == size - 1] = Operator.GE
    operator[width == 1] = Operator.EQ
    both = np.stack([np.where(around, high - size + 1, low), np.where(around, low - 1, high)], axis=1)
    ends = np.isin(operator, [Operator.BETWEEN, Operator.NOT_BETWEEN])
    kept = np.stack([ends | (operator != Operator.LE), ends | (operator == Operator.LE)], axis=1)
    return operator, kept.sum(axis=1), both[kept]


def _listed(key: Key, width: Ints, size: int) -> Ints:
    """Name `width` values in a row of a random order, from a random one of them."""
    shuffle, begin = integers(key, 0, _SHUFFLES), integers(key, 0, size, draw=1)
    places = (np.repeat(begin, width) + within(width)) % size
    return _ascending(_shuffles(size)[np.repeat(shuffle, width), places], width, size)


def _refused(key: Key, width: Ints, size: int) -> Ints:
    drawn = distinct(key, _MOST_REFUSED, size)
    return _ascending(drawn[np.arange(_MOST_REFUSED) < width[:, None]], width, size)


def _ascending(values: Ints, width: Ints, size: int) -> Ints:
    """Sort the values of each list as texts."""
    order = text_order(size)
    list_of = np.repeat(np.arange(len(width)) * size, width)
    sorted_places = np.sort(list_of + order[values]) - list_of
    return np.argsort(order)[sorted_places]


@lru_cache(maxsize=16)
def _shuffles(size: int) -> Ints:
    key = Key(0, "targeting", "shuffles", np.arange(_SHUFFLES * size))
    return np.argsort(bits(key).reshape(_SHUFFLES, size), axis=1)
