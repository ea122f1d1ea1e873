"""Whether a plan is one: an independent judge, written from the definitions (sections 2.1 to 2.3).

It shares no code with what makes plans, and no arrays: sites are counted in dictionaries, one view at a time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.plan.model import Capacities, Costs, Plan, Rewritings

SLACK = 1e-6
"""The part of a bound by which sums may be over it: solvers compute with as much."""


def problems(plan: Plan, rewritings: Rewritings, costs: Costs, capacities: Capacities) -> list[str]:
    """Say in lines what is wrong with a plan; an empty list if it is valid.

    Each view is fed exactly once, by one of its rewritings or the source; all inputs are there; a path leads
    from the source to every view, so that nothing feeds itself; no capacity is exceeded.
    """
    chosen = [int(number) for number in plan.chosen]
    views = len(rewritings.offsets) - 1
    if len(chosen) != views:
        return [f"the plan feeds {len(chosen)} views, there are {views}"]
    firsts = rewritings.offsets.tolist()
    input_firsts = rewritings.input_offsets.tolist()
    all_inputs = rewritings.inputs.tolist()

    lines: list[str] = []
    inputs: dict[int, list[int]] = {}
    for view, number in enumerate(chosen):
        if number == -1:
            continue
        if not firsts[view] <= number < firsts[view + 1]:
            lines.append(f"view {view} is fed by {number}, which is not one of its rewritings")
            continue
        inputs[view] = all_inputs[input_firsts[number] : input_firsts[number + 1]]
        if not inputs[view]:
            lines.append(f"view {view} is fed by rewriting {number}, which has no inputs")
        lines.extend(
            f"view {view} is fed by view {each}, which does not exist"
            for each in inputs[view]
            if not 0 <= each < views
        )
    if lines:
        return lines
    return _unreached(chosen, inputs) + _exceeded(chosen, inputs, input_firsts, costs, capacities)


def _unreached(chosen: list[int], inputs: dict[int, list[int]]) -> list[str]:
    """Let data flow from the source: a view has its own when all inputs have theirs."""
    waiting = {view: len(set(each)) for view, each in inputs.items()}
    feeds: dict[int, set[int]] = {}
    for view, each in inputs.items():
        for feeder in each:
            feeds.setdefault(feeder, set()).add(view)
    flowing = [view for view, number in enumerate(chosen) if number == -1]
    while flowing:
        for fed in feeds.get(flowing.pop(), ()):
            waiting[fed] -= 1
            if waiting[fed] == 0:
                flowing.append(fed)
    return [
        f"view {view} never gets data from the source: it waits for itself, or for a view that does"
        for view, missing in sorted(waiting.items())
        if missing
    ]


def _exceeded(
    chosen: list[int],
    inputs: dict[int, list[int]],
    input_firsts: list[int],
    costs: Costs,
    capacities: Capacities,
) -> list[str]:
    """Count what each site and the source have to do."""
    site = capacities.sites.tolist()
    fan_out: dict[int, list[float]] = {}
    bandwidth: dict[int, list[float]] = {}
    cpu: dict[int, list[float]] = {}
    source: dict[str, list[float]] = {"fan-out": [], "bandwidth": [], "cpu": []}
    for view, number in enumerate(chosen):
        if number == -1:
            source["fan-out"].append(1.0)
            source["bandwidth"].append(float(costs.source_sent[view]))
            source["cpu"].append(float(costs.source_sending[view]))
            cpu.setdefault(site[view], []).append(float(costs.source_joining[view]))
            continue
        cpu.setdefault(site[view], []).append(float(costs.joining[number]))
        for edge, feeder in enumerate(inputs[view], input_firsts[number]):
            if site[feeder] == site[view]:
                continue
            fan_out.setdefault(site[feeder], []).append(1.0)
            bandwidth.setdefault(site[feeder], []).append(float(costs.sent[edge]))
            cpu.setdefault(site[feeder], []).append(float(costs.sending[edge]))
    lines = [
        line
        for what, used, bounds in (
            ("fan-out", fan_out, capacities.fan_out),
            ("bandwidth", bandwidth, capacities.bandwidth),
            ("cpu", cpu, capacities.cpu),
        )
        for each in sorted(used)
        for line in _over(f"site {each}", what, used[each], float(bounds[each]))
    ]
    ends = (capacities.source_fan_out, capacities.source_bandwidth, capacities.source_cpu)
    for (what, amounts), bound in zip(source.items(), ends, strict=True):
        lines.extend(_over("the source", what, amounts, bound))
    return lines


def _over(who: str, what: str, amounts: list[float], bound: float) -> list[str]:
    amount = math.fsum(amounts)
    if amount <= bound * (1 + SLACK):  # a bound that is not a number is exceeded, too
        return []
    return [f"{who} exceeds its {what}: {amount:g} of {bound:g}"]
