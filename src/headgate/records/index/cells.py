"""Where a line is cut into cells, and which cells are one code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import kernel
from headgate.records.programs.programs import starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

MAX = np.int64(2**63 - 1)


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


def number_codes(part: Ints, first: Ints, last: Ints, cells: int) -> tuple[NDArray[np.int32], Ints]:
    """Give cells that the same parts cover one code, in order of first appearance; 0 to those of none.

    Returns the codes, and before[i]: how many codes first appear before cell i. Parts are summed up by
    exclusive or of 128 random bits each, so two cells with equal sums are covered by the same parts.
    """
    sums = np.zeros((2, cells + 1), np.uint64)
    _cover(part, first, last, sums)
    order = np.lexsort((sums[1, :cells], sums[0, :cells]))
    same = (sums[:, order[1:]] == sums[:, order[:-1]]).all(axis=0)
    group = np.empty(cells, np.int64)
    group[order] = np.cumsum(np.append(False, ~same)[:cells])
    firsts = np.full(cells, cells, np.int64)
    np.minimum.at(firsts, group, np.arange(cells))
    first_of = firsts[group]
    covered = (sums[0, :cells] != 0) | (sums[1, :cells] != 0)
    opens = covered & (first_of == np.arange(cells))
    before = starts(opens.astype(np.int64))
    codes = np.where(covered, before[first_of] + 1, 0).astype(np.int32)
    return codes, before


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
