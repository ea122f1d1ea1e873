"""Random instances of the planning problem: small, without cycles, with capacities as asked."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from headgate.plan.model import SOURCE, Capacities, Costs, Plan, Rewritings
from headgate.plan.running.validate import problems

if TYPE_CHECKING:
    import random

LOOSE = "loose"
TIGHT = "tight"
INFINITE = "infinite"
LIMITS = (LOOSE, TIGHT, INFINITE)


def random_instance(
    rng: random.Random,
    views: int,
    *,
    most: int = 6,
    widest: int = 3,
    bare: float = 0.2,
    limits: str = LOOSE,
    shared: float = 0.3,
    whole: bool = False,
) -> tuple[Rewritings, Costs, Capacities]:
    """Draw views with at most `most` rewritings each, over at most `widest` inputs.

    Inputs come from views before the view in a random order, so that nothing can be a cycle. A part `bare` of
    the views has no rewritings. With probability `shared` some sites hold several views. `limits` is LOOSE,
    TIGHT (most plans break something; the source can feed all views still) or INFINITE; `whole` draws costs
    from few whole numbers, so that there are ties.
    """
    rewritings = random_rewritings(rng, views, most=most, widest=widest, bare=bare)
    return (
        rewritings,
        random_costs(rng, rewritings, whole=whole),
        random_capacities(rng, views, limits, shared),
    )


def random_rewritings(
    rng: random.Random, views: int, *, most: int = 6, widest: int = 3, bare: float = 0.2
) -> Rewritings:
    """Draw the rewritability graph alone: inputs rising, no rewriting of a view twice."""
    order = rng.sample(range(views), views)
    drawn: list[list[tuple[int, ...]]] = [[] for _ in range(views)]
    for place, view in enumerate(order):
        if place == 0 or rng.random() < bare:
            continue
        found = {
            tuple(sorted(rng.sample(order[:place], min(place, rng.randint(1, widest)))))
            for _ in range(rng.randint(1, most))
        }
        drawn[view] = rng.sample(sorted(found), len(found))
    return rewritings_of(drawn)


def rewritings_of(lists: list[list[tuple[int, ...]]]) -> Rewritings:
    """Lay out the inputs of each rewriting of each view."""
    flat = [inputs for row in lists for inputs in row]
    return Rewritings(
        np.array([0, *accumulate(len(row) for row in lists)], dtype=np.int64),
        np.array([0, *accumulate(len(inputs) for inputs in flat)], dtype=np.int64),
        np.array([view for inputs in flat for view in inputs], dtype=np.int32),
    )


def random_costs(rng: random.Random, rewritings: Rewritings, *, whole: bool = False) -> Costs:
    """Draw costs; feeding by the source takes more utilization and less latency than most rewritings."""

    def some(count: int, least: int, most: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        if whole:
            return np.array([float(rng.randint(least, most)) for _ in range(count)], dtype=np.float64)
        return np.array([rng.uniform(least, most) for _ in range(count)], dtype=np.float64)

    views = len(rewritings.offsets) - 1
    count = len(rewritings.input_offsets) - 1
    inputs = len(rewritings.inputs)
    return Costs(
        utilization=some(count, 1, 5),
        latency=some(count, 1, 3),
        sent=some(inputs, 1, 4),
        sending=some(inputs, 1, 2),
        joining=some(count, 1, 3),
        source_utilization=some(views, 3, 9),
        source_latency=some(views, 1, 3),
        source_sent=some(views, 1, 4),
        source_sending=some(views, 1, 3),
        source_joining=some(views, 0, 1),
    )


def random_capacities(rng: random.Random, views: int, limits: str, shared: float = 0.3) -> Capacities:
    """Draw the sites of views, and what sites can bear."""
    if rng.random() < shared and views > 1:
        count = rng.randint(1, views)
        sites = [rng.randrange(count) for _ in range(views)]
    else:
        count = views
        sites = rng.sample(range(views), views)
    if limits == INFINITE:
        fan_out, bandwidth, cpu = [np.full(count, np.inf) for _ in range(3)]
        ends = [np.inf, np.inf, np.inf]
    else:
        # What each view adds to its site at worst is 1 + 3: joining. That much every site can bear.
        held = np.bincount(sites, minlength=count)
        wide = 8 if limits == LOOSE else 2
        fan_out = np.array([float(rng.randint(0 if limits == TIGHT else 2, wide)) for _ in range(count)])
        bandwidth = np.array([rng.uniform(1, 3 * wide) for _ in range(count)])
        cpu = 4.0 * held + np.array([rng.uniform(0, 3 * wide) for _ in range(count)])
        ends = [float(views), 4.0 * views, 3.0 * views]
    return Capacities(np.array(sites, dtype=np.int32), fan_out, bandwidth, cpu, *map(float, ends))


def random_plan(rng: random.Random, rewritings: Rewritings, *, direct: float = 0.2) -> Plan:
    """Choose at random, the source with probability `direct`, whether or not sites can bear it."""
    bounds = rewritings.offsets.tolist()
    return Plan(
        np.array(
            [
                SOURCE if first == end or rng.random() < direct else rng.randrange(first, end)
                for first, end in pairwise(bounds)
            ],
            dtype=np.int64,
        )
    )


def valid_plan(
    rng: random.Random, rewritings: Rewritings, costs: Costs, capacities: Capacities, *, slow: bool = False
) -> Plan:
    """Begin with all views at the source and move them to random rewritings while sites can bear it.

    With `slow` those that are moved take the rewriting with the greatest latency of their own among a few.
    """
    plan = Plan(np.full(len(rewritings.offsets) - 1, SOURCE, dtype=np.int64))
    for view in rng.sample(range(len(plan.chosen)), len(plan.chosen)):
        numbers = list(range(rewritings.offsets[view], rewritings.offsets[view + 1]))
        rng.shuffle(numbers)
        if slow:
            numbers.sort(key=lambda number: -costs.latency[number])
        for number in numbers:
            plan.chosen[view] = number
            if not problems(plan, rewritings, costs, capacities):
                break
            plan.chosen[view] = SOURCE
    assert not problems(plan, rewritings, costs, capacities)
    return plan
