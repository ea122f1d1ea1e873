"""The facade of the plan room: subscriptions of any content that feed each other, and come and go."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.contents.kind import FilterSettings
from headgate.contents.registry import content_of
from headgate.core.arguments import place_of, told
from headgate.core.ids import sorted_by_id
from headgate.core.interning import TextPool
from headgate.engine.grown_views import GrownViews, names_of, options_of, renumbered
from headgate.engine.inputs import event_of, events_of, id_of, subscriptions_of
from headgate.engine.views import ViewMaker, views_in
from headgate.errors import PlanError
from headgate.plan.costs import averages, costs_of, sums
from headgate.plan.latency.latency import loga
from headgate.plan.measures import levels
from headgate.plan.model import AT_VIEW, SOURCE, Plan
from headgate.plan.placement import known_links, links_of, sites_of
from headgate.plan.program.program import solve
from headgate.plan.running.changes import Change, LivePlan
from headgate.plan.running.options import spread
from headgate.plan.running.planner import (
    PlanInput,
    Settings,
    default_source_fan_out,
    find_ways,
    make_plan,
)
from headgate.plan.running.saved_plan import SavedPlan, disseminate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from headgate.contents.views import Views
    from headgate.core.arrays import Bools, Floats64
    from headgate.core.event import Event, Id
    from headgate.core.subscription import Subscription
    from headgate.plan.model import Capacities, Costs, Rewritings
    from headgate.plan.placement import Link
    from headgate.rdf.taxonomy.taxonomy import Taxonomy


class Feeding(NamedTuple):
    """How a subscription is fed: by the source if there are no inputs. `steps` say how it is computed."""

    level: int
    inputs: tuple[Id, ...]
    steps: tuple[str, ...]


class PlacedView(NamedTuple):
    """A subscription in the plan: its site, and what it is computed from, nothing if the source feeds it."""

    id: Id
    filter: str
    dialect: str
    site: str
    level: int
    inputs: tuple[Id, ...]
    host: str | None = None
    """Another site, where it is computed, and from which its own takes it."""


class ChangeEffect(NamedTuple):
    """What a change led to: subscriptions fed in another way, by nobody any more, or at last again."""

    moved: tuple[Id, ...]
    unfed: tuple[Id, ...]
    fed_again: tuple[Id, ...]


class Dissemination:
    """Subscriptions, each at a site of its own, fed by the source or by each other.

    Subscriptions come and go, and sites fail; the plan stays valid. When `due`, `replan` makes it anew.

    >>> from headgate import Dissemination, Event, Subscription
    >>> subscriptions = [
    ...     Subscription("all", "//news{id}[author{val}]//title{val}", "xpath"),
    ...     Subscription("titles", "//news//title{val}", "xpath"),
    ... ]
    >>> event = Event("e1", "<news><author>Bo</author><title>Up</title></news>", content_type="xml")
    >>> plan = Dissemination.build(subscriptions, [event])
    >>> plan.feeding("titles").inputs, plan.feeding("all").inputs
    ((), ())
    """

    def __init__(
        self,
        subscriptions: Sequence[Subscription],
        views: Views,
        saved: SavedPlan,
        sizes: tuple[Floats64, Floats64],
        settings: Settings,
        taken: ViewMaker,
    ) -> None:
        self.saved = saved
        """The plan as it was made first, which can be saved."""
        self._subscriptions = list(subscriptions)
        self._views = GrownViews(views, self._subscriptions, taken.views)
        self._dialects = {each.dialect for each in subscriptions}
        self._numbers = {each.id: number for number, each in enumerate(subscriptions)}
        self._rows, self._bytes = sizes
        self._settings = settings
        self._taken = taken
        self._plan = _living(saved, settings)
        self._sites: list[int] = saved.capacities.sites.tolist()
        self._site_names = dict(enumerate(saved.sites.texts()))
        self._linked = known_links(saved)
        self._grown = False
        """Whether subscriptions came since all were compared with each other."""
        self._lost: dict[str, list[Subscription]] = {}
        """The subscriptions of sites that failed."""
        self._relieved: dict[str, set[int]] = {}
        """Sites that feed nobody elsewhere at present."""

    @classmethod
    def build(
        cls,
        subscriptions: Iterable[Subscription],
        sample: Iterable[Event],
        settings: Settings | None = None,
        *,
        sites: Mapping[Id, str] | None = None,
        links: Iterable[Link] | None = None,
        carries: str | None = None,
        taxonomy: Taxonomy | None = None,
        nulls: str | None = None,
        names: str | None = None,
        dots: str | None = None,
    ) -> Dissemination:
        """Plan who feeds whom; the sample of events tells how much each subscription gives.

        `sites` names the site of each subscription; those without have one of their own, called as they are.
        `links` are between sites, by these names; the publisher's is `source`.

        `nulls`, `names` and `dots` say what names mean in filters of records, as in `Engine.build`.
        """
        settings = settings_of(settings)
        ids, ordered = sorted_by_id(subscriptions_of(subscriptions))
        wanted = FilterSettings(taxonomy=taxonomy, nulls=nulls, names=names, dots=dots)
        taken = ViewMaker(carries, wanted)
        views = taken.views(ordered)
        mean = averages(*sums(views, taken.matching(ordered), events_of(sample)))
        filters = TextPool.build([each.filter for each in ordered])
        content = content_of((each.dialect for each in ordered), "the views")
        about = {"content": content, "carries": carries, "names": taken.settings}
        capacities, titles = sites_of(ids, {} if sites is None else sites, settings)
        linked = None if links is None else links_of(links, titles.texts())
        plan_input = PlanInput(ids, filters, mean.rows, mean.bytes, capacities, titles, linked)
        made = make_plan(views, plan_input, settings, about=about)
        return cls(ordered, views, made.saved, (mean.rows, mean.bytes), settings, taken)

    @classmethod
    def open(cls, path: str | Path, *, taxonomy: Taxonomy | None = None) -> Dissemination:
        """Open a plan that `headgate plan` made, or `saved.save`; views over RDF need their taxonomy."""
        saved = SavedPlan.open(place_of(path))
        subscriptions, taken = views_in(saved, taxonomy)
        sizes = saved.sizes or (saved.costs.source_sent, saved.costs.source_sent)
        settings = Settings.read(saved.about.get("settings", {}))
        return cls(subscriptions, taken.views(subscriptions), saved, sizes, settings, taken)

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self._numbers)

    @property
    def carries(self) -> str | None:
        """Return what views over records give: `row` or `key`."""
        return self._taken.carries

    @property
    def names(self) -> dict[str, str]:
        """Return the settings that say what names mean, where they are not as usual."""
        return self._taken.settings

    @property
    def due(self) -> bool:
        """Tell whether it is time to plan anew."""
        return self._plan.due

    @property
    def unfed(self) -> tuple[Id, ...]:
        """List the subscriptions that nobody can feed at present."""
        return self._named(self._plan.unfed)

    def deliver(self, event: Event) -> dict[Id, Any]:
        """Give each subscription what it gets for an event, by the plan; None where that is nothing."""
        event = event_of(event)
        now = self._plan.current()
        numbers = now.views.tolist()
        some = _Some(self._views, numbers)
        results = disseminate(some, now.plan, now.rewritings, event).results
        return {
            self._subscriptions[number].id: some.written(position, result)
            for position, (number, result) in enumerate(zip(numbers, results, strict=True))
        }

    def feeding(self, identity: Id) -> Feeding:
        """Say how a subscription is fed."""
        number = self._number(identity)
        now = self._plan.current()
        numbers = now.views.tolist()
        if number not in numbers:
            raise PlanError(f"subscription {identity!r} has no feed at present: plan again, or make room")
        position = numbers.index(number)
        level = int(levels(now.plan, now.rewritings)[position])
        chosen = int(now.plan.chosen[position])
        if chosen == SOURCE:
            return Feeding(level, (), ("by the source",))
        begin, end = now.rewritings.input_offsets[chosen : chosen + 2]
        inputs = [numbers[each] for each in now.rewritings.inputs[begin:end].tolist()]
        steps = self._views.plan_of(number, inputs, lambda view: repr(self._subscriptions[view].id))
        return Feeding(level, self._named(inputs), tuple(steps))

    def placed(self) -> list[PlacedView]:
        """List the subscriptions that are fed, with what each is computed from, inputs first."""
        now = self._plan.current()
        numbers = now.views.tolist()
        level_of = levels(now.plan, now.rewritings)
        rows = []
        for position in np.argsort(level_of, kind="stable").tolist():
            number, chosen = numbers[position], int(now.plan.chosen[position])
            inputs: list[int] = []
            each, site, host = self._subscriptions[number], self._site_name(number), None
            if chosen != SOURCE:
                begin, end = now.rewritings.input_offsets[chosen : chosen + 2]
                inputs = [numbers[each] for each in now.rewritings.inputs[begin:end].tolist()]
                at = now.costs.host_of(chosen)
                if at != AT_VIEW and self._site_name(inputs[at]) != site:
                    host = self._site_name(inputs[at])
            level = int(level_of[position])
            rows.append(
                PlacedView(each.id, each.filter, each.dialect, site, level, self._named(inputs), host)
            )
        return rows

    def _site_name(self, number: int) -> str:
        return self._site_names[self._sites[number]]

    def subscribe(self, *subscriptions: Subscription) -> None:
        """Add subscriptions, each at a new site; refuses all if one is there or nobody can feed it.

        They are compared with those that may feed them, and the others are left as they are.
        """
        subscriptions = tuple(one for each in subscriptions for one in subscriptions_of(each))
        new: set[Id] = set()
        for each in subscriptions:
            if each.id in self._numbers:
                raise PlanError(f"id {each.id!r} is subscribed already: unsubscribe it first")
            if each.id in new:
                raise PlanError(f"id {each.id!r} is given twice: give each once")
            new.add(each.id)
        if not subscriptions:
            return
        content_of(self._dialects | {each.dialect for each in subscriptions}, "the views")
        self._add(subscriptions, None)

    def _add(self, subscriptions: Sequence[Subscription], site_number: int | None) -> None:
        """Add subscriptions, all at one site or each at a new one; refuses all if nobody can feed one."""
        first = len(self._subscriptions)
        names = list(names_of(self._taken.views(subscriptions)))
        near = self._views.near(names, self._plan_alive())
        views = self._taken.views([*(self._subscriptions[number] for number in near), *subscriptions])
        size = self._bytes.mean() if len(self._bytes) else 1.0
        rows = np.append(self._rows, np.full(len(subscriptions), self._rows.mean() if first else 1.0))
        large = np.append(self._bytes, np.full(len(subscriptions), size))
        numbers = np.array([*near, *range(first, len(rows))], np.int64)
        self._grown = True
        placement = self._linked.placement(
            [*(self._sites[number] for number in near), *([site_number] * len(subscriptions))],
            [
                self._site_names[site_number] if site_number is not None else str(each.id)
                for each in subscriptions
            ],
        )
        options = options_of(views, self._settings, len(near), rows[numbers], large[numbers], placement)
        for number, (each, named, (rewritings, source)) in enumerate(
            zip(subscriptions, names, options, strict=True), first
        ):
            site = self._new_site(str(each.id)) if site_number is None else site_number
            # A view that is refused has a number all the same.
            self._subscriptions.append(each)
            self._views.add(number, named)
            self._dialects.add(each.dialect)
            self._sites.append(site)
            self._rows, self._bytes = rows[: number + 1], large[: number + 1]
            try:
                self._plan.add(site, [renumbered(each, numbers) for each in rewritings], source)
            except PlanError as error:
                for earlier in subscriptions[: number - first]:
                    self._plan.withdraw(self._numbers.pop(earlier.id))
                raise PlanError(f"subscription {each.id!r}: {error}") from None
            self._numbers[each.id] = number

    def _new_site(self, name: str) -> int:
        bounds = self._settings
        site = self._plan.add_site(
            *(bounds.relax * bound for bound in (bounds.fan_out, bounds.bandwidth, bounds.cpu))
        )
        self._site_names[site] = name
        self._linked.names[site] = name
        return site

    def unsubscribe(self, identity: Id) -> ChangeEffect:
        """Withdraw a subscription; those that it fed are fed in another way."""
        number = self._number(identity)
        change = self._plan.withdraw(number)
        del self._numbers[identity]
        self._views.forget(number)
        return self._changed(change)

    def fail(self, identity: Id) -> ChangeEffect:
        """Let the site of a subscription fail: that is gone, and those that it fed are fed in another way."""
        number = self._number(identity)
        change = self._plan.fail(self._sites[number])
        del self._numbers[identity]
        self._views.forget(number)
        return self._changed(change)

    def fail_site(self, name: str) -> ChangeEffect:
        """Let a site fail with all its subscriptions; those that they fed are fed in another way."""
        here = sorted(number for number in self._numbers.values() if self._site_name(number) == name)
        if not here:
            raise PlanError(f"there is no subscription at site {name!r}")
        self._lost[name] = [self._subscriptions[number] for number in here]
        self._relieved.pop(name, None)
        for number in here:
            del self._numbers[self._subscriptions[number].id]
            self._views.forget(number)
        changes = [self._plan.fail(site) for site in sorted({self._sites[number] for number in here})]
        gone = set(here)
        moved = {each for change in changes for each in change.moved}
        unfed = {each for change in changes for each in change.unfed}
        unfed = {number for number in unfed if number in self._plan.unfed} - gone
        again = {each for change in changes for each in change.fed_again} - gone
        return self._changed(Change(*(tuple(sorted(some)) for some in (moved - unfed - gone, unfed, again))))

    def fan_outs(self) -> dict[str, float]:
        """Return how many views each site may feed at most, where there is a bound."""
        bounds: dict[str, float] = {}
        for site, bound in self._plan.fan_outs().items():
            name = self._site_names[site]
            bounds[name] = bounds.get(name, 0.0) + bound
        return {name: bound for name, bound in bounds.items() if not math.isinf(bound)}

    def rename_sites(self, names: Mapping[str, str]) -> None:
        """Call sites by other names; sites of one name are one machine, which fails as a whole."""
        self._site_names = {site: names.get(name, name) for site, name in self._site_names.items()}

    def relieve_site(self, name: str) -> ChangeEffect:
        """Have a site feed nobody elsewhere; its own subscriptions stay, and what only it can feed."""
        machine = {
            self._sites[number] for number in self._numbers.values() if self._site_name(number) == name
        }
        if not machine:
            raise PlanError(f"there is no subscription at site {name!r}")
        self._relieved[name] = machine
        return self._changed(self._plan.relieve(machine))

    def resume_site(self, name: str) -> ChangeEffect:
        """Let a site that was relieved feed others again."""
        if name not in self._relieved:
            raise PlanError(f"site {name!r} is not relieved: name one that is")
        return self._changed(self._plan.resume(self._relieved.pop(name)))

    def restore_site(self, name: str) -> None:
        """Have a site that failed again, with its subscriptions, which are fed as those that come."""
        if name not in self._lost:
            raise PlanError(f"site {name!r} has not failed, or had no subscriptions")
        self._add(self._lost[name], self._new_site(name))
        del self._lost[name]

    def replan(self) -> None:
        """Plan anew for all that is there, within the capacities that it began with."""
        settings = self._settings
        fed = int((self._plan.current().plan.chosen == SOURCE).sum()) + len(self._plan.unfed)

        def solver(rewritings: Rewritings, costs: Costs, capacities: Capacities) -> Plan:
            if settings.source_fan_out is None:
                # At least what it feeds now: that much is known to do.
                least = max(default_source_fan_out(rewritings), fed)
                capacities = capacities._replace(source_fan_out=float(least))
            plan = solve(rewritings, costs, capacities, time_limit=settings.time_limit, gap=settings.gap).plan
            return loga(
                plan,
                rewritings,
                costs,
                capacities,
                alpha=settings.alpha,
                beta=settings.beta,
                swaps=settings.swaps,
                to_source=settings.to_source,
            ).plan

        if self._grown:
            self._plan.replan(solver, *self._compared())
            self._grown = False
        else:
            self._plan.replan(solver)

    def _compared(self) -> tuple[Rewritings, Costs]:
        """Compare all subscriptions with each other; the numbers of those that are gone stay empty."""
        numbers = np.flatnonzero(self._plan_alive())
        settings = self._settings
        views = self._taken.views([self._subscriptions[number] for number in numbers.tolist()])
        rows, large = self._rows[numbers], self._bytes[numbers]
        rewritings = find_ways(views, large, settings).searched.rewritings
        placement = self._linked.placement([self._sites[number] for number in numbers.tolist()], [])
        costs = costs_of(rewritings, rows, large, settings.costs, placement)
        return spread(rewritings, costs, numbers, len(self._subscriptions))

    def _number(self, identity: Id) -> int:
        number = self._numbers.get(id_of(identity))
        if number is None:
            raise PlanError(f"there is no subscription {identity!r} here")
        return number

    def _named(self, numbers: Iterable[int]) -> tuple[Id, ...]:
        return tuple(self._subscriptions[number].id for number in numbers)

    def _changed(self, change: Change) -> ChangeEffect:
        return ChangeEffect(*(self._named(each) for each in change))

    def _plan_alive(self) -> Bools:
        """Tell which views are there."""
        alive = np.zeros(len(self._subscriptions), np.bool_)
        alive[list(self._numbers.values())] = True
        return alive


def settings_of(given: object) -> Settings:
    """Take what is asked of a plan; nothing is the usual."""
    if given is None:
        return Settings()
    if not isinstance(given, Settings):
        raise PlanError(f"the settings of a plan are {told(given)}: give Settings")
    return given


class _Some:
    """Some of the views, counted from 0, as far as a plan is carried out with them."""

    def __init__(self, views: GrownViews, numbers: Sequence[int]) -> None:
        self._views = views
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def written(self, view: int, result: Any) -> Any:
        return self._views.written(self._numbers[view], result)

    def result(self, view: int, event: Event) -> Any:
        return self._views.result(self._numbers[view], event)

    def rewritten(self, view: int, inputs: Sequence[int], results: Sequence[Any]) -> Any:
        return self._views.rewritten(self._numbers[view], [self._numbers[each] for each in inputs], results)

    def size(self, result: Any) -> tuple[int, int]:
        return self._views.size(result)


def _living(saved: SavedPlan, settings: Settings) -> LivePlan:
    capacities = saved.capacities
    if settings.source_fan_out is None:
        # The default is there to spread the load; nobody shall go unfed for it when things change.
        capacities = capacities._replace(source_fan_out=math.inf)
    return LivePlan(
        saved.plan,
        saved.rewritings,
        saved.costs,
        capacities,
        alpha=settings.alpha,
        beta=settings.beta,
    )
