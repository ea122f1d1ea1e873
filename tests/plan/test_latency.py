"""LOGA: as Algorithm 2 to the letter; never worse, never over a bound, and nothing left to replace."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import numpy as np
import pytest

from headgate.errors import PlanError
from headgate.plan.latency.latency import loga
from headgate.plan.measures import latencies, loads, total_latency
from headgate.plan.model import (
    SOURCE,
    Capacities,
    Costs,
    Plan,
    Rewritings,
    infinite_capacities,
    same_capacities,
    scaled_capacities,
)
from headgate.plan.running.configuration import configuration
from headgate.plan.running.validate import problems
from tests.plan.instances import LIMITS, TIGHT, random_costs, random_instance, rewritings_of, valid_plan
from tests.plan.reference import loga_by_the_letter, mixed_cost, mixed_cost_of, within
from tests.seeds import seeds, share

pytestmark = pytest.mark.jit_off

WEIGHTS = ((0.0, 1.0), (0.5, 1.0), (4.0, 0.25), (1.0, 0.0))


def _drawn(seed: int, most: int, **options: bool) -> tuple[Plan, Rewritings, Costs, Capacities]:
    rng = random.Random(seed)
    instance = random_instance(rng, rng.randint(2, most), bare=0.1, limits=LIMITS[seed % 3], **options)
    return valid_plan(rng, *instance, slow=True), *instance


@pytest.mark.parametrize("seed", seeds(60))
@pytest.mark.parametrize(("alpha", "beta"), WEIGHTS)
def test_as_algorithm_2_has_it(seed: int, alpha: float, beta: float) -> None:
    """The same plan comes out as if the whole configuration were evaluated for each alternative."""
    plan, rewritings, costs, capacities = _drawn(seed, 14, whole=True)
    expected = loga_by_the_letter(plan, rewritings, costs, capacities, alpha=alpha, beta=beta)
    improved = loga(plan, rewritings, costs, capacities, alpha=alpha, beta=beta)
    assert improved.plan.chosen.tolist() == expected.chosen.tolist()
    assert improved.complete


@pytest.mark.parametrize("seed", seeds(60))
@pytest.mark.parametrize(("alpha", "beta"), WEIGHTS)
def test_views_move_to_the_source_as_by_the_letter(seed: int, alpha: float, beta: float) -> None:
    """The source is one alternative more for each view, within its bounds; it never makes a plan worse."""
    plan, rewritings, costs, capacities = _drawn(seed, 14, whole=True)
    room = float(np.count_nonzero(plan.chosen == SOURCE) + seed % 4)
    capacities = capacities._replace(source_fan_out=room)
    expected = loga_by_the_letter(plan, rewritings, costs, capacities, alpha=alpha, beta=beta, to_source=True)
    improved = loga(plan, rewritings, costs, capacities, alpha=alpha, beta=beta, to_source=True)
    assert improved.plan.chosen.tolist() == expected.chosen.tolist()
    swapped = loga(plan, rewritings, costs, capacities, alpha=alpha, beta=beta, to_source=True, swaps=True)
    before = mixed_cost(plan, rewritings, costs, alpha, beta)
    for found in (improved, swapped):
        assert problems(found.plan, rewritings, costs, capacities) == []
        last = found.trace[-1]
        cost = mixed_cost(found.plan, rewritings, costs, alpha, beta)
        assert cost == pytest.approx(alpha * last.utilization + beta * last.latency)
        assert cost <= before * (1 + 1e-9)


@pytest.mark.parametrize("seed", seeds(60))
@pytest.mark.parametrize("swaps", [False, True])
@pytest.mark.parametrize(("alpha", "beta"), WEIGHTS[:3])
def test_what_is_promised(seed: int, swaps: bool, alpha: float, beta: float) -> None:
    """The cost never rises, the plan is valid, source-fed views stay so, and no single change is left."""
    plan, rewritings, costs, capacities = _drawn(seed, 30)
    before = plan.chosen.copy()
    improved = loga(plan, rewritings, costs, capacities, alpha=alpha, beta=beta, swaps=swaps)
    assert plan.chosen.tolist() == before.tolist()
    assert problems(improved.plan, rewritings, costs, capacities) == []
    assert ((improved.plan.chosen == SOURCE) == (plan.chosen == SOURCE)).all()
    weighed = [alpha * moment.utilization + beta * moment.latency for moment in improved.trace]
    assert all(later <= sooner * (1 + 1e-9) for sooner, later in pairwise(weighed))
    assert weighed[0] == pytest.approx(mixed_cost(plan, rewritings, costs, alpha, beta))
    assert weighed[-1] == pytest.approx(mixed_cost(improved.plan, rewritings, costs, alpha, beta))
    seconds = [moment.seconds for moment in improved.trace]
    assert seconds == sorted(seconds)
    assert seconds[0] == 0

    chosen = improved.plan.chosen.tolist()
    for view, current in enumerate(chosen):
        if current == SOURCE:
            continue
        for other in range(rewritings.offsets[view], rewritings.offsets[view + 1]):
            chosen[view] = other
            if within(chosen, rewritings, costs, capacities):
                cost = mixed_cost_of(chosen, rewritings, costs, alpha, beta)
                assert cost >= weighed[-1] * (1 - 1e-9)
        chosen[view] = current


def test_swaps_find_more() -> None:
    """Over many instances with tight bounds swaps lower latency further, and are counted."""
    plain = swapped = before = 0.0
    swaps = 0
    for seed in seeds(16):
        rng = random.Random(seed)
        rewritings, costs, _ = random_instance(rng, 60, bare=0.1)
        capacities = same_capacities(60, 3)
        plan = valid_plan(rng, rewritings, costs, capacities, slow=True)
        before += total_latency(plan, rewritings, costs)
        plain += loga(plan, rewritings, costs, capacities).trace[-1].latency
        improved = loga(plan, rewritings, costs, capacities, swaps=True)
        swapped += improved.trace[-1].latency
        swaps += improved.swapped
        assert problems(improved.plan, rewritings, costs, capacities) == []
    assert before > plain > swapped * 1.01
    assert swaps > share(16)


def test_a_swap_by_hand() -> None:
    """View 3 wants to be fed by 0, which is full; view 2 can be fed by 1 just as well."""
    rewritings = rewritings_of([[], [], [(0,), (1,)], [(0,), (4,)], [(1,)]])
    costs = random_costs(random.Random(0), rewritings, whole=True)
    costs = costs._replace(latency=np.ones(5), source_latency=np.ones(5))
    capacities = same_capacities(5, 2)._replace(fan_out=np.array([1.0, 2.0, 1.0, 1.0, 1.0]))
    plan = Plan(np.array([SOURCE, SOURCE, 0, 3, 4]))
    assert problems(plan, rewritings, costs, capacities) == []
    assert loga(plan, rewritings, costs, capacities).plan.chosen.tolist() == plan.chosen.tolist()
    improved = loga(plan, rewritings, costs, capacities, swaps=True)
    assert improved.plan.chosen.tolist() == [SOURCE, SOURCE, 1, 2, 4]
    assert (improved.replaced, improved.swapped) == (0, 1)


@pytest.mark.parametrize("seed", seeds(30))
def test_wider_bounds_let_it_go_further(seed: int) -> None:
    """With 1.5 times the bounds the plan keeps to those; without any it is the quickest that there is."""
    rng = random.Random(seed)
    rewritings, costs, capacities = random_instance(rng, 20, bare=0.1, limits=TIGHT)
    plan = valid_plan(rng, rewritings, costs, capacities, slow=True)
    wider = scaled_capacities(capacities, 1.5)
    assert problems(loga(plan, rewritings, costs, wider).plan, rewritings, costs, wider) == []

    free = loga(plan, rewritings, costs, infinite_capacities(20)).plan
    least: dict[int, float] = {}

    def quickest(view: int) -> float:
        if view not in least:
            numbers = range(rewritings.offsets[view], rewritings.offsets[view + 1])
            rows = [
                rewritings.inputs[slice(*rewritings.input_offsets[number : number + 2])] for number in numbers
            ]
            least[view] = (
                float(costs.source_latency[view])
                if plan.chosen[view] == SOURCE
                else min(
                    float(costs.latency[number]) + max(quickest(int(each)) for each in row)
                    for number, row in zip(numbers, rows, strict=True)
                )
            )
        return least[view]

    assert latencies(free, rewritings, costs).tolist() == pytest.approx(
        [quickest(view) for view in range(20)]
    )


@pytest.mark.parametrize("seed", seeds(20))
@pytest.mark.parametrize("swaps", [False, True])
def test_what_is_kept_up_to_date_is_right(seed: int, swaps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads, latencies and lists, changed step by step, are what the plan makes of them if laid out anew."""
    kept = []

    def keep(*args: object) -> object:
        kept.append(configuration(*args))  # type: ignore[arg-type]
        return kept[-1]

    monkeypatch.setattr("headgate.plan.latency.latency.configuration", keep)
    plan, rewritings, costs, capacities = _drawn(seed, 40)
    improved = loga(plan, rewritings, costs, capacities, swaps=swaps)
    state = kept[-1]
    used = loads(improved.plan, rewritings, costs, capacities)
    assert state.latency.tolist() == latencies(improved.plan, rewritings, costs).tolist()
    expected = np.stack([used.fan_out, used.bandwidth, used.cpu], axis=1)
    np.testing.assert_allclose(state.used, expected, atol=1e-9)
    assert not state.queued.any()
    for feeder in range(len(plan.chosen)):
        listed = []
        slot = int(state.heads[feeder])
        while slot >= 0:
            listed.append(int(state.owners[slot]))
            slot = int(state.nexts[slot])
        fed = [
            view
            for view, number in enumerate(improved.plan.chosen.tolist())
            if number != SOURCE
            and feeder in rewritings.inputs[slice(*rewritings.input_offsets[number : number + 2])]
        ]
        assert sorted(listed) == fed


def test_time_runs_out() -> None:
    """Without any time the plan comes back as it was, and says that it is not done."""
    plan, rewritings, costs, capacities = _drawn(2, 40)
    improved = loga(plan, rewritings, costs, capacities, time_limit=0)
    assert improved.plan.chosen.tolist() == plan.chosen.tolist()
    assert not improved.complete
    assert len(improved.trace) == 1


def test_refusals() -> None:
    """A plan that breaks a bound is no beginning; weights must weigh something."""
    rewritings = rewritings_of([[], [(0,)], [(0,)]])
    costs = random_costs(random.Random(0), rewritings)
    plan = Plan(np.array([SOURCE, 0, 1]))
    with pytest.raises(PlanError, match=r"asks 2 of the fan-out of site 0, which is 1: begin with"):
        loga(plan, rewritings, costs, same_capacities(3, 1))
    for alpha, beta in ((-1.0, 1.0), (0.0, 0.0), (math.nan, 1.0), (math.inf, 1.0)):
        with pytest.raises(PlanError, match="weights"):
            loga(plan, rewritings, costs, infinite_capacities(3), alpha=alpha, beta=beta)


def test_nothing_to_do() -> None:
    """No views, or none that is rewritten."""
    rewritings = rewritings_of([])
    costs = random_costs(random.Random(0), rewritings)
    empty = loga(Plan(np.empty(0, dtype=np.int64)), rewritings, costs, infinite_capacities(0), swaps=True)
    assert len(empty.plan.chosen) == 0
    assert empty.complete
