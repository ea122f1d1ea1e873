"""Levels, latencies and loads of plans, against the definitions by recursion; Figures 1 and 3."""

from __future__ import annotations

import random

import numpy as np
import pytest

from headgate.errors import PlanError
from headgate.plan.latency.latency import impact_order, reach
from headgate.plan.measures import (
    latencies,
    levels,
    loads,
    measures,
    order_of,
    plan_order,
    total_latency,
    utilization,
)
from headgate.plan.model import SOURCE, Costs, Plan
from tests.plan.instances import LIMITS, random_instance, random_plan, rewritings_of
from tests.plan.reference import (
    inputs_of,
    latency_of,
    level_of,
    mixed_cost,
    mixed_cost_of,
    reachable,
)
from tests.seeds import seeds

pytestmark = pytest.mark.jit_off


@pytest.mark.parametrize("seed", seeds(60))
def test_measures_are_as_defined(seed: int) -> None:
    """The quick way gives what recursion over the definitions gives."""
    rng = random.Random(seed)
    rewritings, costs, capacities = random_instance(rng, rng.randint(1, 25), limits=LIMITS[seed % 3])
    plan = random_plan(rng, rewritings)
    chosen = plan.chosen.tolist()
    views = range(len(chosen))
    assert levels(plan, rewritings).tolist() == [level_of(view, chosen, rewritings) for view in views]
    slow = [latency_of(view, chosen, rewritings, costs) for view in views]
    assert latencies(plan, rewritings, costs).tolist() == pytest.approx(slow)
    assert total_latency(plan, rewritings, costs) == pytest.approx(sum(slow))
    whole = measures(plan, rewritings, costs)
    for alpha, beta in ((1.0, 0.0), (0.0, 1.0), (0.3, 2.0)):
        expected = mixed_cost_of(chosen, rewritings, costs, alpha, beta)
        assert mixed_cost(plan, rewritings, costs, alpha, beta) == pytest.approx(expected)
        assert whole.cost(alpha, beta) == pytest.approx(expected)
    assert utilization(plan, costs) == pytest.approx(mixed_cost_of(chosen, rewritings, costs, 1, 0))
    assert whole.source_fed == chosen.count(SOURCE)
    assert whole.per_level.sum() == len(chosen)
    assert whole.per_level[0] == chosen.count(SOURCE)

    used = loads(plan, rewritings, costs, capacities)
    for site in range(len(capacities.fan_out)):
        here = [view for view in views if capacities.sites[view] == site]
        sent = [
            place
            for view, number in enumerate(chosen)
            if number != SOURCE and view not in here
            for place in range(*rewritings.input_offsets[number : number + 2])
            if rewritings.inputs[place] in here
        ]
        joined = [
            costs.source_joining[view] if chosen[view] == SOURCE else costs.joining[chosen[view]]
            for view in here
        ]
        assert used.fan_out[site] == len(sent)
        assert used.bandwidth[site] == pytest.approx(sum(costs.sent[sent]))
        assert used.cpu[site] == pytest.approx(sum(costs.sending[sent]) + sum(joined))
    direct = plan.chosen == SOURCE
    assert used.source_fan_out == direct.sum()
    assert used.source_bandwidth == pytest.approx(costs.source_sent[direct].sum())
    assert used.source_cpu == pytest.approx(costs.source_sending[direct].sum())


@pytest.mark.parametrize("seed", seeds(40))
def test_orders_put_inputs_first(seed: int) -> None:
    """In the order of a graph all inputs come first, in that of a plan those that are chosen."""
    rng = random.Random(seed)
    rewritings, _, _ = random_instance(rng, rng.randint(1, 30))
    plan = random_plan(rng, rewritings)
    place = {view: rank for rank, view in enumerate(order_of(rewritings).tolist())}
    chosen_place = {view: rank for rank, view in enumerate(plan_order(plan, rewritings).tolist())}
    assert sorted(place) == sorted(chosen_place) == list(range(len(plan.chosen)))
    for view in range(len(plan.chosen)):
        for number in range(rewritings.offsets[view], rewritings.offsets[view + 1]):
            assert all(place[each] < place[view] for each in inputs_of(number, rewritings))
        if plan.chosen[view] != SOURCE:
            chosen = inputs_of(int(plan.chosen[view]), rewritings)
            assert all(chosen_place[each] < chosen_place[view] for each in chosen)


@pytest.mark.parametrize("seed", seeds(30))
@pytest.mark.parametrize("limit", [None, 0])
def test_reach_counts_all_that_is_fed(seed: int, limit: int | None) -> None:
    """Both ways of counting give what the definition gives, also past one block of bits."""
    rng = random.Random(seed)
    rewritings, costs, _ = random_instance(rng, rng.choice((1, 20, 60)), bare=0.05, whole=True)
    plan = random_plan(rng, rewritings, direct=0.05)
    expected = [len(fed) for fed in reachable(plan.chosen.tolist(), rewritings)]
    assert reach(plan, rewritings, limit=limit).tolist() == expected
    latency = latencies(plan, rewritings, costs)
    order = impact_order(latency, np.array(expected))
    impact = [float(latency[view]) * expected[view] for view in range(len(expected))]
    assert order.tolist() == sorted(range(len(expected)), key=lambda view: (-impact[view], view))


def test_reach_over_several_blocks_of_bits() -> None:
    """A chain of 1,300 views: the first feeds all others, in whichever way it is counted."""
    views = 1300
    rewritings = rewritings_of([[(view - 1,)] if view else [] for view in range(views)])
    plan = Plan(np.arange(-1, views - 1, dtype=np.int64))
    expected = list(range(views - 1, -1, -1))
    assert reach(plan, rewritings, limit=10).tolist() == expected
    assert reach(plan, rewritings, limit=10**9).tolist() == expected


def test_a_cycle_is_refused() -> None:
    """Two views that feed each other have no order; one alone may be chosen."""
    rewritings = rewritings_of([[(1,)], [(0,)]])
    with pytest.raises(PlanError, match="the rewritability graph has a cycle through view 0"):
        order_of(rewritings)
    with pytest.raises(PlanError, match="the plan has a cycle through view 0"):
        plan_order(Plan(np.array([0, 1])), rewritings)
    assert plan_order(Plan(np.array([0, SOURCE])), rewritings).tolist() == [1, 0]


def _hops(views: int, rewritings: int, inputs: int) -> Costs:
    """Make every hop take 1, and nothing cost anything else."""
    return Costs(
        np.zeros(rewritings),
        np.ones(rewritings),
        np.zeros(inputs),
        np.zeros(inputs),
        np.zeros(rewritings),
        np.zeros(views),
        np.ones(views),
        np.zeros(views),
        np.zeros(views),
        np.zeros(views),
    )


def test_figure_1() -> None:
    """The three networks over s1 to s5: all from the source; s4 of s1 and s2, s5 of s4; one after another.

    The figure's text: (b) has s5 fed by s4, and s4 by s1 and s2; (c) has only s1 at the source, s2 of s1, s3
    of s2, and so on. Latency is counted in hops.
    """
    rewritings = rewritings_of([[], [(0,)], [(1,)], [(0, 1), (2,)], [(3,)]])
    costs = _hops(5, 5, 6)
    flat = Plan(np.full(5, SOURCE, dtype=np.int64))
    joined = Plan(np.array([SOURCE, SOURCE, SOURCE, 2, 4]))
    chain = Plan(np.array([SOURCE, 0, 1, 3, 4]))
    assert levels(flat, rewritings).tolist() == [1, 1, 1, 1, 1]
    assert levels(joined, rewritings).tolist() == [1, 1, 1, 2, 3]
    assert levels(chain, rewritings).tolist() == [1, 2, 3, 4, 5]
    assert [total_latency(plan, rewritings, costs) for plan in (flat, joined, chain)] == [5, 8, 15]
    assert [measures(plan, rewritings, costs).source_fed for plan in (flat, joined, chain)] == [5, 3, 1]


@pytest.mark.parametrize("seed", seeds(10))
def test_figure_3(seed: int) -> None:
    """Section 3.3's formulas: v1 of v2 and v3; v4 of v2 and v3, or of v1."""
    rng = random.Random(seed)
    # Views 0 to 3 are v1 to v4. Rewritings: 0 is v1's; 1 and 2 are v4's first and second.
    rewritings = rewritings_of([[(1, 2)], [], [], [(1, 2), (0,)]])
    own = [rng.uniform(1, 9) for _ in range(3)]
    direct = [rng.uniform(1, 9) for _ in range(4)]
    costs = _hops(4, 3, 5)._replace(latency=np.array(own), source_latency=np.array(direct))
    for first in (0, 1):
        for fourth in (0, 1, 2):
            x1 = [first == 0, first == 1]
            x4 = [fourth == 0, fourth == 1, fourth == 2]
            plan = Plan(
                np.array([0 if x1[1] else SOURCE, SOURCE, SOURCE, [SOURCE, 1, 2][fourth]], dtype=np.int64)
            )
            both = max(direct[1], direct[2])
            v1 = x1[0] * direct[0] + x1[1] * (own[0] + both)
            v4 = x4[0] * direct[3] + x4[1] * (own[1] + both) + x4[2] * (own[2] + v1)
            found = latencies(plan, rewritings, costs).tolist()
            assert found == pytest.approx([v1, direct[1], direct[2], v4])
