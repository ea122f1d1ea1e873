"""A plan carried out for an event: views at the source first, then level by level what others feed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.errors import PlanError
from headgate.plan.measures import levels
from headgate.plan.model import SOURCE

if TYPE_CHECKING:
    from headgate.core.event import Event
    from headgate.core.views import Results
    from headgate.plan.model import Plan, Rewritings


class Delivered(NamedTuple):
    """What each view got for an event, and what was sent for it: bytes by the source, and by other views."""

    results: list[Any]
    source_bytes: int
    bytes: int


def disseminate(views: Results, plan: Plan, rewritings: Rewritings, event: Event) -> Delivered:
    """Give every view its result for an event, as the plan says. Only views at the source see the event."""
    if len(views) != len(plan.chosen):
        raise PlanError(f"the plan is for {len(plan.chosen)} views, there are {len(views)}: plan these first")
    results: list[Any] = [None] * len(views)
    source_bytes = sent = 0
    for view in np.argsort(levels(plan, rewritings), kind="stable").tolist():
        number = int(plan.chosen[view])
        if number == SOURCE:
            results[view] = views.result(view, event)
            source_bytes += views.size(results[view])[1]
            continue
        inputs = rewritings.inputs[slice(*rewritings.input_offsets[number : number + 2])].tolist()
        given = [results[each] for each in inputs]
        results[view] = views.rewritten(view, inputs, given)
        sent += sum(views.size(each)[1] for each in given)
    return Delivered(results, source_bytes, sent)
