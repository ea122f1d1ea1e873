"""Capacities made in the usual ways: one bound for all, none at all, those of others scaled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from headgate.errors import PlanError
from headgate.plan.model import Capacities

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def same_capacities(
    views: int,
    fan_out: float = math.inf,
    *,
    bandwidth: float = math.inf,
    cpu: float = math.inf,
    source_fan_out: float = math.inf,
    source_bandwidth: float = math.inf,
    source_cpu: float = math.inf,
    sites: ArrayLike | None = None,
) -> Capacities:
    """Give every site the same bounds; without `sites` each view has a site of its own, as in the paper."""
    bounds = (fan_out, bandwidth, cpu, source_fan_out, source_bandwidth, source_cpu)
    if any(math.isnan(bound) or bound < 0 for bound in bounds):
        raise PlanError(f"a capacity is negative or not a number, of {bounds}: 0 or more, inf for no limit")
    placed = (
        np.arange(views, dtype=np.int32) if sites is None else np.ascontiguousarray(sites, dtype=np.int32)
    )
    if len(placed) != views:
        raise PlanError(f"{len(placed)} sites are given for {views} views: one for each view is needed")
    if views and placed.min() < 0:
        raise PlanError(f"a site has the number {placed.min()}: sites count from 0")
    count = int(placed.max()) + 1 if views else 0
    return Capacities(
        placed,
        np.full(count, fan_out, dtype=np.float64),
        np.full(count, bandwidth, dtype=np.float64),
        np.full(count, cpu, dtype=np.float64),
        float(source_fan_out),
        float(source_bandwidth),
        float(source_cpu),
    )


def infinite_capacities(views: int) -> Capacities:
    """Limit nothing; each view has a site of its own."""
    return same_capacities(views)


def scaled_capacities(capacities: Capacities, factor: float) -> Capacities:
    """Multiply what sites can bear, and leave the source as it is.

    A plan of least utilization uses most bounds up. So the paper gives the search for low latency 1.5 times
    the bounds that it gave the solver; views are never moved to the source there.
    """
    if not factor > 0:
        raise PlanError(f"capacities cannot be scaled by {factor}: a factor is more than 0")
    return capacities._replace(
        fan_out=capacities.fan_out * factor,
        bandwidth=capacities.bandwidth * factor,
        cpu=capacities.cpu * factor,
    )
