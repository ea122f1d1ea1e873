"""A plan that follows its views (section 3.5): they come, are withdrawn, and sites fail.

A view that comes is fed by the rewriting with the least mixed cost that no site is too small for; if there is
none, by the source. Views that lose a feeder are treated as new ones, in an order in which inputs come first.
Views that come later stand later in that order than all before, and only use those: no cycle can arise. A
plan made anew may be given other rewritings, with an order of their own.

What the source has no room for either is left unfed and reported; it is tried again with each change that
may make room. When `due`, it is time for a plan made anew.

A site that cannot keep up is *relieved*: it keeps its own views, and those that it fed elsewhere are fed in
another way, as far as there is one, until it may feed others again.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import PlanError
from headgate.plan.measures import latencies, order_of
from headgate.plan.model import SOURCE, Capacities, Costs, Plan, Rewritings
from headgate.plan.running.options import OptionRows, SiteLoads
from headgate.plan.running.validate import problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headgate.core.arrays import Ints
    from headgate.plan.running.options import Option


UNFED = -2
GONE = -3


class Change(NamedTuple):
    """What a change led to: views that are fed in another way, by nobody any more, or at last again."""

    moved: tuple[int, ...]
    unfed: tuple[int, ...]
    fed_again: tuple[int, ...]


class CurrentPlan(NamedTuple):
    """The plan at one moment. `views` are the numbers of those that are fed; all else counts them from 0."""

    views: Ints
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
        self._away: dict[frozenset[int], dict[int, tuple[int, int]]] = {}
        """Of sites that are relieved: the views they fed, the place of each then and now."""
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
        return tuple(view for view, choice in enumerate(self._places) if choice == UNFED)

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
        self._away = {some: away for some, away in self._away.items() if site not in some}
        places = zip(self._bearing.sites, self._places, strict=True)
        return self._without(
            [view for view, (at, choice) in enumerate(places) if at == site and choice != GONE]
        )

    def relieve(self, sites: Iterable[int]) -> Change:
        """Have sites, which are one machine, feed nobody elsewhere; they keep their own views.

        What cannot be fed in another way stays as it is.
        """
        machine = frozenset(sites)
        for site in machine:
            if site not in self._bearing:
                raise PlanError(f"site {site} does not exist or has failed: name one that has not")
        self._bearing.relieve(machine)
        at = self._bearing.sites
        own = {view for view, site in enumerate(at) if site in machine}
        fed = {each for view in own for each in self._feeds[view]} - own
        away = self._away.setdefault(machine, {})
        for view in sorted(fed, key=self._ranks.__getitem__):
            before = self._places[view]
            self._release(view)
            if self._settled(view) is None:
                away[view] = (before, self._places[view])
            else:
                self._feed_as(view, before)
        return self._moved(set(away) & fed, fed)

    def resume(self, sites: Iterable[int]) -> Change:
        """Let sites that were relieved feed others again, and those first that they fed before."""
        machine = frozenset(sites)
        if machine not in self._away:
            raise PlanError(f"sites {sorted(machine)} are not relieved: name some that are")
        self._bearing.resume(machine)
        moved, fed_again = set(), set()
        for view, (before, now) in self._away.pop(machine).items():
            if self._places[view] != now:
                continue
            self._release(view)
            fed_again.add(view)
            option = self._rows.chosen_of(view, before)
            fed = all(self._places[each] >= SOURCE for each in option.inputs)
            if fed and self._bearing.excess(view, option) is None:
                self._feed_as(view, before)
                moved.add(view)
            else:
                self._feed_as(view, now)
        return self._moved(moved, fed_again)

    def _moved(self, moved: set[int], fed_again: set[int]) -> Change:
        """Note which views are fed in another way, and see whether there is room for others now.

        One that is fed as before may wait longer or shorter, since its inputs are fed in another way.
        """
        waiting = set(self.unfed)
        settled, _ = self._rehoused(waiting)
        self._changes += len(moved) + len(settled)
        self._time(fed_again | settled)
        return Change(tuple(sorted(moved)), (), tuple(sorted(settled)))

    def _feed_as(self, view: int, choice: int) -> None:
        self._feed(view, choice)
        self._latency[view] = self._waited(view)

    def current(self) -> CurrentPlan:
        """Return the plan as it is, over the views that are fed."""
        taken = np.array([choice >= SOURCE for choice in self._places], dtype=np.bool_)
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
        taken = np.array([choice != GONE for choice in self._places], dtype=np.bool_)
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
        capacities = self._bearing.capacities(views, relieved=True)
        plan = solver(compact.rewritings, compact.costs, capacities)
        _refuse(plan, compact.rewritings, compact.costs, capacities)
        for view in views:
            self._release(view)
        self._rows, self._ranks = rows, ranks
        self._away = {machine: {} for machine in self._away}
        waits = latencies(plan, compact.rewritings, compact.costs).tolist()
        for view, number, latency in zip(views, plan.chosen.tolist(), waits, strict=True):
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
        for choice, option in enumerate(self._rows.rewritings_of(view)):
            if any(self._places[each] < SOURCE for each in option.inputs):
                reason = f"rewriting {choice} uses a view that is gone or not fed"
                continue
            latency = option.latency + max(self._latency[each] for each in option.inputs)
            cost = self.alpha * option.utilization + self.beta * latency
            if cost < least:
                excess = self._bearing.excess(view, option)
                if excess is None:
                    best, least = choice, cost
                else:
                    reason = f"by rewriting {choice} {excess}"
        if best is None:
            excess = self._bearing.excess(view, self._rows.source_of(view))
            if excess is not None:
                return f"{reason}, and by the source {excess}"
            best = SOURCE
        self._feed_as(view, best)
        return None

    def _option(self, view: int) -> Option:
        choice = self._places[view]
        return self._rows.source_of(view) if choice == SOURCE else self._rows.chosen_of(view, choice)

    def _waited(self, view: int) -> float:
        option = self._option(view)
        return option.latency + max((self._latency[each] for each in option.inputs), default=0.0)

    def _feed(self, view: int, choice: int) -> None:
        self._places[view] = choice
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
