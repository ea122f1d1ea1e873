"""The obvious slow answers about latency: the definitions by recursion, Algorithm 2 to the letter."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from headgate.plan.model import SOURCE, Plan

if TYPE_CHECKING:
    from headgate.plan.model import Capacities, Costs, Rewritings


def inputs_of(rewriting: int, rewritings: Rewritings) -> list[int]:
    """List the inputs of a rewriting."""
    first, end = rewritings.input_offsets[rewriting : rewriting + 2].tolist()
    return [int(view) for view in rewritings.inputs[first:end]]


def level_of(view: int, chosen: list[int], rewritings: Rewritings) -> int:
    """Count hops from the source."""
    if chosen[view] == SOURCE:
        return 1
    return 1 + max(level_of(each, chosen, rewritings) for each in inputs_of(chosen[view], rewritings))


def latency_of(view: int, chosen: list[int], rewritings: Rewritings, costs: Costs) -> float:
    """Add the rewriting's own latency to that of the slowest input."""
    if chosen[view] == SOURCE:
        return float(costs.source_latency[view])
    slowest = max(latency_of(each, chosen, rewritings, costs) for each in inputs_of(chosen[view], rewritings))
    return slowest + float(costs.latency[chosen[view]])


def mixed_cost_of(
    chosen: list[int], rewritings: Rewritings, costs: Costs, alpha: float, beta: float
) -> float:
    """Weigh utilization and latency of a plan."""
    taken = [
        float(costs.source_utilization[view] if number == SOURCE else costs.utilization[number])
        for view, number in enumerate(chosen)
    ]
    waited = [latency_of(view, chosen, rewritings, costs) for view in range(len(chosen))]
    return alpha * math.fsum(taken) + beta * math.fsum(waited)


def reachable(chosen: list[int], rewritings: Rewritings) -> list[set[int]]:
    """Find for each view all that it feeds, directly or through others."""
    above: list[set[int]] = []

    def climb(view: int, found: set[int]) -> set[int]:
        if chosen[view] != SOURCE:
            for each in inputs_of(chosen[view], rewritings):
                if each not in found:
                    found.add(each)
                    climb(each, found)
        return found

    above = [climb(view, set()) for view in range(len(chosen))]
    return [{fed for fed, over in enumerate(above) if view in over} for view in range(len(chosen))]


def within(chosen: list[int], rewritings: Rewritings, costs: Costs, capacities: Capacities) -> bool:
    """Tell whether no site has to bear more than it can."""
    fan_out = np.zeros(len(capacities.fan_out))
    bandwidth = np.zeros(len(capacities.fan_out))
    cpu = np.zeros(len(capacities.fan_out))
    for view, number in enumerate(chosen):
        own = capacities.sites[view]
        cpu[own] += costs.source_joining[view] if number == SOURCE else costs.joining[number]
        if number == SOURCE:
            continue
        for place in range(rewritings.input_offsets[number], rewritings.input_offsets[number + 1]):
            site = capacities.sites[rewritings.inputs[place]]
            fan_out[site] += 1
            bandwidth[site] += costs.sent[place]
            cpu[site] += costs.sending[place]
    near = 1 + 1e-9
    return bool(
        (fan_out <= capacities.fan_out * near).all()
        and (bandwidth <= capacities.bandwidth * near).all()
        and (cpu <= capacities.cpu * near).all()
    )


def loga_by_the_letter(
    plan: Plan,
    rewritings: Rewritings,
    costs: Costs,
    capacities: Capacities,
    *,
    alpha: float = 0.0,
    beta: float = 1.0,
) -> Plan:
    """Run Algorithm 2: every alternative is tried, and the whole configuration evaluated for it.

    Of equal alternatives the first is taken; of views with equal impact the lower number comes first.
    """
    chosen = [int(number) for number in plan.chosen]

    def cost() -> float:
        return mixed_cost_of(chosen, rewritings, costs, alpha, beta)

    while True:
        before = cost()
        reach = reachable(chosen, rewritings)
        impact = [
            latency_of(view, chosen, rewritings, costs) * len(reach[view]) for view in range(len(chosen))
        ]
        listed = [view for view in range(len(chosen)) if chosen[view] != SOURCE]
        for view in sorted(listed, key=lambda view: (-impact[view], view)):
            current = chosen[view]
            least, best = cost(), None
            for other in range(rewritings.offsets[view], rewritings.offsets[view + 1]):
                chosen[view] = other
                if within(chosen, rewritings, costs, capacities) and cost() < least:
                    least, best = cost(), other
                chosen[view] = current
            if best is not None:
                chosen[view] = best
        if cost() == before:
            return Plan(np.array(chosen, dtype=np.int64))
