"""LOGA (Algorithm 2): rewritings of a plan replaced one by one, so that its latency falls.

Views are looked at by falling impact, in rounds, until a round changes nothing. Each gets the rewriting that
lowers the cost of the whole plan most, among those that every site can bear. As in the paper no view is given
to the source, unless that is asked for (`sourced.py`).

The algorithm asks for the latency of the whole configuration for every alternative. If only latency counts
that is not needed: all that a view feeds rises with its own latency and never falls, so the best alternative
of a view is the one by which the view itself is quickest. With utilization in the cost it is needed, for
alternatives that are not worse in both; the latencies that change are computed, and no others.

It is one view more, the last, at one site more, whose bounds are those of the source; it has its result at
once. Every view has one rewriting more, the last, whose only input it is, with what feeding by the source
costs. All that is known of rewritings holds for these.

Two ways. Walking up from every view and counting it at all that it meets takes as many steps as there are
pairs of a view and one that feeds it: few where plans are flat. If it comes to more steps than a fixed limit,
reachable sets are passed up as bits instead, 512 views at a time: (views / 64) x (inputs in use) words,
however deep the plan is.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.bits import ones
from headgate.core.jit import bare, kernel
from headgate.errors import PlanError
from headgate.plan.latency.ejecting import eject
from headgate.plan.measures import chosen_inputs, loads, plan_order, utilization
from headgate.plan.model import SOURCE, Capacities, Costs, Plan, Rewritings, infinite_capacities
from headgate.plan.running.configuration import (
    EMPTY,
    FREE,
    NONE,
    blocked,
    change,
    configuration,
    forget,
    loads_by_site,
    push,
    replace,
    settle,
    shift,
    waited,
)

if TYPE_CHECKING:
    from headgate.core.arrays import Floats64, Ints, Ints32
    from headgate.plan.running.configuration import Configuration


STRETCHES = 16
"""A round is run in so many stretches; between them the clock is read."""


class Weights(NamedTuple):
    """How the two parts of the mixed cost are weighed."""

    alpha: float
    beta: float


class Moment(NamedTuple):
    """What a plan was like so many seconds after the beginning: sums over all views."""

    seconds: float
    latency: float
    utilization: float


class ImprovedPlan(NamedTuple):
    """A plan with less latency, and how it came to be. `complete` is false if the time ran out."""

    plan: Plan
    trace: tuple[Moment, ...]
    rounds: int
    replaced: int
    swapped: int
    complete: bool


def loga(
    plan: Plan,
    rewritings: Rewritings,
    costs: Costs,
    capacities: Capacities,
    *,
    alpha: float = 0.0,
    beta: float = 1.0,
    swaps: bool = False,
    to_source: bool = False,
    time_limit: float = math.inf,
) -> ImprovedPlan:
    """Lower `alpha * utilization + beta * latency` of a plan by replacing rewritings.

    The plan must keep to the capacities, which may be wider than those it was made for. With `swaps`, a view
    may also take the place of another at a site that is full. With `to_source`, views may be moved to the
    source and from it, within its capacities.
    """
    if not (alpha >= 0 and beta >= 0 and alpha + beta > 0 and math.isfinite(alpha + beta)):
        raise PlanError(
            f"the weights are {alpha} and {beta}: they are 0 or more, and one of them is more than 0"
        )
    weights = Weights(float(alpha), float(beta))
    _compile(swaps)
    if to_source:
        wide = with_source(plan, rewritings, costs, capacities)
        improved = _search(*wide, weights, swaps, time_limit)
        return improved._replace(plan=without_source(improved.plan, rewritings))
    return _search(plan, rewritings, costs, capacities, weights, swaps, time_limit)


@cache
def _compile(swaps: bool) -> None:
    """Have the loops compiled, by the smallest plan that there is, before the clock starts."""
    one, two = np.zeros(1, dtype=np.float64), np.zeros(2, dtype=np.float64)
    rewritings = Rewritings(
        np.array([0, 0, 1], dtype=np.int64), np.array([0, 1], dtype=np.int64), np.array([0], dtype=np.int32)
    )
    costs = Costs(one, one, one, one, one, two, two, two, two, two)
    plan = Plan(np.array([SOURCE, 0], dtype=np.int64))
    _search(plan, rewritings, costs, infinite_capacities(2), Weights(0.0, 1.0), swaps, math.inf)


def _search(
    plan: Plan,
    rewritings: Rewritings,
    costs: Costs,
    capacities: Capacities,
    weights: Weights,
    swaps: bool,
    time_limit: float,
) -> ImprovedPlan:
    begun = perf_counter()
    _refuse_overload(plan, rewritings, costs, capacities)
    state = configuration(plan, rewritings, costs, capacities)
    trace = [_moment(state, costs, begun)._replace(seconds=0.0)]
    tally = np.zeros(2, dtype=np.int64)
    rounds = 0
    complete = perf_counter() - begun < time_limit
    while complete:
        before = tally.sum()
        _recount(state, Plan(state.chosen), rewritings, costs, capacities)
        order = impact_order(state.latency, state.reach)
        # Less than this is rounding, and could go back and forth for ever.
        tolerance = 1e-12 * (weights.alpha * trace[-1].utilization + weights.beta * trace[-1].latency)
        rounds += 1
        for begin, end in _stretches(len(order)):
            _improve(state, order, begin, end, *weights, tolerance, tally)
            if swaps:
                eject(state, order, begin, end, *weights, tolerance, tally)
            trace.append(_moment(state, costs, begun))
            if trace[-1].seconds >= time_limit:
                complete = False
                break
        if complete and tally.sum() == before:
            break
    return ImprovedPlan(Plan(state.chosen), tuple(trace), rounds, int(tally[0]), int(tally[1]), complete)


def _stretches(views: int) -> list[tuple[int, int]]:
    ends = [views * stretch // STRETCHES for stretch in range(STRETCHES + 1)]
    return [(begin, end) for begin, end in pairwise(ends) if begin < end]


def _moment(state: Configuration, costs: Costs, begun: float) -> Moment:
    taken = utilization(Plan(state.chosen), costs)
    return Moment(perf_counter() - begun, float(state.latency.sum()), taken)


def _recount(
    state: Configuration, plan: Plan, rewritings: Rewritings, costs: Costs, capacities: Capacities
) -> None:
    """Count anew at the beginning of a round, so that rounding does not add up."""
    state.used[:] = loads_by_site(plan, rewritings, costs, capacities)
    state.hopeless[:] = 0.0
    state.reach[:] = reach(plan, rewritings)


def _refuse_overload(plan: Plan, rewritings: Rewritings, costs: Costs, capacities: Capacities) -> None:
    used = loads(plan, rewritings, costs, capacities)
    for what, amount, bound in (
        ("fan-out", used.fan_out, capacities.fan_out),
        ("bandwidth", used.bandwidth, capacities.bandwidth),
        ("cpu", used.cpu, capacities.cpu),
    ):
        beyond = np.flatnonzero(~(amount <= bound * (1 + 1e-6)))
        if len(beyond):
            site = int(beyond[0])
            raise PlanError(
                f"the plan asks {amount[site]:g} of the {what} of site {site}, which is {bound[site]:g}: "
                "begin with a plan that keeps to the capacities"
            )


@bare
def _improve(
    c: Configuration,
    order: Ints,
    begin: int,
    end: int,
    alpha: float,
    beta: float,
    tolerance: float,
    tally: Ints,
) -> None:
    """Replace rewritings of views of the order from `begin` to `end`; `tally[0]` counts replacements."""
    for turn in range(begin, end):
        view = int(order[turn])
        if c.chosen[view] >= 0:
            best = _cheapest(c, view, alpha, beta, tolerance) if alpha > 0 else _quickest(c, view)
            if best >= 0:
                replace(c, view, best)
                settle(c, push(c, EMPTY, view), EMPTY)
                tally[0] += 1


@bare
def _quickest(c: Configuration, view: int) -> int:
    """Find the alternative by which a view is quickest, quicker than now; -1 if there is none."""
    current = int(c.chosen[view])
    best = NONE
    least = c.latency[view]
    for rewriting in range(c.offsets[view], c.offsets[view + 1]):
        latency = waited(c, rewriting)
        if latency < least and rewriting != current:
            shift(c, view, current, rewriting)
            if blocked(c, view, rewriting) == FREE:
                best = rewriting
                least = latency
            shift(c, view, rewriting, current)
    return best


@bare
def _cheapest(c: Configuration, view: int, alpha: float, beta: float, tolerance: float) -> int:
    """Find the alternative that lowers the mixed cost of the plan most; -1 if there is none."""
    current = int(c.chosen[view])
    now = c.latency[view]
    best = NONE
    least = -tolerance
    for rewriting in range(c.offsets[view], c.offsets[view + 1]):
        if rewriting == current:
            continue
        taken = alpha * (c.utilization[rewriting] - c.utilization[current])
        latency = waited(c, rewriting)
        # All that is behind a slower view is slower or as it was.
        if latency >= now and taken + beta * (latency - now) >= least:
            continue
        shift(c, view, current, rewriting)
        free = blocked(c, view, rewriting) == FREE
        shift(c, view, rewriting, current)
        if free:
            worth = taken + beta * _tried(c, view, latency)
            if worth < least:
                best = rewriting
                least = worth
    return best


@bare
def _tried(c: Configuration, view: int, latency: float) -> float:
    """Tell by how much the latency of the plan would grow if that of a view were another."""
    c.log_views[0] = view
    c.log_latency[0] = c.latency[view]
    c.latency[view] = latency
    size = EMPTY
    slot = c.heads[view]
    while slot >= 0:
        size = push(c, size, int(c.owners[slot]))
        slot = c.nexts[slot]
    logged = settle(c, size, EMPTY + 1)
    grown = change(c, logged)
    forget(c, logged)
    return grown


class Sourced(NamedTuple):
    """An instance with the source among its views, and the plan in it."""

    plan: Plan
    rewritings: Rewritings
    costs: Costs
    capacities: Capacities


def with_source(plan: Plan, rewritings: Rewritings, costs: Costs, capacities: Capacities) -> Sourced:
    """Put the source among the views."""
    views = len(plan.chosen)
    counts = np.diff(rewritings.offsets)
    owners = np.repeat(np.arange(views), counts)
    # A rewriting moves up by the rewritings by the source of the views before its own.
    places = np.arange(len(owners)) + owners
    by_source = rewritings.offsets[1:] + np.arange(views)
    whole = len(owners) + views
    widths = np.ones(whole, np.int64)
    widths[places] = np.diff(rewritings.input_offsets)
    input_offsets = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    is_source = np.repeat(np.isin(np.arange(whole), by_source), widths)

    def of_inputs(own: np.ndarray, source: np.ndarray) -> np.ndarray:
        merged = np.empty(len(is_source), own.dtype)
        merged[~is_source], merged[is_source] = own, source
        return merged

    def of_rewritings(own: np.ndarray, source: np.ndarray) -> np.ndarray:
        merged = np.empty(whole, np.float64)
        merged[places], merged[by_source] = own, source
        return merged

    one = np.zeros(1, np.float64)
    made = Rewritings(
        np.concatenate([[0], np.cumsum(counts + 1), [whole]]).astype(np.int64),
        input_offsets,
        of_inputs(rewritings.inputs, np.full(views, views, np.int32)),
    )
    by = {
        name: of_rewritings(getattr(costs, name), getattr(costs, f"source_{name}"))
        for name in ("utilization", "latency", "joining")
    }
    by |= {
        name: of_inputs(getattr(costs, name), getattr(costs, f"source_{name}"))
        for name in ("sent", "sending")
    }
    # The source itself is fed for nothing, and at once.
    wide = Costs(**by, **{name: np.append(getattr(costs, name), one) for name in _BY_SOURCE})
    bounds = Capacities(
        np.append(capacities.sites, np.int32(len(capacities.fan_out))),
        np.append(capacities.fan_out, capacities.source_fan_out),
        np.append(capacities.bandwidth, capacities.source_bandwidth),
        np.append(capacities.cpu, capacities.source_cpu),
        np.inf,
        np.inf,
        np.inf,
    )
    chosen = np.where(plan.chosen == SOURCE, by_source, plan.chosen + np.arange(views))
    return Sourced(Plan(np.append(chosen, SOURCE).astype(np.int64)), made, wide, bounds)


def without_source(plan: Plan, rewritings: Rewritings) -> Plan:
    """Read a plan back; `rewritings` are those without the source."""
    views = len(rewritings.offsets) - 1
    numbers = plan.chosen[:views] - np.arange(views)
    return Plan(np.where(numbers == rewritings.offsets[1:], SOURCE, numbers).astype(np.int64))


_BY_SOURCE = tuple(name for name in Costs._fields if name.startswith("source_"))

WORDS = 8


def reach(plan: Plan, rewritings: Rewritings, *, limit: int | None = None) -> Ints:
    """Count what each view feeds; `limit` is after how many steps of walking bits are taken."""
    begins, ends = chosen_inputs(plan, rewritings)
    inputs = np.ascontiguousarray(rewritings.inputs, dtype=np.int32)
    if limit is None:
        # A step of walking costs about as much as four words.
        limit = 1_000_000 + len(begins) * int((ends - begins).sum()) // 256
    counts = np.zeros(len(begins), dtype=np.int64)
    if _by_walking(begins, ends, inputs, limit, counts):
        return counts
    return _by_bits(plan_order(plan, rewritings), begins, ends, inputs)


def impact_order(latency: Floats64, counts: Ints) -> Ints:
    """Order views by falling impact: latency times what they feed; equal ones by number."""
    return np.argsort(-(latency * counts), kind="stable").astype(np.int64)


@kernel
def _by_walking(begins: Ints, ends: Ints, inputs: Ints32, limit: int, counts: Ints) -> bool:
    views = len(begins)
    seen = np.full(views, -1, dtype=np.int32)
    stack = np.empty(views, dtype=np.int32)
    steps = 0
    for view in range(views):
        stack[0] = view
        size = 1
        while size > 0:
            size -= 1
            at = stack[size]
            for edge in range(begins[at], ends[at]):
                above = inputs[edge]
                steps += 1
                if seen[above] != view:
                    seen[above] = view
                    counts[above] += 1
                    stack[size] = above
                    size += 1
        if steps > limit:
            return False
    return True


@kernel
def _by_bits(order: Ints32, begins: Ints, ends: Ints, inputs: Ints32) -> Ints:
    views = len(order)
    counts = np.zeros(views, dtype=np.int64)
    bits = np.zeros((views, WORDS), dtype=np.uint64)
    one = np.uint64(1)
    block = WORDS * 64
    for start in range(0, views, block):
        bits[:] = np.uint64(0)
        stop = min(views, start + block)
        # Only views before the block's last, in the order, feed any of it.
        for rank in range(stop - 1, -1, -1):
            view = order[rank]
            row = bits[view]
            for word in range(WORDS):
                counts[view] += ones(row[word])
            if rank >= start:
                row[(rank - start) >> 6] |= one << np.uint64((rank - start) & 63)
            for edge in range(begins[view], ends[view]):
                above = bits[inputs[edge]]
                for word in range(WORDS):
                    above[word] |= row[word]
    return counts
