"""The plan of least mixed cost, alpha * utilization + beta * latency, proved: for hundreds of views.

The paper leaves latency out of the program, because products of choices are in it. It is linear with one
variable more for each view. Let l be the latency of a rewriting itself, and p that of the quickest way
through it, when all inputs are as quick as any plan can make them. The latency of a view is then p of its
choice and a delay d >= 0 that the plan adds:

    latency[u] = sum over its columns c of p[c] x[c]  +  d[u]
    d[v]  >=  latency[u] - most[u]  +  sum over columns a of v that use u of (most[u] + l[a] - p[a]) x[a]

If v is fed through u this says latency[v] >= latency[u] + l[a], and else nothing, since latency[u] is at most
most[u]. What makes it tight is `most`: a plan that is better than one that is known cannot be further above
the bound of the program without delays than that one, so no view can be later than by the difference.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import PlanError
from headgate.plan.latency.latency import loga
from headgate.plan.measures import order_of, total_latency, utilization
from headgate.plan.model import OPTIMAL, SOURCE, TIME_LIMIT, Plan, gap_of
from headgate.plan.program import highs
from headgate.plan.program.columns import Program, build, cheapest_columns, matrix_of
from headgate.plan.program.highs import Watch
from headgate.plan.program.program import CLOSED, Objective, keeps, solve
from tests.plan.reference import mixed_cost

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headgate.plan.model import Capacities, Costs, Rewritings


class ExactPlan(NamedTuple):
    """The best plan by mixed cost; no plan is below `bound`. `ended` is OPTIMAL or TIME_LIMIT."""

    plan: Plan
    cost: float
    bound: float
    gap: float
    utilization: float
    latency: float
    seconds: float
    ended: str


def exact(
    rewritings: Rewritings,
    costs: Costs,
    capacities: Capacities,
    *,
    alpha: float = 0.0,
    beta: float = 1.0,
    time_limit: float = 300.0,
    progress: Callable[[str], None] | None = None,
) -> ExactPlan:
    """Find the plan of least mixed cost that keeps all capacities, and prove it.

    Raises `InfeasibleError` if there is no plan. Made for small instances: how many views it proves depends
    on how tight capacities are, some tens to hundreds. Others end by the time limit, with the best that was
    found and a bound.
    """
    if not (alpha >= 0 and beta >= 0 and alpha + beta > 0 and math.isfinite(alpha + beta)):
        raise PlanError(
            f"the weights are {alpha} and {beta}: they are 0 or more, and one of them is more than 0"
        )
    watch = Watch(time_limit, progress)
    ways = _ways(rewritings, costs)
    mixed = Objective(
        alpha * costs.utilization + beta * ways.through,
        alpha * costs.source_utilization + beta * costs.source_latency,
    )
    assigned = solve(
        rewritings, costs, capacities, time_limit=watch.left(), gap=0.0, objective=mixed, progress=progress
    )
    known = loga(assigned.plan, rewritings, costs, capacities, alpha=alpha, beta=beta, swaps=True).plan
    known = min((known, assigned.plan), key=lambda plan: mixed_cost(plan, rewritings, costs, alpha, beta))
    cost, bound = mixed_cost(known, rewritings, costs, alpha, beta), assigned.bound
    watch.say(f"without delays at least {bound:.6g}, known {cost:.6g}")
    if beta > 0 and gap_of(cost, bound) > CLOSED and watch.left():
        program = build(rewritings, costs, capacities, mixed.rewritings, mixed.source)
        room = (cost - bound) / beta * (1 + 1e-9)
        found, low = _branch(program, rewritings, costs, beta, ways, room, known, watch)
        if found is not None and mixed_cost(found, rewritings, costs, alpha, beta) < cost:
            known, cost = found, mixed_cost(found, rewritings, costs, alpha, beta)
        # Plans that `room` leaves out are not better than the one that was known.
        bound = max(bound, min(low, cost))
    gap = gap_of(cost, bound)
    return ExactPlan(
        known,
        cost,
        min(bound, cost),
        gap,
        utilization(known, costs),
        total_latency(known, rewritings, costs),
        watch.seconds(),
        OPTIMAL if gap <= CLOSED else TIME_LIMIT,
    )


class _FastestPaths(NamedTuple):
    """Views with inputs first, the quickest way through each rewriting, and the quickest to each view."""

    order: NDArray[np.int32]
    through: NDArray[np.float64]
    least: NDArray[np.float64]


def _ways(rewritings: Rewritings, costs: Costs) -> _FastestPaths:
    order = order_of(rewritings)
    through = np.zeros(len(costs.latency))
    least = costs.source_latency.astype(np.float64)
    for view in order.tolist():
        for number in range(rewritings.offsets[view], rewritings.offsets[view + 1]):
            through[number] = costs.latency[number] + least[_inputs(rewritings, number)].max()
            least[view] = min(least[view], through[number])
    return _FastestPaths(order, through, least)


def _inputs(rewritings: Rewritings, number: int) -> NDArray[np.int32]:
    return rewritings.inputs[rewritings.input_offsets[number] : rewritings.input_offsets[number + 1]]


def _latest(rewritings: Rewritings, costs: Costs, ways: _FastestPaths, room: float) -> NDArray[np.float64]:
    """Return how late each view can be in a plan that is better than the one that is known."""
    most = costs.source_latency.astype(np.float64)
    for view in ways.order.tolist():
        for number in range(rewritings.offsets[view], rewritings.offsets[view + 1]):
            late = costs.latency[number] + most[_inputs(rewritings, number)].max()
            most[view] = max(most[view], min(late, ways.through[number] + room))
    return most


def _branch(
    program: Program,
    rewritings: Rewritings,
    costs: Costs,
    beta: float,
    ways: _FastestPaths,
    room: float,
    known: Plan,
    watch: Watch,
) -> tuple[Plan | None, float]:
    """Solve the program with delays; return the plan, if one was found, and a bound."""
    most = _latest(rewritings, costs, ways, room)
    matrix, factor, offset = _matrix(program, rewritings, costs, beta, ways, most)
    views, columns = len(program.offsets) - 1, len(program.choices)
    first = np.zeros(columns + views)
    fed = known.chosen != SOURCE
    taken = program.offsets[1:] - 1
    taken[fed] = known.chosen[fed] + np.flatnonzero(fed)
    first[taken] = 1.0
    first[columns:] = np.minimum(_delays(rewritings, costs, ways, known), room)
    outcome = highs.branch(matrix, watch, "exact plan", first=first)
    if outcome.status == highs.INFEASIBLE:
        # The plan that is known is at the edge of `room`: nothing is better.
        return None, np.inf
    low = outcome.bound / factor + offset
    if outcome.values is None:
        return None, low
    chosen = cheapest_columns(program.offsets, -outcome.values[:columns])
    if not keeps(program, chosen):
        return None, low
    return Plan(program.choices[chosen]), np.inf if outcome.status == highs.SOLVED else low


def _delays(rewritings: Rewritings, costs: Costs, ways: _FastestPaths, plan: Plan) -> NDArray[np.float64]:
    """Return how much later each view is in a plan than the quickest way through its choice."""
    latency = costs.source_latency.astype(np.float64)
    delays = np.zeros(len(latency))
    for view in ways.order.tolist():
        number = plan.chosen[view]
        if number != SOURCE:
            latency[view] = costs.latency[number] + latency[_inputs(rewritings, number)].max()
            delays[view] = max(0.0, latency[view] - ways.through[number])
    return delays


def _matrix(
    program: Program,
    rewritings: Rewritings,
    costs: Costs,
    beta: float,
    ways: _FastestPaths,
    most: NDArray[np.float64],
) -> tuple[highs.Matrix, float, float]:
    """Add the delays behind the columns, and a row for each view and each of its feeders."""
    plain, scaling = matrix_of(program, whole=True)
    views, columns, rows = len(program.offsets) - 1, len(program.choices), len(plain.lower)
    fed, feeders, weights = _pairs(program, rewritings, costs, ways, most)
    count = len(fed)
    quickest = np.empty(columns)
    quickest[program.choices != SOURCE] = ways.through
    quickest[program.choices == SOURCE] = costs.source_latency
    places, pair_of, values = weights
    # Of row i:  d[v]  -  d[u]  -  sum p x of u  -  sum (most + l - p) x of v through u  >=  -most[u]
    starts, ends = program.offsets[feeders], program.offsets[feeders + 1]
    spans = ends - starts
    feeder_columns = np.repeat(starts - (np.cumsum(spans) - spans), spans) + np.arange(spans.sum())
    feeder_rows = np.repeat(np.arange(count), spans)
    extra_columns = np.concatenate((feeder_columns, places, columns + fed, columns + feeders))
    extra_rows = np.concatenate((feeder_rows, pair_of, np.arange(count), np.arange(count))) + rows
    extra = np.concatenate((-quickest[feeder_columns], -values, np.ones(count), -np.ones(count)))
    old_columns = np.repeat(np.arange(columns), np.diff(plain.starts))
    all_columns = np.concatenate((old_columns, extra_columns))
    order = np.lexsort((np.concatenate((plain.rows, extra_rows)), all_columns))
    total = columns + views
    longest = most - np.minimum.reduceat(quickest, program.offsets[:-1])
    matrix = highs.Matrix(
        costs=np.concatenate((plain.costs, np.full(views, beta * scaling.costs))),
        most=np.concatenate((plain.most, np.maximum(0.0, longest))),
        starts=np.searchsorted(all_columns[order], np.arange(total + 1)).astype(np.int32),
        rows=np.concatenate((plain.rows, extra_rows))[order].astype(np.int32),
        amounts=np.concatenate((plain.amounts, extra))[order],
        lower=np.concatenate((plain.lower, -most[feeders])),
        upper=np.concatenate((plain.upper, np.full(count, np.inf))),
        whole=columns,
    )
    return matrix, scaling.costs, scaling.offset


def _pairs(
    program: Program, rewritings: Rewritings, costs: Costs, ways: _FastestPaths, most: NDArray[np.float64]
) -> tuple[
    NDArray[np.int64], NDArray[np.int64], tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
]:
    """List views with the feeders that can delay them, and the weights of the columns by which they do."""
    owners = np.repeat(np.arange(len(program.offsets) - 1), np.diff(program.offsets))
    widths = np.diff(rewritings.input_offsets)
    numbers = np.repeat(np.arange(len(widths)), widths)
    places = np.flatnonzero(program.choices != SOURCE)[numbers]
    feeders = rewritings.inputs.astype(np.int64)
    weights = most[feeders] + costs.latency[numbers] - ways.through[numbers]
    late = weights > 1e-12
    places, feeders, weights = places[late], feeders[late], weights[late]
    views = len(program.offsets) - 1
    keys, pair_of = np.unique(owners[places] * views + feeders, return_inverse=True)
    return keys // max(views, 1), keys % max(views, 1), (places, pair_of.astype(np.int64), weights)
