"""Statistics of workloads with intervals, which the paper does not give, by looking at every interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from headgate.workloads.boxes.ranking import RankingWorkload

__all__ = ["measure_boxes"]


def measure_boxes(workload: RankingWorkload, boxes: int, events: int, seed: int) -> dict[str, float]:
    """Measure boxes, and how many intervals of them hold for an event.

    An interval over an attribute that the event lacks does not hold.
    """
    drawn = workload.lists(np.arange(boxes), seed)
    counts = np.diff(drawn.start)
    held, some, every = [], [], []
    for point in workload.points(np.arange(events), seed):
        value = point[drawn.attribute]
        holds = (drawn.low <= value) & (drawn.high >= value)
        by_box = np.add.reduceat(holds.astype(np.int64), drawn.start[:-1])
        held.append(holds.mean())
        some.append((by_box > 0).mean())
        every.append((by_box == counts).mean())
    width = drawn.high - drawn.low
    return {
        "intervals a box": counts.mean(),
        "mean length of an interval": width.mean(),
        "median length": float(np.median(width)),
        "different ends by intervals": len(np.unique((drawn.low, drawn.high))) / len(width),
        "intervals that hold": float(np.mean(held)),
        "least of the events": float(np.min(held)),
        "most of the events": float(np.max(held)),
        "boxes of which some interval holds": float(np.mean(some)),
        "boxes of which all intervals hold": float(np.mean(every)),
    }
