"""What is ranked: boxes of the workload in arrays, events as questions, and the obvious answers to them."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.core.ids import Ids
from headgate.ranking.answers import RankedRows
from headgate.ranking.boxes.boxes import Boxes, BoxQuery
from headgate.ranking.boxes.ends import OVERLAP
from headgate.ranking.boxes.live import Base
from headgate.ranking.boxes.methods import Question, chosen
from headgate.ranking.intervals.scored import rank
from headgate.ranking.model import Box, Interval
from headgate.workloads.ranking import TABLE_1, Ranking

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.ranking.boxes.methods import Ranker
    from headgate.ranking.intervals.scored import Scored
    from headgate.workloads.ranking import Lists

    Floats = NDArray[np.float64]

SEED = 1
WARM_UP = 100
"""Queries before those that are measured."""
K = 20
EVERYONE = np.empty(0, np.uint8)
_NEAR = 1e-12
"""Sums of floats depend on their order."""


class Data(NamedTuple):
    """Boxes, and points to ask with: those of the warm-up, then those that are measured."""

    boxes: Boxes
    warm: Floats
    points: Floats

    @property
    def dimensions(self) -> int:
        """Count the dimensions."""
        return int(self.points.shape[1])

    @property
    def names(self) -> tuple[str, ...]:
        """List the names of the dimensions, which are in order."""
        return tuple(f"x{number:03}" for number in range(self.dimensions))

    def base(self) -> Base:
        """Return the boxes with numbers for ids."""
        ids = Ids.from_arrow(pa.array(np.arange(self.boxes.size)))
        return Base(ids, self.names, self.boxes)


@lru_cache(maxsize=1)
def scored(count: int, queries: int) -> tuple[Scored, Floats, Floats]:
    """Draw intervals of one dimension, by falling weight; and points, those of the warm-up first."""
    workload = Ranking()
    drawn = workload.columns(np.arange(count), SEED)
    points = workload.points(np.arange(WARM_UP + queries), SEED)[:, 0]
    table = rank(drawn.low[:, 0].copy(), drawn.high[:, 0].copy(), drawn.weight[:, 0].copy())
    return table, points[:WARM_UP].copy(), points[WARM_UP:].copy()


def make(
    count: int, queries: int, dimensions: int, scores: str = "length", skew: float = TABLE_1.skew_length
) -> Data:
    """Draw boxes of some dimensions."""
    workload = Ranking(dimensions, scores, TABLE_1._replace(skew_length=skew))
    points = workload.points(np.arange(WARM_UP + queries), SEED)
    return Data(as_boxes(workload.lists(np.arange(count), SEED)), points[:WARM_UP], points[WARM_UP:])


def as_boxes(lists: Lists) -> Boxes:
    """Take what was drawn as the arrays of an index."""
    return Boxes(
        lists.start, lists.attribute.astype(np.int32), lists.low, lists.high, lists.weight, lists.score
    )


def ask(point: Floats) -> BoxQuery:
    """Ask for a point; NaN is a value that the event lacks."""
    missing = np.isnan(point)
    x, y = np.where(missing, -np.inf, point), np.where(missing, np.inf, point)
    return BoxQuery(x, y, np.ones(len(point)))


def prepared(base: Base, mode: str, method: str) -> Ranker:
    """Return a method of an index; `auto` is the one that it chooses."""
    question = Question({}, mode, OVERLAP, None, "sum")
    return base.prepare(mode, chosen(base.boxes, len(base.dimensions), question, method))


def plainly(boxes: Boxes, point: Floats, k: int, mode: str) -> RankedRows:
    """Look at every interval, and sort all that match."""
    value = point[boxes.dim]
    holds = (boxes.low <= value) & (boxes.high >= value)
    row = boxes.row
    if mode == "exact":
        held = np.bincount(row, holds, boxes.size) == np.diff(boxes.start)
        worth = np.where(held, boxes.score, -np.inf)
    else:
        worth = np.bincount(row, np.where(holds, boxes.weight, 0.0), boxes.size)
        worth[np.bincount(row, holds, boxes.size) == 0] = -np.inf
    (found,) = np.nonzero(worth > -np.inf)
    order = found[np.lexsort((found, -worth[found]))][:k]
    return RankedRows(order, worth[order])


def same(found: RankedRows, wanted: RankedRows, what: str) -> None:
    """Assert that two answers have the same values; rows may differ where sums are equal but for rounding."""
    assert len(found.values) == len(wanted.values), (
        f"{what}: {len(found.values)}, not {len(wanted.values)} found"
    )
    assert np.allclose(found.values, wanted.values, rtol=_NEAR, atol=0), f"{what}: other values"
    apart = np.diff(wanted.values) < -_NEAR
    if apart.all():
        assert np.array_equal(found.rows[:-1], wanted.rows[:-1]), f"{what}: other rows"


def models(boxes: Boxes, names: tuple[str, ...]) -> list[Box]:
    """Write boxes as users do, for the reference."""
    found = []
    for row in range(boxes.size):
        entries = range(int(boxes.start[row]), int(boxes.start[row + 1]))
        named = {e: names[boxes.dim[e]] for e in entries}
        found.append(
            Box(
                row,
                {name: Interval(float(boxes.low[e]), float(boxes.high[e])) for e, name in named.items()},
                float(boxes.score[row]),
                {name: float(boxes.weight[e]) for e, name in named.items()},
            )
        )
    return found


def say(text: str) -> None:
    """Show that something is done."""
    print(f"{text}: done, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
