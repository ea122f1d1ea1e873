"""Programs to the code of a tail, with the points and guards that narrow the events they may hold for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from headgate.contents.growing import Growing
from headgate.records.programs.leaves import FACETS_OF_KIND, TEXT_FACETS, Facet, GlobLeaf, Quantifier
from headgate.records.programs.programs import TOP
from headgate.records.programs.tokens import AND, MAX_HEIGHT, TRUE
from headgate.records.tail import arrays as ops
from headgate.records.tail.arrays import OPS, SIZES
from headgate.records.tail.events import Sides, flags_of, text_hash
from headgate.records.tail.kernels import mix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.records.programs.intervals import Cut
    from headgate.records.programs.leaves import Leaf, SetLeaf
    from headgate.records.programs.tokens import Program
    from headgate.records.tail.events import Side

Point: TypeAlias = tuple[int, int]
"""A column and the hash of a key on it."""

Guard: TypeAlias = tuple[int, int, int, int]
"""A cost, the lower the better, then column, low and high as in `TailArrays`."""

MOST_POINTS = 96
"""Points of a cover: a list of 16 texts that are whole numbers has as many."""
WIDEST = 3
"""Keys of a range that are points, each: a double is so many keys of decimals."""
MOST_GUARDS = 8
"""Guards that are weighed against each other."""

_TEXTS = tuple(int(facet) for facet in TEXT_FACETS)
_BESIDE = [
    sum(
        1 << other
        for other in Facet
        if other != facet and any({facet, other} <= kind for kind in FACETS_OF_KIND)
    )
    for facet in Facet
]
"""Of each facet the others, one bit each, that a value can have at the same time."""
_FLAGS = [[flags_of(facet, element=element) for facet in Facet] for element in (False, True)]


class Cover(NamedTuple):
    """Points of a part of a filter, or None, how many entries they lead to by now, and guards of the part."""

    cost: int
    points: dict[Point, None] | None
    guards: tuple[Guard, ...]


NO_GUARD: Guard = (0, -1, 0, 0)
_OPEN = Cover(0, None, ())
_NEVER = Cover(0, {}, ())


class Coder:
    """Translates programs; what they name is numbered as it comes, in arrays that only grow."""

    def __init__(self) -> None:
        self.sides = Sides()
        self.columns = Growing(np.uint8)
        self.text_ends = Growing(np.int64)
        self.text_ends.append(0)
        self.text_data = Growing(np.uint8)
        self.globs = Growing(np.int16)
        self._texts: dict[str, tuple[int, int]] = {}
        self._sizes: Sequence[int] = ()

    def translate(self, program: Program, sizes: Sequence[int]) -> tuple[list[int], Cover]:
        """Turn a postfix program to code, and choose its cover, where chains have the given sizes.

        Every push but the first is where the right operand of one join begins, and the join's word stands
        before it, to be filled in when the join comes.
        """
        self._sizes = sizes
        words: list[int] = []
        begins: list[int] = []
        covers: list[Cover] = []
        for token in program.tokens:
            if TRUE < token < 0:
                place = begins.pop()
                op = ops.AND if token == AND else ops.OR
                words[place] = op | (len(words) - place - 1) << OPS
                right, left = covers.pop(), covers.pop()
                covers.append(_narrower(left, right) if token == AND else _wider(left, right))
                continue
            begins.append(len(words))
            if words:
                words.append(0)
            if token >= 0:
                covers.append(self._leaf(program.leaves[token], words))
            else:
                words.append(ops.TRUE if token == TRUE else ops.FALSE)
                covers.append(_OPEN if token == TRUE else _NEVER)
            assert len(begins) < MAX_HEIGHT
        assert len(covers) == 1, "pushes are one more than joins"
        return words, covers[0]

    def _leaf(self, leaf: Leaf, words: list[int]) -> Cover:
        """Append the words of a leaf; returns its cover."""
        side = self.sides.side(leaf.path)
        head = len(words)
        if isinstance(leaf, GlobLeaf):
            op, groups, cover = ops.NOT_GLOB if leaf.negated else ops.GLOB, 0, _OPEN
            begin = self.globs.size
            self.globs.extend(leaf.tokens)
            column = self._column(side, _FLAGS[False][Facet.TEXT])
            words += (0, 0, column, begin, self.globs.size)
        else:
            op, groups = int(leaf.quantifier), len(leaf.sets) + leaf.on_null
            words += (0, 0)
            cover = self._groups(side, leaf, words)
        words[head] = op | (len(words) - head - 1) << OPS
        words[head + 1] = side.number | groups << 32
        return cover

    def _groups(self, side: Side, leaf: SetLeaf, words: list[int]) -> Cover:
        """Append the groups of a leaf; returns its cover."""
        element = leaf.quantifier is not Quantifier.VALUE
        flags, column_of = _FLAGS[element], side.column_of
        if element:
            words.append(self._column(side, flags[Facet.PRESENT]))
        if leaf.on_null:
            words.append(self._column(side, flags[Facet.PRESENT]) << SIZES)
        points: dict[Point, None] = {}
        covered = not leaf.on_null and leaf.quantifier is not Quantifier.ALL
        guard = guard_low = guard_high = guard_facet = -1
        facets = 0
        for facet, found in leaf.sets:
            column = column_of.get(flags[facet], -1)
            if column < 0:
                column = self._column(side, flags[facet])
            facets |= 1 << facet
            assert found, "a group without ranges would mean NULL"
            words.append(column << SIZES | len(found))
            covered = covered and len(points) + len(found) <= MOST_POINTS
            if facet in _TEXTS:
                for low, high in found:
                    before, key = self._cut(low)
                    after, _ = self._cut(high)
                    words += (before, after)
                    if after != before + 1 or before & 1:
                        covered = False
                        continue
                    if covered:
                        points[column, mix(column, key)] = None
                    # Whole numbers are the better guard of `a = 1234567890123456`, which decimals meet too.
                    if len(found) == 1 and (guard < 0 or facet != Facet.LONG_DECIMAL):
                        guard, guard_low, guard_high, guard_facet = column, key, key, facet
            else:
                for low, high in found:
                    key, last = low[0], high[0] - 1
                    words += (key, last)
                    if covered and last - key < WIDEST:
                        for each in range(key, last + 1):
                            points[column, mix(column, each)] = None
                    else:
                        covered = False
                if guard < 0:
                    guard, guard_facet = column, facet
                    guard_low, guard_high = found[0][0][0], found[-1][1][0] - 1
        cost = 2**32 + (guard_high - guard_low).bit_length()
        if covered:
            sizes, mask = self._sizes, len(self._sizes) - 1
            cost = len(points) + sum([sizes[code & mask] for _, code in points])
        guards: tuple[Guard, ...] = ()
        if guard >= 0 and not (element or leaf.on_null or facets & _BESIDE[guard_facet]):
            guards = ((cost, guard, guard_low, guard_high),)
        return Cover(cost, points if covered else None, guards)

    def _column(self, side: Side, flags: int) -> int:
        found = side.column_of.get(flags)
        if found is None:
            self.columns.size = self.sides.width
            self.columns.append(flags)
            found = self.sides.add(side, flags)
        return found

    def _cut(self, cut: Cut) -> tuple[int, int]:
        """Return the number of a cut, and the hash of its text."""
        top, text, after = cut
        if top:
            return TOP, 0
        known = self._texts.get(text)
        if known is None:
            data = text.encode()
            number = self.text_ends.size - 1
            self.text_data.size = int(self.text_ends.array[number])
            self.text_data.extend(np.frombuffer(data, np.uint8))
            self.text_ends.append(self.text_data.size)
            known = self._texts[text] = (2 * number, text_hash(data))
        return known[0] + after, known[1]


def _narrower(left: Cover, right: Cover) -> Cover:
    """Cover an AND: by the better of two covers."""
    guards = (*left.guards, *right.guards)[:MOST_GUARDS]
    best = left if right.points is None or (left.points is not None and left.cost <= right.cost) else right
    return Cover(best.cost, best.points, guards)


def _wider(left: Cover, right: Cover) -> Cover:
    """Cover an OR: by both covers."""
    if left.points is None or right.points is None or len(left.points) + len(right.points) > MOST_POINTS:
        return _OPEN
    return Cover(left.cost + right.cost, {**left.points, **right.points}, ())
