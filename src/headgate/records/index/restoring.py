"""The filters of an index, read back from its arrays: what compaction builds from, without their texts.

Codes become cells again, runs of cells become ranges of keys. The leaves that come out may be written
differently from those that went in, and hold for the same values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.contents.columns import picked
from headgate.core.interning import TextPool
from headgate.core.jit import inner, kernel
from headgate.records.index.arrays import TREE
from headgate.records.index.entries import filters_of, full_entries, read_checks
from headgate.records.index.lines import ARRAY_CELL, NULL_CELL, OTHER_CELL
from headgate.records.programs.leaves import TEXT_FACETS, Facet
from headgate.records.programs.programs import TOP, Programs, concatenate, starts, take
from headgate.records.programs.tokens import AND, FALSE, OR, TRUE

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.core.arrays import Bools, Bytes, Ints, Ints32
    from headgate.records.index.arrays import BuiltIndex
    from headgate.records.index.entries import Checks
    from headgate.records.index.lines import Lines


_MIN, _MAX = np.int64(-(2**63)), np.int64(2**63 - 1)
_IS_TEXT = np.zeros(len(Facet), np.uint8)
_IS_TEXT[[int(facet) for facet in TEXT_FACETS]] = 1
_PRESENT, _ARRAY = int(Facet.PRESENT), int(Facet.ARRAY)


class _Cells(NamedTuple):
    """Cells by code, line after line: those of code c of line l are cells[start[line_base[l] + c]:…].

    reach[i] is how many cells from place i on follow each other without a gap.
    """

    start: Ints
    cells: Ints32
    reach: Ints32


def read_programs(built: BuiltIndex, keep: Bools, tree: Callable[[int], Programs]) -> Programs:
    """Read the filters that `keep` marks, in order; `tree(f)` gives the program of one kept as a tree."""
    arrays = built.arrays
    entries = full_entries(arrays)
    number = filters_of(arrays, entries)
    is_tree = (arrays.stream[entries] & TREE) != 0
    trees = np.unique(number[is_tree])
    kept = keep[number] & ~is_tree
    entries = entries[kept][np.argsort(number[kept], kind="stable")]
    read = _read(built, entries, len(keep))
    filters = np.flatnonzero(keep)
    read = take(read, filters)
    wanted = [int(f) for f in trees if keep[f]]
    if not wanted:
        return read
    joined = concatenate([read, *(tree(f) for f in wanted)])
    order = np.arange(len(filters))
    order[np.searchsorted(filters, wanted)] = len(filters) + np.arange(len(wanted))
    return take(joined, order)


def _by_code(built: BuiltIndex) -> _Cells:
    """Sort the cells of each line by their codes."""
    lines, base = built.lines, built.arrays.line_base
    counts = np.zeros(int(base[-1]), np.int64)
    orders = []
    for line in range(lines.size):
        codes = lines.cell_code[lines.cell_base[line] : lines.cell_base[line + 1]]
        counts[base[line] : base[line + 1]] = np.bincount(codes, minlength=int(lines.line_codes[line]))
        orders.append(np.argsort(codes, kind="stable").astype(np.int32))
    cells = np.concatenate([np.zeros(0, np.int32), *orders])
    reach = np.ones(len(cells), np.int32)
    _measure_runs(cells, reach)
    return _Cells(starts(counts), cells, reach)


@kernel
def _measure_runs(cells: Ints32, reach: Ints32) -> None:
    for i in range(len(cells) - 2, -1, -1):
        if cells[i] + 1 == cells[i + 1]:
            reach[i] = reach[i + 1] + 1


@kernel
def _join_runs(first: Ints, last: Ints, runs: int) -> int:
    """Sort runs of cells and join those that touch; returns how many are left."""
    if runs < 2:
        return runs
    order = np.argsort(first[:runs])
    firsts, lasts = first[:runs][order], last[:runs][order]
    kept = 0
    for r in range(runs):
        if kept and last[kept - 1] + 1 == firsts[r]:
            last[kept - 1] = lasts[r]
        else:
            first[kept], last[kept] = firsts[r], lasts[r]
            kept += 1
    return kept


def _read(built: BuiltIndex, entries: Ints, filters: int) -> Programs:
    """Read entries, sorted by filter: each of its checks is a leaf, all of them are joined by AND."""
    arrays = built.arrays
    checks = read_checks(arrays, entries)
    ranges = _ranges(built, checks)
    tokens, token_start = _tokens(checks.checks, filters_of(arrays, entries), filters)
    is_glob = checks.line < 0
    glob = checks.glob[is_glob]
    # A pattern is on no line, and there may be none.
    attribute = np.append(built.lines.line_attribute, np.int32(-1))[checks.line]
    attribute[is_glob] = arrays.glob_attribute[arrays.glob_side[glob]]
    glob_words = np.zeros(len(checks.line), np.int64)
    glob_words[is_glob] = np.diff(arrays.glob_start)[glob]
    # A gap before the first text begins at the empty one.
    texts = TextPool(np.append(built.texts.offsets, built.texts.offsets[-1:]), np.asarray(built.texts.data))
    return Programs(
        token_start=token_start,
        tokens=tokens,
        leaf_kind=checks.kind,
        leaf_attribute=attribute,
        leaf_on_null=ranges.on_null,
        range_start=starts(ranges.ranges),
        range_facet=ranges.facet,
        range_low=ranges.low,
        range_high=ranges.high,
        glob_start=starts(glob_words),
        glob_tokens=arrays.glob_tokens[picked(arrays.glob_start, glob)[1]],
        texts=texts,
        attributes=built.attributes,
    )


def _tokens(checks: Ints, owner: Ints32, filters: int) -> tuple[Ints32, Ints]:
    """Join the leaves of each entry by AND, and the entries of each filter by OR; one that has none is FALSE.

    >>> _tokens(np.array([2, 1, 0]), np.array([0, 0, 2]), 3)[0].tolist() == [0, 1, AND, 2, OR, FALSE, TRUE]
    True
    """
    again = np.append(False, owner[1:] == owner[:-1])[: len(owner)]
    words = np.maximum(2 * checks - 1, 1)
    lengths = np.bincount(owner, words + again, filters).astype(np.int64)
    tokens = np.full(int(np.maximum(lengths, 1).sum()), FALSE, np.int32)
    token_start = starts(np.maximum(lengths, 1))
    # Where each entry begins: behind those of other filters, and of its own that come before.
    begin = starts(words + again)[:-1]
    begin += token_start[owner] - starts(lengths)[owner]
    tokens[begin[checks == 0]] = TRUE
    tokens[(begin + words)[again]] = OR
    each = np.repeat(np.arange(len(checks)), checks)
    number = np.arange(len(each)) - np.repeat(starts(checks)[:-1], checks)
    tokens[begin[each] + np.maximum(2 * number - 1, 0)] = np.arange(len(each))
    tokens[(begin[each] + 2 * number)[number > 0]] = AND
    return tokens, token_start


class _Ranges(NamedTuple):
    """Ranges of keys: ranges[c] of check c, which holds for NULL if on_null[c]."""

    ranges: Ints
    on_null: Bytes
    facet: Bytes
    low: Ints
    high: Ints

    @classmethod
    def empty(cls, checks: int, ranges: int) -> _Ranges:
        low, high = np.zeros((2, ranges), np.int64)
        on_null, facet = np.zeros(checks, np.uint8), np.zeros(ranges, np.uint8)
        return cls(np.zeros(checks, np.int64), on_null, facet, low, high)


def _ranges(built: BuiltIndex, checks: Checks) -> _Ranges:
    """Turn the codes that checks hold for to ranges of keys."""
    lines = built.lines
    column_start = np.searchsorted(lines.column_line, np.arange(lines.size + 1)).astype(np.int64)
    longest = int(np.diff(lines.cell_base).max(initial=1)) + 1
    given = (lines, column_start, built.arrays.line_base, _by_code(built), built.texts.size, longest)
    count = len(checks.line)
    ranges = _Ranges.empty(count, _write_ranges(*given, checks, checks.start, _Ranges.empty(count, 0)))
    _write_ranges(*given, checks, checks.start, ranges)
    return ranges


@kernel
def _write_ranges(
    lines: Lines,
    column_start: Ints,
    line_base: Ints32,
    by_code: _Cells,
    empty_text: int,
    longest: int,
    checks: Checks,
    check_start: Ints,
    out: _Ranges,
) -> int:
    """Write the ranges of checks; with no room for them, only count them. Returns how many."""
    n = 0
    first, last = np.empty(longest, np.int64), np.empty(longest, np.int64)
    for check in range(len(checks.line)):
        line = checks.line[check]
        if line < 0:
            continue
        runs = 0
        for i in range(check_start[check], check_start[check + 1]):
            s = by_code.start[line_base[line] + checks.low[i]]
            e = by_code.start[line_base[line] + checks.high[i] + 1]
            while s < e:
                length = min(by_code.reach[s], e - s)
                first[runs], last[runs] = by_code.cells[s], by_code.cells[s] + length - 1
                s += length
                runs += 1
        runs = _join_runs(first, last, runs)
        before = n
        nulls, whole, array = False, False, False
        for r in range(runs):
            nulls |= first[r] <= NULL_CELL <= last[r]
            whole |= first[r] <= OTHER_CELL <= last[r]
            array |= first[r] <= ARRAY_CELL <= last[r]
        out.on_null[check] = nulls
        if whole or array:
            _add(out, n, _PRESENT if whole else _ARRAY, _MIN, _MAX)
            n += 1
        for c in range(column_start[line], column_start[line + 1] if not whole else 0):
            facet, base = lines.column_facet[c], lines.column_cell[c]
            text_first, keys = lines.text_first[c], lines.threshold_start[c]
            texts, count = lines.text_last[c] - text_first, lines.threshold_start[c + 1] - keys
            size = 2 * texts + 1 if _IS_TEXT[facet] else count + 1
            for r in range(runs):
                a, b = max(first[r] - base, 0), min(last[r] - base, size - 1)
                if a > b:
                    continue
                if _IS_TEXT[facet]:
                    low = text_first * 2 + a - 1 if a else empty_text * 2
                    high = text_first * 2 + b if b < size - 1 else TOP
                else:
                    low = lines.thresholds[keys + a - 1] if a else _MIN
                    high = lines.thresholds[keys + b] - 1 if b < count else _MAX
                    if low > high:
                        continue
                _add(out, n, facet, low, high)
                n += 1
        out.ranges[check] = n - before
    return n


@inner
def _add(out: _Ranges, n: int, facet: int, low: int | np.int64, high: int | np.int64) -> None:
    if len(out.facet):
        out.facet[n], out.low[n], out.high[n] = facet, low, high
