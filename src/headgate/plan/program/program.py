"""The plan of least utilization under capacities: the integer program of the paper's section 3.3, solved.

build       one column for each rewriting and each view's source, one row for each finite capacity
presolve    rows that cannot bind, columns that are never needed; often all is decided then
small       what is left goes to the integer solver as a whole, and comes back exact
large       a first plan by bargaining; the relaxation, which is the bound; rounding near it

Rounding goes from the relaxation, where nearly all views are decided, to a plan:

1. Views that the relaxation took in parts are free, all others stay. If they cannot be decided among
   themselves, views at the same rows that would mind a change least are freed too, four times as many
   each time.
2. A column whose reduced cost is more than value - bound is in no better plan. Where few are left, the
   small program of these is the whole problem, and its optimum the optimum.
3. Where many are left, some views around crowded rows are freed at a time.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import PlanError
from headgate.plan.model import OPTIMAL, SOURCE, TIME_LIMIT, WITHIN_GAP, Plan, Solution, gap_of
from headgate.plan.program import highs
from headgate.plan.program.columns import (
    Program,
    Relaxed,
    build,
    ceilings,
    cheapest_columns,
    matrix_of,
    reduced_costs,
    relax,
    sizes,
)
from headgate.plan.program.greedy import bargain, settle
from headgate.plan.program.highs import Watch
from headgate.plan.program.infeasible import explain
from headgate.plan.program.presolving import loads, presolve, restrict

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.core.arrays import Floats64, Ints
    from headgate.plan.model import Capacities, Costs, Rewritings


SMALL = 6000
"""Columns of a program that is decided as a whole."""

NEIGHBOURS = 400
"""Views that are freed at a time when the whole is too large; later more if that was easy, fewer if hard."""

FEWEST = 50
PART = 3.0
NEAR = 10.0
"""Seconds for some views, and for those that the relaxation left undecided."""

NEARLY = 1e-6


class RoundedPlan(NamedTuple):
    """The columns of the best plan (None if none was found) and a bound that may be better than before."""

    chosen: Ints | None
    bound: float
    fractional: int


def value_of(program: Program, chosen: Ints | None) -> float:
    """Return what a plan costs; infinity for no plan."""
    return np.inf if chosen is None else float(program.costs[chosen].sum())


def keeps(program: Program, chosen: Ints) -> bool:
    """Say whether a plan keeps all bounds."""
    return bool((loads(program, chosen) <= ceilings(program.bounds)).all())


def decide(
    program: Program,
    watch: Watch,
    *,
    gap: float = 0.0,
    seconds: float | None = None,
    first: Ints | None = None,
) -> tuple[str, Ints | None, float]:
    """Solve a small program as a whole: how it ended, the columns, and a bound."""
    reduced = presolve(program)
    if reduced.full >= 0 or reduced.stuck >= 0:
        return highs.INFEASIBLE, None, np.inf
    fixed = float(program.costs[reduced.decided[reduced.decided >= 0]].sum())
    if not len(reduced.views):
        chosen = reduced.restore(np.zeros(0, np.int64))
        return highs.SOLVED, chosen, fixed
    inner = reduced.program
    matrix, scaling = matrix_of(inner, whole=True)
    start = _start(reduced.columns, len(program.choices), reduced.views, first)
    outcome = highs.branch(matrix, watch, "integer program", gap=gap, seconds=seconds, first=start)
    if outcome.status == highs.INFEASIBLE:
        return highs.INFEASIBLE, None, np.inf
    bound = outcome.bound / scaling.costs + scaling.offset + fixed
    if outcome.values is None:
        return outcome.status, None, bound
    chosen = reduced.restore(cheapest_columns(inner.offsets, -outcome.values))
    if not keeps(program, chosen):
        # Within the solver's tolerance of a bound, but not within ours: cannot be given to anybody.
        return highs.STOPPED, None, bound
    value = value_of(program, chosen)
    if outcome.status == highs.SOLVED and gap == 0.0:
        bound = value
    return outcome.status, chosen, min(bound, value)


def _start(columns: Ints, count: int, views: Ints, first: Ints | None) -> Floats64 | None:
    """Write a known plan for the solver, if all its columns are still there."""
    if first is None:
        return None
    known = np.zeros(count)
    known[first[views]] = 1.0
    return known[columns] if known[columns].sum() == len(views) else None


def round_off(
    program: Program, relaxed: Relaxed, first: Ints | None, gap: float, watch: Watch
) -> RoundedPlan:
    """Find a plan near the relaxation's optimum; `first` is one that is known."""
    assert relaxed.parts is not None
    reduced = reduced_costs(program, relaxed.prices)
    chosen = cheapest_columns(program.offsets, -relaxed.parts)
    fractional = np.flatnonzero(relaxed.parts[chosen] < 1.0 - NEARLY)
    plans = [first, _near(program, chosen, fractional, reduced, relaxed.parts, watch)]
    if plans[1] is None or gap_of(value_of(program, plans[1]), relaxed.bound) > gap:
        plans.append(bargain(program, relaxed.prices, watch))
    best = min(plans, key=lambda plan: value_of(program, plan))
    bound = relaxed.bound
    if best is None:
        return RoundedPlan(None, bound, len(fractional))
    watch.say(f"rounding: gap {gap_of(value_of(program, best), bound):.2e} after {watch.seconds():.1f} s")
    best, bound = _close(program, best, bound, reduced, gap, watch)
    return RoundedPlan(best, bound, len(fractional))


def _near(
    program: Program, chosen: Ints, fractional: Ints, reduced: Floats64, parts: Floats64, watch: Watch
) -> Ints | None:
    """Decide the fractional views; free others that mind least until it can be done."""
    count = len(program.offsets) - 1
    if not len(fractional):
        return settle(program, chosen) if keeps(program, chosen) else None
    order = _by_regret(program, chosen, reduced, parts, fractional)
    everything = np.ones(len(program.choices), np.bool_)
    free = len(fractional)
    while watch.left():
        part = restrict(program, order[:free], everything, chosen)
        _, answer, _ = decide(part.program, watch, gap=1e-4, seconds=NEAR)
        if answer is not None:
            whole = part.restore(answer)
            if keeps(program, whole):
                return settle(program, whole)
        if free == count:
            return None
        free = min(count, 4 * free)
    return None


def _by_regret(program: Program, chosen: Ints, reduced: Floats64, parts: Floats64, first: Ints) -> Ints:
    """Order views by what another column would cost them at least, in reduced costs.

    Some views go first, and after them those that use the rows which these cannot agree about.
    """
    others = reduced.copy()
    others[chosen] = np.inf
    regret = np.minimum.reduceat(others, program.offsets[:-1]) - reduced[chosen]
    rank = np.full(len(chosen), 2)
    divided = (parts > NEARLY) & (parts < 1.0 - NEARLY)
    disputed = np.zeros(len(program.bounds), np.bool_)
    disputed[program.use_rows[np.repeat(divided, np.diff(program.use_offsets))]] = True
    uses = np.zeros(len(program.choices), np.bool_)
    uses[np.repeat(np.arange(len(uses)), np.diff(program.use_offsets))[disputed[program.use_rows]]] = True
    rank[uses[chosen]] = 1
    rank[first] = 0
    return np.lexsort((regret, rank))


def _close(
    program: Program, best: Ints, bound: float, reduced: Floats64, gap: float, watch: Watch
) -> tuple[Ints, float]:
    """Close the gap, or bring it below what is asked for."""
    least = np.repeat(np.minimum.reduceat(reduced, program.offsets[:-1]), np.diff(program.offsets))
    free, rng = NEIGHBOURS, np.random.default_rng(0)
    while watch.left() and gap_of(value_of(program, best), bound) > gap:
        value = value_of(program, best)
        keep = reduced - least <= value - bound + NEARLY * max(1.0, abs(value))
        keep[best] = True
        several = np.add.reduceat(keep, program.offsets[:-1], dtype=np.int64) > 1
        if keep.sum() - (~several).sum() <= SMALL:
            part = restrict(program, np.flatnonzero(several), keep, best)
            status, answer, low = decide(part.program, watch, first=_inside(part.columns, best[part.views]))
            fixed = value - float(program.costs[best[part.views]].sum())
            if answer is not None:
                better = part.restore(answer)
                if value_of(program, better) < value and keeps(program, better):
                    best = better
            # Whatever is left out costs at least the value that is known: no plan is below both.
            bound = max(bound, min(low + fixed, value_of(program, best)))
            if status == highs.SOLVED:
                bound = max(bound, value_of(program, best))
            break
        # What a view pays above its best at these prices is its part in the gap: begin where that is much.
        views = _around(program, np.flatnonzero(several), reduced[best] - least[best], free, rng)
        part = restrict(program, views, keep, best)
        status, answer, _ = decide(
            part.program, watch, seconds=PART, first=_inside(part.columns, best[part.views])
        )
        better = best if answer is None else part.restore(answer)
        if value_of(program, better) < value and keeps(program, better):
            best = better
        elif status == highs.SOLVED:
            free = free * 5 // 4
        if status != highs.SOLVED:
            free = max(FEWEST, free * 2 // 3)
        watch.tick(partial("rounding: gap {:.2e}".format, gap_of(value_of(program, best), bound)))
    return best, bound


def _inside(columns: Ints, chosen: Ints) -> Ints:
    """Translate columns to their places among those of a part."""
    return np.searchsorted(columns, chosen).astype(np.int64)


def _around(program: Program, views: Ints, excess: Floats64, count: int, rng: np.random.Generator) -> Ints:
    """Pick views that share crowded rows: those that use rows of one view's columns, then of theirs."""
    count = min(count, len(views))
    owners = np.repeat(np.arange(len(program.offsets) - 1), np.diff(program.offsets))
    use_views = np.repeat(owners, np.diff(program.use_offsets))
    candidates = np.zeros(len(program.offsets) - 1, np.bool_)
    candidates[views] = True
    picked = np.zeros_like(candidates)
    weights = np.maximum(excess[views], 0.0) + 1e-3 * max(float(excess.max()), 1e-12)
    picked[rng.choice(views, p=weights / weights.sum())] = True
    rows = np.zeros(len(program.bounds), np.bool_)
    while picked.sum() < count:
        before = int(picked.sum())
        rows[program.use_rows[picked[use_views]]] = True
        near = np.unique(use_views[rows[program.use_rows]])
        near = near[candidates[near] & ~picked[near]]
        room = count - before
        picked[near if len(near) <= room else rng.choice(near, room, replace=False)] = True
        if picked.sum() == before:
            left = np.flatnonzero(candidates & ~picked)
            picked[rng.choice(left, min(room, len(left)), replace=False)] = True
    return np.flatnonzero(picked)


CLOSED = 1e-9
"""A gap that is only the last digits of sums."""


class Objective(NamedTuple):
    """What is minimised instead of utilization: of each rewriting, and of feeding each view by the source."""

    rewritings: Floats64
    source: Floats64


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


def _solve(program: Program, inner: Program, gap: float, watch: Watch) -> RoundedPlan:
    """Solve what presolving left; raises InfeasibleError in terms of the original."""
    if not len(inner.choices):
        return RoundedPlan(np.zeros(0, np.int64), 0.0, 0)
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
        return RoundedPlan(chosen, bound, 0)
    watch.say("first plan: " + ("none" if first is None else f"{value_of(inner, first):.6g}"))
    relaxed = relax(inner, watch)
    if relaxed.status == highs.INFEASIBLE and first is None:
        raise explain(program, watch.left())
    watch.say(f"relaxation: {relaxed.bound:.6g}, {relaxed.pivots:,} pivots, {watch.seconds():.1f} s")
    if relaxed.parts is not None:
        rounded = round_off(inner, relaxed, first, gap, watch)
    else:
        rounded = RoundedPlan(first, relaxed.bound if np.isfinite(relaxed.bound) else -np.inf, 0)
    if rounded.chosen is None or relaxed.parts is None:
        again = bargain(inner, relaxed.prices, watch)
        if value_of(inner, again) < value_of(inner, rounded.chosen):
            rounded = rounded._replace(chosen=again)
    return rounded
