"""The source as a view like others, so that views can be moved to it, and from it, while latency is lowered.

It is one view more, the last, at one site more, whose bounds are those of the source; it has its result at
once. Every view has one rewriting more, the last, whose only input it is, with what feeding by the source
costs. All that is known of rewritings holds for these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headgate.plan.model import SOURCE, Capacities, Costs, Plan, Rewritings


class Sourced(NamedTuple):
    """An instance with the source among its views, and the plan in it."""

    plan: Plan
    rewritings: Rewritings
    costs: Costs
    capacities: Capacities


def with_source(plan: Plan, rewritings: Rewritings, costs: Costs, capacities: Capacities) -> Sourced:
    """Put the source among the views."""
    views = len(plan.chosen)
    counts = np.diff(rewritings.offsets)
    owners = np.repeat(np.arange(views), counts)
    # A rewriting moves up by the rewritings by the source of the views before its own.
    places = np.arange(len(owners)) + owners
    by_source = rewritings.offsets[1:] + np.arange(views)
    whole = len(owners) + views
    widths = np.ones(whole, np.int64)
    widths[places] = np.diff(rewritings.input_offsets)
    input_offsets = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    is_source = np.repeat(np.isin(np.arange(whole), by_source), widths)

    def of_inputs(own: np.ndarray, source: np.ndarray) -> np.ndarray:
        merged = np.empty(len(is_source), own.dtype)
        merged[~is_source], merged[is_source] = own, source
        return merged

    def of_rewritings(own: np.ndarray, source: np.ndarray) -> np.ndarray:
        merged = np.empty(whole, np.float64)
        merged[places], merged[by_source] = own, source
        return merged

    one = np.zeros(1, np.float64)
    made = Rewritings(
        np.concatenate([[0], np.cumsum(counts + 1), [whole]]).astype(np.int64),
        input_offsets,
        of_inputs(rewritings.inputs, np.full(views, views, np.int32)),
    )
    by = {
        name: of_rewritings(getattr(costs, name), getattr(costs, f"source_{name}"))
        for name in ("utilization", "latency", "joining")
    }
    by |= {
        name: of_inputs(getattr(costs, name), getattr(costs, f"source_{name}"))
        for name in ("sent", "sending")
    }
    # The source itself is fed for nothing, and at once.
    wide = Costs(**by, **{name: np.append(getattr(costs, name), one) for name in _BY_SOURCE})
    bounds = Capacities(
        np.append(capacities.sites, np.int32(len(capacities.fan_out))),
        np.append(capacities.fan_out, capacities.source_fan_out),
        np.append(capacities.bandwidth, capacities.source_bandwidth),
        np.append(capacities.cpu, capacities.source_cpu),
        np.inf,
        np.inf,
        np.inf,
    )
    chosen = np.where(plan.chosen == SOURCE, by_source, plan.chosen + np.arange(views))
    return Sourced(Plan(np.append(chosen, SOURCE).astype(np.int64)), made, wide, bounds)


def without_source(plan: Plan, rewritings: Rewritings) -> Plan:
    """Read a plan back; `rewritings` are those without the source."""
    views = len(rewritings.offsets) - 1
    numbers = plan.chosen[:views] - np.arange(views)
    return Plan(np.where(numbers == rewritings.offsets[1:], SOURCE, numbers).astype(np.int64))


_BY_SOURCE = tuple(name for name in Costs._fields if name.startswith("source_"))
