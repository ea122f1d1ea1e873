"""The judge of plans: it passes valid ones and names each kind of fault."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from headgate.errors import PlanError
from headgate.plan.measures import loads
from headgate.plan.model import (
    SOURCE,
    Capacities,
    Plan,
    infinite_capacities,
    same_capacities,
    scaled_capacities,
)
from headgate.plan.running.validate import problems
from tests.plan.instances import LIMITS, random_costs, random_instance, random_plan, rewritings_of
from tests.plan.reference import source_within, within
from tests.seeds import seeds

REWRITINGS = rewritings_of([[], [(0,)], [(0, 1), (1,)], [(2,)]])
COSTS = random_costs(random.Random(0), REWRITINGS, whole=True)


def _plan(*chosen: int) -> Plan:
    return Plan(np.array(chosen, dtype=np.int64))


def _judged(plan: Plan, capacities: Capacities | None = None) -> list[str]:
    return problems(plan, REWRITINGS, COSTS, capacities or infinite_capacities(4))


def test_valid_plans_pass() -> None:
    """All views at the source, and a chain."""
    assert _judged(_plan(SOURCE, SOURCE, SOURCE, SOURCE)) == []
    assert _judged(_plan(SOURCE, 0, 2, 3)) == []


def test_every_view_is_fed_once() -> None:
    """A plan has one entry for each view, no more and no less."""
    assert _judged(_plan(SOURCE, SOURCE)) == ["the plan feeds 2 views, there are 4"]


@pytest.mark.parametrize("number", [0, 3, 4, 99, -2])
def test_rewritings_are_the_views_own(number: int) -> None:
    """Another view's rewriting, or none at all, feeds nobody."""
    line = f"view 2 is fed by {number}, which is not one of its rewritings"
    assert _judged(_plan(SOURCE, SOURCE, number, SOURCE)) == [line]


def test_inputs_exist() -> None:
    """A rewriting needs inputs, all of them views."""
    broken = REWRITINGS._replace(inputs=np.array([0, 0, 7, 1, 2], dtype=np.int32))
    assert problems(_plan(SOURCE, SOURCE, 1, SOURCE), broken, COSTS, infinite_capacities(4)) == [
        "view 2 is fed by view 7, which does not exist"
    ]
    empty = rewritings_of([[], [()]])
    costs = random_costs(random.Random(0), empty)
    assert problems(_plan(SOURCE, 0), empty, costs, infinite_capacities(2)) == [
        "view 1 is fed by rewriting 0, which has no inputs"
    ]


def test_cycles_get_no_data() -> None:
    """Views that feed each other wait for ever, and so do those behind them; others do not."""
    rewritings = rewritings_of([[(1,)], [(0, 3)], [(1,)], []])
    costs = random_costs(random.Random(0), rewritings)
    lines = problems(_plan(0, 1, 2, SOURCE), rewritings, costs, infinite_capacities(4))
    assert [line.split(" never gets data")[0] for line in lines] == ["view 0", "view 1", "view 2"]
    assert not problems(_plan(SOURCE, 1, 2, SOURCE), rewritings, costs, infinite_capacities(4))
    itself = rewritings_of([[(0,)]])
    costs = random_costs(random.Random(0), itself)
    assert len(problems(_plan(0), itself, costs, infinite_capacities(1))) == 1


@pytest.mark.parametrize("what", ["fan_out", "bandwidth", "cpu"])
def test_capacities_of_sites(what: str) -> None:
    """Each bound of each site is looked at; what just fits, fits."""
    plan = _plan(SOURCE, 0, 1, 3)
    used = getattr(loads(plan, REWRITINGS, COSTS, infinite_capacities(4)), what)
    exact = infinite_capacities(4)._replace(**{what: used.copy()})
    assert _judged(plan, exact) == []
    for site in range(4):
        if used[site] == 0:
            continue
        short = used.copy()
        short[site] *= 0.99
        lines = _judged(plan, infinite_capacities(4)._replace(**{what: short}))
        name = what.replace("_", "-")
        assert lines == [f"site {site} exceeds its {name}: {used[site]:g} of {short[site]:g}"]


@pytest.mark.parametrize("what", ["fan_out", "bandwidth", "cpu"])
def test_capacities_of_the_source(what: str) -> None:
    """The source has bounds as well."""
    plan = _plan(SOURCE, SOURCE, 1, 3)
    used = getattr(loads(plan, REWRITINGS, COSTS, infinite_capacities(4)), f"source_{what}")
    assert _judged(plan, infinite_capacities(4)._replace(**{f"source_{what}": used})) == []
    lines = _judged(plan, infinite_capacities(4)._replace(**{f"source_{what}": used * 0.9}))
    assert lines == [f"the source exceeds its {what.replace('_', '-')}: {used:g} of {used * 0.9:g}"]
    unknown: dict[str, Any] = {f"source_{what}": math.nan}
    assert _judged(plan, infinite_capacities(4)._replace(**unknown))


def test_views_of_one_site_count_together() -> None:
    """A rewriting over two views of one site counts twice there."""
    plan = _plan(SOURCE, SOURCE, 1, SOURCE)
    together = same_capacities(4, 1, sites=[0, 0, 1, 1])
    assert _judged(plan, together) == ["site 0 exceeds its fan-out: 2 of 1"]
    assert _judged(plan, same_capacities(4, 2, sites=[0, 0, 1, 1])) == []


@pytest.mark.parametrize("seed", seeds(60))
def test_random_plans(seed: int) -> None:
    """The judge agrees with two other ways of counting, for sites and for the source."""
    rng = random.Random(seed)
    rewritings, costs, capacities = random_instance(rng, rng.randint(1, 12), limits=LIMITS[seed % 3])
    capacities = capacities._replace(source_fan_out=float(rng.randint(1, 12)))
    plan = random_plan(rng, rewritings)
    lines = problems(plan, rewritings, costs, capacities)
    sites = within(plan.chosen.tolist(), rewritings, costs, capacities)
    assert (not any(line.startswith("site") for line in lines)) == sites
    fits = int((plan.chosen == SOURCE).sum()) <= capacities.source_fan_out
    assert source_within(plan.chosen.tolist(), costs, capacities) == fits
    assert (not any(line.startswith("the source") for line in lines)) == fits
    assert not any("never gets" in line for line in lines)


def test_capacities_by_the_usual_ways() -> None:
    """One bound for all, none, and scaled ones; what makes no sense is refused."""
    same = same_capacities(3, 5, source_fan_out=2, sites=[1, 0, 1])
    assert same.fan_out.tolist() == [5, 5]
    assert same.sites.tolist() == [1, 0, 1]
    assert same.bandwidth.tolist() == [math.inf, math.inf]
    wider = scaled_capacities(same, 1.5)
    assert wider.fan_out.tolist() == [7.5, 7.5]
    assert wider.source_fan_out == 2
    assert scaled_capacities(infinite_capacities(2), 1.5).cpu.tolist() == [math.inf, math.inf]
    assert len(infinite_capacities(0).sites) == 0
    with pytest.raises(PlanError, match="negative"):
        same_capacities(3, -1)
    with pytest.raises(PlanError, match="2 sites are given for 3 views"):
        same_capacities(3, 1, sites=[0, 1])
    with pytest.raises(PlanError, match="number -1: sites count from 0"):
        same_capacities(1, 1, sites=[-1])
    with pytest.raises(PlanError, match="cannot be scaled by 0"):
        scaled_capacities(same, 0)
