"""The plan of least utilization: against all plans, against another solver, and with too little time."""

from __future__ import annotations

import itertools
import math
import random
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate.errors import PlanError
from headgate.plan.measures import utilization
from headgate.plan.model import (
    OPTIMAL,
    SOURCE,
    TIME_LIMIT,
    Capacities,
    Costs,
    Plan,
    Rewritings,
    infinite_capacities,
)
from headgate.plan.program.columns import bound_of, build, ceilings, relax
from headgate.plan.program.greedy import bargain
from headgate.plan.program.highs import Watch
from headgate.plan.program.infeasible import InfeasibleError
from headgate.plan.program.presolving import loads, presolve
from headgate.plan.program.program import Objective, keeps, round_off, solve, value_of
from headgate.plan.running.validate import problems
from tests.plan.instances import LIMITS, LOOSE, TIGHT, random_instance
from tests.plan.large_instances import large_instance
from tests.plan.second_solver import optima
from tests.seeds import seeds

if TYPE_CHECKING:
    from collections.abc import Iterable

Instance = tuple[Rewritings, Costs, Capacities]


def small_instance(seed: int, views: int, *, whole: bool = False, most: int = 3) -> Instance:
    """Draw an instance whose source is often too small, and whose CPUs are sometimes."""
    rng = random.Random(seed)
    count = rng.randint(1, views)
    rewritings, costs, capacities = random_instance(
        rng, count, most=most, limits=rng.choice(LIMITS), whole=whole, bare=rng.choice([0.1, 0.3])
    )
    source = float(rng.choice([count, count // 2, count - 1, math.inf]))
    return (
        rewritings,
        costs,
        capacities._replace(source_fan_out=source, cpu=capacities.cpu * rng.choice([1, 1, 0.6])),
    )


def plans(rewritings: Rewritings) -> itertools.product[tuple[int, ...]]:
    """List all plans, whether they keep capacities or not."""
    return itertools.product(
        *([SOURCE, *range(first, last)] for first, last in itertools.pairwise(rewritings.offsets.tolist()))
    )


def least_of_all(instance: Instance) -> float:
    """Try all plans; infinity if none is valid."""
    rewritings, costs, capacities = instance
    found = math.inf
    for choice in plans(rewritings):
        plan = Plan(np.array(choice, np.int64))
        cost = utilization(plan, costs)
        if cost < found and not problems(plan, rewritings, costs, capacities):
            found = cost
    return found


def solved(instance: Instance) -> float:
    """Solve an instance; the plan must be valid and proved. Infinity if there is none."""
    rewritings, costs, capacities = instance
    try:
        solution = solve(rewritings, costs, capacities)
    except InfeasibleError:
        return math.inf
    assert problems(solution.plan, rewritings, costs, capacities) == []
    assert solution.ended == OPTIMAL
    assert solution.utilization == pytest.approx(utilization(solution.plan, costs), rel=1e-12)
    assert solution.bound == pytest.approx(solution.utilization, rel=1e-8)
    return solution.utilization


@pytest.mark.jit_off
@pytest.mark.parametrize("seed", seeds(60))
def test_the_optimum_is_that_of_all_plans(seed: int) -> None:
    instance = small_instance(seed, 6)
    assert solved(instance) == pytest.approx(least_of_all(instance), rel=1e-9)


def compare_with_the_second_solver(numbers: Iterable[int]) -> None:
    """Compare optima, and whether there is a plan at all."""
    instances = [small_instance(seed, 40, whole=True, most=8) for seed in numbers]
    ours = [solved(instance) for instance in instances]
    theirs = [math.inf if least is None else float(least) for least in optima(instances)]
    assert ours == pytest.approx(theirs, rel=1e-9)
    assert any(map(math.isinf, ours))
    assert any(map(math.isfinite, ours))


@pytest.mark.jit_off
def test_the_optimum_is_that_of_the_paper_s_program_in_another_solver() -> None:
    # Number 20 has no plan, and few others have none.
    compare_with_the_second_solver((20 + number) % 60 for number in seeds(60))


@pytest.mark.nightly
def test_the_optimum_is_that_of_another_solver_on_more_instances() -> None:
    compare_with_the_second_solver(range(1000, 1200))


def hard_program(seed: int, views: int) -> Instance:
    """Draw an instance in which many rows bind and the relaxation is not whole."""
    rewritings, costs, capacities = large_instance(views, 6.0, seed=seed, most=8, steepness=2.0)
    width = float(np.percentile(costs.sent, 75)) * 4
    return rewritings, costs, capacities._replace(bandwidth=np.full(views, width), cpu=np.full(views, 12.0))


@pytest.mark.jit_off
@pytest.mark.parametrize("seed", seeds(3))
def test_the_way_of_large_programs_finds_what_small_ones_prove(seed: int) -> None:
    rewritings, costs, capacities = hard_program(seed, 300)
    proved = solve(rewritings, costs, capacities, time_limit=20)
    assert proved.ended == OPTIMAL
    program = build(rewritings, costs, capacities, costs.utilization, costs.source_utilization)
    reduced = presolve(program)
    inner, watch = reduced.program, Watch(20.0)
    relaxed = relax(inner, watch)
    fixed = program.costs[reduced.decided[reduced.decided >= 0]].sum()
    assert relaxed.bound + fixed <= proved.value * (1 + 1e-9)
    rounded = round_off(inner, relaxed, None, 0.0, watch)
    assert rounded.chosen is not None
    assert rounded.fractional > 0
    chosen = reduced.restore(rounded.chosen)
    assert keeps(program, chosen)
    assert problems(Plan(program.choices[chosen]), rewritings, costs, capacities) == []
    assert value_of(program, chosen) == pytest.approx(proved.value, rel=1e-6)
    assert rounded.bound + fixed == pytest.approx(proved.value, rel=1e-6)


@pytest.mark.parametrize("seed", seeds(40))
def test_presolving_keeps_the_optimum_and_without_dominance_all_plans(seed: int) -> None:
    rewritings, costs, capacities = small_instance(seed, 5)
    program = build(rewritings, costs, capacities, costs.utilization, costs.source_utilization)
    places = {
        (int(view), int(choice)): column
        for column, (view, choice) in enumerate(_named(program.offsets, program.choices))
    }
    valid = [
        [places[view, choice] for view, choice in enumerate(picked)]
        for picked in plans(rewritings)
        if not problems(Plan(np.array(picked, np.int64)), rewritings, costs, capacities)
    ]
    for dominance in (False, True):
        reduced = presolve(program, dominance=dominance)
        if reduced.full >= 0 or reduced.stuck >= 0:
            assert valid == []
            continue
        left = {*reduced.columns.tolist(), *reduced.decided[reduced.decided >= 0].tolist()}
        kept = [plan for plan in valid if left.issuperset(plan)]
        if not dominance:
            assert kept == valid
        elif valid:
            assert min(program.costs[plan].sum() for plan in kept) == pytest.approx(
                min(program.costs[plan].sum() for plan in valid), rel=1e-12
            )


def _named(offsets: np.ndarray, choices: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), choices, strict=True))


@pytest.mark.parametrize("seed", seeds(20))
def test_any_prices_give_a_bound(seed: int) -> None:
    instance = small_instance(seed, 6)
    rewritings, costs, capacities = instance
    program = build(rewritings, costs, capacities, costs.utilization, costs.source_utilization)
    prices = np.random.default_rng(seed).exponential(1.0, len(program.bounds))
    assert bound_of(program, prices) <= least_of_all(instance) + 1e-9


@pytest.mark.jit_off
@pytest.mark.parametrize("seed", seeds(20))
def test_bargaining_gives_nothing_or_a_plan_that_keeps_bounds(seed: int) -> None:
    rewritings, costs, capacities = random_instance(random.Random(seed), 60, limits=TIGHT)
    program = build(rewritings, costs, capacities, costs.utilization, costs.source_utilization)
    chosen = bargain(program, np.zeros(len(program.bounds)), Watch(10.0))
    assert chosen is not None
    assert (loads(program, chosen) <= ceilings(program.bounds)).all()
    assert problems(Plan(program.choices[chosen]), rewritings, costs, capacities) == []


def test_without_capacities_each_view_takes_its_cheapest() -> None:
    rewritings, costs, _ = random_instance(random.Random(5), 200)
    solution = solve(rewritings, costs, infinite_capacities(200))
    for view, choice in enumerate(solution.plan.chosen.tolist()):
        others = costs.utilization[rewritings.offsets[view] : rewritings.offsets[view + 1]]
        least = min(costs.source_utilization[view], others.min(initial=math.inf))
        assert least == (costs.source_utilization[view] if choice == SOURCE else costs.utilization[choice])
    assert solution.after.choices == 0
    assert solution.ended == OPTIMAL


def test_another_objective_replaces_utilization() -> None:
    rewritings, costs, capacities = random_instance(random.Random(8), 40, limits=LOOSE)
    wanted = Objective(costs.latency * 7, costs.source_latency * 7)
    solution = solve(rewritings, costs, capacities, objective=wanted)
    other = solve(
        rewritings,
        costs._replace(utilization=wanted.rewritings, source_utilization=wanted.source),
        capacities,
    )
    assert solution.value == pytest.approx(other.utilization)
    assert solution.utilization == pytest.approx(utilization(solution.plan, costs))


@pytest.mark.parametrize("limit", [0.0, 0.2])
def test_a_time_limit_still_gives_a_valid_plan_and_a_bound(limit: float) -> None:
    rewritings, costs, capacities = hard_program(1, 4000)
    capacities = capacities._replace(source_fan_out=4000.0, cpu=np.full(4000, math.inf))
    solution = solve(rewritings, costs, capacities, time_limit=limit, gap=0.0)
    assert problems(solution.plan, rewritings, costs, capacities) == []
    assert solution.ended == TIME_LIMIT
    assert solution.bound < solution.value
    assert solution.gap == pytest.approx((solution.value - solution.bound) / solution.value)
    free = solve(rewritings, costs, infinite_capacities(4000))
    assert solution.bound >= free.value * (1 - 1e-9)


def test_large_programs_end_within_the_gap() -> None:
    rewritings, costs, capacities = large_instance(6000, 10.0, most=20, steepness=4.0)
    words: list[str] = []
    solution = solve(rewritings, costs, capacities, progress=words.append)
    assert problems(solution.plan, rewritings, costs, capacities) == []
    assert solution.gap <= 0.01
    assert solution.before.choices > solution.after.choices > 6000
    assert (solution.plan.chosen == SOURCE).sum() <= capacities.source_fan_out


def test_progress_that_raises_stops_the_solver() -> None:
    rewritings, costs, capacities = hard_program(2, 4000)
    capacities = capacities._replace(source_fan_out=4000.0)

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(rewritings, costs, capacities, gap=0.0, progress=interrupt, time_limit=30)


def test_no_views_have_an_empty_plan() -> None:
    nothing = np.zeros(0)
    rewritings = Rewritings(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32))
    solution = solve(rewritings, Costs(*[nothing] * 10), infinite_capacities(0))
    assert len(solution.plan.chosen) == 0
    assert (solution.utilization, solution.gap, solution.ended) == (0.0, 0.0, OPTIMAL)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"utilization": np.array([math.nan])}, "costs of rewritings: 0 costs no finite number"),
        ({"sent": np.array([-1.0])}, "sent: number 0 is below 0"),
        ({"source_joining": np.zeros(3)}, "source_joining: 3 numbers for 2"),
    ],
)
def test_numbers_that_make_no_program_are_refused(changed: dict[str, np.ndarray], reason: str) -> None:
    rewritings = Rewritings(np.array([0, 0, 1]), np.array([0, 1]), np.array([0], np.int32))
    one, two = np.ones(1), np.ones(2)
    costs = Costs(one, one, one, one, one, two, two, two, two, two)._replace(**changed)
    with pytest.raises(PlanError, match=reason):
        solve(rewritings, costs, infinite_capacities(2))


def test_the_solver_is_not_loaded_with_the_package() -> None:
    code = "import sys, headgate, headgate.plan.program.program; print('highspy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "False"


def test_the_bound_is_a_number_however_short_the_time() -> None:
    for seed in seeds(20):
        rewritings, costs, capacities = random_instance(random.Random(seed), 12)
        try:
            found = solve(rewritings, costs, capacities, time_limit=0.0)
        except PlanError:
            continue
        assert 0 <= found.bound <= found.value
        assert found.gap <= 1
