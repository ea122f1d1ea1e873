"""Why there is no plan, in one line that names the cause."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from headgate.plan.model import Capacities, Costs, Rewritings, same_capacities
from headgate.plan.program.infeasible import InfeasibleError, Shortage
from headgate.plan.program.program import solve
from tests.plan.instances import TIGHT, random_instance, rewritings_of
from tests.plan.large_instances import large_instance
from tests.seeds import seeds


def ones(rewritings: Rewritings) -> Costs:
    """Cost everything 1."""
    views, count, edges = (
        len(rewritings.offsets) - 1,
        len(rewritings.input_offsets) - 1,
        len(rewritings.inputs),
    )
    sizes = (count, count, edges, edges, count, views, views, views, views, views)
    return Costs(*(np.ones(size) for size in sizes))


def refusal(rewritings: Rewritings, costs: Costs, capacities: Capacities) -> InfeasibleError:
    """Ask for a plan that does not exist."""
    with pytest.raises(InfeasibleError) as caught:
        solve(rewritings, costs, capacities, time_limit=30)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_source_that_must_feed_too_many_is_named_with_the_views() -> None:
    graph = rewritings_of([[], [], [(0, 1)], [], [], []])
    error = refusal(graph, ones(graph), same_capacities(6, 9, source_fan_out=2))
    assert str(error) == (
        "no plan: the source has fan-out 2, but 5 views can only be fed by it (0, 1, 3, …): give it 5 or more"
    )
    assert error.shortages == (Shortage("fan-out", -1, 2.0, 3.0),)
    assert error.views == (0, 1, 3, 4, 5)


def test_giving_what_is_asked_for_makes_a_plan() -> None:
    rewritings, costs, capacities = large_instance(1000, math.inf)
    error = refusal(rewritings, costs, capacities._replace(source_fan_out=10.0))
    asked = 10 + error.shortages[0].lacks
    assert f"give it {asked:.0f} or more" in str(error)
    assert len(error.views) == asked
    solve(rewritings, costs, capacities._replace(source_fan_out=asked))
    refusal(rewritings, costs, capacities._replace(source_fan_out=asked - 1))


def test_a_site_without_cpu_for_its_own_views_is_named() -> None:
    graph = rewritings_of([[], [(0,)], []])
    capacities = same_capacities(3, sites=[0, 1, 1])._replace(cpu=np.array([9.0, 1.5]))
    error = refusal(graph, ones(graph), capacities)
    assert (
        str(error)
        == "no plan: site 1 has CPU 1.5, but 2 views take 2 of it at least (1, 2): give it 2 or more"
    )


def test_sites_that_are_short_together_are_named_with_what_they_lack() -> None:
    # Views 1 to 4 have only view 0 beside the source; it may feed one, the source two.
    graph = rewritings_of([[], [(0,)], [(0,)], [(0,)], [(0,)]])
    error = refusal(graph, ones(graph), same_capacities(5, 1, source_fan_out=2))
    assert sum(shortage.lacks for shortage in error.shortages) == 2.0
    assert {shortage.site for shortage in error.shortages} <= {-1, 0}
    assert str(error).startswith("no plan keeps all capacities: ")
    assert "lacks" in str(error)


@pytest.mark.parametrize("seed", seeds(30))
def test_what_is_lacked_is_enough(seed: int) -> None:
    rewritings, costs, capacities = random_instance(random.Random(seed), 30, limits=TIGHT)
    error = refusal(rewritings, costs, capacities._replace(source_fan_out=3.0))
    fields = {"fan-out": "fan_out", "bandwidth": "bandwidth", "CPU": "cpu"}
    capacities = capacities._replace(source_fan_out=3.0)
    for shortage in error.shortages:
        name = fields[shortage.resource]
        raised = shortage.bears + shortage.lacks + 1e-6
        if shortage.resource == "fan-out":
            raised = round(raised)
        if shortage.site < 0:
            capacities = Capacities(**{**capacities._asdict(), f"source_{name}": raised})
        else:
            getattr(capacities, name)[shortage.site] = raised
    alone = "keeps all" not in str(error)
    second = None
    try:
        solve(rewritings, costs, capacities)
    except InfeasibleError as raised_again:
        second = raised_again
    # A capacity that was short on its own is not in the way any more; others may be behind it.
    assert second is None or (alone and second.shortages[0] != error.shortages[0])


def test_a_large_program_tells_the_cause_too() -> None:
    rewritings, costs, capacities = large_instance(4000, 1.0, most=10, steepness=6.0)
    error = refusal(rewritings, costs, capacities)
    assert error.shortages
    assert all(shortage.lacks > 0 for shortage in error.shortages)
    assert error.shortages[0].site == -1
