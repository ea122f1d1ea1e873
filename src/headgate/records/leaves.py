"""Predicates made ready for arrays: value sets by facet, and patterns.

Leaves are structs of msgspec: hashable, and turned to bytes and back, since Spark's workers parse filters
and the driver builds the arrays.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec

from headgate.records.facets import FACETS_OF_KIND, Facet, line
from headgate.records.intervals import Intervals, complement, intersection, union

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


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
    return {facet: complement(line(facet), found) for facet, found in sets.items()}


def both(left: SetLeaf, right: SetLeaf) -> SetLeaf | None:
    """Make the leaf of `left AND right` over one attribute, or None where one leaf cannot say it.

    A text may satisfy `a > 5` as a number and `a < 'x'` as a text; intersecting facet by facet would lose
    it. So each kind of value must meet both leaves on the same single facet.
    """
    ours, theirs = ({facet for facet, _ in leaf.sets} for leaf in (left, right))
    for seen in FACETS_OF_KIND:
        here, there = ours & seen, theirs & seen
        if here and there and not (here == there and len(here) == 1):
            return None
    return _combine(left, right, intersection, on_null=left.on_null and right.on_null)


def either(left: SetLeaf, right: SetLeaf) -> SetLeaf:
    """Make the leaf of `left OR right` over one attribute."""
    return _combine(left, right, union, on_null=left.on_null or right.on_null)


def _combine(
    left: SetLeaf, right: SetLeaf, join: Callable[[Intervals, Intervals], Intervals], *, on_null: bool
) -> SetLeaf:
    ours, theirs = dict(left.sets), dict(right.sets)
    sets = {facet: join(ours.get(facet, ()), theirs.get(facet, ())) for facet in {*ours, *theirs}}
    return value_leaf(left.path, sets, on_null=on_null)


def _pack(sets: Mapping[Facet, Intervals]) -> tuple[tuple[Facet, Intervals], ...]:
    return tuple((facet, found) for facet, found in sorted(sets.items()) if found)
