"""Plans carried out: every view gets what it would get from the event itself."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from headgate.core.event import Event
from headgate.errors import PlanError
from headgate.plan.costs import costs_of
from headgate.plan.graphs.cycles import without_cycles
from headgate.plan.graphs.embeddings import embedding_graph
from headgate.plan.graphs.rewritability import Search, find_rewritings
from headgate.plan.latency.latency import loga
from headgate.plan.measures import levels
from headgate.plan.model import SOURCE, Plan, Rewritings, infinite_capacities, same_capacities
from headgate.plan.running.saved_plan import disseminate
from headgate.plan.running.validate import problems
from headgate.xml.views.views import XmlViews
from tests.plan.instances import random_plan, rewritings_of, valid_plan
from tests.seeds import seeds
from tests.xml.random_patterns import random_document, random_pattern

if TYPE_CHECKING:
    from headgate.contents.views import Views


def _views(rng: random.Random, count: int) -> tuple[XmlViews, Rewritings]:
    """Draw views over XML, some of them twice, and find how they can be rewritten."""
    patterns = [random_pattern(rng) for _ in range(count)]
    patterns += rng.sample(patterns, count // 5)
    views = XmlViews.build(patterns)
    embeddings, _ = without_cycles(embedding_graph(views, threads=1), needed=views.needed)
    return views, find_rewritings(views.needed, embeddings, Search(8), threads=1).rewritings


def _event(rng: random.Random) -> Event:
    return Event("e", random_document(rng), content_type="xml")


def _direct(views: Views, event: Event) -> list[Any]:
    return [views.result(view, event) for view in range(len(views))]


@pytest.mark.parametrize("seed", seeds(12))
def test_all_views_get_their_results(seed: int) -> None:
    """Random plans over random views, as deep as they come, for a few documents."""
    rng = random.Random(seed)
    views, rewritings = _views(rng, 40)
    plan = random_plan(rng, rewritings, direct=0.0)
    assert (plan.chosen != SOURCE).sum() >= 8  # the equal ones at least
    for _ in range(4):
        event = _event(rng)
        assert disseminate(views, plan, rewritings, event).results == _direct(views, event)


@pytest.mark.parametrize("seed", seeds(4))
def test_plans_of_low_latency_too(seed: int) -> None:
    """Costs from a sample, a plan within bounds, less latency: the same results, and fewer levels at best."""
    rng = random.Random(seed)
    views, rewritings = _views(rng, 40)
    sample = [_event(rng) for _ in range(5)]
    sizes = np.array([[views.size(result) for result in _direct(views, event)] for event in sample]).mean(
        axis=0
    )
    costs = costs_of(rewritings, sizes[:, 0], sizes[:, 1])
    capacities = same_capacities(len(views), 3)
    plan = valid_plan(rng, rewritings, costs, capacities, slow=True)
    improved = loga(plan, rewritings, costs, capacities, swaps=True).plan
    assert problems(improved, rewritings, costs, capacities) == []
    event = _event(rng)
    assert disseminate(views, improved, rewritings, event).results == _direct(views, event)
    assert levels(improved, rewritings).sum() <= levels(plan, rewritings).sum()


def test_what_is_sent_is_counted() -> None:
    """The source sends to the views it feeds, others their whole result to each that they feed."""
    rng = random.Random(1)
    views, rewritings = _views(rng, 40)
    event = _event(rng)
    sizes = [views.size(result)[1] for result in _direct(views, event)]
    nobody = Plan(np.full(len(views), SOURCE, dtype=np.int64))
    flat = disseminate(views, nobody, rewritings, event)
    assert (flat.source_bytes, flat.bytes) == (sum(sizes), 0)
    plan = random_plan(rng, rewritings, direct=0.0)
    delivered = disseminate(views, plan, rewritings, event)
    direct = [view for view in range(len(views)) if plan.chosen[view] == SOURCE]
    assert delivered.source_bytes == sum(sizes[view] for view in direct) < flat.source_bytes
    sizes_by_document = costs_of(rewritings, np.zeros(len(views)), sizes)
    used = [
        sizes_by_document.sent[slice(*rewritings.input_offsets[number : number + 2])].sum()
        for number in plan.chosen
        if number != SOURCE
    ]
    assert delivered.bytes == sum(used)
    assert problems(plan, rewritings, sizes_by_document, infinite_capacities(len(views))) == []


def test_a_plan_for_other_views_is_refused() -> None:
    """The number of views must be that of the plan."""
    views, _ = _views(random.Random(0), 5)
    with pytest.raises(PlanError, match="the plan is for 2 views, there are 6"):
        disseminate(
            views, Plan(np.array([SOURCE, SOURCE])), rewritings_of([[], []]), _event(random.Random(0))
        )
