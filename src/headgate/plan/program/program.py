"""The plan of least utilization under capacities: the integer program of the paper's section 3.3, solved.

build       one column for each rewriting and each view's source, one row for each finite capacity
presolve    rows that cannot bind, columns that are never needed; often all is decided then
small       what is left goes to the integer solver as a whole, and comes back exact
large       a first plan by bargaining; the relaxation, which is the bound; rounding near it
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import PlanError
from headgate.plan.model import OPTIMAL, SOURCE, TIME_LIMIT, WITHIN_GAP, Plan, Solution, gap_of
from headgate.plan.program import highs
from headgate.plan.program.columns import Program, build, sizes
from headgate.plan.program.greedy import bargain
from headgate.plan.program.highs import Watch
from headgate.plan.program.infeasible import explain
from headgate.plan.program.presolving import presolve
from headgate.plan.program.relaxation import relax
from headgate.plan.program.rounding import SMALL, Rounded, decide, keeps, round_off, value_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headgate.plan.model import Capacities, Costs, Rewritings

CLOSED = 1e-9
"""A gap that is only the last digits of sums."""


class Objective(NamedTuple):
    """What is minimised instead of utilization: of each rewriting, and of feeding each view by the source."""

    rewritings: NDArray[np.float64]
    source: NDArray[np.float64]


def solve(
    rewritings: Rewritings,
    costs: Costs,
    capacities: Capacities,
    *,
    time_limit: float = 300.0,
    gap: float = 0.01,
    objective: Objective | None = None,
    progress: Callable[[str], None] | None = None,
) -> Solution:
    """Find the plan of least utilization, or of least `objective`, that keeps all capacities.

    Stops when the plan is within `gap` of the bound, or after `time_limit` seconds with the best that was
    found. Small programs are solved exactly whatever the gap. Raises `InfeasibleError` if there is no plan,
    and PlanError if none was found in time. What takes longer than two seconds is told to `progress`.
    """
    watch = Watch(time_limit, progress)
    wanted = objective or Objective(costs.utilization, costs.source_utilization)
    program = build(rewritings, costs, capacities, wanted.rewritings, wanted.source)
    before = sizes(program)
    watch.say(f"program: {before}")
    reduced = presolve(program)
    if reduced.full >= 0 or reduced.stuck >= 0:
        raise explain(program, watch.left())
    after = sizes(reduced.program)
    watch.say(f"presolved to {after}")
    rounded = _solve(program, reduced.program, gap, watch)
    fixed = float(program.costs[reduced.decided[reduced.decided >= 0]].sum())
    if rounded.chosen is None:
        chosen, low = program.offsets[1:] - 1, rounded.bound + fixed
        if not keeps(program, chosen):
            raise PlanError(
                f"no plan was found in {time_limit:g} seconds, and none was proved impossible:"
                " a longer time limit or larger capacities would help"
            )
    else:
        chosen, low = reduced.restore(rounded.chosen), rounded.bound + fixed
    if len(program.choices):
        # No plan is below the cheapest choices of all views; that is known however little time there was.
        low = max(low, float(np.minimum.reduceat(program.costs, program.offsets[:-1]).sum()))
    value = value_of(program, chosen)
    plan = Plan(program.choices[chosen])
    fed = plan.chosen == SOURCE
    utilization = costs.source_utilization[fed].sum() + costs.utilization[plan.chosen[~fed]].sum()
    reached = gap_of(value, low)
    ended = OPTIMAL if reached <= CLOSED else WITHIN_GAP if reached <= gap else TIME_LIMIT
    return Solution(
        plan,
        float(utilization),
        value,
        min(low, value),
        reached,
        watch.seconds(),
        ended,
        before,
        after,
        rounded.fractional,
    )


def _solve(program: Program, inner: Program, gap: float, watch: Watch) -> Rounded:
    """Solve what presolving left; raises InfeasibleError in terms of the original."""
    if not len(inner.choices):
        return Rounded(np.zeros(0, np.int64), 0.0, 0)
    first = bargain(inner, np.zeros(len(inner.bounds)), watch)
    if len(inner.choices) <= SMALL:
        status, chosen, bound = decide(inner, watch, first=first)
        if status == highs.INFEASIBLE and first is None:
            raise explain(program, watch.left())
        if status == highs.INFEASIBLE:
            # A plan is at hand, so the two only differ in what they tolerate.
            bound = -np.inf
        if chosen is None or value_of(inner, first) < value_of(inner, chosen):
            chosen = first
        return Rounded(chosen, bound, 0)
    watch.say("first plan: " + ("none" if first is None else f"{value_of(inner, first):.6g}"))
    relaxed = relax(inner, watch)
    if relaxed.status == highs.INFEASIBLE and first is None:
        raise explain(program, watch.left())
    watch.say(f"relaxation: {relaxed.bound:.6g}, {relaxed.pivots:,} pivots, {watch.seconds():.1f} s")
    if relaxed.parts is not None:
        rounded = round_off(inner, relaxed, first, gap, watch)
    else:
        rounded = Rounded(first, relaxed.bound if np.isfinite(relaxed.bound) else -np.inf, 0)
    if rounded.chosen is None or relaxed.parts is None:
        again = bargain(inner, relaxed.prices, watch)
        if value_of(inner, again) < value_of(inner, rounded.chosen):
            rounded = rounded._replace(chosen=again)
    return rounded
