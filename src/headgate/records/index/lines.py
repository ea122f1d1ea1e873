"""Lines: one small number for each value of an attribute, and each leaf as a few intervals of them.

An attribute has one *line* for each way in which strings are cast (`sides`). A line is cut into cells
wherever some leaf begins or ends:

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

from headgate.contents.columns import picked
from headgate.core.interning import TextPool
from headgate.core.jit import kernel
from headgate.records.index.sides import APART, LONG, MAX, TOGETHER, split_leaves
from headgate.records.programs.leaves import TEXT_FACETS, Facet
from headgate.records.programs.programs import GLOB, TOP, starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.arrays import Bytes, Floats64, Ints, Ints32, Words
    from headgate.records.programs.programs import Programs


_FRACTIONS = (Facet.FLOAT, Facet.STRING_FLOAT, Facet.DECIMAL)
"""The facets of a range between two fractions that no whole number is in."""


def cut_numbers(low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    """Cut one facet: its thresholds, and the first and last cell of each range."""
    inner = high != MAX
    thresholds = np.unique(np.concatenate([low, high[inner] + 1]))
    last = np.full(len(high), len(thresholds), np.int64)
    last[inner] = np.searchsorted(thresholds, high[inner] + 1)
    return thresholds, np.searchsorted(thresholds, low) + 1, last


def cut_together(lows: list[Ints], highs: list[Ints]) -> tuple[list[Ints], Ints, Ints] | None:
    """Cut facets at the same places; None where their orders differ.

    Each range gives a row of lower ends, one a facet, and a row of upper ends. Sorted by the first facet,
    the others must rise too; a threshold that two rows share bounds an empty cell of that facet.
    """
    inner = highs[0] != MAX
    rows = [np.concatenate([low, high[inner] + 1]) for low, high in zip(lows, highs, strict=True)]
    order = np.lexsort(rows[::-1])
    ordered = [row[order] for row in rows]
    if any(bool((row[1:] < row[:-1]).any()) for row in ordered):
        return None
    fresh = np.zeros(len(order), bool)
    fresh[:1] = True
    for row in ordered:
        fresh[1:] |= row[1:] != row[:-1]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(fresh) - 1
    count = len(lows[0])
    last = np.full(count, int(fresh.sum()), np.int64)
    last[inner] = ranks[count:]
    return [row[fresh] for row in ordered], ranks[:count] + 1, last


def with_empty_ranges(programs: Programs) -> Programs:
    """Give leaves between two fractions the empty range that they have among whole numbers.

    With it their facets are cut together with those of leaves that do take whole numbers: one line for both.
    """
    leaf = np.flatnonzero(np.diff(programs.range_start) == len(_FRACTIONS))
    for offset, facet in enumerate(_FRACTIONS):
        leaf = leaf[programs.range_facet[programs.range_start[leaf] + offset] == facet]
    first = programs.range_start[leaf]
    low, high = programs.range_low[first], programs.range_high[first]
    # Within what doubles tell apart there is no doubt on which side of a whole number a key lies.
    inner = (np.abs(_doubles(low)) < 2.0**53) & (np.abs(_doubles(high)) < 2.0**53)
    first, above = first[inner], np.ceil(_doubles(low[inner])).astype(np.int64)
    if not len(first):
        return programs
    added = np.zeros(programs.leaves, np.int64)
    added[leaf[inner]] = 1
    return programs._replace(
        range_start=starts(np.diff(programs.range_start) + added),
        range_facet=np.insert(programs.range_facet, first, np.uint8(Facet.INT)),
        range_low=np.insert(programs.range_low, first, above),
        range_high=np.insert(programs.range_high, first, above - 1),
    )


def _doubles(keys: Ints) -> Floats64:
    """Turn the keys of doubles back."""
    return np.where(keys < 0, keys ^ MAX, keys).view(np.float64)


def number_codes(part: Ints, first: Ints, last: Ints, cells: int) -> tuple[Ints32, Ints]:
    """Give cells that the same parts cover one code, in order of first appearance; 0 to those of none.

    Returns the codes, and before[i]: how many codes first appear before cell i. Parts are summed up by
    exclusive or of 128 random bits each, so two cells with equal sums are covered by the same parts.
    """
    sums = np.zeros((2, cells + 1), np.uint64)
    _cover(part, first, last, sums)
    codes, before = np.zeros(cells, np.int32), np.zeros(cells + 1, np.int64)
    slots = np.zeros(1 << max(4, (2 * cells).bit_length()), np.int32)
    _number_sums(sums, slots, codes, before)
    return codes, before


@kernel
def _number_sums(sums: Words, slots: Ints32, codes: Ints32, before: Ints) -> None:
    """Number the sums of cells, equal ones alike, from 1 on; a slot holds the first cell of a sum, plus 1."""
    last_code, mask = 0, np.uint64(len(slots) - 1)
    for cell in range(len(codes)):
        before[cell] = last_code
        if sums[0, cell] == 0 and sums[1, cell] == 0:
            continue
        slot = np.int64(sums[0, cell] & mask)
        while True:
            first = slots[slot] - 1
            if first < 0:
                last_code += 1
                slots[slot] = cell + 1
                codes[cell] = last_code
                break
            if sums[0, first] == sums[0, cell] and sums[1, first] == sums[1, cell]:
                codes[cell] = codes[first]
                break
            slot = np.int64(np.uint64(slot + 1) & mask)
    before[len(codes)] = last_code


@kernel
def _cover(part: Ints, first: Ints, last: Ints, sums: Words) -> None:
    """Add the random bits of each part to the cells that it covers."""
    for i in range(len(part)):
        for k in range(2):
            bits = np.uint64(part[i]) * np.uint64(2) + np.uint64(k + 1)
            bits *= np.uint64(0x9E3779B97F4A7C15)
            bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            bits ^= bits >> np.uint64(31)
            sums[k, first[i]] ^= bits
            sums[k, last[i] + 1] ^= bits
    for k in range(2):
        running = np.uint64(0)
        for cell in range(sums.shape[1]):
            running ^= sums[k, cell]
            sums[k, cell] = running


NULL_CELL, OTHER_CELL, ARRAY_CELL, FIRST_CELL = range(4)


class Lines(NamedTuple):
    """How values become codes.

    line l        attribute line_attribute[l]; line_multi[l]: 0 its value, 1 the elements of its array
                  the codes of its cells are cell_code[cell_base[l]:cell_base[l + 1]]
    column c      facet column_facet[c] on line column_line[c], sorted by line; its first cell is
                  column_cell[c]: a key k lies `thresholds at most k` cells further
      of texts    the sorted run text_first[c]:text_last[c] of `texts`; its keys are cells (TextPool.place)
      of numbers  thresholds[threshold_start[c]:threshold_start[c + 1]], rising
    grams of l    grams[gram_start[l]:gram_start[l + 1]], rising, if it is a line of grams (`grams.py`)
    words of l    slots[slot_start[l]:slot_start[l + 1]], the hash of its texts, if it is one of words
                  (`line_words.py`)
    """

    line_attribute: Ints32
    line_multi: Bytes
    line_codes: Ints32
    cell_base: Ints
    cell_code: Ints32
    column_line: Ints32
    column_facet: Bytes
    column_cell: Ints32
    threshold_start: Ints
    thresholds: Ints
    text_first: Ints
    text_last: Ints
    gram_start: Ints
    grams: Ints32
    slot_start: Ints
    slots: Words

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
            thresholds = self.thresholds[self.threshold_start[c] : self.threshold_start[c + 1]]
            assert bool((thresholds[1:] >= thresholds[:-1]).all())


class Parts(NamedTuple):
    """Leaves on lines: leaf l is true when one of its parts part_start[l]:part_start[l + 1] is.

    Part p is of the kind part_kind[p] of its leaf. It looks at line part_line[p], and is true for the codes
    of the intervals set_start[p]:set_start[p + 1], disjoint, rising and not adjacent; or at pattern
    part_glob[p], on no line (-1).
    """

    part_start: Ints
    part_leaf: Ints32
    part_kind: Bytes
    part_glob: Ints32
    part_line: Ints32
    set_start: Ints
    set_low: Ints32
    set_high: Ints32


def make_lines(programs: Programs) -> tuple[Lines, Parts, TextPool]:
    """Cut the lines of all attributes; returns them, the leaves on them, and the texts they name."""
    programs = with_empty_ranges(programs)
    part_start, part_leaf, range_part, names = split_leaves(programs)
    count = len(part_leaf)
    ranks, ordered = _rank_texts(programs.texts)
    maker = _Maker(programs, ranks, ordered, part_leaf, range_part)
    part_line = np.full(count, -1, np.int32)
    by_name = np.argsort(names, kind="stable")
    edges = [*np.flatnonzero(np.diff(names[by_name], prepend=-2)).tolist(), count]
    for first, last in pairwise(edges):
        if names[by_name[first]] >= 0:
            part_line[by_name[first:last]] = maker.line(int(names[by_name[first]]), by_name[first:last])
    set_count, low, high = maker.sets(count)
    globs = np.cumsum(programs.leaf_kind >= GLOB, dtype=np.int32) - 1
    kind, glob = programs.leaf_kind[part_leaf], globs[part_leaf]
    parts = Parts(part_start, part_leaf, kind, glob, part_line, starts(set_count), low, high)
    return maker.lines(), parts, TextPool.build(maker.texts)


def _rank_texts(texts: TextPool) -> tuple[Ints, list[str]]:
    """Return the rank of each text, and the texts in order."""
    given = texts.texts()
    order = sorted(range(len(given)), key=given.__getitem__)
    ranks = np.empty(len(given), np.int64)
    ranks[order] = np.arange(len(given))
    return ranks, [given[number] for number in order]


class _Maker:
    """Collects lines one by one."""

    def __init__(
        self, programs: Programs, ranks: Ints, ordered: list[str], part_leaf: Ints32, range_part: Ints
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
        self._cells: list[Ints32] = []
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
        group = [f for f in TOGETHER[Facet(side % LONG)] if (facet == f).any()]
        together = side < APART and len(group) > 1
        cells_of_parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        cell = FIRST_CELL
        rest = sorted(int(f) for f in np.unique(facet))
        if together:
            mine = [facet == f for f in group]
            cut = cut_together([low[m] for m in mine], [high[m] for m in mine])
            if cut is not None:
                thresholds, first, last = cut
                cells_of_parts.append((where[mine[0]], first + cell, last + cell))
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
                cells_of_parts.append(
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
            cells_of_parts.append((owner_parts, first + cell, last + cell))
            cell += cells
        present = where[facet == Facet.PRESENT]
        # A part that takes every value overlaps its other ranges, and a cell must be covered once.
        cells_of_parts = [
            (p[keep], a[keep], b[keep]) for p, a, b in cells_of_parts for keep in [~np.isin(p, present)]
        ]
        cells_of_parts.append((present, np.full(len(present), OTHER_CELL), np.full(len(present), cell - 1)))
        nulls = parts[self._programs.leaf_on_null[self._part_leaf[parts]].astype(bool)]
        cells_of_parts.append((nulls, np.full(len(nulls), NULL_CELL), np.full(len(nulls), NULL_CELL)))
        self._finish(attribute, multi, cell, cells_of_parts)
        return number

    def _ranges_of(self, parts: Ints) -> tuple[Ints, Ints]:
        """List the ranges of some parts, and the part of each."""
        begins, ranges = picked(self._range_base, parts)
        where = np.repeat(parts, np.diff(begins))
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
        cells_of_parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
    ) -> None:
        """Turn cells into codes, and the cells of each part into intervals of codes."""
        part = np.concatenate([item[0] for item in cells_of_parts]).astype(np.int64)
        first = np.concatenate([item[1] for item in cells_of_parts]).astype(np.int64)
        last = np.concatenate([item[2] for item in cells_of_parts]).astype(np.int64)
        keep = first <= last
        part, first, last = part[keep], first[keep], last[keep]
        codes, before = number_codes(part, first, last, cells)
        low, high = before[first] + 1, before[last + 1]
        keep = low <= high
        self._sets.append((part[keep], low[keep].astype(np.int32), high[keep].astype(np.int32)))
        self._cells.append(codes)
        self._line_rows.append((attribute, multi, int(codes.max(initial=0)) + 1))

    def sets(self, parts: int) -> tuple[Ints, Ints32, Ints32]:
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
            threshold_start=starts(np.array([len(thresholds) for thresholds in self._thresholds], np.int64)),
            thresholds=np.concatenate([np.zeros(0, np.int64), *self._thresholds]),
            text_first=columns[:, 3].copy(),
            text_last=columns[:, 4].copy(),
            gram_start=np.zeros(len(rows) + 1, np.int64),
            grams=np.zeros(0, np.int32),
            slot_start=np.zeros(len(rows) + 1, np.int64),
            slots=np.zeros(0, np.uint64),
        )
