"""What lower latency takes in utilization; how far LOGA is from the optimum where the source feeds more."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.plan_data import check_plan, make_case, say, small_case
from benchmarks.plan_exact import measure_exact
from benchmarks.plan_tables import named
from benchmarks.results import Result
from headgate.plan.costs import Settings
from headgate.plan.latency.latency import loga
from headgate.plan.measures import input_places, measures
from headgate.plan.model import scaled_capacities
from headgate.plan.program.program import solve

if TYPE_CHECKING:
    from benchmarks.plan_data import Case
    from headgate.plan.model import Plan

_PARTS = "What LOGA at 1.5 B changes"
_WEIGHED = "LOGA at 1.5 B, by what utilization weighs (alpha; latency weighs 1)"
_ALPHAS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)


class Size(NamedTuple):
    """What a size of the benchmark measures."""

    views: int
    bounds: tuple[float, ...]
    small: tuple[int, ...]
    """Views of the instances that are solved exactly."""
    seconds: float
    """The time limit of an exact solution."""


SIZES = {
    "quick": Size(1_000, (30.0,), (40,), 5.0),
    "full": Size(10_000, (30.0, 100.0, math.inf), (60, 100), 20.0),
}


def run(size: str) -> list[Result]:
    """Lower the latency of plans of least utilization, and tell what becomes of that."""
    chosen = SIZES[size]
    case = make_case(chosen.views, 2)
    parts: list[Result] = []
    weighed: list[Result] = []
    for bound in chosen.bounds:
        first, second = _measure(case, bound)
        parts += first
        weighed += second
        say(f"{named(bound)}: done")
    exact = []
    for views in chosen.small:
        exact += measure_exact(f"{views} views", small_case(case, views), chosen.seconds)
        say(f"solved {views} views exactly")
    return parts + weighed + exact


def _measure(case: Case, bound: float) -> tuple[list[Result], list[Result]]:
    ways, costs = case.graphs.rewritings, case.costs
    capacities = case.capacities(bound)
    wider = capacities if math.isinf(bound) else scaled_capacities(capacities, 1.5)
    plan = solve(ways, costs, capacities).plan
    before = measures(plan, ways, costs)
    parts: list[Result] = []
    weighed: list[Result] = []
    for alpha in _ALPHAS:
        found = loga(plan, ways, costs, wider, alpha=alpha, beta=1.0).plan
        check_plan(f"LOGA, {named(bound)}, alpha {alpha:g}", found, case, wider)
        after = measures(found, ways, costs)
        if alpha == 0:
            parts = _changes(case, plan, found, bound)
        for name, value in (
            ("latency", 100 * after.latency / before.latency),
            ("utilization", 100 * after.utilization / before.utilization),
        ):
            weighed.append(
                Result(
                    f"alpha {alpha:g}",
                    value,
                    "",
                    section=_WEIGHED,
                    column=f"{named(bound)}, {name}, % of before",
                )
            )
    return parts, weighed


def _changes(case: Case, plan: Plan, found: Plan, bound: float) -> list[Result]:
    """Tell what parts of utilization grew, in percent of the whole before."""
    old, new = _parts(case, plan), _parts(case, found)
    whole = old["sent"] + old["joining"] + old["by the source"]
    moved = plan.chosen != found.chosen
    figures = {
        "utilization before": whole,
        "of it by the source, %": 100 * old["by the source"] / whole,
        "of it bytes sent by views, %": 100 * old["sent"] / whole,
        "of it joining, %": 100 * old["joining"] / whole,
        "views fed in another way, %": 100 * float(np.mean(moved)),
        "more bytes, % of utilization before": 100 * (new["sent"] - old["sent"]) / whole,
        "more joining, % of utilization before": 100 * (new["joining"] - old["joining"]) / whole,
        "more utilization, % of what views other than the source take": 100
        * (new["sent"] + new["joining"] - old["sent"] - old["joining"])
        / (old["sent"] + old["joining"]),
        "views a rewriting, before": old["inputs"],
        "views a rewriting, after": new["inputs"],
    }
    return [Result(name, value, "", section=_PARTS, column=named(bound)) for name, value in figures.items()]


def _parts(case: Case, plan: Plan) -> dict[str, float]:
    ways, costs, settings = case.graphs.rewritings, case.costs, Settings()
    fed = plan.chosen >= 0
    used = input_places(plan, ways)
    return {
        "by the source": float(costs.source_utilization[~fed].sum()),
        "sent": (settings.byte + settings.sending) * float(costs.sent[used].sum()),
        "joining": float(costs.joining[plan.chosen[fed]].sum()),
        "inputs": len(used) / max(int(fed.sum()), 1),
    }
