"""Boxes in a byte for each end and weight: enough to see that most rows cannot be among the best.

Every dimension is cut at EDGES of its ends. Where an end is at most x, its cell is at most that of x; so a
row that does not hold by cells does not hold. Weights are rounded up to multiples of `unit`. A block takes a
quarter of the memory of its columns, and with many dimensions memory is what matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare_inner
from headgate.ranking.boxes.dense_build import BLOCK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Floats, Floats64


EDGES = 255
MOST = 257
"""Dimensions of which the units add up in two bytes."""
_SAMPLED = 1 << 17
_LENGTH = np.uint64(BLOCK)
_TINY = 1e-300
_SHY = 1 - 1e-9
"""Keeps the least value on the safe side of rounding."""


class Sketch(NamedTuple):
    """By dimension and row: the cells of both ends, and the weight in units. edge: by dimension, the cuts."""

    low: Bytes
    high: Bytes
    weight: Bytes
    edge: Floats
    unit: float


class Page(NamedTuple):
    """One question in cells, and room for the units of a block's rows."""

    x: Bytes
    y: Bytes
    units: NDArray[np.uint16]


def make_sketch(low: Floats, high: Floats, weight: Floats) -> Sketch:
    """Sketch columns, given by dimension and row."""
    d = len(low)
    # The smallest numbers are not divided exactly.
    unit = max(float(weight.max(initial=0.0)) / 255, _TINY)
    edge = np.zeros((d, EDGES), low.dtype)
    cells = np.empty((2, *low.shape), np.uint8)
    for j in range(d):
        ends = np.concatenate([low[j], high[j]])
        ends = np.sort(ends[np.isfinite(ends)][:: max(1, len(ends) // _SAMPLED)])
        if len(ends):
            edge[j] = ends[np.linspace(0, len(ends) - 1, EDGES).astype(np.int64)]
        cells[0, j] = np.searchsorted(edge[j], low[j], "right")
        cells[1, j] = np.searchsorted(edge[j], high[j], "right")
    units = np.ceil(weight.astype(np.float64) / unit).clip(0, 255).astype(np.uint8)
    sketch = Sketch(cells[0], cells[1], units, edge, unit)
    for array in sketch[:4]:
        array.flags.writeable = False
    return sketch


def make_page(d: int) -> Page:
    """Make room for one question at a time."""
    return Page(np.zeros(d, np.uint8), np.zeros(d, np.uint8), np.zeros(BLOCK, np.uint16))


@bare_inner
def note_question(sketch: Sketch, x: Floats, y: Floats, page: Page) -> None:
    """Write a question in cells."""
    for j in range(len(x)):
        page.x[j] = _cell(sketch.edge, j, x[j])
        page.y[j] = _cell(sketch.edge, j, y[j])


@bare_inner
def _cell(edge: Floats, j: int, value: float) -> int:
    first, size = 0, edge.shape[1]
    while size > 0:
        half = size >> 1
        if edge[j, first + half] <= value:
            first += half + 1
            size -= half + 1
        else:
            size = half
    return first


@bare_inner
def may_reach(sketch: Sketch, block: int, factors: Floats64, least: float, page: Page) -> bool:
    """Tell whether any row of a block may be worth `least`; factors are 0 or 1."""
    units, base = page.units, np.uint64(block * BLOCK)
    for i in range(_LENGTH):
        units[i] = np.uint16(0)
    for j in range(len(factors)):
        if factors[j] == 0.0:
            continue
        x, y = page.x[j], page.y[j]
        for i in range(_LENGTH):
            holds = (sketch.low[j, base + i] <= x) & (sketch.high[j, base + i] >= y)
            units[i] += np.uint16(sketch.weight[j, base + i]) if holds else np.uint16(0)
    enough = np.uint16(min(least / sketch.unit * _SHY, 65535.0))
    any_row = False
    for i in range(_LENGTH):
        any_row |= units[i] >= enough
    return any_row


@bare_inner
def may_hold(sketch: Sketch, block: int, page: Page) -> bool:
    """Tell whether any row of a block may hold in every dimension."""
    units, base = page.units, np.uint64(block * BLOCK)
    for i in range(_LENGTH):
        units[i] = np.uint16(1)
    for j in range(len(page.x)):
        x, y = page.x[j], page.y[j]
        for i in range(_LENGTH):
            holds = (sketch.low[j, base + i] <= x) & (sketch.high[j, base + i] >= y)
            units[i] = units[i] if holds else np.uint16(0)
    any_row = False
    for i in range(_LENGTH):
        any_row |= units[i] > np.uint16(0)
    return any_row
