"""How far LOGA is from the exact optimum of the mixed cost, on instances that can be solved exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.plan_data import check_plan
from benchmarks.results import Result
from headgate.plan.latency.latency import loga
from headgate.plan.measures import measures
from headgate.plan.model import SOURCE
from headgate.plan.program.program import solve
from tests.plan.exact import exact

if TYPE_CHECKING:
    from benchmarks.plan_data import Case

_SECTION = "Small instances: LOGA from the plan of least utilization, and the exact optimum"
_BOUND = 10.0
"""The fan-out: so low that it binds with so few views."""
_WEIGHTS = ((0.0, 1.0), (1.0, 1.0), (1.0, 0.1))


def measure_exact(title: str, case: Case, limit: float) -> list[Result]:
    """Compare the mixed cost of LOGA's plan with the least there is, for several weights."""
    ways, costs = case.graphs.rewritings, case.costs
    wide = case.capacities(_BOUND)
    first = solve(ways, costs, wide).plan
    # LOGA gives no view to the source unless it is told; so the optimum may not feed more by it either.
    tight = wide._replace(source_fan_out=float(np.count_nonzero(first.chosen == SOURCE)))
    rows = []
    for alpha, beta in _WEIGHTS:
        best = exact(ways, costs, tight, alpha=alpha, beta=beta, time_limit=limit)
        check_plan(f"exact, {title}", best.plan, case, tight)
        figures = {"exact, seconds": best.seconds, "its own gap, %": 100 * best.gap}
        reached = best.cost
        for name, swaps in (("LOGA", False), ("LOGA with swaps", True)):
            found = loga(first, ways, costs, tight, alpha=alpha, beta=beta, swaps=swaps).plan
            check_plan(f"{name}, {title}", found, case, tight)
            reached = measures(found, ways, costs).cost(alpha, beta)
            if reached < best.bound * (1 - 1e-6):
                raise AssertionError(f"{name} is better than the bound of the exact optimum, of {title}")
            figures[f"{name}, % above it"] = 100 * (reached / best.cost - 1)
        freer = exact(ways, costs, wide, alpha=alpha, beta=beta, time_limit=limit)
        check_plan(f"exact with a wider source, {title}", freer.plan, case, wide)
        figures["with swaps, % above what a source that feeds more allows"] = 100 * (reached / freer.cost - 1)
        for name, swaps in (("to the source", False), ("to the source, with swaps", True)):
            found = loga(first, ways, costs, wide, alpha=alpha, beta=beta, swaps=swaps, to_source=True).plan
            check_plan(f"LOGA {name}, {title}", found, case, wide)
            reached = measures(found, ways, costs).cost(alpha, beta)
            if reached < freer.bound * (1 - 1e-6):
                raise AssertionError(f"LOGA {name} is better than the bound of the optimum, of {title}")
            figures[f"LOGA {name}, % above that"] = 100 * (reached / freer.cost - 1)
        figures["its own gap there, %"] = 100 * freer.gap
        name = f"{title}, {100 * case.rewritable // case.views} % rewritable, alpha {alpha:g}, beta {beta:g}"
        rows += [
            Result(name, value, "", section=_SECTION, column=column) for column, value in figures.items()
        ]
    return rows
