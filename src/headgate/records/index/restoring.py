"""The filters of an index, read back from its arrays: what compaction builds from, without their texts.

Codes become cells again, runs of cells become ranges of keys. The leaves that come out may be written
differently from those that went in, and hold for the same values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.interning import TextPool
from headgate.core.jit import kernel
from headgate.records.index.arrays import FLAGS, REFERENCE, REFERENCE_WORDS, TREE
from headgate.records.index.lines import ARRAY_CELL, NULL_CELL, OTHER_CELL
from headgate.records.programs.leaves import TEXT_FACETS, Facet
from headgate.records.programs.programs import (
    GLOB,
    NOT_GLOB,
    TOP,
    Programs,
    concatenate,
    starts,
    take,
)
from headgate.records.programs.tokens import AND, FALSE, OR, TRUE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headgate.records.index.arrays import BuiltIndex

    Ints = NDArray[np.int64]

_MIN, _MAX = np.int64(-(2**63)), np.int64(2**63 - 1)
_IS_TEXT = np.zeros(len(Facet), np.uint8)
_IS_TEXT[[int(facet) for facet in TEXT_FACETS]] = 1


class _Cells(NamedTuple):
    """Cells by code, line after line: those of code c of line l are cells[start[line_base[l] + c]:…].

    reach[i] is how many cells from place i on follow each other without a gap.
    """

    start: Ints
    cells: NDArray[np.int32]
    reach: NDArray[np.int32]


def read_programs(built: BuiltIndex, keep: NDArray[np.bool_], tree: Callable[[int], Programs]) -> Programs:
    """Read the filters that `keep` marks, in order; `tree(f)` gives the program of one kept as a tree."""
    arrays = built.arrays
    places = full_entries(built)
    number = arrays.stream[places] >> FLAGS
    is_tree = (arrays.stream[places] & TREE) != 0
    trees = np.unique(number[is_tree])
    kept = keep[number] & ~is_tree
    places = places[kept][np.argsort(number[kept], kind="stable")]
    read = _read(built, places, len(keep))
    filters = np.flatnonzero(keep)
    read = take(read, filters)
    wanted = [int(f) for f in trees if keep[f]]
    if not wanted:
        return read
    joined = concatenate([read, *(tree(f) for f in wanted)])
    order = np.arange(len(filters))
    order[np.searchsorted(filters, wanted)] = len(filters) + np.arange(len(wanted))
    return take(joined, order)


def full_entries(built: BuiltIndex) -> Ints:
    """Find all entries of the stream that are no references."""
    arrays = built.arrays
    out = np.zeros(len(arrays.stream) // 2 + 1, np.int64)
    singles = int(arrays.single_start[-1])
    return out[: _find_entries(arrays.stream, singles, int(arrays.marks[0]), out)].copy()


@kernel
def _find_entries(stream: NDArray[np.int32], singles: int, pairs: int, out: Ints) -> int:
    """Walk singles, then pairs with their three words in front of each, then what is apart."""
    n, at = 0, 0
    while at < len(stream):
        end = singles if at < singles else len(stream)
        if singles <= at < pairs:
            end = at + 3 + stream[at + 2]
            at += 3
        while at < end:
            if stream[at] & REFERENCE:
                at += REFERENCE_WORDS
            else:
                out[n] = at
                n += 1
                at += 2 + stream[at + 1]
    return n


def _by_code(built: BuiltIndex) -> _Cells:
    """Sort the cells of each line by their codes."""
    lines, base = built.lines, built.arrays.line_base
    counts = np.zeros(int(base[-1]), np.int64)
    found = []
    for line in range(lines.size):
        codes = lines.cell_code[lines.cell_base[line] : lines.cell_base[line + 1]]
        counts[base[line] : base[line + 1]] = np.bincount(codes, minlength=int(lines.line_codes[line]))
        found.append(np.argsort(codes, kind="stable").astype(np.int32))
    cells = np.concatenate([np.zeros(0, np.int32), *found])
    reach = np.ones(len(cells), np.int32)
    _measure_runs(cells, reach)
    return _Cells(starts(counts), cells, reach)


@kernel
def _measure_runs(cells: NDArray[np.int32], reach: NDArray[np.int32]) -> None:
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


def _read(built: BuiltIndex, places: Ints, filters: int) -> Programs:
    arrays, lines = built.arrays, built.lines
    cells = _by_code(built)
    column_start = np.searchsorted(lines.column_line, np.arange(lines.size + 1)).astype(np.int64)
    marks = np.zeros(int(np.diff(lines.cell_base).max(initial=1)) + 1, np.uint8)
    given = (
        arrays.stream,
        places,
        arrays.line_base,
        cells.start,
        cells.cells,
        cells.reach,
        lines.line_attribute,
        column_start,
        lines.column_facet,
        lines.column_cell,
        lines.threshold_start,
        lines.thresholds,
        lines.text_first,
        lines.text_last,
        _IS_TEXT,
        arrays.glob_side,
        arrays.glob_attribute,
        built.texts.size,
        marks,
    )
    none8, none32, none64 = np.zeros(0, np.uint8), np.zeros(0, np.int32), np.zeros(0, np.int64)
    empty = (none64, none32, none8, none32, none8, none64, none8, none64, none64, none32)
    sizes = np.zeros(3, np.int64)
    _read_entries(*given, *empty, sizes)
    leaves, ranges, tokens = sizes.tolist()
    token_count = np.zeros(filters, np.int64)
    out_tokens = np.zeros(tokens, np.int32)
    kind, attribute = np.zeros(leaves, np.uint8), np.zeros(leaves, np.int32)
    on_null = np.zeros(leaves, np.uint8)
    range_count = np.zeros(leaves, np.int64)
    facet = np.zeros(ranges, np.uint8)
    low, high = np.zeros(ranges, np.int64), np.zeros(ranges, np.int64)
    glob = np.full(leaves, -1, np.int32)
    if len(places):
        full = (token_count, out_tokens, kind, attribute, on_null, range_count, facet, low, high, glob)
        _read_entries(*given, *full, sizes)
    never = token_count == 0
    token_start = starts(token_count)
    if never.any():
        # A filter that has no entry never holds.
        out_tokens = np.insert(out_tokens, token_start[:-1][never], FALSE).astype(np.int32)
        token_start = starts(np.maximum(token_count, 1))
    # A gap before the first text begins at the empty one.
    texts = TextPool(np.append(built.texts.offsets, built.texts.offsets[-1:]), np.asarray(built.texts.data))
    glob_words = np.where(glob >= 0, np.diff(arrays.glob_start)[glob] if len(arrays.glob_side) else 0, 0)
    return Programs(
        token_start=token_start,
        tokens=out_tokens,
        leaf_kind=kind,
        leaf_attribute=attribute,
        leaf_on_null=on_null,
        range_start=starts(range_count),
        range_facet=facet,
        range_low=low,
        range_high=high,
        glob_start=starts(glob_words),
        glob_tokens=_glob_tokens(built, glob),
        texts=texts,
        attributes=built.attributes,
    )


def _glob_tokens(built: BuiltIndex, glob: NDArray[np.int32]) -> NDArray[np.int16]:
    arrays = built.arrays
    found = [
        arrays.glob_tokens[arrays.glob_start[g] : arrays.glob_start[g + 1]] for g in glob[glob >= 0].tolist()
    ]
    return np.concatenate([np.zeros(0, np.int16), *found])


@kernel
def _read_entries(
    stream: NDArray[np.int32],
    places: Ints,
    line_base: NDArray[np.int32],
    cell_start: Ints,
    cells: NDArray[np.int32],
    reach: NDArray[np.int32],
    line_attribute: NDArray[np.int32],
    column_start: Ints,
    column_facet: NDArray[np.uint8],
    column_cell: NDArray[np.int32],
    threshold_start: Ints,
    thresholds: Ints,
    text_first: Ints,
    text_last: Ints,
    is_text: NDArray[np.uint8],
    glob_side: NDArray[np.int32],
    glob_attribute: NDArray[np.int32],
    empty_text: int,
    marks: NDArray[np.uint8],
    token_count: Ints,
    tokens: NDArray[np.int32],
    kind: NDArray[np.uint8],
    attribute: NDArray[np.int32],
    on_null: NDArray[np.uint8],
    range_count: Ints,
    facet: NDArray[np.uint8],
    low: Ints,
    high: Ints,
    glob: NDArray[np.int32],
    sizes: Ints,
) -> None:
    """Read entries, sorted by filter; with empty outputs, only count leaves, ranges and tokens."""
    fill = len(tokens) > 0
    leaves, ranges, words = 0, 0, 0
    before = -1
    run_first = np.empty(len(marks) + 1, np.int64)
    run_last = np.empty(len(marks) + 1, np.int64)
    for i in range(len(places)):
        at = places[i]
        number = stream[at] >> 3
        pc, end = at + 2, at + 2 + stream[at + 1]
        first_token = words
        parts = 0
        while pc < end:
            word = stream[pc]
            op = word & 15
            if op >= 12:
                if fill:
                    kind[leaves] = GLOB if op == 12 else NOT_GLOB
                    glob[leaves] = word >> 4
                    attribute[leaves] = glob_attribute[glob_side[word >> 4]]
                pc += 1
            else:
                line = (word >> 4) & 0x3FFF
                left_out = word >> 18 & 1
                shape, n = op & 3, word >> 20
                pc += 1
                if shape >= 2 and n == 0:
                    n = stream[pc]
                    pc += 1
                width = 1 if shape in {0, 2} else 2
                if shape < 2:
                    n = 1
                runs = 0
                for k in range(n + left_out):
                    if left_out:
                        # Between what is left out, and behind it.
                        lo = stream[pc + width * k - 1] + 1 if k else 1
                        hi = (
                            line_base[line + 1] - line_base[line] - 1
                            if k == n
                            else stream[pc + width * k] - 1
                        )
                        if lo > hi:
                            continue
                    else:
                        lo = stream[pc + width * k]
                        hi = stream[pc + width * k + width - 1]
                    s, e = cell_start[line_base[line] + lo], cell_start[line_base[line] + hi + 1]
                    while s < e:
                        length = min(reach[s], e - s)
                        run_first[runs], run_last[runs] = cells[s], cells[s] + length - 1
                        s += length
                        runs += 1
                pc += width * n
                runs = _join_runs(run_first, run_last, runs)
                found = 0
                nulls, whole, array = False, False, False
                for r in range(runs):
                    nulls |= run_first[r] <= NULL_CELL <= run_last[r]
                    whole |= run_first[r] <= OTHER_CELL <= run_last[r]
                    array |= run_first[r] <= ARRAY_CELL <= run_last[r]
                if whole or array:
                    if fill:
                        facet[ranges] = 0 if whole else 1
                        low[ranges], high[ranges] = _MIN, _MAX
                    found = 1
                if not whole:
                    for c in range(column_start[line], column_start[line + 1]):
                        base = column_cell[c]
                        text = is_text[column_facet[c]]
                        count = threshold_start[c + 1] - threshold_start[c]
                        size = 2 * (text_last[c] - text_first[c]) + 1 if text else count + 1
                        for r in range(runs):
                            a = max(run_first[r] - base, 0)
                            b = min(run_last[r] - base, size - 1)
                            if a > b:
                                continue
                            if text:
                                key_low = text_first[c] * 2 + a - 1 if a else empty_text * 2
                                key_high = text_first[c] * 2 + b if b < size - 1 else TOP
                            else:
                                key_low = thresholds[threshold_start[c] + a - 1] if a else _MIN
                                key_high = thresholds[threshold_start[c] + b] - 1 if b < count else _MAX
                                if key_low > key_high:
                                    continue
                            if fill:
                                facet[ranges + found] = column_facet[c]
                                low[ranges + found], high[ranges + found] = key_low, key_high
                            found += 1
                if fill:
                    kind[leaves] = op >> 2
                    attribute[leaves] = line_attribute[line]
                    on_null[leaves] = nulls
                    range_count[leaves] = found
                ranges += found
            if fill:
                tokens[words] = leaves
            leaves += 1
            words += 1
            parts += 1
            if parts > 1:
                if fill:
                    tokens[words] = AND
                words += 1
        if parts == 0:
            if fill:
                tokens[words] = TRUE
            words += 1
        if number == before:
            if fill:
                tokens[words] = OR
            words += 1
        before = number
        if fill:
            token_count[number] += words - first_token
    sizes[0], sizes[1], sizes[2] = leaves, ranges, words
