"""Lines: one small number for each value of an attribute, and each leaf as a few intervals of them.

A leaf sees a value on at most one facet of each string cast, so an attribute has one *line* for each way in
which strings are cast (its *side*). A line is cut into cells wherever some leaf begins or ends:

    cell 0        NULL
    cell 1        a value that no leaf of the line can see
    cell 2        an array
    cells 3…      the facets of the side, cut together; then every other facet by itself

Facets that one literal gives (5 among whole numbers, doubles and texts that can be cast) are cut at the same
literals in the same order, so they share their cells: each facet only has its own thresholds.

Cells that the same leaves cover are one *code*. Code 0 is covered by none: values that no filter asks for.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.interning import TextPool
from headgate.core.jit import kernel
from headgate.records.cells import MAX, cut_numbers, cut_together, number_codes
from headgate.records.facets import TEXT_FACETS, Facet
from headgate.records.programs import ALL, GLOB, TOP, starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.records.programs import Programs

    Ints = NDArray[np.int64]

NULL_CELL, OTHER_CELL, ARRAY_CELL, FIRST_CELL = range(4)

_SIDES = (
    Facet.STRING,
    Facet.STRING_BOOL,
    Facet.STRING_INT,
    Facet.STRING_FLOAT,
    Facet.STRING_DATE,
    Facet.STRING_TIMESTAMP,
    Facet.TEXT,
)
APART = 64
"""Added to a side: the line of leaves whose facets cannot be cut together."""

_TOGETHER = {
    Facet.STRING: (Facet.STRING,),
    Facet.STRING_BOOL: (Facet.BOOL, Facet.STRING_BOOL),
    Facet.STRING_INT: (Facet.INT, Facet.FLOAT, Facet.STRING_INT),
    Facet.STRING_FLOAT: (Facet.INT, Facet.FLOAT, Facet.STRING_FLOAT),
    Facet.STRING_DATE: (Facet.TIMESTAMP, Facet.STRING_DATE),
    Facet.STRING_TIMESTAMP: (Facet.TIMESTAMP, Facet.STRING_TIMESTAMP),
    Facet.TEXT: (Facet.TEXT,),
}
_IS_SIDE = np.zeros(len(Facet), np.uint8)
_IS_SIDE[[int(side) for side in _SIDES]] = 1
_HOME = np.zeros(len(Facet), np.uint8)
"""The side that a facet belongs to when its leaf has none: whole numbers to texts cast to them."""
for _facet, _side in (
    (Facet.INT, Facet.STRING_INT),
    (Facet.FLOAT, Facet.STRING_INT),
    (Facet.BOOL, Facet.STRING_BOOL),
    (Facet.TIMESTAMP, Facet.STRING_TIMESTAMP),
):
    _HOME[_facet] = _side
_MEMBER = np.zeros((len(Facet), len(Facet)), np.uint8)
for _side, _facets in _TOGETHER.items():
    for _facet in _facets:
        _MEMBER[_side, _facet] = 1


class Lines(NamedTuple):
    """How values become codes.

    line l        attribute line_attribute[l]; line_multi[l]: 0 its value, 1 the elements of its array
                  the codes of its cells are cell_code[cell_base[l]:cell_base[l + 1]]
    column c      facet column_facet[c] on line column_line[c], sorted by line; its first cell is
                  column_cell[c]: a key k lies `thresholds at most k` cells further
      of texts    the sorted run text_first[c]:text_last[c] of `texts`; its keys are cells (TextPool.place)
      of numbers  thresholds[threshold_start[c]:threshold_start[c + 1]], rising
    """

    line_attribute: NDArray[np.int32]
    line_multi: NDArray[np.uint8]
    line_codes: NDArray[np.int32]
    cell_base: Ints
    cell_code: NDArray[np.int32]
    column_line: NDArray[np.int32]
    column_facet: NDArray[np.uint8]
    column_cell: NDArray[np.int32]
    threshold_start: Ints
    thresholds: Ints
    text_first: Ints
    text_last: Ints
    gram_start: Ints
    grams: NDArray[np.int32]

    @property
    def size(self) -> int:
        """Count the lines."""
        return len(self.line_attribute)

    def check(self) -> None:
        """Assert the invariants."""
        assert self.cell_base[0] == 0
        assert self.cell_base[-1] == len(self.cell_code)
        assert self.threshold_start[-1] == len(self.thresholds)
        assert bool((np.diff(self.column_line) >= 0).all())
        assert bool((self.text_first <= self.text_last).all())
        for line in range(self.size):
            codes = self.cell_code[self.cell_base[line] : self.cell_base[line + 1]]
            assert codes.min(initial=0) >= 0
            assert codes.max(initial=0) < self.line_codes[line]
        for c in range(len(self.column_line)):
            found = self.thresholds[self.threshold_start[c] : self.threshold_start[c + 1]]
            assert bool((found[1:] >= found[:-1]).all())


class Parts(NamedTuple):
    """Leaves on lines: leaf l is true when one of its parts part_start[l]:part_start[l + 1] is.

    Part p looks at line part_line[p] (of a GLOB leaf: -1), and is true for the codes of the intervals
    set_start[p]:set_start[p + 1], disjoint, rising and not adjacent.
    """

    part_start: Ints
    part_leaf: NDArray[np.int32]
    part_line: NDArray[np.int32]
    set_start: Ints
    set_low: NDArray[np.int32]
    set_high: NDArray[np.int32]


@kernel
def _split_leaves(
    range_start: Ints,
    range_facet: NDArray[np.uint8],
    leaf_kind: NDArray[np.uint8],
    is_side: NDArray[np.uint8],
    home: NDArray[np.uint8],
    member: NDArray[np.uint8],
    part_count: Ints,
    part_side: NDArray[np.uint8],
    range_part: Ints,
) -> int:
    """Divide each leaf by side; part_side 0 is one that any side would do for. Returns the parts."""
    parts = 0
    sides = np.empty(16, np.uint8)
    for leaf in range(len(leaf_kind)):
        first, last = range_start[leaf], range_start[leaf + 1]
        found = 0
        for r in range(first, last):
            facet = range_facet[r]
            if is_side[facet] and (found == 0 or sides[found - 1] != facet):
                sides[found] = facet
                found += 1
        if found == 0:
            sides[0] = 0
            for r in range(first, last):
                if home[range_facet[r]]:
                    sides[0] = home[range_facet[r]]
                    break
            found = 1
        for k in range(found):
            part_side[parts + k] = sides[k]
        for r in range(first, last):
            facet = range_facet[r]
            at = 0
            for k in range(found):
                if sides[k] == facet or (member[sides[k], facet] and not member[sides[at], facet]):
                    at = k
                    if sides[k] == facet:
                        break
            range_part[r] = parts + at
        part_count[leaf] = found
        parts += found
    return parts


def make_lines(programs: Programs) -> tuple[Lines, Parts, TextPool]:
    """Cut the lines of all attributes; returns them, the leaves on them, and the texts they name."""
    most = programs.leaves + len(programs.range_facet)
    part_count = np.zeros(programs.leaves, np.int64)
    part_side = np.zeros(most, np.uint8)
    range_part = np.zeros(len(programs.range_facet), np.int64)
    count = _split_leaves(
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
    part_start = starts(part_count)
    part_leaf = np.repeat(np.arange(programs.leaves, dtype=np.int32), part_count)
    names = _line_names(programs, part_leaf, part_side[:count], range_part)
    ranks, ordered = _rank_texts(programs.texts)
    maker = _Maker(programs, ranks, ordered, part_leaf, range_part)
    part_line = np.full(count, -1, np.int32)
    by_name = np.argsort(names, kind="stable")
    edges = [*np.flatnonzero(np.diff(names[by_name], prepend=-2)).tolist(), count]
    for first, last in pairwise(edges):
        if names[by_name[first]] >= 0:
            part_line[by_name[first:last]] = maker.line(int(names[by_name[first]]), by_name[first:last])
    set_count, low, high = maker.sets(count)
    parts = Parts(part_start, part_leaf, part_line, starts(set_count), low, high)
    return maker.lines(), parts, TextPool.build(maker.texts)


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
        for place in np.argsort(counts, kind="stable").tolist():
            best[int(named[place]) // (2 * APART)] = int(named[place])
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


def _unalignable(programs: Programs, names: np.ndarray, range_part: np.ndarray) -> np.ndarray:
    """Tell the parts whose facets are not cut at as many places, or do not all end at the top."""
    bad = np.zeros(len(names), bool)
    side = np.where(names >= 0, names % APART, 0)
    for own, group in _TOGETHER.items():
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


def _rank_texts(texts: TextPool) -> tuple[Ints, list[str]]:
    """Return the rank of each text, and the texts in order."""
    given = texts.texts()
    order = sorted(range(len(given)), key=given.__getitem__)
    ranks = np.empty(len(given), np.int64)
    ranks[order] = np.arange(len(given))
    return ranks, [given[place] for place in order]


class _Maker:
    """Collects lines one by one."""

    def __init__(
        self,
        programs: Programs,
        ranks: Ints,
        ordered: list[str],
        part_leaf: NDArray[np.int32],
        range_part: Ints,
    ) -> None:
        self._programs = programs
        self._ranks = ranks
        self._ordered = ordered
        self._part_leaf = part_leaf
        order = np.argsort(range_part, kind="stable") if np.any(np.diff(range_part) < 0) else None
        self._range_order = order
        self._range_base = starts(np.bincount(range_part, minlength=len(part_leaf)))
        self.texts: list[str] = []
        self._line_rows: list[tuple[int, int, int]] = []
        self._cells: list[NDArray[np.int32]] = []
        self._columns: list[tuple[int, int, int, int, int]] = []
        self._thresholds: list[Ints] = []
        self._sets: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def line(self, name: int, parts: Ints) -> int:
        """Cut one line for some parts; returns its number."""
        owner, side = divmod(name, 2 * APART)
        attribute, multi = divmod(owner, 2)
        number = len(self._line_rows)
        where, ranges = self._ranges_of(parts)
        facet = self._programs.range_facet[ranges]
        low, high = self._programs.range_low[ranges], self._programs.range_high[ranges]
        group = [f for f in _TOGETHER[Facet(side % APART)] if (facet == f).any()]
        together = side < APART and len(group) > 1
        found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        cell = FIRST_CELL
        rest = sorted(int(f) for f in np.unique(facet))
        if together:
            mine = [facet == f for f in group]
            cut = cut_together([low[m] for m in mine], [high[m] for m in mine])
            if cut is not None:
                thresholds, first, last = cut
                found.append((where[mine[0]], first + cell, last + cell))
                for f, own in zip(group, thresholds, strict=True):
                    self._columns.append((number, int(f), cell, 0, 0))
                    self._thresholds.append(own)
                    rest.remove(int(f))
                cell += len(thresholds[0]) + 1
        for other in rest:
            mine_only = facet == other
            owner_parts = where[mine_only]
            if other == Facet.PRESENT:
                continue
            if other == Facet.ARRAY:
                found.append(
                    (
                        owner_parts,
                        np.full(len(owner_parts), ARRAY_CELL),
                        np.full(len(owner_parts), ARRAY_CELL),
                    )
                )
                continue
            if Facet(other) in TEXT_FACETS:
                first, last, cells = self._cut_texts(number, other, cell, low[mine_only], high[mine_only])
            else:
                own, first, last = cut_numbers(low[mine_only], high[mine_only])
                self._columns.append((number, other, cell, 0, 0))
                self._thresholds.append(own)
                cells = len(own) + 1
            found.append((owner_parts, first + cell, last + cell))
            cell += cells
        present = where[facet == Facet.PRESENT]
        # A part that takes every value overlaps its other ranges, and a cell must be covered once.
        found = [(p[keep], a[keep], b[keep]) for p, a, b in found for keep in [~np.isin(p, present)]]
        found.append((present, np.full(len(present), OTHER_CELL), np.full(len(present), cell - 1)))
        nulls = parts[self._programs.leaf_on_null[self._part_leaf[parts]].astype(bool)]
        found.append((nulls, np.full(len(nulls), NULL_CELL), np.full(len(nulls), NULL_CELL)))
        self._finish(attribute, multi, cell, found)
        return number

    def _ranges_of(self, parts: Ints) -> tuple[Ints, Ints]:
        """List the ranges of some parts, and the part of each."""
        counts = self._range_base[parts + 1] - self._range_base[parts]
        where = np.repeat(parts, counts)
        places = np.arange(counts.sum()) - np.repeat(starts(counts)[:-1], counts)
        ranges = self._range_base[where] + places
        return where, ranges if self._range_order is None else self._range_order[ranges]

    def _cut_texts(self, line: int, facet: int, cell: int, low: Ints, high: Ints) -> tuple[Ints, Ints, int]:
        named = np.concatenate([low, high[high != TOP]]) >> 1
        ranks = np.unique(self._ranks[named])
        begin = len(self.texts)
        self.texts.extend(self._ordered[rank] for rank in ranks.tolist())
        self._columns.append((line, facet, cell, begin, len(self.texts)))
        self._thresholds.append(np.zeros(0, np.int64))
        first = 2 * np.searchsorted(ranks, self._ranks[low >> 1]) + 1 + (low & 1)
        last = np.full(len(high), 2 * len(ranks), np.int64)
        inner = high != TOP
        last[inner] = 2 * np.searchsorted(ranks, self._ranks[high[inner] >> 1]) + (high[inner] & 1)
        return first, last, 2 * len(ranks) + 1

    def _finish(
        self,
        attribute: int,
        multi: int,
        cells: int,
        found: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
    ) -> None:
        """Turn cells into codes, and the cells of each part into intervals of codes."""
        part = np.concatenate([item[0] for item in found]).astype(np.int64)
        first = np.concatenate([item[1] for item in found]).astype(np.int64)
        last = np.concatenate([item[2] for item in found]).astype(np.int64)
        keep = first <= last
        part, first, last = part[keep], first[keep], last[keep]
        codes, before = number_codes(part, first, last, cells)
        low, high = before[first] + 1, before[last + 1]
        keep = low <= high
        self._sets.append((part[keep], low[keep].astype(np.int32), high[keep].astype(np.int32)))
        self._cells.append(codes)
        self._line_rows.append((attribute, multi, int(codes.max(initial=0)) + 1))

    def sets(self, parts: int) -> tuple[Ints, NDArray[np.int32], NDArray[np.int32]]:
        """Return the intervals of all parts, joined where they touch: counts, lows, highs."""
        part = np.concatenate([np.zeros(0, np.int64), *(item[0] for item in self._sets)])
        low = np.concatenate([np.zeros(0, np.int32), *(item[1] for item in self._sets)])
        high = np.concatenate([np.zeros(0, np.int32), *(item[2] for item in self._sets)])
        key = (part << 32) | low
        if np.any(np.diff(key) < 0):
            order = np.argsort(key, kind="stable")
            part, low, high = part[order], low[order], high[order]
        begins = np.append(True, (part[1:] != part[:-1]) | (low[1:] != high[:-1] + 1))[: len(part)]
        ends = np.append(begins[1:], True)[: len(part)]
        counts = np.bincount(part[begins], minlength=parts).astype(np.int64)
        return counts, low[begins], high[ends]

    def lines(self) -> Lines:
        """Return all lines."""
        rows = np.array(self._line_rows, np.int64).reshape(-1, 3)
        columns = np.array(self._columns, np.int64).reshape(-1, 5)
        return Lines(
            line_attribute=rows[:, 0].astype(np.int32),
            line_multi=rows[:, 1].astype(np.uint8),
            line_codes=rows[:, 2].astype(np.int32),
            cell_base=starts(np.array([len(codes) for codes in self._cells], np.int64)),
            cell_code=np.concatenate([np.zeros(0, np.int32), *self._cells]),
            column_line=columns[:, 0].astype(np.int32),
            column_facet=columns[:, 1].astype(np.uint8),
            column_cell=columns[:, 2].astype(np.int32),
            threshold_start=starts(np.array([len(found) for found in self._thresholds], np.int64)),
            thresholds=np.concatenate([np.zeros(0, np.int64), *self._thresholds]),
            text_first=columns[:, 3].copy(),
            text_last=columns[:, 4].copy(),
            gram_start=np.zeros(len(rows) + 1, np.int64),
            grams=np.zeros(0, np.int32),
        )
