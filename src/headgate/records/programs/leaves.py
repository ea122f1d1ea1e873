"""Predicates made ready for arrays: value sets by facet, the sides of values they look at, patterns.

Leaves are structs of msgspec: hashable, and turned to bytes and back, since Spark's workers parse filters
and the driver builds the arrays.
"""

from __future__ import annotations

import math
import struct
from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from headgate.core.values import Kind
from headgate.records.programs.intervals import NUMBERS, TEXTS, Intervals, complement, intersection, union

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headgate.core.arrays import Floats64, Ints
    from headgate.records.programs.intervals import Interval


_DOUBLE = struct.Struct("<d")
_BITS = struct.Struct("<q")


class Facet(IntEnum):
    """One view of a value."""

    PRESENT = 0
    ARRAY = 1
    BOOL = 2
    INT = 3
    FLOAT = 4
    STRING = 5
    TIMESTAMP = 6
    STRING_BOOL = 7
    STRING_INT = 8
    STRING_FLOAT = 9
    STRING_DATE = 10
    STRING_TIMESTAMP = 11
    TEXT = 12
    DECIMAL = 13
    LONG_DECIMAL = 14
    """All digits of a decimal, for literals of more than 15."""


TEXT_FACETS = frozenset({Facet.STRING, Facet.TEXT, Facet.LONG_DECIMAL})
"""Facets whose keys are places among texts."""

OWN = {
    Facet.BOOL: Kind.BOOL,
    Facet.INT: Kind.INT,
    Facet.FLOAT: Kind.FLOAT,
    Facet.DECIMAL: Kind.DECIMAL,
    Facet.TIMESTAMP: Kind.TIMESTAMP,
}
"""Facets whose keys are the numbers of values of one kind."""
FACETS_OF_KIND: dict[Kind, frozenset[Facet]] = {
    Kind.BOOL: frozenset({Facet.PRESENT, Facet.BOOL, Facet.TEXT}),
    Kind.INT: frozenset({Facet.PRESENT, Facet.INT, Facet.TEXT}),
    Kind.FLOAT: frozenset({Facet.PRESENT, Facet.FLOAT}),
    Kind.STRING: frozenset(Facet) - {Facet.ARRAY, Facet.LONG_DECIMAL, *OWN},
    Kind.TIMESTAMP: frozenset({Facet.PRESENT, Facet.TIMESTAMP}),
    Kind.ARRAY: frozenset({Facet.PRESENT, Facet.ARRAY}),
    Kind.OBJECT: frozenset({Facet.PRESENT}),
    Kind.DECIMAL: frozenset({Facet.PRESENT, Facet.DECIMAL, Facet.LONG_DECIMAL}),
}
"""The facets that values of a kind are seen on."""


def line(facet: Facet) -> Interval:
    """Return the whole line of a facet's keys."""
    return TEXTS if facet in TEXT_FACETS else NUMBERS


def float_keys(values: Floats64) -> Ints:
    """Map doubles to whole numbers in Spark's order: -0.0 is 0.0, NaN equals NaN and comes last.

    >>> keys = float_keys(np.array([-1.0, -0.0, 0.0, 2.5, np.inf, np.nan]))
    >>> bool((np.diff(keys) >= 0).all()), keys[1] == keys[2]
    (True, np.True_)
    """
    canonical = np.where(np.isnan(values), np.nan, values + 0.0)
    bits = canonical.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def float_key(value: float) -> int:
    """Map one double.

    >>> float_key(-2.5) == float_keys(np.array([-2.5]))[0]
    np.True_
    """
    bits: int = _BITS.unpack(_DOUBLE.pack(math.nan if math.isnan(value) else value + 0.0))[0]
    return bits ^ 2**63 - 1 if bits < 0 else bits


class Quantifier(IntEnum):
    """Which values of an attribute must lie in the set."""

    VALUE = 0
    ANY = 1
    """Some element of the array."""
    ALL = 2
    """Every element, and the attribute is an array; NULL elements lie in no set."""


class SetLeaf(msgspec.Struct, frozen=True, array_like=True, tag="set"):
    """True when the value's key lies in the set of its facet, or the value is NULL and `on_null`."""

    quantifier: Quantifier
    path: tuple[str, ...]
    on_null: bool
    sets: tuple[tuple[Facet, Intervals], ...]


class GlobLeaf(msgspec.Struct, frozen=True, array_like=True, tag="glob"):
    """True when the value's text fits the pattern: bytes of UTF-8, -1 for `%`, -2 for `_`."""

    path: tuple[str, ...]
    negated: bool
    tokens: tuple[int, ...]


Leaf = SetLeaf | GlobLeaf


def value_leaf(path: tuple[str, ...], sets: Mapping[Facet, Intervals], *, on_null: bool = False) -> SetLeaf:
    """Make a leaf over the value itself; facets with empty sets vanish."""
    return SetLeaf(Quantifier.VALUE, path, on_null, _pack(sets))


def element_leaf(path: tuple[str, ...], quantifier: Quantifier, sets: Mapping[Facet, Intervals]) -> SetLeaf:
    """Make a leaf over the elements of an array."""
    return SetLeaf(quantifier, path, False, _pack(sets))


def never(leaf: Leaf) -> bool:
    """Tell whether no value makes a leaf true; ALL over nothing is true of the empty array."""
    return (
        isinstance(leaf, SetLeaf)
        and not leaf.sets
        and not leaf.on_null
        and leaf.quantifier is not Quantifier.ALL
    )


def outside(sets: Mapping[Facet, Intervals]) -> dict[Facet, Intervals]:
    """Complement each set on the line of its facet."""
    return {facet: complement(line(facet), inner) for facet, inner in sets.items()}


def both(left: SetLeaf, right: SetLeaf) -> SetLeaf | None:
    """Make the leaf of `left AND right` over one attribute, or None where one leaf cannot say it.

    A text may satisfy `a > 5` as a number and `a < 'x'` as a text; intersecting facet by facet would lose
    it. So each kind of value must meet both leaves on the same single facet.
    """
    ours, theirs = ({facet for facet, _ in leaf.sets} for leaf in (left, right))
    for seen in FACETS_OF_KIND.values():
        here, there = ours & seen, theirs & seen
        if here and there and not (here == there and len(here) == 1):
            return None
    return _combine(left, right, intersection, on_null=left.on_null and right.on_null)


def either(left: SetLeaf, right: SetLeaf) -> SetLeaf | None:
    """Make the leaf of `left OR right` over one attribute, or None where decimals would have two facets."""
    if {Facet.DECIMAL, Facet.LONG_DECIMAL} <= {facet for leaf in (left, right) for facet, _ in leaf.sets}:
        return None
    return _combine(left, right, union, on_null=left.on_null or right.on_null)


def _combine(
    left: SetLeaf, right: SetLeaf, join: Callable[[Intervals, Intervals], Intervals], *, on_null: bool
) -> SetLeaf:
    ours, theirs = dict(left.sets), dict(right.sets)
    sets = {facet: join(ours.get(facet, ()), theirs.get(facet, ())) for facet in {*ours, *theirs}}
    return value_leaf(left.path, sets, on_null=on_null)


def _pack(sets: Mapping[Facet, Intervals]) -> tuple[tuple[Facet, Intervals], ...]:
    return tuple((facet, ranges) for facet, ranges in sorted(sets.items()) if ranges)
