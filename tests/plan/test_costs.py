"""The cost model, against its formulas written out for single rewritings."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from headgate.errors import PlanError
from headgate.plan.costs import Settings, costs_of
from tests.plan.instances import random_rewritings, rewritings_of
from tests.seeds import seeds


@pytest.mark.parametrize("seed", seeds(20))
def test_costs_are_as_written(seed: int) -> None:
    """Every rewriting and every view, one by one."""
    rng = random.Random(seed)
    views = rng.randint(1, 20)
    rewritings = random_rewritings(rng, views)
    rows = [rng.uniform(0, 50) for _ in range(views)]
    sizes = [rng.uniform(0, 5000) for _ in range(views)]
    settings = Settings(*[rng.uniform(0.1, 5) for _ in range(7)])
    costs = costs_of(rewritings, rows, sizes, settings)
    for view in range(views):
        for number in range(rewritings.offsets[view], rewritings.offsets[view + 1]):
            places = range(*rewritings.input_offsets[number : number + 2])
            inputs = [int(rewritings.inputs[place]) for place in places]
            assert [costs.sent[place] for place in places] == [sizes[each] for each in inputs]
            sending = [settings.sending * sizes[each] for each in inputs]
            assert [costs.sending[place] for place in places] == pytest.approx(sending)
            joining = settings.joining * (sum(rows[each] for each in inputs) + rows[view])
            assert costs.joining[number] == pytest.approx(joining)
            taken = settings.byte * sum(sizes[each] for each in inputs) + sum(sending) + joining
            assert costs.utilization[number] == pytest.approx(taken)
            waited = (
                settings.hop + max(sizes[each] for each in inputs) / settings.link + joining / settings.speed
            )
            assert costs.latency[number] == pytest.approx(waited)
        assert costs.source_sent[view] == sizes[view]
        extracted = settings.extracting + settings.sending * sizes[view]
        assert costs.source_sending[view] == pytest.approx(extracted)
        assert costs.source_utilization[view] == pytest.approx(extracted + settings.byte * sizes[view])
        assert costs.source_latency[view] == pytest.approx(settings.hop + sizes[view] / settings.link)
        assert costs.source_joining[view] == 0


def test_types_are_those_of_the_model() -> None:
    """All arrays are of floats, contiguous, and no two are one."""
    costs = costs_of(rewritings_of([[], [(0,)]]), [1, 2], [3, 4])
    *arrays, hosts = costs
    assert hosts is None
    assert all(each.dtype == np.float64 and each.flags.c_contiguous for each in arrays)
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])
    *empty, _ = costs_of(rewritings_of([[], []]), [1, 2], [3, 4])
    assert [len(each) for each in empty] == [0, 0, 0, 0, 0, 2, 2, 2, 2, 2]


def test_refusals() -> None:
    """Sizes that are none, too few of them, settings that cannot be, rewritings without inputs."""
    rewritings = rewritings_of([[], [(0,)]])
    with pytest.raises(PlanError, match="rows of 1 views are given, there are 2"):
        costs_of(rewritings, [1], [1, 2])
    with pytest.raises(PlanError, match=r"sizes of view 1 are -2\.0: they are 0 or more"):
        costs_of(rewritings, [1, 2], [1, -2])
    with pytest.raises(PlanError, match="rows of view 0 are nan"):
        costs_of(rewritings, [math.nan, 2], [1, 2])
    with pytest.raises(PlanError, match="setting link is 0: it is more than 0"):
        Settings(link=0)
    with pytest.raises(PlanError, match=r"setting byte is -1: it is 0 or more"):
        Settings(byte=-1)
    with pytest.raises(PlanError, match="has no inputs"):
        costs_of(rewritings_of([[], [()]]), [1, 2], [1, 2])
