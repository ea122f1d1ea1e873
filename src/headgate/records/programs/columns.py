"""Filters of a family (`families`) to programs by columns: what one of them is made of, all are.

The first text is cut into clauses and these are asked about (`shapes`, `clauses`), once for all. Then a
clause that compares an attribute with numbers is, for all texts at once, a range of keys on each facet; the
others are the same leaf in every text. What `compile_filter` would merge is intersected: several comparisons
of one attribute under the only AND. Texts in which nothing is left of a leaf are for others to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.core.interning import TextPool
from headgate.core.jit import kernel
from headgate.records.programs import clauses
from headgate.records.programs.decimals import double_numbers
from headgate.records.programs.families import read_numbers
from headgate.records.programs.leaf_writer import LeafWriter
from headgate.records.programs.leaves import Facet, float_keys
from headgate.records.programs.programs import VALUE, Programs, starts
from headgate.records.programs.shapes import CLAUSE, path_of
from headgate.records.programs.tokens import AND, OR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.core.arrays import Ints
    from headgate.core.values import Path
    from headgate.records.programs.clauses import Atom
    from headgate.records.programs.families import Family
    from headgate.records.programs.shapes import Shape, Skeleton

    Flags = NDArray[np.bool_]

_WHOLE = (Facet.INT, Facet.FLOAT, Facet.STRING_INT, Facet.DECIMAL)
_FRACTION = (Facet.INT, Facet.FLOAT, Facet.STRING_FLOAT, Facet.DECIMAL)
BETWEEN = "between"
_OPS = {"=": "=", "==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class Slot(NamedTuple):
    """A clause of a family: a leaf that all texts have, or a comparison with the numbers at some places.

    `fraction` tells that these have a point.
    """

    path: Path
    leaf: Atom | None
    op: str = ""
    numbers: tuple[int, ...] = ()
    fraction: bool = False

    @property
    def facets(self) -> tuple[Facet, ...]:
        """Return the facets that the numbers are compared on, in order."""
        return _FRACTION if self.fraction else _WHOLE


def read_slots(shape: Shape, count: int) -> list[Slot] | None:
    """Tell what the clauses of a family are, given one text and how many numbers it has; None if unknown."""
    if any(clauses.model_of[clause] is None for clause in shape.clauses):
        return None
    _, numbers = read_numbers(TextPool.build(shape.clauses))
    if numbers.start[-1] != count:
        return None
    read: list[Slot] = []
    for clause, role, first, last in zip(
        shape.clauses,
        shape.skeleton.roles,
        numbers.start[:-1].tolist(),
        numbers.start[1:].tolist(),
        strict=True,
    ):
        if first == last:
            slot = _constant(clause, negated=role.negated)
        else:
            slot = (
                None if role.negated else _comparison(clause, range(first, last), numbers.scale[first:last])
            )
        sign = 0 if slot is None else slot.leaf.sign if slot.leaf else AND if slot.op == BETWEEN else 0
        if slot is None or sign not in {0, role.sign}:
            return None
        read.append(slot)
    return read


def _constant(clause: str, *, negated: bool) -> Slot | None:
    atom = clauses.atom_of[negated][clause]
    return None if atom is None else Slot(atom.leaf.path, atom)


def _comparison(clause: str, numbers: Sequence[int], scale: NDArray[np.uint8]) -> Slot | None:
    pieces = CLAUSE.fullmatch(clause)
    path = path_of[pieces["name"]] if pieces is not None and pieces["name"] else None
    points = scale > 0
    if pieces is None or path is None or points.any() != points.all():
        return None
    fraction = bool(points[0])
    if pieces["low"] and not pieces["negated"] and len(numbers) == 2:
        return Slot(path, None, BETWEEN, tuple(numbers), fraction)
    op = _OPS.get(pieces["op"] or "")
    if op is None or len(numbers) != 1 or (op == "=" and fraction):
        return None
    return Slot(path, None, op, tuple(numbers), fraction)


class Ranges(NamedTuple):
    """Leaves of one slot: by text and facet the lowest and the highest key; none if the low is above."""

    low: Ints
    high: Ints

    def both(self, other: Ranges) -> Ranges:
        """Intersect with those of another slot."""
        return Ranges(np.maximum(self.low, other.low), np.minimum(self.high, other.high))


def ranges(slot: Slot, family: Family) -> Ranges:
    """Return what a slot lets through, for every text."""
    ends = [_keys(family.mantissa[:, n], family.scale[:, n], fraction=slot.fraction) for n in slot.numbers]
    above, below = ends[0], ends[-1]
    whole = (len(family.rows), len(slot.facets))
    low, high = np.full(whole, INT64_MIN), np.full(whole, INT64_MAX)
    if slot.op in {BETWEEN, "=", ">="}:
        low = above.at_least
    elif slot.op == ">":
        low = above.at_most + 1
    if slot.op in {BETWEEN, "=", "<="}:
        high = below.at_most
    elif slot.op == "<":
        high = below.at_least - 1
    return Ranges(low, high)


class _Keys(NamedTuple):
    """By number and facet: the first key that is not below it, the last that is not above it."""

    at_least: Ints
    at_most: Ints


def _keys(mantissa: Ints, scale: NDArray[np.uint8], *, fraction: bool) -> _Keys:
    unit = 10 ** scale.astype(np.int64)
    # Both have at most 15 digits, so the quotient is the double that is nearest to the decimal.
    double = mantissa / unit.astype(np.float64)
    key, decimal = float_keys(double), 3 * double_numbers(double) + 1
    floor, ceiling = mantissa // unit, -(-mantissa // unit)
    strings = key if fraction else mantissa
    return _Keys(
        np.stack([ceiling, key, strings, decimal], axis=1), np.stack([floor, key, strings, decimal], axis=1)
    )


class _Leaf(NamedTuple):
    """A leaf of every text of a family: the same one, or ranges."""

    number: int
    ranges: Ranges | None
    facets: tuple[Facet, ...]
    path: Path


def compile_family(shape: Shape, slots: Sequence[Slot], family: Family) -> tuple[Programs, Flags] | None:
    """Compile all texts; returns programs, and which they are of. None if leaves may merge otherwise."""
    joined = _joined(shape.skeleton, slots)
    if joined is None:
        return None
    order, tokens = joined
    writer = LeafWriter()
    leaves: list[_Leaf] = []
    good = np.ones(len(family.rows), np.bool_)
    for members in order:
        first = slots[members[0]]
        if first.leaf is not None:
            leaves.append(_Leaf(writer.leaf(first.leaf.leaf), None, (), first.path))
            continue
        shared = ranges(first, family)
        for other in members[1:]:
            shared = shared.both(ranges(slots[other], family))
        good &= shared.low[:, 1] <= shared.high[:, 1]
        leaves.append(_Leaf(-1, shared, first.facets, first.path))
    if not good.all():
        leaves = [
            leaf
            if leaf.ranges is None
            else leaf._replace(ranges=Ranges(*(ends[good] for ends in leaf.ranges)))
            for leaf in leaves
        ]
    return lay_out(writer, leaves, tokens, int(good.sum())), good


def _joined(skeleton: Skeleton, slots: Sequence[Slot]) -> tuple[list[list[int]], list[int]] | None:
    """Put slots together that are one leaf; returns these, and the tokens over them."""
    paths = [slot.path for slot in slots]
    if len(set(paths)) == len(paths):
        return [[slot] for slot in range(len(slots))], list(skeleton.fill([*range(len(slots)), AND, OR]))
    if len(skeleton.groups) > 1 or skeleton.roles[0].sign != AND:
        return None
    members: dict[Path, list[int]] = {}
    for place, path in enumerate(paths):
        members.setdefault(path, []).append(place)
    for places in members.values():
        own = [slots[place] for place in places]
        if len(own) > 1 and (any(slot.leaf for slot in own) or len({slot.fraction for slot in own}) > 1):
            return None
    tokens = [0]
    for leaf in range(1, len(members)):
        tokens += [leaf, AND]
    return list(members.values()), tokens


def lay_out(writer: LeafWriter, leaves: Sequence[_Leaf], tokens: Sequence[int], count: int) -> Programs:
    """Lay programs of one form end to end: the writer's leaves first, then the distinct ones of each slot."""
    common = writer.finish((), ())
    attributes = list(common.attributes)
    lengths, facets = [np.diff(common.range_start)], [common.range_facet]
    lows, highs = [common.range_low], [common.range_high]
    owners, numbers = [common.leaf_attribute], []
    total = common.leaves
    for leaf in leaves:
        if leaf.ranges is None:
            numbers.append(np.full(count, leaf.number, np.int64))
            continue
        if leaf.path not in attributes:
            attributes.append(leaf.path)
        number, first = distinct_rows(np.concatenate(leaf.ranges, axis=1))
        low, high = leaf.ranges.low[first], leaf.ranges.high[first]
        some = low <= high
        lengths.append(some.sum(axis=1))
        facets.append(np.tile(np.array(leaf.facets, np.uint8), (len(first), 1))[some])
        lows.append(low[some])
        highs.append(high[some])
        owners.append(np.full(len(first), attributes.index(leaf.path), np.int32))
        numbers.append(total + number)
        total += len(first)
    written = np.empty((count, len(tokens)), np.int32)
    for n, token in enumerate(tokens):
        written[:, n] = numbers[token] if token >= 0 else token
    fresh = total - common.leaves
    return common._replace(
        token_start=np.arange(count + 1, dtype=np.int64) * len(tokens),
        tokens=written.ravel(),
        leaf_kind=np.concatenate([common.leaf_kind, np.full(fresh, VALUE, np.uint8)]),
        leaf_attribute=np.concatenate(owners),
        leaf_on_null=np.concatenate([common.leaf_on_null, np.zeros(fresh, np.uint8)]),
        range_start=starts(np.concatenate(lengths)),
        range_facet=np.concatenate(facets),
        range_low=np.concatenate(lows),
        range_high=np.concatenate(highs),
        glob_start=np.concatenate([common.glob_start, np.full(fresh, common.glob_start[-1])]),
        attributes=tuple(attributes),
    )


def distinct_rows(rows: Ints) -> tuple[Ints, Ints]:
    """Number equal rows alike, in the order of their first appearance; returns the numbers, and the firsts.

    >>> number, first = distinct_rows(np.array([[5, 1], [5, 2], [5, 1]]))
    >>> number.tolist(), first.tolist()
    ([0, 1, 0], [0, 1])
    """
    number, first = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    slots = np.full(1 << max(4, (2 * len(rows)).bit_length()), -1, np.int64)
    count = _number_rows(np.ascontiguousarray(rows), slots, number, first)
    return number, first[:count].copy()


@kernel
def _number_rows(rows: Ints, slots: Ints, number: Ints, first: Ints) -> int:
    count, mask = 0, np.uint64(len(slots) - 1)
    for r in range(len(rows)):
        code = np.uint64(0)
        for c in range(rows.shape[1]):
            code = (code ^ np.uint64(rows[r, c])) * np.uint64(0x9E3779B97F4A7C15)
            code ^= code >> np.uint64(32)
        slot = np.int64(code & mask)
        while True:
            known = slots[slot]
            if known < 0:
                slots[slot] = count
                first[count] = r
                number[r] = count
                count += 1
                break
            same = True
            for c in range(rows.shape[1]):
                if rows[r, c] != rows[first[known], c]:
                    same = False
                    break
            if same:
                number[r] = known
                break
            slot = np.int64(np.uint64(slot + 1) & mask)
    return count
