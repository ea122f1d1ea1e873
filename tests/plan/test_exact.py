"""The plan of least mixed cost: against all plans, and against what is known of it."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from headgate.errors import PlanError
from headgate.plan.latency.latency import loga
from headgate.plan.model import OPTIMAL, TIME_LIMIT, Plan, infinite_capacities
from headgate.plan.program.infeasible import InfeasibleError
from headgate.plan.program.program import solve
from headgate.plan.running.validate import problems
from tests.plan.exact import exact
from tests.plan.instances import LOOSE, random_instance
from tests.plan.reference import mixed_cost
from tests.plan.test_program import Instance, plans, small_instance
from tests.seeds import seeds

pytestmark = pytest.mark.jit_off

WEIGHTS = [(0.0, 1.0), (1.0, 1.0), (1.0, 0.1), (1.0, 0.0)]


def least_of_all(instance: Instance, alpha: float, beta: float) -> float:
    """Try all plans; infinity if none is valid."""
    rewritings, costs, capacities = instance
    found = math.inf
    for choice in plans(rewritings):
        plan = Plan(np.array(choice, np.int64))
        cost = mixed_cost(plan, rewritings, costs, alpha, beta)
        if cost < found and not problems(plan, rewritings, costs, capacities):
            found = cost
    return found


@pytest.mark.parametrize("seed", seeds(60))
def test_the_optimum_is_that_of_all_plans(seed: int) -> None:
    instance = small_instance(seed, 6, whole=seed % 2 == 0)
    alpha, beta = WEIGHTS[seed % 4]
    expected = least_of_all(instance, alpha, beta)
    rewritings, costs, capacities = instance
    try:
        found = exact(rewritings, costs, capacities, alpha=alpha, beta=beta)
    except InfeasibleError:
        assert math.isinf(expected)
        return
    assert problems(found.plan, rewritings, costs, capacities) == []
    assert found.ended == OPTIMAL
    assert found.cost == pytest.approx(expected, rel=1e-9)
    assert found.cost == pytest.approx(alpha * found.utilization + beta * found.latency)


@pytest.mark.parametrize("seed", seeds(5))
def test_it_is_no_worse_than_the_search_for_low_latency(seed: int) -> None:
    rewritings, costs, capacities = random_instance(random.Random(seed), 40, limits=LOOSE, most=4)
    first = solve(rewritings, costs, capacities)
    improved = loga(first.plan, rewritings, costs, capacities, alpha=1.0, beta=1.0, swaps=True)
    known = mixed_cost(improved.plan, rewritings, costs, 1.0, 1.0)
    found = exact(rewritings, costs, capacities, alpha=1.0, beta=1.0, time_limit=20)
    assert found.cost <= known * (1 + 1e-9)
    assert found.bound <= found.cost
    assert problems(found.plan, rewritings, costs, capacities) == []


def test_with_utilization_alone_it_is_the_program_s_optimum() -> None:
    rewritings, costs, capacities = random_instance(random.Random(3), 60, limits=LOOSE)
    found = exact(rewritings, costs, capacities, alpha=2.0, beta=0.0)
    assert found.cost == pytest.approx(2.0 * solve(rewritings, costs, capacities).utilization)


def test_without_capacities_latency_alone_takes_the_quickest_ways() -> None:
    rewritings, costs, _ = random_instance(random.Random(4), 60)
    found = exact(rewritings, costs, infinite_capacities(60))
    assert found.ended == OPTIMAL
    assert found.latency <= costs.source_latency.sum()


def test_too_little_time_gives_the_best_that_is_known_and_its_bound() -> None:
    rewritings, costs, capacities = random_instance(random.Random(2), 100, limits=LOOSE, most=10, bare=0.05)
    capacities = capacities._replace(source_fan_out=30.0)
    found = exact(rewritings, costs, capacities, time_limit=1.0)
    assert problems(found.plan, rewritings, costs, capacities) == []
    assert found.ended == TIME_LIMIT
    assert found.bound < found.cost


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.0), (-1.0, 1.0), (math.nan, 1.0), (1.0, math.inf)])
def test_weights_that_weigh_nothing_are_refused(alpha: float, beta: float) -> None:
    rewritings, costs, capacities = random_instance(random.Random(0), 3)
    with pytest.raises(PlanError, match="weights"):
        exact(rewritings, costs, capacities, alpha=alpha, beta=beta)
