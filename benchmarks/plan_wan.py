"""Section 5.5 of Karanasos et al., VLDB 2014: plans for views that repeat, few at the source; Figure 7."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.plan_data import SEED, check_plan, make_case, say
from benchmarks.plan_tables import HERE, PAPER, named
from benchmarks.results import Result
from benchmarks.workload_statistics import measure_xml
from headgate.plan.latency.latency import loga
from headgate.plan.measures import measures
from headgate.plan.model import same_capacities
from headgate.plan.program.program import solve
from headgate.workloads.xml.xmark import WAN, XMark

if TYPE_CHECKING:
    from benchmarks.plan_data import Case
    from headgate.plan.model import Capacities

_SOURCE = 72.0
"""Views that the source may feed, as in the paper."""
_WIDER = {5: 7, 10: 15, 30: 45, 50: 75, 100: 150, math.inf: math.inf}
"""The bounds that the program keeps, and those of LOGA, as in the paper."""
_TIED = 1e-6
"""What latency weighs where only plans of the same utilization are wanted."""
_VIEWS = "Views"
_PLANS = "Plans with 72 views at the source, before and after LOGA"
_FIGURE_7 = "Figure 7: views per level, before and after LOGA"


class Size(NamedTuple):
    """What a size of the benchmark measures."""

    views: int
    unique: int
    documents: int
    """Those that are matched with all views."""
    bounds: tuple[float, ...]


SIZES = {
    "quick": Size(1_000, 300, 2, (5, math.inf)),
    "full": Size(10_000, 3_000, 200, tuple(_WIDER)),
}


def run(size: str) -> list[Result]:
    """Plan for the views of the section, for each of its bounds."""
    chosen = SIZES[size]
    workload = XMark(unique=chosen.unique, law=WAN)
    case = make_case(chosen.views, 2, workload)
    old = make_case(chosen.views, 2, XMark(unique=chosen.unique))
    paper = {"views": 10_000.0, "different": 3_000.0}
    here = {HERE: (case, workload), f"{HERE}, by the law of Table 2": (old, XMark(unique=chosen.unique))}
    results = [Result(name, value, "", section=_VIEWS, column=PAPER) for name, value in paper.items()]
    for column, (each, made) in here.items():
        found = measure_xml(made, chosen.views, chosen.documents, SEED)
        figures = {
            "views": float(each.views),
            "different": found["unique views, %"] / 100 * each.views,
            "views that only the source can feed": float(each.views - each.rewritable),
            "views that a document answers, %": found["views that a document answers, %"],
            "bytes a document": found["bytes a document"],
            "nodes a view": each.statistics["nodes a view"],
            "return nodes a view": each.statistics["return nodes a view"],
            "predicates a view": each.statistics["predicates a view"],
        }
        results += [Result(name, value, "", section=_VIEWS, column=column) for name, value in figures.items()]
    levels: list[Result] = []
    for bound in chosen.bounds:
        plans, figure = _measure(case, bound)
        results += plans
        levels += figure
    return results + levels


def _measure(case: Case, bound: float) -> tuple[list[Result], list[Result]]:
    """Plan for one bound; returns what plans are like, and how many views there are on each level."""
    ways, costs = case.graphs.rewritings, case.costs
    capacities = _capacities(case, bound)
    wider = _capacities(case, _WIDER[bound])
    solution = solve(ways, costs, capacities)
    check_plan(f"program, {named(bound)}", solution.plan, case, capacities)
    tied = loga(solution.plan, ways, costs, capacities, alpha=1.0, beta=_TIED).plan
    check_plan(f"of the same utilization, {named(bound)}", tied, case, capacities)
    improved = loga(solution.plan, ways, costs, wider).plan
    check_plan(f"LOGA, {named(bound)}", improved, case, wider)
    before, after = measures(solution.plan, ways, costs), measures(improved, ways, costs)
    same = measures(tied, ways, costs)
    figures = {
        "LOGA's bound": _WIDER[bound],
        "fed by the source": float(before.source_fed),
        "gap, %": 100 * solution.gap,
        "levels": float(len(before.per_level)),
        "levels, by equal choices of less latency": float(len(same.per_level)),
        "levels after LOGA": float(len(after.per_level)),
        "latency after LOGA, % of that before": 100 * after.latency / before.latency,
        "utilization": before.utilization,
        "utilization after LOGA": after.utilization,
        "utilization after LOGA, % of that before": 100 * after.utilization / before.utilization,
    }
    say(f"{named(bound)}: {len(before.per_level)} levels, {len(after.per_level)} after LOGA")
    rows = [
        Result(name, value, "", section=_PLANS, column=named(bound))
        for name, value in figures.items()
        if math.isfinite(value)
    ]
    levels = [
        Result(f"level {level}", float(count), "", section=_FIGURE_7, column=f"{named(bound)}, {when}")
        for when, each in (("before", before), ("after", after))
        for level, count in enumerate(each.per_level.tolist(), 1)
    ]
    return rows, levels


def _capacities(case: Case, bound: float) -> Capacities:
    return same_capacities(case.views, bound, source_fan_out=_SOURCE)
