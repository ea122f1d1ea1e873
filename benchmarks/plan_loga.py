"""Figures 5 and 6: latency while LOGA runs, and views per level before and after it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.plan_data import check_plan, say
from benchmarks.plan_tables import named
from benchmarks.results import Result
from headgate.plan.latency.latency import loga
from headgate.plan.measures import measures
from headgate.plan.model import scaled_capacities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.plan_data import Case
    from benchmarks.plan_tables import Chosen
    from headgate.plan.latency.latency import Moment

_WIDER = 1.5
"""LOGA may use so many times the bounds that the program had to keep, as in the paper."""
_MOMENTS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_FIGURE_5 = "Figure 5: latency while LOGA runs at 1.5 B, % of that before"
_FIGURE_6 = "Figure 6: views per level, before and after LOGA"


class Descent(NamedTuple):
    """What LOGA did for a bound."""

    seconds: float
    less: float
    """Percent of the latency that are saved at 1.5 times the bound."""
    swapped: float
    """Percent that are saved at the bound itself, where views may take the place of others."""
    latency: list[Result]
    levels: list[Result]


def measure_loga(case: Case, bound: float, chosen: Chosen) -> Descent:
    """Lower the latency of a plan, with wider bounds and with the same."""
    ways, costs = case.graphs.rewritings, case.costs
    capacities = case.capacities(bound)
    wider = capacities if math.isinf(bound) else scaled_capacities(capacities, _WIDER)
    found = loga(chosen.plan, ways, costs, wider)
    check_plan(f"LOGA, {named(bound)}", found.plan, case, wider)
    swapped = loga(chosen.plan, ways, costs, capacities, swaps=True)
    check_plan(f"LOGA with swaps, {named(bound)}", swapped.plan, case, capacities)
    before, after = measures(chosen.plan, ways, costs), measures(found.plan, ways, costs)
    same = measures(swapped.plan, ways, costs)
    less = 100 * (1 - after.latency / before.latency)
    less_same = 100 * (1 - same.latency / before.latency)
    seconds = found.trace[-1].seconds
    say(f"{named(bound)}: {less:.1f} % less latency, {less_same:.1f} % with swaps at B; {seconds:.1f} s")
    figures = {
        **{f"after {moment:g} s": _at(found.trace, moment) for moment in _MOMENTS},
        "at the end": 100 - less,
        "seconds": seconds,
        "rounds": found.rounds,
        "utilization, % of that before": 100 * after.utilization / before.utilization,
        "with swaps at B: at the end": 100 - less_same,
        "with swaps at B: seconds": swapped.trace[-1].seconds,
        "with swaps at B: utilization, % of that before": 100 * same.utilization / before.utilization,
    }
    latency = [
        Result(name, float(value), "", section=_FIGURE_5, column=named(bound))
        for name, value in figures.items()
    ]
    levels = [
        Result(f"level {level}", float(count), "", section=_FIGURE_6, column=f"{named(bound)}, {when}")
        for when, each in (("before", before), ("after", after), ("swaps", same))
        for level, count in enumerate(each.per_level.tolist(), 1)
    ]
    return Descent(seconds, less, less_same, latency, levels)


def _at(trace: Sequence[Moment], moment: float) -> float:
    """Return the latency at a moment in percent of the first."""
    known = [each.latency for each in trace if each.seconds <= moment]
    return 100 * (known or [trace[0].latency])[-1] / trace[0].latency
