"""Views at sites: what feeds cost that take no link, or links of their own, against the letter."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate import Dissemination, Event, Subscription
from headgate import Settings as PlanSettings
from headgate.errors import PlanError
from headgate.plan.costs import Settings, costs_of
from headgate.plan.measures import loads
from headgate.plan.model import Plan, same_capacities
from headgate.plan.placement import PUBLISHER, Link, Links, Placement, links_of
from headgate.plan.program.infeasible import InfeasibleError
from headgate.plan.program.program import solve
from headgate.plan.running.validate import problems
from tests.plan import reference
from tests.plan.instances import random_plan, random_rewritings, rewritings_of
from tests.seeds import seeds

if TYPE_CHECKING:
    from pathlib import Path


def random_links(rng: random.Random, sites: int) -> Links:
    pairs = [(a, b) for a in range(PUBLISHER, sites) for b in range(sites) if a != b]
    some = rng.sample(pairs, rng.randint(0, len(pairs)))
    return Links(
        np.array([origin for origin, _ in some], np.int32),
        np.array([target for _, target in some], np.int32),
        np.array([rng.uniform(0, 30) for _ in some], np.float64),
        np.array([rng.uniform(0.5, 5000) for _ in some], np.float64),
    )


@pytest.mark.parametrize("seed", seeds(40))
def test_costs_are_those_by_the_letter(seed: int) -> None:
    rng = random.Random(seed)
    views = rng.randint(1, 20)
    rewritings = random_rewritings(rng, views)
    count = rng.randint(1, views)
    placement = Placement(
        np.array([rng.randrange(count) for _ in range(views)], np.int32),
        rng.choice([None, random_links(rng, count)]),
        rng.choice([None, np.array([rng.uniform(0, 4) for _ in range(count)])]),
    )
    rows = [rng.uniform(0, 50) for _ in range(views)]
    sizes = [rng.uniform(0, 5000) for _ in range(views)]
    settings = Settings(*[rng.uniform(0.1, 5) for _ in range(7)])
    found = costs_of(rewritings, rows, sizes, settings, placement)
    letter = reference.costs_by_the_letter(rewritings, rows, sizes, settings, placement)
    for name in found._fields:
        assert getattr(found, name) == pytest.approx(getattr(letter, name)), name


@pytest.mark.parametrize("seed", seeds(20))
def test_feeds_within_a_site_count_for_nothing(seed: int) -> None:
    """With all views at one site, no plan loads it by more than joining; apart, all feeds count."""
    rng = random.Random(seed)
    views = rng.randint(2, 20)
    rewritings = random_rewritings(rng, views)
    plan = random_plan(rng, rewritings)
    one = same_capacities(views, 0.0, bandwidth=0.0, sites=np.zeros(views))
    costs = costs_of(rewritings, np.ones(views), np.ones(views), None, Placement(one.sites))
    found = loads(plan, rewritings, costs, one)
    assert found.fan_out.tolist() == found.bandwidth.tolist() == [0.0]
    assert problems(plan, rewritings, costs, one) == []
    assert reference.within(plan.chosen.tolist(), rewritings, costs, one)
    apart = same_capacities(views)
    inputs = sum(len(reference.inputs_of(each, rewritings)) for each in plan.chosen.tolist() if each >= 0)
    far = costs_of(rewritings, np.ones(views), np.ones(views))
    assert loads(plan, rewritings, far, apart).fan_out.sum() == inputs


def test_the_nearer_feed_is_taken() -> None:
    """View 2 can be fed by 0, which is larger and at its site, or by 1 elsewhere."""
    rewritings = rewritings_of([[], [], [(1,), (0,)]])
    capacities = same_capacities(3, 0.0, source_fan_out=2.0, sites=[0, 1, 0])
    costs = costs_of(rewritings, [9, 1, 1], [900, 100, 100], None, Placement(capacities.sites))
    plan = solve(rewritings, costs, capacities).plan
    assert plan.chosen.tolist() == [-1, -1, 1]
    assert costs.latency[1] == pytest.approx(0.01 * 10), "no hop"
    remote = Plan(np.array([-1, -1, 0]))
    assert problems(remote, rewritings, costs, capacities) == ["site 1 exceeds its fan-out: 1 of 0"]


@pytest.mark.parametrize(
    ("link", "complaint"),
    [
        (Link("a", "b", delay=-1.0), r"the delay from 'a' to 'b' is -1\.0: it is 0 or more, and finite"),
        (Link("a", "b", speed=0.0), r"the speed from 'a' to 'b' is 0\.0: it is more than 0, and finite"),
        (Link("a", "b", delay=math.inf), r"the delay from 'a' to 'b' is inf"),
        (Link("a", "a"), r"a link leads from 'a' to itself"),
        (Link("a", "source"), r"a link leads to the source, which nobody feeds"),
        (Link("a", "d"), r"there is no site 'd': links are between sites of the plan"),
        (Link("source", "b", 1.0), r"the link from 'source' to 'b' is given twice"),
    ],
)
def test_links_that_cannot_be_are_refused(link: Link, complaint: str) -> None:
    with pytest.raises(PlanError, match=complaint):
        links_of([Link("source", "b"), link], ["a", "b"])


def test_names_and_sites_that_do_not_fit_are_refused() -> None:
    with pytest.raises(PlanError, match="a site is called 'source'"):
        links_of([], ["a", "source"])
    with pytest.raises(PlanError, match="1 sites are given for 2 views"):
        costs_of(rewritings_of([[], [(0,)]]), [1, 2], [1, 2], None, Placement(np.zeros(1, np.int32)))
    with pytest.raises(PlanError, match="a site is given for 'nobody', which is no subscription here"):
        Dissemination.build([HEADLINES], [NEWS], sites={"nobody": "paris"})
    with pytest.raises(PlanError, match="give the name of a site by the id of a subscription"):
        Dissemination.build([HEADLINES], [NEWS], sites=["paris"])  # type: ignore[arg-type]
    with pytest.raises(PlanError, match=r"give Link\(origin, target, delay, speed\)"):
        Dissemination.build([HEADLINES], [NEWS], links=[("source", "headlines")])  # type: ignore[list-item]


HEADLINES = Subscription("headlines", "//news/headline{val}", "xpath")
COMPANIES = Subscription("companies", "//news/company{val}", "xpath")
DESK = Subscription("desk", "//news[company{val}]/headline{val}", "xpath")
NEWS = Event("e", "<news><company>A</company><headline>Up</headline></news>", content_type="xml")


def test_links_decide_who_feeds(tmp_path: Path) -> None:
    """Of two that hold the same, the one over the quicker link feeds, and after the plan was opened again."""
    given = [
        HEADLINES,
        Subscription("copy", HEADLINES.filter, "xpath"),
        Subscription("up", "//news/headline{val}[. = 'Up']", "xpath"),
    ]
    settings = PlanSettings(source_fan_out=2)
    for slow, quick in (("headlines", "copy"), ("copy", "headlines")):
        links = [Link(slow, "up", delay=500.0), Link(quick, "up", delay=1.0), Link(slow, quick, delay=0.0)]
        made = Dissemination.build(given, [NEWS], settings, links=[*links, Link(quick, slow, delay=0.0)])
        assert made.feeding("up").inputs == (quick,)
        made.saved.save(tmp_path / slow)
        again = Dissemination.open(tmp_path / slow)
        assert again.saved.links is not None
        assert again.saved.links.delays.tolist() == made.saved.links.delays.tolist()  # type: ignore[union-attr]
        again.fail("up")
        again.subscribe(given[2])
        assert again.feeding("up").inputs == (quick,)


def test_views_of_one_site_feed_each_other_for_nothing() -> None:
    """Without any fan-out only what is at the site can feed."""
    settings = PlanSettings(fan_out=0, source_fan_out=2)
    given = [HEADLINES, COMPANIES, DESK]
    with pytest.raises(InfeasibleError):
        Dissemination.build(given, [NEWS], settings)
    made = Dissemination.build(given, [NEWS], settings, sites={each.id: "paris" for each in given})
    assert made.feeding("desk").inputs == ("companies", "headlines")
    assert made.saved.feeds()["bytes"].to_pylist() == [0.0, 0.0]
    assert {each.site for each in made.placed()} == {"paris"}
    assert made.deliver(NEWS)["desk"].tuples().plain() == [{"company.val": "A", "headline.val": "Up"}]


def test_later_views_feed_earlier_ones_after_a_plan_made_anew() -> None:
    made = Dissemination.build([DESK], [NEWS], PlanSettings(source_fan_out=3))
    made.subscribe(COMPANIES)
    made.subscribe(HEADLINES)
    assert made.feeding("desk").inputs == ()
    made.replan()
    assert made.feeding("desk").inputs == ("companies", "headlines")
    assert "scan view 'companies'" in "\n".join(made.feeding("desk").steps)
    assert made.deliver(NEWS)["desk"].tuples().plain() == [{"company.val": "A", "headline.val": "Up"}]
    made.unsubscribe("companies")
    assert made.feeding("desk").inputs == ()
    made.subscribe(COMPANIES)
    made.replan()
    assert sorted(made.feeding("desk").inputs) == ["companies", "headlines"]
    assert [each.id for each in made.placed()][-1] == "desk"
