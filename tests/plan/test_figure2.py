"""Figure 2 of the paper, as its text states it: a rewritability graph with a cycle."""

from __future__ import annotations

import random
from itertools import pairwise, product

import numpy as np
import pytest

from headgate.errors import PlanError
from headgate.plan.measures import levels, order_of
from headgate.plan.model import SOURCE, Plan, infinite_capacities, same_capacities
from headgate.plan.running.validate import problems
from tests.plan.instances import random_costs, rewritings_of

V1, V2, V3, V4, V5, V6, V7 = range(7)

# What the text says: v2 and v3 rewrite v5, v3 and v4 rewrite v6, and v6 and v7 rewrite each other.
LISTS: list[list[tuple[int, ...]]] = [[], [], [], [], [(V2, V3)], [(V3, V4), (V7,)], [(V6,)]]
REWRITINGS = rewritings_of(LISTS)
COSTS = random_costs(random.Random(0), REWRITINGS)


def _plans() -> list[Plan]:
    """List the configurations: for each view one of the nodes that point to it."""
    numbers = [[SOURCE, *range(first, end)] for first, end in pairwise(REWRITINGS.offsets)]
    return [Plan(np.array(chosen, dtype=np.int64)) for chosen in product(*numbers)]


def test_size_of_the_graph() -> None:
    """Nodes are views, AND nodes and the source; an AND node has one edge out, and one in for each input."""
    views = len(REWRITINGS.offsets) - 1
    by_source = views
    ands = by_source + len(REWRITINGS.input_offsets) - 1
    assert (views, ands, views + ands + 1) == (7, 11, 19)
    edges = ands + by_source + len(REWRITINGS.inputs)
    assert edges == 11 + 7 + 6
    assert ands <= views * (2 ** (views - 1) + 1)
    assert edges <= views**2 * (2 ** (views - 1) + 1)


def test_number_of_configurations() -> None:
    """There are as many as the product of indegrees; all but those with the cycle are valid."""
    degrees = [1 + len(row) for row in LISTS]
    plans = _plans()
    assert len(plans) == int(np.prod(degrees)) == 12
    free = infinite_capacities(7)
    for plan in plans:
        entangled = plan.chosen[V6] == 2 and plan.chosen[V7] == 3
        lines = problems(plan, REWRITINGS, COSTS, free)
        assert bool(lines) == entangled
        assert [line.split(" never")[0] for line in lines] == ["view 5", "view 6"] * bool(entangled)
    assert sum(not problems(plan, REWRITINGS, COSTS, free) for plan in plans) == 10


def test_the_cycle_has_no_order() -> None:
    """The graph is refused as a whole, the configuration with the cycle too; all others have levels."""
    with pytest.raises(PlanError, match="cycle through view"):
        order_of(REWRITINGS)
    for plan in _plans():
        if problems(plan, REWRITINGS, COSTS, infinite_capacities(7)):
            with pytest.raises(PlanError, match="the plan has a cycle through view"):
                levels(plan, REWRITINGS)
        else:
            assert levels(plan, REWRITINGS).max() <= 3
    deep = Plan(np.array([SOURCE] * 4 + [0, 1, 3], dtype=np.int64))
    assert levels(deep, REWRITINGS).tolist() == [1, 1, 1, 1, 2, 2, 3]


def test_fan_out_of_a_shared_view() -> None:
    """V3 feeds both v5 and v6: a bound of 1 forbids that, a bound of 2 does not."""
    plan = Plan(np.array([SOURCE] * 4 + [0, 1, 3], dtype=np.int64))
    assert problems(plan, REWRITINGS, COSTS, same_capacities(7, 1)) == ["site 2 exceeds its fan-out: 2 of 1"]
    assert problems(plan, REWRITINGS, COSTS, same_capacities(7, 2)) == []
