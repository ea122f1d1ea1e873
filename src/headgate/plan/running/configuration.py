"""A plan while it is being changed: who feeds whom, latencies, and loads, all kept up to date.

Each view has as many slots as its widest rewriting has inputs; slot i of a view stands for input i of the
rewriting that is chosen. The slots that stand for one feeder are a list, linked both ways:

    heads[u] -> slot -> slot -> -1        owners[slot] is the view that is fed

A change of one view's rewriting goes from view to view along these lists, in an order in which inputs come
first whatever is chosen, so that every view is computed once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from headgate.core import heaps
from headgate.core.jit import bare, kernel
from headgate.plan.measures import latencies, loads, order_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Floats64, Ints, Ints32
    from headgate.plan.model import Capacities, Costs, Plan, Rewritings

NEAR = 1.0 + 1e-9
"""Sums that come and go are not exact: bounds are widened by as much."""

NONE = cast("int", np.int64(-1))
"""No rewriting, no view, no slot: of the type that numbers have in arrays, lest callees be compiled twice."""

EMPTY = cast("int", np.int64(0))
"""The size of an empty queue or log, of that type too."""

FREE = NONE
CROWDED = cast("int", np.int64(-2))


class Configuration(NamedTuple):
    """Invariants: `latency`, `used` and the lists are what `chosen` makes of them.

    `bounds` and `used` have a row for each site: fan-out, bandwidth, cpu.

    `heap` holds ranks of views to be computed anew, `queued` says which; both are empty between calls.
    `log_views` and `log_latency` are what the last change of latencies overwrote. `hopeless[s]` is a gain
    for which nothing could be moved away from site s; 0 if nothing is known.
    """

    offsets: Ints
    input_offsets: Ints
    inputs: Ints32
    own: Floats64
    utilization: Floats64
    sent: Floats64
    sending: Floats64
    joining: Floats64
    sites: Ints
    bounds: Floats64
    ranks: Ints32
    order: Ints
    chosen: Ints
    latency: Floats64
    used: Floats64
    slot_offsets: Ints
    heads: Ints32
    nexts: Ints32
    previous: Ints32
    owners: Ints
    heap: Ints32
    queued: NDArray[np.int8]
    log_views: Ints32
    log_latency: Floats64
    reach: Ints
    hopeless: Floats64
    site_offsets: Ints
    site_views: Ints32


def configuration(plan: Plan, rewritings: Rewritings, costs: Costs, capacities: Capacities) -> Configuration:
    """Lay a plan out for changes. The plan itself is not touched."""
    views = len(plan.chosen)
    order = order_of(rewritings)
    ranks = np.empty(views, dtype=np.int32)
    ranks[order] = np.arange(views, dtype=np.int32)
    offsets = np.ascontiguousarray(rewritings.offsets, dtype=np.int64)
    input_offsets = np.ascontiguousarray(rewritings.input_offsets, dtype=np.int64)
    slot_offsets = _slots(offsets, input_offsets)
    slots = int(slot_offsets[-1])
    sites = np.ascontiguousarray(capacities.sites, dtype=np.int64)
    held = np.bincount(sites, minlength=len(capacities.fan_out))
    made = Configuration(
        offsets=offsets,
        input_offsets=input_offsets,
        inputs=np.ascontiguousarray(rewritings.inputs, dtype=np.int32),
        own=np.ascontiguousarray(costs.latency, dtype=np.float64),
        utilization=np.ascontiguousarray(costs.utilization, dtype=np.float64),
        sent=np.ascontiguousarray(costs.sent, dtype=np.float64),
        sending=np.ascontiguousarray(costs.sending, dtype=np.float64),
        joining=np.ascontiguousarray(costs.joining, dtype=np.float64),
        sites=sites,
        bounds=np.stack([capacities.fan_out, capacities.bandwidth, capacities.cpu], axis=1) * NEAR,
        ranks=ranks,
        order=order.astype(np.int64),
        chosen=np.array(plan.chosen, dtype=np.int64),
        latency=latencies(plan, rewritings, costs),
        used=loads_by_site(plan, rewritings, costs, capacities),
        slot_offsets=slot_offsets,
        heads=np.full(views, -1, dtype=np.int32),
        nexts=np.full(slots, -1, dtype=np.int32),
        previous=np.full(slots, -1, dtype=np.int32),
        owners=np.repeat(np.arange(views, dtype=np.int64), np.diff(slot_offsets)),
        heap=np.empty(views, dtype=np.int32),
        queued=np.zeros(views, dtype=np.int8),
        log_views=np.empty(views, dtype=np.int32),
        log_latency=np.empty(views, dtype=np.float64),
        reach=np.zeros(views, dtype=np.int64),
        hopeless=np.zeros(len(capacities.fan_out), dtype=np.float64),
        site_offsets=np.concatenate([[0], np.cumsum(held)]).astype(np.int64),
        site_views=np.argsort(sites, kind="stable").astype(np.int32),
    )
    _link_all(made)
    return made


def loads_by_site(plan: Plan, rewritings: Rewritings, costs: Costs, capacities: Capacities) -> Floats64:
    """Sum up what a plan asks of sites, one row a site."""
    used = loads(plan, rewritings, costs, capacities)
    return np.ascontiguousarray(np.stack([used.fan_out, used.bandwidth, used.cpu], axis=1))


@kernel
def _slots(offsets: Ints, input_offsets: Ints) -> Ints:
    views = len(offsets) - 1
    slot_offsets = np.zeros(views + 1, dtype=np.int64)
    for view in range(views):
        widest = 0
        for rewriting in range(offsets[view], offsets[view + 1]):
            widest = max(widest, input_offsets[rewriting + 1] - input_offsets[rewriting])
        slot_offsets[view + 1] = slot_offsets[view] + widest
    return slot_offsets


@bare
def _link_all(c: Configuration) -> None:
    for view in range(len(c.chosen)):
        if c.chosen[view] >= 0:
            link(c, view, int(c.chosen[view]))


@bare
def link(c: Configuration, view: int, rewriting: int) -> None:
    """Enter a view in the lists of its feeders."""
    slot = c.slot_offsets[view]
    for edge in range(c.input_offsets[rewriting], c.input_offsets[rewriting + 1]):
        feeder = c.inputs[edge]
        first = c.heads[feeder]
        c.nexts[slot] = first
        c.previous[slot] = -1
        if first >= 0:
            c.previous[first] = slot
        c.heads[feeder] = slot
        slot += 1


@bare
def unlink(c: Configuration, view: int, rewriting: int) -> None:
    """Take a view out of the lists of its feeders."""
    slot = c.slot_offsets[view]
    for edge in range(c.input_offsets[rewriting], c.input_offsets[rewriting + 1]):
        before = c.previous[slot]
        behind = c.nexts[slot]
        if before >= 0:
            c.nexts[before] = behind
        else:
            c.heads[c.inputs[edge]] = behind
        if behind >= 0:
            c.previous[behind] = before
        slot += 1


@bare
def shift(c: Configuration, view: int, old: int, new: int) -> None:
    """Take off sites what one rewriting of a view asks of them, and add what another does."""
    rewriting = old
    for sign in (-1.0, 1.0):
        for edge in range(c.input_offsets[rewriting], c.input_offsets[rewriting + 1]):
            site = c.sites[c.inputs[edge]]
            if site != c.sites[view]:
                c.used[site, 0] += sign
                c.used[site, 1] += sign * c.sent[edge]
                c.used[site, 2] += sign * c.sending[edge]
        c.used[c.sites[view], 2] += sign * c.joining[rewriting]
        rewriting = new


@bare
def over(c: Configuration, site: int) -> bool:
    """Tell whether a site has to bear more than it can."""
    row = c.used[site]
    bounds = c.bounds[site]
    return bool((row[0] > bounds[0]) | (row[1] > bounds[1]) | (row[2] > bounds[2]))


@bare
def blocked(c: Configuration, view: int, rewriting: int) -> int:
    """Find the site that cannot bear a rewriting, whose load is counted already.

    FREE if all can, CROWDED if several cannot.
    """
    crowded = FREE
    if over(c, int(c.sites[view])):
        crowded = int(c.sites[view])
    for edge in range(c.input_offsets[rewriting], c.input_offsets[rewriting + 1]):
        site = int(c.sites[c.inputs[edge]])
        if site != crowded and over(c, site):
            if crowded != FREE:
                return CROWDED
            crowded = site
    return crowded


@bare
def waited(c: Configuration, rewriting: int) -> float:
    """Compute the latency that a view would have by a rewriting."""
    slowest = 0.0
    for edge in range(c.input_offsets[rewriting], c.input_offsets[rewriting + 1]):
        slowest = max(slowest, c.latency[c.inputs[edge]])
    return float(slowest + c.own[rewriting])


@bare
def replace(c: Configuration, view: int, rewriting: int) -> None:
    """Choose another rewriting: lists and loads follow; latencies do when `settle` is called."""
    old = int(c.chosen[view])
    unlink(c, view, old)
    link(c, view, rewriting)
    shift(c, view, old, rewriting)
    c.chosen[view] = rewriting


@bare
def push(c: Configuration, size: int, view: int) -> int:
    """Queue a view to be computed anew; returns how many are queued."""
    if c.queued[view]:
        return size
    c.queued[view] = 1
    return heaps.push(c.heap, size, c.ranks[view])


@bare
def pop(c: Configuration, size: int) -> int:
    """Take the view that comes first in the order out of the queue of so many."""
    view = c.order[c.heap[0]]
    heaps.pop(c.heap, size)
    c.queued[view] = 0
    return int(view)


@bare
def settle(c: Configuration, size: int, logged: int) -> int:
    """Compute all that is queued and what follows from it; returns how many latencies are in the log.

    The first `logged` entries of the log are kept.
    """
    while size > 0:
        view = pop(c, size)
        size -= 1
        new = waited(c, int(c.chosen[view]))
        if new != c.latency[view]:
            c.log_views[logged] = view
            c.log_latency[logged] = c.latency[view]
            logged += 1
            c.latency[view] = new
            slot = c.heads[view]
            while slot >= 0:
                size = push(c, size, int(c.owners[slot]))
                slot = c.nexts[slot]
    return logged


@bare
def change(c: Configuration, logged: int) -> float:
    """Sum up by how much logged latencies have grown."""
    grown = 0.0
    for entry in range(logged):
        grown += c.latency[c.log_views[entry]] - c.log_latency[entry]
    return grown


@bare
def forget(c: Configuration, logged: int) -> None:
    """Give the logged views their old latencies back."""
    for entry in range(logged):
        c.latency[c.log_views[entry]] = c.log_latency[entry]
