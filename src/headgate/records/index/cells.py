"""Where a line is cut into cells, and which cells are one code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import kernel
from headgate.records.programs.leaves import Facet
from headgate.records.programs.programs import starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.records.programs.programs import Programs

    Ints = NDArray[np.int64]

MAX = np.int64(2**63 - 1)
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
    place = np.empty(len(order), np.int64)
    place[order] = np.cumsum(fresh) - 1
    count = len(lows[0])
    last = np.full(count, int(fresh.sum()), np.int64)
    last[inner] = place[count:]
    return [row[fresh] for row in ordered], place[:count] + 1, last


def with_empty_ranges(programs: Programs) -> Programs:
    """Give leaves between two fractions the empty range that they have among whole numbers.

    With it their facets are cut together with those of leaves that do take whole numbers: one line for both.
    """
    leaf = np.flatnonzero(np.diff(programs.range_start) == len(_FRACTIONS))
    for place, facet in enumerate(_FRACTIONS):
        leaf = leaf[programs.range_facet[programs.range_start[leaf] + place] == facet]
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


def _doubles(keys: Ints) -> NDArray[np.float64]:
    """Turn the keys of doubles back."""
    return np.where(keys < 0, keys ^ MAX, keys).view(np.float64)


def number_codes(part: Ints, first: Ints, last: Ints, cells: int) -> tuple[NDArray[np.int32], Ints]:
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
def _number_sums(
    sums: NDArray[np.uint64], slots: NDArray[np.int32], codes: NDArray[np.int32], before: Ints
) -> None:
    """Number the sums of cells, equal ones alike, from 1 on; a slot holds the first cell of a sum, plus 1."""
    found, mask = 0, np.uint64(len(slots) - 1)
    for cell in range(len(codes)):
        before[cell] = found
        if sums[0, cell] == 0 and sums[1, cell] == 0:
            continue
        slot = np.int64(sums[0, cell] & mask)
        while True:
            first = slots[slot] - 1
            if first < 0:
                found += 1
                slots[slot] = cell + 1
                codes[cell] = found
                break
            if sums[0, first] == sums[0, cell] and sums[1, first] == sums[1, cell]:
                codes[cell] = codes[first]
                break
            slot = np.int64(np.uint64(slot + 1) & mask)
    before[len(codes)] = found


@kernel
def _cover(part: Ints, first: Ints, last: Ints, sums: NDArray[np.uint64]) -> None:
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
