"""The obvious slow answers: the definition of right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.ranks import Best
from headgate.ranking.boxes.ends import closed_ends, probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.ranking.intervals.scored import Scored
    from headgate.ranking.model import Box


def top_ranks(scored: Scored, x: float, y: float, k: int) -> NDArray[np.int64]:
    """List the ranks of the best k intervals with low <= x and high >= y."""
    low, high = scored.low.astype(np.float64), scored.high.astype(np.float64)
    return np.flatnonzero((low <= x) & (high >= y))[:k]


def holding(box: Box, event: Mapping[str, object], notion: str) -> list[str]:
    """List the dimensions of a box whose interval holds for an event."""
    found = []
    for name, interval in box.intervals.items():
        x, y = probe(event.get(name), notion)
        low_ok = x > interval.low if interval.low_open else x >= interval.low
        high_ok = y < interval.high if interval.high_open else y <= interval.high
        low, high = closed_ends([interval])
        # Between two ends that are open there may be no double at all.
        if low_ok and high_ok and low[0] <= high[0]:
            found.append(name)
    return found


def added(values: Sequence[float]) -> float:
    """Add up from left to right, rounding each time; `sum` of newer Pythons is more exact than that."""
    total = 0.0
    for value in values:
        total += value
    return total


def exact(boxes: Iterable[Box], event: Mapping[str, object], k: int, notion: str = "overlap") -> list[Best]:
    """List the best k of the boxes of which every interval holds, by score."""
    held = [box for box in boxes if len(holding(box, event, notion)) == len(box.intervals)]
    return [Best(box.id, float(box.score)) for box in sorted(held, key=lambda box: (-box.score, box.id))[:k]]


def relaxed(
    boxes: Iterable[Box],
    event: Mapping[str, object],
    k: int,
    notion: str = "overlap",
    *,
    dimensions: Sequence[str],
    factors: Mapping[str, float] | None = None,
    combine: Callable[[Sequence[float]], float] = added,
) -> list[Best]:
    """List the best k of the boxes of which any interval holds, by the combined weights of those that do.

    Weights are combined in the order of `dimensions`, with 0 for one that does not hold: sums in floats
    depend on it. A factor of 0 drops a dimension from the event.
    """
    factors = factors or {}
    found = []
    for box in boxes:
        held = {name for name in holding(box, event, notion) if factors.get(name, 1.0) > 0}
        if held:
            values = [
                box.weight(name) * factors.get(name, 1.0) if name in held else 0.0 for name in dimensions
            ]
            found.append(Best(box.id, float(combine(values))))
    return sorted(found, key=lambda best: (-best.value, best.subscription))[:k]
