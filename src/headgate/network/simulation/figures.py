"""Figures 7, 8 and 9 of the paper for one plan: views by level, latency of views, delivery of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.network.simulation.fast import totals
from headgate.network.simulation.layout import levels_of

if TYPE_CHECKING:
    from headgate.network.simulation.fast import Totals
    from headgate.network.simulation.model import Ints, Scene


class Spread(NamedTuple):
    """Seconds: on average, at least, at most."""

    mean: float
    least: float
    most: float


class Figures(NamedTuple):
    """What a simulation shows."""

    per_level: Ints
    """Figure 7: views on each level, from 1 on."""
    latency: Spread
    """Figure 8: over all views and documents, from when the first result left the source."""
    delivery: Spread
    """Figure 9: over documents, the latency of the slowest view."""
    results: int
    messages: int
    busiest: float
    """The share of the time that the busiest site worked."""


def figures_of(scene: Scene) -> Figures:
    """Simulate a scene, and take its figures."""
    found = totals(scene)
    per_level = np.bincount(levels_of(scene.layout), minlength=1)[1:].astype(np.int64)
    return Figures(per_level, _latency(found), _delivery(found), *_sums(found))


def _latency(found: Totals) -> Spread:
    if not found.view_count.any():
        return Spread(0.0, 0.0, 0.0)
    return Spread(found.mean, found.least, found.most)


def _delivery(found: Totals) -> Spread:
    slowest = found.document_max[found.document_count > 0]
    if not len(slowest):
        return Spread(0.0, 0.0, 0.0)
    return Spread(float(slowest.mean()), float(slowest.min()), float(slowest.max()))


def _sums(found: Totals) -> tuple[int, int, float]:
    busiest = float(found.busy[1:].max(initial=0.0)) / found.end if found.end else 0.0
    return int(found.view_count.sum()), found.messages, busiest
