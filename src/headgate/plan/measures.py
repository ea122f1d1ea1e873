"""An order of views in which inputs come first, and what a plan is like: levels, latencies, what sites bear.

A view that the source feeds is on level 1; another is one level behind the last of its inputs. Its latency is
that of its rewriting itself behind the slowest input. Both of a plan are sums over its views (section 2.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.errors import PlanError
from headgate.plan.model import SOURCE

if TYPE_CHECKING:
    from headgate.core.arrays import Floats64, Ints, Ints32
    from headgate.plan.model import Capacities, Costs, Plan, Rewritings


def order_of(rewritings: Rewritings) -> Ints32:
    """Order views such that everything any rewriting uses comes before it; refuses a graph with a cycle."""
    bounds = rewritings.input_offsets[rewritings.offsets]
    return _ordered(bounds[:-1], bounds[1:], rewritings.inputs, "the rewritability graph")


def plan_order(plan: Plan, rewritings: Rewritings) -> Ints32:
    """Order views such that inputs of chosen rewritings come before; refuses a plan with a cycle."""
    begins, ends = chosen_inputs(plan, rewritings)
    return _ordered(begins, ends, rewritings.inputs, "the plan")


def chosen_inputs(plan: Plan, rewritings: Rewritings) -> tuple[Ints, Ints]:
    """Tell where among `inputs` those of each view begin and end; none if the source feeds it."""
    fed = plan.chosen >= 0
    begins = np.where(fed, rewritings.input_offsets[np.where(fed, plan.chosen, 0)], 0)
    ends = np.where(fed, rewritings.input_offsets[np.where(fed, plan.chosen + 1, 0)], 0)
    return begins.astype(np.int64), ends.astype(np.int64)


def _ordered(begins: Ints, ends: Ints, inputs: Ints32, what: str) -> Ints32:
    order = np.empty(len(begins), dtype=np.int32)
    entangled = _order(
        np.ascontiguousarray(begins, dtype=np.int64),
        np.ascontiguousarray(ends, dtype=np.int64),
        np.ascontiguousarray(inputs, dtype=np.int32),
        order,
    )
    if entangled >= 0:
        raise PlanError(
            f"{what} has a cycle through view {entangled}: a view may not feed itself, by any way"
        )
    return order


@kernel
def _order(begins: Ints, ends: Ints, inputs: Ints32, order: Ints32) -> int:
    """Walk to the inputs first; a view enters the order behind them. Returns -1, or a view on a cycle."""
    views = len(begins)
    seen = np.zeros(views, dtype=np.int8)  # 0 not yet, 1 on the stack, 2 in the order
    stack = np.empty(views, dtype=np.int32)
    at = np.empty(views, dtype=np.int64)  # how far the inputs of the view on that place of the stack are done
    done = 0
    for root in range(views):
        if seen[root] != 0:
            continue
        depth = 0
        stack[0] = root
        at[0] = begins[root]
        seen[root] = 1
        while depth >= 0:
            view = stack[depth]
            if at[depth] < ends[view]:
                below = inputs[at[depth]]
                at[depth] += 1
                if seen[below] == 1:
                    return int(below)
                if seen[below] == 0:
                    seen[below] = 1
                    depth += 1
                    stack[depth] = below
                    at[depth] = begins[below]
            else:
                seen[view] = 2
                order[done] = view
                done += 1
                depth -= 1
    return -1


class Loads(NamedTuple):
    """What a plan asks of sites, by site, and of the source; compare with the fields of `Capacities`."""

    fan_out: Floats64
    bandwidth: Floats64
    cpu: Floats64
    source_fan_out: float
    source_bandwidth: float
    source_cpu: float


class Measures(NamedTuple):
    """Totals of a plan: how many views each level holds (from level 1 on), and the two parts of its cost."""

    per_level: Ints
    source_fed: int
    utilization: float
    latency: float

    def cost(self, alpha: float, beta: float) -> float:
        """Weigh the two parts: the mixed cost."""
        return alpha * self.utilization + beta * self.latency


def levels(plan: Plan, rewritings: Rewritings) -> Ints32:
    """Count the hops from the source to each view, by its longest way."""
    hops = np.ones(len(plan.chosen), dtype=np.float64)
    return _behind(plan, rewritings, hops).astype(np.int32)


def latencies(plan: Plan, rewritings: Rewritings, costs: Costs) -> Floats64:
    """Tell when each view has its result, counted from the publication."""
    return _behind(plan, rewritings, _of_choice(plan, costs.latency, costs.source_latency))


def utilizations(plan: Plan, costs: Costs) -> Floats64:
    """Tell what the rewriting of each view takes, or feeding it by the source."""
    return _of_choice(plan, costs.utilization, costs.source_utilization)


def utilization(plan: Plan, costs: Costs) -> float:
    """Sum up what all of a plan takes."""
    return float(utilizations(plan, costs).sum())


def total_latency(plan: Plan, rewritings: Rewritings, costs: Costs) -> float:
    """Sum up the latencies of all views."""
    return float(latencies(plan, rewritings, costs).sum())


def measures(plan: Plan, rewritings: Rewritings, costs: Costs) -> Measures:
    """Take all totals at once."""
    return Measures(
        np.bincount(levels(plan, rewritings), minlength=1)[1:].astype(np.int64),
        int((plan.chosen == SOURCE).sum()),
        utilization(plan, costs),
        total_latency(plan, rewritings, costs),
    )


def loads(plan: Plan, rewritings: Rewritings, costs: Costs, capacities: Capacities) -> Loads:
    """Sum up what is asked of each site: views fed elsewhere, bytes sent, work of sending and joining."""
    sites = capacities.sites
    count = len(capacities.fan_out)
    used = input_places(plan, rewritings)
    feeders = sites[rewritings.inputs[used]]
    begins, ends = chosen_inputs(plan, rewritings)
    remote = feeders != np.repeat(sites, ends - begins)
    used, feeders = used[remote], feeders[remote]
    fed = plan.chosen >= 0
    direct = ~fed
    joining = _of_choice(plan, costs.joining, costs.source_joining)
    work = np.bincount(feeders, costs.sending[used], count) + np.bincount(sites, joining, count)
    return Loads(
        np.bincount(feeders, minlength=count).astype(np.float64),
        np.bincount(feeders, costs.sent[used], count).astype(np.float64),
        work.astype(np.float64),
        float(direct.sum()),
        float(costs.source_sent[direct].sum()),
        float(costs.source_sending[direct].sum()),
    )


def input_places(plan: Plan, rewritings: Rewritings) -> Ints:
    """List the places in `inputs` that the chosen rewritings take up, view by view."""
    begins, ends = chosen_inputs(plan, rewritings)
    counts = ends - begins
    firsts = np.cumsum(counts) - counts
    return np.repeat(begins - firsts, counts) + np.arange(int(counts.sum()), dtype=np.int64)


def _of_choice(plan: Plan, by_rewriting: Floats64, by_source: Floats64) -> Floats64:
    taken = by_source.astype(np.float64)  # a copy
    fed = plan.chosen >= 0
    taken[fed] = by_rewriting[plan.chosen[fed]]
    return taken


def _behind(plan: Plan, rewritings: Rewritings, own: Floats64) -> Floats64:
    begins, ends = chosen_inputs(plan, rewritings)
    inputs = np.ascontiguousarray(rewritings.inputs, dtype=np.int32)
    return _add_up(plan_order(plan, rewritings), begins, ends, inputs, own)


@kernel
def _add_up(order: Ints32, begins: Ints, ends: Ints, inputs: Ints32, own: Floats64) -> Floats64:
    """Add to what each view takes itself the greatest sum of its inputs. Inputs come first in the order."""
    sums = np.empty(len(order), dtype=np.float64)
    for view in order:
        slowest = 0.0
        for edge in range(begins[view], ends[view]):
            slowest = max(slowest, sums[inputs[edge]])
        sums[view] = slowest + own[view]
    return sums
