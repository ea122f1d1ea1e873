"""Which line a leaf is on.

A leaf sees a value on at most one facet of each string cast. So an attribute has one line for each way in
which strings are cast, its *side*; a leaf that casts strings in several ways is divided, one part for each.
Leaves that see all digits of decimals have lines of their own, since a value has one place on a line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.records.programs.leaves import Facet
from headgate.records.programs.programs import ALL, GLOB, starts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.core.arrays import Bytes, Ints, Ints32
    from headgate.records.programs.programs import Programs


MAX = np.int64(2**63 - 1)
APART = 64
"""Added to a side: the line of leaves whose facets cannot be cut together."""
LONG = 32
"""Added to a side: the line of leaves with literals of so many digits that decimals are compared as texts."""

TOGETHER = {
    Facet.STRING: (Facet.STRING,),
    Facet.STRING_BOOL: (Facet.BOOL, Facet.STRING_BOOL),
    Facet.STRING_INT: (Facet.INT, Facet.FLOAT, Facet.STRING_INT, Facet.DECIMAL),
    Facet.STRING_FLOAT: (Facet.INT, Facet.FLOAT, Facet.STRING_FLOAT, Facet.DECIMAL),
    Facet.STRING_DATE: (Facet.TIMESTAMP, Facet.STRING_DATE),
    Facet.STRING_TIMESTAMP: (Facet.TIMESTAMP, Facet.STRING_TIMESTAMP),
    Facet.TEXT: (Facet.TEXT,),
}
_LONG_FACET = int(Facet.LONG_DECIMAL)
_IS_SIDE = np.zeros(len(Facet), np.uint8)
_IS_SIDE[[int(side) for side in TOGETHER]] = 1
_HOME = np.zeros(len(Facet), np.uint8)
"""The side that a facet belongs to when its leaf has none: whole numbers to texts cast to them."""
for _facet, _side in (
    (Facet.INT, Facet.STRING_INT),
    (Facet.FLOAT, Facet.STRING_INT),
    (Facet.DECIMAL, Facet.STRING_INT),
    (Facet.LONG_DECIMAL, Facet.STRING_INT),
    (Facet.BOOL, Facet.STRING_BOOL),
    (Facet.TIMESTAMP, Facet.STRING_TIMESTAMP),
):
    _HOME[_facet] = _side
_MEMBER = np.zeros((len(Facet), len(Facet)), np.uint8)
for _side, _facets in TOGETHER.items():
    for _facet in _facets:
        _MEMBER[_side, _facet] = 1


class Split(NamedTuple):
    """Leaves divided by side: leaf l has the parts part_start[l]:part_start[l + 1].

    range_part[r]   the part that range r goes to
    name[p]         of the line of a part: (attribute, elements or not, side) as one number; -1 for patterns
    """

    part_start: Ints
    part_leaf: Ints32
    range_part: Ints
    name: Ints


def split_leaves(programs: Programs) -> Split:
    """Divide all leaves."""
    most = programs.leaves + len(programs.range_facet)
    part_count = np.zeros(programs.leaves, np.int64)
    part_side = np.zeros(most, np.uint8)
    range_part = np.zeros(len(programs.range_facet), np.int64)
    count = _split(
        programs.range_start,
        programs.range_facet,
        programs.leaf_kind,
        _IS_SIDE,
        _HOME,
        _MEMBER,
        part_count,
        part_side,
        range_part,
    )
    part_leaf = np.repeat(np.arange(programs.leaves, dtype=np.int32), part_count)
    names = _line_names(programs, part_leaf, part_side[:count], range_part)
    return Split(starts(part_count), part_leaf, range_part, names)


@kernel
def _split(
    range_start: Ints,
    range_facet: Bytes,
    leaf_kind: Bytes,
    is_side: Bytes,
    home: Bytes,
    member: Bytes,
    part_count: Ints,
    part_side: Bytes,
    range_part: Ints,
) -> int:
    """Divide each leaf by side; part_side 0 is one that any side would do for. Returns the parts."""
    parts = 0
    sides = np.empty(16, np.uint8)
    for leaf in range(len(leaf_kind)):
        first, last = range_start[leaf], range_start[leaf + 1]
        side_count, extra = 0, 0
        for r in range(first, last):
            facet = range_facet[r]
            if facet == _LONG_FACET:
                extra = LONG
            if is_side[facet] and (side_count == 0 or sides[side_count - 1] != facet):
                sides[side_count] = facet
                side_count += 1
        if side_count == 0:
            sides[0] = 0
            for r in range(first, last):
                if home[range_facet[r]]:
                    sides[0] = home[range_facet[r]]
                    break
            side_count = 1
        for k in range(side_count):
            part_side[parts + k] = sides[k] + extra
        for r in range(first, last):
            facet = range_facet[r]
            at = 0
            for k in range(side_count):
                if sides[k] == facet or (member[sides[k], facet] and not member[sides[at], facet]):
                    at = k
                    if sides[k] == facet:
                        break
            range_part[r] = parts + at
        part_count[leaf] = side_count
        parts += side_count
    return parts


def _line_names(
    programs: Programs, part_leaf: np.ndarray, part_side: np.ndarray, range_part: np.ndarray
) -> np.ndarray:
    """Name the line of each part: attribute, elements or not, side; -1 for patterns."""
    kind = programs.leaf_kind[part_leaf]
    multi = (kind > 0) & (kind <= ALL)
    base = (programs.leaf_attribute[part_leaf].astype(np.int64) * 2 + multi) * (2 * APART)
    # Parts that any side would do for join the line that their attribute has most of.
    free = (part_side == 0) & (kind < GLOB)
    if free.any():
        named, counts = np.unique(
            base[~free & (kind < GLOB)] + part_side[~free & (kind < GLOB)], return_counts=True
        )
        best: dict[int, int] = {}
        for position in np.argsort(counts, kind="stable").tolist():
            best[int(named[position]) // (2 * APART)] = int(named[position])
        wanted = base[free] // (2 * APART)
        distinct, inverse = np.unique(wanted, return_inverse=True)
        fallback = np.array(
            [best.get(int(owner), int(owner) * 2 * APART + Facet.STRING) for owner in distinct], np.int64
        )
        base[free] = fallback[inverse]
    names: np.ndarray = np.where(free, base, base + part_side)
    names[kind >= GLOB] = -1
    names[_unalignable(programs, names, range_part)] += APART
    return names


def _groups() -> Iterator[tuple[int, tuple[Facet, ...]]]:
    for side, group in TOGETHER.items():
        yield int(side), group
        yield side + LONG, group


def _unalignable(programs: Programs, names: np.ndarray, range_part: np.ndarray) -> np.ndarray:
    """Tell the parts whose facets are not cut at as many places, or do not all end at the top."""
    bad = np.zeros(len(names), bool)
    side = np.where(names >= 0, names % APART, 0)
    for own, group in _groups():
        if len(group) == 1 or not (side == own).any():
            continue
        inside = (side[range_part] == own) & np.isin(programs.range_facet, [int(facet) for facet in group])
        owner, facet = range_part[inside], programs.range_facet[inside]
        at_top = programs.range_high[inside] == MAX
        counts = np.array([np.bincount(owner[facet == f], minlength=len(names)) for f in group])
        tops = np.array([np.bincount(owner[(facet == f) & at_top], minlength=len(names)) for f in group])
        # Element leaves have no cast strings; a facet that no part of the side uses does not count.
        elements = (names >= 0) & ((names // (2 * APART)) % 2 == 1)
        for where in (elements, ~elements):
            mine = (side == own) & where
            used = counts[:, mine].any(axis=1)
            if used.any():
                some = counts[used][:, mine]
                ends = tops[used][:, mine]
                bad[mine] |= (some != some[0]).any(axis=0) | (ends != ends[0]).any(axis=0)
    return bad
