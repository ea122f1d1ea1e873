"""A plan under changes: valid after every step, whatever comes and goes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate.errors import PlanError
from headgate.plan.model import SOURCE, Capacities, Costs, Plan, Rewritings, same_capacities
from headgate.plan.running.changes import LivePlan
from headgate.plan.running.options import Option
from headgate.plan.running.validate import problems
from tests.plan.instances import LIMITS, random_costs, random_instance, rewritings_of, valid_plan
from tests.plan.reference import latency_of
from tests.seeds import seeds

if TYPE_CHECKING:
    from collections.abc import Sequence


def _all_direct(rewritings: Rewritings, costs: Costs, capacities: Capacities) -> Plan:
    """Stand for a solver: the source feeds everybody."""
    assert len(capacities.sites) == len(costs.source_sent)
    return Plan(np.full(len(rewritings.offsets) - 1, SOURCE, dtype=np.int64))


def _judge(living: LivePlan) -> None:
    """Check the plan as it is with the independent judge, and latencies by recursion."""
    now = living.current()
    assert problems(now.plan, now.rewritings, now.costs, now.capacities) == []
    chosen = now.plan.chosen.tolist()
    for row, view in enumerate(now.views.tolist()):
        assert living.latency(view) == pytest.approx(latency_of(row, chosen, now.rewritings, now.costs))
    assert not set(living.unfed) & set(now.views.tolist())


def _is_due(living: LivePlan) -> bool:
    """Ask anew: a type checker takes a property that was false once to stay so."""
    return living.due


def _option(rng: random.Random, views: Sequence[int]) -> Option:
    inputs = tuple(sorted(rng.sample(views, min(len(views), rng.randint(1, 3)))))
    return Option(
        inputs,
        rng.uniform(1, 5),
        rng.uniform(1, 3),
        tuple(rng.uniform(1, 4) for _ in inputs),
        tuple(rng.uniform(1, 2) for _ in inputs),
        rng.uniform(1, 3),
    )


def _source(rng: random.Random) -> Option:
    return Option((), rng.uniform(3, 9), rng.uniform(1, 3), (rng.uniform(1, 4),), (rng.uniform(1, 3),), 0.5)


@pytest.mark.parametrize("seed", seeds(40))
def test_random_changes(seed: int) -> None:
    """Views come and go, sites fail, plans are made again: after every step all is as it must be."""
    rng = random.Random(seed)
    instance = random_instance(rng, rng.randint(2, 25), limits=LIMITS[seed % 3])
    rewritings, costs, capacities = instance
    plan = valid_plan(rng, *instance)
    if seed % 2:
        direct = int((plan.chosen == SOURCE).sum())
        capacities = capacities._replace(source_fan_out=float(direct + rng.randint(0, 2)))
    living = LivePlan(plan, rewritings, costs, capacities, threshold=15)
    _judge(living)
    there = set(range(len(plan.chosen)))
    sites = dict(enumerate(capacities.sites.tolist()))
    alive = set(range(len(capacities.fan_out)))
    relieved: dict[int, list[int]] = {}
    for _ in range(40):
        what = rng.random()
        unfed = set(living.unfed)
        if what < 0.5 and alive:
            if rng.random() < 0.5:
                alive.add(living.add_site(rng.randint(0, 5), rng.uniform(3, 20), rng.uniform(4, 30)))
            site = rng.choice(sorted(alive))
            options = [_option(rng, sorted(there)) for _ in range(rng.randint(0, 4)) if there]
            before = living.current()
            refusal = ""
            try:
                view = living.add(site, options, _source(rng))
            except PlanError as error:
                refusal = str(error)
            else:
                assert view not in there
                there.add(view)
                sites[view] = site
            if refusal:
                assert "there is no room for a view at site" in refusal
                assert living.current().plan.chosen.tolist() == before.plan.chosen.tolist()
        elif what < 0.8 and there:
            view = rng.choice(sorted(there))
            change = living.withdraw(view)
            there.discard(view)
            assert set(living.unfed) == (unfed - {view} - set(change.fed_again)) | set(change.unfed)
        elif alive and rng.random() < 0.5:
            site = rng.choice(sorted(alive))
            if site in relieved:
                change = living.resume(relieved.pop(site))
            else:
                change = living.relieve([site])
                relieved[site] = [site]
            assert not change.unfed
            assert set(living.unfed) == unfed - set(change.fed_again)
        elif alive:
            site = rng.choice(sorted(alive))
            change = living.fail(site)
            alive.discard(site)
            relieved.pop(site, None)
            there -= {view for view in there if sites[view] == site}
            assert set(living.unfed) == (unfed & there) - set(change.fed_again) | set(change.unfed)
        _judge(living)
        assert set(living.current().views.tolist()) | set(living.unfed) == there
        if _is_due(living):
            if len(there) > capacities.source_fan_out:
                with pytest.raises(PlanError, match="the plan is not valid: the source exceeds its fan-out"):
                    living.replan(_all_direct)
            else:
                living.replan(_all_direct)
                assert not living.unfed
                assert living.changes == 0
            _judge(living)


REWRITINGS = rewritings_of([[], [(0,)], [(1,)], [(2,), (0,)]])
COSTS = random_costs(random.Random(0), REWRITINGS, whole=True)
CHAIN = Plan(np.array([SOURCE, 0, 1, 2], dtype=np.int64))


def _chain(fan_out: float = 3, source: float = 1) -> LivePlan:
    """View 0 at the source, 1 of 0, 2 of 1, 3 of 2; 3 could also be fed by 0."""
    return LivePlan(CHAIN, REWRITINGS, COSTS, same_capacities(4, fan_out, source_fan_out=source))


def test_a_site_is_relieved_and_feeds_again() -> None:
    """It feeds nobody elsewhere, but what only it can feed; afterwards all is as it was."""
    living = _chain(source=2)
    before = living.current().plan.chosen.tolist()
    # View 3 can be fed by 0, too.
    assert living.relieve([2]) == ((3,), (), ())
    assert living.current().plan.chosen.tolist() == [SOURCE, 0, 1, 3]
    # View 2 can be fed by the source, which then is full: a second time nothing is left.
    assert living.relieve([1]) == ((2,), (), ())
    assert living.current().plan.chosen.tolist() == [SOURCE, 0, SOURCE, 3]
    assert living.relieve([0]) == ((), (), ())
    _judge(living)
    with pytest.raises(PlanError, match="would feed one more"):
        living.add(3, [_by(0)], DIRECT)
    with pytest.raises(PlanError, match=r"sites \[3\] are not relieved"):
        living.resume([3])
    assert living.resume([0]) == ((), (), ())
    assert living.resume([1]) == ((2,), (), ())
    assert living.resume([2]) == ((3,), (), ())
    assert living.current().plan.chosen.tolist() == before
    _judge(living)


def _by(*inputs: int) -> Option:
    return Option(inputs, 1.0, 1.0, (1.0,) * len(inputs), (1.0,) * len(inputs), 1.0)


DIRECT = Option((), 1.0, 1.0, (1.0,), (1.0,), 0.0)


def test_dependants_are_treated_as_new() -> None:
    """Without view 2, view 3 is fed by 0; without 1, view 2 can only be fed by the source, which is full."""
    living = _chain()
    assert living.withdraw(2) == ((3,), (), ())
    assert living.current().plan.chosen.tolist() == [SOURCE, 0, 1]
    living = _chain()
    assert living.withdraw(1) == ((3,), (2,), ())
    assert living.unfed == (2,)
    assert _is_due(living)
    with pytest.raises(PlanError, match="view 2 is not fed"):
        living.latency(2)
    assert _chain(source=2).withdraw(1) == ((2,), (), ())


def test_room_is_given_to_those_that_wait() -> None:
    """View 2 waits for the source; when view 0 leaves it, 2 is fed again and 3 by it."""
    living = _chain()
    living.withdraw(1)
    assert living.withdraw(0) == ((3,), (), (2,))
    assert living.unfed == ()
    _judge(living)


def test_a_site_that_fails_takes_its_views_along() -> None:
    """Views 1 and 2 are on one site: both are gone, and view 3 is fed by 0."""
    capacities = same_capacities(4, 3, source_fan_out=1, sites=[0, 1, 1, 2])
    living = LivePlan(CHAIN, REWRITINGS, COSTS, capacities)
    assert living.fail(1) == ((3,), (), ())
    assert living.current().views.tolist() == [0, 3]
    _judge(living)
    for call in (lambda: living.fail(1), lambda: living.add(1, [], DIRECT)):
        with pytest.raises(PlanError, match="site 1 does not exist or has failed"):
            call()


def test_the_cheapest_with_room_is_taken() -> None:
    """A rewriting goes before the source, the cheaper before the dearer, one with room before one without."""
    living = _chain(fan_out=2, source=9)
    dear, cheap = _by(2)._replace(utilization=50.0), _by(1, 2)
    site = living.add_site(0)
    view = living.add(site, [dear, cheap], DIRECT)
    assert living.current().plan.chosen[view] == 5  # 4 rewritings before, then `dear` and `cheap`
    assert living.add(site, [dear, cheap], DIRECT) == view + 1  # view 2 has fed two already: so has site 2
    assert living.current().plan.chosen[view + 1] == SOURCE
    _judge(living)


def test_no_room_is_an_error_that_says_where() -> None:
    """A view with nowhere to go is refused; the message has the bounds, and the plan is as it was."""
    living = _chain(fan_out=1)
    site = living.add_site(1)
    message = (
        f"there is no room for a view at site {site}: by rewriting 0 the fan-out of site 0 would be 2 of 1, "
        "and by the source the fan-out of the source would be 2 of 1"
    )
    with pytest.raises(PlanError, match=message):
        living.add(site, [_by(0)], DIRECT)
    assert living.current().views.tolist() == [0, 1, 2, 3]
    assert living.changes == 0
    view = living.add(site, [_by(0), _by(3)], DIRECT)
    assert living.latency(view) == living.latency(3) + 1


def test_a_view_that_comes_back_is_a_new_one() -> None:
    """It gets a number of its own, and stands behind what it uses: no cycle can arise."""
    living = _chain(source=4)
    living.withdraw(0)
    again = living.add(0, [_by(3)], DIRECT)
    assert again == 4
    _judge(living)
    with pytest.raises(PlanError, match="view 0 does not exist or is gone"):
        living.add(1, [_by(0)], DIRECT)
    living.withdraw(3)
    _judge(living)


def test_when_a_plan_is_due() -> None:
    """After so many changes, or with a change and a full source; a full plan ends it."""
    living = LivePlan(CHAIN, REWRITINGS, COSTS, same_capacities(4, 9, source_fan_out=9), threshold=2)
    site = living.add_site(9)
    assert not _is_due(living)
    living.add(site, [_by(0)], DIRECT)
    assert not _is_due(living)
    living.add(site, [_by(0)], DIRECT)
    assert _is_due(living)
    living.replan(_all_direct)
    assert living.changes == 0
    assert (living.current().plan.chosen == SOURCE).all()


def test_a_full_source_makes_a_plan_due() -> None:
    """Not before anything has changed; and a plan that is not valid is not taken."""
    full = _chain()
    assert not _is_due(full)  # nothing has changed since it was planned
    full.add(full.add_site(1), [_by(0)], DIRECT)
    assert _is_due(full)
    with pytest.raises(PlanError, match="the plan is not valid: the source exceeds its fan-out: 5 of 1"):
        full.replan(_all_direct)
    _judge(full)


def test_refusals() -> None:
    """An invalid plan, views that are not there, options that say too little."""
    with pytest.raises(PlanError, match="the plan is not valid: site 0 exceeds its fan-out"):
        _chain(fan_out=0)
    living = _chain()
    for view in (-1, 4):
        with pytest.raises(PlanError, match=f"view {view} does not exist"):
            living.withdraw(view)
    with pytest.raises(PlanError, match="has no inputs"):
        living.add(0, [DIRECT], DIRECT)
    with pytest.raises(PlanError, match="what each of its inputs sends"):
        living.add(0, [_by(0)._replace(sent=())], DIRECT)
    with pytest.raises(PlanError, match="negative"):
        living.add_site(-1)
