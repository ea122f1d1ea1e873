"""Where a join runs (section 2.2): at the site of the view that is computed, or at that of one of its inputs.

At the site of input h the others are sent there, and what the view gives is sent on to the view:

    sent         size[v] by the site of h; sizes[u] by that of any other u, 0 if it is the same
    sending      of h: sending * sent, and the work of joining, which is left there
    joining      0: nothing is left to do at the site of v
    latency      greatest of (delay + sent / speed of the link to h), + joining / speed, + delay + size[v] /
                 speed of the link to v

Of these that is taken which is fastest, if it is faster than at the view, and utilization is not higher:
where inputs are near to each other and far from the view, or large and what the view gives is small. Without
a table of links all joins run at the view. So does a selection, and a join with an input at the view's own
site.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.plan.model import AT_VIEW, Costs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headgate.plan.model import Rewritings
    from headgate.plan.placement import Placement

    Floats = NDArray[np.float64]
    Sites = NDArray[np.int32]


class JoinTerms(NamedTuple):
    """What joins are weighed by."""

    links: Callable[[Sites, Sites], tuple[Floats, Floats]]
    """Return the delays and speeds between sites."""
    byte: float
    """What a byte that is sent counts in utilization, with the work of sending it."""
    sending: float
    speed: float


def placed_joins(
    costs: Costs, rewritings: Rewritings, sizes: Floats, placement: Placement, terms: JoinTerms
) -> Costs:
    """Choose where joins run; `costs` are those where all run at the view that is computed."""
    views = len(rewritings.offsets) - 1
    owners = np.repeat(np.arange(views), np.diff(rewritings.offsets))
    widths = np.diff(rewritings.input_offsets)
    utilization, latency, joining, sent, sending = (
        np.array(each)
        for each in (costs.utilization, costs.latency, costs.joining, costs.sent, costs.sending)
    )
    hosts = np.full(len(widths), AT_VIEW, np.int32)
    for width in np.unique(widths[widths > 1]).tolist():
        rows = np.flatnonzero(widths == width)
        slots = rewritings.input_offsets[rows][:, None] + np.arange(width)
        inputs = rewritings.inputs[slots]
        sites, own = placement.sites[inputs], placement.sites[owners[rows]]
        given, work = sizes[owners[rows]], costs.joining[rows]
        apart = (sites != own[:, None]).all(axis=1)
        for host in range(width):
            at = sites[:, host]
            moved = np.where(sites != at[:, None], sizes[inputs], 0.0)
            delays, speeds = (
                each.reshape(sites.shape) for each in terms.links(sites.ravel(), np.repeat(at, width))
            )
            come = np.where(sites != at[:, None], delays + moved / speeds, 0.0).max(axis=1)
            delay, speed = terms.links(at, own)
            time = come + work / terms.speed + delay + given / speed
            weighed = (placement.weight(sites.ravel()).reshape(sites.shape) * moved).sum(axis=1)
            weight = placement.weight(at)
            used = terms.byte * (weighed + weight * given) + weight * work
            better = apart & (time < latency[rows]) & (used <= costs.utilization[rows])
            some = rows[better]
            hosts[some], latency[some], utilization[some] = host, time[better], used[better]
            sent[slots[better]] = moved[better]
            sending[slots[better]] = terms.sending * moved[better]
            sent[slots[better, host]] = given[better]
            sending[slots[better, host]] = terms.sending * given[better] + work[better]
            joining[some] = 0.0
    return costs._replace(
        utilization=utilization, latency=latency, sent=sent, sending=sending, joining=joining, hosts=hosts
    )
