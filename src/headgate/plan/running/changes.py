"""A plan that follows its views (section 3.5): they come, are withdrawn, and sites fail.

A view that comes is fed by the rewriting with the least mixed cost that no site is too small for; if there is
none, by the source. Views that lose a feeder are treated as new ones, in an order in which inputs come first.
Views that come later stand later in that order than all before, and only use those: no cycle can arise. A
plan made anew may be given other rewritings, with an order of their own.

What the source has no room for either is left unfed and reported; it is tried again with each change that
may make room. When `due`, it is time for a plan made anew.

`SiteLoads` is what sites and the source have to bear, as feeding a view is begun and ended one by one.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import PlanError
from headgate.plan.measures import latencies
from headgate.plan.model import SOURCE, Capacities, Costs, Plan, Rewritings
from headgate.plan.orders import order_of
from headgate.plan.placement import PUBLISHER
from headgate.plan.running.options import OptionRows
from headgate.plan.running.validate import problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from headgate.plan.running.options import Option


RESOURCES = ("fan-out", "bandwidth", "cpu")
NEAR = 1.0 + 1e-9


class SiteLoads:
    """Sites, their bounds, and what is asked of them."""

    def __init__(self, capacities: Capacities) -> None:
        self.sites: list[int] = capacities.sites.tolist()
        rows = zip(
            capacities.fan_out.tolist(), capacities.bandwidth.tolist(), capacities.cpu.tolist(), strict=True
        )
        self._bounds: dict[int, tuple[float, float, float]] = dict(enumerate(rows))
        self._bounds[PUBLISHER] = (
            capacities.source_fan_out,
            capacities.source_bandwidth,
            capacities.source_cpu,
        )
        self._used: dict[int, list[float]] = {site: [0.0, 0.0, 0.0] for site in self._bounds}
        self._failed: set[int] = set()

    def __contains__(self, site: object) -> bool:
        """Tell whether there is such a site, and it has not failed."""
        return site in self._bounds and site != PUBLISHER and site not in self._failed

    def add_site(self, fan_out: float, bandwidth: float, cpu: float) -> int:
        """Add a site; returns its number."""
        if any(math.isnan(bound) or bound < 0 for bound in (fan_out, bandwidth, cpu)):
            raise PlanError("a bound of a new site is negative or not a number: 0 or more, inf for no limit")
        site = len(self._bounds) - 1
        self._bounds[site] = (float(fan_out), float(bandwidth), float(cpu))
        self._used[site] = [0.0, 0.0, 0.0]
        return site

    def fail(self, site: int) -> None:
        """Take a site out."""
        self._failed.add(site)

    def begin(self, view: int, option: Option) -> None:
        """Count what feeding a view asks of sites."""
        for site, amounts in self._asked(view, option).items():
            self._used[site] = [used + amount for used, amount in zip(self._used[site], amounts, strict=True)]

    def end(self, view: int, option: Option) -> None:
        """Take off what feeding a view asked; a site that is not asked for anything bears exactly nothing."""
        for site, amounts in self._asked(view, option).items():
            left = [used - amount for used, amount in zip(self._used[site], amounts, strict=True)]
            # Rounding would add up. Where nobody is fed nothing is sent either.
            self._used[site] = [left[0], left[1] if left[0] else 0.0, max(left[2], 0.0)]

    def excess(self, view: int, option: Option) -> str | None:
        """Say which bound feeding a view would break; None if all can bear it."""
        for site, amounts in self._asked(view, option).items():
            for what, used, amount, bound in zip(
                RESOURCES, self._used[site], amounts, self._bounds[site], strict=True
            ):
                if amount > 0 and not used + amount <= bound * NEAR:
                    who = "the source" if site == PUBLISHER else f"site {site}"
                    return f"the {what} of {who} would be {used + amount:g} of {bound:g}"
        return None

    def fan_outs(self) -> dict[int, float]:
        """Return the bound of each site that has not failed."""
        return {site: bounds[0] for site, bounds in self._bounds.items() if site in self}

    def source_is_full(self) -> bool:
        """Tell whether the source can feed nobody more."""
        fan_out, *rest = zip(self._used[PUBLISHER], self._bounds[PUBLISHER], strict=True)
        return fan_out[0] + 1 > fan_out[1] or any(used * NEAR >= bound for used, bound in rest)

    def capacities(self, views: list[int]) -> Capacities:
        """Return the bounds for some views; sites that failed bear nothing."""
        count = len(self._bounds) - 1
        bounds = np.array([self._bounds[site] for site in range(count)], dtype=np.float64).reshape(count, 3)
        bounds[sorted(self._failed)] = 0.0
        return Capacities(
            np.array([self.sites[view] for view in views], dtype=np.int32),
            np.ascontiguousarray(bounds[:, 0]),
            np.ascontiguousarray(bounds[:, 1]),
            np.ascontiguousarray(bounds[:, 2]),
            *self._bounds[PUBLISHER],
        )

    def _asked(self, view: int, option: Option) -> dict[int, list[float]]:
        asked: dict[int, list[float]] = {}
        for site, sent, sending in self._feeders(option):
            if site == self.sites[view]:
                continue
            row = asked.setdefault(site, [0.0, 0.0, 0.0])
            row[0] += 1
            row[1] += sent
            row[2] += sending
        asked.setdefault(self.sites[view], [0.0, 0.0, 0.0])[2] += option.joining
        return asked

    def _feeders(self, option: Option) -> Iterator[tuple[int, float, float]]:
        feeders = [self.sites[view] for view in option.inputs] or [PUBLISHER]
        return zip(feeders, option.sent, option.sending, strict=True)


UNFED = -2
GONE = -3


class Change(NamedTuple):
    """What a change led to: views that are fed in another way, by nobody any more, or at last again."""

    moved: tuple[int, ...]
    unfed: tuple[int, ...]
    fed_again: tuple[int, ...]


class CurrentPlan(NamedTuple):
    """The plan at one moment. `views` are the numbers of those that are fed; all else counts them from 0."""

    views: NDArray[np.int64]
    plan: Plan
    rewritings: Rewritings
    costs: Costs
    capacities: Capacities


class LivePlan:
    """A plan, valid after every change. Not safe for several threads."""

    def __init__(
        self,
        plan: Plan,
        rewritings: Rewritings,
        costs: Costs,
        capacities: Capacities,
        *,
        alpha: float = 1.0,
        beta: float = 1.0,
        threshold: int = 1000,
    ) -> None:
        """Begin with a valid plan; a new one is due after `threshold` changes."""
        _refuse(plan, rewritings, costs, capacities)
        self.alpha = alpha
        self.beta = beta
        self.threshold = threshold
        self._rows = OptionRows(rewritings, costs)
        self._bearing = SiteLoads(capacities)
        views = len(plan.chosen)
        self._ranks = [0] * views
        for rank, view in enumerate(order_of(rewritings).tolist()):
            self._ranks[view] = rank
        self._places: list[int] = [UNFED] * views
        self._feeds: list[set[int]] = [set() for _ in range(views)]
        self._latency: list[float] = latencies(plan, rewritings, costs).tolist()
        self._changes = 0
        starts = rewritings.offsets.tolist()
        for view, number in enumerate(plan.chosen.tolist()):
            self._feed(view, SOURCE if number == SOURCE else number - starts[view])

    @property
    def changes(self) -> int:
        """Count changes since the last full plan; a view that was moved is one."""
        return self._changes

    @property
    def unfed(self) -> tuple[int, ...]:
        """List the views that nobody can feed at present."""
        return tuple(view for view, place in enumerate(self._places) if place == UNFED)

    @property
    def due(self) -> bool:
        """Tell whether it is time for a full plan: many changes, or any and nothing left at the source."""
        if not self._changes:
            return False
        return self._changes >= self.threshold or bool(self.unfed) or self._bearing.source_is_full()

    def fan_outs(self) -> dict[int, float]:
        """Return how many views each site may feed."""
        return self._bearing.fan_outs()

    def latency(self, view: int) -> float:
        """Return the latency of a view that is fed."""
        self._refuse_unknown(view)
        if self._places[view] == UNFED:
            raise PlanError(f"view {view} is not fed at present: make a new plan, or make room")
        return self._latency[view]

    def add_site(self, fan_out: float, bandwidth: float = np.inf, cpu: float = np.inf) -> int:
        """Add a site for views to come; returns its number."""
        return self._bearing.add_site(fan_out, bandwidth, cpu)

    def add(self, site: int, rewritings: Sequence[Option], source: Option) -> int:
        """Add a view at a site; returns its number. If there is no room it is refused: nothing changes."""
        if site not in self._bearing:
            raise PlanError(f"site {site} does not exist or has failed: add it first, or choose another")
        if source.inputs or any(not option.inputs for option in rewritings):
            raise PlanError("a rewriting has no inputs, or feeding by the source has: the reverse is needed")
        for option in (*rewritings, source):
            if not len(option.sent) == len(option.sending) == max(len(option.inputs), 1):
                raise PlanError("a rewriting does not say what each of its inputs sends: one number for each")
            for each in option.inputs:
                self._refuse_unknown(each)
        view = self._rows.add(rewritings, source)
        self._bearing.sites.append(site)
        self._ranks.append(len(self._ranks))
        self._places.append(UNFED)
        self._feeds.append(set())
        self._latency.append(np.inf)
        reason = self._settled(view)
        if reason is not None:
            self._places[view] = GONE
            raise PlanError(
                f"there is no room for a view at site {site}: {reason}; withdraw others or plan again"
            )
        self._changes += 1
        return view

    def withdraw(self, view: int) -> Change:
        """Take a view away; those that it fed are treated as new."""
        self._refuse_unknown(view)
        return self._without([view])

    def fail(self, site: int) -> Change:
        """Take a site away with all its views; those that they fed elsewhere are treated as new."""
        if site not in self._bearing:
            raise PlanError(f"site {site} does not exist or has failed already: name one that has not")
        self._bearing.fail(site)
        places = zip(self._bearing.sites, self._places, strict=True)
        return self._without(
            [view for view, (at, place) in enumerate(places) if at == site and place != GONE]
        )

    def current(self) -> CurrentPlan:
        """Return the plan as it is, over the views that are fed."""
        taken = np.array([place >= SOURCE for place in self._places], dtype=np.bool_)
        compact = self._rows.compact(taken)
        firsts = compact.rewritings.offsets.tolist()
        places = compact.places.tolist()
        chosen = np.full(len(compact.views), SOURCE, dtype=np.int64)
        for row, view in enumerate(compact.views.tolist()):
            if self._places[view] != SOURCE:
                chosen[row] = places.index(self._places[view], firsts[row], firsts[row + 1])
        capacities = self._bearing.capacities(compact.views.tolist())
        return CurrentPlan(compact.views, Plan(chosen), compact.rewritings, compact.costs, capacities)

    def replan(
        self,
        solver: Callable[[Rewritings, Costs, Capacities], Plan],
        rewritings: Rewritings | None = None,
        costs: Costs | None = None,
    ) -> None:
        """Make a full plan for all views that are there, unfed ones too, and take it if it is valid.

        With `rewritings` and `costs` these, by the numbers of views, take the place of those that are known:
        so views that came later can feed earlier ones.
        """
        taken = np.array([place != GONE for place in self._places], dtype=np.bool_)
        rows, ranks = self._rows, self._ranks
        if rewritings is not None and costs is not None:
            if len(rewritings.offsets) - 1 != len(taken):
                raise PlanError(
                    f"rewritings of {len(rewritings.offsets) - 1} views for {len(taken)}: give all"
                )
            rows = OptionRows(rewritings, costs)
            ranks = np.argsort(order_of(rewritings)).tolist()
        compact = rows.compact(taken)
        views = compact.views.tolist()
        capacities = self._bearing.capacities(views)
        plan = solver(compact.rewritings, compact.costs, capacities)
        _refuse(plan, compact.rewritings, compact.costs, capacities)
        for view in views:
            self._release(view)
        self._rows, self._ranks = rows, ranks
        found = latencies(plan, compact.rewritings, compact.costs).tolist()
        for view, number, latency in zip(views, plan.chosen.tolist(), found, strict=True):
            self._feed(view, SOURCE if number == SOURCE else int(compact.places[number]))
            self._latency[view] = latency
        self._changes = 0

    def _without(self, views: list[int]) -> Change:
        """Take views away, then find new feeders for all that lost one."""
        waiting = set(self.unfed) - set(views)
        orphans = {fed for view in views for fed in self._feeds[view]} - set(views)
        for view in views:
            self._release(view)
            self._places[view] = GONE
        settled, unfed = self._rehoused(orphans | waiting)
        self._changes += 1 + len(settled)
        self._time(settled)
        return Change(
            tuple(sorted(settled - waiting)), tuple(sorted(unfed - waiting)), tuple(sorted(settled & waiting))
        )

    def _rehoused(self, orphans: Iterable[int]) -> tuple[set[int], set[int]]:
        """Feed views anew, inputs first; returns which are fed, and which not.

        What nobody can feed takes those behind it along.
        """
        queue = [(self._ranks[view], view) for view in orphans]
        seen = {view for _, view in queue}
        heapify(queue)
        for view in seen:
            self._release(view)
        settled: set[int] = set()
        unfed: set[int] = set()
        while queue:
            _, view = heappop(queue)
            behind = set(self._feeds[view])
            if self._settled(view) is None:
                settled.add(view)
                continue
            unfed.add(view)
            for each in behind - seen:
                seen.add(each)
                self._release(each)
                heappush(queue, (self._ranks[each], each))
        return settled, unfed

    def _settled(self, view: int) -> str | None:
        """Feed a view that is not fed in the best way there is room for; says why not, if there is none."""
        best = None
        least = np.inf
        reason = "it has no rewritings"
        for place, option in enumerate(self._rows.rewritings_of(view)):
            if any(self._places[each] < SOURCE for each in option.inputs):
                reason = f"rewriting {place} uses a view that is gone or not fed"
                continue
            latency = option.latency + max(self._latency[each] for each in option.inputs)
            cost = self.alpha * option.utilization + self.beta * latency
            if cost < least:
                excess = self._bearing.excess(view, option)
                if excess is None:
                    best, least = place, cost
                else:
                    reason = f"by rewriting {place} {excess}"
        if best is None:
            excess = self._bearing.excess(view, self._rows.source_of(view))
            if excess is not None:
                return f"{reason}, and by the source {excess}"
            best = SOURCE
        self._feed(view, best)
        self._latency[view] = self._waited(view)
        return None

    def _option(self, view: int) -> Option:
        place = self._places[view]
        return self._rows.source_of(view) if place == SOURCE else self._rows.chosen_of(view, place)

    def _waited(self, view: int) -> float:
        option = self._option(view)
        return option.latency + max((self._latency[each] for each in option.inputs), default=0.0)

    def _feed(self, view: int, place: int) -> None:
        self._places[view] = place
        option = self._option(view)
        self._bearing.begin(view, option)
        for each in option.inputs:
            self._feeds[each].add(view)

    def _release(self, view: int) -> None:
        """Stop feeding a view; nothing to do if it is not fed."""
        if self._places[view] < SOURCE:
            return
        option = self._option(view)
        self._bearing.end(view, option)
        for each in option.inputs:
            self._feeds[each].discard(view)
        self._places[view] = UNFED
        self._latency[view] = np.inf

    def _time(self, moved: Iterable[int]) -> None:
        """Compute the latencies of all that is behind views that were moved."""
        queue = sorted({(self._ranks[fed], fed) for view in moved for fed in self._feeds[view]})
        queued = {view for _, view in queue}
        while queue:
            _, view = heappop(queue)
            queued.discard(view)
            latency = self._waited(view)
            if latency != self._latency[view]:
                self._latency[view] = latency
                for fed in self._feeds[view] - queued:
                    queued.add(fed)
                    heappush(queue, (self._ranks[fed], fed))

    def _refuse_unknown(self, view: int) -> None:
        if not 0 <= view < len(self._places) or self._places[view] == GONE:
            raise PlanError(f"view {view} does not exist or is gone: name one that is there")


def _refuse(plan: Plan, rewritings: Rewritings, costs: Costs, capacities: Capacities) -> None:
    lines = problems(plan, rewritings, costs, capacities)
    if lines:
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        raise PlanError(f"the plan is not valid: {lines[0]}{more}; begin with one that is")
