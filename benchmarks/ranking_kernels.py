"""Hot loops of the baselines of sparse ranking: look at every box, and add up all that holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare
from headgate.ranking.boxes.threshold_kernels import SUM, offer, worth

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.ranking.boxes.boxes import Boxes, BoxQuery
    from headgate.ranking.boxes.threshold_kernels import Heap


class Postings(NamedTuple):
    """The intervals of each dimension, by their low ends: those of d are from start[d] to start[d + 1]."""

    start: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    weight: NDArray[np.float64]
    row: NDArray[np.int32]


def postings(boxes: Boxes, dimensions: int) -> Postings:
    """Sort intervals by dimension and low end."""
    order = np.lexsort((boxes.low, boxes.dim))
    start = np.searchsorted(boxes.dim[order], np.arange(dimensions + 1))
    columns = (boxes.low[order], boxes.high[order], boxes.weight[order])
    return Postings(start, *columns, boxes.row[order].astype(np.int32))


@bare
def look_at_all(boxes: Boxes, asked: BoxQuery, heap: Heap) -> None:
    """Work out what every box is worth."""
    heap.size[0] = 0
    for row in range(len(boxes.score)):
        value = worth(boxes, row, asked, SUM)
        if not np.isnan(value):
            offer(heap, value, row)


@bare
def add_all(lists: Postings, asked: BoxQuery, total: NDArray[np.float64], heap: Heap) -> None:
    """Add the weight of every interval that holds to its box; `total` is all 0 before and after."""
    heap.size[0] = 0
    for dim in range(len(asked.x)):
        x, y = asked.x[dim], asked.y[dim]
        for entry in range(lists.start[dim], lists.start[dim + 1]):
            if lists.low[entry] > x:
                break
            if lists.high[entry] >= y:
                total[lists.row[entry]] += lists.weight[entry]
    for row in range(len(total)):
        if total[row] > 0:
            offer(heap, total[row], row)
            total[row] = 0.0
